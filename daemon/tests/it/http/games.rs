//! `/api/v1/runs/{id}/games`.

use heldout::domain::refusal::Code;
use reqwest::StatusCode;
use serde_json::Value;

use super::{NO_RUN, TestApp, snapshot};

#[tokio::test]
async fn every_form_holds_the_same_games_in_the_order_of_arms_and_seeds() {
    let app = TestApp::start().await;
    let (screening, _) = app.lab.judged().await;
    let path = format!("/api/v1/runs/{}/games", screening.run.id);
    let expected = serde_json::to_value(app.lab.store.all_games(&screening.run.id).await.unwrap());
    let expected = expected.unwrap();

    let mut paged = Vec::new();
    let mut next = format!("{path}?limit=3");
    loop {
        let page = app.get(&next).await.json();
        let items = page["items"].as_array().unwrap().clone();
        assert!((1..=3).contains(&items.len()), "no page is empty");
        paged.extend(items);
        let Some(cursor) = page["next"].as_str() else { break };
        next = format!("{path}?limit=3&after={cursor}");
    }
    assert_eq!(Value::Array(paged), expected);

    let lines = app.get_as(&path, "application/jsonl").await;
    assert_eq!(lines.header("content-type"), "application/jsonl");
    assert_eq!(lines.header("vary"), "accept");
    let rows: Vec<Value> =
        lines.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(Value::Array(rows), expected);

    let csv = app.get_as(&path, "text/csv").await;
    snapshot("games_csv", &csv);
    let text = csv.text();
    let mut rows = text.split_terminator("\r\n").map(|row| row.split(',').collect::<Vec<_>>());
    let names = rows.next().unwrap();
    for (row, game) in rows.zip(expected.as_array().unwrap()) {
        for (name, field) in names.iter().zip(row) {
            let wanted = match &game[*name] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(field, wanted, "{name}");
        }
    }
    assert_eq!(text.split_terminator("\r\n").count(), 1 + expected.as_array().unwrap().len());

    let one = app.get_as(&format!("{path}?arm=deep"), "application/jsonl").await.text();
    assert_eq!(one.lines().count(), 4);
    assert!(one.lines().all(|line| line.contains("\"arm\":\"deep\"")));
}

#[tokio::test]
async fn a_run_without_games_has_empty_forms() {
    let app = TestApp::start().await;
    let screening = app.lab.screening().await;
    let path = format!("/api/v1/runs/{}/games", screening.run.id);
    snapshot("no_games", &app.get(&path).await);
    assert_eq!(app.get_as(&path, "application/jsonl").await.text(), "");
    let csv = app.get_as(&path, "text/csv").await.text();
    assert_eq!(csv.split_terminator("\r\n").count(), 1);
}

#[tokio::test]
async fn more_games_than_a_batch_come_without_gaps_or_doubles() {
    let app = TestApp::start().await;
    let games = 1234;
    let run = app.lab.many_games(games).await;
    let path = format!("/api/v1/runs/{run}/games");
    let text = app.get_as(&format!("{path}?arm=deep"), "text/csv").await.text();
    let ordinals: Vec<usize> = text
        .split_terminator("\r\n")
        .skip(1)
        .map(|row| row.split(',').nth(1).unwrap().parse().unwrap())
        .collect();
    assert_eq!(ordinals, (0..games as usize).collect::<Vec<_>>());
}

#[tokio::test]
async fn games_are_refused_with_the_reason() {
    let app = TestApp::start().await;
    let screening = app.lab.screening().await;
    let path = format!("/api/v1/runs/{}/games", screening.run.id);
    assert_eq!(app.get(&format!("/api/v1/runs/{NO_RUN}/games")).await.refused().0, Code::NotFound);
    let unread = app.get_as(&format!("/api/v1/runs/{NO_RUN}/games"), "text/csv").await;
    assert_eq!(unread.refused().0, Code::NotFound);
    snapshot("games_of_no_arm", &app.get(&format!("{path}?arm=dep")).await);
    let limited = app.get_as(&format!("{path}?limit=3"), "text/csv").await;
    assert_eq!(limited.refused(), (Code::InvalidRequest, vec!["/query/limit".into()]));
    let foreign = heldout::http::page::cursor("games", "nothing");
    let foreign = app.get(&format!("{path}?after={foreign}")).await;
    assert_eq!(foreign.status, StatusCode::UNPROCESSABLE_ENTITY);
    let other = heldout::http::page::cursor("runs", "deep/1");
    assert_eq!(app.get(&format!("{path}?after={other}")).await.refused().0, Code::InvalidRequest);
}
