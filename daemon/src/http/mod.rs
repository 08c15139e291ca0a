//! The HTTP interface.
//!
//! Promised: everything that is refused is a problem (RFC 9457) with a stable code; every address is in
//! the OpenAPI document, because both come from the same list; what is read is read from the database,
//! so no page view can disturb a run. Refused: listening anywhere but on this machine, as there are no
//! tokens yet; bodies over 1 MiB; fields and parameters that nobody knows.

pub mod edge;
pub mod etag;
pub mod extract;
pub mod negotiate;
pub mod problem;
