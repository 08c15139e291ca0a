//! Records as they are stored, served and printed. Times are UTC instants with microseconds.

#![expect(missing_docs, reason = "field names are the API; the ones that need words have them")]

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::ids::{ExperimentId, LeaseId, MachineId, ResultId, RunId, TheoryId};
use super::protocol::Role;
use super::seed_range::Seed;

/// Where a record comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Made by this daemon.
    Own,
    /// Taken over from a published record; its raw data was not made here.
    Imported,
}

/// A theory on record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Theory {
    pub id: TheoryId,
    pub title: String,
    pub claim: String,
    pub mechanism: String,
    pub falsification_criteria: Vec<String>,
    pub origin: Origin,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// An experiment: one frozen protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Experiment {
    pub id: ExperimentId,
    pub theory_id: TheoryId,
    pub title: String,
    pub kind: String,
    pub tier: String,
    /// SHA-256 of the canonical bytes.
    pub protocol_sha256: String,
    /// The experiment this one amends or repeats.
    pub predecessor: Option<ExperimentId>,
    /// Why it exists beside its predecessor.
    pub predecessor_reason: Option<String>,
    /// Whether any held-out lease of the predecessor was open when this one was frozen.
    pub predecessor_was_open: Option<bool>,
    /// Engine identity at the freeze: rules id and golden-trace hash.
    pub engine: String,
    pub origin: Origin,
    #[schema(value_type = String, format = DateTime)]
    pub frozen_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub withdrawn_at: Option<Timestamp>,
    pub withdrawn_reason: Option<String>,
}

/// State of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeaseState {
    /// Disjoint from every other lease, not read yet.
    Reserved,
    /// Read, or about to be: a crash does not give it back.
    Opened,
    /// Given back unread.
    Cancelled,
}

/// A seed lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lease {
    pub id: LeaseId,
    pub experiment_id: ExperimentId,
    /// Name of the block in the protocol.
    pub name: String,
    /// Generator whose seeds these are, like `drop7-headless-u32`.
    pub space: String,
    /// Stream of that generator, like `environment`.
    pub domain: String,
    pub role: Role,
    #[schema(value_type = String)]
    pub start: Seed,
    pub count: u32,
    pub state: LeaseState,
    #[schema(value_type = String, format = DateTime)]
    pub reserved_at: Timestamp,
    pub opening: Option<Opening>,
}

/// The one opening of a held-out lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Opening {
    pub run_id: RunId,
    pub protocol_sha256: String,
    /// Name and digest of every table the screen will play.
    pub tables: Vec<TableDigest>,
    #[schema(value_type = String, format = DateTime)]
    pub opened_at: Timestamp,
}

/// A table by name and digest of its plain file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TableDigest {
    pub name: String,
    pub sha256: String,
}

/// How far a run got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    Queued,
    Running,
    /// Stopped on request, at a boundary; can be resumed.
    Stopped,
    /// The process ended under it; can be resumed.
    Interrupted,
    Failed,
    Completed,
}

/// Whether the process followed the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Validity {
    Pending,
    Valid,
    Partial,
    Invalid,
}

/// What the data said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Pass,
    Fail,
    Inconclusive,
    NotApplicable,
}

/// A run of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    pub id: RunId,
    pub experiment_id: ExperimentId,
    pub protocol_sha256: String,
    pub state: RunState,
    pub validity: Validity,
    /// Why it is in this state, when it is not simply queued, running or completed.
    pub reason: Option<String>,
    pub engine: String,
    /// Version and commit of the program.
    pub build: String,
    pub machine_id: MachineId,
    pub origin: Origin,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
}

/// State of a stage, a unit of work, or an attempt at one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkState {
    Pending,
    Running,
    /// Complete, verified output.
    Succeeded,
    Failed,
    Stopped,
    Interrupted,
    Skipped,
}

/// A unit of work of a stage and its latest attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Unit {
    pub run_id: RunId,
    /// gates, train, select, main, freeze, edit, screen, analyse.
    pub stage: String,
    /// Unique in the run: `train/C`, `screen/fair-d3s7`.
    pub key: String,
    pub state: WorkState,
    /// Number of the latest attempt, from 1; 0 before the first.
    pub attempt: u32,
    pub reason: Option<String>,
    /// Work done and planned, in the unit's own measure (moves, games, checks).
    pub done: u64,
    pub total: u64,
    /// The output of a succeeded unit (selection, freeze digests, gate lines).
    #[schema(value_type = Option<Object>)]
    pub output: Option<Value>,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
}

/// A row of a training curve: one chunk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Chunk {
    pub run_id: RunId,
    /// Training arm, `main` for the long run.
    pub arm: String,
    pub attempt: u32,
    pub chunk: u32,
    pub moves_total: u64,
    /// All figures of the chunk.
    #[schema(value_type = Object)]
    pub figures: Value,
}

/// A validation point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Point {
    pub run_id: RunId,
    pub arm: String,
    pub attempt: u32,
    /// 1-based.
    pub point: u32,
    pub moves: u64,
    /// Mean paired score difference, tables minus fair.
    pub margin: f64,
    pub is_best: bool,
    /// All figures: means, contrast, plateau reading, touched entries.
    #[schema(value_type = Object)]
    pub figures: Value,
}

/// One game of one arm of a screen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GameRecord {
    pub arm: String,
    pub ordinal: u32,
    #[schema(value_type = String)]
    pub seed_hex: Seed,
    pub score: i64,
    pub moves: u32,
    pub numbered_cleared: Option<u64>,
    pub covers_revealed: Option<u64>,
    pub max_chain_depth: Option<u32>,
    pub occupied_sum: Option<u64>,
    pub mean_occupied_cells: Option<f64>,
    pub clears: Option<u32>,
    pub censored: bool,
    pub illegal_decisions: u32,
    pub incomplete_decisions: u32,
    pub work: Option<u64>,
    pub wall_seconds: Option<f64>,
}

/// A verdict with everything it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResultRecord {
    pub id: ResultId,
    pub run_id: RunId,
    pub experiment_id: ExperimentId,
    pub protocol_sha256: String,
    pub validity: Validity,
    pub outcome: Outcome,
    pub tier: String,
    /// Arm summaries, contrasts, gate checks, readings: typed in `exec::analyse`.
    #[schema(value_type = Object)]
    pub analysis: Value,
    /// One honest sentence: what this does and does not show.
    pub summary: String,
    pub limitations: Vec<String>,
    pub machine_id: MachineId,
    pub origin: Origin,
    #[schema(value_type = String, format = DateTime)]
    pub recorded_at: Timestamp,
}

/// A stored file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    /// SHA-256 of the plain bytes: the identity.
    pub sha256: String,
    pub bytes: u64,
    /// SHA-256 of the stored (zstd) bytes.
    pub stored_sha256: String,
    pub stored_bytes: u64,
    /// table, checkpoint, protocol, import.
    pub kind: String,
    pub run_id: Option<RunId>,
    pub name: String,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// A machine profile, without the host name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Machine {
    pub id: MachineId,
    #[schema(value_type = Object)]
    pub profile: Value,
    #[schema(value_type = String, format = DateTime)]
    pub captured_at: Timestamp,
}

/// One change, chained to the one before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// 1, 2, 3, … without gaps.
    pub seq: u64,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// `lease-opened`, `unit-succeeded`, …
    pub kind: String,
    /// Id of the record it is about.
    pub subject: String,
    /// The run it belongs to, if any.
    pub run_id: Option<RunId>,
    #[schema(value_type = Object)]
    pub body: Value,
    /// SHA-256 over the previous hash and this event.
    pub hash: String,
}
