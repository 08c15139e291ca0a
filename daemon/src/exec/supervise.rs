//! Carries the plan of one run out: observes, asks [`plan`], acts, waits, until
//! the run is over or stopped. It decides nothing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc};

use super::freeze::{as_digests, table_digests};
use super::local;
use super::plan::{Action, Failure, Stage, plan, screen_games};
use super::status::RunStatus;
use super::unit::{Counter, Stop, UnitInputs, Workshop};
use super::writer::{Ended, write};
use crate::domain::ids::RunId;
use crate::domain::protocol::Protocol;
use crate::domain::records::{RunState, Validity};
use crate::domain::refusal::{Code, Refusal};
use crate::store::{AttemptToken, Store};

/// Reports that may wait for the writer before units wait for it.
const REPORTS: usize = 4096;
/// How often a heartbeat is stored and the wall budget looked at.
const BEAT: Duration = Duration::from_secs(2);

/// A run at work, shared with whoever watches or stops it.
#[derive(Debug)]
pub struct ActiveRun {
    /// The run.
    pub id: RunId,
    /// The request to stop.
    pub stop: Stop,
    units: Mutex<BTreeMap<String, Working>>,
    /// Why it was stopped, when it was.
    reason: Mutex<Option<String>>,
    /// Wakes whoever waits for a stop or for the end.
    wake: Notify,
    over: AtomicBool,
}

/// A unit at work.
#[derive(Debug, Clone)]
pub struct Working {
    /// Its key.
    pub key: String,
    /// How far it is.
    pub counter: Arc<Counter>,
    /// How far it has to go.
    pub total: u64,
    /// The right to report on it.
    token: AttemptToken,
}

impl ActiveRun {
    /// A run that is about to be supervised.
    pub fn new(id: RunId) -> Self {
        Self {
            id,
            stop: Stop::default(),
            units: Mutex::default(),
            reason: Mutex::default(),
            wake: Notify::new(),
            over: AtomicBool::new(false),
        }
    }

    /// Asks for a stop; the first reason is the one that is stored.
    pub fn stop(&self, reason: &str) {
        self.reason
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(|| reason.to_owned());
        self.stop.request();
        self.wake.notify_waiters();
    }

    /// Waits until a stop is asked for.
    pub async fn stopping(&self) {
        self.until(|| self.stop.is_requested()).await;
    }

    /// Says that nothing of this run is at work any more.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.wake.notify_waiters();
    }

    /// Waits until nothing of this run is at work any more.
    pub async fn ended(&self) {
        self.until(|| self.over.load(Ordering::Acquire)).await;
    }

    async fn until(&self, holds: impl Fn() -> bool) {
        loop {
            // Registered before looking, so that a wake-up in between is not lost.
            let mut woken = std::pin::pin!(self.wake.notified());
            woken.as_mut().enable();
            if holds() {
                return;
            }
            woken.await;
        }
    }

    /// The units at work.
    pub fn units(&self) -> Vec<Working> {
        let units = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        units.values().cloned().collect()
    }

    fn reason(&self) -> String {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        reason.clone().unwrap_or_else(|| String::from("stopped after a refused report"))
    }
}

/// Everything known of `run`.
///
/// # Errors
/// When the run is unknown or the database fails.
pub async fn observe(store: &Store, run: &RunId) -> Result<RunStatus, Refusal> {
    let run = store.run(run).await?;
    let units = store.units(&run.id).await?;
    let points = store.all_points(&run.id).await?;
    let leases = store.leases_of(&run.experiment_id).await?;
    let arms = store.arms(&run.id).await?;
    let games = arms.into_iter().map(|(arm, _, held)| (arm, u64::from(held))).collect();
    let result = store.result_of(&run.id).await?;
    Ok(RunStatus { run, units, points, leases, games, result })
}

/// What a supervisor works with.
#[derive(Debug)]
pub struct Supervisor {
    /// The records.
    pub store: Store,
    /// The frozen protocol.
    pub protocol: Arc<Protocol>,
    /// The run.
    pub active: Arc<ActiveRun>,
    /// What its units share, except the channel to the writer.
    pub shop: WorkshopParts,
}

/// What units of a run share, before the writer exists.
#[derive(Debug)]
pub struct WorkshopParts {
    /// Where games are played.
    pub pool: Arc<rayon::ThreadPool>,
    /// Where tables are stored.
    pub archive: crate::artifacts::Archive,
    /// Frozen tables that are in memory.
    pub tables: Arc<super::tables::TableCache>,
    /// Working folder of the run.
    pub work: std::path::PathBuf,
    /// The clock.
    pub clock: crate::clock::Clock,
}

impl Supervisor {
    /// Supervises until the run is completed, failed or stopped. Faults of the store end the run as
    /// failed when they can still be stored, and are logged in any case.
    pub async fn run(self) {
        let id = self.active.id.clone();
        let store = self.store.clone();
        let work = self.shop.work.clone();
        let archive_tables = Arc::clone(&self.shop.tables);
        if let Err(refusal) = self.supervise().await {
            tracing::error!(run = %id, %refusal, "the run cannot be supervised any further");
            let failed = store
                .set_run_state(&id, &[RunState::Running], RunState::Failed, Some(&refusal.detail))
                .await;
            if let Err(error) = failed {
                tracing::error!(run = %id, %error, "and that could not be stored");
            }
        }
        archive_tables.clear();
        let is_over = store
            .run(&id)
            .await
            .is_ok_and(|run| matches!(run.state, RunState::Completed | RunState::Failed));
        if is_over
            && work.exists()
            && let Err(error) = fs_err::remove_dir_all(&work)
        {
            tracing::warn!(run = %id, %error, "the working folder stays");
        }
    }

    async fn supervise(self) -> Result<(), Refusal> {
        let (reports, inbox) = mpsc::channel(REPORTS);
        let (ended, mut ends) = mpsc::unbounded_channel();
        let writer = tokio::spawn(write(
            self.store.clone(),
            self.active.id.clone(),
            self.active.stop.clone(),
            inbox,
            ended,
        ));
        let shop = Workshop {
            stop: self.active.stop.clone(),
            pool: Arc::clone(&self.shop.pool),
            archive: self.shop.archive.clone(),
            tables: Arc::clone(&self.shop.tables),
            work: self.shop.work.clone(),
            clock: self.shop.clock.clone(),
            reports,
        };
        let outcome = self.steps(&shop, &mut ends).await;
        // Without this the writer would wait for reports forever.
        drop(shop);
        if outcome.is_err() {
            self.active.stop.request();
        }
        if writer.await.is_err() {
            tracing::error!(run = %self.active.id, "the writer panicked");
        }
        outcome
    }

    async fn steps(
        &self,
        shop: &Workshop,
        ends: &mut mpsc::UnboundedReceiver<Ended>,
    ) -> Result<(), Refusal> {
        let store = &self.store;
        let id = &self.active.id;
        let session = Instant::now();
        let mut before: Option<f64> = None;
        loop {
            let status = observe(store, id).await?;
            let earlier = *before.get_or_insert_with(|| worked_seconds(&status));
            let is_idle = self.active.units().is_empty();
            if self.active.stop.is_requested() {
                if is_idle {
                    return self.rest(&status).await;
                }
                self.wait(ends, &status, earlier + session.elapsed().as_secs_f64()).await?;
                continue;
            }
            let actions = plan(&self.protocol, &status);
            if actions.is_empty() {
                if is_idle {
                    let stuck = Refusal::new(
                        Code::Internal,
                        "nothing is running and the plan has nothing to do",
                    );
                    return Err(stuck);
                }
                self.wait(ends, &status, earlier + session.elapsed().as_secs_f64()).await?;
                continue;
            }
            for action in actions {
                if self.act(shop, &status, action).await? {
                    return Ok(());
                }
            }
        }
    }

    /// Carries one action out; true when the run is over.
    async fn act(
        &self,
        shop: &Workshop,
        status: &RunStatus,
        action: Action,
    ) -> Result<bool, Refusal> {
        let store = &self.store;
        let id = &self.active.id;
        match action {
            Action::PlanUnits { units } => {
                let units: Vec<crate::store::PlannedUnit> = units
                    .into_iter()
                    .map(|unit| crate::store::PlannedUnit {
                        stage: unit.stage.name().to_owned(),
                        key: unit.key,
                        total: unit.total,
                    })
                    .collect();
                store.plan_units(id, &units).await?;
            }
            Action::Start { stage, key } => self.start(shop, status, stage, key).await?,
            Action::OpenLease { lease } => {
                let tables = as_digests(&table_digests(&self.protocol, status)?);
                store.open_lease(&lease, id, &status.run.protocol_sha256, &tables).await?;
            }
            Action::Fail { failure } => {
                self.fail(&failure).await?;
                return Ok(true);
            }
            Action::Complete => {
                store.set_run_state(id, &[RunState::Running], RunState::Completed, None).await?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn start(
        &self,
        shop: &Workshop,
        status: &RunStatus,
        stage: Stage,
        key: String,
    ) -> Result<(), Refusal> {
        let store = &self.store;
        let id = &self.active.id;
        let token = store.start_attempt(id, &key).await?;
        let missing = match key.strip_prefix("screen/") {
            Some(arm) if stage == Stage::Screen => {
                store.missing_ordinals(id, arm, screen_games(&self.protocol)).await?
            }
            _ => Vec::new(),
        };
        let rows = if stage == Stage::Analyse { store.all_games(id).await? } else { Vec::new() };
        let counter = Arc::new(Counter::default());
        let total = status.unit(&key).map_or(1, |unit| unit.total);
        {
            let mut units = self.active.units.lock().unwrap_or_else(PoisonError::into_inner);
            let working = Working {
                key: key.clone(),
                counter: Arc::clone(&counter),
                total,
                token: token.clone(),
            };
            units.insert(key.clone(), working);
        }
        let inputs = UnitInputs {
            run: id.clone(),
            key,
            token,
            protocol: Arc::clone(&self.protocol),
            status: Arc::new(status.clone()),
            rows,
            missing,
        };
        local::begin(stage, shop.unit(inputs, counter))
    }

    /// Waits for a unit to end, or for the next heartbeat. The wall budget stops everything up to the
    /// opening of the held-out block. What comes after is finished: a block that is half played and
    /// never judged is the one thing that cannot be made good.
    async fn wait(
        &self,
        ends: &mut mpsc::UnboundedReceiver<Ended>,
        status: &RunStatus,
        spent: f64,
    ) -> Result<(), Refusal> {
        let ended = tokio::time::timeout(BEAT, ends.recv()).await;
        if let Ok(Some(ended)) = ended {
            self.active.units.lock().unwrap_or_else(PoisonError::into_inner).remove(&ended.key);
            return Ok(());
        }
        for unit in self.active.units() {
            match self.store.heartbeat(&unit.token, unit.counter.done()).await {
                // The writer has stored its end since; the word of it is on the way.
                Err(refusal) if refusal.code == Code::Superseded => {}
                beat => beat?,
            }
        }
        let budget = self.protocol.budget.wall_seconds;
        let is_open = status.leases.iter().any(|lease| {
            lease.opening.as_ref().is_some_and(|opening| opening.run_id == self.active.id)
        });
        if spent > budget as f64 && !is_open {
            self.active.stop(&format!(
                "the wall budget of {budget} s is spent before the held-out block was opened; it stays \
                 unread, and an amendment with a larger budget can use it"
            ));
        }
        Ok(())
    }

    /// A stop that every unit has come to rest for.
    async fn rest(&self, status: &RunStatus) -> Result<(), Refusal> {
        let failed = status
            .units
            .iter()
            .find(|unit| unit.state == crate::domain::records::WorkState::Failed);
        if let Some(unit) = failed {
            let failure = Failure::UnitFailed {
                key: unit.key.clone(),
                reason: unit.reason.clone().unwrap_or_default(),
            };
            return self.fail(&failure).await;
        }
        let reason = self.active.reason();
        self.store
            .set_run_state(&self.active.id, &[RunState::Running], RunState::Stopped, Some(&reason))
            .await?;
        Ok(())
    }

    async fn fail(&self, failure: &Failure) -> Result<(), Refusal> {
        let reason = failure.to_string();
        let store = &self.store;
        let id = &self.active.id;
        store.set_run_state(id, &[RunState::Running], RunState::Failed, Some(&reason)).await?;
        if store.run(id).await?.validity == Validity::Pending {
            store.set_validity(id, Validity::Partial, &reason).await?;
        }
        Ok(())
    }
}

/// Seconds that earlier attempts have worked, as far as the latest attempt of each unit tells.
fn worked_seconds(status: &RunStatus) -> f64 {
    status
        .units
        .iter()
        .filter_map(|unit| Some(unit.ended_at?.duration_since(unit.started_at?).as_secs_f64()))
        .sum()
}
