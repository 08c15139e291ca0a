//! Learning the tables by play: a trainer the caller drives chunk by chunk, the validation points
//! between chunks, the plateau rule, and checkpoints that survive a kill.
//!
//! Promised: with one thread, a run is a function of its configuration. Every weight, every
//! accumulator and every figure equals the reference bit for bit
//! (`tests/golden/{td-serial,serial-curves}.json`, `train-run-sample/`), and a run that is stopped
//! between any two games, stored, and resumed ends with the same bits. With more threads there is a
//! choice ([`Parallel`]): lock-free, the default, keeps the counters exact but its bits do not repeat;
//! in lockstep the run is a function of its configuration for any number of threads.
//! Refused: wall time (the caller has the clock), the decision what to do next (budget, schedule and
//! stop reason belong to the caller), and any seed outside the block of the configuration.
//!
//! | room | holds |
//! | --- | --- |
//! | [`trainer`] | configuration, the stepper, the state to resume from |
//! | [`report`] | the figures of one chunk |
//! | [`validation`] | a validation point: games of the tables against the fair control |
//! | [`plateau`] | the rule that stops a curve that no longer rises |
//! | [`schedule`] | thresholds in moves |
//! | [`best`] | the weights of the best point, as a file with a digest |
//! | [`checkpoint`] | tables, state and curve as one set on disk |

pub mod best;
pub mod checkpoint;
pub mod plateau;
pub mod report;
pub mod schedule;
pub mod trainer;
pub mod validation;

mod lockstep;
mod publish;
mod sparse;
mod worker;

pub use report::{ChunkReport, Tally};
pub use trainer::{
    InFlight, OpenChunk, Parallel, SeedBlock, TrainConfig, TrainError, TrainState, Trainer,
};
