//! `/openapi.json`.

use std::collections::BTreeSet;

use heldout::domain::refusal::Code;
use heldout::http;
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::TestApp;

fn document() -> Value {
    serde_json::from_slice(&http::description().bytes).unwrap()
}

fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            operations.push((method.to_uppercase(), path.clone(), operation));
        }
    }
    operations
}

#[test]
fn the_document_is_the_one_on_record() {
    insta::assert_snapshot!("openapi", String::from_utf8_lossy(&http::description().bytes));
}

#[test]
fn every_operation_says_what_it_does_and_how_it_refuses() {
    let document = document();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id.to_owned()), "{id} twice");
        for field in ["summary", "description"] {
            let text = operation[field].as_str().unwrap_or_default();
            assert!(text.ends_with('.'), "{method} {path}: {field} {text:?}");
        }
        assert_eq!(operation["tags"].as_array().unwrap().len(), 1);
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.contains_key("403") && responses.contains_key("500"));
        assert!(responses.keys().any(|status| status.starts_with('2')));
        for (status, response) in responses.iter().filter(|(status, _)| status.as_str() >= "400") {
            let schema = &response["content"]["application/problem+json"]["schema"]["$ref"];
            assert_eq!(schema, "#/components/schemas/Problem", "{method} {path} {status}");
        }
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        for parameter in &parameters {
            assert!(parameter["description"].as_str().unwrap().ends_with('.'), "{parameter}");
        }
        if parameters.iter().any(|parameter| parameter["in"] != "header") {
            assert!(responses.contains_key("422"), "{method} {path} has parameters");
        }
        if path.contains('{') {
            assert!(responses.contains_key("404"), "{method} {path} names a record");
        }
        if operation.get("requestBody").is_some() {
            for status in ["400", "413", "415", "422"] {
                assert!(responses.contains_key(status), "{method} {path} has a body");
            }
        }
    }
}

#[test]
fn nothing_is_referred_to_that_is_not_there() {
    let document = document();
    fn walk(value: &Value, seen: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                    seen.insert(reference.to_owned());
                }
                fields.values().for_each(|value| walk(value, seen));
            }
            Value::Array(items) => items.iter().for_each(|value| walk(value, seen)),
            _ => {}
        }
    }
    let mut seen = BTreeSet::new();
    walk(&document, &mut seen);
    assert!(seen.len() > 20, "{seen:?}");
    for reference in seen {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

/// The router has what the document has: no described operation ends in the answer for unknown
/// addresses or unknown methods.
#[tokio::test]
async fn every_described_operation_is_routed() {
    let app = TestApp::start().await;
    for (method, path, _) in operations(&document()) {
        if path == "/api/v1/events/stream" {
            continue; // It does not end; its own tests read it.
        }
        let filled =
            path.replace("{code}", "internal").replace("{id}", "x").replace("{sha256}", "x");
        let method: Method = method.parse().unwrap();
        let answer = app.send(method.clone(), &filled, HeaderMap::new(), None).await;
        assert_ne!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        assert_ne!(answer.status, StatusCode::NOT_FOUND, "{method} {path}");
        let unknown = app.send(Method::PATCH, &filled, HeaderMap::new(), None).await;
        assert_eq!(unknown.refused().0, Code::MethodNotAllowed, "{path}");
        assert!(unknown.header("allow").contains(method.as_str()), "{method} {path}");
    }
}

/// And the other way round: `routes!` is the only way into the router, and it describes what it adds.
#[test]
fn nothing_is_routed_without_a_description() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/http");
    let mut sources = String::new();
    for folder in [folder, concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/routes")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    for way in [".route(", ".route_service(", ".nest(", ".nest_service(", ".fallback_service("] {
        assert!(!sources.contains(way), "{way} goes around the document");
    }
    let described = operations(&document()).len();
    let handlers = sources.matches("#[utoipa::path(").count();
    assert_eq!(handlers, described, "a handler is described and not routed");
}

#[tokio::test]
async fn the_document_is_served_with_a_tag() {
    let app = TestApp::start().await;
    let answer = app.get("/openapi.json").await;
    assert_eq!(answer.json(), document());
    let known =
        HeaderMap::from_iter([(reqwest::header::IF_NONE_MATCH, answer.headers["etag"].clone())]);
    let again = app.send(Method::GET, "/openapi.json", known, None).await;
    assert_eq!(again.status, StatusCode::NOT_MODIFIED);
}
