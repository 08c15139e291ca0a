//! The only place that reads the wall clock, so that a test can hold it or turn it back.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

/// Where wall time comes from. Order never comes from here: events are ordered by their numbers.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    System,
    Held(Arc<AtomicI64>),
}

impl Clock {
    /// The system's clock.
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stands at `at` until [`Clock::set`].
    pub fn held(at: Timestamp) -> Self {
        Self(Source::Held(Arc::new(AtomicI64::new(at.as_microsecond()))))
    }

    /// Moves a held clock, forwards or backwards; the system's clock ignores it.
    pub fn set(&self, at: Timestamp) {
        if let Source::Held(microseconds) = &self.0 {
            microseconds.store(at.as_microsecond(), Ordering::Relaxed);
        }
    }

    /// The instant, cut to microseconds as it is stored.
    pub fn now(&self) -> Timestamp {
        let microseconds = match &self.0 {
            Source::System => system_microseconds(),
            Source::Held(microseconds) => microseconds.load(Ordering::Relaxed),
        };
        Timestamp::from_microsecond(microseconds).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock")]
fn system_microseconds() -> i64 {
    Timestamp::now().as_microsecond()
}
