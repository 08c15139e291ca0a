//! All integration tests of the library, in one binary.

mod direct_policy;
mod gate;
mod golden_dir;
mod leaf;
mod published;
mod rng;
mod rules;
mod screen;
mod search;
mod statistics;
mod synthetic;
mod table_file;
mod tables;
mod trajectories;
mod tuples;
