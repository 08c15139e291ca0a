//! Words for a contrast: what a bound above or below zero is called. A reading never has more than
//! these outcomes, and it always keeps the figures it was read from.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Paired;

/// What a contrast says about "the candidate is better".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Both 95 % lower bounds, bootstrap and Student, are above zero.
    Supported,
    /// Not supported, and the bootstrap 95 % upper bound is below zero.
    Refuted,
    /// Neither: the detection floor says what the block could have seen.
    Inconclusive,
}

/// What a difference of two differences says about "the first step is larger".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InteractionVerdict {
    /// Both 95 % lower bounds are above zero.
    Larger,
    /// Not larger, and the bootstrap 95 % upper bound is below zero.
    Smaller,
    /// Neither.
    Inconclusive,
}

/// The outcome of a gate, or of a reading that asks all criteria of a gate again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every criterion holds.
    Pass,
    /// At least one does not.
    Fail,
}

impl Verdict {
    /// The three-way verdict of a contrast.
    pub fn of(paired: &Paired) -> Self {
        if both_lower_bounds_above_zero(paired) {
            Self::Supported
        } else if upper_bound_below_zero(paired) {
            Self::Refuted
        } else {
            Self::Inconclusive
        }
    }

    /// The word, as in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Refuted => "refuted",
            Self::Inconclusive => "inconclusive",
        }
    }
}

impl InteractionVerdict {
    /// The three-way verdict of an interaction (see [`super::interaction()`]).
    pub fn of(paired: &Paired) -> Self {
        match Verdict::of(paired) {
            Verdict::Supported => Self::Larger,
            Verdict::Refuted => Self::Smaller,
            Verdict::Inconclusive => Self::Inconclusive,
        }
    }

    /// The word, as in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Larger => "larger",
            Self::Smaller => "smaller",
            Self::Inconclusive => "inconclusive",
        }
    }
}

impl Outcome {
    /// Pass when `passed`.
    pub const fn of(passed: bool) -> Self {
        if passed { Self::Pass } else { Self::Fail }
    }

    /// The word, as in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
        }
    }

    /// What is said about the hypothesis of the protocol, no more than was tested.
    pub const fn wording(self) -> &'static str {
        match self {
            Self::Pass => "supported-as-tested",
            Self::Fail => "not-supported-as-tested",
        }
    }
}

/// Whether the bootstrap and the Student 95 % lower bound are both above zero.
pub fn both_lower_bounds_above_zero(paired: &Paired) -> bool {
    paired.bootstrap_lower95 > 0.0 && paired.student_t_lower95 > 0.0
}

/// Whether the bootstrap 95 % upper bound is below zero: the usual falsifier of a theory.
pub fn upper_bound_below_zero(paired: &Paired) -> bool {
    paired.bootstrap_upper95 < 0.0
}

/// Whether the bootstrap 95 % lower bound is zero or below: an effect that did not persist.
pub fn lower_bound_at_or_below_zero(paired: &Paired) -> bool {
    paired.bootstrap_lower95 <= 0.0
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl fmt::Display for InteractionVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
