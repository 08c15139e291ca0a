//! Published runs beside our own.

use std::path::Path;

use heldout::domain::refusal::Code;
use serde_json::json;

use super::{SMALL, TestApp};

#[tokio::test]
async fn a_published_run_is_read_like_any_other_and_its_seeds_are_spent() {
    let app = TestApp::start().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocols/published");
    let imported = app.app.import_published(&folder).await.unwrap();
    assert!(!imported.is_empty());
    let runs = app.get("/api/v1/runs").await.json();
    let runs = runs["items"].as_array().unwrap();
    assert_eq!(runs.len(), imported.len());
    let mut with_games = 0;
    for run in runs {
        assert_eq!(run["origin"], "imported");
        let path = format!("/api/v1/runs/{}", run["id"].as_str().unwrap());
        let status = app.get(&path).await.json();
        assert_eq!(status["result"]["origin"], "imported");
        let contrasts = app.get(&format!("{path}/contrasts")).await.json();
        let contrasts = contrasts["contrasts"].as_array().unwrap().clone();
        assert!(!contrasts.is_empty());
        for contrast in contrasts {
            assert!(contrast["candidate"].is_string() && contrast["reference"].is_string());
            assert!(contrast["score"]["meanDelta"].is_number(), "{contrast}");
        }
        let lines = app.get_as(&format!("{path}/games"), "application/jsonl").await.text();
        with_games += usize::from(lines.lines().next().is_some());
        let stop = app.act(&format!("{path}/stop")).await;
        assert_eq!(stop.refused().0, Code::WrongState);
        let experiment = run["experiment_id"].as_str().unwrap();
        let start = app.act(&format!("/api/v1/experiments/{experiment}/runs")).await;
        assert!(start.status.is_client_error(), "{}", start.text());
        for lease in status["leases"].as_array().unwrap() {
            if lease["role"] != "held-out" {
                continue;
            }
            assert_eq!(lease["state"], "opened");
            let toml =
                SMALL.replace("count = 8", &format!("start = {}\ncount = 8", lease["start"]));
            let answer = app.post_bytes("/api/v1/experiments", "application/toml", toml).await;
            let (code, pointers) = answer.refused();
            assert!([Code::AlreadyOpened, Code::LeaseOverlap].contains(&code), "{code:?}");
            assert!(!pointers.is_empty());
        }
    }
    assert!(with_games >= 2, "{with_games} published runs have rows");
    assert_eq!(app.get("/api/v1/runs?state=running").await.json()["items"], json!([]));
}
