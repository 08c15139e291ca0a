//! `heldout export`: the rows of a run on standard output.

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::{Exit, Named, Session, out, run_id};
use crate::domain::records::GameRecord;
use crate::domain::refusal::Refusal;
use crate::exec::unit::internal;

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The run, or `latest`.
    #[arg(value_parser = run_id)]
    run: Named,
    /// How rows are written.
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// This arm only.
    #[arg(long)]
    arm: Option<String>,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values with a head line.
    Csv,
}

/// Columns of the CSV form, in order: the field names of the JSON form.
pub(super) const COLUMNS: [&str; 16] = [
    "arm",
    "ordinal",
    "seedHex",
    "score",
    "moves",
    "numberedCleared",
    "coversRevealed",
    "maxChainDepth",
    "occupiedSum",
    "meanOccupiedCells",
    "clears",
    "censored",
    "illegalDecisions",
    "incompleteDecisions",
    "work",
    "wallSeconds",
];

/// Writes every stored game of the run, arm by arm in seed order.
pub(super) async fn export(session: &Session, arguments: &ExportArgs) -> Result<Exit, Refusal> {
    let (store, _) = session.read().await?;
    // An unknown run is a refusal, not an empty list.
    let run = session.resolve(&arguments.run).await?;
    store.run(&run).await?;
    let rows = store.all_games(&run).await?;
    let wanted = |row: &&GameRecord| arguments.arm.as_ref().is_none_or(|arm| row.arm == *arm);
    if arguments.format == Format::Csv {
        out::line(&COLUMNS.join(","));
    }
    for row in rows.iter().filter(wanted) {
        let value = serde_json::to_value(row).map_err(|error| internal("writing a row", &error))?;
        out::line(&match arguments.format {
            Format::Jsonl => value.to_string(),
            Format::Csv => csv(&value),
        });
    }
    Ok(Exit::Done)
}

fn csv(row: &Value) -> String {
    let cell = |name: &str| match &row[name] {
        Value::Null => String::new(),
        Value::String(text) => quoted(text),
        other => other.to_string(),
    };
    COLUMNS.map(cell).join(",")
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn cells_with_separators_are_quoted() {
        assert_eq!(quoted("fair-d3s7"), "fair-d3s7");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"x\""), "\"say \"\"x\"\"\"");
    }
}
