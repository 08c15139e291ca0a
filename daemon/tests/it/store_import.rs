//! Published runs are taken over whole, once, and marked.

use heldout::domain::ids::{ExperimentId, RunId};
use heldout::domain::protocol::{Protocol, Role};
use heldout::domain::records::{
    Experiment, GameRecord, Lease, LeaseState, Machine, Opening, Origin, Outcome, Point,
    ResultRecord, Run, RunState, TableDigest, Theory, Validity,
};
use heldout::domain::refusal::Code;
use heldout::domain::seed_range::Seed;
use heldout::store::{Page, RunImport};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::lab::{Lab, block, kinds, new_experiment, protocol};

fn published(lab: &Lab, screening_start: u32) -> RunImport {
    let at = lab.clock.now();
    let protocol = b"{\"transcribed\":true}\n".to_vec();
    let sha256 = hex::encode(Sha256::digest(&protocol));
    let experiment_id = "EX-20260905-ntuple-scale-535b2620".parse::<ExperimentId>().unwrap();
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
    let bare = |arm: &str, ordinal: u32| GameRecord {
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
                Role::Training,
                0xa530_0000,
                0x1f_0000,
                None,
            ),
            lease(
                "SL-20260905T191317Z-c25f58cd",
                "screen",
                Role::HeldOut,
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
    let pinned = Protocol {
        seeds: [("screen".into(), block(Role::HeldOut, Some(0xa52f_2141), 4))].into(),
        ..protocol("pinned", 4)
    };
    let refusal = store.create_experiment(new_experiment(pinned)).await.unwrap_err();
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
