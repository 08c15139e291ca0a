//! Carrying an experiment out: what to do next is decided by pure functions ([`plan`], [`recover`])
//! over what is stored; the code beside them does it and decides nothing.
//!
//! Promised: a held-out block is opened by one row before its first seed is read, budgets are totals
//! over all sessions, a stop leaves whole games and whole checkpoints, and a verdict is computed from
//! stored rows only. Refused: a stage that succeeds without a complete output, and a seed range that
//! does not come from a lease.

pub mod analyse;
pub mod edit;
pub mod freeze;
pub mod gates;
pub mod local;
pub mod plan;
pub mod recover;
pub mod screen;
pub mod select;
pub mod status;
pub mod supervise;
pub mod tables;
pub mod train;
pub mod unit;
pub mod wording;
pub mod writer;
