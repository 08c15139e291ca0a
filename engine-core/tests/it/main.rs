//! All integration tests of the library, in one binary.

mod golden_dir;
mod rng;
mod rules;
mod trajectories;
