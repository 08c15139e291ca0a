//! Thresholds in moves: when a quick check or a validation point is due.

use serde::{Deserialize, Serialize};

/// A threshold that moves on by a fixed number of moves.
///
/// It is asked once after each chunk and moves on by one step at most, so a chunk longer than the
/// step is checked once, not several times in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Every {
    /// Moves from threshold to threshold; 0 for never.
    pub every: u64,
    /// The next threshold, in moves of the run.
    pub next: u64,
}

impl Every {
    /// The thresholds at multiples of `every` above `moves`, for a run that has played `moves`.
    pub const fn after(moves: u64, every: u64) -> Self {
        let next = match moves.checked_div(every) {
            Some(passed) => (passed + 1).saturating_mul(every),
            None => u64::MAX,
        };
        Self { every, next }
    }

    /// Whether the threshold is reached at `moves`; if so, it moves on by one step.
    pub const fn is_due(&mut self, moves: u64) -> bool {
        if self.every == 0 || moves < self.next {
            return false;
        }
        self.next = self.next.saturating_add(self.every);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Every;

    #[test]
    fn one_step_per_question() {
        let mut every = Every::after(0, 1_000);
        assert!(!every.is_due(999));
        assert!(every.is_due(3_500), "a long chunk is due");
        assert_eq!(every.next, 2_000, "by one step");
        assert!(every.is_due(3_600));
        assert!(every.is_due(3_700));
        assert!(!every.is_due(3_999));
    }

    #[test]
    fn a_resumed_run_goes_on_at_the_next_multiple() {
        assert_eq!(Every::after(2_000, 1_000).next, 3_000);
        assert_eq!(Every::after(2_999, 1_000).next, 3_000);
    }

    #[test]
    fn zero_is_never() {
        let mut never = Every::after(5, 0);
        assert!(!never.is_due(u64::MAX));
    }
}
