//! What to do next: `plan(protocol, observed) -> actions`, a pure function.
//!
//! Stages follow one another; a stage begins when every unit of the stage before has succeeded. The
//! held-out lease is opened between the last table and the first game, and nothing is judged before
//! every arm holds every planned game.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::status::RunStatus;
use crate::domain::ids::{LeaseId, RunId};
use crate::domain::protocol::{PlayerSpec, Protocol};
use crate::domain::records::{LeaseState, RunState, Unit, WorkState};

/// Stages of a run, in the order they happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// CHECK gates; no leased seed is read.
    Gates,
    /// Training arms.
    Train,
    /// The choice of one arm.
    Select,
    /// The long run of the chosen arm.
    Main,
    /// Digests of every table, before the held-out block is opened.
    Freeze,
    /// Edits of frozen tables.
    Edit,
    /// Games on the held-out block.
    Screen,
    /// Statistics, gate, readings, verdict.
    Analyse,
}

impl Stage {
    /// Every stage in order.
    pub const ALL: [Self; 8] = [
        Self::Gates,
        Self::Train,
        Self::Select,
        Self::Main,
        Self::Freeze,
        Self::Edit,
        Self::Screen,
        Self::Analyse,
    ];

    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gates => "gates",
            Self::Train => "train",
            Self::Select => "select",
            Self::Main => "main",
            Self::Freeze => "freeze",
            Self::Edit => "edit",
            Self::Screen => "screen",
            Self::Analyse => "analyse",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A unit of work as the protocol implies it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedUnit {
    /// Its stage.
    pub stage: Stage,
    /// Unique in the run.
    pub key: String,
    /// Moves of a training arm, games of a screen arm, 1 for everything else.
    pub total: u64,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum Action {
    /// Store the units of the run.
    PlanUnits {
        /// All of them, in order.
        units: Vec<PlannedUnit>,
    },
    /// Begin, or continue, a unit in a new attempt.
    Start {
        /// Its stage.
        stage: Stage,
        /// Its key.
        key: String,
    },
    /// Open the held-out lease for this run, for good.
    OpenLease {
        /// The lease.
        lease: LeaseId,
    },
    /// End the run without a verdict.
    Fail {
        /// Why.
        failure: Failure,
    },
    /// The verdict is stored: end the run.
    Complete,
}

/// Why a run ends without a verdict. The list is closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Failure {
    /// A unit failed.
    UnitFailed {
        /// Its key.
        key: String,
        /// What it said.
        reason: String,
    },
    /// Another run opened the held-out block.
    OpenedElsewhere {
        /// The lease.
        lease: LeaseId,
        /// Who opened it.
        by: RunId,
    },
    /// The held-out block is not there, or was given back.
    NoLease {
        /// Name of the block.
        block: String,
    },
    /// A screen arm says it is done and does not hold every planned game.
    MissingGames {
        /// The arm.
        arm: String,
        /// Games stored.
        held: u64,
        /// Games planned.
        planned: u64,
    },
    /// The analysis says it is done and left no result.
    NoResult,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnitFailed { key, reason } => write!(f, "{key}: {reason}"),
            Self::OpenedElsewhere { lease, by } => {
                write!(f, "the held-out lease {lease} was opened by {by}")
            }
            Self::NoLease { block } => write!(f, "the held-out block {block:?} has no live lease"),
            Self::MissingGames { arm, held, planned } => {
                write!(f, "arm {arm:?} holds {held} of {planned} planned games; nothing is judged")
            }
            Self::NoResult => f.write_str("the analysis ended without a result"),
        }
    }
}

/// Key of the unit that trains arm `name`.
pub fn train_key(name: &str) -> String {
    format!("train/{name}")
}

/// Key of the long run.
pub const MAIN_KEY: &str = "train/main";

/// Key of the unit that plays screen arm `name`.
pub fn screen_key(name: &str) -> String {
    format!("screen/{name}")
}

/// Key of the unit that makes the edited table `name`.
pub fn edit_key(name: &str) -> String {
    format!("edit/{name}")
}

/// Games each screen arm plays.
pub fn screen_games(protocol: &Protocol) -> u32 {
    protocol.seeds.get(&protocol.screen.seeds).map_or(0, |block| block.count)
}

/// The units a protocol implies, in the order they are worked off.
pub fn units_of(protocol: &Protocol) -> Vec<PlannedUnit> {
    let unit = |stage, key: String, total| PlannedUnit { stage, key, total };
    let games = u64::from(screen_games(protocol));
    let mut units = vec![unit(Stage::Gates, "gates".into(), 1)];
    units.extend(
        protocol.train.iter().map(|arm| unit(Stage::Train, train_key(&arm.name), arm.moves)),
    );
    if !protocol.train.is_empty() {
        units.push(unit(Stage::Select, "select".into(), 1));
    }
    units.extend(protocol.main.iter().map(|main| unit(Stage::Main, MAIN_KEY.into(), main.moves)));
    units.push(unit(Stage::Freeze, "freeze".into(), 1));
    units.extend(protocol.edits.iter().map(|edit| unit(Stage::Edit, edit_key(&edit.name), 1)));
    units.extend(
        protocol.screen.arms.iter().map(|arm| unit(Stage::Screen, screen_key(&arm.name), games)),
    );
    units.push(unit(Stage::Analyse, "analyse".into(), 1));
    units
}

/// What to do next. Empty when nothing can be done until a running unit ends, and for a run that is
/// not running.
pub fn plan(protocol: &Protocol, observed: &RunStatus) -> Vec<Action> {
    if observed.run.state != RunState::Running {
        return Vec::new();
    }
    let planned = units_of(protocol);
    if observed.units.is_empty() {
        return vec![Action::PlanUnits { units: planned }];
    }
    for stage in Stage::ALL {
        let units: Vec<&PlannedUnit> = planned.iter().filter(|unit| unit.stage == stage).collect();
        if let Some(failure) = failed(&units, observed) {
            return fail_when_idle(failure, observed);
        }
        let before = match stage {
            Stage::Screen => opening(protocol, observed),
            Stage::Analyse => complete_rows(protocol, observed),
            _ => Ok(()),
        };
        if let Err(action) = before {
            return vec![action];
        }
        if units.iter().any(|unit| !is_done(observed.unit(&unit.key))) {
            return starts(protocol, stage, &units, observed);
        }
    }
    match observed.result {
        Some(_) => vec![Action::Complete],
        None => vec![Action::Fail { failure: Failure::NoResult }],
    }
}

fn is_done(unit: Option<&Unit>) -> bool {
    unit.is_some_and(|unit| matches!(unit.state, WorkState::Succeeded | WorkState::Skipped))
}

fn is_running(unit: Option<&Unit>) -> bool {
    unit.is_some_and(|unit| unit.state == WorkState::Running)
}

fn failed(units: &[&PlannedUnit], observed: &RunStatus) -> Option<Failure> {
    units.iter().filter_map(|unit| observed.unit(&unit.key)).find_map(|unit| {
        (unit.state == WorkState::Failed).then(|| Failure::UnitFailed {
            key: unit.key.clone(),
            reason: unit.reason.clone().unwrap_or_else(|| String::from("no reason was recorded")),
        })
    })
}

/// A failure ends the run once its other units have come to rest.
fn fail_when_idle(failure: Failure, observed: &RunStatus) -> Vec<Action> {
    if observed.units.iter().any(|unit| unit.state == WorkState::Running) {
        Vec::new()
    } else {
        vec![Action::Fail { failure }]
    }
}

/// The held-out lease is open for this run, or what has to happen first.
fn opening(protocol: &Protocol, observed: &RunStatus) -> Result<(), Action> {
    let block = &protocol.screen.seeds;
    let no_lease = || Action::Fail { failure: Failure::NoLease { block: block.clone() } };
    let lease = observed.lease(block).ok_or_else(no_lease)?;
    match (lease.state, &lease.opening) {
        (LeaseState::Reserved, _) => Err(Action::OpenLease { lease: lease.id.clone() }),
        (LeaseState::Opened, Some(opening)) if opening.run_id == observed.run.id => Ok(()),
        (LeaseState::Opened, Some(opening)) => Err(Action::Fail {
            failure: Failure::OpenedElsewhere {
                lease: lease.id.clone(),
                by: opening.run_id.clone(),
            },
        }),
        (LeaseState::Opened, None) | (LeaseState::Cancelled, _) => Err(no_lease()),
    }
}

fn complete_rows(protocol: &Protocol, observed: &RunStatus) -> Result<(), Action> {
    let planned = u64::from(screen_games(protocol));
    for arm in &protocol.screen.arms {
        let held = observed.games.get(&arm.name).copied().unwrap_or(0);
        if held != planned {
            return Err(Action::Fail {
                failure: Failure::MissingGames { arm: arm.name.clone(), held, planned },
            });
        }
    }
    Ok(())
}

/// Plies of the search of a screen unit; 0 for a player without one.
fn plies(protocol: &Protocol, key: &str) -> u32 {
    let arm = protocol.screen.arms.iter().find(|arm| screen_key(&arm.name) == key);
    match arm.map(|arm| &arm.player) {
        Some(PlayerSpec::Search { search, .. }) => search.depth,
        _ => 0,
    }
}

/// Units of `stage` that can begin now: one at a time, with two exceptions. Training arms run side by
/// side as long as their threads fit into the budget. Screen arms all begin together and take games
/// from one pool of workers, the deepest search first: no worker waits for the last game of an arm,
/// and the last games of all are short ones.
fn starts(
    protocol: &Protocol,
    stage: Stage,
    units: &[&PlannedUnit],
    observed: &RunStatus,
) -> Vec<Action> {
    let threads = |key: &str| match stage {
        Stage::Train => protocol
            .train
            .iter()
            .find(|arm| train_key(&arm.name) == key)
            .map_or(protocol.budget.threads, |arm| arm.threads),
        _ => protocol.budget.threads,
    };
    if stage == Stage::Screen {
        let waiting = units.iter().filter(|unit| {
            let known = observed.unit(&unit.key);
            !is_done(known) && !is_running(known)
        });
        let mut waiting: Vec<&&PlannedUnit> = waiting.collect();
        waiting.sort_by_key(|unit| std::cmp::Reverse(plies(protocol, &unit.key)));
        return waiting.iter().map(|unit| Action::Start { stage, key: unit.key.clone() }).collect();
    }
    let mut used: u32 = units
        .iter()
        .filter(|unit| is_running(observed.unit(&unit.key)))
        .map(|unit| threads(&unit.key))
        .sum();
    let mut actions = Vec::new();
    for unit in units {
        let known = observed.unit(&unit.key);
        if is_done(known) || is_running(known) {
            continue;
        }
        let wanted = threads(&unit.key);
        if used > 0 && used + wanted > protocol.budget.threads {
            break;
        }
        used += wanted;
        actions.push(Action::Start { stage, key: unit.key.clone() });
    }
    actions
}
