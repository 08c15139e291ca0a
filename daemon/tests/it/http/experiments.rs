//! `/api/v1/experiments`.

use heldout::domain::refusal::Code;
use reqwest::header::{HeaderMap, IF_NONE_MATCH};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{NO_EXPERIMENT, SMALL, TestApp, snapshot};
use crate::lab::protocol;

fn small_json() -> Value {
    let table: toml::Table = SMALL.parse().unwrap();
    serde_json::to_value(table).unwrap()
}

#[tokio::test]
async fn the_same_protocol_is_the_same_experiment() {
    let app = TestApp::start().await;
    let path = "/api/v1/experiments";
    let first = app.post_bytes(path, "application/toml", SMALL).await;
    snapshot("created_experiment", &first);
    assert_eq!(first.status, StatusCode::CREATED);
    let id = first.json()["experiment"]["id"].as_str().unwrap().to_owned();
    assert_eq!(first.header("location"), format!("/api/v1/experiments/{id}"));

    let rows = app.dump().await;
    let again = app.post(path, &small_json()).await;
    assert_eq!(again.status, StatusCode::OK);
    assert_eq!(again.json()["created"], false);
    assert_eq!(again.json()["experiment"], first.json()["experiment"]);
    assert_eq!(again.json()["leases"], first.json()["leases"]);
    assert_eq!(app.dump().await, rows, "the second request changed something");

    let read = app.get(first.header("location")).await;
    assert_eq!(read.json(), first.json()["experiment"]);
    let list = app.get(path).await;
    assert_eq!(list.json()["items"], json!([first.json()["experiment"]]));
}

#[tokio::test]
async fn a_repeat_is_a_new_experiment_on_fresh_seeds() {
    let app = TestApp::start().await;
    let first = app.frozen(SMALL).await;
    let answer = app.post_bytes("/api/v1/experiments?repeat=true", "application/toml", SMALL).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    let second = answer.json();
    assert_eq!(second["experiment"]["protocol_sha256"], first["experiment"]["protocol_sha256"]);
    assert_eq!(second["experiment"]["predecessor"], first["experiment"]["id"]);
    assert_ne!(second["leases"][0]["start"], first["leases"][0]["start"]);
}

#[tokio::test]
async fn a_dry_run_tells_everything_and_stores_nothing() {
    let app = TestApp::start().await;
    let before = app.dump().await;
    let answer =
        app.post_bytes("/api/v1/experiments?dry_run=true", "application/toml", SMALL).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(app.dump().await, before);
    let dry = answer.json();
    assert_eq!(dry["created"], false);
    let real = app.frozen(SMALL).await;
    assert_eq!(dry["sha256"], real["sha256"]);
    assert_eq!(dry["estimate"], real["estimate"]);
}

#[tokio::test]
async fn of_many_requests_at_once_one_makes_the_experiment() {
    let app = TestApp::start().await;
    let requests = (0..8).map(|_| app.post_bytes("/api/v1/experiments", "application/toml", SMALL));
    let answers = futures::future::join_all(requests).await;
    let created = answers.iter().filter(|a| a.status == StatusCode::CREATED).count();
    assert_eq!(created, 1);
    let ids: Vec<_> = answers.iter().map(|a| a.json()["experiment"]["id"].clone()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
}

#[tokio::test]
async fn the_frozen_bytes_are_served_as_they_were_hashed() {
    let app = TestApp::start().await;
    let frozen = app.frozen(SMALL).await;
    let id = frozen["experiment"]["id"].as_str().unwrap();
    let path = format!("/api/v1/experiments/{id}/protocol");
    let answer = app.get(&path).await;
    let digest = hex::encode(Sha256::digest(&answer.body));
    assert_eq!(frozen["experiment"]["protocol_sha256"], digest.as_str());
    assert_eq!(answer.header("etag"), format!("\"{digest}\""));
    assert_eq!(answer.header("cache-control"), "private, max-age=31536000, immutable");
    assert_eq!(answer.json()["title"], "Small screen");

    let known = HeaderMap::from_iter([(IF_NONE_MATCH, answer.headers["etag"].clone())]);
    let again = app.send(Method::GET, &path, known, None).await;
    assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0));
    let head = app.send(Method::HEAD, &path, HeaderMap::new(), None).await;
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    assert_eq!(head.headers["etag"], answer.headers["etag"]);
}

#[tokio::test]
async fn a_withdrawn_experiment_stays_and_cannot_be_run() {
    let app = TestApp::start().await;
    let frozen = app.frozen(SMALL).await;
    let path = format!("/api/v1/experiments/{}", frozen["experiment"]["id"].as_str().unwrap());
    let withdraw = format!("{path}/withdraw");
    for (body, pointer) in [
        (json!({}), ""),
        (json!({"reason": "  "}), "/reason"),
        (json!({"reason": 5}), "/reason"),
        (json!({"reason": "x", "because": "y"}), "/because"),
        (json!([]), ""),
        (json!({"reason": "x".repeat(2001)}), "/reason"),
    ] {
        let answer = app.post(&withdraw, &body).await;
        assert_eq!(answer.refused(), (Code::InvalidRequest, vec![pointer.to_owned()]), "{body}");
    }
    let withdrawn = app.post(&withdraw, &json!({"reason": "a slip of the pen"})).await;
    snapshot("withdrawn_experiment", &withdrawn);
    let again = app.post(&withdraw, &json!({"reason": "once more"})).await;
    assert_eq!(again.refused().0, Code::WrongState);
    assert_eq!(app.get(&path).await.json(), withdrawn.json());
    let rows = app.dump().await;
    assert_eq!(app.act(&format!("{path}/runs")).await.refused().0, Code::WrongState);
    assert_eq!(app.dump().await, rows, "a run that may not begin leaves nothing behind");
}

#[tokio::test]
async fn an_experiment_of_another_engine_is_not_run() {
    let app = TestApp::start().await;
    let frozen = app.lab.freeze(protocol("another engine", 4)).await;
    let rows = app.dump().await;
    let path = format!("/api/v1/experiments/{}/runs", frozen.experiment.id);
    assert_eq!(app.act(&path).await.refused().0, Code::EngineMismatch);
    assert_eq!(app.dump().await, rows, "a run that may not begin leaves nothing behind");
}

#[tokio::test]
async fn nothing_is_done_to_an_experiment_that_is_not_there() {
    let app = TestApp::start().await;
    let path = format!("/api/v1/experiments/{NO_EXPERIMENT}");
    assert_eq!(app.get(&path).await.refused().0, Code::NotFound);
    assert_eq!(app.get(&format!("{path}/protocol")).await.refused().0, Code::NotFound);
    assert_eq!(app.act(&format!("{path}/runs")).await.refused().0, Code::NotFound);
    let withdraw = app.post(&format!("{path}/withdraw"), &json!({"reason": "x"})).await;
    assert_eq!(withdraw.refused().0, Code::NotFound);
    for path in ["EX-1", "RUN-20200101T000000Z-00000000", "%00", "%ff", "a%2Fb"] {
        let answer = app.get(&format!("/api/v1/experiments/{path}")).await;
        assert_eq!(answer.refused().0, Code::InvalidRequest, "{path}");
    }
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_refused_and_stores_nothing() {
    let app = TestApp::start().await;
    let path = "/api/v1/experiments";
    let before = app.dump().await;
    snapshot("no_media_type", &app.act(path).await);
    let form = app.post_bytes(path, "application/x-www-form-urlencoded", "a=b").await;
    assert_eq!(form.refused().0, Code::UnsupportedMediaType);
    let latin = app.post_bytes(path, "application/json; charset=latin1", "{}").await;
    assert_eq!(latin.refused().0, Code::UnsupportedMediaType);
    let mut padded = SMALL.as_bytes().to_vec();
    padded.resize(1 << 20, b'\n');
    let dry = format!("{path}?dry_run=true");
    let whole = app.post_bytes(&dry, "application/toml", padded.clone()).await;
    assert_eq!(whole.status, StatusCode::OK, "1 MiB is allowed");
    padded.push(b'\n');
    let large = app.post_bytes(path, "application/toml", padded).await;
    snapshot("one_byte_too_many", &large);
    let huge = app.post_bytes(path, "application/json", vec![b'['; 10 << 20]).await;
    assert_eq!(huge.refused().0, Code::TooLarge);
    let query = app.post_bytes(&format!("{path}?dry_run=maybe"), "application/toml", SMALL).await;
    assert_eq!(query.refused(), (Code::InvalidRequest, vec!["/query/dry_run".into()]));
    assert_eq!(app.dump().await, before);
}
