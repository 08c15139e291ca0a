//! The HTTP interface, seen from outside: a daemon on a free port with a data folder of its own.
//!
//! Every answer that a [`TestApp`] gets is held against the OpenAPI document: its status and media type
//! must be described there, and every refusal must be a complete problem.

mod artifacts;
mod bad_protocols;
mod events;
mod experiments;
mod games;
mod health;
mod imported;
mod leases;
mod machines;
mod openapi;
mod problems;
mod results;
mod runs;
mod theories;

use std::net::SocketAddr;

use heldout::app::App;
use heldout::config::Config;
use heldout::domain::refusal::Code;
use heldout::http;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use sqlx::Row as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::lab::Lab;

/// A small protocol whose screen plays nothing but the fair leaf.
pub(crate) const SMALL: &str = include_str!("small.toml");

/// Ids of the right form that no record has.
pub(crate) const NO_RUN: &str = "RUN-20200101T000000Z-00000000";
pub(crate) const NO_EXPERIMENT: &str = "EX-20200101-nothing-00000000";

/// A daemon that serves on a free port.
pub(crate) struct TestApp {
    pub(crate) app: App,
    pub(crate) lab: Lab,
    pub(crate) address: SocketAddr,
    pub(crate) stop: CancellationToken,
    pub(crate) serving: JoinHandle<Result<(), heldout::domain::refusal::Refusal>>,
    client: reqwest::Client,
    document: Value,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl TestApp {
    /// A daemon on a new data folder; its clock stands at 2026-12-01T00:00:00Z.
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = crate::lab::clock();
        let config = Config { clock: clock.clone(), ..Config::new(folder.path()) };
        let app = App::open(config).await.unwrap();
        let lab = Lab::over(app.store().clone(), clock, folder);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(http::serve(app.clone(), listener, stop.clone()));
        let document = serde_json::from_slice(&http::description().bytes).unwrap();
        Self { app, lab, address, stop, serving, client: reqwest::Client::new(), document }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, HeaderMap::new(), None).await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &'static str) -> Answer {
        let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
        self.send(Method::GET, path, headers, None).await
    }

    /// A POST without a body.
    pub(crate) async fn act(&self, path: &str) -> Answer {
        self.send(Method::POST, path, HeaderMap::new(), None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_bytes(path, "application/json", body.to_string()).await
    }

    pub(crate) async fn post_bytes(
        &self,
        path: &str,
        media: &str,
        body: impl Into<Vec<u8>>,
    ) -> Answer {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, media.parse().unwrap())]);
        self.send(Method::POST, path, headers, Some(body.into())).await
    }

    /// Sends a request and holds the answer against the document.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> Answer {
        let mut request = self.client.request(method.clone(), self.url(path)).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await.unwrap();
        let answer = Answer {
            status: response.status(),
            headers: response.headers().clone(),
            body: response.bytes().await.unwrap().to_vec(),
        };
        self.conforms(&method, path, &answer);
        answer
    }

    /// Status and media type are described, and a refusal is a problem.
    fn conforms(&self, method: &Method, path: &str, answer: &Answer) {
        let path = path.split('?').next().unwrap();
        assert!(answer.headers.contains_key("x-request-id"), "{method} {path}: no request id");
        if answer.status.as_u16() >= 400 && method != Method::HEAD {
            answer.problem();
        }
        let Some(operation) = self.operation(method, path) else {
            assert!(
                [404, 405].contains(&answer.status.as_u16()),
                "{method} {path} is not described and answers {}",
                answer.status
            );
            return;
        };
        let described = &operation["responses"][answer.status.as_str()];
        assert!(
            described.is_object(),
            "{method} {path} answers {}, which is not described: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
        let media = answer.header("content-type").split(';').next().unwrap().trim().to_owned();
        match described["content"].as_object() {
            Some(content) => assert!(
                content.contains_key(&media),
                "{method} {path} {}: {media} is not described",
                answer.status
            ),
            None => assert!(answer.body.is_empty(), "{method} {path}: a body is not described"),
        }
    }

    /// The operation that answers, if it is described.
    fn operation(&self, method: &Method, path: &str) -> Option<&Value> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let parts: Vec<_> = path.split('/').collect();
        let paths = self.document["paths"].as_object().unwrap();
        let fits = |template: &str| {
            let template: Vec<_> = template.split('/').collect();
            template.len() == parts.len()
                && template.iter().zip(&parts).all(|(t, p)| t == p || t.starts_with('{'))
        };
        let item = match paths.get(path) {
            Some(item) => item,
            None => paths.iter().find(|(template, _)| fits(template))?.1,
        };
        item.get(method.as_str().to_lowercase())
    }

    /// Freezes a protocol over HTTP and gives the answer's body.
    pub(crate) async fn frozen(&self, toml: &str) -> Value {
        let answer =
            self.post_bytes("/api/v1/experiments", "application/toml", toml.as_bytes()).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
        answer.json()
    }

    /// Every row of every table, as text.
    pub(crate) async fn dump(&self) -> Vec<String> {
        let mut database = self.lab.raw(true).await;
        let tables: Vec<String> = sqlx::query_scalar(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
        )
        .fetch_all(&mut database)
        .await
        .unwrap();
        let mut dump = Vec::new();
        for table in tables {
            let columns: Vec<String> =
                sqlx::query_scalar("SELECT name FROM pragma_table_info(?) ORDER BY cid")
                    .bind(&table)
                    .fetch_all(&mut database)
                    .await
                    .unwrap();
            let quoted: Vec<_> = columns.iter().map(|name| format!("quote(\"{name}\")")).collect();
            let sql =
                format!("SELECT {} AS line FROM \"{table}\" ORDER BY 1", quoted.join("||','||"));
            let rows =
                sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_all(&mut database).await.unwrap();
            dump.push(format!("-- {table}: {} rows", rows.len()));
            dump.extend(rows.iter().map(|row| row.get::<String, _>("line")));
        }
        dump
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The body as a complete problem whose parts agree with each other and with the headers.
    pub(crate) fn problem(&self) -> http::problem::Problem {
        let media = self.header("content-type");
        assert_eq!(media, "application/problem+json", "{} {}", self.status, self.text());
        let problem: http::problem::Problem = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem.status, self.status.as_u16());
        assert_eq!(http::problem::status(problem.code), self.status);
        assert_eq!(problem.type_uri, format!("/problems/{}", problem.code.name()));
        assert_eq!(problem.instance, format!("/requests/{}", self.header("x-request-id")));
        assert!(!problem.title.is_empty() && !problem.detail.is_empty());
        for error in &problem.errors {
            assert!(error.pointer.is_empty() || error.pointer.starts_with('/'), "{error:?}");
            assert!(!error.detail.is_empty());
        }
        let fields: Value = serde_json::from_slice(&self.body).unwrap();
        let names: Vec<_> = fields.as_object().unwrap().keys().map(String::as_str).collect();
        for name in ["type", "title", "status", "detail", "instance", "code", "hint", "errors"] {
            assert!(names.contains(&name), "no {name} in {names:?}");
        }
        problem
    }

    /// The code and the pointers of a refusal.
    #[track_caller]
    pub(crate) fn refused(&self) -> (Code, Vec<String>) {
        let problem = self.problem();
        (problem.code, problem.errors.into_iter().map(|error| error.pointer).collect())
    }

    /// The whole response as text for a snapshot.
    pub(crate) fn whole(&self) -> String {
        let mut headers: Vec<_> = self
            .headers
            .iter()
            .filter(|(name, _)| *name != "date" && *name != "content-length")
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        headers.sort();
        let body = match serde_json::from_slice::<Value>(&self.body) {
            Ok(json) if self.header("content-type").contains("json") => {
                serde_json::to_string_pretty(&json).unwrap()
            }
            _ => self.text(),
        };
        format!("{}\n{}\n\n{body}\n", self.status, headers.join("\n"))
    }
}

/// Snapshots a whole response with ids, digests and instants taken out.
pub(crate) fn snapshot(name: &str, answer: &Answer) {
    let mut settings = insta::Settings::clone_current();
    for (pattern, replacement) in [
        (r"\b(TH|EX)-\d{8}-([a-z0-9-]+)-[0-9a-f]{8}\b", "$1-<date>-$2-<hex>"),
        (r"\b(RUN|RS|SL|MACH)-\d{8}T\d{6}Z-[0-9a-f]{8}\b", "$1-<instant>-<hex>"),
        (r"/requests/[0-9a-f]{16}", "/requests/<id>"),
        (r"x-request-id: [0-9a-f]{16}", "x-request-id: <id>"),
        (r"\b[0-9a-f]{64}\b", "<sha256>"),
        (r"drop7-1\+[0-9a-f]{16}", "drop7-1+<hash>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (r#""next": "[0-9a-f]+""#, r#""next": "<cursor>""#),
    ] {
        settings.add_filter(pattern, replacement);
    }
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, answer.whole()));
}
