//! All integration tests of the library, in one binary.

mod golden_dir;
mod leaf;
mod rng;
mod rules;
mod search;
mod trajectories;
mod tuples;
