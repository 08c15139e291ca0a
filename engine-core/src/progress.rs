//! How long work reports what it has done, and how it is asked to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where a long computation reports finished work. Called from worker threads: keep it cheap.
pub trait Progress: Sync {
    /// `amount` more units (moves, games, checks) are done.
    fn advance(&self, amount: u64);
}

/// Progress that nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Progress for Unwatched {
    fn advance(&self, _amount: u64) {}
}

/// A request to stop, shared between whoever asks and whoever works. Workers look at it between
/// games, never inside one, so a stop leaves only whole games behind.
#[derive(Debug, Clone, Default)]
pub struct StopToken(Arc<AtomicBool>);

impl StopToken {
    /// A token nobody has pulled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks every holder of this token to stop at its next boundary.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a stop was asked for.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
