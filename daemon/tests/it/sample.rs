//! A small protocol and the observations of its runs.

use std::collections::BTreeMap;

use heldout::domain::protocol::{Protocol, Role};
use heldout::domain::records::{
    Lease, LeaseState, Opening, Origin, ResultRecord, Run, RunState, Unit, Validity, WorkState,
};
use heldout::domain::seed_range::Seed;
use heldout::exec::plan::{Action, units_of};
use heldout::exec::status::RunStatus;
use jiff::Timestamp;
use serde_json::{Value, json};

fn train_arm(name: &str, threads: u32) -> Value {
    json!({
        "name": name, "layout": "rows,phase=none", "moves": 2000, "chunk_moves": 500,
        "threads": threads, "alpha": 1.0, "epsilon": 0.0, "optimistic_rises": 20.0,
        "clamp_rises": 30.0, "move_cap": 200, "train_seed": "0x7d0c5eed", "seeds": "training",
        "validate": validate(), "stop": { "plateau": null }, "init_from": null,
    })
}

fn validate() -> Value {
    json!({
        "seeds": "validation", "every_moves": 1000, "games": 4,
        "search": { "depth": 1, "strata": 3 },
    })
}

/// Two training arms, a long run, an edit, three screen arms on four games.
pub(crate) fn protocol() -> Protocol {
    serde_json::from_value(json!({
        "format": "heldout-protocol-v1", "kind": "tables", "title": "Tiny",
        "hypothesis": "Row tables beat the fair leaf.",
        "theory": {
            "title": "Rows", "claim": "c", "mechanism": "m", "falsification_criteria": ["f"],
        },
        "amends": null, "tier": "pilot", "information": "public-policy", "engine": "drop7-1",
        "budget": { "threads": 2, "memory_bytes": 1_000_000_000u64, "wall_seconds": 60 },
        "seeds": {
            "training": { "role": "training", "start": null, "count": 512 },
            "validation": { "role": "validation", "start": null, "count": 4 },
            "screen": { "role": "held-out", "start": null, "count": 4 },
        },
        "checks": "quick",
        "train": [train_arm("a", 1), train_arm("b", 1), train_arm("c", 2)],
        "select": { "rule": "largest-final-margin" },
        "main": {
            "moves": 4000, "chunk_moves": 500, "validate": validate(),
            "stop": { "plateau": null }, "freeze": "largest-margin",
        },
        "tables": [],
        "edits": [{ "name": "zeroed", "of": "candidate", "set_untouched_to": "zero" }],
        "screen": {
            "seeds": "screen", "move_cap": 200,
            "arms": [
                arm("tables", &json!({"search": {"search": {"depth": 1, "strata": 3}, "leaf": "candidate"}})),
                arm("direct", &json!({"direct": {"table": "zeroed"}})),
                arm("fair", &json!({"search": {"search": {"depth": 1, "strata": 3}, "leaf": "fair"}})),
            ],
        },
        "gate": { "contrast": ["tables", "fair"], "criteria": ["bootstrap-lower-above-zero"] },
        "readings": [],
    }))
    .expect("the sample protocol is complete")
}

fn arm(name: &str, player: &Value) -> Value {
    json!({ "name": name, "player": player })
}

/// A run that has just begun: nothing is planned yet.
pub(crate) fn fresh() -> RunStatus {
    let now = Timestamp::UNIX_EPOCH;
    let experiment_id = "EX-20260101-tiny-00000001".parse().unwrap();
    RunStatus {
        run: Run {
            id: "RUN-20260101T000000Z-00000001".parse().unwrap(),
            experiment_id: "EX-20260101-tiny-00000001".parse().unwrap(),
            protocol_sha256: "0".repeat(64),
            state: RunState::Running,
            validity: Validity::Pending,
            reason: None,
            engine: String::from("drop7-1+0000000000000000"),
            build: String::from("test"),
            machine_id: "MACH-20260101T000000Z-00000001".parse().unwrap(),
            origin: Origin::Own,
            created_at: now,
            started_at: Some(now),
            ended_at: None,
        },
        units: Vec::new(),
        points: Vec::new(),
        leases: vec![Lease {
            id: "SL-20260101T000000Z-00000001".parse().unwrap(),
            experiment_id,
            name: String::from("screen"),
            space: String::from("drop7-headless-u32"),
            domain: String::from("environment"),
            role: Role::HeldOut,
            start: Seed(0x1000_0000),
            count: 4,
            state: LeaseState::Reserved,
            reserved_at: now,
            opening: None,
        }],
        games: BTreeMap::new(),
        result: None,
    }
}

/// The same with its units stored.
pub(crate) fn planned() -> RunStatus {
    let mut status = fresh();
    status.units = units_of(&protocol())
        .into_iter()
        .map(|unit| Unit {
            run_id: status.run.id.clone(),
            stage: unit.stage.name().to_owned(),
            key: unit.key,
            state: WorkState::Pending,
            attempt: 0,
            reason: None,
            done: 0,
            total: unit.total,
            output: None,
            started_at: None,
            ended_at: None,
        })
        .collect();
    status
}

/// Sets one unit.
pub(crate) fn set(status: &mut RunStatus, key: &str, state: WorkState) {
    let unit = status.units.iter_mut().find(|unit| unit.key == key).expect("a planned unit");
    unit.state = state;
    unit.attempt = unit.attempt.max(1);
}

/// Opens the held-out lease for the run `by`.
pub(crate) fn open(status: &mut RunStatus, by: &str) {
    let lease = &mut status.leases[0];
    lease.state = LeaseState::Opened;
    lease.opening = Some(Opening {
        run_id: by.parse().unwrap(),
        protocol_sha256: "0".repeat(64),
        tables: Vec::new(),
        opened_at: Timestamp::UNIX_EPOCH,
    });
}

/// Does what an executor would that never fails.
pub(crate) fn carry_out(status: &mut RunStatus, action: &Action) {
    match action {
        Action::PlanUnits { .. } => status.units = planned().units,
        Action::Start { key, .. } => {
            set(status, key, WorkState::Succeeded);
            if let Some(arm) = key.strip_prefix("screen/") {
                status.games.insert(arm.to_owned(), 4);
            }
            if key == "analyse" {
                status.result = Some(result(status));
            }
        }
        Action::OpenLease { .. } => {
            let by = status.run.id.to_string();
            open(status, &by);
        }
        Action::Fail { .. } => status.run.state = RunState::Failed,
        Action::Complete => status.run.state = RunState::Completed,
    }
}

fn result(status: &RunStatus) -> ResultRecord {
    ResultRecord {
        id: "RS-20260101T000000Z-00000001".parse().unwrap(),
        run_id: status.run.id.clone(),
        experiment_id: status.run.experiment_id.clone(),
        protocol_sha256: status.run.protocol_sha256.clone(),
        validity: Validity::Valid,
        outcome: heldout::domain::records::Outcome::Pass,
        tier: String::from("pilot"),
        analysis: Value::Null,
        summary: String::new(),
        limitations: Vec::new(),
        machine_id: status.run.machine_id.clone(),
        origin: Origin::Own,
        recorded_at: Timestamp::UNIX_EPOCH,
    }
}
