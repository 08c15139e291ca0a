//! Who may work now: declared threads and bytes are reserved before a run begins. What can never fit
//! is refused with the numbers; what does not fit now waits its turn.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::domain::protocol::Budget;
use crate::domain::refusal::{Code, Refusal};

/// Memory is counted in these.
const MIB: u64 = 1 << 20;

/// Threads and memory of this process, and who holds them.
#[derive(Debug)]
pub(super) struct Admission {
    threads: usize,
    memory_mib: Option<u32>,
    free_threads: Arc<Semaphore>,
    free_memory: Arc<Semaphore>,
}

/// A reservation; given back when dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    _threads: OwnedSemaphorePermit,
    _memory: Option<OwnedSemaphorePermit>,
}

impl Admission {
    pub(super) fn new(threads: usize, memory_bytes: Option<u64>) -> Self {
        let memory_mib = memory_bytes.map(|bytes| u32::try_from(bytes / MIB).unwrap_or(u32::MAX));
        let memory = memory_mib.map_or(0, |mib| mib as usize);
        Self {
            threads,
            memory_mib,
            free_threads: Arc::new(Semaphore::new(threads)),
            free_memory: Arc::new(Semaphore::new(memory)),
        }
    }

    /// Refuses a budget that can never be reserved here.
    pub(super) fn check(&self, budget: &Budget) -> Result<(), Refusal> {
        let mut refusal = Refusal::new(
            Code::OverBudget,
            "the protocol declares more than this machine can give to a run",
        );
        if budget.threads as usize > self.threads {
            refusal = refusal.at(
                "/budget/threads",
                format!("{} threads are declared, {} are there", budget.threads, self.threads),
            );
        }
        if let Some(there) = self.memory_mib
            && mib(budget) > there
        {
            refusal = refusal.at(
                "/budget/memory_bytes",
                format!("{} MiB are declared, {there} MiB are there", mib(budget)),
            );
        }
        if refusal.errors.is_empty() {
            return Ok(());
        }
        Err(refusal
            .hint("Run it on a larger machine, or amend the protocol with a smaller budget."))
    }

    /// Waits until `budget` can be reserved.
    pub(super) async fn reserve(&self, budget: &Budget) -> Result<Admitted, Refusal> {
        let closed = |_| Refusal::new(Code::Stopping, "the daemon is stopping");
        let threads = Arc::clone(&self.free_threads)
            .acquire_many_owned(budget.threads)
            .await
            .map_err(closed)?;
        let memory = if self.memory_mib.is_some() {
            let permit = Arc::clone(&self.free_memory).acquire_many_owned(mib(budget)).await;
            Some(permit.map_err(closed)?)
        } else {
            None
        };
        Ok(Admitted { _threads: threads, _memory: memory })
    }
}

fn mib(budget: &Budget) -> u32 {
    u32::try_from(budget.memory_bytes.div_ceil(MIB)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Admission, MIB};
    use crate::domain::protocol::Budget;
    use crate::domain::refusal::Code;

    fn budget(threads: u32, mib: u64) -> Budget {
        Budget { threads, memory_bytes: mib * MIB, wall_seconds: 60 }
    }

    #[test]
    fn what_can_never_fit_is_refused_with_the_numbers() {
        let admission = Admission::new(4, Some(1000 * MIB));
        assert!(admission.check(&budget(4, 1000)).is_ok());
        let refusal = admission.check(&budget(5, 1001)).unwrap_err();
        assert_eq!(refusal.code, Code::OverBudget);
        assert_eq!(refusal.errors.len(), 2);
        assert!(refusal.errors[0].detail.contains("5 threads are declared, 4 are there"));
        assert!(refusal.errors[1].detail.contains("1001 MiB are declared, 1000 MiB are there"));
        assert!(Admission::new(4, None).check(&budget(1, 1 << 30)).is_ok(), "unknown memory");
    }

    #[tokio::test]
    async fn what_does_not_fit_now_waits() {
        let admission = Admission::new(2, Some(100 * MIB));
        let first = admission.reserve(&budget(2, 10)).await.unwrap();
        let small = budget(1, 10);
        let pending = admission.reserve(&small);
        let mut second = std::pin::pin!(pending);
        let now = tokio::time::timeout(std::time::Duration::from_millis(20), second.as_mut()).await;
        assert!(now.is_err(), "no thread is free");
        drop(first);
        second.await.unwrap();
    }
}
