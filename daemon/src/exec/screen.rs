//! A screen arm: its missing games on the opened block, one row per game, stored as they come.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{OnceLock, PoisonError};
use std::time::Instant;

use engine_core::progress::Progress;
use engine_core::screen::{GameRow, Player, SearchLeaf, play_game};
use engine_core::search::SearchConfig;
use serde::{Deserialize, Serialize};

use super::freeze::{TableRef, table_refs};
use super::plan::screen_key;
use super::tables::TableCache;
use super::unit::{Ending, Report, UnitContext, UnitResult, output, seconds};
use crate::domain::protocol::{PlayerSpec, Protocol, SearchSpec};
use crate::domain::records::{GameRecord, LeaseState, TableDigest};
use crate::domain::refusal::{Code, Refusal};
use crate::domain::seed_range::Seed;

/// The name of the hand-written leaf in protocols.
pub const FAIR: &str = "fair";

/// What a screen arm leaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScreenOutput {
    /// The arm.
    pub arm: String,
    /// Games stored, those of earlier attempts included.
    pub games: u32,
    /// The table it played from, with the digest of what was read; absent for the fair leaf.
    pub played: Option<TableDigest>,
    /// Wall seconds of this attempt, from its first game to its last; other arms may play meanwhile.
    pub wall_seconds: f64,
}

/// The name of the table a player reads, if it reads one.
pub fn table_of(player: &PlayerSpec) -> Option<&str> {
    match player {
        PlayerSpec::Search { leaf, .. } if leaf == FAIR => None,
        PlayerSpec::Search { leaf, .. } => Some(leaf),
        PlayerSpec::Direct { table } => Some(table),
    }
}

/// A search of the studies: never cut short, with the transposition table of its depth.
///
/// # Errors
/// When the engine refuses the depth or the strata.
pub fn search_config(search: SearchSpec) -> Result<SearchConfig, Refusal> {
    SearchConfig::bounded(search.depth, search.strata)
        .map_err(|error| Refusal::new(Code::InvalidProtocol, format!("search: {error}")))
}

/// The player a protocol describes, with its table read and verified.
///
/// # Errors
/// When its table is unknown, not stored or damaged, or the engine refuses the search.
pub fn player(
    spec: &PlayerSpec,
    refs: &[TableRef],
    tables: &TableCache,
) -> Result<(Player, Option<TableDigest>), Refusal> {
    let table = |name: &str| {
        let known = refs.iter().find(|known| known.name == name).ok_or_else(|| {
            Refusal::new(Code::MissingTable, format!("no table {name:?} was frozen in this run"))
        })?;
        let digest = TableDigest { name: name.to_owned(), sha256: known.sha256.clone() };
        Ok::<_, Refusal>((tables.get(&known.sha256)?, Some(digest)))
    };
    match spec {
        PlayerSpec::Search { search, leaf } if leaf == FAIR => {
            let config = search_config(*search)?;
            Ok((Player::Search { config, leaf: SearchLeaf::Fair }, None))
        }
        PlayerSpec::Search { search, leaf } => {
            let config = search_config(*search)?;
            let (tables, digest) = table(leaf)?;
            Ok((Player::Search { config, leaf: SearchLeaf::Tables(tables) }, digest))
        }
        PlayerSpec::Direct { table: name } => {
            let (tables, digest) = table(name)?;
            Ok((Player::Direct(tables), digest))
        }
    }
}

/// The player of the arm `name`.
///
/// # Errors
/// As [`player`], and when the protocol has no such arm.
pub fn player_of(
    protocol: &Protocol,
    name: &str,
    refs: &[TableRef],
    tables: &TableCache,
) -> Result<(Player, Option<TableDigest>), Refusal> {
    let arm = protocol.screen.arms.iter().find(|arm| arm.name == name).ok_or_else(|| {
        Refusal::new(Code::InvalidRequest, format!("the protocol has no screen arm {name:?}"))
    })?;
    player(&arm.player, refs, tables)
}

/// A row as it is stored.
pub fn record(arm: &str, ordinal: u32, row: &GameRow, wall_seconds: Option<f64>) -> GameRecord {
    GameRecord {
        arm: arm.to_owned(),
        ordinal,
        seed_hex: Seed(row.seed),
        score: row.score,
        moves: row.moves,
        numbered_cleared: Some(row.numbered_cleared),
        covers_revealed: Some(row.covers_revealed),
        max_chain_depth: Some(row.max_chain_depth),
        occupied_sum: Some(row.occupied_sum),
        mean_occupied_cells: Some(row.mean_occupied()),
        clears: Some(row.clears),
        censored: row.censored,
        illegal_decisions: row.illegal_decisions,
        incomplete_decisions: row.incomplete_decisions,
        work: Some(row.work),
        wall_seconds,
    }
}

/// Plays the missing games of the arm of this unit.
pub(super) fn play(context: &UnitContext) -> UnitResult {
    let protocol = &context.protocol;
    let arm = protocol
        .screen
        .arms
        .iter()
        .find(|arm| screen_key(&arm.name) == context.key)
        .ok_or_else(|| Ending::Failed(format!("the protocol has no unit {}", context.key)))?;
    let lease = context.lease(&protocol.screen.seeds)?;
    // The last look before a seed is derived: this run holds the opening.
    let is_ours = lease.state == LeaseState::Opened
        && lease.opening.as_ref().is_some_and(|opening| opening.run_id == context.run);
    if !is_ours {
        return Err(Ending::Failed(format!("{} is not open for this run", lease.id)));
    }
    let (player, played) = player(&arm.player, &table_refs(context)?, &context.tables)?;
    let stored = lease.count - context.missing.len() as u32;
    context.counter.set(u64::from(stored));

    // All arms wait for the same workers: the clock of this one begins with its first game.
    let started = OnceLock::new();
    let next = AtomicUsize::new(0);
    let halted = AtomicBool::new(false);
    let failure: Mutex<Option<Ending>> = Mutex::new(None);
    let fail = |ending| {
        halted.store(true, Ordering::Relaxed);
        failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(ending);
    };
    context.pool.scope(|scope| {
        for _ in 0..context.pool.current_num_threads() {
            scope.spawn(|_| {
                while !halted.load(Ordering::Relaxed) && !context.stop.is_requested() {
                    let position = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&ordinal) = context.missing.get(position) else { return };
                    let seed = lease.start.0 + ordinal;
                    let begun = Instant::now();
                    started.get_or_init(|| begun);
                    let game = catch_unwind(AssertUnwindSafe(|| {
                        play_game(&player, seed, protocol.screen.move_cap)
                    }));
                    let Ok(row) = game else {
                        return fail(Ending::Failed(format!(
                            "the game of seed {} panicked",
                            Seed(seed)
                        )));
                    };
                    let wall = seconds(begun.elapsed());
                    let row = record(&arm.name, ordinal, &row, Some(wall));
                    let report = Report::Game(context.token.clone(), lease.clone(), Box::new(row));
                    if let Err(ending) = context.report(report) {
                        return fail(ending);
                    }
                    context.counter.advance(1);
                }
            });
        }
    });
    if let Some(ending) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(ending);
    }
    let games = context.counter.done();
    if games < u64::from(lease.count) {
        return Err(Ending::Stopped);
    }
    output(&ScreenOutput {
        arm: arm.name.clone(),
        games: lease.count,
        played,
        wall_seconds: started.get().map_or(0.0, |started| seconds(started.elapsed())),
    })
}
