//! What a unit of work is given, what it reports while it works, and how it may end.
//!
//! A unit runs on a thread of its own, outside the async runtime. It never sees the database: inputs
//! are handed to it, rows and points go out over a channel, in order, to one writer per run.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use engine_core::progress::{Progress, StopToken};
use serde_json::Value;
use tokio::sync::mpsc;

use super::status::RunStatus;
use super::tables::TableCache;
use crate::artifacts::Archive;
use crate::clock::Clock;
use crate::domain::ids::RunId;
use crate::domain::protocol::Protocol;
use crate::domain::records::{Artifact, Chunk, GameRecord, Lease, Point, ResultRecord};
use crate::domain::refusal::{Code, Refusal};
use crate::store::AttemptToken;

/// Why a unit ended without its output.
#[derive(Debug, Clone)]
pub enum Ending {
    /// It was asked to stop and left whole games and whole checkpoints behind.
    Stopped,
    /// It cannot be done; the sentence is for a reader.
    Failed(String),
}

impl From<Refusal> for Ending {
    fn from(refusal: Refusal) -> Self {
        Self::Failed(refusal.to_string())
    }
}

/// The output of a unit, or why there is none.
pub type UnitResult = Result<Value, Ending>;

/// What goes from a working unit to the writer of its run.
#[derive(Debug)]
pub enum Report {
    /// A row of a training curve.
    Chunk(AttemptToken, Chunk),
    /// A validation point.
    Point(AttemptToken, Point),
    /// A game of a screen.
    Game(AttemptToken, Lease, Box<GameRecord>),
    /// Seeds that training or validation has read.
    Reading {
        /// Whose.
        token: AttemptToken,
        /// Of which block.
        lease: Lease,
        /// Seeds drawn so far.
        cursor: u64,
        /// Times the block was read to its end.
        wraps: u64,
    },
    /// A stored file.
    Artifact(AttemptToken, Artifact),
    /// The verdict.
    Result(AttemptToken, Box<ResultRecord>),
    /// The unit has ended; nothing of this attempt follows.
    End {
        /// Whose.
        token: AttemptToken,
        /// Work done.
        done: u64,
        /// The output, or why there is none.
        result: UnitResult,
    },
}

/// Requests to one run, shared by everything that works for it.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    token: StopToken,
}

impl Stop {
    /// Asks for a stop at the next boundary.
    pub fn request(&self) {
        self.token.stop();
    }

    /// Whether a stop was asked for.
    pub fn is_requested(&self) -> bool {
        self.token.is_stopped()
    }

    /// What engine-core looks at between games.
    pub const fn token(&self) -> &StopToken {
        &self.token
    }
}

/// How far a unit is. Shared with whoever draws a progress bar.
#[derive(Debug, Default)]
pub struct Counter {
    done: AtomicU64,
    validate: AtomicBool,
    moves: AtomicU64,
}

impl Counter {
    /// Work done so far, in the unit's own measure.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Sets the work done, at a start that does not begin at nothing.
    pub fn set(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// Asks a training unit for a point at its next boundary; false when it was asked already.
    pub fn ask_for_point(&self) -> bool {
        !self.validate.swap(true, Ordering::Relaxed)
    }

    /// Takes the request for a point, if there is one.
    pub fn take_request(&self) -> bool {
        self.validate.swap(false, Ordering::Relaxed)
    }

    /// Moves at the last chunk boundary of a training unit.
    pub fn boundary(&self) -> u64 {
        self.moves.load(Ordering::Relaxed)
    }

    /// Notes a chunk boundary.
    pub fn at_boundary(&self, moves: u64) {
        self.moves.store(moves, Ordering::Relaxed);
    }
}

impl Progress for Counter {
    fn advance(&self, amount: u64) {
        self.done.fetch_add(amount, Ordering::Relaxed);
    }
}

/// Everything a unit works with.
#[derive(Debug, Clone)]
pub struct UnitContext {
    /// The run.
    pub run: RunId,
    /// Key of the unit.
    pub key: String,
    /// Proof that this attempt is the current one.
    pub token: AttemptToken,
    /// The frozen protocol.
    pub protocol: Arc<Protocol>,
    /// What was stored of the run when the unit began.
    pub status: Arc<RunStatus>,
    /// Rows of the screen, for the analysis only.
    pub rows: Arc<Vec<GameRecord>>,
    /// Ordinals that are not stored yet, for a screen arm only.
    pub missing: Arc<Vec<u32>>,
    /// The request to stop.
    pub stop: Stop,
    /// Work done.
    pub counter: Arc<Counter>,
    /// Where games are played.
    pub pool: Arc<rayon::ThreadPool>,
    /// Where tables are stored.
    pub archive: Archive,
    /// Frozen tables that are in memory.
    pub tables: Arc<TableCache>,
    /// Working folder of the run.
    pub work: PathBuf,
    /// The clock.
    pub clock: Clock,
    reports: mpsc::Sender<Report>,
}

/// What a unit is begun with; see [`UnitContext`] for the fields.
#[derive(Debug)]
pub struct UnitInputs {
    /// The run.
    pub run: RunId,
    /// Key of the unit.
    pub key: String,
    /// Proof of the attempt.
    pub token: AttemptToken,
    /// The frozen protocol.
    pub protocol: Arc<Protocol>,
    /// What was stored.
    pub status: Arc<RunStatus>,
    /// Rows of the screen.
    pub rows: Vec<GameRecord>,
    /// Missing ordinals.
    pub missing: Vec<u32>,
}

/// What units of one run share.
#[derive(Debug, Clone)]
pub struct Workshop {
    /// The request to stop.
    pub stop: Stop,
    /// Where games are played.
    pub pool: Arc<rayon::ThreadPool>,
    /// Where tables are stored.
    pub archive: Archive,
    /// Frozen tables that are in memory.
    pub tables: Arc<TableCache>,
    /// Working folder of the run.
    pub work: PathBuf,
    /// The clock.
    pub clock: Clock,
    /// To the writer.
    pub reports: mpsc::Sender<Report>,
}

impl Workshop {
    /// The context of one unit.
    pub fn unit(&self, inputs: UnitInputs, counter: Arc<Counter>) -> UnitContext {
        UnitContext {
            run: inputs.run,
            key: inputs.key,
            token: inputs.token,
            protocol: inputs.protocol,
            status: inputs.status,
            rows: Arc::new(inputs.rows),
            missing: Arc::new(inputs.missing),
            stop: self.stop.clone(),
            counter,
            pool: Arc::clone(&self.pool),
            archive: self.archive.clone(),
            tables: Arc::clone(&self.tables),
            work: self.work.clone(),
            clock: self.clock.clone(),
            reports: self.reports.clone(),
        }
    }
}

impl UnitContext {
    /// Hands `report` to the writer, waiting when it is behind.
    ///
    /// # Errors
    /// When the writer is gone, which ends the unit.
    pub fn report(&self, report: Report) -> Result<(), Ending> {
        self.reports
            .blocking_send(report)
            .map_err(|_| Ending::Failed(String::from("the writer of this run has ended")))
    }

    /// The lease of the block `name`.
    ///
    /// # Errors
    /// When the experiment holds no such lease.
    pub fn lease(&self, name: &str) -> Result<&Lease, Ending> {
        self.status
            .lease(name)
            .ok_or_else(|| Ending::Failed(format!("the block {name:?} has no lease")))
    }

    /// The stored output of an earlier unit.
    ///
    /// # Errors
    /// When that unit has none, or one of another shape.
    pub fn output<T: serde::de::DeserializeOwned>(&self, key: &str) -> Result<T, Ending> {
        let output = self.status.unit(key).and_then(|unit| unit.output.clone());
        let output = output.ok_or_else(|| {
            Ending::Failed(format!("{key} has no output, so {} cannot begin", self.key))
        })?;
        serde_json::from_value(output).map_err(|error| {
            Ending::Failed(format!("the output of {key} does not read back: {error}"))
        })
    }
}

/// Seconds as stored: microseconds are as fine as anybody can trust.
pub fn seconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e6
}

/// Serialises the output of a unit.
///
/// # Errors
/// When a number in it has no JSON form.
pub fn output(value: &impl serde::Serialize) -> UnitResult {
    serde_json::to_value(value)
        .map_err(|error| Ending::Failed(format!("the output has no JSON form: {error}")))
}

/// A neutral refusal for a cause that belongs into the log.
pub fn internal(what: &str, cause: &dyn std::fmt::Display) -> Refusal {
    tracing::error!(what, %cause, "internal failure");
    Refusal::new(Code::Internal, format!("{what} failed; the cause is in the log"))
}
