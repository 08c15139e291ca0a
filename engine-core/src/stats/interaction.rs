//! A difference of differences: does one step gain more in one setting than in another?

use super::paired::differences;
use super::{Paired, StatsError};

/// Per game `(first.0 - first.1) - (second.0 - second.1)`, compared with zero. All four series hold
/// the same games in the same order.
///
/// The quartile fields of the result are those of the per-game differences against zero.
///
/// # Errors
/// As [`Paired::of`].
pub fn interaction(
    first: (&[f64], &[f64]),
    second: (&[f64], &[f64]),
) -> Result<Paired, StatsError> {
    let steps = differences(&differences(first.0, first.1)?, &differences(second.0, second.1)?)?;
    Paired::of(&steps, &vec![0.0; steps.len()])
}
