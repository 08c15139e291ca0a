//! `/api/v1/theories`.

use heldout::domain::refusal::Code;

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
