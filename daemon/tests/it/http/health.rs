//! The probes, request ids, and what happens where nothing is.

use std::time::{Duration, Instant};

use heldout::domain::refusal::Code;
use heldout::http;
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{TestApp, snapshot};

#[tokio::test]
async fn a_daemon_that_can_work_says_what_it_looked_at() {
    let app = TestApp::start().await;
    snapshot("healthz", &app.get("/healthz").await);
    snapshot("readyz", &app.get("/readyz").await);
}

#[tokio::test]
async fn a_daemon_that_cannot_work_lives_but_is_not_ready() {
    let app = TestApp::start().await;
    app.app.store().close().await;
    assert_eq!(app.get("/healthz").await.status, StatusCode::OK);
    let answer = app.get("/readyz").await;
    let (code, pointers) = answer.refused();
    assert_eq!(code, Code::Internal);
    assert_eq!(pointers, ["/conditions/database"]);
    let list = app.get("/api/v1/runs").await;
    assert_eq!(list.refused().0, Code::Internal);
    assert!(!list.text().contains("sqlx") && !list.text().contains("pool"), "{}", list.text());
}

#[tokio::test]
async fn a_stopping_daemon_takes_no_work() {
    let app = TestApp::start().await;
    let frozen = app.frozen(super::SMALL).await;
    let id = frozen["experiment"]["id"].as_str().unwrap();
    app.app.shutdown(Duration::from_secs(5)).await;
    let answer = app.get("/readyz").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.header("retry-after"), "5");
    let start = app.act(&format!("/api/v1/experiments/{id}/runs")).await;
    assert_eq!(start.refused().0, Code::Stopping);
}

#[tokio::test]
async fn where_nothing_is_the_answer_is_a_problem_too() {
    let app = TestApp::start().await;
    snapshot("nothing_here", &app.get("/api/v1/nothing").await);
    let answer = app.send(Method::DELETE, "/api/v1/runs", HeaderMap::new(), None).await;
    snapshot("unknown_method", &answer);
    let mut allowed: Vec<_> = answer.header("allow").split(',').map(str::trim).collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD"]);
    for path in ["/", "/api", "/api/v1", "/api/v1/runs/", "//", "/api/v1/runs/x/y/z"] {
        assert_eq!(app.get(path).await.refused().0, Code::NotFound, "{path}");
    }
    let head = app.send(Method::HEAD, "/api/v1/nothing", HeaderMap::new(), None).await;
    assert_eq!((head.status, head.body.len()), (StatusCode::NOT_FOUND, 0));
    assert_eq!(head.header("content-type"), "application/problem+json");
}

#[tokio::test]
async fn a_request_keeps_the_id_it_came_with() {
    let app = TestApp::start().await;
    let given = HeaderMap::from_iter([(http::edge::REQUEST_ID, "job-7".parse().unwrap())]);
    let answer = app.send(Method::GET, "/api/v1/nothing", given, None).await;
    assert_eq!(answer.header("x-request-id"), "job-7");
    assert_eq!(answer.problem().instance, "/requests/job-7");
}

#[tokio::test]
async fn a_page_of_another_site_can_do_nothing() {
    let app = TestApp::start().await;
    let frozen = app.frozen(super::SMALL).await;
    let start =
        format!("/api/v1/experiments/{}/runs", frozen["experiment"]["id"].as_str().unwrap());
    let before = app.dump().await;
    for (name, value) in [("origin", "http://evil.example"), ("host", "evil.example:80")] {
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
        let answer = app.send(Method::POST, &start, headers.clone(), None).await;
        assert_eq!(answer.refused(), (Code::ForeignOrigin, vec![format!("/header/{name}")]));
        let answer = app.send(Method::GET, "/api/v1/runs", headers, None).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
    }
    assert_eq!(app.dump().await, before);
    let own = HeaderMap::from_iter([(
        reqwest::header::ORIGIN,
        format!("http://{}", app.address).parse().unwrap(),
    )]);
    assert_eq!(app.send(Method::GET, "/api/v1/runs", own, None).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_panic_is_a_problem_that_tells_nothing() {
    let router = http::guarded(axum::Router::new().route(
        "/panic",
        axum::routing::get(async || -> &'static str { panic!("the secret is 42") }),
    ));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/panic", listener.local_addr().unwrap());
    let serving = tokio::spawn(async { axum::serve(listener, router).await });
    for _ in 0..2 {
        let response = reqwest::get(&url).await.unwrap();
        let answer = super::Answer {
            status: response.status(),
            headers: response.headers().clone(),
            body: response.bytes().await.unwrap().to_vec(),
        };
        assert_eq!(answer.refused().0, Code::Internal);
        assert!(!answer.text().contains("secret"), "{}", answer.text());
    }
    serving.abort();
}

#[tokio::test]
async fn an_address_that_others_can_reach_is_refused() {
    let refusal = http::bind("0.0.0.0:0".parse().unwrap()).await.unwrap_err();
    assert_eq!(refusal.code, Code::InvalidRequest);
    assert!(refusal.detail.contains("access tokens"), "{refusal}");
    let open = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let app = TestApp::start().await;
    let served = http::serve(app.app.clone(), open, CancellationToken::new()).await;
    assert_eq!(served.unwrap_err().code, Code::InvalidRequest);
    let taken = http::bind(app.address).await.unwrap_err();
    assert_eq!(taken.code, Code::Locked, "{taken}");
}

#[tokio::test]
async fn a_stop_lets_open_answers_end() {
    let app = TestApp::start().await;
    app.get("/healthz").await;
    let begun = Instant::now();
    app.stop.cancel();
    app.serving.await.unwrap().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}
