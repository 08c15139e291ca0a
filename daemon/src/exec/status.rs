//! What is known of a run at one moment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::records::{Lease, Point, ResultRecord, Run, Unit};

/// A run with everything that decides what happens next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunStatus {
    /// The run itself.
    pub run: Run,
    /// Its units in the order of the plan; empty until the plan is stored.
    pub units: Vec<Unit>,
    /// Validation points in the order they were made.
    pub points: Vec<Point>,
    /// The leases of its experiment.
    pub leases: Vec<Lease>,
    /// Stored games per screen arm.
    pub games: BTreeMap<String, u64>,
    /// The verdict, once there is one.
    pub result: Option<ResultRecord>,
}

impl RunStatus {
    /// The unit with this key.
    pub fn unit(&self, key: &str) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.key == key)
    }

    /// The lease of the block with this name.
    pub fn lease(&self, block: &str) -> Option<&Lease> {
        self.leases.iter().find(|lease| lease.name == block)
    }
}
