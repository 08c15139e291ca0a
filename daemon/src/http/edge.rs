//! What happens to every request and every response: an id, a span, a log line, and the last look that
//! turns whatever is refused into a problem.

use std::any::Any;
use std::net::IpAddr;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use super::problem::{Failure, Problem, code_of};
use crate::domain::refusal::{Code, Refusal};

/// Carries the id of a request, both ways.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Gives the request an id, logs it, and makes sure that a refusal is a problem.
pub async fn stamp(request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let span = tracing::info_span!("request", %id, %method, path);
    async {
        let mut response = refused_as_problem(next.run(request).await, &id);
        let status = response.status();
        if status.is_server_error() {
            tracing::error!(status = status.as_u16(), "answered");
        } else {
            tracing::debug!(status = status.as_u16(), "answered");
        }
        let headers = response.headers_mut();
        if let Ok(id) = HeaderValue::from_str(&id) {
            headers.insert(REQUEST_ID, id);
        }
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
    .instrument(span)
    .await
}

/// The client's id when it is fit to be written to a log, or a new one.
fn request_id(headers: &HeaderMap) -> String {
    let fit = |id: &&str| {
        (1..=64).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    headers
        .get(REQUEST_ID)
        .and_then(|id| id.to_str().ok())
        .filter(fit)
        .map_or_else(|| format!("{:016x}", rand::random::<u64>()), str::to_owned)
}

fn refused_as_problem(mut response: Response, id: &str) -> Response {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let problem = response.extensions_mut().remove::<Problem>().unwrap_or_else(|| {
        let code = code_of(status);
        Refusal::new(code, super::problem::explain(code).meaning).into()
    });
    let mut rendered = problem.of_request(id).into_response();
    if let Some(allow) = response.headers_mut().remove(header::ALLOW) {
        rendered.headers_mut().insert(header::ALLOW, allow);
    }
    rendered
}

/// Refuses what a page of another site makes a browser send, as long as there are no tokens: a `Host`
/// that is no name of this machine (a name that was pointed here), or an `Origin` other than the host.
pub async fn local(request: Request, next: Next) -> Response {
    match foreign(request.headers()) {
        None => next.run(request).await,
        Some((header, detail)) => Failure(
            Refusal::new(Code::ForeignOrigin, detail.clone())
                .at(format!("/header/{header}"), detail),
        )
        .into_response(),
    }
}

/// The header that gives a foreign request away, and why.
fn foreign(headers: &HeaderMap) -> Option<(&'static str, String)> {
    let text = |name| {
        let value: &HeaderValue = headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase())
    };
    let host = text(header::HOST);
    if let Some(host) = &host
        && !is_loopback(host)
    {
        return Some(("host", format!("{host:?} is not a name of this machine")));
    }
    let origin = text(header::ORIGIN)?;
    let own = origin.strip_prefix("http://").is_some_and(|origin| Some(origin) == host.as_deref());
    (!own).then(|| ("origin", format!("a page of {origin:?} may not make requests here")))
}

/// Whether a host, with or without a port, can only mean this machine.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name == "localhost"
        || address.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// The answer of a handler that panicked. What it said goes to the log only.
#[expect(clippy::needless_pass_by_value, reason = "the layer hands the payload over")]
pub fn panicked(payload: Box<dyn Any + Send + 'static>) -> Response {
    let said = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    tracing::error!(panic = said, "a handler panicked");
    Failure(Refusal::new(Code::Internal, "the handler of this request panicked")).into_response()
}

/// The answer where nothing is.
pub async fn nothing_here(request: Request) -> Failure {
    Failure(
        Refusal::new(Code::NotFound, format!("nothing is at {}", request.uri().path()))
            .hint("every address is in /openapi.json"),
    )
}

/// The answer to a method that an address does not know.
pub async fn unknown_method(request: Request) -> Failure {
    Failure(Refusal::new(
        Code::MethodNotAllowed,
        format!("{} does not answer {}", request.uri().path(), request.method()),
    ))
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    #[test]
    fn a_request_keeps_a_decent_id_and_gets_one_otherwise() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_static(text));
            request_id(&headers)
        };
        assert_eq!(of("job-7.retry_2"), "job-7.retry_2");
        assert_eq!(of("two words").len(), 16);
        assert_eq!(of("").len(), 16);
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }

    #[test]
    fn only_this_machine_and_its_own_pages_may_ask() {
        let refused = |pairs: &[(HeaderName, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(name, HeaderValue::from_static(value));
            }
            foreign(&headers).map(|(header, _)| header)
        };
        for host in
            ["localhost", "LOCALHOST:80", "127.0.0.1:7878", "127.9.9.9", "[::1]:80", "[::1]"]
        {
            assert_eq!(refused(&[(header::HOST, host)]), None, "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:80", "10.0.0.1:80", "", "[::2]", "1"] {
            assert_eq!(refused(&[(header::HOST, host)]), Some("host"), "{host}");
        }
        let from = |origin| refused(&[(header::HOST, "localhost:80"), (header::ORIGIN, origin)]);
        assert_eq!(from("http://localhost:80"), None);
        for origin in ["http://localhost:81", "https://localhost:80", "http://evil.example", "null"]
        {
            assert_eq!(from(origin), Some("origin"), "{origin}");
        }
        assert_eq!(refused(&[(header::ORIGIN, "http://localhost")]), Some("origin"));
    }

    #[test]
    fn a_plain_refusal_of_a_layer_becomes_a_problem() {
        let plain = (StatusCode::PAYLOAD_TOO_LARGE, [(header::ALLOW, "GET")], "no").into_response();
        let response = refused_as_problem(plain, "r1");
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(response.headers()[header::CONTENT_TYPE], super::super::problem::MEDIA_TYPE);
        assert_eq!(response.headers()[header::ALLOW], "GET");
        let problem = response.extensions().get::<Problem>().unwrap();
        assert_eq!(problem.code, Code::TooLarge);
        assert_eq!(problem.instance, "/requests/r1");
    }
}
