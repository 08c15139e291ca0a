//! Digests, the event chain, the opening, and what training left.

use super::{Check, Note, Subject};
use crate::domain::canonical::sha256_hex;
use crate::domain::ids::RunId;
use crate::domain::protocol::{Freeze, SelectRule};
use crate::domain::records::{LeaseState, Run, TableDigest};
use crate::domain::refusal::{Code, Refusal};
use crate::exec::freeze::{CANDIDATE, as_digests, makes_candidate, table_digests};
use crate::exec::plan::{MAIN_KEY, train_key};
use crate::exec::select::{Selection, select};
use crate::exec::train::{PointFigures, TrainOutput, curve};
use crate::exec::unit::Ending;
use crate::store::Store;

/// A refusal that says "the stored data is wrong" is a failed check; anything else is an error.
fn finding(name: &str, outcome: Result<String, Refusal>) -> Result<Check, Refusal> {
    match outcome {
        Ok(evidence) => Ok(Check::passed(name, evidence)),
        Err(refusal) if matches!(refusal.code, Code::Corrupt | Code::NotFound) => {
            let fields: Vec<&str> =
                refusal.errors.iter().map(|error| error.detail.as_str()).collect();
            let detail = if fields.is_empty() {
                refusal.detail
            } else {
                format!("{}: {}", refusal.detail, fields.join("; "))
            };
            Ok(Check::failed(name, detail))
        }
        Err(refusal) => Err(refusal),
    }
}

/// The frozen bytes have the digest that the experiment, the run and the result carry.
pub(super) async fn protocol_digest(store: &Store, run: &Run) -> Result<Check, Refusal> {
    let name = "protocol-digest";
    let bytes = match store.protocol_bytes(&run.experiment_id).await {
        Ok(bytes) => bytes,
        Err(refusal) => return finding(name, Err(refusal)),
    };
    let digest = sha256_hex(&bytes);
    let experiment = store.experiment(&run.experiment_id).await?;
    let result = store.result_of(&run.id).await?;
    let holders = [
        ("the experiment", Some(experiment.protocol_sha256)),
        ("the run", Some(run.protocol_sha256.clone())),
        ("the result", result.map(|result| result.protocol_sha256)),
    ];
    for (who, held) in holders {
        if let Some(held) = held
            && held != digest
        {
            return Ok(Check::failed(
                name,
                format!("the frozen bytes have the digest {digest}, {who} carries {held}"),
            ));
        }
    }
    Ok(Check::passed(name, format!("{} bytes, sha256 {digest}", bytes.len())))
}

/// The history, the schema, and every row against the digest that its event carries.
pub(super) async fn rows(store: &Store, run: &RunId) -> Result<Vec<Check>, Refusal> {
    let checked = store.verify_rows(run).await?;
    Ok(checked
        .into_iter()
        .map(|check| Check { name: check.name, passed: check.passed, evidence: check.evidence })
        .collect())
}

/// Every stored file of the run, plain and stored bytes.
pub(super) fn artifacts(subject: &Subject, note: &Note) -> Result<Check, Refusal> {
    let mut bytes = 0;
    for artifact in &subject.artifacts {
        note(&format!("hashing {}", artifact.name));
        if let Err(refusal) = subject.archive.verify(artifact) {
            return finding("artifacts", Err(refusal));
        }
        bytes += artifact.bytes;
    }
    let count = subject.artifacts.len();
    Ok(Check::passed(
        "artifacts",
        format!("{count} files, {bytes} plain bytes, both digests of each"),
    ))
}

/// The block was opened by this run, under this protocol, for the tables that the freeze recorded.
pub(super) fn opening(subject: &Subject) -> Check {
    Check::of("opening", try_opening(subject))
}

fn try_opening(subject: &Subject) -> Result<String, String> {
    let block = &subject.protocol.screen.seeds;
    let lease =
        subject.status.lease(block).ok_or_else(|| format!("the block {block:?} has no lease"))?;
    let Some(opening) = &lease.opening else {
        if subject.rows.is_empty() && lease.state == LeaseState::Reserved {
            return Ok(format!("{} is unopened, and the run holds no game", lease.id));
        }
        return Err(format!("{} has no opening, and the run holds games", lease.id));
    };
    if opening.run_id != subject.run {
        return Err(format!("{} was opened by {}", lease.id, opening.run_id));
    }
    if opening.protocol_sha256 != subject.status.run.protocol_sha256 {
        return Err(format!("opened under protocol {}", opening.protocol_sha256));
    }
    let frozen = table_digests(&subject.protocol, &subject.status).map_err(|error| error.detail)?;
    let frozen: Vec<TableDigest> = as_digests(&frozen);
    if opening.tables != frozen {
        return Err(format!(
            "the opening records the tables {}, the freeze {}",
            listed(&opening.tables),
            listed(&frozen)
        ));
    }
    Ok(format!(
        "{} opened once, at {}, for {} tables",
        lease.id,
        opening.opened_at,
        opening.tables.len()
    ))
}

fn listed(tables: &[TableDigest]) -> String {
    tables
        .iter()
        .map(|table| format!("{}={}", table.name, table.sha256))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Every validation point again from the scores it keeps.
pub(super) fn curve_points(subject: &Subject) -> Check {
    let mut count = 0;
    for point in &subject.status.points {
        let fault = |what: &str| {
            Check::failed("points", format!("point {} of {:?}: {what}", point.point, point.arm))
        };
        let Ok(figures) = serde_json::from_value::<PointFigures>(point.figures.clone()) else {
            return fault("its figures do not read back");
        };
        if !figures.is_consistent() {
            return fault("its statistics are not those of its scores");
        }
        if figures.margin().to_bits() != point.margin.to_bits() {
            return fault(&format!(
                "its margin is stored as {}, its scores give {}",
                point.margin,
                figures.margin()
            ));
        }
        count += 1;
    }
    let mut best: std::collections::BTreeMap<&str, f64> = std::collections::BTreeMap::new();
    let mut arms: Vec<&str> =
        subject.status.points.iter().map(|point| point.arm.as_str()).collect();
    arms.dedup();
    for arm in arms {
        for point in curve(&subject.status.points, arm) {
            let is_best = best.get(arm).is_none_or(|best| point.margin > *best);
            if is_best {
                best.insert(arm, point.margin);
            }
            if is_best != point.is_best {
                return Check::failed(
                    "points",
                    format!("point {} of {arm:?} is marked best: {}", point.point, point.is_best),
                );
            }
        }
    }
    Check::passed("points", format!("{count} points, each again from its scores"))
}

/// The selection again from the points, and the frozen candidate from the curve it came from.
pub(super) fn selection(subject: &Subject) -> Check {
    Check::of("selection", try_selection(subject))
}

fn try_selection(subject: &Subject) -> Result<String, String> {
    let protocol = &subject.protocol;
    let status = &subject.status;
    if !makes_candidate(protocol) {
        return Ok(String::from("the protocol trains nothing"));
    }
    let Some(stored) = status.unit("select").and_then(|unit| unit.output.clone()) else {
        return Ok(String::from("the run did not come to a selection"));
    };
    let stored: Selection =
        serde_json::from_value(stored).map_err(|error| format!("does not read back: {error}"))?;
    let again = select(protocol, &status.points).map_err(|ending| match ending {
        Ending::Failed(reason) => reason,
        Ending::Stopped => String::from("stopped"),
    })?;
    if stored != again {
        return Err(format!("arm {:?} is stored, the points give {:?}", stored.arm, again.arm));
    }
    let (key, arm, freeze) = match &protocol.main {
        Some(main) => (MAIN_KEY.to_owned(), "main", main.freeze),
        None => (train_key(&stored.arm), stored.arm.as_str(), Freeze::LargestMargin),
    };
    let Some(trained) = status.unit(&key).and_then(|unit| unit.output.clone()) else {
        return Ok(format!("arm {:?} again from the points; nothing was frozen", stored.arm));
    };
    let trained: TrainOutput = serde_json::from_value(trained)
        .map_err(|error| format!("the output of {key} does not read back: {error}"))?;
    let kept = trained.table.ok_or_else(|| format!("{key} kept no table"))?;
    let points = curve(&status.points, arm);
    let expected = match freeze {
        Freeze::LargestMargin => points.iter().rev().max_by(|a, b| a.margin.total_cmp(&b.margin)),
        Freeze::Final => points.last(),
    }
    .ok_or_else(|| format!("{arm:?} has no point"))?;
    if kept.point != expected.point || kept.moves != expected.moves {
        return Err(format!(
            "point {} was frozen, the rule gives point {}",
            kept.point, expected.point
        ));
    }
    let frozen = table_digests(protocol, status).map_err(|error| error.detail)?;
    let candidate = frozen.iter().find(|table| table.name == CANDIDATE);
    if candidate.is_none_or(|candidate| candidate.sha256 != kept.sha256) {
        return Err(format!("the frozen candidate is not the table of point {}", kept.point));
    }
    let rule = match stored.rule {
        SelectRule::LargestFinalMargin => "largest final margin",
        SelectRule::LargestBestMargin => "largest best margin",
    };
    Ok(format!("arm {:?} by {rule}, frozen at point {} of {arm:?}", stored.arm, kept.point))
}
