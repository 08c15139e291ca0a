//! What callers ask of an [`App`](super::App) and what they get.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::protocol::{Estimate, Protocol};
use crate::domain::records::{Experiment, Lease, Point};

/// A protocol that would be accepted.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ProtocolCheck {
    /// The complete form.
    pub protocol: Protocol,
    /// The bytes that are hashed and stored.
    #[serde(skip)]
    #[schema(ignore)]
    pub canonical: Vec<u8>,
    /// Their SHA-256.
    pub sha256: String,
    /// What it will cost.
    pub estimate: Estimate,
}

/// How an experiment is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct CreateOptions {
    /// Make a new experiment of a protocol that is frozen already, on fresh seeds.
    #[serde(default)]
    pub repeat: bool,
    /// Answer as usual and store nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// An experiment, created now or found.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Created {
    /// The experiment; absent in a dry run.
    pub experiment: Option<Experiment>,
    /// SHA-256 of the frozen protocol.
    pub sha256: String,
    /// Its leases.
    pub leases: Vec<Lease>,
    /// What a run will cost.
    pub estimate: Estimate,
    /// Whether this request made it. False for a protocol that was frozen before, and in a dry run.
    pub created: bool,
}

/// What became of a request for a validation point.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Validated {
    /// The arm has a point at this number of moves.
    Exists {
        /// The point.
        point: Point,
    },
    /// The arm will make a point at its next chunk boundary.
    Requested {
        /// The arm.
        arm: String,
        /// Moves at the last boundary.
        moves: u64,
        /// False when the same point was asked for before.
        created: bool,
    },
}

/// How much a verification replays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VerifyOptions {
    /// Arms whose games are played again; every arm when absent.
    #[serde(default)]
    pub replay: Option<Vec<String>>,
    /// First ordinal that is played again.
    #[serde(default)]
    pub first: u32,
    /// How many games of each arm are played again; cut at the size of the block.
    #[serde(default = "two")]
    pub games: u32,
}

const fn two() -> u32 {
    2
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self { replay: None, first: 0, games: two() }
    }
}

/// One check of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// Stable name.
    pub name: String,
    /// Whether it held.
    pub passed: bool,
    /// What was compared, and how much of it.
    pub evidence: String,
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VerifyReport {
    /// The run.
    pub run_id: crate::domain::ids::RunId,
    /// Whether every check held.
    pub passed: bool,
    /// All checks, in the order they were made.
    pub checks: Vec<Check>,
}

/// How far a running unit is, from memory and so fresher than the stored row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnitProgress {
    /// Key of the unit.
    pub key: String,
    /// Work done.
    pub done: u64,
    /// Work planned.
    pub total: u64,
}
