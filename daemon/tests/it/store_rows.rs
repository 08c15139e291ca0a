//! What runs produce: attempts and their tokens, games, curves, results, and taking over published runs.

use heldout::domain::ids::RunId;
use heldout::domain::records::{
    Chunk, Experiment, Lease, LeaseState, Machine, Opening, Origin, Outcome, Point, ResultRecord,
    Run, RunState, TableDigest, Theory, Validity, WorkState,
};
use heldout::domain::refusal::Code;
use heldout::domain::seed_range::Seed;
use heldout::store::{AttemptToken, Page, PlannedUnit, RunFilter, RunImport, Store};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::lab::{Lab, protocol, table};

async fn kinds(store: &Store) -> Vec<String> {
    store.events(0, 1000, None).await.unwrap().into_iter().map(|event| event.kind).collect()
}

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
        .create_run(&queued.experiment.id, crate::lab::ENGINE, "b", &screening.run.machine_id)
        .await
        .unwrap();
    assert_eq!(lab.store.interrupt_all_running("boot-2").await.unwrap(), [run.clone()]);
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
        assert!(
            matches!(refusal.code, Code::InvalidRequest | Code::Corrupt),
            "{wrong:?}: {refusal}"
        );
        if refusal.code == Code::Corrupt {
            panic!("{wrong:?} was compared with something");
        }
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
    assert!(
        refusal.detail.contains("drop7-2+ff") && refusal.detail.contains(crate::lab::ENGINE),
        "{refusal}"
    );
    let nowhere = "MACH-20261201T000000Z-00000000".parse().unwrap();
    let refusal = lab
        .store
        .create_run(&frozen.experiment.id, crate::lab::ENGINE, "b", &nowhere)
        .await
        .unwrap_err();
    assert_eq!(refusal.code, Code::NotFound);
    let run = lab.running(&frozen).await;
    let refusal = lab
        .store
        .create_run(&frozen.experiment.id, crate::lab::ENGINE, "b", &machine)
        .await
        .unwrap_err();
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

fn published(lab: &Lab, screening_start: u32) -> RunImport {
    let at = lab.clock.now();
    let protocol = b"{\"transcribed\":true}\n".to_vec();
    let sha256 = hex::encode(Sha256::digest(&protocol));
    let experiment_id =
        "EX-20260905-ntuple-scale-535b2620".parse::<heldout::domain::ids::ExperimentId>().unwrap();
    let run_id: RunId = "RUN-20260905T193006Z-4fbeb4e5".parse().unwrap();
    let machine = Machine {
        id: "MACH-20260905T193006Z-4fbeb4e5".parse().unwrap(),
        profile: json!({"cpu": {"model": "as published"}}),
        captured_at: at,
    };
    let lease = |id: &str, name: &str, role, start, count, opening| Lease {
        id: id.parse().unwrap(),
        experiment_id: experiment_id.clone(),
        name: name.into(),
        space: "drop7-headless-u32".into(),
        domain: "environment".into(),
        role,
        start: Seed(start),
        count,
        state: LeaseState::Opened,
        reserved_at: at,
        opening,
    };
    let opening = Opening {
        run_id: run_id.clone(),
        protocol_sha256: sha256.clone(),
        tables: vec![TableDigest { name: "candidate".into(), sha256: "c".repeat(64) }],
        opened_at: at,
    };
    let bare = |arm: &str, ordinal: u32| heldout::domain::records::GameRecord {
        arm: arm.into(),
        ordinal,
        seed_hex: Seed(screening_start + ordinal),
        score: 100_000 + i64::from(ordinal),
        moves: 90,
        numbered_cleared: None,
        covers_revealed: None,
        max_chain_depth: None,
        occupied_sum: None,
        mean_occupied_cells: None,
        clears: None,
        censored: ordinal == 1,
        illegal_decisions: 0,
        incomplete_decisions: 0,
        work: None,
        wall_seconds: None,
    };
    RunImport {
        theory: Theory {
            id: "TH-20260905-line-tuples-bcb25133".parse().unwrap(),
            title: "line tuples".into(),
            claim: "c".into(),
            mechanism: "m".into(),
            falsification_criteria: vec!["f".into()],
            origin: Origin::Own,
            created_at: at,
        },
        experiment: Experiment {
            id: experiment_id.clone(),
            theory_id: "TH-20260905-line-tuples-bcb25133".parse().unwrap(),
            title: "n-tuple scale".into(),
            kind: "tables".into(),
            tier: "screen".into(),
            protocol_sha256: sha256.clone(),
            predecessor: None,
            predecessor_reason: None,
            predecessor_was_open: None,
            engine: "published".into(),
            origin: Origin::Own,
            frozen_at: at,
            withdrawn_at: None,
            withdrawn_reason: None,
        },
        protocol,
        leases: vec![
            lease(
                "SL-20260905T191317Z-09895ea2",
                "training",
                heldout::domain::protocol::Role::Training,
                0xa530_0000,
                0x1f_0000,
                None,
            ),
            lease(
                "SL-20260905T191317Z-c25f58cd",
                "screen",
                heldout::domain::protocol::Role::HeldOut,
                screening_start,
                2,
                Some(opening),
            ),
        ],
        machine: machine.clone(),
        run: Run {
            id: run_id.clone(),
            experiment_id: experiment_id.clone(),
            protocol_sha256: sha256.clone(),
            state: RunState::Completed,
            validity: Validity::Valid,
            reason: None,
            engine: "published".into(),
            build: "drop7-bench".into(),
            machine_id: machine.id.clone(),
            origin: Origin::Own,
            created_at: at,
            started_at: Some(at),
            ended_at: Some(at),
        },
        screen: ("screen".into(), vec![("fair-d3s7".into(), 2), ("candidate-d3s7".into(), 2)]),
        games: ["fair-d3s7", "candidate-d3s7"]
            .iter()
            .flat_map(|arm| [bare(arm, 0), bare(arm, 1)])
            .collect(),
        chunks: Vec::new(),
        points: vec![Point {
            run_id: run_id.clone(),
            arm: "main".into(),
            attempt: 1,
            point: 1,
            moves: 200_003_947,
            margin: 95050.828125,
            is_best: true,
            figures: json!({}),
        }],
        result: Some(ResultRecord {
            id: "RS-20260905T215332Z-95d18a5a".parse().unwrap(),
            run_id,
            experiment_id,
            protocol_sha256: sha256,
            validity: Validity::Valid,
            outcome: Outcome::Pass,
            tier: "screen".into(),
            analysis: json!({}),
            summary: "as published".into(),
            limitations: Vec::new(),
            machine_id: machine.id,
            origin: Origin::Own,
            recorded_at: at,
        }),
    }
}

#[tokio::test]
async fn a_published_run_is_taken_over_once_whole_and_marked() {
    let lab = Lab::new().await;
    let store = &lab.store;
    let import = published(&lab, 0xa52f_2140);
    assert!(store.import_run(&import).await.unwrap());
    assert!(!store.import_run(&import).await.unwrap());
    let run = store.run(&import.run.id).await.unwrap();
    assert_eq!(
        (run.origin, run.state, run.validity),
        (Origin::Imported, RunState::Completed, Validity::Valid)
    );
    assert_eq!(store.all_games(&run.id).await.unwrap(), import.games);
    assert_eq!(store.points(&run.id, "main").await.unwrap(), import.points);
    assert_eq!(store.result_of(&run.id).await.unwrap().unwrap().origin, Origin::Imported);
    assert_eq!(store.protocol_bytes(&run.experiment_id).await.unwrap(), import.protocol);
    let leases = store.leases_of(&run.experiment_id).await.unwrap();
    assert!(leases.iter().all(|lease| lease.state == LeaseState::Opened));
    assert_eq!(leases[0].opening, import.leases[1].opening);
    assert!(store.verify_everything().await.unwrap().iter().all(|check| check.passed));
    assert!(store.verify_rows(&run.id).await.unwrap().iter().all(|check| check.passed));

    // Its seeds are gone for everybody else, and its block is open.
    let pinned = heldout::domain::protocol::Protocol {
        seeds: [(
            "screen".into(),
            crate::lab::block(heldout::domain::protocol::Role::HeldOut, Some(0xa52f_2141), 4),
        )]
        .into(),
        ..protocol("pinned", 4)
    };
    let refusal = store.create_experiment(crate::lab::new_experiment(pinned)).await.unwrap_err();
    assert_eq!(refusal.code, Code::AlreadyOpened);
    assert!(refusal.detail.contains("RUN-20260905T193006Z-4fbeb4e5"), "{refusal}");
}

#[tokio::test]
async fn an_import_that_lacks_games_or_takes_leased_seeds_leaves_nothing() {
    let lab = Lab::new().await;
    let store = &lab.store;
    let mut lacking = published(&lab, 0xa52f_2140);
    lacking.games.pop();
    assert_eq!(store.import_run(&lacking).await.unwrap_err().code, Code::Incomplete);
    let mut changed = published(&lab, 0xa52f_2140);
    changed.protocol.push(b' ');
    assert_eq!(store.import_run(&changed).await.unwrap_err().code, Code::InvalidRequest);
    assert_eq!(
        store.import_run(&published(&lab, 0xa527_7ffe)).await.unwrap_err().code,
        Code::LeaseOverlap
    );
    assert_eq!(kinds(store).await, Vec::<String>::new());
    assert!(store.theories(&Page::default()).await.unwrap().is_empty());
    assert!(store.import_run(&published(&lab, 0xa52f_2140)).await.unwrap());
}

#[tokio::test]
async fn lists_are_newest_first_and_pages_miss_none() {
    let lab = Lab::new().await;
    let mut made = Vec::new();
    for day in 1..=5 {
        lab.clock.set(format!("2026-12-0{day}T00:00:00Z").parse().unwrap());
        let mut protocol = protocol(&format!("day {day}"), 4);
        if let heldout::domain::protocol::TheoryRef::New(draft) = &mut protocol.theory {
            draft.title = format!("theory {day}");
        }
        let frozen = lab.freeze(protocol).await;
        lab.running(&frozen).await;
        made.push(frozen.experiment.id);
    }
    made.reverse();
    let store = &lab.store;
    let all: Vec<_> =
        store.experiments(&Page::default()).await.unwrap().into_iter().map(|e| e.id).collect();
    assert_eq!(all, made);
    let mut page = Page { after: None, limit: 2 };
    let mut paged = Vec::new();
    loop {
        let part = store.experiments(&page).await.unwrap();
        let Some(last) = part.last() else { break };
        page.after = Some(last.id.to_string());
        paged.extend(part.into_iter().map(|e| e.id));
    }
    assert_eq!(paged, made);
    assert_eq!(
        store.runs(&RunFilter::default(), &Page { after: None, limit: 3 }).await.unwrap().len(),
        3
    );
    let of_one = RunFilter { experiment: Some(made[0].clone()), ..RunFilter::default() };
    assert_eq!(store.runs(&of_one, &Page::default()).await.unwrap().len(), 1);
    assert_eq!(store.theories(&Page::default()).await.unwrap().len(), 5);
    assert_eq!(store.machines(&Page { after: None, limit: 0 }).await.unwrap().len(), 1);
    let theory = &store.theories(&Page::default()).await.unwrap()[4];
    assert_eq!(store.theory(&theory.id).await.unwrap().title, "theory 1");
}

#[tokio::test]
async fn a_clock_that_goes_back_does_not_reorder_the_history() {
    let lab = Lab::new().await;
    lab.freeze(protocol("now", 4)).await;
    lab.clock.set("2020-01-01T00:00:00Z".parse().unwrap());
    lab.freeze(protocol("then", 4)).await;
    let events = lab.store.events(0, 1000, None).await.unwrap();
    assert!(events.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq));
    assert!(events.last().unwrap().at < events[0].at);
    assert_eq!(lab.store.verify_event_chain().await.unwrap(), events.len() as u64);
    let tail = lab.store.events(2, 2, None).await.unwrap();
    assert_eq!(tail, events[2..4]);
}

/// The hash that a client computes from nothing but the served events.
#[tokio::test]
async fn the_chain_can_be_recomputed_from_what_is_served() {
    let lab = Lab::new().await;
    lab.judged().await;
    let mut previous = "0".repeat(64);
    for event in lab.store.events(0, 1000, None).await.unwrap() {
        let mut served = serde_json::to_value(&event).unwrap();
        let hash = served.as_object_mut().unwrap().remove("hash").unwrap();
        let canonical = serde_json_canonicalizer::to_string(&served).unwrap();
        let expected = hex::encode(Sha256::digest(format!("{previous}{canonical}")));
        assert_eq!(hash, expected, "event {}", event.seq);
        previous = expected;
    }
}

#[tokio::test]
async fn a_store_open_for_reading_reads_beside_the_writer_and_writes_nothing() {
    let lab = Lab::new().await;
    let frozen = lab.freeze(protocol("reading", 4)).await;
    let reader = Store::open_read_only(&lab.path(), lab.clock.clone()).await.unwrap();
    assert_eq!(reader.experiment(&frozen.experiment.id).await.unwrap(), frozen.experiment);
    let run = lab.running(&frozen).await;
    assert_eq!(reader.run(&run.id).await.unwrap(), run);
    reader.ping().await.unwrap();
    lab.store.ping().await.unwrap();
    let refusal = reader.cancel_lease(&frozen.leases[0].id, "x").await.unwrap_err();
    assert_eq!(refusal.code, Code::Locked);
    let nowhere = lab.path().with_file_name("nothing.sqlite");
    assert_eq!(
        Store::open_read_only(&nowhere, lab.clock.clone()).await.unwrap_err().code,
        Code::NotFound
    );
    assert!(!nowhere.exists());
    std::fs::write(&nowhere, b"this is no database at all, though it is a file").unwrap();
    for refusal in [
        Store::open(&nowhere, lab.clock.clone()).await.unwrap_err(),
        Store::open_read_only(&nowhere, lab.clock.clone()).await.unwrap_err(),
    ] {
        assert_eq!(refusal.code, Code::Corrupt, "{refusal}");
    }
}
