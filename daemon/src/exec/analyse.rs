//! The verdict, from stored rows only: arm summaries, contrasts, gate, readings.
//!
//! Promised: [`analyse`] is a pure function of the protocol, the lease, the digests and the rows, so
//! a verification can make it again and compare every bit. Refused: a screen in which any arm lacks
//! a planned game or holds one that is not planned.

use std::collections::BTreeMap;

use engine_core::stats::gate::{GateCheck, GateReport, TableDigests, evaluate};
use engine_core::stats::{
    Cohort, Criterion, InteractionVerdict, Metric, Outcome as GateOutcome, Paired, Played,
    ScreenPlan, Summary, Verdict,
};
use serde::{Deserialize, Serialize};

use super::freeze::table_refs;
use super::plan::screen_key;
use super::screen::{ScreenOutput, table_of};
use super::unit::{Ending, Report, UnitContext, UnitResult, output};
use super::wording::{limitations, sentence, tier_name};
use crate::domain::ids::{InstantId as _, LeaseId, ResultId};
use crate::domain::protocol::{Protocol, Reading, ReadingOf, Role, Verdicts};
use crate::domain::records::{
    GameRecord, Lease, Origin, Outcome, ResultRecord, TableDigest, Validity,
};
use crate::domain::refusal::{Code, Refusal};
use crate::domain::seed_range::Seed;

/// Scores from here on are counted as million games.
const MILLION: i64 = 1_000_000;

/// Everything a verdict rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// The held-out block.
    pub block: Block,
    /// Every arm, in the order of the protocol.
    pub arms: Vec<ArmSummary>,
    /// The gate's contrast, those of the readings, and every other arm against the gate's reference.
    pub contrasts: Vec<Contrast>,
    /// The gate, decided.
    pub gate: GateReport,
    /// The readings, in the order of the protocol.
    pub readings: Vec<ReadingReport>,
}

/// The seeds that were played.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// The lease.
    pub lease: LeaseId,
    /// First seed.
    pub start: Seed,
    /// Games per arm.
    pub games: u32,
    /// What its seeds may be used for.
    pub role: Role,
}

/// One arm in figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    /// The arm.
    pub name: String,
    /// The table it played from.
    pub table: Option<String>,
    /// Points.
    pub score: Summary,
    /// Moves.
    pub moves: Summary,
    /// Numbered discs popped per move.
    pub clears_per_move: Option<f64>,
    /// Gray discs revealed per move.
    pub reveals_per_move: Option<f64>,
    /// Occupied cells after a move, mean over the games.
    pub mean_occupied_cells: Option<f64>,
    /// Deepest chain of any game.
    pub max_chain_depth: Option<u32>,
    /// Games cut by the move cap.
    pub censored: u32,
    /// Decisions that named no legal column.
    pub illegal: u64,
    /// Decisions below the depth of the arm.
    pub incomplete: u64,
    /// Games of at least a million points.
    pub million_games: u32,
    /// Logical work per game.
    pub mean_work: Option<f64>,
    /// Wall seconds per game, on the machine and under the load of the run.
    pub mean_wall_seconds: Option<f64>,
}

/// One arm minus another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    /// `candidate-vs-reference`.
    pub name: String,
    /// The arm that should be better.
    pub candidate: String,
    /// The arm it is compared with.
    pub reference: String,
    /// Of the scores.
    pub score: Paired,
    /// Of the moves.
    pub moves: Paired,
    /// The word for the scores.
    pub verdict: Verdict,
}

/// A reading, decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadingReport {
    /// Its name.
    pub name: String,
    /// What is compared.
    pub of: ReadingOf,
    /// The word it ends in.
    pub verdict: String,
    /// The figures it was read from.
    pub paired: Paired,
    /// The criteria of a pass-fail reading.
    pub checks: Vec<GateCheck>,
}

impl Analysis {
    /// Decisions that void the run, over all arms.
    pub fn void_decisions(&self) -> u64 {
        self.arms.iter().map(|arm| arm.illegal + arm.incomplete).sum()
    }

    /// Whether the process followed the protocol.
    pub fn validity(&self) -> Validity {
        if self.void_decisions() == 0 { Validity::Valid } else { Validity::Invalid }
    }

    /// What the data said; an invalid run says nothing.
    pub fn outcome(&self) -> Outcome {
        match (self.validity(), self.gate.outcome) {
            (Validity::Valid, GateOutcome::Pass) => Outcome::Pass,
            (Validity::Valid, GateOutcome::Fail) => Outcome::Fail,
            _ => Outcome::Inconclusive,
        }
    }

    /// The contrast the gate was decided on.
    pub fn gate_contrast(&self) -> Option<&Contrast> {
        self.contrasts.iter().find(|contrast| {
            contrast.candidate == self.gate.candidate && contrast.reference == self.gate.reference
        })
    }
}

/// Makes the analysis of a complete screen.
///
/// # Errors
/// When a planned game is missing, doubled, not planned, or has another seed than its ordinal says;
/// when a statistic is not defined for these rows.
pub fn analyse(
    protocol: &Protocol,
    lease: &Lease,
    tables: &[TableDigests],
    rows: &[GameRecord],
) -> Result<Analysis, Refusal> {
    let cohort = cohort(protocol, lease, rows)?;
    let mut by_arm: BTreeMap<&str, Vec<&GameRecord>> = BTreeMap::new();
    for row in rows {
        by_arm.entry(&row.arm).or_default().push(row);
    }
    let mut arms = Vec::new();
    for arm in &protocol.screen.arms {
        let mut rows = by_arm.remove(arm.name.as_str()).unwrap_or_default();
        rows.sort_by_key(|row| row.ordinal);
        let table = table_of(&arm.player).map(str::to_owned);
        arms.push(summary(&arm.name, table, &rows)?);
    }
    let contrasts = contrast_names(protocol)
        .into_iter()
        .map(|(candidate, reference)| contrast(&cohort, candidate, reference))
        .collect::<Result<Vec<_>, _>>()?;
    let [candidate, reference] = &protocol.gate.contrast;
    let criteria = &protocol.gate.criteria;
    let gate = evaluate(&cohort, candidate, reference, criteria, tables)
        .map_err(|error| Refusal::new(Code::Incomplete, format!("gate: {error}")))?;
    let readings = protocol
        .readings
        .iter()
        .map(|reading| decide(reading, &cohort, criteria, tables))
        .collect::<Result<Vec<_>, _>>()?;
    let block =
        Block { lease: lease.id.clone(), start: lease.start, games: lease.count, role: lease.role };
    Ok(Analysis { block, arms, contrasts, gate, readings })
}

/// The rows as the statistics want them, given that they are exactly the planned games.
///
/// # Errors
/// Names the first game that is missing, doubled, unplanned or of another seed.
pub fn cohort(protocol: &Protocol, lease: &Lease, rows: &[GameRecord]) -> Result<Cohort, Refusal> {
    let seeds: Vec<u32> = (0..lease.count).map(|ordinal| lease.start.0 + ordinal).collect();
    let mut by_arm: BTreeMap<String, Vec<Played>> = BTreeMap::new();
    for row in rows {
        let planned = lease.start.0.checked_add(row.ordinal);
        if planned != Some(row.seed_hex.0) {
            return Err(Refusal::new(
                Code::Corrupt,
                format!(
                    "game {} of arm {:?} has seed {}, and its lease begins at {}",
                    row.ordinal, row.arm, row.seed_hex, lease.start
                ),
            ));
        }
        by_arm.entry(row.arm.clone()).or_default().push(Played {
            seed: row.seed_hex.0,
            score: row.score,
            moves: row.moves,
            illegal_decisions: row.illegal_decisions,
            incomplete_decisions: row.incomplete_decisions,
        });
    }
    let names = protocol.screen.arms.iter().map(|arm| arm.name.clone());
    ScreenPlan::whole_block(seeds, names)
        .complete(by_arm)
        .map_err(|error| Refusal::new(Code::Incomplete, format!("nothing is judged: {error}")))
}

/// Candidate and reference of every contrast, each once, the gate's first.
fn contrast_names(protocol: &Protocol) -> Vec<(&str, &str)> {
    let [candidate, reference] = &protocol.gate.contrast;
    let mut names = vec![(candidate.as_str(), reference.as_str())];
    for reading in &protocol.readings {
        match &reading.of {
            ReadingOf::Contrast([a, b]) => names.push((a, b)),
            ReadingOf::DifferenceOf([[a, b], [c, d]]) => {
                names.extend([(a.as_str(), b.as_str()), (c.as_str(), d.as_str())]);
            }
        }
    }
    for arm in &protocol.screen.arms {
        if arm.name != *reference {
            names.push((&arm.name, reference));
        }
    }
    let mut unique: Vec<(&str, &str)> = Vec::new();
    for pair in names {
        if !unique.contains(&pair) {
            unique.push(pair);
        }
    }
    unique
}

fn contrast(cohort: &Cohort, candidate: &str, reference: &str) -> Result<Contrast, Refusal> {
    let paired = |metric| {
        cohort.contrast(candidate, reference, metric).map_err(|error| {
            Refusal::new(Code::Incomplete, format!("{candidate} against {reference}: {error}"))
        })
    };
    let score = paired(Metric::Score)?;
    Ok(Contrast {
        name: format!("{candidate}-vs-{reference}"),
        candidate: candidate.to_owned(),
        reference: reference.to_owned(),
        moves: paired(Metric::Moves)?,
        verdict: Verdict::of(&score),
        score,
    })
}

fn decide(
    reading: &Reading,
    cohort: &Cohort,
    criteria: &[Criterion],
    tables: &[TableDigests],
) -> Result<ReadingReport, Refusal> {
    let refuse = |error: &dyn std::fmt::Display| {
        Refusal::new(Code::Incomplete, format!("reading {:?}: {error}", reading.name))
    };
    let mut checks = Vec::new();
    let paired = match &reading.of {
        ReadingOf::Contrast([candidate, reference]) => {
            if reading.verdicts == Verdicts::PassFail {
                let report = evaluate(cohort, candidate, reference, criteria, tables)
                    .map_err(|error| refuse(&error))?;
                checks = report.checks;
                report.paired
            } else {
                cohort
                    .contrast(candidate, reference, Metric::Score)
                    .map_err(|error| refuse(&error))?
            }
        }
        ReadingOf::DifferenceOf([[a, b], [c, d]]) => {
            cohort.interaction((a, b), (c, d)).map_err(|error| refuse(&error))?
        }
    };
    let verdict = match reading.verdicts {
        Verdicts::SupportedRefutedInconclusive => Verdict::of(&paired).word(),
        Verdicts::LargerSmallerInconclusive => InteractionVerdict::of(&paired).word(),
        Verdicts::PassFail if checks.is_empty() => {
            GateOutcome::of(Verdict::of(&paired) == Verdict::Supported).word()
        }
        Verdicts::PassFail => GateOutcome::of(checks.iter().all(|check| check.passed)).word(),
    };
    Ok(ReadingReport {
        name: reading.name.clone(),
        of: reading.of.clone(),
        verdict: verdict.to_owned(),
        paired,
        checks,
    })
}

/// The figures of one arm. `rows` are its games in seed order.
///
/// # Errors
/// When there is no game.
pub fn summary(
    name: &str,
    table: Option<String>,
    rows: &[&GameRecord],
) -> Result<ArmSummary, Refusal> {
    let of = |value: fn(&GameRecord) -> f64| {
        let values: Vec<f64> = rows.iter().map(|&row| value(row)).collect();
        Summary::of(&values)
            .map_err(|error| Refusal::new(Code::Incomplete, format!("arm {name:?}: {error}")))
    };
    let moves: u64 = rows.iter().map(|row| u64::from(row.moves)).sum();
    let per_move = |value: fn(&GameRecord) -> Option<u64>| {
        sum(rows, value).map(|total| total as f64 / moves.max(1) as f64)
    };
    let count =
        |holds: fn(&GameRecord) -> bool| rows.iter().filter(|&&row| holds(row)).count() as u32;
    Ok(ArmSummary {
        name: name.to_owned(),
        table,
        score: of(|row| row.score as f64)?,
        moves: of(|row| f64::from(row.moves))?,
        clears_per_move: per_move(|row| row.numbered_cleared),
        reveals_per_move: per_move(|row| row.covers_revealed),
        mean_occupied_cells: mean(rows, |row| row.mean_occupied_cells),
        max_chain_depth: rows
            .iter()
            .map(|row| row.max_chain_depth)
            .collect::<Option<Vec<_>>>()
            .and_then(|depths| depths.into_iter().max()),
        censored: count(|row| row.censored),
        illegal: rows.iter().map(|row| u64::from(row.illegal_decisions)).sum(),
        incomplete: rows.iter().map(|row| u64::from(row.incomplete_decisions)).sum(),
        million_games: count(|row| row.score >= MILLION),
        mean_work: sum(rows, |row| row.work).map(|total| total as f64 / rows.len() as f64),
        mean_wall_seconds: mean(rows, |row| row.wall_seconds),
    })
}

/// The sum of a figure that every row has.
fn sum(rows: &[&GameRecord], value: fn(&GameRecord) -> Option<u64>) -> Option<u64> {
    rows.iter().map(|&row| value(row)).sum()
}

/// The mean of a figure that every row has, added in seed order.
fn mean(rows: &[&GameRecord], value: fn(&GameRecord) -> Option<f64>) -> Option<f64> {
    let total: Option<f64> = rows.iter().map(|&row| value(row)).sum();
    total.map(|total| total / rows.len() as f64)
}

/// Frozen digests of the opening beside the digests of what each arm read.
pub fn digests(
    frozen: &[TableDigest],
    played: impl IntoIterator<Item = TableDigest>,
) -> Vec<TableDigests> {
    let mut tables: Vec<TableDigests> = Vec::new();
    for read in played {
        let known = frozen.iter().find(|known| known.name == read.name);
        let pair = TableDigests {
            frozen: known.map_or_else(|| "0".repeat(64), |known| known.sha256.clone()),
            table: read.name,
            played: read.sha256,
        };
        if !tables.contains(&pair) {
            tables.push(pair);
        }
    }
    tables
}

/// The unit: analyses the stored rows and reports the result.
pub(super) fn run(context: &UnitContext) -> UnitResult {
    if let Some(result) = &context.status.result {
        // An earlier attempt ended between its verdict and its last word.
        return output(&serde_json::json!({ "result": result.id }));
    }
    let protocol = &context.protocol;
    let lease = context.lease(&protocol.screen.seeds)?;
    let frozen = lease.opening.as_ref().map(|opening| opening.tables.clone()).ok_or_else(|| {
        Ending::Failed(format!("{} was never opened, so there is nothing to judge", lease.id))
    })?;
    let mut played = Vec::new();
    for arm in &protocol.screen.arms {
        played.extend(context.output::<ScreenOutput>(&screen_key(&arm.name))?.played);
    }
    // Names that were frozen and names that were played come from two sources on purpose.
    let known = table_refs(context)?;
    if known.len() != frozen.len() {
        return Err(Ending::Failed(String::from(
            "the opening records other tables than the freeze",
        )));
    }
    let analysis = analyse(protocol, lease, &digests(&frozen, played), &context.rows)?;
    let record = record(context, &analysis)?;
    let id = record.id.clone();
    context.report(Report::Result(context.token.clone(), Box::new(record)))?;
    output(&serde_json::json!({ "result": id }))
}

fn record(context: &UnitContext, analysis: &Analysis) -> Result<ResultRecord, Ending> {
    let now = context.clock.now();
    let run = &context.status.run;
    Ok(ResultRecord {
        id: ResultId::mint(now, rand::random())
            .map_err(|error| Ending::Failed(format!("result id: {error}")))?,
        run_id: run.id.clone(),
        experiment_id: run.experiment_id.clone(),
        protocol_sha256: run.protocol_sha256.clone(),
        validity: analysis.validity(),
        outcome: analysis.outcome(),
        tier: tier_name(context.protocol.tier).to_owned(),
        analysis: output(analysis)?,
        summary: sentence(analysis),
        limitations: limitations(&context.protocol, analysis),
        machine_id: run.machine_id.clone(),
        origin: Origin::Own,
        recorded_at: now,
    })
}
