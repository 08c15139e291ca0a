//! Sums, means and standard deviations in the summation order of numpy, so that their last bits are
//! those of the published analysis. The order is part of the result: do not rewrite it.

use super::{StatsError, all_finite, in_range};

/// Values below this count are added one after the other.
const SHORT: usize = 8;
/// Values up to this count are added in eight interleaved lanes; longer series are halved.
const BLOCK: usize = 128;

/// The sum of `values`: eight lanes inside a block of 128, halves of a longer series first.
pub fn sum(values: &[f64]) -> f64 {
    let n = values.len();
    if n < SHORT {
        return values.iter().fold(0.0, |total, value| total + value);
    }
    if n <= BLOCK {
        let (lanes, rest) = values.as_chunks::<SHORT>();
        let mut r = lanes[0];
        for lane in &lanes[1..] {
            for (total, value) in r.iter_mut().zip(lane) {
                *total += value;
            }
        }
        let eight = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
        return rest.iter().fold(eight, |total, value| total + value);
    }
    let half = n / 2;
    let (left, right) = values.split_at(half - half % SHORT);
    sum(left) + sum(right)
}

/// The arithmetic mean.
///
/// # Errors
/// When there is no value, one is not finite, or the sum overflows.
pub fn mean(values: &[f64]) -> Result<f64, StatsError> {
    if values.is_empty() {
        return Err(StatsError::TooFew { got: 0, needed: 1 });
    }
    all_finite(values)?;
    in_range("mean", sum(values) / values.len() as f64)
}

/// The sample standard deviation (divisor n - 1); 0 for a single value.
///
/// # Errors
/// As [`mean`], and when a square overflows.
pub fn sample_sd(values: &[f64]) -> Result<f64, StatsError> {
    let mean = mean(values)?;
    if values.len() == 1 {
        return Ok(0.0);
    }
    let squares: Vec<f64> = values
        .iter()
        .map(|value| {
            let deviation = value - mean;
            deviation * deviation
        })
        .collect();
    in_range("standard deviation", (sum(&squares) / (values.len() - 1) as f64).sqrt())
}
