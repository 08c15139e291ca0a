//! What runs produce: attempts and their tokens, games, curves, results.

use heldout::domain::ids::RunId;
use heldout::domain::records::{
    Chunk, Outcome, Point, ResultRecord, RunState, Validity, WorkState,
};
use heldout::domain::refusal::Code;
use heldout::domain::seed_range::Seed;
use heldout::store::{AttemptToken, Page, PlannedUnit, RunFilter};
use serde_json::json;

use crate::lab::{ENGINE, Lab, kinds, protocol, table};

#[tokio::test]
async fn a_replaced_attempt_changes_nothing_and_is_recorded() {
    let lab = Lab::new().await;
    let screening = lab.screening().await;
    let store = &lab.store;
    let (run, lease) = (&screening.run.id, &screening.lease.id);
    let old = screening.deep.clone();
    let new = store.start_attempt(run, "screen/deep").await.unwrap();
    assert_eq!((old.attempt, new.attempt), (1, 2));
    let units = store.units(run).await.unwrap();
    let game = screening.game("deep", 0);
    let chunk = Chunk {
        run_id: run.clone(),
        arm: "deep".into(),
        attempt: 9,
        chunk: 1,
        moves_total: 1,
        figures: json!({}),
    };
    let output = json!({});
    let forged = AttemptToken { token: "0".repeat(32), ..new.clone() };
    let before = kinds(store).await.len();
    for token in [&old, &forged] {
        let refusals = [
            store.add_games(token, lease, std::slice::from_ref(&game)).await.unwrap_err(),
            store.add_chunk(token, &chunk).await.unwrap_err(),
            store
                .finish_attempt(token, WorkState::Succeeded, None, Some(&output))
                .await
                .unwrap_err(),
            store.heartbeat(token, 3).await.unwrap_err(),
        ];
        assert!(refusals.iter().all(|refusal| refusal.code == Code::Superseded), "{refusals:?}");
    }
    // A sign of life is no report; the three reports of each token are on record.
    let after = kinds(store).await;
    assert_eq!(after[before..], vec!["report-superseded"; 6]);
    assert_eq!(store.units(run).await.unwrap(), units);
    assert_eq!(store.game_count(run, "deep").await.unwrap(), 0);
    assert_eq!(store.add_games(&new, lease, &[game]).await.unwrap(), 1);
    assert!(store.verify_everything().await.unwrap().iter().all(|check| check.passed));
}

#[tokio::test]
async fn units_end_once_and_only_success_has_an_output() {
    let lab = Lab::new().await;
    let frozen = lab.freeze(protocol("units", 4)).await;
    let run = lab.running(&frozen).await.id;
    let store = &lab.store;
    let token = lab.attempt(&run, "train", "train/C", 100).await;
    store.heartbeat(&token, 40).await.unwrap();
    assert_eq!(store.units(&run).await.unwrap()[0].done, 40);
    let output = json!({"best": 3});
    for (state, reason, output) in [
        (WorkState::Succeeded, None, None),
        (WorkState::Failed, None, None),
        (WorkState::Failed, Some(" "), None),
        (WorkState::Stopped, Some("asked"), Some(&output)),
        (WorkState::Skipped, Some("asked"), None),
        (WorkState::Running, None, None),
    ] {
        let refusal = store.finish_attempt(&token, state, reason, output).await.unwrap_err();
        assert_eq!(refusal.code, Code::InvalidRequest, "{state:?}");
    }
    store.finish_attempt(&token, WorkState::Stopped, Some("asked to"), None).await.unwrap();
    store.finish_attempt(&token, WorkState::Stopped, Some("asked to"), None).await.unwrap();
    let refusal =
        store.finish_attempt(&token, WorkState::Succeeded, None, Some(&output)).await.unwrap_err();
    assert_eq!(refusal.code, Code::Superseded);
    let second = store.start_attempt(&run, "train/C").await.unwrap();
    store.finish_attempt(&second, WorkState::Succeeded, None, Some(&output)).await.unwrap();
    store.finish_attempt(&second, WorkState::Succeeded, None, Some(&output)).await.unwrap();
    let other = json!({"best": 4});
    let refusal =
        store.finish_attempt(&second, WorkState::Succeeded, None, Some(&other)).await.unwrap_err();
    assert_eq!(refusal.code, Code::Superseded);
    assert_eq!(store.start_attempt(&run, "train/C").await.unwrap_err().code, Code::WrongState);
    assert_eq!(store.skip_unit(&run, "train/C", "x").await.unwrap_err().code, Code::WrongState);
    assert_eq!(store.start_attempt(&run, "nothing").await.unwrap_err().code, Code::NotFound);

    // Planning again, as a resumed run does, adds what is new and refuses what differs.
    let unit = |key: &str, total| PlannedUnit { stage: "train".into(), key: key.into(), total };
    store.plan_units(&run, &[unit("train/C", 100), unit("train/D", 5)]).await.unwrap();
    store.plan_units(&run, &[unit("train/C", 100), unit("train/D", 5)]).await.unwrap();
    store.skip_unit(&run, "train/D", "not needed").await.unwrap();
    store.skip_unit(&run, "train/D", "not needed").await.unwrap();
    let refusal = store.plan_units(&run, &[unit("train/C", 101)]).await.unwrap_err();
    assert_eq!(refusal.code, Code::WrongState);
    let units = store.units(&run).await.unwrap();
    let seen: Vec<_> =
        units.iter().map(|unit| (unit.key.as_str(), unit.state, unit.attempt)).collect();
    assert_eq!(seen, [("train/C", WorkState::Succeeded, 2), ("train/D", WorkState::Skipped, 0)]);
    assert_eq!(units[0].output, Some(output));
    assert!(store.verify_everything().await.unwrap().iter().all(|check| check.passed));
}

#[tokio::test]
async fn a_boot_resolves_what_the_one_before_left_running() {
    let lab = Lab::new().await;
    let screening = lab.screening().await;
    let run = &screening.run.id;
    let queued = lab.freeze(protocol("queued", 4)).await;
    let queued = lab
        .store
        .create_run(&queued.experiment.id, ENGINE, "b", &screening.run.machine_id)
        .await
        .unwrap();
    assert_eq!(lab.store.interrupt_all_running("boot-2").await.unwrap(), std::slice::from_ref(run));
    assert_eq!(lab.store.interrupt_all_running("boot-3").await.unwrap(), Vec::<RunId>::new());
    let after = lab.store.run(run).await.unwrap();
    assert_eq!(after.state, RunState::Interrupted);
    assert!(after.reason.unwrap().contains("boot-2"));
    assert!(after.ended_at.is_some());
    assert!(
        lab.store.units(run).await.unwrap().iter().all(|unit| unit.state == WorkState::Interrupted)
    );
    assert_eq!(lab.store.run(&queued.id).await.unwrap().state, RunState::Queued);
    assert_eq!(
        lab.store.start_attempt(run, "screen/deep").await.unwrap_err().code,
        Code::WrongState
    );
    let running = lab
        .store
        .set_run_state(run, &[RunState::Interrupted], RunState::Running, None)
        .await
        .unwrap();
    assert_eq!((running.reason, running.ended_at), (None, None));
    assert_eq!(lab.store.start_attempt(run, "screen/deep").await.unwrap().attempt, 2);
    assert_eq!(
        lab.store.heartbeat(&screening.deep, 1).await.unwrap_err().code,
        Code::Superseded,
        "a worker of the old boot"
    );
    let filter = RunFilter { state: Some(RunState::Queued), ..RunFilter::default() };
    assert_eq!(lab.store.runs(&filter, &Page::default()).await.unwrap(), [queued]);
    assert!(lab.store.verify_everything().await.unwrap().iter().all(|check| check.passed));
}

#[tokio::test]
async fn a_game_again_is_compared_and_a_different_one_voids_the_run() {
    let lab = Lab::new().await;
    let screening = lab.screening().await;
    let store = &lab.store;
    let (run, lease, token) = (&screening.run.id, &screening.lease.id, &screening.deep);
    let games: Vec<_> = (0..4).map(|ordinal| screening.game("deep", ordinal)).collect();
    assert_eq!(store.missing_ordinals(run, "deep", 4).await.unwrap(), [0, 1, 2, 3]);
    assert_eq!(store.add_games(token, lease, &games[1..3]).await.unwrap(), 2);
    assert_eq!(store.missing_ordinals(run, "deep", 4).await.unwrap(), [0, 3]);
    // Again with another wall time, beside a new one.
    let mut again = games[..3].to_vec();
    again[1].wall_seconds = Some(99.0);
    assert_eq!(store.add_games(token, lease, &again).await.unwrap(), 1);
    assert_eq!(store.all_games(run).await.unwrap(), games[..3]);
    assert_eq!(store.arms(run).await.unwrap(), [("shallow".into(), 4, 0), ("deep".into(), 4, 3)]);

    // Wrong games are refused whole and harm nothing.
    let mut wrong_seed = games[3].clone();
    wrong_seed.seed_hex = Seed(wrong_seed.seed_hex.0 + 1);
    let mut beyond = games[3].clone();
    (beyond.ordinal, beyond.seed_hex) = (4, Seed(screening.lease.start.0 + 4));
    let mut stranger = games[3].clone();
    stranger.arm = "stranger".into();
    let mut huge = games[3].clone();
    huge.work = Some(1 << 63);
    for wrong in [wrong_seed, beyond, stranger, huge] {
        let refusal =
            store.add_games(token, lease, &[games[3].clone(), wrong.clone()]).await.unwrap_err();
        assert!(refusal.code == Code::InvalidRequest, "{wrong:?}: {refusal}");
    }
    let other = lab.freeze(protocol("other", 4)).await.leases[0].id.clone();
    assert!(store.add_games(token, &other, &games[3..]).await.is_err());
    assert_eq!(store.game_count(run, "deep").await.unwrap(), 3);
    assert_eq!(store.run(run).await.unwrap().validity, Validity::Pending);

    let mut different = games[0].clone();
    different.moves += 1;
    let refusal = store.add_games(token, lease, &[games[3].clone(), different]).await.unwrap_err();
    assert_eq!(refusal.code, Code::Corrupt);
    assert!(refusal.detail.contains("game 0 of arm deep"), "{refusal}");
    let after = store.run(run).await.unwrap();
    assert_eq!(after.validity, Validity::Invalid);
    assert!(after.reason.unwrap().contains("game 0 of arm deep"));
    assert_eq!(store.all_games(run).await.unwrap(), games[..3]);
    assert!(kinds(store).await.contains(&String::from("game-diverged")));
    assert_eq!(
        store.add_result(&screening.result(lab.clock.now())).await.unwrap_err().code,
        Code::WrongState
    );
    assert!(store.verify_everything().await.unwrap().iter().all(|check| check.passed));
}

#[tokio::test]
async fn no_verdict_before_every_planned_game() {
    let lab = Lab::new().await;
    let screening = lab.screening().await;
    let store = &lab.store;
    let result = screening.result(lab.clock.now());
    let shallow: Vec<_> = (0..4).map(|ordinal| screening.game("shallow", ordinal)).collect();
    let deep: Vec<_> = (0..4).map(|ordinal| screening.game("deep", ordinal)).collect();
    store.add_games(&screening.shallow, &screening.lease.id, &shallow).await.unwrap();
    store.add_games(&screening.deep, &screening.lease.id, &deep[..3]).await.unwrap();
    let refusal = store.add_result(&result).await.unwrap_err();
    assert_eq!(refusal.code, Code::Incomplete);
    assert!(
        refusal.detail.contains("deep 3 of 4") && !refusal.detail.contains("shallow"),
        "{refusal}"
    );
    assert_eq!(
        store.run(&screening.run.id).await.unwrap().validity,
        Validity::Pending,
        "nothing was kept"
    );
    let refusal = store
        .set_run_state(&screening.run.id, &[RunState::Running], RunState::Completed, None)
        .await
        .unwrap_err();
    assert_eq!(refusal.code, Code::Incomplete);
    let partial_pass = ResultRecord { validity: Validity::Partial, ..result.clone() };
    assert_eq!(store.add_result(&partial_pass).await.unwrap_err().code, Code::InvalidRequest);
    for other in [
        ResultRecord { protocol_sha256: "0".repeat(64), ..result.clone() },
        ResultRecord { machine_id: lab.machine().await, ..result.clone() },
    ] {
        let other =
            ResultRecord { validity: Validity::Partial, outcome: Outcome::Inconclusive, ..other };
        assert_eq!(store.add_result(&other).await.unwrap_err().code, Code::InvalidRequest);
    }
    store.add_games(&screening.deep, &screening.lease.id, &deep).await.unwrap();
    store.add_result(&result).await.unwrap();
    let second =
        ResultRecord { id: "RS-20261201T000000Z-00000002".parse().unwrap(), ..result.clone() };
    assert_eq!(store.add_result(&second).await.unwrap_err().code, Code::WrongState);
    assert_eq!(store.results(&Page::default()).await.unwrap(), [result]);
    let refusal = store.add_games(&screening.deep, &screening.lease.id, &deep).await;
    assert_eq!(refusal.unwrap(), 0, "the same games again are no change");
}

#[tokio::test]
async fn games_come_in_pages_by_arm_and_ordinal() {
    let lab = Lab::new().await;
    let (screening, _) = lab.judged().await;
    let store = &lab.store;
    let run = &screening.run.id;
    let all = store.all_games(run).await.unwrap();
    let mut paged = Vec::new();
    let mut page = Page { after: None, limit: 3 };
    loop {
        let part = store.games(run, None, &page).await.unwrap();
        let Some(last) = part.last() else { break };
        page.after = Some(format!("{}/{}", last.arm, last.ordinal));
        paged.extend(part);
    }
    assert_eq!(paged, all);
    assert_eq!(store.games(run, Some("deep"), &Page::default()).await.unwrap(), all[4..]);
    let page = Page { after: Some("deep/1".into()), limit: 9 };
    assert_eq!(store.games(run, Some("deep"), &page).await.unwrap(), all[6..]);
    let page = Page { after: Some("deep".into()), limit: 9 };
    assert_eq!(store.games(run, None, &page).await.unwrap_err().code, Code::InvalidRequest);
}

#[tokio::test]
async fn a_curve_is_joined_where_a_later_attempt_went_on() {
    let lab = Lab::new().await;
    let frozen = lab.freeze(protocol("curve", 4)).await;
    let run = lab.running(&frozen).await.id;
    let store = &lab.store;
    let point = |number: u32, moves: u64, margin: f64| Point {
        run_id: run.clone(),
        arm: "C".into(),
        attempt: 0,
        point: number,
        moves,
        margin,
        is_best: false,
        figures: json!({"games": 4, "mean": margin * 2.0}),
    };
    let chunk = |number: u32, moves_total: u64| Chunk {
        run_id: run.clone(),
        arm: "C".into(),
        attempt: 0,
        chunk: number,
        moves_total,
        figures: json!({"seedWraps": 0}),
    };
    let first = lab.attempt(&run, "train", "train/C", 100).await;
    for number in 1..=4 {
        store.add_chunk(&first, &chunk(number, u64::from(number) * 10)).await.unwrap();
        assert!(
            store.add_point(&first, &point(number, u64::from(number) * 10, 0.25)).await.unwrap()
        );
    }
    assert!(!store.add_point(&first, &point(4, 40, 0.25)).await.unwrap());
    store.add_chunk(&first, &chunk(4, 40)).await.unwrap();
    for other in [point(4, 40, 0.5), point(5, 40, 0.25), point(4, 50, 0.25)] {
        assert_eq!(store.add_point(&first, &other).await.unwrap_err().code, Code::Corrupt);
    }
    assert_eq!(store.add_chunk(&first, &chunk(4, 41)).await.unwrap_err().code, Code::Corrupt);
    assert_eq!(
        store.add_point(&first, &point(5, 50, f64::NAN)).await.unwrap_err().code,
        Code::InvalidRequest
    );
    // The second attempt goes on from the checkpoint at point 2.
    let second = store.start_attempt(&run, "train/C").await.unwrap();
    store.add_point(&second, &point(3, 31, -0.5)).await.unwrap();
    store.add_chunk(&second, &chunk(3, 31)).await.unwrap();
    let points = store.points(&run, "C").await.unwrap();
    let seen: Vec<_> =
        points.iter().map(|point| (point.point, point.attempt, point.moves)).collect();
    assert_eq!(seen, [(1, 1, 10), (2, 1, 20), (3, 2, 31)]);
    assert_eq!(points[2].margin.to_bits(), (-0.5_f64).to_bits());
    assert_eq!(points[2].figures, json!({"games": 4, "mean": -1.0}));
    let chunks = store.chunks(&run, "C").await.unwrap();
    let seen: Vec<_> = chunks.iter().map(|chunk| (chunk.chunk, chunk.attempt)).collect();
    assert_eq!(seen, [(1, 1), (2, 1), (3, 2)]);
    assert_eq!(store.all_points(&run).await.unwrap().len(), 5, "nothing is lost");
    assert_eq!(store.curve_arms(&run).await.unwrap(), ["C"]);
    assert!(store.verify_everything().await.unwrap().iter().all(|check| check.passed));
}

#[tokio::test]
async fn the_same_bytes_are_one_artifact_of_two_runs() {
    let lab = Lab::new().await;
    let first = lab.freeze(protocol("first", 4)).await;
    let second = lab.freeze(protocol("second", 4)).await;
    let (first, second) = (lab.running(&first).await.id, lab.running(&second).await.id);
    let store = &lab.store;
    let mut artifact = table('a', Some(&first));
    store.add_artifact(&artifact).await.unwrap();
    store.add_artifact(&artifact).await.unwrap();
    artifact.run_id = Some(second.clone());
    artifact.name = "edited".into();
    store.add_artifact(&artifact).await.unwrap();
    assert_eq!(store.artifacts(&first).await.unwrap(), [table('a', Some(&first))]);
    assert_eq!(store.artifacts(&second).await.unwrap(), [artifact.clone()]);
    assert_eq!(store.artifact(&"a".repeat(64)).await.unwrap().name, "candidate");
    assert_eq!(store.artifact(&"b".repeat(64)).await.unwrap_err().code, Code::NotFound);
    artifact.stored_sha256 = "f".repeat(64);
    assert_eq!(store.add_artifact(&artifact).await.unwrap_err().code, Code::Corrupt);
    let stored = kinds(store).await.iter().filter(|kind| *kind == "artifact-stored").count();
    assert_eq!(stored, 2);
    assert!(store.verify_everything().await.unwrap().iter().all(|check| check.passed));
}

#[tokio::test]
async fn a_run_needs_its_engine_and_goes_only_where_it_may() {
    let lab = Lab::new().await;
    let frozen = lab.freeze(protocol("engine", 4)).await;
    let machine = lab.machine().await;
    let refusal =
        lab.store.create_run(&frozen.experiment.id, "drop7-2+ff", "b", &machine).await.unwrap_err();
    assert_eq!(refusal.code, Code::EngineMismatch);
    assert!(refusal.detail.contains("drop7-2+ff") && refusal.detail.contains(ENGINE), "{refusal}");
    let nowhere = "MACH-20261201T000000Z-00000000".parse().unwrap();
    let refusal =
        lab.store.create_run(&frozen.experiment.id, ENGINE, "b", &nowhere).await.unwrap_err();
    assert_eq!(refusal.code, Code::NotFound);
    let run = lab.running(&frozen).await;
    let refusal =
        lab.store.create_run(&frozen.experiment.id, ENGINE, "b", &machine).await.unwrap_err();
    assert!(
        refusal.code == Code::WrongState && refusal.detail.contains(run.id.as_str()),
        "{refusal}"
    );
    let go = async |from: RunState, to: RunState, reason: Option<&str>| {
        lab.store.set_run_state(&run.id, &[from], to, reason).await.map_err(|refusal| refusal.code)
    };
    assert_eq!(go(RunState::Queued, RunState::Running, None).await.unwrap_err(), Code::WrongState);
    assert_eq!(
        go(RunState::Running, RunState::Stopped, None).await.unwrap_err(),
        Code::InvalidRequest
    );
    assert_eq!(go(RunState::Running, RunState::Queued, None).await.unwrap_err(), Code::WrongState);
    assert_eq!(
        go(RunState::Running, RunState::Completed, None).await.unwrap_err(),
        Code::Incomplete
    );
    go(RunState::Running, RunState::Stopped, Some("asked to")).await.unwrap();
    go(RunState::Stopped, RunState::Running, None).await.unwrap();
    go(RunState::Running, RunState::Failed, Some("broken")).await.unwrap();
    assert_eq!(go(RunState::Failed, RunState::Running, None).await.unwrap_err(), Code::WrongState);
    let judge = async |validity| {
        lab.store.set_validity(&run.id, validity, "checked").await.map_err(|r| r.code)
    };
    judge(Validity::Partial).await.unwrap();
    assert_eq!(judge(Validity::Valid).await.unwrap_err(), Code::WrongState);
    judge(Validity::Invalid).await.unwrap();
    judge(Validity::Invalid).await.unwrap();
}
