//! Units of work on this machine: a thread per unit, games on a dedicated pool.
//!
//! Promised: a panic in a unit ends that unit as failed with the message, and nothing else; the end
//! of a unit is reported after everything it produced. Refused: the async runtime's threads and the
//! global pool.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::plan::Stage;
use super::unit::{Ending, Report, UnitContext, UnitResult, internal};
use super::{analyse, edit, freeze, gates, screen, select, train};
use crate::domain::refusal::Refusal;

/// The pools games are played on, one per number of threads a protocol may ask for.
#[derive(Debug)]
pub struct Pools {
    main: Arc<ThreadPool>,
    smaller: Mutex<HashMap<usize, Arc<ThreadPool>>>,
}

impl Pools {
    /// A pool of `threads` threads, at least 1. Build it before the async runtime.
    ///
    /// # Errors
    /// When the system refuses the threads.
    pub fn new(threads: usize) -> Result<Self, Refusal> {
        Ok(Self { main: build(threads.max(1))?, smaller: Mutex::default() })
    }

    /// Threads there are.
    pub fn threads(&self) -> usize {
        self.main.current_num_threads()
    }

    /// A pool of `threads` threads, at most as many as there are.
    ///
    /// # Errors
    /// When the system refuses the threads.
    pub fn of(&self, threads: usize) -> Result<Arc<ThreadPool>, Refusal> {
        if threads >= self.threads() {
            return Ok(Arc::clone(&self.main));
        }
        let threads = threads.max(1);
        let mut smaller = self.smaller.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = smaller.get(&threads) {
            return Ok(Arc::clone(pool));
        }
        let pool = build(threads)?;
        smaller.insert(threads, Arc::clone(&pool));
        Ok(pool)
    }
}

fn build(threads: usize) -> Result<Arc<ThreadPool>, Refusal> {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("games-{index}"))
        .build()
        .map(Arc::new)
        .map_err(|error| internal("starting the worker threads", &error))
}

/// Begins a unit on a thread of its own. Its end arrives as [`Report::End`].
///
/// # Errors
/// When the system refuses the thread.
pub fn begin(stage: Stage, context: UnitContext) -> Result<(), Refusal> {
    thread::Builder::new()
        .name(context.key.clone())
        .spawn(move || {
            let result = caught(|| work(stage, &context));
            if let Err(Ending::Failed(reason)) = &result {
                tracing::warn!(run = %context.run, unit = context.key, reason, "unit failed");
            }
            let done = context.counter.done();
            let end = Report::End { token: context.token.clone(), done, result };
            if context.report(end).is_err() {
                tracing::warn!(run = %context.run, unit = context.key, "nobody heard the end of a unit");
            }
        })
        .map(|_| ())
        .map_err(|error| internal("starting a unit", &error))
}

fn work(stage: Stage, context: &UnitContext) -> UnitResult {
    match stage {
        Stage::Gates => gates::run(context),
        Stage::Train | Stage::Main => train::run(context),
        Stage::Select => select::run(context),
        Stage::Freeze => freeze::run(context),
        Stage::Edit => edit::run(context),
        Stage::Screen => screen::play(context),
        Stage::Analyse => analyse::run(context),
    }
}

/// The outcome of `work`; a panic is a failure with its message.
fn caught(work: impl FnOnce() -> UnitResult) -> UnitResult {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(Ending::Failed(panicked(&*panic))))
}

fn panicked(panic: &(dyn Any + Send)) -> String {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| String::from("no message"));
    format!("panicked: {message}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Pools, caught};
    use crate::exec::unit::Ending;

    #[test]
    fn a_panic_in_a_unit_is_a_failure_with_its_message() {
        let failed = |result| match result {
            Err(Ending::Failed(reason)) => reason,
            other => panic!("{other:?}"),
        };
        let index = 7;
        assert_eq!(failed(caught(|| panic!("a fixed text"))), "panicked: a fixed text");
        assert_eq!(failed(caught(|| panic!("entry {index}"))), "panicked: entry 7");
        assert_eq!(failed(caught(|| std::panic::panic_any(index))), "panicked: no message");
        assert_eq!(caught(|| Ok(json!(1))).unwrap(), json!(1));
        assert!(matches!(caught(|| Err(Ending::Stopped)), Err(Ending::Stopped)));
    }

    #[test]
    fn a_protocol_gets_no_more_threads_than_it_declares() {
        let pools = Pools::new(3).unwrap();
        assert_eq!(pools.of(2).unwrap().current_num_threads(), 2);
        assert_eq!(pools.of(9).unwrap().current_num_threads(), 3);
        assert_eq!(pools.of(0).unwrap().current_num_threads(), 1);
    }
}
