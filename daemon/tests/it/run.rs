//! A protocol from its document to its verdict.

use std::collections::BTreeMap;

use engine_core::train::Parallel;
use heldout::app::{App, CreateOptions};
use heldout::config::Config;
use heldout::domain::protocol::{MediaType, Role};
use heldout::domain::records::{LeaseState, Outcome, RunState, Validity, WorkState};
use heldout::domain::refusal::Code;
use heldout::exec::analyse::Analysis;
use heldout::exec::train::{TrainOutput, curve};

use crate::whole_run::{TINY, finished, open, read, until};

#[tokio::test]
async fn a_run_leaves_everything_its_verdict_rests_on() {
    let fixture = finished();
    let (status, rows) = read(fixture.path()).await.unwrap();
    assert_eq!(status.run.state, RunState::Completed);
    assert_eq!(status.run.validity, Validity::Valid);
    assert!(status.units.iter().all(|unit| unit.state == WorkState::Succeeded));
    assert!(status.units.iter().all(|unit| unit.attempt == 1 && unit.output.is_some()));

    // Training: budgets are spent, points are at their thresholds, the first point is a best one.
    for (arm, moves, points) in [("small", 1500, 2), ("tall", 1500, 2), ("main", 3000, 3)] {
        let unit = status.unit(&format!("train/{arm}")).unwrap();
        let output: TrainOutput = serde_json::from_value(unit.output.clone().unwrap()).unwrap();
        assert!((moves..moves + 200).contains(&output.moves), "{arm}: {}", output.moves);
        assert_eq!(output.points, points, "{arm}");
        assert_eq!(unit.done, output.moves);
        assert_eq!(output.table.is_some(), arm == "main", "only a candidate is kept");
        let curve = curve(&status.points, arm);
        assert_eq!(curve.len(), points as usize);
        assert!(curve[0].is_best);
    }

    // The block was opened by this run for the frozen candidate, and every arm played all of it.
    let lease = status.lease("screen").unwrap();
    let opening = lease.opening.as_ref().unwrap();
    assert_eq!((lease.role, lease.state), (Role::HeldOut, LeaseState::Opened));
    assert_eq!(opening.run_id, status.run.id);
    assert_eq!(opening.tables.len(), 1);
    assert_eq!(opening.tables[0].name, "candidate");
    let mut played: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for row in &rows {
        assert_eq!(row.seed_hex.0, lease.start.0 + row.ordinal);
        assert!(row.wall_seconds.is_some() && row.work.is_some());
        played.entry(&row.arm).or_default().push(row.ordinal);
    }
    assert_eq!(played.len(), 4);
    assert!(played.values().all(|ordinals| *ordinals == (0..12).collect::<Vec<_>>()));

    // The verdict.
    let result = status.result.unwrap();
    let analysis: Analysis = serde_json::from_value(result.analysis).unwrap();
    assert_eq!(analysis.gate.checks.len(), 6);
    assert_eq!(analysis.readings.len(), 2);
    assert_eq!(result.outcome == Outcome::Pass, analysis.gate.checks.iter().all(|c| c.passed));
    assert!(result.summary.contains("12 held-out games"));
    assert!(!result.limitations.is_empty());
}

#[tokio::test]
async fn the_opening_is_on_record_before_the_first_game_and_after_the_last_table() {
    let fixture = finished();
    let store = heldout::store::Store::open_read_only(
        &fixture.path().join("heldout.sqlite"),
        heldout::clock::Clock::system(),
    )
    .await
    .unwrap();
    let mut events = Vec::new();
    loop {
        let after = events.last().map_or(0, |event: &heldout::domain::records::Event| event.seq);
        let more = store.events(after, 1000, Some(&fixture.run)).await.unwrap();
        if more.is_empty() {
            break;
        }
        events.extend(more);
    }
    let first = |what: &str| {
        events
            .iter()
            .find(|event| event.kind.contains(what))
            .unwrap_or_else(|| panic!("no event like {what}"))
            .seq
    };
    let opened = first("lease-opened");
    let last_table = events
        .iter()
        .filter(|event| event.kind.contains("artifact"))
        .map(|event| event.seq)
        .max()
        .unwrap();
    assert!(last_table < opened, "tables are stored at {last_table}, opened at {opened}");
    assert!(opened < first("games"), "a game came before the opening");
}

async fn again(app: &App, repeat: bool) -> heldout::app::Created {
    let options = CreateOptions { repeat, dry_run: false };
    app.create_experiment(TINY, MediaType::Toml, options).await.unwrap()
}

#[tokio::test]
async fn an_opened_block_is_never_opened_again_and_a_repeat_draws_a_fresh_one() {
    let folder = finished().copy();
    let app = open(folder.path()).await;
    let same = again(&app, false).await;
    assert!(!same.created, "the protocol is frozen already");
    let first = same.experiment.unwrap();
    let refusal = app.start_run(&first.id).await.unwrap_err();
    assert_eq!(refusal.code, Code::AlreadyOpened);
    assert!(refusal.detail.contains(finished().run.as_str()), "{refusal}");

    let repeat = again(&app, true).await;
    assert!(repeat.created);
    let second = repeat.experiment.unwrap();
    assert_eq!(second.predecessor.as_ref(), Some(&first.id));
    assert_eq!(second.protocol_sha256, first.protocol_sha256);
    let screen = |leases: &[heldout::domain::records::Lease]| {
        leases.iter().find(|lease| lease.role == Role::HeldOut).unwrap().start
    };
    assert_ne!(screen(&repeat.leases), screen(&same.leases));
    assert!(repeat.leases.iter().all(|lease| lease.state == LeaseState::Reserved));
    app.shutdown(std::time::Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_second_process_is_refused_and_a_dry_run_stores_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let app = open(folder.path()).await;
    let config = Config::new(folder.path());
    let refusal = App::open(config).await.unwrap_err();
    assert_eq!(refusal.code, Code::Locked);
    assert!(refusal.detail.contains(&std::process::id().to_string()), "{refusal}");

    let options = CreateOptions { repeat: false, dry_run: true };
    let dry = app.create_experiment(TINY, MediaType::Toml, options).await.unwrap();
    assert!(!dry.created && dry.experiment.is_none(), "a dry run makes nothing");
    assert_eq!(dry.sha256.len(), 64);
    assert!(app.store().experiments(&heldout::store::Page::default()).await.unwrap().is_empty());
    app.shutdown(std::time::Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_budget_that_does_not_fit_the_machine_is_refused_with_the_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let app = open(folder.path()).await;
    let text = std::str::from_utf8(TINY).unwrap().replacen("threads = 1", "threads = 2", 1);
    let created = app
        .create_experiment(text.as_bytes(), MediaType::Toml, CreateOptions::default())
        .await
        .unwrap();
    let refusal = app.start_run(&created.experiment.unwrap().id).await.unwrap_err();
    assert_eq!(refusal.code, Code::OverBudget);
    assert_eq!(refusal.errors[0].pointer, "/budget/threads");
    assert!(refusal.errors[0].detail.contains("2 threads are declared, 1 are there"));
    app.shutdown(std::time::Duration::from_secs(5)).await;
}

#[tokio::test]
async fn lockstep_training_is_on_record_and_leaves_the_same_table_on_other_threads() {
    let mut tables = Vec::new();
    for threads in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { threads: Some(threads), ..Config::new(folder.path()) };
        let app = App::open(config).await.unwrap();
        let text = std::str::from_utf8(TINY)
            .unwrap()
            .replace("threads = 1", &format!("threads = {threads}"))
            .replace("[train]\n", "[train]\nlockstep_games = 4\n");
        let created = app
            .create_experiment(text.as_bytes(), MediaType::Toml, CreateOptions::default())
            .await
            .unwrap();
        let run = app.start_run(&created.experiment.unwrap().id).await.unwrap().id;
        let status = until(&app, &run, |status| status.run.state == RunState::Completed).await;
        app.wait(&run).await;

        let unit = status.unit("train/main").unwrap();
        let output: TrainOutput = serde_json::from_value(unit.output.clone().unwrap()).unwrap();
        assert_eq!(
            (output.threads, output.parallel),
            (threads as u32, Parallel::Lockstep { games: 4 })
        );
        let chunks = app.store().chunks(&run, "main").await.unwrap();
        assert!(chunks.iter().all(|chunk| chunk.figures["lockstepGames"] == 4));
        let limitations = status.result.unwrap().limitations;
        assert!(limitations.iter().any(|limit| limit.contains("in lockstep with 4 games")));
        assert!(!limitations.iter().any(|limit| limit.contains("lock-free")), "{limitations:?}");
        tables.push((output.moves, output.games, output.touched, output.table));
        app.shutdown(std::time::Duration::from_secs(5)).await;
    }
    assert_eq!(tables[0], tables[1]);
}
