//! The compute library of heldout. It plays Drop7, searches, learns tables, plays screens and does
//! the statistics of a verdict; it knows no database, no HTTP, no async, no clock and no logger.
//!
//! # What is deterministic
//!
//! Everything except lock-free parallel training. Rules, leaves, searches, whole games, screens and
//! statistics give the same bits on every platform, for any number of workers, because all of them
//! are functions of 32-bit seeds, and floating point is only ever added in the order the definition
//! states: no fused multiply-add, no re-association, no transcendental function.
//! Training ([`train`]) is bit-reproducible with one thread and, in lockstep, with any number;
//! lock-free training with more threads is not, and says so.
//!
//! # Tour
//!
//! | module | holds |
//! | --- | --- |
//! | [`drop7`] | board, rules, points, random streams, whole games, and what a policy may see |
//! | [`leaf`] | the [`leaf::Leaf`] trait and the frozen fair leaf |
//! | [`search`] | expectimax over stratified samples, with logical-work accounting |
//! | [`ntuple`] | lookup tables: layouts, features, memory, files, edits, the direct policy |
//! | [`train`] | temporal-coherence learning as a stepper, validation points, the plateau rule |
//! | [`screen`] | arms on identical seeds, one row per game |
//! | [`stats`] | quantiles, paired contrasts, bootstrap, gate, readings |
//! | [`check`] | gates that must pass before a held-out seed is opened |
//! | [`progress`] | how long work reports and how it is stopped |
//! | [`instructions`] | which instructions the hot loops run on |
//! | [`workload`] | the hot paths as loops to be timed, without the clock |

pub mod check;
pub mod drop7;
pub mod instructions;
pub mod leaf;
pub mod ntuple;
pub mod progress;
pub mod screen;
pub mod search;
pub mod stats;
pub mod train;
pub mod workload;
