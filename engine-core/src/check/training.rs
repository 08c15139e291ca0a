//! Gate 12: serial training has one result.

use std::sync::Arc;

use super::outcome::{CheckOutcome, Comparison};
use super::probes::BLOCK;
use crate::drop7::{Board, Game};
use crate::ntuple::direct::DirectPolicy;
use crate::ntuple::fingerprint::fingerprint;
use crate::ntuple::tables::STUDY_START;
use crate::ntuple::{Features, Layout, RISE, TrainTables, Weights};
use crate::progress::{StopToken, Unwatched};
use crate::train::{SeedBlock, TrainConfig, Trainer};

const NAME: &str = "serial-training-determinism";

/// Layout that is trained.
pub const LAYOUT: &str = "rows,win32";
/// First seed of the games.
pub const FIRST_SEED: u32 = BLOCK + 0x200;
/// Number of games.
pub const GAMES: u32 = 12;
/// Moves after which a game is cut.
pub const MOVE_CAP: u32 = 200;
/// Step size and error clamp of all trainings of the gates.
pub const ALPHA: f32 = 1.0;
/// Largest error of an update, in row rises.
pub const CLAMP: f32 = 30.0;

/// What a training left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Learned {
    /// Hash of all weights.
    pub fingerprint: u64,
    /// Updates made.
    pub updates: u64,
    /// Entries that have learned.
    pub touched: u64,
}

impl Learned {
    /// What `tables` have learned in `updates` updates.
    pub fn of(tables: &TrainTables, updates: u64) -> Self {
        Self { fingerprint: fingerprint(tables), updates, touched: tables.touched() }
    }
}

/// Trains fresh tables on `games` games from seed `first` on, move by move as the algorithm is
/// defined, without any of the trainer's machinery. Returns the tables and the number of updates.
///
/// # Errors
/// When there is no address space for the tables, in words.
pub fn step_by_step(
    layout: Layout,
    first: u32,
    games: u32,
    move_cap: u32,
) -> Result<(TrainTables, u64), String> {
    let tables = TrainTables::fresh(layout, STUDY_START).map_err(|error| error.to_string())?;
    let mut policy = DirectPolicy::new(&tables);
    let (mut last, mut next) = (Features::new(), Features::new());
    let mut updates = 0;
    for seed in first..first + games {
        let mut game = Game::new(seed);
        layout.features(game.public().board(), game.public().moves_remaining(), &mut last);
        while !game.public().is_over() && game.moves_played() < move_cap {
            let action = policy.decide(game.public()).action;
            let Some(played) = action.and_then(|column| game.play(column)) else { break };
            let reward = played.delta as f32 / RISE;
            let state = game.public();
            let target = if state.is_over() {
                reward
            } else {
                layout.features(state.board(), state.moves_remaining(), &mut next);
                reward + tables.value(&next)
            };
            tables.update(&last, target, ALPHA, CLAMP);
            updates += 1;
            std::mem::swap(&mut last, &mut next);
        }
    }
    drop(policy);
    Ok((tables, updates))
}

/// Gate 12: `train`, run twice, leaves what the step-by-step definition leaves; a fresh initial
/// board is worth 20 row rises.
pub fn serial_training_determinism(
    fresh_value: f32,
    definition: Learned,
    mut train: impl FnMut() -> Result<Learned, String>,
) -> CheckOutcome {
    let mut compared = Comparison::new();
    compared.check((fresh_value - STUDY_START).abs() <= 1e-3, || {
        format!("a fresh initial board is worth {fresh_value}, not {STUDY_START}")
    });
    for run in ["first", "second"] {
        match train() {
            Ok(learned) => compared.check(learned == definition, || {
                format!("the {run} training left {learned:x?}, by definition it is {definition:x?}")
            }),
            Err(error) => return CheckOutcome::impossible(NAME, error),
        }
    }
    compared.outcome(NAME, |_| {
        format!(
            "two trainings and the step-by-step definition agree: fingerprint {:016x}, {} updates, \
             {} touched entries; a fresh initial board is worth {fresh_value:.4}",
            definition.fingerprint, definition.updates, definition.touched
        )
    })
}

/// What the library's trainer makes of the games of gate 12, with one thread.
///
/// # Errors
/// When there is no address space for the tables, in words.
pub fn by_trainer() -> Result<Learned, String> {
    let layout = layout()?;
    let tables = TrainTables::fresh(layout, STUDY_START).map_err(|error| error.to_string())?;
    let tables = Arc::new(tables);
    let config = TrainConfig {
        alpha: ALPHA,
        clamp: CLAMP,
        move_cap: MOVE_CAP,
        ..TrainConfig::new(layout, SeedBlock { start: FIRST_SEED, count: GAMES })
    };
    let mut trainer =
        Trainer::new(config, Arc::clone(&tables)).map_err(|error| error.to_string())?;
    let mut updates = 0;
    // A chunk of one move is one game.
    for _ in 0..GAMES {
        updates += trainer.advance(1, &Unwatched, &StopToken::new()).tally.updates;
    }
    Ok(Learned::of(&tables, updates))
}

/// Gate 12 on the library's trainer.
pub fn serial_training() -> CheckOutcome {
    let prepared = layout().and_then(|layout| {
        let fresh = TrainTables::fresh(layout, STUDY_START).map_err(|error| error.to_string())?;
        let mut features = Features::new();
        layout.features(&Board::INITIAL, 5, &mut features);
        let (tables, updates) = step_by_step(layout, FIRST_SEED, GAMES, MOVE_CAP)?;
        Ok((fresh.value(&features), Learned::of(&tables, updates)))
    });
    match prepared {
        Ok((fresh_value, definition)) => {
            serial_training_determinism(fresh_value, definition, by_trainer)
        }
        Err(error) => CheckOutcome::impossible(NAME, error),
    }
}

fn layout() -> Result<Layout, String> {
    LAYOUT.parse().map_err(|error| format!("{LAYOUT}: {error}"))
}
