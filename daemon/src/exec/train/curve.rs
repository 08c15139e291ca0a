//! What a training unit remembers between sessions, and what it leaves.

use engine_core::train::Parallel;
use engine_core::train::plateau::PlateauReading;
use engine_core::train::schedule::Every;
use serde::{Deserialize, Serialize};

use crate::domain::records::Point;

/// What is stored beside the tables in a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Curve {
    /// When the next point is due.
    pub(super) schedule: Every,
    /// Points so far.
    pub(super) points: Vec<Point>,
    /// The largest margin so far.
    pub(super) best: Option<f64>,
    /// The point whose tables are in the archive.
    pub(super) kept: Option<FrozenPoint>,
    /// The last reading of the plateau rule.
    pub(super) plateau: Option<PlateauReading>,
    /// Wall seconds of all sessions up to this checkpoint.
    pub(super) wall_seconds: f64,
    /// Points handed to the writer by this session.
    #[serde(skip)]
    pub(super) reported: usize,
}

impl Curve {
    pub(super) const fn new(schedule: Every) -> Self {
        Self {
            schedule,
            points: Vec::new(),
            best: None,
            kept: None,
            plateau: None,
            wall_seconds: 0.0,
            reported: 0,
        }
    }
}

/// A point whose tables are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrozenPoint {
    /// Number of the point, from 1.
    pub point: u32,
    /// Moves trained.
    pub moves: u64,
    /// Its margin.
    pub margin: f64,
    /// SHA-256 of the plain table file.
    pub sha256: String,
}

/// Why training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The moves of the budget are spent.
    Moves,
    /// The plateau rule fired.
    Plateau,
}

/// What a training unit leaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainOutput {
    /// The arm; for the long run the arm it continues the settings of.
    pub arm: String,
    /// Canonical layout.
    pub layout: String,
    /// Entries of the layout.
    pub entries: u64,
    /// Entries that have learned.
    pub touched: u64,
    /// Moves of finished games, all sessions.
    pub moves: u64,
    /// Games, all sessions.
    pub games: u64,
    /// Times the training block was read to its end.
    pub seed_wraps: u64,
    /// Validation points.
    pub points: u32,
    /// Why it ended.
    pub stop: StopReason,
    /// The last reading of the plateau rule, when there is a rule and it applied.
    pub plateau: Option<PlateauReading>,
    /// The point whose tables are stored; absent for an arm that cannot become the candidate.
    pub table: Option<FrozenPoint>,
    /// Worker threads; above 1 the bits of the tables do not repeat, except in lockstep.
    pub threads: u32,
    /// How the workers shared the tables. Outputs from before there was a choice are lock-free.
    #[serde(default)]
    pub parallel: Parallel,
    /// Wall seconds, all sessions.
    pub wall_seconds: f64,
}

/// The curve of `arm` among stored points, in order. A later attempt went on from a checkpoint, so
/// its first point replaces that point and everything after it of earlier attempts.
pub fn curve<'a>(points: &'a [Point], arm: &str) -> Vec<&'a Point> {
    let of_arm = || points.iter().filter(|point| point.arm == arm);
    let mut curve: Vec<&Point> = of_arm()
        .filter(|point| {
            !of_arm().any(|later| later.attempt > point.attempt && later.point <= point.point)
        })
        .collect();
    curve.sort_by_key(|point| point.point);
    curve
}
