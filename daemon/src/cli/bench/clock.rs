//! Time of a slice of work: what the processor gave it, and what the wall clock says.

use rustix::time::{ClockId, clock_gettime};

/// A slice that got less of a processor than this is flagged: something else ran in between.
pub(super) const FULL: f64 = 0.97;

/// Seconds of the clock.
fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// When a slice began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stopwatch {
    threads: usize,
    clock: ClockId,
    cpu: f64,
    wall: f64,
}

/// What a slice took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    /// Processor seconds, divided by the number of threads.
    pub(super) cpu: f64,
    /// Seconds of the wall clock.
    pub(super) wall: f64,
}

impl Stopwatch {
    /// Begins to measure work of `threads` threads. With one it is this thread's time that counts;
    /// with more, that of the process.
    pub(super) fn start(threads: usize) -> Self {
        if threads == 1 { Self::on(ClockId::ThreadCPUTime, 1) } else { Self::of_process(threads) }
    }

    /// Begins to measure work that `threads` threads do while this one waits.
    pub(super) fn of_process(threads: usize) -> Self {
        Self::on(ClockId::ProcessCPUTime, threads)
    }

    fn on(clock: ClockId, threads: usize) -> Self {
        let wall = seconds(ClockId::Monotonic);
        Self { threads, clock, cpu: seconds(clock), wall }
    }

    /// What it took until now.
    pub(super) fn taken(&self) -> Taken {
        let cpu = seconds(self.clock) - self.cpu;
        Taken { cpu: cpu / self.threads as f64, wall: seconds(ClockId::Monotonic) - self.wall }
    }
}

impl Taken {
    /// The share of a processor that every thread got.
    pub(super) fn utilisation(&self) -> f64 {
        if self.wall > 0.0 { self.cpu / self.wall } else { 1.0 }
    }
}
