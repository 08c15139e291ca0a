//! The plateau rule: when the validation curve of a run no longer rises.
//!
//! The rule is a pure function of the margins so far, and a reading keeps the numbers it was made
//! from, so that a stop can be argued with later. It is a rule about noise as much as about
//! learning: a reading says what the windows were, not that learning has ended.

use serde::{Deserialize, Serialize};

/// One evaluation of the rule, with its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlateauReading {
    /// Validation points there were.
    pub points: usize,
    /// Points in each of the two windows.
    pub window: usize,
    /// Mean margin of the last `window` points, in game points.
    pub recent_mean: f64,
    /// Mean margin of the `window` points before those.
    pub previous_mean: f64,
    /// Whether the run stops: the recent mean is not larger than the previous one.
    pub stop: bool,
}

/// Compares the mean of the last `window` margins with the mean of the `window` before.
///
/// `None` while the rule does not apply: `window` is 0 (no rule), or there are fewer than
/// `min_points` or fewer than two windows of margins.
pub fn evaluate(margins: &[f64], window: usize, min_points: usize) -> Option<PlateauReading> {
    let points = margins.len();
    if window == 0 || points < min_points || points / 2 < window {
        return None;
    }
    let (before, recent) = margins.split_at(points - window);
    let recent_mean = mean(recent);
    let previous_mean = mean(&before[before.len() - window..]);
    Some(PlateauReading {
        points,
        window,
        recent_mean,
        previous_mean,
        stop: recent_mean <= previous_mean,
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::evaluate;

    #[test]
    fn waits_for_enough_points_and_for_two_windows() {
        let margins = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(evaluate(&margins, 0, 0), None, "no window, no rule");
        assert_eq!(evaluate(&margins, 2, 6), None, "fewer than the minimum");
        assert_eq!(evaluate(&margins, 3, 1), None, "fewer than two windows");
        assert_eq!(evaluate(&margins, usize::MAX, 1), None, "a window nobody can fill");
        assert_eq!(evaluate(&[], 1, 0), None);
    }

    #[test]
    fn a_rise_goes_on_and_a_tie_stops() {
        let rise = evaluate(&[9.0, 1.0, 2.0, 3.0, 4.0], 2, 1).unwrap();
        assert_eq!((rise.points, rise.window), (5, 2));
        assert_eq!((rise.recent_mean, rise.previous_mean, rise.stop), (3.5, 1.5, false));
        assert!(evaluate(&[1.0, 3.0, 2.0, 2.0], 2, 4).unwrap().stop, "equal means stop");
        assert!(evaluate(&[3.0, 2.0], 1, 2).unwrap().stop);
    }
}
