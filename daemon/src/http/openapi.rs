//! The OpenAPI document: what the handlers say about themselves, and what is true of all of them.

use axum::body::Bytes;
use sha2::{Digest, Sha256};
use utoipa::OpenApi;

use super::problem::Problem;
use crate::domain::refusal::{Code, FieldError};

const ABOUT: &str = "Preregistered game-AI experiments whose held-out games are opened exactly once.

A protocol is frozen before any of its data is seen; its seed blocks are reserved, disjoint from all others; a run
carries it out and opens its held-out block once; a verdict is computed when every planned game is there.

Every refusal is a problem (RFC 9457, `application/problem+json`) with a stable `code`, a `type` that leads to an
explanation, and JSON pointers to the values at fault. Lists come in pages: pass `next` as `after`. Times are
RFC 3339 instants in UTC. Seeds are strings of `0x` and hex digits. Unknown parameters and fields are refused.

The daemon listens on this machine only and asks for no token.";

#[derive(OpenApi)]
#[openapi(
    info(title = "heldout", description = ABOUT),
    components(schemas(Problem, FieldError, Code)),
    tags(
        (name = "theories", description = "What is believed, why, and what would prove it wrong."),
        (name = "experiments", description = "Frozen protocols."),
        (name = "leases", description = "Seed blocks and who may read them."),
        (name = "runs", description = "Experiments being carried out, and their rows."),
        (name = "results", description = "Verdicts with everything they rest on."),
        (name = "artifacts", description = "Stored files, named by their digest."),
        (name = "machines", description = "What runs ran on."),
        (name = "events", description = "The log of every change."),
        (name = "problems", description = "What refusals mean."),
        (name = "health", description = "Signs of life."),
        (name = "openapi", description = "This document."),
    ),
)]
struct Base;

/// The document before any operation is in it.
pub fn base() -> utoipa::openapi::OpenApi {
    Base::openapi()
}

/// The finished document as it is served.
#[derive(Debug, Clone)]
pub struct Description {
    /// The JSON text.
    pub bytes: Bytes,
    /// Its SHA-256 in hex.
    pub sha256: String,
}

impl Description {
    /// Renders the document once.
    pub fn of(document: &utoipa::openapi::OpenApi) -> Self {
        let bytes = document.to_pretty_json().unwrap_or_default();
        let sha256 = hex::encode(Sha256::digest(bytes.as_bytes()));
        Self { bytes: bytes.into(), sha256 }
    }
}
