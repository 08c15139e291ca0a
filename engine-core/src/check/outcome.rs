//! What a gate says.

use serde::{Deserialize, Serialize};

/// The answer of one gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckOutcome {
    /// Name of the gate, with its subject in brackets when it is asked more than once.
    pub name: String,
    /// Whether everything compared was as it must be.
    pub passed: bool,
    /// What was compared, how much of it, and the first disagreement when there is one.
    pub evidence: String,
}

impl CheckOutcome {
    /// A gate whose subject could not even be built.
    pub(super) fn impossible(name: &str, error: impl std::fmt::Display) -> Self {
        Self { name: name.to_owned(), passed: false, evidence: format!("could not run: {error}") }
    }
}

/// Comparisons of one gate so far.
#[derive(Debug)]
pub(super) struct Comparison {
    made: u64,
    failed: u64,
    first: Option<String>,
}

impl Comparison {
    pub(super) const fn new() -> Self {
        Self { made: 0, failed: 0, first: None }
    }

    /// Counts one comparison; `fault` describes it when it failed and no earlier one did.
    pub(super) fn check(&mut self, held: bool, fault: impl FnOnce() -> String) {
        self.made += 1;
        if !held {
            self.failed += 1;
            self.first.get_or_insert_with(fault);
        }
    }

    /// Whether no comparison failed so far.
    pub(super) const fn holds(&self) -> bool {
        self.failed == 0
    }

    /// The answer. Nothing compared is not a pass. `evidence` gets the number of comparisons.
    pub(super) fn outcome(self, name: &str, evidence: impl FnOnce(u64) -> String) -> CheckOutcome {
        let (passed, evidence) = match self.first {
            Some(first) => (
                false,
                format!("{} of {} comparisons failed; first: {first}", self.failed, self.made),
            ),
            None if self.made == 0 => (false, "nothing was compared".to_owned()),
            None => (true, evidence(self.made)),
        };
        CheckOutcome { name: name.to_owned(), passed, evidence }
    }
}
