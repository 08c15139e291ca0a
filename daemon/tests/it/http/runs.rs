//! `/api/v1/runs`.

use heldout::domain::refusal::Code;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{NO_RUN, SMALL, TestApp, snapshot};

#[tokio::test]
async fn a_run_is_read_with_everything_that_is_known_of_it() {
    let app = TestApp::start().await;
    let (screening, _) = app.lab.judged().await;
    let path = format!("/api/v1/runs/{}", screening.run.id);
    let read = app.get(&path).await;
    snapshot("run", &read);
    let status = read.json();
    assert_eq!(status["units"], app.get(&format!("{path}/units")).await.json());
    assert_eq!(app.get(&format!("{path}/progress")).await.json(), json!([]), "nothing is at work");
    let list = app.get("/api/v1/runs").await.json();
    assert_eq!(list["items"], json!([status["run"]]));
    let experiment = status["run"]["experiment_id"].as_str().unwrap();
    for (query, count) in [
        (format!("experiment={experiment}"), 1),
        (format!("experiment={experiment}&state=completed"), 1),
        (format!("experiment={experiment}&state=running"), 0),
        (format!("experiment={}", super::NO_EXPERIMENT), 0),
    ] {
        let list = app.get(&format!("/api/v1/runs?{query}")).await.json();
        assert_eq!(list["items"].as_array().unwrap().len(), count, "{query}");
    }
}

#[tokio::test]
async fn curves_are_served_by_arm() {
    let app = TestApp::start().await;
    let run = app.lab.curves().await;
    let path = format!("/api/v1/runs/{run}");
    snapshot("chunks", &app.get(&format!("{path}/chunks")).await);
    snapshot("points", &app.get(&format!("{path}/points?arm=main")).await);
    let none = app.get(&format!("{path}/points?arm=nobody")).await;
    assert_eq!(none.json(), json!([]));
}

#[tokio::test]
async fn nothing_is_done_to_a_run_that_is_not_there() {
    let app = TestApp::start().await;
    let path = format!("/api/v1/runs/{NO_RUN}");
    for part in
        ["", "/units", "/progress", "/chunks", "/points", "/contrasts", "/games", "/artifacts"]
    {
        let answer = app.get(&format!("{path}{part}")).await;
        assert_eq!(answer.refused().0, Code::NotFound, "{part}");
        let answer = app.get(&format!("/api/v1/runs/latest{part}")).await;
        assert_eq!(answer.refused(), (Code::InvalidRequest, vec!["/path/id".into()]), "{part}");
    }
    for part in ["/stop", "/resume"] {
        let answer = app.act(&format!("{path}{part}")).await;
        assert_eq!(answer.refused().0, Code::NotFound, "{part}");
    }
    let answer = app.post(&format!("{path}/validations"), &json!({})).await;
    assert_eq!(answer.refused().0, Code::NotFound);
    for (query, pointer) in [("state=done", "/query/state"), ("experiment=x", "/query/experiment")]
    {
        let answer = app.get(&format!("/api/v1/runs?{query}")).await;
        assert_eq!(answer.refused(), (Code::InvalidRequest, vec![pointer.into()]));
    }
}

#[tokio::test]
async fn a_run_that_is_over_is_not_stopped_or_validated_nor_resumed_by_another_engine() {
    let app = TestApp::start().await;
    let (screening, _) = app.lab.judged().await;
    let path = format!("/api/v1/runs/{}", screening.run.id);
    let before = app.dump().await;
    let stop = app.act(&format!("{path}/stop")).await;
    assert_eq!(stop.refused().0, Code::WrongState, "{}", stop.text());
    let resume = app.act(&format!("{path}/resume")).await;
    assert_eq!(resume.refused().0, Code::EngineMismatch, "{}", resume.text());
    let validation = app.post(&format!("{path}/validations"), &json!({"arm": "main"})).await;
    assert_eq!(validation.refused().0, Code::WrongState, "{}", validation.text());
    let wrong = app.post(&format!("{path}/validations"), &json!({"moves": 5})).await;
    assert_eq!(wrong.refused(), (Code::InvalidRequest, vec!["/moves".into()]));
    assert_eq!(app.dump().await, before);
}

/// The whole way over HTTP alone: freeze, start, follow the events, read the verdict.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_experiment_is_carried_out_to_its_verdict() {
    let app = TestApp::start().await;
    let frozen = app.frozen(SMALL).await;
    let id = frozen["experiment"]["id"].as_str().unwrap();
    let started = app.act(&format!("/api/v1/experiments/{id}/runs")).await;
    assert_eq!(started.status, StatusCode::CREATED, "{}", started.text());
    let path = started.header("location").to_owned();
    let twice = app.act(&format!("/api/v1/experiments/{id}/runs")).await;
    assert_eq!(twice.status, StatusCode::CONFLICT, "a retry starts nothing: {}", twice.text());
    let status = wait(&app, &path).await;
    assert_eq!(status["run"]["state"], "completed", "{status:#}");
    assert_eq!(status["run"]["validity"], "valid");
    assert_eq!(status["games"], json!({"deep": 8, "shallow": 8}));
    let lines = app.get_as(&format!("{path}/games"), "application/jsonl").await.text();
    assert_eq!(lines.lines().count(), 16);
    let contrasts = app.get(&format!("{path}/contrasts")).await.json();
    assert!(!contrasts["contrasts"].as_array().unwrap().is_empty(), "{contrasts}");

    let lease = &status["leases"][0];
    assert_eq!(lease["state"], "opened");
    assert_eq!(lease["opening"]["run_id"], status["run"]["id"]);
    let again = app.act(&format!("/api/v1/experiments/{id}/runs")).await;
    assert_eq!(again.refused().0, Code::AlreadyOpened, "{}", again.text());
    let resume = app.act(&format!("{path}/resume")).await;
    assert_eq!(resume.refused().0, Code::WrongState, "{}", resume.text());
}

/// A screen of many games is stopped between them, taken up again, and stopped again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_stopped_and_taken_up_again() {
    let app = TestApp::start().await;
    let long =
        SMALL.replace("count = 8", "count = 20000").replace("move_cap = 30", "move_cap = 500");
    let frozen = app.frozen(&long).await;
    let id = frozen["experiment"]["id"].as_str().unwrap();
    let started = app.act(&format!("/api/v1/experiments/{id}/runs")).await;
    assert_eq!(started.status, StatusCode::CREATED, "{}", started.text());
    let path = started.header("location").to_owned();
    let mut games = 0;
    for round in ["first", "second"] {
        let before = games;
        while games == before {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            let status = app.get(&path).await.json();
            assert!(["queued", "running"].contains(&status["run"]["state"].as_str().unwrap()));
            games = status["games"]["deep"].as_u64().unwrap_or_default();
        }
        let stopped = app.act(&format!("{path}/stop")).await;
        assert_eq!(stopped.status, StatusCode::OK, "{round}: {}", stopped.text());
        assert_eq!(stopped.json()["state"], "stopped", "{round}");
        let again = app.act(&format!("{path}/stop")).await;
        assert_eq!(again.json()["state"], "stopped", "a second stop changes nothing");
        let at_rest = app.get(&path).await.json();
        assert_eq!(app.get(&format!("{path}/progress")).await.json(), json!([]));
        games = at_rest["games"]["deep"].as_u64().unwrap();
        if round == "first" {
            let resumed = app.act(&format!("{path}/resume")).await;
            assert_eq!(resumed.status, StatusCode::OK, "{}", resumed.text());
        }
    }
    let lines = app.get_as(&format!("{path}/games?arm=deep"), "application/jsonl").await.text();
    let ordinals: std::collections::BTreeSet<_> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["ordinal"].as_u64().unwrap())
        .collect();
    assert_eq!(ordinals.len(), lines.lines().count(), "no game is there twice");
}

async fn wait(app: &TestApp, path: &str) -> Value {
    for _ in 0..600 {
        let status = app.get(path).await.json();
        let state = status["run"]["state"].as_str().unwrap();
        if !["queued", "running"].contains(&state) {
            return status;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    panic!("the run does not end");
}
