//! The gate: what must hold for a claim to stand.

use serde::{Deserialize, Serialize};

/// One thing that must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// No arm made an illegal decision or one below its depth.
    NoIllegalOrIncomplete,
    /// The 5 % bootstrap quantile of the mean difference is above 0.
    BootstrapLowerAboveZero,
    /// The Student-t lower bound of the mean difference is above 0.
    StudentLowerAboveZero,
    /// The mean difference is above 0 in each half of the block, in seed order.
    BothHalvesPositive,
    /// The candidate's lower quartile is not below the reference's.
    LowerQuartileNotWorse,
    /// The tables that played are the ones whose digests were recorded at the opening.
    FrozenDigests,
}
