//! The protocol: what was promised before the data was seen.
//!
//! A [`Protocol`] is complete: every default is filled in, every name resolves, every number is in
//! range. It is the only form that is hashed, stored and executed. Documents of people (TOML) and
//! agents (JSON) become one through [`parse()`] or are refused with every fault at once.

mod document;
mod estimate;
mod fields;
mod growth;
mod parse;
mod screening;
mod seeds;
mod tables;
mod training;
mod validation;
mod values;

use std::collections::BTreeMap;

pub use engine_core::check::identity::RULES;
use engine_core::stats::gate::Criterion;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use estimate::{ArmEstimate, ArmStage, Estimate, Peak, TableEstimate, Totals, estimate};
pub use parse::{MediaType, parse, parse_theory};

use super::ids::{ExperimentId, TheoryId};
use super::seed_range::Seed;

/// The format word of this version.
pub const FORMAT: &str = "heldout-protocol-v1";

/// Name of the table that training ends in.
pub const CANDIDATE: &str = "candidate";
/// Name of the hand-written leaf.
pub const FAIR: &str = "fair";

/// A complete protocol document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Protocol {
    /// [`FORMAT`].
    pub format: String,
    /// What kind of study this is.
    pub kind: Kind,
    /// One line.
    pub title: String,
    /// What is claimed, in prose.
    pub hypothesis: String,
    /// The theory under test.
    pub theory: TheoryRef,
    /// The experiment this one amends, and why.
    pub amends: Option<Amendment>,
    /// How strong the data is meant to be.
    pub tier: Tier,
    /// What the players may see.
    pub information: Information,
    /// Rules id of the engine, like `drop7-1`.
    pub engine: String,
    /// What the run may use.
    pub budget: Budget,
    /// Seed blocks by name.
    pub seeds: BTreeMap<String, SeedBlock>,
    /// How thorough the CHECK gates are.
    pub checks: Checks,
    /// Training arms; empty when frozen tables are screened.
    pub train: Vec<TrainArm>,
    /// How one training arm is chosen; absent without training.
    pub select: Option<Select>,
    /// The long run of the chosen arm; absent when the chosen arm's best point is the candidate.
    pub main: Option<MainRun>,
    /// Frozen tables of earlier runs, by digest.
    pub tables: Vec<PriorTable>,
    /// Edits of frozen tables.
    pub edits: Vec<Edit>,
    /// The held-out comparison.
    pub screen: Screen,
    /// What decides.
    pub gate: Gate,
    /// What is reported beside the gate.
    pub readings: Vec<Reading>,
}

/// Kinds of study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Drop7 tables: train, freeze, screen.
    Tables,
}

/// A theory on record, or one to be recorded with this protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum TheoryRef {
    /// A theory on record.
    Known(TheoryId),
    /// A theory that is recorded together with the experiment.
    New(TheoryDraft),
}

/// The text of a new theory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TheoryDraft {
    /// One line.
    pub title: String,
    /// What is claimed.
    pub claim: String,
    /// Why it should be so.
    pub mechanism: String,
    /// What would prove it wrong; at least one.
    pub falsification_criteria: Vec<String>,
}

/// Link to the experiment a protocol amends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Amendment {
    /// The amended experiment.
    pub experiment: ExperimentId,
    /// Why.
    pub reason: String,
}

/// Strength of the data, from mechanics to final confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Mechanics only.
    Check,
    /// Feasibility.
    Pilot,
    /// First comparison on a fresh block.
    Screen,
    /// Fixed cohort.
    Standard,
    /// 256 fresh games with absolute thresholds.
    Qualify,
}

/// What players may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Information {
    /// The public state only.
    PublicPolicy,
}

/// What a run may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Worker threads, 1..=1024.
    pub threads: u32,
    /// Resident bytes.
    pub memory_bytes: u64,
    /// Wall seconds over all sessions.
    pub wall_seconds: u64,
}

/// A block of seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedBlock {
    /// What the seeds may be used for.
    pub role: Role,
    /// First seed; absent when the daemon draws the next free aligned block.
    #[schema(value_type = Option<String>)]
    pub start: Option<Seed>,
    /// How many seeds.
    pub count: u32,
}

/// What a block of seeds may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Read in order, wrapped, read again; the wraps are counted.
    Training,
    /// Read at every point; it selects, so it can confirm nothing.
    Validation,
    /// Opened exactly once.
    HeldOut,
}

/// Thoroughness of the CHECK gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Checks {
    /// Every gate, on fewer games and words: seconds.
    Quick,
    /// Every gate as published: minutes.
    Full,
}

/// One training arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainArm {
    /// Name, unique among the arms.
    pub name: String,
    /// Canonical layout string.
    pub layout: String,
    /// Moves to train, in total over all sessions.
    pub moves: u64,
    /// Moves between two rows of the curve.
    pub chunk_moves: u64,
    /// Threads. With 1, or in lockstep with any number, training is bit-reproducible.
    pub threads: u32,
    /// Games in flight when threads train in lockstep, 1..=1024; absent when they train lock-free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lockstep_games: Option<u32>,
    /// Learning rate.
    pub alpha: f64,
    /// Share of random moves, 0..=1.
    pub epsilon: f64,
    /// Value of an unseen board, in rises.
    pub optimistic_rises: f64,
    /// Largest error that is learnt from, in rises.
    pub clamp_rises: f64,
    /// Longest game.
    pub move_cap: u32,
    /// Seed of the exploration streams.
    #[schema(value_type = String)]
    pub train_seed: Seed,
    /// Block the games come from.
    pub seeds: String,
    /// Validation points.
    pub validate: Validate,
    /// When to stop before the moves are spent.
    pub stop: StopRule,
    /// Tables to start from: a name in `tables`.
    pub init_from: Option<String>,
}

/// Validation points of an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Validate {
    /// Block the games come from.
    pub seeds: String,
    /// Moves between points.
    pub every_moves: u64,
    /// Games per point, at most the size of the block.
    pub games: u32,
    /// Search of the tables and of the fair control.
    pub search: SearchSpec,
}

/// Depth and strata of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchSpec {
    /// Plies, 1..=4.
    pub depth: u32,
    /// Chance samples per move, 1..=7.
    pub strata: u32,
}

/// Early stops of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StopRule {
    /// Stop when the mean margin of the last window is not above the one before.
    pub plateau: Option<Plateau>,
}

/// The plateau rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Plateau {
    /// Points per window.
    pub window: u32,
    /// Points before the rule is looked at.
    pub min_points: u32,
}

/// How one training arm is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Select {
    /// The rule.
    pub rule: SelectRule,
}

/// Rules of selection. Ties go to fewer entries, then to the earlier arm of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SelectRule {
    /// The largest margin at the last point.
    LargestFinalMargin,
    /// The largest margin at any point.
    LargestBestMargin,
}

/// The long run of the chosen arm, from fresh tables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MainRun {
    /// Moves to train, in total over all sessions.
    pub moves: u64,
    /// Moves between two rows of the curve.
    pub chunk_moves: u64,
    /// Validation points.
    pub validate: Validate,
    /// When to stop before the moves are spent.
    pub stop: StopRule,
    /// Which point becomes the table `candidate`.
    pub freeze: Freeze,
}

/// Which point is frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Freeze {
    /// The point with the largest margin; ties to the earlier one.
    LargestMargin,
    /// The last point.
    Final,
}

/// A table that exists already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PriorTable {
    /// Name used in arms.
    pub name: String,
    /// SHA-256 of the plain file.
    pub sha256: String,
}

/// An edit of a frozen table, without training.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Name of the edited table.
    pub name: String,
    /// Name of the source table.
    pub of: String,
    /// What untouched entries become.
    pub set_untouched_to: EditRule,
}

/// What untouched entries become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EditRule {
    /// 0.
    Zero,
    /// The mean of the touched entries of their class.
    ClassMean,
}

/// The held-out comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Screen {
    /// The held-out block.
    pub seeds: String,
    /// Longest game.
    pub move_cap: u32,
    /// Arms, all on the same seeds.
    pub arms: Vec<ScreenArm>,
}

/// One arm of a screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScreenArm {
    /// Name, unique among the arms.
    pub name: String,
    /// Who plays.
    pub player: PlayerSpec,
}

/// Who plays an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlayerSpec {
    /// Expectimax with a leaf: `fair` or the name of a table.
    Search {
        /// Depth and strata.
        search: SearchSpec,
        /// `fair` or the name of a table.
        leaf: String,
    },
    /// One ply over a table.
    Direct {
        /// The name of a table.
        table: String,
    },
}

/// What decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Candidate arm and reference arm.
    pub contrast: [String; 2],
    /// What must hold, all of it.
    #[schema(value_type = Vec<String>)]
    pub criteria: Vec<Criterion>,
}

/// A reading beside the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Name, unique among the readings.
    pub name: String,
    /// What is compared.
    pub of: ReadingOf,
    /// The words it may end in.
    pub verdicts: Verdicts,
}

/// What a reading compares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReadingOf {
    /// One arm minus another.
    Contrast([String; 2]),
    /// The difference of two contrasts, game by game.
    DifferenceOf([[String; 2]; 2]),
}

/// The words of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdicts {
    /// supported, refuted, inconclusive.
    SupportedRefutedInconclusive,
    /// larger, smaller, inconclusive.
    LargerSmallerInconclusive,
    /// pass, fail: the gate's criteria applied to another contrast.
    PassFail,
}
