//! The figures of one chunk of training.

use serde::{Deserialize, Serialize};

use crate::drop7::Game;

/// Sums over games and updates. Means are taken from them when they are shown, never before, so
/// that tallies of several workers, or of a chunk played in two sittings, add up.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Moves of finished games.
    pub moves: u64,
    /// Finished games.
    pub games: u64,
    /// Sum of the final scores, in points.
    pub score_sum: i64,
    /// Best final score, in points; 0 when there is no game.
    pub max_score: i64,
    /// Numbered discs popped.
    pub popped: u64,
    /// Gray discs revealed.
    pub revealed: u64,
    /// Updates of a position.
    pub updates: u64,
    /// Updates of an entry: `updates` times the active entries.
    pub entry_updates: u64,
    /// Sum of the absolute clamped errors, in row rises.
    pub abs_delta_sum: f64,
    /// Sum of the step sizes over the entry updates.
    pub beta_sum: f64,
}

impl Tally {
    /// Counts one update of a position with `active` entries; its step sizes are in `beta_sum`
    /// already.
    pub(crate) fn count_update(&mut self, delta: f32, active: u64) {
        self.updates += 1;
        self.entry_updates += active;
        self.abs_delta_sum += f64::from(delta.abs());
    }

    /// Counts one finished game.
    pub(crate) fn count_game(&mut self, game: &Game) {
        self.moves += u64::from(game.moves_played());
        self.games += 1;
        self.score_sum += game.score();
        self.max_score = self.max_score.max(game.score());
        self.popped += game.totals().popped;
        self.revealed += game.totals().revealed;
    }

    /// Adds the sums of `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        self.moves += other.moves;
        self.games += other.games;
        self.score_sum += other.score_sum;
        self.max_score = self.max_score.max(other.max_score);
        self.popped += other.popped;
        self.revealed += other.revealed;
        self.updates += other.updates;
        self.entry_updates += other.entry_updates;
        self.abs_delta_sum += other.abs_delta_sum;
        self.beta_sum += other.beta_sum;
    }

    /// Mean final score of the games, in points; 0 without games.
    pub fn mean_score(&self) -> f64 {
        ratio(self.score_sum as f64, self.games)
    }

    /// Mean length of the games, in moves.
    pub fn mean_moves(&self) -> f64 {
        ratio(self.moves as f64, self.games)
    }

    /// Numbered discs popped per move.
    pub fn clears_per_move(&self) -> f64 {
        ratio(self.popped as f64, self.moves)
    }

    /// Gray discs revealed per move.
    pub fn reveals_per_move(&self) -> f64 {
        ratio(self.revealed as f64, self.moves)
    }

    /// Mean absolute clamped error of the updates, in row rises.
    pub fn mean_abs_delta(&self) -> f64 {
        ratio(self.abs_delta_sum, self.updates)
    }

    /// Mean step size of the entry updates, 0..=1.
    pub fn mean_beta(&self) -> f64 {
        ratio(self.beta_sum, self.entry_updates)
    }
}

fn ratio(sum: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// What a call of [`Trainer::advance`](super::Trainer::advance) did: everything a progress row shows
/// except wall time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChunkReport {
    /// Number of the chunk, from 0.
    pub chunk: u64,
    /// Moves of the run so far, this chunk included.
    pub moves_total: u64,
    /// Games of the run so far.
    pub games_total: u64,
    /// Sums over the games of this chunk, also those played before an interruption.
    pub tally: Tally,
    /// Seeds drawn from the block so far.
    pub seed_cursor: u64,
    /// Times the block was read from start to end.
    pub seed_wraps: u64,
    /// Workers that played in this call. Above 1 the bits of the tables do not repeat, except in
    /// lockstep.
    pub workers: u32,
    /// Whether a stop request ended the call before the chunk was full. The chunk stays open and
    /// the next call continues it; only the report of a full chunk is a row of the curve.
    pub stopped: bool,
}

impl ChunkReport {
    /// The figures as the progress row of a run writes them: name and JSON number, in row order,
    /// each with its fixed number of decimals. Wall-time figures are the caller's.
    pub fn figures(&self) -> [(&'static str, String); 14] {
        let tally = &self.tally;
        [
            ("chunk", self.chunk.to_string()),
            ("movesTotal", self.moves_total.to_string()),
            ("gamesTotal", self.games_total.to_string()),
            ("chunkMoves", tally.moves.to_string()),
            ("chunkGames", tally.games.to_string()),
            ("trainMeanScore", format!("{:.1}", tally.mean_score())),
            ("trainMeanMoves", format!("{:.3}", tally.mean_moves())),
            ("trainMaxScore", tally.max_score.to_string()),
            ("trainClearsPerMove", format!("{:.4}", tally.clears_per_move())),
            ("trainRevealsPerMove", format!("{:.4}", tally.reveals_per_move())),
            ("meanAbsDelta", format!("{:.5}", tally.mean_abs_delta())),
            ("meanBeta", format!("{:.5}", tally.mean_beta())),
            ("seedCursor", self.seed_cursor.to_string()),
            ("seedWraps", self.seed_wraps.to_string()),
        ]
    }
}
