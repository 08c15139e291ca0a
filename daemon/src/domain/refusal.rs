//! The one way this program says no.
//!
//! A [`Refusal`] says what was refused (`detail`), where (`errors`, with JSON pointers), and what to
//! do about it (`hint`). The HTTP layer turns it into an RFC 9457 problem, the command line prints it;
//! neither of them invents words of its own.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The closed list of reasons. The kebab-case name is stable: scripts may match on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The body is not JSON or TOML, not UTF-8, repeats a key, or nests too deep.
    MalformedDocument,
    /// The document parses but fields are wrong; every one is listed.
    InvalidProtocol,
    /// A field of a request other than a protocol is wrong.
    InvalidRequest,
    /// The body is larger than the limit.
    TooLarge,
    /// The media type is not accepted here.
    UnsupportedMediaType,
    /// No record with this id.
    NotFound,
    /// The method does not exist on this path.
    MethodNotAllowed,
    /// The request was made by a web page of another site, or under a name that is not this machine's.
    ForeignOrigin,
    /// A seed range overlaps a lease; the lease is named.
    LeaseOverlap,
    /// No free block of this size is left in the pool.
    PoolExhausted,
    /// The held-out block was opened before; by whom and when is named.
    AlreadyOpened,
    /// The record is in a state that does not allow this.
    WrongState,
    /// This build's engine is not the one the protocol was frozen for.
    EngineMismatch,
    /// A table named by digest is not stored here.
    MissingTable,
    /// The plan does not fit the declared or the available threads, memory or disk.
    OverBudget,
    /// Not every arm holds every planned game, so nothing is judged.
    Incomplete,
    /// A CHECK gate failed; no held-out block was opened.
    CheckFailed,
    /// Stored bytes do not have the digest that was recorded for them.
    Corrupt,
    /// A later attempt has replaced the one that reports.
    Superseded,
    /// The data folder belongs to another running daemon.
    Locked,
    /// The daemon is stopping.
    Stopping,
    /// Something failed inside; details are in the log under the request id.
    Internal,
}

impl Code {
    /// The stable name, as in JSON.
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            _ => String::from("internal"),
        }
    }
}

/// One wrong field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// RFC 6901 pointer into the document, `""` for the whole of it.
    pub pointer: String,
    /// What is wrong with it and what would be right.
    pub detail: String,
}

/// A refusal: what, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The stable reason.
    pub code: Code,
    /// One sentence for a reader: what was refused and why.
    pub detail: String,
    /// What to do about it, when that is not obvious.
    pub hint: Option<String>,
    /// The fields at fault, all of them at once.
    pub errors: Vec<FieldError>,
}

impl Refusal {
    /// A refusal without field errors.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), hint: None, errors: Vec::new() }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds one wrong field.
    #[must_use]
    pub fn at(mut self, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        self.errors.push(FieldError { pointer: pointer.into(), detail: detail.into() });
        self
    }
}

/// One line for the sentence, one per field, one for the hint.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.detail, self.code.name())?;
        for error in &self.errors {
            let pointer = if error.pointer.is_empty() { "(document)" } else { &error.pointer };
            write!(f, "\n  at {pointer}: {}", error.detail)?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}
