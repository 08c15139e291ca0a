//! Edits of frozen tables, without training.

use engine_core::check::GateSheet;
use engine_core::ntuple::edit::{EditReport, class_mean, zeroed};
use engine_core::ntuple::file::write_weights;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::freeze::{FreezeOutput, TableRef};
use super::gates::on_tables;
use super::plan::edit_key;
use super::unit::{Ending, Report, UnitContext, UnitResult, output};
use crate::domain::protocol::EditRule;

/// What an edit leaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EditOutput {
    /// The edited table.
    pub table: TableRef,
    /// Entries found and changed.
    pub report: Value,
    /// The CHECK gates on the edited table.
    pub checks: GateSheet,
}

/// Makes the edited table of this unit.
pub(super) fn run(context: &UnitContext) -> UnitResult {
    let edits = &context.protocol.edits;
    let edit = edits
        .iter()
        .find(|edit| edit_key(&edit.name) == context.key)
        .ok_or_else(|| Ending::Failed(format!("the protocol has no unit {}", context.key)))?;
    let mut known = context.output::<FreezeOutput>("freeze")?.tables;
    // An edit may start from an earlier edit of the document.
    for earlier in edits.iter().take_while(|earlier| earlier.name != edit.name) {
        known.push(context.output::<EditOutput>(&edit_key(&earlier.name))?.table);
    }
    let source = known
        .iter()
        .find(|table| table.name == edit.of)
        .ok_or_else(|| Ending::Failed(format!("no table {:?} to edit", edit.of)))?;
    let tables = context.tables.get(&source.sha256)?;
    let edited = match edit.set_untouched_to {
        EditRule::Zero => zeroed(&tables),
        EditRule::ClassMean => class_mean(&tables),
    }
    .map_err(|error| Ending::Failed(format!("edit {:?}: {error}", edit.name)))?;
    let artifact = context.archive.publish("table", &edit.name, Some(&context.run), |out| {
        write_weights(&edited, out).map(|_| ())
    })?;
    let table = TableRef {
        name: edit.name.clone(),
        sha256: artifact.sha256.clone(),
        origin: format!("{} with untouched entries set to {:?}", edit.of, edit.set_untouched_to),
    };
    context.report(Report::Artifact(context.token.clone(), artifact))?;
    let report = figures(edited.report());
    let checks = on_tables(context, &*context.tables.get(&table.sha256)?)?;
    context.counter.set(1);
    output(&EditOutput { table, report, checks })
}

fn figures(report: &EditReport) -> Value {
    serde_json::json!({
        "untouched": report.untouched,
        "touched": report.touched,
        "changed": report.changed,
        "emptyClasses": report.empty_classes,
    })
}
