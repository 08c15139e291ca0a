//! A validation point: the tables in the search, the tables one ply deep, and the fair leaf in the
//! same search, on the same seeds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use engine_core::ntuple::FrozenTables;
use engine_core::progress::Unwatched;
use engine_core::screen::{GameRow, Player, SearchLeaf, play_block};
use engine_core::stats::{Paired, Summary};
use engine_core::train::plateau::PlateauReading;
use serde::{Deserialize, Serialize};

use super::failed;
use super::job::Job;
use crate::domain::seed_range::Seed;
use crate::exec::screen::search_config;
use crate::exec::unit::{Ending, UnitContext};

/// The figures of a point, with the scores they are made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PointFigures {
    /// First seed of the validation block.
    pub seed_start: Seed,
    /// The tables in the search.
    pub tables: Series,
    /// The tables one ply deep.
    pub direct: Series,
    /// The fair leaf in the same search.
    pub fair: Series,
    /// Tables in the search minus fair.
    pub contrast: Paired,
    /// Mean score difference, tables one ply deep minus fair.
    pub direct_margin: f64,
    /// Entries that have learned.
    pub touched_entries: u64,
    /// The plateau rule at this point, when it applied.
    pub plateau: Option<PlateauReading>,
    /// Wall seconds of the point.
    pub wall_seconds: f64,
}

/// The games of one player on the validation block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Series {
    /// Mean score.
    pub mean: f64,
    /// Mean moves.
    pub mean_moves: f64,
    /// Illegal decisions.
    pub illegal: u64,
    /// Incomplete decisions.
    pub incomplete: u64,
    /// Scores in seed order.
    pub scores: Vec<i64>,
    /// Moves in seed order.
    pub moves: Vec<u32>,
}

impl PointFigures {
    /// What points are ranked by.
    pub const fn margin(&self) -> f64 {
        self.contrast.mean_delta
    }

    /// Whether every statistic is that of the scores beside it, bit for bit.
    pub fn is_consistent(&self) -> bool {
        let scores = |series: &Series| -> Vec<f64> {
            series.scores.iter().map(|&score| score as f64).collect()
        };
        let paired = |candidate: &Series| Paired::of(&scores(candidate), &scores(&self.fair)).ok();
        let direct = paired(&self.direct).map(|direct| direct.mean_delta.to_bits());
        paired(&self.tables).as_ref() == Some(&self.contrast)
            && direct == Some(self.direct_margin.to_bits())
            && [&self.tables, &self.direct, &self.fair].into_iter().all(Series::is_consistent)
    }

    /// The figures of three series of games.
    ///
    /// # Errors
    /// When there are fewer than two games.
    pub fn of(
        seed_start: Seed,
        [tables, direct, fair]: [&[GameRow]; 3],
        touched_entries: u64,
    ) -> Result<Self, engine_core::stats::StatsError> {
        let scores =
            |rows: &[GameRow]| -> Vec<f64> { rows.iter().map(|row| row.score as f64).collect() };
        Ok(Self {
            seed_start,
            tables: Series::of(tables)?,
            direct: Series::of(direct)?,
            fair: Series::of(fair)?,
            contrast: Paired::of(&scores(tables), &scores(fair))?,
            direct_margin: Paired::of(&scores(direct), &scores(fair))?.mean_delta,
            touched_entries,
            plateau: None,
            wall_seconds: 0.0,
        })
    }
}

impl Series {
    fn is_consistent(&self) -> bool {
        let mean =
            |values: Vec<f64>| Summary::of(&values).ok().map(|summary| summary.mean.to_bits());
        mean(self.scores.iter().map(|&score| score as f64).collect()) == Some(self.mean.to_bits())
            && mean(self.moves.iter().map(|&moves| f64::from(moves)).collect())
                == Some(self.mean_moves.to_bits())
    }

    fn of(rows: &[GameRow]) -> Result<Self, engine_core::stats::StatsError> {
        let scores: Vec<f64> = rows.iter().map(|row| row.score as f64).collect();
        let moves: Vec<f64> = rows.iter().map(|row| f64::from(row.moves)).collect();
        Ok(Self {
            mean: Summary::of(&scores)?.mean,
            mean_moves: Summary::of(&moves)?.mean,
            illegal: rows.iter().map(|row| u64::from(row.illegal_decisions)).sum(),
            incomplete: rows.iter().map(|row| u64::from(row.incomplete_decisions)).sum(),
            scores: rows.iter().map(|row| row.score).collect(),
            moves: rows.iter().map(|row| row.moves).collect(),
        })
    }
}

/// First seed, games, depth, strata, move cap.
type ControlKey = (u32, u32, u32, u32, u32);

/// The fair games of validation blocks, played once per process: they do not depend on the tables.
#[derive(Debug, Default)]
pub struct FairControl {
    played: Mutex<HashMap<ControlKey, Arc<Vec<GameRow>>>>,
}

/// Plays a point; `None` when a stop was asked for before its last game.
pub(super) fn play(
    context: &UnitContext,
    job: &Job<'_>,
    tables: &Arc<FrozenTables>,
    touched: u64,
) -> Result<Option<PointFigures>, Ending> {
    let lease = context.lease(&job.validate.seeds)?;
    let games = job.validate.games.min(lease.count);
    let seeds: Vec<u32> = (0..games).map(|ordinal| lease.start.0 + ordinal).collect();
    let config = search_config(job.validate.search)?;
    let block = |player: &Player| -> Option<Vec<GameRow>> {
        play_block(
            &context.pool,
            player,
            &seeds,
            job.arm.move_cap,
            &Unwatched,
            context.stop.token(),
            &|_, _| {},
        )
        .into_iter()
        .collect()
    };
    let search = job.validate.search;
    let key = (lease.start.0, games, search.depth, search.strata, job.arm.move_cap);
    let control = &context.tables.fair;
    let known = control.played.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    let fair = if let Some(rows) = known {
        rows
    } else {
        let player = Player::Search { config, leaf: SearchLeaf::Fair };
        let Some(rows) = block(&player) else { return Ok(None) };
        let rows = Arc::new(rows);
        let mut played = control.played.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(played.entry(key).or_insert(rows))
    };
    let in_search = Player::Search { config, leaf: SearchLeaf::Tables(Arc::clone(tables)) };
    let Some(in_search) = block(&in_search) else { return Ok(None) };
    let Some(direct) = block(&Player::Direct(Arc::clone(tables))) else { return Ok(None) };
    PointFigures::of(lease.start, [&in_search, &direct, &fair], touched)
        .map(Some)
        .map_err(failed("statistics of the point"))
}
