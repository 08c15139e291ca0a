//! The stepper: configuration, chunks, and the state a run is resumed from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use serde::{Deserialize, Serialize};

use super::lockstep;
use super::report::{ChunkReport, Tally};
use super::worker::{Shared, Worker, explorer};
use crate::drop7::Game;
use crate::drop7::chance::Mulberry32;
use crate::drop7::game::MOVE_CAP;
use crate::ntuple::{Layout, TrainTables};
use crate::progress::{Progress, StopToken};

/// The seed of random columns in the four studies.
pub const TRAIN_SEED: u32 = 0x7d0c_5eed;

/// Seeds `start`, `start + 1`, …: read in order, and again from the start when the block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedBlock {
    /// The first seed.
    pub start: u32,
    /// Number of seeds, at least 1.
    pub count: u32,
}

impl SeedBlock {
    /// The seed behind draw number `cursor` (from 0). Seeds wrap at 2^32 like the block does.
    pub const fn at(&self, cursor: u64) -> u32 {
        // The remainder is below a u32.
        self.start.wrapping_add((cursor % self.count as u64) as u32)
    }
}

/// How workers share the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parallel {
    /// Every worker plays games of its own and updates the live tables after every move, without
    /// locks (Hogwild). One worker is serial training; with more, the bits do not repeat.
    #[default]
    LockFree,
    /// All games play one move on frozen tables, then all updates are applied in one order
    /// (batch-synchronous). The bits repeat, for any number of workers, and depend on `games`. With
    /// one game it is serial training.
    ///
    /// A move does not know what the other games learned in the same round. Fresh tables can learn
    /// more slowly for it when `games` is large (a study of the 74 tables with every phase, up to
    /// two million moves: 37.7 moves per game in serial training, 36.6 with 8 games, 28.7 with 32;
    /// without phases one million moves show no loss): start with few.
    Lockstep {
        /// Games in flight, 1..=[`TrainConfig::MAX_GAMES`].
        games: u32,
    },
}

impl Parallel {
    /// Whether it is what a configuration means that says nothing.
    pub fn is_lock_free(&self) -> bool {
        *self == Self::LockFree
    }
}

/// Everything that decides how a run learns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainConfig {
    /// What the tables read.
    pub layout: Layout,
    /// Step size, above 0 and at most [`TrainConfig::MAX_ALPHA`].
    pub alpha: f32,
    /// Probability of a random legal column, 0..=1.
    pub epsilon: f64,
    /// Row rises an unseen board is worth.
    pub optimistic_rises: f32,
    /// Largest absolute error of an update, in row rises; above 0 and at most
    /// [`TrainConfig::MAX_CLAMP`].
    pub clamp: f32,
    /// Moves after which a game is cut, at least 1.
    pub move_cap: u32,
    /// Seed of the random columns.
    pub train_seed: u32,
    /// Seeds of the games.
    pub seeds: SeedBlock,
    /// Workers, 1..=[`TrainConfig::MAX_THREADS`].
    pub threads: u32,
    /// How they share the tables.
    #[serde(default, skip_serializing_if = "Parallel::is_lock_free")]
    pub parallel: Parallel,
}

impl TrainConfig {
    /// The largest step size accepted: with it and [`TrainConfig::MAX_CLAMP`], no number of updates
    /// that fits a u64 drives a weight out of the finite `f32` range.
    pub const MAX_ALPHA: f32 = 16.0;
    /// The largest error clamp accepted, in row rises.
    pub const MAX_CLAMP: f32 = 1e6;
    /// The largest number of workers accepted.
    pub const MAX_THREADS: u32 = 1024;
    /// The largest number of games in flight accepted.
    pub const MAX_GAMES: u32 = 1024;

    /// The settings of the four studies for `layout` and `seeds`, with one thread.
    pub const fn new(layout: Layout, seeds: SeedBlock) -> Self {
        Self {
            layout,
            alpha: 1.0,
            epsilon: 0.0,
            optimistic_rises: 20.0,
            clamp: 30.0,
            move_cap: MOVE_CAP,
            train_seed: TRAIN_SEED,
            seeds,
            threads: 1,
            parallel: Parallel::LockFree,
        }
    }

    /// How many streams of random columns there are: one per worker, or per game in flight.
    const fn streams(&self) -> u32 {
        match self.parallel {
            Parallel::LockFree => self.threads,
            Parallel::Lockstep { games } => games,
        }
    }

    /// Checks every range that the fields document.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub fn check(&self) -> Result<(), TrainError> {
        let refuse = |field, allowed| Err(TrainError::Config { field, allowed });
        if !(self.alpha > 0.0 && self.alpha <= Self::MAX_ALPHA) {
            return refuse("alpha", "above 0, at most 16");
        }
        if !(0.0..=1.0).contains(&self.epsilon) {
            return refuse("epsilon", "0 to 1");
        }
        if !(-1e6..=1e6).contains(&self.optimistic_rises) {
            return refuse("optimistic_rises", "-1000000 to 1000000");
        }
        if !(self.clamp > 0.0 && self.clamp <= Self::MAX_CLAMP) {
            return refuse("clamp", "above 0, at most 1000000");
        }
        if self.move_cap == 0 {
            return refuse("move_cap", "at least 1");
        }
        if self.seeds.count == 0 {
            return refuse("seeds.count", "at least 1");
        }
        if self.threads == 0 || self.threads > Self::MAX_THREADS {
            return refuse("threads", "1 to 1024");
        }
        if let Parallel::Lockstep { games } = self.parallel
            && (games == 0 || games > Self::MAX_GAMES)
        {
            return refuse("parallel.lockstep.games", "1 to 1024");
        }
        Ok(())
    }
}

/// A trainer could not be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrainError {
    /// A field of the configuration is out of its range.
    #[error("{field} must be {allowed}")]
    Config {
        /// The field.
        field: &'static str,
        /// Its range, in words.
        allowed: &'static str,
    },
    /// The tables have another layout than the configuration.
    #[error("the tables are {tables}, the configuration says {config}")]
    Layout {
        /// Layout of the tables.
        tables: Box<Layout>,
        /// Layout of the configuration.
        config: Box<Layout>,
    },
    /// The open chunk of a stored state was played by another number of workers, or of games in
    /// flight.
    #[error("the open chunk has {stored} random streams, the configuration has {configured}")]
    Streams {
        /// Streams in the state.
        stored: usize,
        /// Streams of the configuration.
        configured: u32,
    },
    /// The open chunk of a stored state has a game in flight that cannot be played again.
    #[error("the open chunk has no such game in flight: slot {slot}, seed {seed:#010x}")]
    InFlight {
        /// Its slot.
        slot: u32,
        /// Its seed.
        seed: u32,
    },
}

/// Where a run stands, between two calls. With the tables it is everything needed to go on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TrainState {
    /// Moves of finished games.
    pub moves: u64,
    /// Finished games.
    pub games: u64,
    /// Seeds drawn from the block; the next game plays seed number `cursor`, wrapping.
    pub cursor: u64,
    /// Number of the current chunk, from 0: as many chunks are full.
    pub chunk: u64,
    /// The current chunk when a stop request ended it early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<OpenChunk>,
}

/// A chunk that a stop request ended early.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenChunk {
    /// The chunk is full at this many moves of the run.
    pub end: u64,
    /// What was played of it.
    pub tally: Tally,
    /// State of the generators of random columns, one per worker or per game in flight.
    pub explorers: Vec<u32>,
    /// The games in flight, by slot; lockstep only. The tables have learned from them up to here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_flight: Vec<InFlight>,
}

/// A game between two of its moves. Played again from its seed, it is where it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// Its slot, from 0.
    pub slot: u32,
    /// Its seed.
    pub seed: u32,
    /// The columns played so far, a digit each, 0 at the left.
    pub columns: String,
}

impl InFlight {
    /// The game, unless it cannot be played again or is over.
    pub(super) fn replay(&self, move_cap: u32) -> Option<Game> {
        let mut game = Game::new(self.seed);
        for column in self.columns.chars() {
            game.play(column.to_digit(7)? as usize)?;
        }
        (!game.public().is_over() && game.moves_played() < move_cap).then_some(game)
    }
}

/// One call's play, before and after it.
pub(super) struct Sitting {
    /// Moves of the run.
    pub(super) moves: u64,
    /// Seeds drawn by the run.
    pub(super) cursor: u64,
    /// The chunk as far as it is played.
    pub(super) open: OpenChunk,
    /// Threads that play.
    pub(super) workers: u32,
    /// Whether the chunk is full and all of its games are over.
    pub(super) full: bool,
}

/// Trains one set of tables, one chunk per call.
#[derive(Debug)]
pub struct Trainer {
    config: TrainConfig,
    tables: Arc<TrainTables>,
    state: TrainState,
}

impl Trainer {
    /// A trainer at the start of a run. `tables` are fresh or warm-started by the caller.
    ///
    /// # Errors
    /// When the configuration is out of range or names another layout than the tables have.
    pub fn new(config: TrainConfig, tables: Arc<TrainTables>) -> Result<Self, TrainError> {
        config.check()?;
        if config.layout != *tables.layout() {
            return Err(TrainError::Layout {
                tables: Box::new(*tables.layout()),
                config: Box::new(config.layout),
            });
        }
        Ok(Self { config, tables, state: TrainState::default() })
    }

    /// The trainer at a stored state; the tables must be those stored with it.
    ///
    /// # Errors
    /// When the open chunk of the state was played by another number of workers or of games in
    /// flight, or has a game in flight that cannot be played again.
    pub fn resume(mut self, state: TrainState) -> Result<Self, TrainError> {
        if let Some(open) = &state.open {
            let (stored, configured) = (open.explorers.len(), self.config.streams());
            if stored != configured as usize {
                return Err(TrainError::Streams { stored, configured });
            }
            let slots = if self.config.parallel.is_lock_free() { 0 } else { configured };
            let mut free = 0;
            for game in &open.in_flight {
                let InFlight { slot, seed, .. } = *game;
                if !(free..slots).contains(&slot) || game.replay(self.config.move_cap).is_none() {
                    return Err(TrainError::InFlight { slot, seed });
                }
                free = slot + 1;
            }
        }
        self.state = state;
        Ok(self)
    }

    /// The configuration.
    pub const fn config(&self) -> &TrainConfig {
        &self.config
    }

    /// The tables: live while [`Trainer::advance`] runs, at rest between calls.
    pub const fn tables(&self) -> &Arc<TrainTables> {
        &self.tables
    }

    /// Where the run stands.
    pub const fn state(&self) -> &TrainState {
        &self.state
    }

    /// Plays one chunk: whole games until at least `moves` more moves are done.
    ///
    /// The counter moves when a game ends and is looked at before a game starts, so a chunk runs
    /// over by less than one game per worker (in lockstep: per game in flight), and the next chunk
    /// starts where this one ended. A stop request is looked at between games, in lockstep between
    /// rounds; it leaves the chunk open, and the next call continues that chunk to its own end (its
    /// `moves` is then not used). `progress` counts moves of finished games.
    ///
    /// With one thread the caller's thread plays. With more, named threads are started for the call;
    /// when the system refuses one, the chunk is played by those there are, and the report says how
    /// many.
    pub fn advance(
        &mut self,
        moves: u64,
        progress: &dyn Progress,
        stop: &StopToken,
    ) -> ChunkReport {
        let open = self.state.open.take().unwrap_or_else(|| OpenChunk {
            end: self.state.moves.saturating_add(moves),
            tally: Tally::default(),
            explorers: (0..self.config.streams())
                .map(|index| explorer(self.config.train_seed, index).state())
                .collect(),
            in_flight: Vec::new(),
        });
        let played_before = open.tally.games;
        let TrainState { moves, cursor, .. } = self.state;
        let sitting = Sitting { moves, cursor, open, workers: 0, full: false };
        let play = match self.config.parallel {
            Parallel::LockFree => lock_free,
            Parallel::Lockstep { .. } => lockstep::play,
        };
        let Sitting { moves, cursor, open, workers, full } =
            play(&self.config, &self.tables, sitting, progress, stop);

        self.state.moves = moves;
        self.state.cursor = cursor;
        self.state.games = self.state.games.saturating_add(open.tally.games - played_before);
        let report = ChunkReport {
            chunk: self.state.chunk,
            moves_total: self.state.moves,
            games_total: self.state.games,
            tally: open.tally,
            seed_cursor: self.state.cursor,
            seed_wraps: self.state.cursor / u64::from(self.config.seeds.count),
            workers,
            stopped: !full,
        };
        if full {
            self.state.chunk = self.state.chunk.saturating_add(1);
        } else {
            self.state.open = Some(open);
        }
        report
    }
}

/// Plays `sitting` on to the end of its chunk, or until a stop request, with the workers on one set
/// of live tables.
fn lock_free(
    config: &TrainConfig,
    tables: &TrainTables,
    sitting: Sitting,
    progress: &dyn Progress,
    stop: &StopToken,
) -> Sitting {
    let Sitting { moves, cursor, mut open, .. } = sitting;
    let shared = Shared { moves: AtomicU64::new(moves), cursor: AtomicU64::new(cursor) };
    let mut team: Vec<Worker<'_>> = open
        .explorers
        .iter()
        .map(|&state| Worker {
            config,
            tables,
            shared: &shared,
            explorer: Mulberry32::new(state),
            tally: Tally::default(),
        })
        .collect();
    // The first worker carries the sums on, so that one worker adds in one order, always.
    if let Some(first) = team.first_mut() {
        first.tally = open.tally;
    }
    let (workers, full) = run_team(&mut team, open.end, progress, stop);

    for (index, worker) in team.iter().enumerate() {
        if index == 0 {
            open.tally = worker.tally;
        } else {
            open.tally.add(&worker.tally);
        }
    }
    open.explorers = team.iter().map(|worker| worker.explorer.state()).collect();
    drop(team);
    let (moves, cursor) = (shared.moves.into_inner(), shared.cursor.into_inner());
    Sitting { moves, cursor, open, workers, full }
}

/// Runs the workers to the end of the chunk: the first on this thread, the others on their own.
/// Returns how many ran and whether the chunk is full.
fn run_team(
    team: &mut [Worker<'_>],
    end: u64,
    progress: &dyn Progress,
    stop: &StopToken,
) -> (u32, bool) {
    let Some((first, others)) = team.split_first_mut() else { return (0, false) };
    let shared = first.shared;
    let mut workers = 1;
    thread::scope(|scope| {
        for (index, worker) in (1..).zip(others) {
            let spawned = thread::Builder::new()
                .name(format!("train-{index}"))
                .spawn_scoped(scope, move || worker.run(end, progress, stop));
            workers += u32::from(spawned.is_ok());
        }
        first.run(end, progress, stop);
    });
    (workers, shared.moves.load(Relaxed) >= end)
}
