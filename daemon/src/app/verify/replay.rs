//! Some games of each arm again, compared row by row.

use std::sync::Mutex;
use std::sync::PoisonError;

use engine_core::progress::{StopToken, Unwatched};
use engine_core::screen::play_block;

use super::{Check, Note, Subject, VerifyOptions};
use crate::domain::protocol::ScreenArm;
use crate::domain::records::{GameRecord, Origin};
use crate::domain::refusal::{Code, Refusal};
use crate::exec::freeze::{TableRef, table_digests};
use crate::exec::local::Pools;
use crate::exec::screen::{player, record, table_of};
use crate::exec::tables::TableCache;

/// Replays the games that the options name, one check per arm.
pub(super) fn checks(
    subject: &Subject,
    pools: &Pools,
    options: &VerifyOptions,
    note: &Note,
) -> Result<Vec<Check>, Refusal> {
    if options.games == 0 || subject.rows.is_empty() {
        return Ok(Vec::new());
    }
    let pool = pools.of(pools.threads())?;
    let tables = TableCache::new(subject.archive.clone());
    let refs = table_digests(&subject.protocol, &subject.status).unwrap_or_default();
    let mut checks = Vec::new();
    for arm in &subject.protocol.screen.arms {
        let is_named = options.replay.as_ref().map(|names| names.contains(&arm.name));
        if is_named == Some(false) {
            continue;
        }
        note(&format!("replaying {}", arm.name));
        let name = format!("replay[{}]", arm.name);
        match replay(subject, arm, &refs, &tables, &pool, options) {
            Ok(outcome) => checks.push(Check::of(name, outcome)),
            // The tables of imported runs are not here. That is no fault of the run, unless the
            // replay was asked for by name.
            Err(refusal)
                if refusal.code == Code::MissingTable
                    && subject.status.run.origin == Origin::Imported =>
            {
                if is_named == Some(true) {
                    return Err(refusal);
                }
            }
            Err(refusal)
                if matches!(refusal.code, Code::Corrupt | Code::MissingTable | Code::NotFound) =>
            {
                checks.push(Check::failed(name, refusal.detail));
            }
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(checks)
}

fn replay(
    subject: &Subject,
    arm: &ScreenArm,
    refs: &[TableRef],
    tables: &TableCache,
    pool: &rayon::ThreadPool,
    options: &VerifyOptions,
) -> Result<Result<String, String>, Refusal> {
    let mut rows: Vec<&GameRecord> =
        subject.rows.iter().filter(|row| row.arm == arm.name).collect();
    rows.sort_by_key(|row| row.ordinal);
    let last = options.first.saturating_add(options.games);
    rows.retain(|row| (options.first..last).contains(&row.ordinal));
    if rows.is_empty() {
        return Ok(Err(format!("no stored game lies in {}..{last}", options.first)));
    }
    if let Some(table) = table_of(&arm.player)
        && !refs.iter().any(|known| known.name == table)
    {
        return Err(Refusal::new(
            Code::MissingTable,
            format!("the table {table:?} of arm {:?} is not stored here", arm.name),
        ));
    }
    let (player, _) = player(&arm.player, refs, tables)?;
    let seeds: Vec<u32> = rows.iter().map(|row| row.seed_hex.0).collect();
    let faults: Mutex<Vec<(u32, String)>> = Mutex::default();
    let played = play_block(
        pool,
        &player,
        &seeds,
        subject.protocol.screen.move_cap,
        &Unwatched,
        &StopToken::new(),
        &|index, row| {
            let Some(stored) = rows.get(index) else { return };
            let again = record(&arm.name, stored.ordinal, row, None);
            if let Some(fault) = difference(stored, &again) {
                let mut faults = faults.lock().unwrap_or_else(PoisonError::into_inner);
                faults.push((stored.ordinal, fault));
            }
        },
    );
    let mut faults = faults.into_inner().unwrap_or_else(PoisonError::into_inner);
    faults.sort_unstable();
    let fields = if rows.iter().all(|row| row.work.is_some()) {
        "every field but the wall time"
    } else {
        "score, moves and what else was published"
    };
    Ok(match faults.first() {
        Some((ordinal, fault)) => Err(format!(
            "{} of {} games differ; game {ordinal}: {fault}",
            faults.len(),
            played.len()
        )),
        None => Ok(format!("{} games again, equal in {fields}", played.iter().flatten().count())),
    })
}

/// The first deterministic field in which two rows differ. Fields that are not stored are not
/// compared: published rows do not have all of them.
fn difference(stored: &GameRecord, again: &GameRecord) -> Option<String> {
    fn field<T: PartialEq + std::fmt::Debug>(
        name: &str,
        stored: Option<&T>,
        again: Option<&T>,
    ) -> Option<String> {
        let stored = stored?;
        (Some(stored) != again).then(|| match again {
            Some(again) => format!("{name} is stored as {stored:?}, played {again:?}"),
            None => format!("{name} is stored as {stored:?}, and was not played"),
        })
    }
    field("seed", Some(&stored.seed_hex), Some(&again.seed_hex))
        .or_else(|| field("score", Some(&stored.score), Some(&again.score)))
        .or_else(|| field("moves", Some(&stored.moves), Some(&again.moves)))
        .or_else(|| field("censored", Some(&stored.censored), Some(&again.censored)))
        .or_else(|| {
            field(
                "numberedCleared",
                stored.numbered_cleared.as_ref(),
                again.numbered_cleared.as_ref(),
            )
        })
        .or_else(|| {
            field("coversRevealed", stored.covers_revealed.as_ref(), again.covers_revealed.as_ref())
        })
        .or_else(|| {
            field("maxChainDepth", stored.max_chain_depth.as_ref(), again.max_chain_depth.as_ref())
        })
        .or_else(|| field("occupiedSum", stored.occupied_sum.as_ref(), again.occupied_sum.as_ref()))
        .or_else(|| {
            field(
                "meanOccupiedCells",
                stored.mean_occupied_cells.as_ref(),
                again.mean_occupied_cells.as_ref(),
            )
        })
        .or_else(|| field("clears", stored.clears.as_ref(), again.clears.as_ref()))
        .or_else(|| field("work", stored.work.as_ref(), again.work.as_ref()))
        .or_else(|| {
            field(
                "illegalDecisions",
                Some(&stored.illegal_decisions),
                Some(&again.illegal_decisions),
            )
        })
        .or_else(|| {
            field(
                "incompleteDecisions",
                Some(&stored.incomplete_decisions),
                Some(&again.incomplete_decisions),
            )
        })
}
