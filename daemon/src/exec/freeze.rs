//! Digests of every table before the held-out block is opened, and proof that the archive holds them.

use std::collections::BTreeMap;

use engine_core::check::GateSheet;
use serde::{Deserialize, Serialize};

use super::edit::EditOutput;
use super::gates::on_tables;
use super::plan::{MAIN_KEY, edit_key, train_key};
use super::select::Selection;
use super::train::TrainOutput;
use super::unit::{Ending, UnitContext, UnitResult, output};
use crate::domain::protocol::Protocol;
use crate::domain::records::TableDigest;
use crate::domain::refusal::{Code, Refusal};

/// The table that training ends in.
pub const CANDIDATE: &str = "candidate";

/// What the freeze leaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FreezeOutput {
    /// Every table that exists before the edits.
    pub tables: Vec<TableRef>,
    /// The CHECK gates on each of them.
    pub checks: BTreeMap<String, GateSheet>,
}

/// A frozen table of this run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRef {
    /// Its name in the protocol.
    pub name: String,
    /// SHA-256 of its plain file.
    pub sha256: String,
    /// Where it comes from, in words.
    pub origin: String,
}

/// Whether training makes a table of its own.
pub fn makes_candidate(protocol: &Protocol) -> bool {
    !protocol.train.is_empty() || protocol.main.is_some()
}

/// The frozen tables and the edited ones, in that order.
///
/// # Errors
/// When the freeze, or an edit of the protocol, has left no output.
pub fn table_refs(context: &UnitContext) -> Result<Vec<TableRef>, Ending> {
    let mut refs = context.output::<FreezeOutput>("freeze")?.tables;
    for edit in &context.protocol.edits {
        refs.push(context.output::<EditOutput>(&edit_key(&edit.name))?.table);
    }
    Ok(refs)
}

/// The same from stored units, for those who are no unit: the opening and the verification.
///
/// # Errors
/// When an output is missing or of another shape.
pub fn table_digests(
    protocol: &Protocol,
    status: &super::status::RunStatus,
) -> Result<Vec<TableRef>, Refusal> {
    let read = |key: &str| {
        status.unit(key).and_then(|unit| unit.output.clone()).ok_or_else(|| {
            Refusal::new(Code::WrongState, format!("{key} has left no output in {}", status.run.id))
        })
    };
    let shape = |key: &str, error: &serde_json::Error| {
        Refusal::new(Code::Corrupt, format!("the output of {key} does not read back: {error}"))
    };
    let freeze: FreezeOutput =
        serde_json::from_value(read("freeze")?).map_err(|error| shape("freeze", &error))?;
    let mut refs = freeze.tables;
    for edit in &protocol.edits {
        let key = edit_key(&edit.name);
        let edited: EditOutput =
            serde_json::from_value(read(&key)?).map_err(|error| shape(&key, &error))?;
        refs.push(edited.table);
    }
    Ok(refs)
}

/// What the opening of the block records.
pub fn as_digests(refs: &[TableRef]) -> Vec<TableDigest> {
    refs.iter()
        .map(|table| TableDigest { name: table.name.clone(), sha256: table.sha256.clone() })
        .collect()
}

/// The unit: names every table, and reads each one back from the archive to its last byte.
pub(super) fn run(context: &UnitContext) -> UnitResult {
    let mut tables = Vec::new();
    if makes_candidate(&context.protocol) {
        let (key, origin) = if context.protocol.main.is_some() {
            (String::from(MAIN_KEY), String::from("long run"))
        } else {
            let selection: Selection = context.output("select")?;
            (train_key(&selection.arm), format!("training arm {}", selection.arm))
        };
        let trained: TrainOutput = context.output(&key)?;
        let frozen = trained.table.ok_or_else(|| {
            Ending::Failed(format!("{key} has no table to freeze: it made no validation point"))
        })?;
        let origin = format!("{origin}, point {} at {} moves", frozen.point, frozen.moves);
        tables.push(TableRef { name: CANDIDATE.to_owned(), sha256: frozen.sha256, origin });
    }
    for prior in &context.protocol.tables {
        tables.push(TableRef {
            name: prior.name.clone(),
            sha256: prior.sha256.clone(),
            origin: String::from("named by the protocol"),
        });
    }
    let mut checks = BTreeMap::new();
    for table in &tables {
        // Reads the stored file to its last byte; bytes of another digest are refused.
        let frozen = context.tables.get(&table.sha256)?;
        checks.insert(table.name.clone(), on_tables(context, &frozen)?);
    }
    context.counter.set(1);
    output(&FreezeOutput { tables, checks })
}
