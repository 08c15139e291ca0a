//! Refusals as RFC 9457 problems, and the one place that names the status of a refusal.
//!
//! Promised: every 4xx and 5xx of this program has the media type `application/problem+json` and the
//! shape of [`Problem`]; `code` and `type` are stable, `title` belongs to the code, `detail` to the
//! case. What went wrong inside is never told: that is in the log, under the request id which
//! `instance` repeats.

use std::collections::BTreeMap;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

use crate::domain::refusal::{Code, FieldError, Refusal};

/// The media type of every refusal.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Where the explanations of the codes are, as relative references.
pub const TYPE_PREFIX: &str = "/problems/";

/// Seconds a client should wait before it tries a stopping or locked daemon again.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("5");

/// A refusal on the wire (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "type": "/problems/not-found",
    "title": "There is no such record",
    "status": 404,
    "detail": "there is no run RUN-20260905T193006Z-4fbeb4e5",
    "instance": "/requests/5f0c1d9a7b3e2468",
    "code": "not-found",
    "hint": null,
    "errors": []
}))]
pub struct Problem {
    /// Relative reference of the page that explains the code.
    #[serde(rename = "type")]
    #[schema(format = "uri-reference")]
    pub type_uri: String,
    /// The same words for every problem of this code.
    pub title: String,
    /// The status of the response.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// What was refused and why, this time.
    pub detail: String,
    /// The request this answers, as in the header `x-request-id` and in the log.
    #[schema(format = "uri-reference")]
    pub instance: String,
    /// The stable reason.
    pub code: Code,
    /// What to do about it, when that is not obvious.
    #[schema(required)]
    pub hint: Option<String>,
    /// The values at fault, all of them at once. A pointer starts at the document that was sent; values of
    /// the address are at `/path/<name>` and `/query/<name>`, those of headers at `/header/<name>`.
    pub errors: Vec<FieldError>,
}

impl Problem {
    /// The same problem, told apart by the request it answers.
    #[must_use]
    pub fn of_request(mut self, request_id: &str) -> Self {
        self.instance = format!("/requests/{request_id}");
        self
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let code = refusal.code;
        Self {
            type_uri: type_uri(code),
            title: explain(code).title.to_owned(),
            status: status(code).as_u16(),
            detail: refusal.detail,
            instance: String::from("/requests/unknown"),
            code,
            hint: refusal.hint,
            errors: refusal.errors,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER_SECONDS);
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// A handler's error: `?` turns a [`Refusal`] into it.
#[derive(Debug)]
pub struct Failure(pub Refusal);

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        Problem::from(self.0).into_response()
    }
}

/// The relative reference of a code.
pub fn type_uri(code: Code) -> String {
    format!("{TYPE_PREFIX}{}", code.name())
}

/// The status a refusal is answered with.
pub const fn status(code: Code) -> StatusCode {
    match code {
        Code::MalformedDocument => StatusCode::BAD_REQUEST,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::ForeignOrigin => StatusCode::FORBIDDEN,
        Code::LeaseOverlap
        | Code::PoolExhausted
        | Code::AlreadyOpened
        | Code::WrongState
        | Code::EngineMismatch
        | Code::Incomplete
        | Code::CheckFailed
        | Code::Superseded => StatusCode::CONFLICT,
        Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Code::InvalidProtocol | Code::InvalidRequest | Code::MissingTable | Code::OverBudget => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        Code::Corrupt | Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        Code::Locked | Code::Stopping => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// The code of a status that some layer answered without one.
pub const fn code_of(status: StatusCode) -> Code {
    match status {
        StatusCode::BAD_REQUEST => Code::MalformedDocument,
        StatusCode::FORBIDDEN => Code::ForeignOrigin,
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::METHOD_NOT_ALLOWED => Code::MethodNotAllowed,
        StatusCode::PAYLOAD_TOO_LARGE => Code::TooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Code::UnsupportedMediaType,
        _ if status.as_u16() < 500 => Code::InvalidRequest,
        _ => Code::Internal,
    }
}

/// What a code means and what to do about it, in words that do not depend on the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// A few words, the `title` of every problem of this code.
    pub title: &'static str,
    /// When it is answered.
    pub meaning: &'static str,
    /// What a client should do.
    pub remedy: &'static str,
}

/// Every code, in the order of the documentation.
pub const CODES: [Code; 22] = [
    Code::MalformedDocument,
    Code::InvalidProtocol,
    Code::InvalidRequest,
    Code::TooLarge,
    Code::UnsupportedMediaType,
    Code::NotFound,
    Code::MethodNotAllowed,
    Code::ForeignOrigin,
    Code::LeaseOverlap,
    Code::PoolExhausted,
    Code::AlreadyOpened,
    Code::WrongState,
    Code::EngineMismatch,
    Code::MissingTable,
    Code::OverBudget,
    Code::Incomplete,
    Code::CheckFailed,
    Code::Corrupt,
    Code::Superseded,
    Code::Locked,
    Code::Stopping,
    Code::Internal,
];

/// The explanation of a code.
pub const fn explain(code: Code) -> Explanation {
    let (title, meaning, remedy) = match code {
        Code::MalformedDocument => (
            "The document cannot be read",
            "The body is not JSON or TOML, is not UTF-8, names a key twice, or nests too deep. Nothing was stored.",
            "Correct the place named in `detail` and send it again.",
        ),
        Code::InvalidProtocol => (
            "The protocol has faults",
            "The document reads well, but some of its fields say something impossible. Nothing was stored.",
            "`errors` lists every fault with a JSON pointer; correct them all and send it again.",
        ),
        Code::InvalidRequest => (
            "The request has faults",
            "A path segment, a query parameter, a header or a field of the body is not what it must be.",
            "`errors` points at each value: `/path/…`, `/query/…`, `/header/…`, or a pointer into the body.",
        ),
        Code::TooLarge => (
            "The body is too large",
            "A body holds at most 1 MiB (1048576 bytes). Nothing was stored.",
            "Send less. A protocol of that size is not one experiment.",
        ),
        Code::UnsupportedMediaType => (
            "The media type is not accepted",
            "The body is neither of the media types that this operation reads.",
            "Name the type in `Content-Type`: `application/json`, or `application/toml` for protocols.",
        ),
        Code::NotFound => (
            "There is no such record",
            "No record has this id, or nothing is at this address.",
            "Look the id up in the list of its kind; addresses are in `/openapi.json`.",
        ),
        Code::MethodNotAllowed => (
            "This address does not know the method",
            "There is something here, but it does not answer this method.",
            "Use one of the methods of the `Allow` header.",
        ),
        Code::ForeignOrigin => (
            "The request comes from elsewhere",
            "A browser made the request for a page of another site, or the `Host` is not a name of this machine. There are no tokens yet, so such requests are refused whatever they ask.",
            "Use the address that `heldout serve` printed, from this machine; a proxy has to send a loopback `Host`.",
        ),
        Code::LeaseOverlap => (
            "The seeds are leased already",
            "The range shares seeds with a lease that is not cancelled; `detail` names it. Leases never overlap, whatever their role.",
            "Leave `start` out so that a free block is drawn, or choose another range.",
        ),
        Code::PoolExhausted => (
            "No free block of this size is left",
            "The pool that blocks are drawn from has no gap that is large enough.",
            "Ask for fewer seeds, cancel leases that will not be used, or name a range yourself.",
        ),
        Code::AlreadyOpened => (
            "The held-out block was opened before",
            "A held-out block is opened once. `detail` says by which run and when; a crash does not give it back.",
            "Make a new experiment with a fresh block: post the same protocol with `?repeat=true`.",
        ),
        Code::WrongState => (
            "The record is in another state",
            "The record's state does not allow this operation.",
            "Read the record; `detail` says the state it is in and the states it would have to be in.",
        ),
        Code::EngineMismatch => (
            "The engine has changed since the freeze",
            "The protocol was frozen for an engine with other rules or other golden traces than this build has. Nothing was opened.",
            "Run it with the build it was frozen with, or freeze it anew as an amendment.",
        ),
        Code::MissingTable => (
            "A table is not stored here",
            "The protocol names a table by digest, and no artefact of this digest is in the archive. Nothing was opened.",
            "Import the table first, or correct the digest.",
        ),
        Code::OverBudget => (
            "The plan does not fit",
            "The plan needs more threads, memory or disk than it declares or than there is; `detail` has the numbers.",
            "Declare more, or plan less.",
        ),
        Code::Incomplete => (
            "Not every planned game is there",
            "A verdict needs every planned game of every arm exactly once. Until then nothing is judged.",
            "Wait for the run, or resume it.",
        ),
        Code::CheckFailed => (
            "A CHECK gate failed",
            "The engine did not reproduce what it must reproduce. No held-out block was opened.",
            "Read the gate's evidence in the units of the run; the build is not fit for experiments.",
        ),
        Code::Corrupt => (
            "Stored bytes are not what was stored",
            "Stored bytes have another digest than the one on record, or a game was played again with another outcome.",
            "Check the disk, restore the data folder from a copy, and verify the run.",
        ),
        Code::Superseded => (
            "A later attempt has taken over",
            "The report comes from an attempt that was replaced. It was noted and changed nothing.",
            "Stop the old attempt.",
        ),
        Code::Locked => (
            "The data folder is in use",
            "Another daemon holds the lock of the data folder.",
            "Talk to that daemon, or stop it.",
        ),
        Code::Stopping => (
            "The daemon is stopping",
            "The daemon finishes what runs and takes no new work.",
            "Try again when it is back; `Retry-After` says when to look.",
        ),
        Code::Internal => (
            "Something failed inside",
            "This is a fault of the daemon, not of the request. Details are in its log under the id in `instance`.",
            "Report it with the request id.",
        ),
    };
    Explanation { title, meaning, remedy }
}

/// The problem responses of an operation that can refuse with `codes`, one per status.
fn responses(codes: &[Code]) -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in codes {
        by_status.entry(status(*code).as_u16()).or_default().push(*code);
    }
    by_status
        .into_iter()
        .map(|(status, codes)| {
            let lines: Vec<_> = codes
                .iter()
                .map(|code| format!("`{}`: {}.", code.name(), explain(*code).title))
                .collect();
            let content = ContentBuilder::new()
                .schema(Some(RefOr::Ref(Ref::from_schema_name("Problem"))))
                .build();
            let response =
                ResponseBuilder::new().description(lines.join("\n")).content(MEDIA_TYPE, content);
            (status.to_string(), RefOr::T(response.build()))
        })
        .collect()
}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = [$($code:ident),* $(,)?];)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl $name {
            /// The codes it stands for.
            pub const CODES: &[Code] = &[$(Code::$code),*];
        }

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
                responses(Self::CODES)
            }
        }
    )*};
}

refusals! {
    /// Refusals of an operation without parameters.
    PlainRefusals = [ForeignOrigin, Internal];
    /// Refusals of a list.
    ListRefusals = [ForeignOrigin, InvalidRequest, Internal];
    /// Refusals of reading one record.
    ReadRefusals = [ForeignOrigin, NotFound, InvalidRequest, Corrupt, Internal];
    /// Refusals of an operation on one record without a body.
    ActRefusals = [
        ForeignOrigin, NotFound, WrongState, EngineMismatch, Incomplete, AlreadyOpened,
        InvalidRequest, MissingTable, OverBudget, Internal, Stopping,
    ];
    /// Refusals of an operation on a record with a body.
    WriteRefusals = [
        ForeignOrigin, MalformedDocument, NotFound, WrongState, LeaseOverlap, PoolExhausted,
        Incomplete, TooLarge, UnsupportedMediaType, InvalidRequest, Internal, Stopping,
    ];
    /// Refusals of a new protocol.
    ProtocolRefusals = [
        ForeignOrigin, MalformedDocument, LeaseOverlap, PoolExhausted, AlreadyOpened,
        WrongState, EngineMismatch, NotFound, TooLarge, UnsupportedMediaType,
        InvalidProtocol, InvalidRequest, MissingTable, OverBudget, Internal, Stopping,
    ];
    /// Refusals of the readiness probe.
    ReadinessRefusals = [ForeignOrigin, Internal, Stopping];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_listed_once_and_explained() {
        for (place, code) in CODES.iter().enumerate() {
            assert_eq!(CODES.iter().position(|other| other == code), Some(place));
            assert!(explain(*code).meaning.ends_with('.'), "{code:?}");
            assert!(status(*code).is_client_error() || status(*code).is_server_error());
        }
        // A code that is added to the enum and not to CODES has no page.
        let schema = serde_json::to_value(<Code as utoipa::PartialSchema>::schema()).unwrap();
        let names: Vec<_> = CODES.iter().map(|code| code.name()).collect();
        let mut in_schema: Vec<String> = names.clone();
        in_schema.retain(|name| schema.to_string().contains(&format!("\"{name}\"")));
        assert_eq!(in_schema, names);
        let variants = schema["oneOf"]
            .as_array()
            .map_or_else(|| schema["enum"].as_array().map_or(0, Vec::len), Vec::len);
        assert_eq!(variants, CODES.len());
    }
}
