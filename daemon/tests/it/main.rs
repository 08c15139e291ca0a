//! All integration tests of the daemon, in one binary.

mod plan;
mod protocol;
mod sample;
