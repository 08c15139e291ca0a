//! heldout: preregistered game-AI experiments whose held-out games are opened exactly once.
#![forbid(unsafe_code)]

pub mod app;
pub mod artifacts;
pub mod clock;
pub mod domain;
pub mod exec;
pub mod http;
pub mod store;
