//! `/api/v1/results` and the contrasts of a run.

use heldout::domain::refusal::Code;

use super::{NO_RUN, TestApp, snapshot};

#[tokio::test]
async fn a_verdict_is_served_with_what_it_rests_on() {
    let app = TestApp::start().await;
    let (screening, result) = app.lab.judged().await;
    let read = app.get(&format!("/api/v1/results/{}", result.id)).await;
    snapshot("result", &read);
    let list = app.get("/api/v1/results").await.json();
    assert_eq!(list["items"], serde_json::json!([read.json()]));
    let run = app.get(&format!("/api/v1/runs/{}", screening.run.id)).await.json();
    assert_eq!(run["result"], read.json());
    let contrasts = app.get(&format!("/api/v1/runs/{}/contrasts", screening.run.id)).await;
    assert_eq!(contrasts.json()["result_id"], read.json()["id"]);
    assert!(contrasts.json()["contrasts"].is_array());
}

#[tokio::test]
async fn there_are_no_contrasts_before_the_last_game() {
    let app = TestApp::start().await;
    let screening = app.lab.screening().await;
    let early = app.get(&format!("/api/v1/runs/{}/contrasts", screening.run.id)).await;
    snapshot("contrasts_too_early", &early);
    assert_eq!(early.refused().0, Code::Incomplete);
    let nobody = app.get(&format!("/api/v1/runs/{NO_RUN}/contrasts")).await;
    assert_eq!(nobody.refused().0, Code::NotFound);
}

#[tokio::test]
async fn an_unknown_result_is_refused() {
    let app = TestApp::start().await;
    let unknown = app.get("/api/v1/results/RS-20200101T000000Z-00000000").await;
    assert_eq!(unknown.refused().0, Code::NotFound);
    let unreadable = app.get("/api/v1/results/verdict").await;
    assert_eq!(unreadable.refused(), (Code::InvalidRequest, vec!["/path/id".into()]));
    assert_eq!(app.get("/api/v1/results?limit=x").await.refused().0, Code::InvalidRequest);
}
