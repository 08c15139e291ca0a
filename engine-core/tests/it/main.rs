//! All integration tests of the library, in one binary.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::float_cmp, reason = "the promise is equal bits, not close values")]

mod arms;
mod boundary;
mod check;
mod checkpoints;
mod coverage;
mod direct_policy;
mod edits;
mod gate;
mod golden_dir;
mod lanes;
mod leaf;
mod naive;
mod naive_leaf;
mod plateau;
mod published;
mod rng;
mod rules;
mod screen;
mod screen_sample;
mod search;
mod search_leaf;
mod serial_curves;
mod statistics;
mod synthetic;
mod table_file;
mod tables;
mod td_serial;
mod train_config;
mod train_lockstep;
mod train_parallel;
mod train_run_sample;
mod trajectories;
mod tuples;
