//! Bootstrap of a mean: 20 000 resamples, one stream for every contrast, two one-sided 95 % bounds.
//!
//! Resamples are drawn row by row and never stored, so memory grows with the number of resamples
//! only. When all values are integers (points, moves and their differences are), every sum is an
//! exact integer and each mean is rounded once.

use serde::{Deserialize, Serialize};

use super::pcg64::Pcg64;
use super::quantile::interpolated;
use super::{StatsError, all_finite, hex_seed, in_range, pairwise};

/// The seed of every published bootstrap.
pub const SEED: u32 = 0xb007_1eaf;
/// Resamples of every published bootstrap.
pub const RESAMPLES: u32 = 20_000;

/// The largest sum of integers that is exact in an f64.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// How a bootstrap is drawn. The default is the published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bootstrap {
    /// Seed of the stream.
    #[serde(with = "hex_seed")]
    pub seed: u32,
    /// Number of resamples, at least 1.
    pub resamples: u32,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { seed: SEED, resamples: RESAMPLES }
    }
}

/// One-sided 95 % bounds of a mean; together they hold 90 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// The 5 % quantile of the resampled means.
    pub lower95: f64,
    /// The 95 % quantile of the resampled means.
    pub upper95: f64,
}

impl Bootstrap {
    /// The index stream for series of `n` values: row k of n indices is resample k.
    ///
    /// # Errors
    /// When `n` is 0 or above 2^32 - 1.
    pub fn indices(&self, n: usize) -> Result<Indices, StatsError> {
        let limit = u32::MAX as usize;
        match u32::try_from(n) {
            Ok(0) => Err(StatsError::TooFew { got: 0, needed: 1 }),
            Ok(bound) => Ok(Indices { stream: Pcg64::new(self.seed), bound }),
            Err(_) => Err(StatsError::TooMany { got: n, limit }),
        }
    }

    /// The mean of every resample of `values`, in the order of the stream.
    ///
    /// # Errors
    /// When there is no value, one is not finite, a sum overflows, or there are no resamples.
    pub fn means(&self, values: &[f64]) -> Result<Vec<f64>, StatsError> {
        if self.resamples == 0 {
            return Err(StatsError::NoResamples);
        }
        all_finite(values)?;
        let mut indices = self.indices(values.len())?;
        let n = values.len() as f64;
        let rows = 0..self.resamples;
        let largest = values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        if values.iter().all(|value| value.fract() == 0.0) && largest * n <= EXACT {
            let integers: Vec<i64> = values.iter().map(|&value| value as i64).collect();
            return Ok(rows
                .map(|_| {
                    let sum: i64 = integers.iter().map(|_| integers[indices.draw()]).sum();
                    sum as f64 / n
                })
                .collect());
        }
        let mut resample = vec![0.0; values.len()];
        rows.map(|_| {
            resample.fill_with(|| values[indices.draw()]);
            in_range("mean of a resample", pairwise::sum(&resample) / n)
        })
        .collect()
    }

    /// The 5 % and 95 % quantiles of the means of all resamples of `values`.
    ///
    /// # Errors
    /// As [`Bootstrap::means`].
    pub fn bounds(&self, values: &[f64]) -> Result<Bounds, StatsError> {
        let mut means = self.means(values)?;
        means.sort_unstable_by(f64::total_cmp);
        Ok(Bounds { lower95: interpolated(&means, 0.05), upper95: interpolated(&means, 0.95) })
    }
}

/// An endless stream of indices `0..n`.
#[derive(Debug, Clone)]
pub struct Indices {
    stream: Pcg64,
    bound: u32,
}

impl Indices {
    /// The next index.
    #[inline]
    pub fn draw(&mut self) -> usize {
        self.stream.below(self.bound) as usize
    }
}
