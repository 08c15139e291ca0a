//! What is said about one series: of an arm's points, or of its moves.

use serde::{Deserialize, Serialize};

use super::quantile::{interpolated, sorted};
use super::{StatsError, pairwise};

/// Games at or above this score are counted as million games.
pub const MILLION: f64 = 1_000_000.0;

/// Location and spread of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values, at least 1.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// The 50 % quantile.
    pub median: f64,
    /// Sample standard deviation, divisor n - 1; 0 for a single value.
    pub sd: f64,
    /// The 25 % quantile.
    pub q25: f64,
    /// The 75 % quantile.
    pub q75: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
}

impl Summary {
    /// The summary of `values`.
    ///
    /// # Errors
    /// When there is no value, one is not finite, or a figure overflows.
    pub fn of(values: &[f64]) -> Result<Self, StatsError> {
        let sorted = sorted(values)?;
        Ok(Self {
            n: values.len(),
            mean: pairwise::mean(values)?,
            median: interpolated(&sorted, 0.5),
            sd: pairwise::sample_sd(values)?,
            q25: interpolated(&sorted, 0.25),
            q75: interpolated(&sorted, 0.75),
            min: sorted[0],
            max: sorted[sorted.len() - 1],
        })
    }
}
