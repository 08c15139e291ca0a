//! The one composition of store, archive and execution that the command line and HTTP both call.
//!
//! Promised: whoever calls, the same request has the same effect and the same refusal. Refused: a
//! second process on the same data folder, and every request once the daemon is stopping.

mod admission;
mod answers;
mod create;
mod import;
mod lock;
mod runs;
pub mod verify;

pub use answers::{
    Check, CreateOptions, Created, ProtocolCheck, UnitProgress, Validated, VerifyOptions,
    VerifyReport,
};
pub use import::Imported;
pub use runs::{protocol_and_status, state_name};

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine_core::check::EngineIdentity;
use fs_err as fs;

use self::admission::Admission;
use self::lock::Lock;
use crate::artifacts::Archive;
use crate::config::Config;
use crate::domain::ids::RunId;
use crate::domain::records::{Run, RunState};
use crate::domain::refusal::{Code, Refusal};
use crate::exec::local::Pools;
use crate::exec::recover::{Leftovers, Recovery, recover};
use crate::exec::supervise::ActiveRun;
use crate::exec::unit::internal;
use crate::machine::{Capacity, capacity};
use crate::store::{Page, RunFilter, Store};

/// The daemon's capabilities. Cheap to clone.
#[derive(Debug, Clone)]
pub struct App {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: Config,
    store: Store,
    archive: Archive,
    pools: Arc<Pools>,
    engine: String,
    admission: Admission,
    active: Mutex<HashMap<RunId, Arc<ActiveRun>>>,
    stopping: AtomicBool,
    lock: Lock,
}

/// The engine of this build, as experiments store it: rules id and the head of the golden-trace hash.
///
/// # Errors
/// When the machine has no room for a small set of tables.
pub fn engine_id() -> Result<String, Refusal> {
    let identity =
        EngineIdentity::compute().map_err(|error| internal("computing the engine id", &error))?;
    let head: String = identity.golden_trace.chars().take(16).collect();
    Ok(format!("{}+{head}", identity.rules))
}

impl App {
    /// Opens a data folder: takes its lock, brings its records up to date, and resolves what an
    /// earlier process left. Call it inside a runtime; the worker threads are not the runtime's.
    ///
    /// # Errors
    /// [`Code::Locked`] when another process has the folder, [`Code::Corrupt`] when its records are
    /// not readable by this version.
    pub async fn open(config: Config) -> Result<Self, Refusal> {
        let threads = config.threads.unwrap_or_else(|| capacity().threads);
        let pools = Arc::new(Pools::new(threads)?);
        Self::open_with(config, pools).await
    }

    /// [`App::open`] on worker threads that exist already.
    ///
    /// # Errors
    /// As [`App::open`].
    pub async fn open_with(config: Config, pools: Arc<Pools>) -> Result<Self, Refusal> {
        let folders = [config.data.clone(), config.artifacts(), config.work()];
        for folder in folders {
            fs::create_dir_all(&folder)
                .map_err(|error| internal("making the data folder", &error))?;
        }
        let lock = Lock::take(&config.lock())?;
        let store = Store::open(&config.database(), config.clock.clone()).await?;
        let archive = Archive::new(config.artifacts(), config.clock.clone());
        let Capacity { memory_bytes, .. } = capacity();
        let admission = Admission::new(pools.threads(), config.memory_bytes.or(memory_bytes));
        let engine = engine_id()?;
        let inner = Inner {
            config,
            store,
            archive,
            pools,
            engine,
            admission,
            active: Mutex::default(),
            stopping: AtomicBool::new(false),
            lock,
        };
        let app = Self { inner: Arc::new(inner) };
        app.resolve_leftovers().await?;
        Ok(app)
    }

    /// The records, for reading.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// The stored files, for reading.
    pub fn archive(&self) -> &Archive {
        &self.inner.archive
    }

    /// The engine of this build.
    pub fn engine(&self) -> &str {
        &self.inner.engine
    }

    /// The settings it was opened with.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Whether new work is accepted.
    pub fn is_ready(&self) -> bool {
        !self.inner.stopping.load(Ordering::Acquire)
    }

    /// Stops every run at its next boundary, for at most `grace`, and gives the data folder back.
    /// Runs that are not at rest by then are interrupted at the next start.
    pub async fn shutdown(&self, grace: Duration) {
        self.inner.stopping.store(true, Ordering::Release);
        let active = self.active_runs();
        for run in &active {
            run.stop("the daemon was asked to stop");
        }
        let all = async {
            for run in &active {
                run.ended().await;
            }
        };
        if tokio::time::timeout(grace, all).await.is_err() {
            tracing::warn!(
                ?grace,
                "some runs were not at rest in time; the next start resolves them"
            );
        }
        self.inner.store.close().await;
        self.inner.lock.give_back();
    }

    fn active_runs(&self) -> Vec<Arc<ActiveRun>> {
        let active = self.inner.active.lock().unwrap_or_else(PoisonError::into_inner);
        active.values().cloned().collect()
    }

    fn active(&self, run: &RunId) -> Option<Arc<ActiveRun>> {
        let active = self.inner.active.lock().unwrap_or_else(PoisonError::into_inner);
        active.get(run).cloned()
    }

    fn refuse_when_stopping(&self) -> Result<(), Refusal> {
        if self.is_ready() {
            return Ok(());
        }
        Err(Refusal::new(Code::Stopping, "the daemon is stopping and takes no new work"))
    }

    /// Before anything else happens: what an earlier process left.
    async fn resolve_leftovers(&self) -> Result<(), Refusal> {
        let store = &self.inner.store;
        let mut left = Leftovers { runs: Vec::new(), folders: folders(&self.inner.config)? };
        let mut runs: Vec<Run> = Vec::new();
        for state in [RunState::Queued, RunState::Running] {
            let filter = RunFilter { state: Some(state), ..RunFilter::default() };
            let mut page = Page { after: None, limit: crate::store::PAGE_LIMIT };
            loop {
                let found = store.runs(&filter, &page).await?;
                let Some(last) = found.last() else { break };
                page.after = Some(last.id.to_string());
                runs.extend(found);
            }
        }
        for folder in &left.folders {
            if let Ok(id) = folder.parse::<RunId>()
                && !runs.iter().any(|run| run.id == id)
                && let Ok(run) = store.run(&id).await
            {
                runs.push(run);
            }
        }
        for run in runs {
            let units = store.units(&run.id).await?;
            left.runs.push((run, units));
        }
        let partial = self.inner.archive.recover()?;
        if partial > 0 {
            tracing::warn!(partial, "removed files that were never finished");
        }
        let actions = recover(&left);
        if actions.iter().any(|action| matches!(action, Recovery::Interrupt { .. })) {
            let boot = hex::encode(rand::random::<[u8; 8]>());
            for run in store.interrupt_all_running(&boot).await? {
                tracing::warn!(%run, "interrupted by the end of an earlier process; it can be resumed");
            }
        }
        for action in actions {
            if let Recovery::RemoveFolder { folder } = action {
                let path = self.inner.config.work().join(&folder);
                if let Err(error) = fs::remove_dir_all(&path) {
                    tracing::warn!(folder, %error, "a working folder that nobody needs stays");
                }
            }
        }
        Ok(())
    }
}

fn folders(config: &Config) -> Result<Vec<String>, Refusal> {
    let failed = |error| internal("listing the working folder", &error);
    let mut names = Vec::new();
    for entry in fs::read_dir(config.work()).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if let Ok(name) = entry.file_name().into_string() {
            names.push(name);
        }
    }
    Ok(names)
}
