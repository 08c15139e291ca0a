//! The whole analysis again from the stored rows, compared number by number with the stored result.

use serde_json::Value;

use super::{Check, Subject};
use crate::domain::records::ResultRecord;
use crate::exec::analyse::{Analysis, analyse, digests};
use crate::exec::plan::screen_key;
use crate::exec::screen::ScreenOutput;
use crate::exec::wording::{limitations, sentence, tier_name};

/// Recomputes arms, contrasts, gate, readings and the verdict.
pub(super) fn checks(subject: &Subject) -> Vec<Check> {
    let Some(result) = &subject.status.result else {
        return vec![Check::passed(
            "statistics",
            "the run has no result, so there is nothing to make again",
        )];
    };
    match again(subject) {
        Err(fault) => vec![Check::failed("statistics", fault)],
        Ok(analysis) => vec![statistics(&analysis, result), verdict(subject, &analysis, result)],
    }
}

fn again(subject: &Subject) -> Result<Analysis, String> {
    let protocol = &subject.protocol;
    let lease = subject
        .status
        .lease(&protocol.screen.seeds)
        .ok_or_else(|| String::from("the held-out block has no lease"))?;
    let opening =
        lease.opening.as_ref().ok_or_else(|| String::from("the block was never opened"))?;
    let mut played = Vec::new();
    for arm in &protocol.screen.arms {
        let key = screen_key(&arm.name);
        let output = subject
            .status
            .unit(&key)
            .and_then(|unit| unit.output.clone())
            .ok_or_else(|| format!("{key} has no output"))?;
        let output: ScreenOutput = serde_json::from_value(output)
            .map_err(|error| format!("the output of {key} does not read back: {error}"))?;
        played.extend(output.played);
    }
    analyse(protocol, lease, &digests(&opening.tables, played), &subject.rows)
        .map_err(|refusal| refusal.detail)
}

fn statistics(analysis: &Analysis, result: &ResultRecord) -> Check {
    let again = match serde_json::to_value(analysis) {
        Ok(again) => again,
        Err(error) => return Check::failed("statistics", format!("no JSON form: {error}")),
    };
    let mut compared = 0;
    Check::of(
        "statistics",
        match first_difference(&again, &result.analysis, "", &mut compared) {
            Some((pointer, again, stored)) => {
                Err(format!("{pointer} is stored as {stored}, the rows give {again}"))
            }
            None => Ok(format!(
                "{compared} values: {} arms, {} contrasts, {} criteria, {} readings",
                analysis.arms.len(),
                analysis.contrasts.len(),
                analysis.gate.checks.len(),
                analysis.readings.len()
            )),
        },
    )
}

fn verdict(subject: &Subject, analysis: &Analysis, result: &ResultRecord) -> Check {
    let run = &subject.status.run;
    let faults = [
        (result.validity != analysis.validity(), "validity"),
        (result.outcome != analysis.outcome(), "outcome"),
        (result.tier != tier_name(subject.protocol.tier), "tier"),
        (result.summary != sentence(analysis), "summary"),
        (result.limitations != limitations(&subject.protocol, analysis), "limitations"),
        (run.validity != result.validity, "validity of the run"),
        (result.machine_id != run.machine_id, "machine"),
    ];
    let wrong: Vec<&str> =
        faults.into_iter().filter_map(|(is_wrong, what)| is_wrong.then_some(what)).collect();
    if wrong.is_empty() {
        Check::passed(
            "verdict",
            format!("{:?}, {:?}, and the sentence", result.outcome, result.validity),
        )
    } else {
        Check::failed("verdict", format!("{} is not what the rows give", wrong.join(", ")))
    }
}

/// The first place where two documents differ, with what is there. Numbers are compared exactly.
pub(super) fn first_difference(
    left: &Value,
    right: &Value,
    pointer: &str,
    compared: &mut u64,
) -> Option<(String, String, String)> {
    let differ = |left: &Value, right: &Value| {
        let place = if pointer.is_empty() { "(document)" } else { pointer };
        Some((place.to_owned(), shortened(left), shortened(right)))
    };
    match (left, right) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, value) in a {
                let inner = format!("{pointer}/{name}");
                let other = b.get(name).unwrap_or(&Value::Null);
                let found = first_difference(value, other, &inner, compared);
                if found.is_some() {
                    return found;
                }
            }
            let extra = b.keys().find(|name| !a.contains_key(*name))?;
            Some((format!("{pointer}/{extra}"), String::from("nothing"), shortened(&b[extra])))
        }
        (Value::Array(a), Value::Array(b)) => {
            if a.len() != b.len() {
                return differ(left, right);
            }
            a.iter().zip(b).enumerate().find_map(|(index, (left, right))| {
                first_difference(left, right, &format!("{pointer}/{index}"), compared)
            })
        }
        (Value::Number(a), Value::Number(b)) => {
            *compared += 1;
            let same = match (a.as_i64(), b.as_i64()) {
                (Some(a), Some(b)) => a == b,
                _ => match (a.as_f64(), b.as_f64()) {
                    (Some(a), Some(b)) => a.to_bits() == b.to_bits(),
                    _ => false,
                },
            };
            if same { None } else { differ(left, right) }
        }
        _ => {
            *compared += 1;
            if left == right { None } else { differ(left, right) }
        }
    }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() > 60 {
        format!("{}…", text.chars().take(60).collect::<String>())
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::first_difference;

    #[test]
    fn finds_the_first_difference_and_counts_what_it_compared() {
        let mut compared = 0;
        let document = json!({"a": [1, 2.5, {"b": "x"}], "c": null});
        assert_eq!(first_difference(&document, &document, "", &mut compared), None);
        assert_eq!(compared, 4);
        for (other, place) in [
            (json!({"a": [1, 2.5000000000000004, {"b": "x"}], "c": null}), "/a/1"),
            (json!({"a": [1, 2.5, {"b": "y"}], "c": null}), "/a/2/b"),
            (json!({"a": [1, 2.5], "c": null}), "/a"),
            (json!({"a": [1, 2.5, {"b": "x"}], "c": null, "d": 1}), "/d"),
            (json!([]), "(document)"),
        ] {
            let found = first_difference(&document, &other, "", &mut compared);
            assert_eq!(found.expect("a difference").0, place);
        }
    }
}
