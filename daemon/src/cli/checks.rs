//! `heldout gates`.

use clap::Args;
use engine_core::check::{Effort, GateRun, run_all};
use engine_core::progress::{Progress, StopToken};
use indicatif::ProgressBar;

use super::{Exit, Session, out};
use crate::domain::refusal::Refusal;

#[derive(Debug, Args)]
pub(super) struct GatesArgs {
    /// Compare as much as before a held-out block is opened; minutes instead of seconds.
    #[arg(long)]
    full: bool,
    /// A layout to check beside the fixed ones; may be given more than once.
    #[arg(long, value_name = "LAYOUT")]
    layout: Vec<String>,
}

/// A bar that counts gates.
struct Bar(ProgressBar);

impl Progress for Bar {
    fn advance(&self, amount: u64) {
        self.0.inc(amount);
    }
}

/// Runs the gates of this build and prints one line each.
pub(super) fn gates(session: &Session, arguments: &GatesArgs) -> Result<Exit, Refusal> {
    let layouts = super::layouts(&arguments.layout)?;
    let effort = if arguments.full { Effort::Full } else { Effort::Quick };
    let bar = Bar(ProgressBar::new_spinner().with_message("CHECK gates"));
    bar.0.enable_steady_tick(std::time::Duration::from_millis(200));
    let run = GateRun { layouts: &layouts, tables: None, effort };
    let sheet = run_all(&run, &bar, &StopToken::new());
    bar.0.finish_and_clear();
    if session.common.json {
        out::json(&sheet)?;
    } else {
        for outcome in &sheet.outcomes {
            let word = if outcome.passed { "PASS" } else { "FAIL" };
            out::line(&format!("{word} {} {}", outcome.name, outcome.evidence));
        }
        let passed = sheet.outcomes.iter().filter(|outcome| outcome.passed).count();
        out::line(&format!("{passed} of {} gates passed", sheet.planned));
    }
    Ok(if sheet.passed() { Exit::Done } else { Exit::Negative })
}
