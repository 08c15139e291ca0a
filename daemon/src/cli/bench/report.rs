//! The figures as a table and as a document.

use engine_core::instructions::InstructionSet;
use serde::Serialize;
use serde_json::Value;

use super::super::out;
use super::arm::Row;
use crate::{config, machine};

/// The order of the groups.
const GROUPS: [&str; 9] =
    ["engine", "leaf", "search", "features", "value", "direct", "training", "traffic", "limit"];

/// Where a row belongs: groups in their order, the machine's own rates last. What a search counts
/// stands below its time.
pub(super) fn place(name: &str) -> (usize, &str) {
    let group = name.split('/').next().unwrap_or_default();
    let place = GROUPS.iter().position(|&known| known == group).unwrap_or(GROUPS.len());
    (place, if group == "search" { name } else { "" })
}

/// Something that was not measured.
#[derive(Debug, Serialize)]
pub(super) struct Skipped {
    /// What.
    pub(super) name: String,
    /// Why.
    pub(super) reason: &'static str,
}

/// All there is to say about one run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    machine: Value,
    build: String,
    command: String,
    rows: Vec<Row>,
    skipped: Vec<Skipped>,
}

/// The machine, as far as it matters for speed.
pub(super) fn machine() -> Value {
    let sets: Vec<&str> = InstructionSet::available().map(InstructionSet::name).collect();
    let mut machine = machine::processor();
    machine["instructionSet"] = InstructionSet::active().name().into();
    machine["instructionSets"] = sets.into();
    machine
}

impl Report {
    pub(super) fn new(rows: Vec<Row>, skipped: Vec<Skipped>) -> Self {
        let command: Vec<String> = std::env::args().skip(1).collect();
        Self {
            machine: machine(),
            build: config::build_id(),
            command: format!("heldout {}", command.join(" ")),
            rows,
            skipped,
        }
    }

    pub(super) fn print(&self) {
        let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
        out::line(&format!(
            "{}, {} logical CPUs, instructions: {}",
            text(&self.machine["model"]),
            self.machine["logicalCpus"],
            text(&self.machine["instructionSet"]),
        ));
        out::line(&format!("heldout {}; processor time, median of the slices", self.build));
        let mut rows =
            vec![["", "median", "unit", "fastest", "slowest", "cpu", "note"].map(String::from)];
        rows.extend(self.rows.iter().map(|row| {
            let utilisation =
                row.utilisation.map_or_else(String::new, |share| format!("{share:.2}"));
            [
                row.name.clone(),
                figure(row.median),
                row.unit.clone(),
                figure(row.fastest),
                figure(row.slowest),
                utilisation,
                row.note.clone(),
            ]
        }));
        // Words stand at the left, figures at the right.
        for column in [2, 6] {
            let width = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            for row in &mut rows {
                row[column] = format!("{:<width$}", row[column]);
            }
        }
        let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
        out::line(out::table(&rows).trim_end());
        for skipped in &self.skipped {
            out::line(&format!("not measured: {}: {}", skipped.name, skipped.reason));
        }
    }
}

/// Four digits that mean something.
fn figure(figure: f64) -> String {
    match figure.abs() {
        size if size >= 1e6 => format!("{:.2} M", figure / 1e6),
        size if size >= 1e4 => format!("{:.1} k", figure / 1e3),
        size if size >= 100.0 => format!("{figure:.0}"),
        size if size >= 1.0 => format!("{figure:.2}"),
        _ => format!("{figure:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_groups_keep_their_order() {
        let shown = [12_345_678.0, 152_300.0, 4500.4, 3.456, 0.25].map(figure);
        assert_eq!(shown, ["12.35 M", "152.3 k", "4500", "3.46", "0.250"]);
        assert!(place("engine/x") < place("search/x") && place("limit/x") < place("memory/x"));
        assert!(place("search/a") < place("search/a/b") && place("search/a/b") < place("search/b"));
    }

    #[test]
    fn a_machine_says_on_which_instructions_it_runs() {
        let machine = machine();
        let sets = machine["instructionSets"].as_array().unwrap();
        assert!(sets.contains(&machine["instructionSet"]), "{machine}");
    }
}
