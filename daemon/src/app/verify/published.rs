//! Runs that were taken over: every published figure that can be made again from the rows, and the
//! identities that the others have to obey among themselves.

use std::collections::BTreeMap;

use engine_core::stats::{Paired, interaction};
use serde_json::{Map, Value};

use super::{Check, Subject};
use crate::domain::records::GameRecord;
use crate::exec::analyse::{ArmSummary, summary};

/// Largest relative error of an identity between published figures, each rounded once.
const ROUNDING: f64 = 1e-12;

/// Checks the published analysis of an imported run.
pub(super) fn checks(subject: &Subject) -> Vec<Check> {
    let Some(result) = &subject.status.result else {
        return vec![Check::failed("published-figures", "the run has no result")];
    };
    let Some(screen) = result.analysis.get("screen").and_then(Value::as_object) else {
        return vec![Check::failed("published-figures", "the result holds no screen")];
    };
    if subject.rows.is_empty() {
        vec![
            Check::of("identities", identities(screen)),
            Check::of("gate-consistency", gates(screen)),
        ]
    } else {
        vec![
            Check::of("arm-summaries", arms_from_rows(subject, screen)),
            Check::of("contrasts", contrasts_from_rows(subject, screen)),
            Check::of("gate-consistency", gates(screen)),
        ]
    }
}

type Object = Map<String, Value>;

fn object<'a>(parent: &'a Object, name: &str) -> Result<&'a Object, String> {
    parent.get(name).and_then(Value::as_object).ok_or_else(|| format!("no {name} are published"))
}

fn number(parent: &Object, name: &str) -> Result<f64, String> {
    parent.get(name).and_then(Value::as_f64).ok_or_else(|| format!("{name} is not a number"))
}

fn numbers<const N: usize>(parent: &Object, name: &str) -> Result<[f64; N], String> {
    let list: Option<Vec<f64>> = parent
        .get(name)
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_f64).collect());
    list.and_then(|list| list.try_into().ok()).ok_or_else(|| format!("{name} is not {N} numbers"))
}

fn text<'a>(parent: &'a Object, name: &str) -> Result<&'a str, String> {
    parent.get(name).and_then(Value::as_str).ok_or_else(|| format!("{name} is not a text"))
}

/// Exactly equal, or a sentence.
fn same(what: &str, published: f64, again: f64) -> Result<(), String> {
    // Published integers may be written without a sign or a fraction; nothing else may differ.
    if published.total_cmp(&again).is_eq()
        || (published.abs() + again.abs()).total_cmp(&0.0).is_eq()
    {
        Ok(())
    } else {
        Err(format!("{what} is published as {published}, made again it is {again}"))
    }
}

fn of_arm<'a>(subject: &'a Subject, arm: &str) -> Vec<&'a GameRecord> {
    let mut rows: Vec<&GameRecord> = subject.rows.iter().filter(|row| row.arm == arm).collect();
    rows.sort_by_key(|row| row.ordinal);
    rows
}

fn arms_from_rows(subject: &Subject, screen: &Object) -> Result<String, String> {
    let arms = object(screen, "arms")?;
    let mut values = 0;
    for (name, published) in arms {
        let published = published.as_object().ok_or("an arm is not an object")?;
        let rows = of_arm(subject, name);
        let again: ArmSummary = summary(name, None, &rows).map_err(|refusal| refusal.detail)?;
        let figures = [
            ("games", rows.len() as f64),
            ("mean", again.score.mean),
            ("median", again.score.median),
            ("sd", again.score.sd),
            ("q25", again.score.q25),
            ("min", again.score.min),
            ("max", again.score.max),
            ("movesMean", again.moves.mean),
            ("q25Moves", again.moves.q25),
            ("gamesAtOrAboveMillion", f64::from(again.million_games)),
            ("censored", f64::from(again.censored)),
        ];
        for (field, figure) in figures {
            same(&format!("{field} of {name}"), number(published, field)?, figure)?;
            values += 1;
        }
    }
    Ok(format!("{} arms again from {} rows, {values} values equal", arms.len(), subject.rows.len()))
}

fn series(subject: &Subject, arm: &str, metric: &str) -> Vec<f64> {
    of_arm(subject, arm)
        .into_iter()
        .map(|row| if metric == "moves" { f64::from(row.moves) } else { row.score as f64 })
        .collect()
}

fn compare(what: &str, published: &Object, again: &Paired) -> Result<u64, String> {
    let [wins, ties, losses] = numbers::<3>(published, "wtl")?;
    let [first, second] = numbers::<2>(published, "halves")?;
    let figures = [
        ("n", number(published, "n")?, again.n as f64),
        ("meanDelta", number(published, "meanDelta")?, again.mean_delta),
        ("pairedSd", number(published, "pairedSd")?, again.paired_sd),
        ("bootstrapLower95", number(published, "bootstrapLower95")?, again.bootstrap_lower95),
        ("bootstrapUpper95", number(published, "bootstrapUpper95")?, again.bootstrap_upper95),
        ("studentTLower95", number(published, "studentTLower95")?, again.student_t_lower95),
        ("detectionFloor", number(published, "detectionFloor")?, again.detection_floor),
        ("wins", wins, again.wins as f64),
        ("ties", ties, again.ties as f64),
        ("losses", losses, again.losses as f64),
        ("first half", first, again.first_half_mean_delta),
        ("second half", second, again.second_half_mean_delta),
    ];
    for (field, published, again) in figures {
        same(&format!("{field} of {what}"), published, again)?;
    }
    let mut compared = figures.len() as u64;
    if published.contains_key("q25Delta") {
        same(&format!("q25Delta of {what}"), number(published, "q25Delta")?, again.q25_delta)?;
        compared += 1;
    }
    Ok(compared)
}

fn contrasts_from_rows(subject: &Subject, screen: &Object) -> Result<String, String> {
    let contrasts = object(screen, "contrasts")?;
    let mut values = 0;
    let mut made = 0;
    for (name, contrast) in contrasts {
        let contrast = contrast.as_object().ok_or("a contrast is not an object")?;
        let (candidate, reference) =
            (text(contrast, "candidateArm")?, text(contrast, "referenceArm")?);
        for metric in ["score", "moves"] {
            let Some(published) = contrast.get(metric).and_then(Value::as_object) else { continue };
            let again = Paired::of(
                &series(subject, candidate, metric),
                &series(subject, reference, metric),
            )
            .map_err(|error| format!("{name}: {error}"))?;
            values += compare(&format!("{name}, {metric}"), published, &again)?;
            made += 1;
        }
    }
    if let Some(depth) = screen.get("depth").and_then(Value::as_object)
        && let Some(published) = depth.get("interaction").and_then(Value::as_object)
    {
        let score = |arm: &str| series(subject, arm, "score");
        let again = interaction(
            (&score("prior-d4s7"), &score("prior-d3s7")),
            (&score("fair-d4s7"), &score("fair-d3s7")),
        )
        .map_err(|error| format!("interaction: {error}"))?;
        values += compare("the interaction", published, &again)?;
        made += 1;
    }
    if made == 0 {
        return Err(String::from("no contrast is published"));
    }
    Ok(format!("{made} contrasts again from the rows, {values} values equal to the last bit"))
}

/// What must hold between published figures whose rows were not published.
fn identities(screen: &Object) -> Result<String, String> {
    let arms = object(screen, "arms")?;
    let contrasts = object(screen, "contrasts")?;
    let mut held = 0;
    let mut near = |what: String, left: f64, right: f64, scale: f64| {
        held += 1;
        if (left - right).abs() <= ROUNDING * scale.max(1.0) {
            Ok(())
        } else {
            Err(format!("{what}: {left} is published, the others give {right}"))
        }
    };
    for (name, contrast) in contrasts {
        let contrast = contrast.as_object().ok_or("a contrast is not an object")?;
        let arm = |field: &str| -> Result<&Object, String> {
            let name = text(contrast, field)?;
            arms.get(name).and_then(Value::as_object).ok_or_else(|| format!("no arm {name}"))
        };
        let (candidate, reference) = (arm("candidateArm")?, arm("referenceArm")?);
        let score = object(contrast, "score")?;
        let n = number(score, "n")?;
        let mean = number(score, "meanDelta")?;
        let sd = number(score, "pairedSd")?;
        let difference =
            |field: &str| Ok::<_, String>(number(candidate, field)? - number(reference, field)?);
        let scale = number(candidate, "mean")?.abs();
        near(format!("mean of {name}"), mean, difference("mean")?, scale)?;
        near(
            format!("quartiles of {name}"),
            number(score, "q25Delta")?,
            difference("q25")?,
            scale,
        )?;
        if contrast.contains_key("movesMeanDelta") {
            let moves = number(contrast, "movesMeanDelta")?;
            near(format!("moves of {name}"), moves, difference("movesMean")?, 1e3)?;
        }
        let root = n.sqrt();
        near(
            format!("floor of {name}"),
            number(score, "detectionFloor")?,
            1.645 * sd / root,
            scale,
        )?;
        let t = engine_core::stats::student::quantile95(n as usize - 1);
        let bound = mean - t * sd / root;
        near(format!("Student bound of {name}"), number(score, "studentTLower95")?, bound, scale)?;
        let [first, second] = numbers::<2>(score, "halves")?;
        let half = (n / 2.0).floor();
        let mixed = (first * half + second * (n - half)) / n;
        near(format!("halves of {name}"), mixed, mean, scale)?;
        let [wins, ties, losses] = numbers::<3>(score, "wtl")?;
        near(format!("games of {name}"), wins + ties + losses, n, 1.0)?;
    }
    Ok(format!(
        "{held} identities between the figures of {} contrasts and {} arms",
        contrasts.len(),
        arms.len()
    ))
}

/// The published checks of the gate follow from the published contrast.
fn gates(screen: &Object) -> Result<String, String> {
    let contrasts = object(screen, "contrasts")?;
    let primary = text(screen, "primaryContrast")?;
    let contrast = object(contrasts, primary)?;
    let score = object(contrast, "score")?;
    let gate = object(screen, "gate")?;
    let checks = gate.get("checks").and_then(Value::as_array).ok_or("no checks are published")?;
    let arms = object(screen, "arms")?;
    let quartile = |field: &str| -> Result<f64, String> {
        let arm = text(contrast, field)?;
        number(object(arms, arm)?, "q25")
    };
    let mut bad = BTreeMap::new();
    for (name, arm) in arms {
        let arm = arm.as_object().ok_or("an arm is not an object")?;
        bad.insert(name, number(arm, "illegal")? + number(arm, "incomplete")?);
    }
    let [first, second] = numbers::<2>(score, "halves")?;
    let expected = [
        bad.values().all(|&count| count == 0.0),
        number(score, "bootstrapLower95")? > 0.0,
        number(score, "studentTLower95")? > 0.0,
        first > 0.0 && second > 0.0,
        quartile("candidateArm")? >= quartile("referenceArm")?,
    ];
    let published: Vec<Option<bool>> =
        checks.iter().map(|check| check.get("passed").and_then(Value::as_bool)).collect();
    if published.len() != expected.len() {
        return Err(format!(
            "{} checks are published, there are {}",
            published.len(),
            expected.len()
        ));
    }
    for (index, (published, expected)) in published.iter().zip(expected).enumerate() {
        if *published != Some(expected) {
            return Err(format!(
                "check {} is published as {published:?}, the figures give {expected}",
                index + 1
            ));
        }
    }
    let all = expected.iter().all(|held| *held);
    if gate.get("allPassed").and_then(Value::as_bool) != Some(all) {
        return Err(format!("the gate is published as the opposite of {all}"));
    }
    Ok(format!(
        "{} checks of {primary} follow from its figures; the gate {}",
        expected.len(),
        if all { "passes" } else { "fails" }
    ))
}
