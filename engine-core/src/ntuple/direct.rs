//! The one-ply policy: plays every column under seven stratified samples and takes the best mean of
//! reward plus table value.
//!
//! Promised: the same column, value bits and number of simulations as the reference, for a position
//! and its mirror image alike, and no allocation after the first decision. Refused: looking at
//! anything but the public position; the samples come from a hash of it.
//!
//! It is also the actor of training. What it evaluated for the chosen column can be asked for
//! afterwards ([`DirectPolicy::evaluated`]), because most real moves end on one of those boards.

use std::ops::Range;

use super::{Features, LANES, Lanes, RISE, Weights};
use crate::drop7::chance::{POLICY_SEED, StratifiedReveals, scenario_seed};
use crate::drop7::rules::{Start, start};
use crate::drop7::{Board, CENTER_FIRST, Move, PublicState};

/// Samples of a column whose move reveals gray discs.
pub const SAMPLES: u32 = 7;

/// Boards that one decision can look at.
const MAX_LIVE: usize = SAMPLES as usize * CENTER_FIRST.len();

/// What the policy chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectDecision {
    /// The column, 0 at the left; `None` when the game is over.
    pub action: Option<usize>,
    /// Moves that were played out: one for a column that reveals nothing, else [`SAMPLES`].
    pub simulations: u64,
}

/// What the policy thinks of one column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnValue {
    /// The column **of the canonical board**, 0 at the left.
    pub column: usize,
    /// Mean of reward plus value, in row rises.
    pub value: f32,
    /// Moves that were played out, 1 or [`SAMPLES`].
    pub simulations: u64,
}

/// One simulated move of the current decision.
#[derive(Clone, Copy)]
struct Sample {
    reward: f32,
    /// Where its board is in the live list; `None` when the move ended the game.
    live: Option<usize>,
}

/// What was simulated for one column.
#[derive(Clone, Default)]
struct Column {
    place: usize,
    samples: Range<usize>,
    live: Range<usize>,
}

/// The one-ply policy over any tables. One per thread or game: it keeps working memory.
pub struct DirectPolicy<W> {
    weights: W,
    samples: Vec<Sample>,
    boards: Vec<(Board, u8)>,
    /// The entries of the boards, [`LANES`] at a time.
    lanes: Vec<Lanes>,
    values: Vec<f32>,
    chosen: Range<usize>,
}

impl<W: Weights> DirectPolicy<W> {
    /// A policy that plays from `weights`.
    pub fn new(weights: W) -> Self {
        Self {
            weights,
            samples: Vec::with_capacity(MAX_LIVE),
            boards: Vec::with_capacity(MAX_LIVE),
            lanes: Vec::new(),
            values: Vec::with_capacity(MAX_LIVE),
            chosen: 0..0,
        }
    }

    /// The tables it plays from.
    pub const fn weights(&self) -> &W {
        &self.weights
    }

    /// Chooses a column. Equal values go to the column nearer the centre.
    pub fn decide(&mut self, state: &PublicState) -> DirectDecision {
        self.decide_observed(state, |_| {})
    }

    /// [`DirectPolicy::decide`], showing every legal column to `observe` in the order of preference.
    pub fn decide_observed(
        &mut self,
        state: &PublicState,
        mut observe: impl FnMut(ColumnValue),
    ) -> DirectDecision {
        self.chosen = 0..0;
        if state.is_over() {
            return DirectDecision { action: None, simulations: 0 };
        }
        let (state, mirrored) = state.canonical();
        let mut columns: [Column; CENTER_FIRST.len()] = Default::default();
        let legal = self.simulate(&state, &mut columns);
        self.evaluate();

        let mut best: Option<(ColumnValue, &Column)> = None;
        for column in &columns[..legal] {
            let found = self.column_value(column);
            observe(found);
            if best.is_none_or(|(most, _)| found.value > most.value) {
                best = Some((found, column));
            }
        }
        let action = best.map(|(found, column)| {
            self.chosen = column.live.clone();
            if mirrored { 6 - found.column } else { found.column }
        });
        DirectDecision { action, simulations: self.samples.len() as u64 }
    }

    /// The value of `after`, and its entries in `features`, when the last decision looked at exactly
    /// this board (or its mirror image) behind the column it chose. The value is as old as that
    /// decision: in single-threaded use nothing has changed since.
    pub fn evaluated(&self, after: &PublicState, features: &mut Features) -> Option<f32> {
        let wanted = (after.board().canonical().0, after.moves_remaining());
        let live = self.chosen.clone().find(|&live| self.boards[live] == wanted)?;
        self.lanes[live / LANES].features(live % LANES, features);
        Some(self.values[live])
    }

    /// Plays every legal column out; returns how many there are. Samples part at the first reveal of
    /// a move, so what comes before it is played once.
    fn simulate(&mut self, state: &PublicState, columns: &mut [Column]) -> usize {
        self.samples.clear();
        self.boards.clear();
        let mut seed = None;
        let mut legal = 0;
        for column in CENTER_FIRST {
            let (first, first_live) = (self.samples.len(), self.boards.len());
            match start(state, column) {
                None => continue,
                Some(Start::Settled(played)) => self.remember(&played, first_live),
                Some(Start::Pending(pending)) => {
                    let seed = *seed.get_or_insert_with(|| {
                        let PublicState { board, next_disc, moves_remaining, .. } = state;
                        scenario_seed(board, *next_disc, *moves_remaining, POLICY_SEED, 0)
                    });
                    for sample in 0..SAMPLES {
                        let mut reveals = StratifiedReveals::new(seed, sample, SAMPLES);
                        self.remember(&pending.finish(&mut reveals), first_live);
                    }
                }
            }
            columns[legal] = Column {
                place: column,
                samples: first..self.samples.len(),
                live: first_live..self.boards.len(),
            };
            legal += 1;
        }
        legal
    }

    /// Samples of one column often end on the same board: it is looked at once.
    fn remember(&mut self, played: &Move, first_live: usize) {
        let live = (!played.after.is_over()).then(|| {
            let end = (played.after.board().canonical().0, played.after.moves_remaining());
            let known = self.boards[first_live..].iter().position(|board| *board == end);
            known.map_or_else(
                || {
                    self.boards.push(end);
                    self.boards.len() - 1
                },
                |known| first_live + known,
            )
        });
        self.samples.push(Sample { reward: played.delta as f32 / RISE, live });
    }

    fn evaluate(&mut self) {
        let groups = self.boards.chunks(LANES);
        if self.lanes.len() < groups.len() {
            self.lanes.resize(groups.len(), Lanes::new());
        }
        self.values.clear();
        let mut sums = [0.0; LANES];
        for (boards, lanes) in groups.zip(&mut self.lanes) {
            self.weights.layout().lanes(boards, lanes);
            self.weights.lane_values(lanes, &mut sums);
            self.values.extend_from_slice(&sums[..boards.len()]);
        }
    }

    fn column_value(&self, column: &Column) -> ColumnValue {
        let samples = &self.samples[column.samples.clone()];
        let worth = |sample: &Sample| match sample.live {
            Some(live) => sample.reward + self.values[live],
            None => sample.reward,
        };
        let value = match samples {
            [only] => worth(only),
            _ => samples.iter().fold(0.0, |sum, sample| sum + worth(sample)) / SAMPLES as f32,
        };
        ColumnValue { column: column.place, value, simulations: samples.len() as u64 }
    }
}

impl<W: std::fmt::Debug> std::fmt::Debug for DirectPolicy<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectPolicy").field("weights", &self.weights).finish_non_exhaustive()
    }
}
