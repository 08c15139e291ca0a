//! heldout: preregistered game-AI experiments whose held-out games are opened exactly once.
#![forbid(unsafe_code)]

pub mod app;
pub mod artifacts;
pub mod cli;
pub mod clock;
pub mod config;
pub mod domain;
pub mod exec;
pub mod http;
pub mod machine;
pub mod shutdown;
pub mod store;
pub mod telemetry;
