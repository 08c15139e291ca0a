//! Writing to the two standard streams. A reader that went away is no error.

use std::io::{self, Write as _};

use serde::Serialize;

use crate::domain::refusal::Refusal;
use crate::exec::unit::internal;

/// One line of an answer.
pub(super) fn line(text: &str) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// One line beside the answer.
pub(super) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// A refusal, with its fields and what to do.
pub(super) fn refusal(refusal: &Refusal) {
    note(&format!("refused: {refusal}"));
}

/// An answer in JSON.
///
/// # Errors
/// When it has no JSON form.
pub(super) fn json(value: &impl Serialize) -> Result<(), Refusal> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| internal("writing an answer as JSON", &error))?;
    line(&text);
    Ok(())
}

/// Columns padded to their widest cell; the first is left-aligned, the others right-aligned.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (column, cell) in row.iter().enumerate() {
            let room = widths[column];
            let padded =
                if column == 0 { format!(" {cell:<room$}") } else { format!("  {cell:>room$}") };
            line.push_str(&padded);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
