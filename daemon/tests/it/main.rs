//! All integration tests of the daemon, in one binary.
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its stage stops there")]

mod artifacts;
mod bad_protocols;
mod bench;
mod canonical;
mod cli;
mod http;
mod import;
mod lab;
mod leases;
mod migrations;
mod plan;
mod protocol;
mod protocol_mutations;
mod protocol_readme;
mod resume;
mod run;
mod sample;
mod store_import;
mod store_lists;
mod store_rows;
mod store_story;
mod store_verify;
mod verify;
mod whole_run;
