//! All integration tests of the library, in one binary.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::float_cmp, reason = "the promise is equal bits, not close values")]

mod direct_policy;
mod edits;
mod gate;
mod golden_dir;
mod leaf;
mod published;
mod rng;
mod rules;
mod screen;
mod search;
mod search_leaf;
mod statistics;
mod synthetic;
mod table_file;
mod tables;
mod trajectories;
mod tuples;
