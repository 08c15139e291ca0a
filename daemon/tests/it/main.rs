//! All integration tests of the daemon, in one binary.

mod artifacts;
mod bad_protocols;
mod canonical;
mod lab;
mod leases;
mod migrations;
mod plan;
mod protocol;
mod protocol_mutations;
mod sample;
mod store_story;
