//! How a run's verdict is told: tables of arms and contrasts, the gate check by check, the readings,
//! the sentence, the limits, and where to look next.

use std::fmt::Write as _;

use engine_core::stats::gate::{GateCheck, Observed};

use super::out::table;
use crate::domain::protocol::Protocol;
use crate::domain::records::{ResultRecord, TableDigest};
use crate::domain::refusal::{Code, Refusal};
use crate::exec::analyse::{Analysis, ArmSummary, Contrast};
use crate::exec::status::RunStatus;
use crate::exec::train::curve;
use crate::exec::wording::{outcome_words, thousands};

/// The whole report of a run that has its result.
///
/// # Errors
/// When the stored analysis does not read back.
pub(super) fn report(
    protocol: &Protocol,
    status: &RunStatus,
    result: &ResultRecord,
    command: &str,
) -> Result<String, Refusal> {
    let analysis: Analysis = serde_json::from_value(result.analysis.clone()).map_err(|error| {
        Refusal::new(
            Code::Corrupt,
            format!("the analysis of {} does not read back: {error}", result.id),
        )
    })?;
    let mut text = training(protocol, status);
    let block = &analysis.block;
    let _ = write!(
        text,
        "\nScreen: {} games per arm on {} from {}, opened once by {}\n\n",
        block.games, block.lease, block.start, status.run.id
    );
    text.push_str(&arms(&analysis.arms));
    text.push_str("\nContrasts, points per game (one-sided 95 % bounds)\n\n");
    text.push_str(&contrasts(&analysis.contrasts));
    let _ =
        write!(text, "\nGate: {} against {}\n\n", analysis.gate.candidate, analysis.gate.reference);
    text.push_str(&checks(&analysis.gate.checks));
    if !analysis.readings.is_empty() {
        text.push_str("\nReadings\n\n");
        let rows: Vec<Vec<String>> = analysis
            .readings
            .iter()
            .map(|reading| {
                vec![
                    reading.name.clone(),
                    reading.verdict.clone(),
                    thousands(reading.paired.mean_delta),
                    format!("floor {}", thousands(reading.paired.detection_floor)),
                ]
            })
            .collect();
        text.push_str(&table(&rows));
    }
    let _ = write!(
        text,
        "\nVerdict: {} ({}, {})\n\n{}\n\nLimits\n",
        word(&result.outcome),
        outcome_words(result.outcome),
        word(&result.validity),
        result.summary
    );
    for limit in &result.limitations {
        let _ = writeln!(text, "  - {limit}");
    }
    text.push_str(&next(status, command));
    Ok(text)
}

fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::from("unknown"),
    }
}

/// Validation curves, one line per arm.
fn training(protocol: &Protocol, status: &RunStatus) -> String {
    let mut names: Vec<&str> = protocol.train.iter().map(|arm| arm.name.as_str()).collect();
    if protocol.main.is_some() {
        names.push("main");
    }
    if names.is_empty() {
        return String::new();
    }
    let mut rows = Vec::new();
    for name in names {
        let points = curve(&status.points, name);
        let margins: Vec<String> = points
            .iter()
            .map(|point| {
                format!("{}{}", thousands(point.margin), if point.is_best { "*" } else { "" })
            })
            .collect();
        let moves = points.last().map_or(0, |point| point.moves);
        rows.push(vec![
            name.to_owned(),
            format!("{} moves", thousands(moves as f64)),
            margins.join("  "),
        ]);
    }
    format!(
        "\nTraining: margin over the fair leaf on the validation block, per point (* best so far)\n\n{}",
        table(&rows)
    )
}

fn arms(arms: &[ArmSummary]) -> String {
    let head = ["arm", "mean", "median", "q25", "sd", "moves", "work/game", "s/game", "censored"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for arm in arms {
        let optional = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| String::from("-"), |value| format!("{value:.digits$}"))
        };
        rows.push(vec![
            arm.name.clone(),
            thousands(arm.score.mean),
            thousands(arm.score.median),
            thousands(arm.score.q25),
            thousands(arm.score.sd),
            format!("{:.1}", arm.moves.mean),
            arm.mean_work.map_or_else(|| String::from("-"), thousands),
            optional(arm.mean_wall_seconds, 3),
            arm.censored.to_string(),
        ]);
    }
    table(&rows)
}

fn contrasts(contrasts: &[Contrast]) -> String {
    let head =
        ["contrast", "mean", "bootstrap", "student", "floor", "won/tied/lost", "moves", "reading"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for contrast in contrasts {
        let score = &contrast.score;
        rows.push(vec![
            contrast.name.clone(),
            thousands(score.mean_delta),
            format!(
                "{} .. {}",
                thousands(score.bootstrap_lower95),
                thousands(score.bootstrap_upper95)
            ),
            thousands(score.student_t_lower95),
            thousands(score.detection_floor),
            format!("{}/{}/{}", score.wins, score.ties, score.losses),
            format!("{:+.1}", contrast.moves.mean_delta),
            contrast.verdict.word().to_owned(),
        ]);
    }
    table(&rows)
}

fn checks(checks: &[GateCheck]) -> String {
    let rows: Vec<Vec<String>> = checks
        .iter()
        .map(|check| {
            let word = if check.passed { "holds" } else { "FAILS" };
            vec![check.criterion.name().to_owned(), word.to_owned(), observed(&check.observed)]
        })
        .collect();
    table(&rows)
}

/// The numbers behind a check, in words.
fn observed(observed: &Observed) -> String {
    match observed {
        Observed::Decisions { illegal, incomplete, .. } => {
            format!("{illegal} illegal, {incomplete} incomplete")
        }
        Observed::LowerBound { lower95 } => thousands(*lower95),
        Observed::Halves { first, second } => {
            format!("{} and {}", thousands(*first), thousands(*second))
        }
        Observed::Quartiles { candidate, reference } => {
            format!("{} against {}", thousands(*candidate), thousands(*reference))
        }
        Observed::Digests { tables } => tables
            .iter()
            .map(|table| {
                format!("{} {}", table.table, table.played.get(..12).unwrap_or(&table.played))
            })
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn next(status: &RunStatus, command: &str) -> String {
    let run = &status.run.id;
    let mut text = format!(
        "\nWhere to look next\n  {command} verify {run}            re-hash, recompute, replay\n  \
         {command} export {run} --format csv   every game as a row\n  \
         {command} status {run} --json         everything that is stored of it\n  \
         {command} serve                       the same over HTTP\n"
    );
    let tables: Vec<&TableDigest> = status
        .leases
        .iter()
        .filter_map(|lease| lease.opening.as_ref())
        .flat_map(|opening| &opening.tables)
        .collect();
    for digest in tables {
        let _ = writeln!(text, "  table {} is {}", digest.name, digest.sha256);
    }
    text
}
