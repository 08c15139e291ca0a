//! Quantiles by linear interpolation between order statistics.

use super::{StatsError, all_finite};

/// The quantile `p` (0..=1) of values sorted in ascending order, interpolated at `p * (n - 1)`.
///
/// The interpolation starts from the nearer of the two order statistics, as numpy's does: the last
/// bit depends on it.
///
/// # Errors
/// When there is no value, one is not finite, or `p` is not a probability.
pub fn quantile(sorted: &[f64], p: f64) -> Result<f64, StatsError> {
    if !(0.0..=1.0).contains(&p) {
        return Err(StatsError::Probability(p));
    }
    if sorted.is_empty() {
        return Err(StatsError::TooFew { got: 0, needed: 1 });
    }
    all_finite(sorted)?;
    debug_assert!(sorted.is_sorted(), "quantiles are taken of sorted values");
    Ok(interpolated(sorted, p))
}

/// [`quantile`] of values that are known to be finite, sorted and not empty.
pub(crate) fn interpolated(sorted: &[f64], p: f64) -> f64 {
    let position = p * (sorted.len() - 1) as f64;
    let below = position.floor();
    let part = position - below;
    let lower = sorted[below as usize];
    let upper = sorted[(below as usize + 1).min(sorted.len() - 1)];
    let difference = upper - lower;
    if part < 0.5 { lower + difference * part } else { upper - difference * (1.0 - part) }
}

/// The finite values in ascending order.
///
/// # Errors
/// When there is no value or one is not finite.
pub fn sorted(values: &[f64]) -> Result<Vec<f64>, StatsError> {
    if values.is_empty() {
        return Err(StatsError::TooFew { got: 0, needed: 1 });
    }
    all_finite(values)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Ok(sorted)
}
