//! `/api/v1/theories`.

use heldout::domain::refusal::Code;
use reqwest::StatusCode;
use serde_json::json;

use super::{SMALL, TestApp, snapshot};

#[tokio::test]
async fn a_theory_is_on_record_with_its_experiment() {
    let app = TestApp::start().await;
    snapshot("no_theories", &app.get("/api/v1/theories").await);
    let frozen = app.frozen(SMALL).await;
    let list = app.get("/api/v1/theories").await;
    snapshot("one_theory", &list);
    let id = frozen["experiment"]["theory_id"].as_str().unwrap().to_owned();
    assert_eq!(list.json()["items"][0]["id"], id.as_str());
    let read = app.get(&format!("/api/v1/theories/{id}")).await;
    assert_eq!(read.json(), list.json()["items"][0]);
}

#[tokio::test]
async fn a_theory_is_recorded_before_it_is_tested() {
    let app = TestApp::start().await;
    let theory = json!({
        "title": "Depth", "claim": "Deeper is better.", "mechanism": "It sees more.",
        "falsification_criteria": ["It is not."],
    });
    let recorded = app.post("/api/v1/theories", &theory).await;
    snapshot("recorded_theory", &recorded);
    assert_eq!(recorded.status, StatusCode::CREATED);
    assert_eq!(app.get(recorded.header("location")).await.json(), recorded.json());
    let rows = app.dump().await;
    let toml = toml::to_string(&theory).unwrap();
    let again = app.post_bytes("/api/v1/theories", "application/toml", toml).await;
    assert_eq!((again.status, again.json()), (StatusCode::OK, recorded.json()));

    for (theory, pointer) in [
        (json!({"title": "t", "claim": "c", "mechanism": "m"}), "/falsification_criteria"),
        (json!("TH-20260905-line-tuples-bcb25133"), ""),
        (json!([]), ""),
        (
            {
                let mut t = theory.clone();
                t["title"] = json!(" ");
                t
            },
            "/title",
        ),
        (
            {
                let mut t = theory.clone();
                t["falsification_criteria"] = json!([]);
                t
            },
            "/falsification_criteria",
        ),
        (
            {
                let mut t = theory.clone();
                t["falsification"] = json!([]);
                t
            },
            "/falsification",
        ),
    ] {
        let answer = app.post("/api/v1/theories", &theory).await;
        assert_eq!(answer.refused(), (Code::InvalidRequest, vec![pointer.to_owned()]), "{theory}");
    }
    let broken = app.post_bytes("/api/v1/theories", "application/json", "{").await;
    assert_eq!(broken.refused().0, Code::MalformedDocument);
    assert_eq!(app.dump().await, rows);

    let id = recorded.json()["id"].as_str().unwrap().to_owned();
    let mut protocol: toml::Table = SMALL.parse().unwrap();
    protocol.insert("theory".into(), id.clone().into());
    let frozen = app.frozen(&protocol.to_string()).await;
    assert_eq!(frozen["experiment"]["theory_id"], id.as_str());
}

#[tokio::test]
async fn an_unknown_or_unreadable_theory_is_refused() {
    let app = TestApp::start().await;
    let unknown = app.get("/api/v1/theories/TH-20200101-nothing-00000000").await;
    assert_eq!(unknown.refused(), (Code::NotFound, vec![]));
    snapshot("unreadable_theory_id", &app.get("/api/v1/theories/TH-1").await);
}

#[tokio::test]
async fn pages_hold_what_is_asked_for_and_follow_each_other() {
    let app = TestApp::start().await;
    let mut made = Vec::new();
    for number in 0..5 {
        app.lab.tick();
        let toml = SMALL
            .replace("Deeper is better.", &format!("Claim {number}."))
            .replace("Small screen", &format!("Screen {number}"));
        made.push(app.frozen(&toml).await["experiment"]["theory_id"].clone());
    }
    made.reverse();
    let mut seen = Vec::new();
    let mut path = String::from("/api/v1/theories?limit=2");
    loop {
        let page = app.get(&path).await.json();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        seen.extend(items.iter().map(|theory| theory["id"].clone()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/api/v1/theories?limit=2&after={next}");
    }
    assert_eq!(seen, made);
}

#[tokio::test]
async fn a_query_is_refused_when_any_of_it_is_wrong() {
    let app = TestApp::start().await;
    for (query, pointer) in [
        ("limit=0", "/query/limit"),
        ("limit=501", "/query/limit"),
        ("limit=-1", "/query/limit"),
        ("limit=two", "/query/limit"),
        ("limit=", "/query/limit"),
        ("limit=1&limit=2", "/query/limit"),
        ("after=nonsense", "/query/after"),
        ("after=", "/query/after"),
        ("offset=3", "/query/offset"),
        ("=", "/query/"),
    ] {
        let answer = app.get(&format!("/api/v1/theories?{query}")).await;
        let (code, pointers) = answer.refused();
        assert_eq!(code, Code::InvalidRequest, "{query}");
        assert_eq!(pointers, [pointer], "{query}: {}", answer.text());
    }
}
