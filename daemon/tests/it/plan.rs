//! The plan as tables: what was observed, what is done next.

use heldout::domain::records::{LeaseState, RunState, Unit, WorkState};
use heldout::exec::plan::{Action, Failure, plan};
use heldout::exec::recover::{Leftovers, Recovery, recover};
use heldout::exec::status::RunStatus;
use insta::assert_snapshot;

use crate::sample::{carry_out, fresh, open, planned, protocol, set};

fn next(status: &RunStatus) -> String {
    let lines: Vec<String> = plan(&protocol(), status).iter().map(line).collect();
    if lines.is_empty() { String::from("(wait)") } else { lines.join("\n") }
}

fn line(action: &Action) -> String {
    match action {
        Action::PlanUnits { units } => {
            let keys: Vec<String> =
                units.iter().map(|unit| format!("{}({})", unit.key, unit.total)).collect();
            format!("plan {}", keys.join(" "))
        }
        Action::Start { stage, key } => format!("start {key} [{stage}]"),
        Action::OpenLease { lease } => format!("open {lease}"),
        Action::Fail { failure } => format!("fail: {failure}"),
        Action::Complete => String::from("complete"),
    }
}

/// A status in which everything before `key` in the plan has succeeded.
fn before(key: &str) -> RunStatus {
    let mut status = planned();
    let keys: Vec<String> = status.units.iter().map(|unit| unit.key.clone()).collect();
    for earlier in keys.iter().take_while(|earlier| *earlier != key) {
        set(&mut status, earlier, WorkState::Succeeded);
        if let Some(arm) = earlier.strip_prefix("screen/") {
            status.games.insert(arm.to_owned(), 4);
        }
    }
    status
}

fn before_with_open_block(key: &str) -> RunStatus {
    let mut status = before(key);
    open(&mut status, "RUN-20260101T000000Z-00000001");
    status
}

#[test]
fn a_run_that_never_fails_goes_through_every_stage_once() {
    let mut status = fresh();
    let mut history = Vec::new();
    while status.run.state == RunState::Running {
        let actions = plan(&protocol(), &status);
        assert!(!actions.is_empty(), "stuck after {history:?}");
        history.push(actions.iter().map(line).collect::<Vec<_>>().join(" + "));
        for action in &actions {
            carry_out(&mut status, action);
        }
        assert!(history.len() < 30, "does not end: {history:?}");
    }
    assert_snapshot!(history.join("\n"), @r"
    plan gates(1) train/a(2000) train/b(2000) train/c(2000) select(1) train/main(4000) freeze(1) edit/zeroed(1) screen/tables(4) screen/direct(4) screen/fair(4) analyse(1)
    start gates [gates]
    start train/a [train] + start train/b [train]
    start train/c [train]
    start select [select]
    start train/main [main]
    start freeze [freeze]
    start edit/zeroed [edit]
    open SL-20260101T000000Z-00000001
    start screen/tables [screen] + start screen/fair [screen] + start screen/direct [screen]
    start analyse [analyse]
    complete
    ");
}

#[test]
fn the_block_opens_after_the_last_table_and_before_the_first_game() {
    let mut status = before("screen/tables");
    assert_snapshot!(next(&status), @"open SL-20260101T000000Z-00000001");
    open(&mut status, "RUN-20260101T000000Z-00000001");
    assert_snapshot!(next(&status), @r"
    start screen/tables [screen]
    start screen/fair [screen]
    start screen/direct [screen]
    ");

    set(&mut status, "edit/zeroed", WorkState::Interrupted);
    assert_snapshot!(next(&status), @"start edit/zeroed [edit]");
}

#[test]
fn a_block_that_another_run_opened_is_not_read() {
    let mut status = before("screen/tables");
    open(&mut status, "RUN-20250101T000000Z-0000000f");
    assert_snapshot!(next(&status), @"fail: the held-out lease SL-20260101T000000Z-00000001 was opened by RUN-20250101T000000Z-0000000f");
    status.leases[0].state = LeaseState::Cancelled;
    status.leases[0].opening = None;
    assert_snapshot!(next(&status), @r#"fail: the held-out block "screen" has no live lease"#);
    status.leases.clear();
    assert_snapshot!(next(&status), @r#"fail: the held-out block "screen" has no live lease"#);
}

#[test]
fn a_failed_gate_ends_the_run_and_opens_nothing() {
    let mut status = before("gates");
    set(&mut status, "gates", WorkState::Failed);
    status.units[0].reason = Some(String::from("reflection failed"));
    assert_snapshot!(next(&status), @"fail: gates: reflection failed");
    assert_eq!(status.leases[0].state, LeaseState::Reserved);
}

#[test]
fn a_failure_waits_for_the_other_units_to_come_to_rest() {
    let mut status = before("train/a");
    set(&mut status, "train/a", WorkState::Failed);
    set(&mut status, "train/b", WorkState::Running);
    assert_snapshot!(next(&status), @"(wait)");
    set(&mut status, "train/b", WorkState::Stopped);
    assert_snapshot!(next(&status), @"fail: train/a: no reason was recorded");
}

#[test]
fn training_arms_share_the_threads_of_the_budget() {
    let mut status = before("train/a");
    assert_snapshot!(next(&status), @r"
    start train/a [train]
    start train/b [train]
    ");
    set(&mut status, "train/a", WorkState::Running);
    assert_snapshot!(next(&status), @"start train/b [train]");
    set(&mut status, "train/b", WorkState::Running);
    assert_snapshot!(next(&status), @"(wait)");
    set(&mut status, "train/a", WorkState::Succeeded);
    assert_snapshot!(next(&status), @"(wait)");
    set(&mut status, "train/b", WorkState::Succeeded);
    assert_snapshot!(next(&status), @"start train/c [train]");
}

#[test]
fn screen_arms_play_beside_each_other() {
    let mut status = before_with_open_block("screen/tables");
    set(&mut status, "screen/fair", WorkState::Running);
    assert_snapshot!(next(&status), @r"
    start screen/tables [screen]
    start screen/direct [screen]
    ");
    set(&mut status, "screen/tables", WorkState::Succeeded);
    status.games.insert(String::from("tables"), 4);
    set(&mut status, "screen/direct", WorkState::Running);
    assert_snapshot!(next(&status), @"(wait)");
}

#[test]
fn interrupted_and_stopped_units_continue_where_they_were() {
    for state in [WorkState::Interrupted, WorkState::Stopped] {
        let mut status = before_with_open_block("screen/direct");
        set(&mut status, "screen/direct", state);
        status.games.insert(String::from("direct"), 1);
        let both = "start screen/fair [screen]\nstart screen/direct [screen]";
        assert_eq!(next(&status), both, "the deeper search first");
    }
}

#[test]
fn nothing_is_judged_while_a_game_is_missing_or_too_many() {
    for held in [0, 3, 5] {
        let mut status = before_with_open_block("analyse");
        status.games.insert(String::from("direct"), held);
        let actions = plan(&protocol(), &status);
        let expected = Failure::MissingGames { arm: String::from("direct"), held, planned: 4 };
        assert_eq!(actions, vec![Action::Fail { failure: expected }]);
    }
    let mut status = before_with_open_block("analyse");
    status.games.remove("fair");
    assert_snapshot!(next(&status), @r#"fail: arm "fair" holds 0 of 4 planned games; nothing is judged"#);
}

#[test]
fn an_analysis_without_a_result_is_not_a_success() {
    let mut status = before_with_open_block("analyse");
    set(&mut status, "analyse", WorkState::Succeeded);
    assert_snapshot!(next(&status), @"fail: the analysis ended without a result");
}

#[test]
fn a_run_that_is_not_running_has_nothing_to_do() {
    for state in [
        RunState::Queued,
        RunState::Stopped,
        RunState::Interrupted,
        RunState::Failed,
        RunState::Completed,
    ] {
        let mut status = planned();
        status.run.state = state;
        assert_eq!(plan(&protocol(), &status), Vec::new(), "{state:?}");
    }
}

fn units_with(key: &str, state: WorkState) -> Vec<Unit> {
    let mut status = planned();
    set(&mut status, key, state);
    status.units
}

#[test]
fn an_earlier_boot_leaves_interrupted_runs_and_their_checkpoints() {
    let folder = || String::from("RUN-20260101T000000Z-00000001");
    let in_state = |state| {
        let mut run = fresh().run;
        run.state = state;
        run
    };
    let left = |state, unit| Leftovers {
        runs: vec![(in_state(state), units_with("train/a", unit))],
        folders: vec![folder()],
    };
    let interrupted = |units: &[&str]| Recovery::Interrupt {
        run: fresh().run.id,
        units: units.iter().map(|&unit| unit.to_owned()).collect(),
    };
    let removed = || Recovery::RemoveFolder { folder: folder() };

    assert_eq!(recover(&left(RunState::Running, WorkState::Running)), [interrupted(&["train/a"])]);
    assert_eq!(recover(&left(RunState::Queued, WorkState::Pending)), [interrupted(&[])]);
    assert_eq!(recover(&left(RunState::Stopped, WorkState::Stopped)), []);
    assert_eq!(recover(&left(RunState::Interrupted, WorkState::Interrupted)), []);
    assert_eq!(recover(&left(RunState::Completed, WorkState::Succeeded)), [removed()]);
    assert_eq!(recover(&left(RunState::Failed, WorkState::Failed)), [removed()]);
    let orphan = Leftovers { runs: Vec::new(), folders: vec![folder()] };
    assert_eq!(recover(&orphan), [removed()]);
    assert_eq!(recover(&Leftovers::default()), []);
}
