//! From a document to a [`Protocol`](super::Protocol).

use super::Protocol;
use crate::domain::refusal::{Code, Refusal};

/// How a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaType {
    /// TOML, for people.
    Toml,
    /// JSON, for agents.
    Json,
}

/// Parses and resolves a document.
///
/// # Errors
/// One refusal with every field error.
pub fn parse(_bytes: &[u8], _media: MediaType) -> Result<Protocol, Refusal> {
    Err(Refusal::new(Code::Internal, "not built yet"))
}
