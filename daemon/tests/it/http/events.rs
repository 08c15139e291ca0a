//! `/api/v1/events` and the stream of them.

use std::time::Duration;

use heldout::domain::refusal::Code;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use super::{SMALL, TestApp, snapshot};

#[tokio::test]
async fn every_change_is_in_the_log() {
    let app = TestApp::start().await;
    snapshot("no_events", &app.get("/api/v1/events").await);
    app.frozen(SMALL).await;
    let all = app.get("/api/v1/events").await.json();
    let items = all["items"].as_array().unwrap();
    let seqs: Vec<_> = items.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=items.len() as u64).collect::<Vec<_>>());
    let kinds: Vec<_> = items.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"experiment-frozen") && kinds.contains(&"lease-reserved"), "{kinds:?}");

    let mut paged = Vec::new();
    let mut after = 0;
    loop {
        let page = app.get(&format!("/api/v1/events?limit=1&after={after}")).await.json();
        paged.extend(page["items"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_u64() else { break };
        after = next;
    }
    assert_eq!(&paged, items);
}

#[tokio::test]
async fn the_log_of_a_run_has_only_its_events() {
    let app = TestApp::start().await;
    let screening = app.lab.screening().await;
    let run = screening.run.id.as_str();
    let of_run = app.get(&format!("/api/v1/events?run={run}")).await.json();
    let items = of_run["items"].as_array().unwrap();
    assert!(!items.is_empty());
    assert!(items.iter().all(|event| event["run_id"] == run));
    for (query, pointer) in [
        ("after=-1", "/query/after"),
        ("after=9223372036854775808", "/query/after"),
        ("after=99999999999999999999", "/query/after"),
        ("run=RUN-1", "/query/run"),
        ("limit=0", "/query/limit"),
    ] {
        let answer = app.get(&format!("/api/v1/events?{query}")).await;
        assert_eq!(answer.refused(), (Code::InvalidRequest, vec![pointer.to_owned()]), "{query}");
    }
}

/// A client of the stream: the text of messages, one by one.
struct Stream {
    response: reqwest::Response,
    buffer: String,
}

impl Stream {
    async fn open(app: &TestApp, query: &str, last: Option<&str>) -> Self {
        let mut headers = HeaderMap::new();
        if let Some(last) = last {
            headers.insert("last-event-id", last.parse().unwrap());
        }
        let url = app.url(&format!("/api/v1/events/stream{query}"));
        let response = reqwest::Client::new().get(url).headers(headers).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        assert_eq!(response.headers()["cache-control"], "no-store");
        Self { response, buffer: String::new() }
    }

    /// The fields of the next message, comments included; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Vec<String>> {
        loop {
            if let Some((message, rest)) = self.buffer.split_once("\n\n") {
                let lines = message.lines().map(str::to_owned).collect();
                let rest = rest.to_owned();
                self.buffer = rest;
                return Some(lines);
            }
            let chunk = tokio::time::timeout(Duration::from_secs(10), self.response.chunk())
                .await
                .expect("the stream is silent");
            let chunk = chunk.unwrap()?;
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The id and the data of the next event.
    async fn event(&mut self) -> (u64, Value) {
        loop {
            let lines = self.next().await.expect("the stream ended");
            let field =
                |name: &str| lines.iter().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            let Some(id) = field("id") else { continue };
            let data = serde_json::from_str(field("data").unwrap()).unwrap();
            return (id.parse().unwrap(), data);
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_taken_up_again_has_no_gaps_and_no_doubles() {
    let app = TestApp::start().await;
    app.frozen(SMALL).await;
    let mut seen: Vec<Value> = Vec::new();
    let mut last: Option<String> = None;
    for round in 0..4 {
        let mut stream = Stream::open(&app, "", last.as_deref()).await;
        // Some of what is there, then some that is written while the stream is open.
        let toml = SMALL.replace("Small screen", &format!("Screen {round}"));
        let (_, ()) = tokio::join!(app.frozen(&toml), async {
            for _ in 0..2 {
                let (id, data) = stream.event().await;
                assert_eq!(data["seq"], id, "the id is the number of the event");
                last = Some(id.to_string());
                seen.push(data);
            }
        });
    }
    let total = app.get("/api/v1/events?limit=500").await.json();
    let mut stream = Stream::open(&app, "", last.as_deref()).await;
    while seen.len() < total["items"].as_array().unwrap().len() {
        seen.push(stream.event().await.1);
    }
    assert_eq!(Value::Array(seen), total["items"]);
}

#[tokio::test]
async fn a_stream_starts_where_it_is_told_and_follows_one_run_if_asked() {
    let app = TestApp::start().await;
    let screening = app.lab.screening().await;
    let all = app.get("/api/v1/events?limit=500").await.json()["items"].as_array().unwrap().clone();
    let mut stream = Stream::open(&app, "?after=2", None).await;
    assert_eq!(stream.event().await.1, all[2]);
    let mut stream = Stream::open(&app, "?after=2", Some("1")).await;
    assert_eq!(stream.event().await.1, all[1], "the header has precedence");
    let run = screening.run.id.as_str();
    let mut stream = Stream::open(&app, &format!("?run={run}"), None).await;
    let first = all.iter().find(|event| event["run_id"] == run).unwrap();
    assert_eq!(stream.event().await.1, *first);
}

#[tokio::test]
async fn many_events_reach_a_reader_that_is_slow() {
    let app = TestApp::start().await;
    let mut stream = Stream::open(&app, "", None).await;
    let frozen = app.frozen(SMALL).await;
    for number in 0..300 {
        let request = json!({
            "experiment": frozen["experiment"]["id"], "name": format!("block-{number}"),
            "role": "training", "count": 256,
        });
        assert_eq!(app.post("/api/v1/leases", &request).await.status, StatusCode::CREATED);
    }
    for seq in 1..=300 {
        assert_eq!(stream.event().await.0, seq);
    }
}

#[tokio::test]
async fn a_place_that_is_no_number_is_refused() {
    let app = TestApp::start().await;
    for place in ["x", "-1", "1.5", "9223372036854775808"] {
        let headers =
            HeaderMap::from_iter([("last-event-id".parse().unwrap(), place.parse().unwrap())]);
        let path = "/api/v1/events/stream";
        let answer = app.send(reqwest::Method::GET, path, headers, None).await;
        let pointer = vec![String::from("/header/last-event-id")];
        assert_eq!(answer.refused(), (Code::InvalidRequest, pointer), "{place}");
    }
    let answer = app.get("/api/v1/events/stream?after=x").await;
    assert_eq!(answer.refused(), (Code::InvalidRequest, vec!["/query/after".into()]));
}

#[tokio::test]
async fn open_streams_end_with_a_last_word_when_the_daemon_stops() {
    let app = TestApp::start().await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = Stream::open(&app, "", None).await;
        stream.next().await.unwrap();
        streams.push(stream);
    }
    let begun = std::time::Instant::now();
    app.stop.cancel();
    for mut stream in streams {
        let mut last = Vec::new();
        while let Some(lines) = stream.next().await {
            last = lines;
        }
        assert_eq!(last, ["event: end", "data: {\"reason\":\"stopping\"}"]);
    }
    app.serving.await.unwrap().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}
