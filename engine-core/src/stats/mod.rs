//! The statistics of a verdict. For finite inputs every figure has the bits of the published
//! analysis (numpy summation order, quantile rule and random stream); whatever is not finite, empty
//! or unpaired is refused with an error that says where, and no figure is ever rounded for display.
//!
//! Nothing here knows how games were played: series of numbers or rows come in, in seed order, and
//! plain serialisable structs go out.

pub mod arm;
pub mod bootstrap;
pub mod cohort;
pub mod gate;
mod hex_seed;
pub mod interaction;
pub mod paired;
pub mod pairwise;
pub mod pcg64;
pub mod quantile;
pub mod reading;
pub mod student;
pub mod summary;

pub use arm::ArmSummary;
pub use bootstrap::{Bootstrap, Bounds};
pub use cohort::{Cohort, CohortError, Metric, PlannedArm, Played, ScreenPlan};
pub use gate::{Criterion, GateCheck, GateError, GateReport};
pub use interaction::interaction;
pub use paired::Paired;
pub use quantile::quantile;
pub use reading::{InteractionVerdict, Outcome, Verdict};
pub use summary::Summary;

/// Why a statistic was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StatsError {
    /// Fewer values than the statistic is defined for.
    #[error("{got} values were given, at least {needed} are needed")]
    TooFew {
        /// Values given.
        got: usize,
        /// Values needed.
        needed: usize,
    },
    /// More values than the random stream can index.
    #[error("{got} values were given, at most {limit} can be resampled")]
    TooMany {
        /// Values given.
        got: usize,
        /// The limit.
        limit: usize,
    },
    /// Two series that should hold the same games differ in length.
    #[error("series that are compared game by game hold {left} and {right} values")]
    Unpaired {
        /// Values of the first series.
        left: usize,
        /// Values of the second.
        right: usize,
    },
    /// A value is NaN or infinite.
    #[error("value {index} is {value}, which is not a finite number")]
    NotFinite {
        /// Position in the series, from 0.
        index: usize,
        /// The value.
        value: f64,
    },
    /// Finite values whose statistic is not finite.
    #[error("the {figure} of these values exceeds the range of a 64-bit float")]
    Overflow {
        /// The figure.
        figure: &'static str,
    },
    /// A probability outside 0..=1.
    #[error("a probability lies between 0 and 1, got {0}")]
    Probability(f64),
    /// A bootstrap without resamples.
    #[error("a bootstrap needs at least one resample")]
    NoResamples,
}

/// Refuses the first value that is not finite.
pub(crate) fn all_finite(values: &[f64]) -> Result<(), StatsError> {
    match values.iter().enumerate().find(|(_, value)| !value.is_finite()) {
        Some((index, &value)) => Err(StatsError::NotFinite { index, value }),
        None => Ok(()),
    }
}

/// Refuses a figure that overflowed.
pub(crate) fn in_range(figure: &'static str, value: f64) -> Result<f64, StatsError> {
    if value.is_finite() { Ok(value) } else { Err(StatsError::Overflow { figure }) }
}
