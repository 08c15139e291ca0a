//! A validation point: the tables as they are now, against the fair control on one fixed block of
//! seeds.
//!
//! Playing and judging are apart. The `play_*` functions play games and nothing else;
//! [`ValidationPoint::of`] and [`QuickPoint::of`] turn rows into figures and are pure, so a point can
//! be recomputed from stored rows. Games are played from frozen copies: a point says what a file
//! with these weights plays like.

use std::sync::Arc;

use rayon::ThreadPool;
use serde::{Deserialize, Serialize};

use super::plateau::{self, PlateauReading};
use crate::ntuple::FrozenTables;
use crate::progress::{Progress, StopToken};
use crate::screen::{GameRow, Player, SearchLeaf, play_block};
use crate::search::SearchConfig;
use crate::stats::{Paired, StatsError};

/// Depth of the searches of a validation point.
pub const DEPTH: u32 = 3;
/// Chance samples of its searches.
pub const STRATA: u32 = 7;

/// The games every point of a run is judged on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidationBlock {
    /// The seeds, in order; at least 2 for a point to have statistics.
    pub seeds: Vec<u32>,
    /// Moves after which a game is cut.
    pub move_cap: u32,
}

/// When a curve stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlateauRule {
    /// Points in each window; 0 for no rule.
    pub window: usize,
    /// Points before the rule is read for the first time.
    pub min_points: usize,
}

/// Games of one set of tables on a validation block, in seed order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableGames {
    /// Depth-3 search with the tables as leaf.
    pub search: Vec<GameRow>,
    /// The one-ply policy.
    pub direct: Vec<GameRow>,
}

/// Where and under what watch games are played.
#[derive(Clone, Copy)]
pub struct Hall<'a> {
    /// The threads that play.
    pub pool: &'a ThreadPool,
    /// Counts finished games.
    pub progress: &'a dyn Progress,
    /// Looked at between games.
    pub stop: &'a StopToken,
}

/// Plays the fair control: the frozen hand-written leaf at the same depth. The rows do not depend on
/// the tables, so once per block is enough. `None` when a stop request came first.
pub fn play_fair(hall: Hall<'_>, block: &ValidationBlock) -> Option<Vec<GameRow>> {
    play(hall, block, &search_player(SearchLeaf::Fair))
}

/// Plays the direct policy of a quick check. `None` when a stop request came first.
pub fn play_direct(
    hall: Hall<'_>,
    block: &ValidationBlock,
    tables: &Arc<FrozenTables>,
) -> Option<Vec<GameRow>> {
    play(hall, block, &Player::Direct(Arc::clone(tables)))
}

/// Plays the games of a validation point. `None` when a stop request came first.
pub fn play_tables(
    hall: Hall<'_>,
    block: &ValidationBlock,
    tables: &Arc<FrozenTables>,
) -> Option<TableGames> {
    let search = play(hall, block, &search_player(SearchLeaf::Tables(Arc::clone(tables))))?;
    let direct = play_direct(hall, block, tables)?;
    Some(TableGames { search, direct })
}

fn search_player(leaf: SearchLeaf) -> Player {
    let config = SearchConfig::bounded(DEPTH, STRATA);
    Player::Search {
        config: config.expect("depth 3 with 7 samples is bounded far below u64"),
        leaf,
    }
}

fn play(hall: Hall<'_>, block: &ValidationBlock, player: &Player) -> Option<Vec<GameRow>> {
    let Hall { pool, progress, stop } = hall;
    play_block(pool, player, &block.seeds, block.move_cap, progress, stop, &|_, _| {})
        .into_iter()
        .collect()
}

/// The figures of one validation point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidationPoint {
    /// Number of the point in its run, from 1.
    pub point: usize,
    /// Moves of the run at this point.
    pub moves: u64,
    /// Mean score of the tables in depth-3 search.
    pub ntuple_d3_mean: f64,
    /// Mean score of the direct policy.
    pub direct_mean: f64,
    /// Mean score of the fair control.
    pub fair_d3_mean: f64,
    /// The margin: mean paired difference of the search with tables and the fair control.
    #[serde(rename = "pairedDeltaD3")]
    pub margin: f64,
    /// Games in which the search with tables is ahead of the fair control.
    pub wins_d3: usize,
    /// Games in which it is behind.
    pub losses_d3: usize,
    /// Mean paired difference of the direct policy and the fair control.
    pub paired_delta_direct: f64,
    /// Entries that have learned.
    pub touched_entries: u64,
    /// Whether the margin is larger than every earlier one; an equal one is not.
    pub is_best: bool,
    /// The plateau rule at this point; `None` while it does not apply.
    pub plateau: Option<PlateauReading>,
    /// All statistics behind the margin.
    pub paired_d3: Paired,
    /// All statistics of the direct policy against the fair control.
    pub paired_direct: Paired,
}

impl ValidationPoint {
    /// Judges `games` against the rows of the fair control on the same seeds. `margins` are those of
    /// the earlier points of the run, in order.
    ///
    /// # Errors
    /// When the rows do not pair up, or there are fewer than two games.
    pub fn of(
        moves: u64,
        touched_entries: u64,
        games: &TableGames,
        fair: &[GameRow],
        margins: &[f64],
        rule: PlateauRule,
    ) -> Result<Self, StatsError> {
        let (search, direct, fair) = (scores(&games.search), scores(&games.direct), scores(fair));
        let paired_d3 = Paired::of(&search, &fair)?;
        let paired_direct = Paired::of(&direct, &fair)?;
        let margin = paired_d3.mean_delta;
        let curve: Vec<f64> = margins.iter().copied().chain([margin]).collect();
        Ok(Self {
            point: curve.len(),
            moves,
            ntuple_d3_mean: mean(&search),
            direct_mean: mean(&direct),
            fair_d3_mean: mean(&fair),
            margin,
            wins_d3: paired_d3.wins,
            losses_d3: paired_d3.losses,
            paired_delta_direct: paired_direct.mean_delta,
            touched_entries,
            is_best: margins.iter().all(|&earlier| margin > earlier),
            plateau: plateau::evaluate(&curve, rule.window, rule.min_points),
            paired_d3,
            paired_direct,
        })
    }
}

/// The figures of a quick check between validation points.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuickPoint {
    /// Mean score of the direct policy.
    pub direct_mean: f64,
    /// Mean length of its games, in moves.
    pub direct_mean_moves: f64,
    /// Mean paired difference of the direct policy and the fair control.
    pub paired_delta_direct_vs_fair_d3: f64,
    /// Games in which the direct policy is ahead.
    pub wins: usize,
    /// Games in which it is behind.
    pub losses: usize,
}

impl QuickPoint {
    /// Judges the games of the direct policy against the fair control on the same seeds.
    ///
    /// # Errors
    /// When the rows do not pair up, or there are fewer than two games.
    pub fn of(direct: &[GameRow], fair: &[GameRow]) -> Result<Self, StatsError> {
        let moves: Vec<f64> = direct.iter().map(|row| f64::from(row.moves)).collect();
        let (direct, fair) = (scores(direct), scores(fair));
        let paired = Paired::of(&direct, &fair)?;
        Ok(Self {
            direct_mean: mean(&direct),
            direct_mean_moves: mean(&moves),
            paired_delta_direct_vs_fair_d3: paired.mean_delta,
            wins: paired.wins,
            losses: paired.losses,
        })
    }
}

fn scores(rows: &[GameRow]) -> Vec<f64> {
    rows.iter().map(|row| row.score as f64).collect()
}

/// The mean of whole numbers: the sum is exact in any order.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
