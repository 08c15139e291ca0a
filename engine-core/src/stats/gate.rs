//! The gate of a protocol: named criteria on one contrast of a complete screen. A gate has no
//! judgement: a criterion holds or not, and the numbers it was decided on are part of the answer.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Paired;
use super::cohort::{ArmIntegrity, Cohort, CohortError, Metric};
use super::reading::Outcome;

/// A condition that a protocol can put into its gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// No arm of the screen has an illegal or an incomplete decision.
    NoIllegalOrIncomplete,
    /// The bootstrap 95 % lower bound of the contrast is above zero.
    BootstrapLowerAboveZero,
    /// The Student 95 % lower bound of the contrast is above zero.
    StudentLowerAboveZero,
    /// The mean difference is above zero in each half of the block.
    BothHalvesPositive,
    /// The lower quartile of the candidate is not below that of the reference.
    LowerQuartileNotWorse,
    /// Every table was played with the digest that was frozen before the block was opened.
    FrozenDigests,
}

impl Criterion {
    /// All criteria, in the order in which they are reported.
    pub const ALL: [Self; 6] = [
        Self::NoIllegalOrIncomplete,
        Self::BootstrapLowerAboveZero,
        Self::StudentLowerAboveZero,
        Self::BothHalvesPositive,
        Self::LowerQuartileNotWorse,
        Self::FrozenDigests,
    ];

    /// The name of the criterion in protocols and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoIllegalOrIncomplete => "no-illegal-or-incomplete",
            Self::BootstrapLowerAboveZero => "bootstrap-lower-above-zero",
            Self::StudentLowerAboveZero => "student-lower-above-zero",
            Self::BothHalvesPositive => "both-halves-positive",
            Self::LowerQuartileNotWorse => "lower-quartile-not-worse",
            Self::FrozenDigests => "frozen-digests",
        }
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A table of the screen: the SHA-256 that was frozen and the one that was played, as 64 lower-case
/// hex digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDigests {
    /// Name of the table.
    pub table: String,
    /// Recorded before the block was opened.
    pub frozen: String,
    /// Computed from what the screen read.
    pub played: String,
}

/// The numbers behind one check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Observed {
    /// Behind [`Criterion::NoIllegalOrIncomplete`].
    Decisions {
        /// Illegal decisions of all arms.
        illegal: u64,
        /// Incomplete decisions of all arms.
        incomplete: u64,
        /// The same per arm.
        arms: Vec<ArmIntegrity>,
    },
    /// Behind a criterion about a lower bound.
    LowerBound {
        /// The bound.
        lower95: f64,
    },
    /// Behind [`Criterion::BothHalvesPositive`].
    Halves {
        /// Mean difference of the first half.
        first: f64,
        /// Mean difference of the second half.
        second: f64,
    },
    /// Behind [`Criterion::LowerQuartileNotWorse`].
    Quartiles {
        /// Lower quartile of the candidate.
        candidate: f64,
        /// Lower quartile of the reference.
        reference: f64,
    },
    /// Behind [`Criterion::FrozenDigests`].
    Digests {
        /// Every table that was played.
        tables: Vec<TableDigests>,
    },
}

/// One criterion, decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateCheck {
    /// The criterion.
    pub criterion: Criterion,
    /// Whether it holds.
    pub passed: bool,
    /// What it was decided on.
    pub observed: Observed,
}

/// A gate, decided: all criteria of the protocol on one contrast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateReport {
    /// The arm that should be better.
    pub candidate: String,
    /// The arm it is compared with.
    pub reference: String,
    /// One check per criterion, in the order of the protocol.
    pub checks: Vec<GateCheck>,
    /// Pass when every check passed.
    pub outcome: Outcome,
    /// The contrast of the scores.
    pub paired: Paired,
}

/// Why a gate was not evaluated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// A gate without criteria would always pass.
    #[error("a gate needs at least one criterion")]
    NoCriteria,
    /// A criterion is named twice.
    #[error("criterion `{0}` is named twice")]
    DoubleCriterion(Criterion),
    /// Digests are to be compared and there is none.
    #[error("criterion `frozen-digests` needs at least one table that the screen played")]
    NoTables,
    /// A digest that is no SHA-256.
    #[error("`{digest}` of table `{table}` is not 64 lower-case hex digits")]
    Digest {
        /// Name of the table.
        table: String,
        /// The text.
        digest: String,
    },
    /// The games are not the planned ones, or their contrast is refused.
    #[error(transparent)]
    Cohort(#[from] CohortError),
}

/// Decides `criteria` on `candidate - reference` of a complete screen.
///
/// # Errors
/// When there is no criterion, one is named twice, an arm is unknown, the contrast is refused, or
/// digests are asked for and missing or malformed.
pub fn evaluate(
    cohort: &Cohort,
    candidate: &str,
    reference: &str,
    criteria: &[Criterion],
    tables: &[TableDigests],
) -> Result<GateReport, GateError> {
    if criteria.is_empty() {
        return Err(GateError::NoCriteria);
    }
    if let Some(k) = (1..criteria.len()).find(|&k| criteria[..k].contains(&criteria[k])) {
        return Err(GateError::DoubleCriterion(criteria[k]));
    }
    let paired = cohort.contrast(candidate, reference, Metric::Score)?;
    let checks = criteria
        .iter()
        .map(|&criterion| check(criterion, cohort, &paired, tables))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(GateReport {
        candidate: candidate.to_owned(),
        reference: reference.to_owned(),
        outcome: Outcome::of(checks.iter().all(|check| check.passed)),
        checks,
        paired,
    })
}

fn check(
    criterion: Criterion,
    cohort: &Cohort,
    paired: &Paired,
    tables: &[TableDigests],
) -> Result<GateCheck, GateError> {
    let (passed, observed) = match criterion {
        Criterion::NoIllegalOrIncomplete => {
            let arms = cohort.integrity();
            let illegal = arms.iter().map(|arm| arm.illegal).sum();
            let incomplete = arms.iter().map(|arm| arm.incomplete).sum();
            (illegal == 0 && incomplete == 0, Observed::Decisions { illegal, incomplete, arms })
        }
        Criterion::BootstrapLowerAboveZero => lower_bound(paired.bootstrap_lower95),
        Criterion::StudentLowerAboveZero => lower_bound(paired.student_t_lower95),
        Criterion::BothHalvesPositive => {
            let (first, second) = (paired.first_half_mean_delta, paired.second_half_mean_delta);
            (first > 0.0 && second > 0.0, Observed::Halves { first, second })
        }
        Criterion::LowerQuartileNotWorse => {
            let (candidate, reference) = (paired.candidate_q25, paired.reference_q25);
            (candidate >= reference, Observed::Quartiles { candidate, reference })
        }
        Criterion::FrozenDigests => {
            let same = digests_agree(tables)?;
            (same, Observed::Digests { tables: tables.to_vec() })
        }
    };
    Ok(GateCheck { criterion, passed, observed })
}

fn lower_bound(lower95: f64) -> (bool, Observed) {
    (lower95 > 0.0, Observed::LowerBound { lower95 })
}

fn digests_agree(tables: &[TableDigests]) -> Result<bool, GateError> {
    if tables.is_empty() {
        return Err(GateError::NoTables);
    }
    for table in tables {
        for digest in [&table.frozen, &table.played] {
            let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
            if digest.len() != 64 || !digest.bytes().all(hex) {
                return Err(GateError::Digest {
                    table: table.table.clone(),
                    digest: digest.clone(),
                });
            }
        }
    }
    Ok(tables.iter().all(|table| table.frozen == table.played))
}
