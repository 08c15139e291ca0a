//! What a protocol will cost, before anything is opened.

use serde::Serialize;
use utoipa::ToSchema;

use super::Protocol;

/// Cost of a protocol.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Estimate {
    /// Training arms, then screen arms.
    pub arms: Vec<ArmEstimate>,
}

/// Cost of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ArmEstimate {
    /// Name of the arm.
    pub name: String,
}

/// The cost of `protocol`.
pub fn estimate(_protocol: &Protocol) -> Estimate {
    Estimate { arms: Vec::new() }
}

impl Estimate {
    /// Why the plan does not fit `budget` bytes, if it does not.
    pub(super) fn over_memory(&self, _budget: u64) -> Option<String> {
        None
    }
}
