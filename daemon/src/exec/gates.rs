//! The CHECK gates, before any leased seed is read, and again on every frozen file.

use engine_core::check::{Effort, GateRun, GateSheet, run_all, run_tables};
use engine_core::ntuple::{FrozenTables, Layout};

use super::unit::{Ending, UnitContext, UnitResult, output};
use crate::domain::protocol::{Checks, Protocol};

/// How much the gates of `protocol` compare.
pub const fn effort(checks: Checks) -> Effort {
    match checks {
        Checks::Quick => Effort::Quick,
        Checks::Full => Effort::Full,
    }
}

/// The layouts a protocol trains, each once.
pub fn layouts(protocol: &Protocol) -> Vec<Layout> {
    let mut layouts: Vec<Layout> = Vec::new();
    for arm in &protocol.train {
        if let Ok(layout) = arm.layout.parse()
            && !layouts.contains(&layout)
        {
            layouts.push(layout);
        }
    }
    layouts
}

/// The unit: every gate of the engine. A gate that fails ends the run.
pub(super) fn run(context: &UnitContext) -> UnitResult {
    let layouts = layouts(&context.protocol);
    let effort = effort(context.protocol.checks);
    let sheet = run_all(
        &GateRun { layouts: &layouts, tables: None, effort },
        &*context.counter,
        context.stop.token(),
    );
    judge(context, &sheet)?;
    output(&sheet)
}

/// The gates that depend on tables, on a frozen file.
pub(super) fn on_tables(context: &UnitContext, tables: &FrozenTables) -> Result<GateSheet, Ending> {
    let effort = effort(context.protocol.checks);
    let sheet = run_tables(tables, effort, &engine_core::progress::Unwatched, context.stop.token());
    judge(context, &sheet)?;
    Ok(sheet)
}

fn judge(context: &UnitContext, sheet: &GateSheet) -> Result<(), Ending> {
    if let Some(failed) = sheet.outcomes.iter().find(|outcome| !outcome.passed) {
        return Err(Ending::Failed(format!("CHECK gate {}: {}", failed.name, failed.evidence)));
    }
    if !sheet.passed() {
        return Err(if context.stop.is_requested() {
            Ending::Stopped
        } else {
            Ending::Failed(format!(
                "{} of {} CHECK gates were run",
                sheet.outcomes.len(),
                sheet.planned
            ))
        });
    }
    Ok(())
}
