//! One worker of a chunk: takes seeds from the shared cursor, plays games with the direct policy on
//! the live tables, and updates the tables after every move.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::report::Tally;
use super::trainer::TrainConfig;
use crate::drop7::Game;
use crate::drop7::board::SIDE;
use crate::drop7::chance::{A, Mulberry32};
use crate::drop7::public::PublicState;
use crate::ntuple::direct::DirectPolicy;
use crate::ntuple::{Features, RISE, TrainTables, Weights};
use crate::progress::{Progress, StopToken};

/// What the workers of a run share besides the tables. Both counters only move between games.
pub(super) struct Shared {
    pub(super) moves: AtomicU64,
    pub(super) cursor: AtomicU64,
}

pub(super) struct Worker<'a> {
    pub(super) config: &'a TrainConfig,
    pub(super) tables: &'a TrainTables,
    pub(super) shared: &'a Shared,
    /// Decides where a random column is played; used only when epsilon is above 0.
    pub(super) explorer: Mulberry32,
    pub(super) tally: Tally,
}

/// The generator of random columns of worker `index` at the start of a chunk.
pub(super) const fn explorer(train_seed: u32, index: u32) -> Mulberry32 {
    Mulberry32::new(train_seed ^ index.wrapping_mul(A))
}

impl Worker<'_> {
    /// Plays whole games until the run has `end` moves. `false` when a stop request came first.
    pub(super) fn run(&mut self, end: u64, progress: &dyn Progress, stop: &StopToken) -> bool {
        let mut scratch = Scratch {
            policy: DirectPolicy::new(self.tables),
            previous: Features::new(),
            next: Features::new(),
        };
        while self.shared.moves.load(Relaxed) < end {
            if stop.is_stopped() {
                return false;
            }
            let seed = self.config.seeds.at(self.shared.cursor.fetch_add(1, Relaxed));
            let game = self.play(seed, &mut scratch);
            self.tally.count_game(&game);
            let moves = u64::from(game.moves_played());
            self.shared.moves.fetch_add(moves, Relaxed);
            progress.advance(moves);
        }
        true
    }

    /// Plays and learns from one game. The position that learns at move m is the afterstate of move
    /// m-1 (the first board at move 0), towards the reward of move m plus the value of its
    /// afterstate; that value is read before the update.
    fn play(&mut self, seed: u32, scratch: &mut Scratch<'_>) -> Game {
        let Scratch { policy, previous, next } = scratch;
        let layout = self.tables.layout();
        let active = layout.active() as u64;
        let mut game = Game::new(seed);
        layout.features(game.public().board(), game.public().moves_remaining(), previous);
        while !game.public().is_over() && game.moves_played() < self.config.move_cap {
            let Some(Step { target, over, .. }) =
                step(self.config, policy, &mut self.explorer, &mut game, next)
            else {
                break;
            };
            let TrainConfig { alpha, clamp, .. } = *self.config;
            let betas = &mut self.tally.beta_sum;
            let (_, delta) = self.tables.update_adding(previous, target, alpha, clamp, betas);
            self.tally.count_update(delta, active);
            if !over {
                std::mem::swap(previous, next);
            }
        }
        game
    }
}

/// What a real move is learned from.
pub(super) struct Step {
    /// The column that was played, 0 at the left.
    pub(super) column: usize,
    /// The reward, plus the value of the afterstate when the game goes on; in row rises.
    pub(super) target: f32,
    /// Whether the move ended the game; if not, `next` holds the features of the afterstate.
    pub(super) over: bool,
}

/// Plays one real move of `game`: the column of the policy, or a random one. `None`, and nothing
/// played, when there is no column.
pub(super) fn step(
    config: &TrainConfig,
    policy: &mut DirectPolicy<&TrainTables>,
    explorer: &mut Mulberry32,
    game: &mut Game,
    next: &mut Features,
) -> Option<Step> {
    let mut column = policy.decide(game.public()).action?;
    if config.epsilon > 0.0 && explorer.next_unit() < config.epsilon {
        column = random_legal(game.public(), explorer).unwrap_or(column);
    }
    let played = game.play(column)?;
    let reward = played.delta as f32 / RISE;
    let over = played.after.is_over();
    let target = if over { reward } else { reward + look_ahead(policy, &played.after, next) };
    Some(Step { column, target, over })
}

/// The features of an afterstate and its value. Most real moves end on a board the policy has just
/// looked at; then both are taken over instead of computed again. One thread gets the same bits
/// either way: nothing is written between the decision and this.
///
/// The update one move later reads and writes these entries: their history is asked for now.
fn look_ahead(
    policy: &DirectPolicy<&TrainTables>,
    after: &PublicState,
    next: &mut Features,
) -> f32 {
    let tables = policy.weights();
    let value = policy.evaluated(after, next).unwrap_or_else(|| {
        tables.layout().features(after.board(), after.moves_remaining(), next);
        tables.value(next)
    });
    tables.prefetch_update(next);
    value
}

/// Working memory of one worker, reused from game to game.
struct Scratch<'a> {
    policy: DirectPolicy<&'a TrainTables>,
    previous: Features,
    next: Features,
}

/// A uniform legal column, counted from the left. `None` (and nothing drawn) when there is none.
fn random_legal(state: &PublicState, explorer: &mut Mulberry32) -> Option<usize> {
    let legal = || (0..SIDE).filter(|&column| state.board().is_legal(column));
    let count = legal().count();
    if count == 0 {
        return None;
    }
    legal().nth(explorer.next_bits() as usize % count)
}
