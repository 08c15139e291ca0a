//! All integration tests of the daemon, in one binary.

mod lab;
mod plan;
mod protocol;
mod sample;
mod store_story;
