//! What an earlier boot left behind, and what to do about it: a pure function, carried out before
//! the listener opens.
//!
//! Nothing is thrown away that a resumed run could use: checkpoints of runs that can go on stay, an
//! opened lease stays opened, and stored rows stay stored.

use serde::Serialize;

use crate::domain::ids::RunId;
use crate::domain::records::{Run, RunState, Unit, WorkState};

/// What was found on the disk and in the database.
#[derive(Debug, Clone, Default)]
pub struct Leftovers {
    /// Every run that is not over, with its units, and every run that has a working folder.
    pub runs: Vec<(Run, Vec<Unit>)>,
    /// Names of the folders under `work/`.
    pub folders: Vec<String>,
}

/// One thing to do before anything else happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "recovery", rename_all = "kebab-case")]
pub enum Recovery {
    /// The run was under way: it and its running units become interrupted and can be resumed.
    Interrupt {
        /// The run.
        run: RunId,
        /// Keys of the units that were running.
        units: Vec<String>,
    },
    /// The working folder belongs to a run that is over, or to none.
    RemoveFolder {
        /// Name under `work/`.
        folder: String,
    },
}

/// Whether a run can still go on, so that its working files are needed.
pub fn can_go_on(state: RunState) -> bool {
    match state {
        RunState::Queued | RunState::Running | RunState::Stopped | RunState::Interrupted => true,
        RunState::Failed | RunState::Completed => false,
    }
}

/// What to do with `left`.
pub fn recover(left: &Leftovers) -> Vec<Recovery> {
    let mut actions = Vec::new();
    for (run, units) in &left.runs {
        let running: Vec<String> = units
            .iter()
            .filter(|unit| unit.state == WorkState::Running)
            .map(|unit| unit.key.clone())
            .collect();
        let was_under_way = matches!(run.state, RunState::Queued | RunState::Running);
        if was_under_way || !running.is_empty() {
            actions.push(Recovery::Interrupt { run: run.id.clone(), units: running });
        }
    }
    for folder in &left.folders {
        let needed =
            left.runs.iter().any(|(run, _)| run.id.as_str() == folder && can_go_on(run.state));
        if !needed {
            actions.push(Recovery::RemoveFolder { folder: folder.clone() });
        }
    }
    actions
}
