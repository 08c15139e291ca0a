//! Two arms on identical seeds, compared game by game.

use serde::{Deserialize, Serialize};

use super::bootstrap::Bootstrap;
use super::quantile::{interpolated, sorted};
use super::{StatsError, all_finite, hex_seed, in_range, pairwise, student};

/// How many of the largest differences are kept.
const SWINGS: usize = 5;
/// Factor of the detection floor: the normal 95 % quantile to three decimals, by definition.
const FLOOR_Z: f64 = 1.645;

/// The statistics of `candidate - reference`, in the unit of the series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// Pairs, at least 2.
    pub n: usize,
    /// Mean difference.
    pub mean_delta: f64,
    /// Sample standard deviation of the differences, divisor n - 1.
    pub paired_sd: f64,
    /// One-sided 95 % bootstrap bound from below.
    pub bootstrap_lower95: f64,
    /// One-sided 95 % bootstrap bound from above.
    pub bootstrap_upper95: f64,
    /// One-sided 95 % Student bound from below.
    pub student_t_lower95: f64,
    /// The Student quantile behind it, n - 1 degrees of freedom.
    pub student_t_quantile: f64,
    /// The mean difference that this many pairs could just tell from zero: 1.645 sd / sqrt(n).
    pub detection_floor: f64,
    /// Pairs in which the candidate is ahead.
    pub wins: usize,
    /// Pairs without a difference.
    pub ties: usize,
    /// Pairs in which the reference is ahead.
    pub losses: usize,
    /// Mean difference of the first `n / 2` pairs, in seed order.
    pub first_half_mean_delta: f64,
    /// Mean difference of the other pairs.
    pub second_half_mean_delta: f64,
    /// Lower quartile of the candidate's own values.
    pub candidate_q25: f64,
    /// Lower quartile of the reference's own values.
    pub reference_q25: f64,
    /// `candidate_q25 - reference_q25`.
    pub q25_delta: f64,
    /// The five differences of largest magnitude, largest first; equal ones in seed order.
    pub largest_swings: Vec<f64>,
    /// Seed of the bootstrap stream.
    #[serde(with = "hex_seed")]
    pub bootstrap_seed: u32,
    /// Resamples of the bootstrap.
    pub resamples: u32,
}

impl Paired {
    /// Compares `candidate[k]` with `reference[k]` for every k, with the published bootstrap.
    ///
    /// # Errors
    /// When the series differ in length, hold fewer than two values or one that is not finite, or
    /// a figure overflows.
    pub fn of(candidate: &[f64], reference: &[f64]) -> Result<Self, StatsError> {
        Self::with_bootstrap(candidate, reference, Bootstrap::default())
    }

    /// [`Paired::of`] with another bootstrap.
    ///
    /// # Errors
    /// As [`Paired::of`], and when `bootstrap` has no resamples.
    pub fn with_bootstrap(
        candidate: &[f64],
        reference: &[f64],
        bootstrap: Bootstrap,
    ) -> Result<Self, StatsError> {
        let deltas = differences(candidate, reference)?;
        let n = deltas.len();
        if n < 2 {
            return Err(StatsError::TooFew { got: n, needed: 2 });
        }
        let mean_delta = pairwise::mean(&deltas)?;
        let paired_sd = pairwise::sample_sd(&deltas)?;
        let bounds = bootstrap.bounds(&deltas)?;
        let t = student::quantile95(n - 1);
        let root = (n as f64).sqrt();
        let (first, second) = deltas.split_at(n / 2);
        let candidate_q25 = interpolated(&sorted(candidate)?, 0.25);
        let reference_q25 = interpolated(&sorted(reference)?, 0.25);
        let mut largest_swings = deltas.clone();
        largest_swings.sort_by(|a, b| b.abs().total_cmp(&a.abs()));
        largest_swings.truncate(SWINGS);
        let count = |holds: fn(f64) -> bool| deltas.iter().filter(|&&delta| holds(delta)).count();
        Ok(Self {
            n,
            mean_delta,
            paired_sd,
            bootstrap_lower95: bounds.lower95,
            bootstrap_upper95: bounds.upper95,
            student_t_lower95: in_range("Student bound", mean_delta - t * paired_sd / root)?,
            student_t_quantile: t,
            detection_floor: in_range("detection floor", FLOOR_Z * paired_sd / root)?,
            wins: count(|delta| delta > 0.0),
            ties: count(|delta| delta == 0.0),
            losses: count(|delta| delta < 0.0),
            first_half_mean_delta: pairwise::mean(first)?,
            second_half_mean_delta: pairwise::mean(second)?,
            candidate_q25,
            reference_q25,
            q25_delta: in_range("difference of quartiles", candidate_q25 - reference_q25)?,
            largest_swings,
            bootstrap_seed: bootstrap.seed,
            resamples: bootstrap.resamples,
        })
    }
}

/// `left[k] - right[k]` for every k.
///
/// # Errors
/// When the series differ in length, or a value or a difference is not finite.
pub fn differences(left: &[f64], right: &[f64]) -> Result<Vec<f64>, StatsError> {
    if left.len() != right.len() {
        return Err(StatsError::Unpaired { left: left.len(), right: right.len() });
    }
    all_finite(left)?;
    all_finite(right)?;
    left.iter().zip(right).map(|(a, b)| in_range("difference", a - b)).collect()
}
