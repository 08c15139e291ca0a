//! Starting, stopping, resuming and watching runs.

use std::sync::{Arc, PoisonError};

use super::create::frozen_protocol;
use super::{App, UnitProgress, Validated};
use crate::config::build_id;
use crate::domain::ids::{ExperimentId, RunId};
use crate::domain::protocol::Protocol;
use crate::domain::records::{LeaseState, Run, RunState};
use crate::domain::refusal::{Code, Refusal};
use crate::exec::plan::{MAIN_KEY, train_key};
use crate::exec::status::RunStatus;
use crate::exec::supervise::{ActiveRun, Supervisor, WorkshopParts, observe};
use crate::exec::tables::TableCache;
use crate::exec::train::curve;
use crate::machine;

impl App {
    /// Starts a run of an experiment.
    ///
    /// # Errors
    /// When the experiment is unknown, withdrawn, frozen for another engine, its held-out block is
    /// open, or the machine is too small for its budget.
    pub async fn start_run(&self, experiment: &ExperimentId) -> Result<Run, Refusal> {
        self.refuse_when_stopping()?;
        let store = self.store();
        store.may_start(experiment, self.engine()).await?;
        let protocol = self.protocol(experiment).await?;
        self.inner.admission.check(&protocol.budget)?;
        let leases = store.leases_of(experiment).await?;
        let screen = leases.iter().find(|lease| lease.name == protocol.screen.seeds);
        if let Some(lease) = screen
            && lease.state != LeaseState::Reserved
        {
            let by = lease.opening.as_ref().map_or_else(
                || String::from("it was cancelled"),
                |opening| format!("{} opened it at {}", opening.run_id, opening.opened_at),
            );
            return Err(Refusal::new(
                Code::AlreadyOpened,
                format!("the held-out block {} cannot be opened again: {by}", lease.id),
            )
            .hint("Freeze the same protocol again with repeat=true: it draws a fresh block."));
        }
        let machine = store.add_machine(machine::profile()).await?;
        let run = store.create_run(experiment, self.engine(), &build_id(), &machine.id).await?;
        self.launch(&run, protocol)?;
        Ok(run)
    }

    /// Asks a run to stop at its next boundary and waits until it has.
    ///
    /// # Errors
    /// When the run is unknown or over.
    pub async fn stop_run(&self, run: &RunId) -> Result<Run, Refusal> {
        if let Some(active) = self.active(run) {
            active.stop("stopped on request");
            active.ended().await;
            return self.store().run(run).await;
        }
        let stored = self.store().run(run).await?;
        match stored.state {
            RunState::Stopped => Ok(stored),
            state => Err(Refusal::new(
                Code::WrongState,
                format!("{run} is {}, so there is nothing to stop", state_name(state)),
            )),
        }
    }

    /// Continues a stopped or interrupted run.
    ///
    /// # Errors
    /// When the run is unknown, over, running, or was made by another engine.
    pub async fn resume_run(&self, run: &RunId) -> Result<Run, Refusal> {
        self.refuse_when_stopping()?;
        let store = self.store();
        let stored = store.run(run).await?;
        if stored.engine != self.engine() {
            return Err(Refusal::new(
                Code::EngineMismatch,
                format!(
                    "{run} was begun by engine {}, this build has {}",
                    stored.engine,
                    self.engine()
                ),
            ));
        }
        let protocol = self.protocol(&stored.experiment_id).await?;
        self.inner.admission.check(&protocol.budget)?;
        let from = [RunState::Stopped, RunState::Interrupted];
        let queued = store.set_run_state(run, &from, RunState::Queued, None).await?;
        self.launch(&queued, protocol)?;
        Ok(queued)
    }

    /// A validation point of a training arm at its next chunk boundary. Without an arm, of the one
    /// that is training. Asked again before that boundary, it is the same request.
    ///
    /// # Errors
    /// When no such arm is training.
    pub async fn validate_now(
        &self,
        run: &RunId,
        arm: Option<String>,
    ) -> Result<Validated, Refusal> {
        self.refuse_when_stopping()?;
        let status = self.status(run).await?;
        let units = self.active(run).map(|active| active.units()).unwrap_or_default();
        let training = units.into_iter().find(|unit| match &arm {
            Some(arm) if arm == "main" => unit.key == MAIN_KEY,
            Some(arm) => unit.key == train_key(arm),
            None => unit.key.starts_with("train/"),
        });
        let Some(unit) = training else {
            let what =
                arm.map_or_else(|| String::from("no arm is"), |arm| format!("arm {arm:?} is not"));
            return Err(Refusal::new(
                Code::WrongState,
                format!("{what} training in {run}, so there is nothing to validate"),
            ));
        };
        let name = unit.key.trim_start_matches("train/").to_owned();
        let moves = unit.counter.boundary();
        if let Some(point) =
            curve(&status.points, &name).into_iter().find(|point| point.moves == moves)
        {
            return Ok(Validated::Exists { point: point.clone() });
        }
        let created = unit.counter.ask_for_point();
        Ok(Validated::Requested { arm: name, moves, created })
    }

    /// Everything known of a run.
    ///
    /// # Errors
    /// When the run is unknown.
    pub async fn status(&self, run: &RunId) -> Result<RunStatus, Refusal> {
        observe(self.store(), run).await
    }

    /// How far the units of a run are, from memory. Empty when nothing of it is at work here.
    pub fn progress(&self, run: &RunId) -> Vec<UnitProgress> {
        let units = self.active(run).map(|active| active.units()).unwrap_or_default();
        units
            .into_iter()
            .map(|unit| UnitProgress {
                done: unit.counter.done(),
                key: unit.key,
                total: unit.total,
            })
            .collect()
    }

    /// Waits until nothing of a run is at work in this process.
    pub async fn wait(&self, run: &RunId) {
        if let Some(active) = self.active(run) {
            active.ended().await;
        }
    }

    /// Begins to supervise a queued run.
    fn launch(&self, run: &Run, protocol: Protocol) -> Result<(), Refusal> {
        let pool = self.inner.pools.of(protocol.budget.threads as usize)?;
        let active = Arc::new(ActiveRun::new(run.id.clone()));
        let supervisor = Supervisor {
            store: self.store().clone(),
            protocol: Arc::new(protocol),
            active: Arc::clone(&active),
            shop: WorkshopParts {
                pool,
                archive: self.archive().clone(),
                tables: Arc::new(TableCache::new(self.archive().clone())),
                work: self.inner.config.work().join(run.id.as_str()),
                clock: self.inner.config.clock.clone(),
            },
        };
        {
            let mut all = self.inner.active.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(run.id.clone(), Arc::clone(&active));
        }
        let app = self.clone();
        tokio::spawn(async move {
            app.carry_out(supervisor).await;
            let mut all = app.inner.active.lock().unwrap_or_else(PoisonError::into_inner);
            all.remove(&active.id);
            active.end();
        });
        Ok(())
    }

    /// Waits for room, then supervises to the end.
    async fn carry_out(&self, supervisor: Supervisor) {
        let store = self.store().clone();
        let active = Arc::clone(&supervisor.active);
        let id = &active.id;
        let admitted = tokio::select! {
            admitted = self.inner.admission.reserve(&supervisor.protocol.budget) => admitted.ok(),
            () = active.stopping() => None,
        };
        let queued = [RunState::Queued];
        let begun = if admitted.is_some() {
            store.set_run_state(id, &queued, RunState::Running, None).await
        } else {
            let reason = Some("stopped while it waited for room");
            store.set_run_state(id, &queued, RunState::Stopped, reason).await
        };
        match begun {
            Ok(run) if run.state == RunState::Running => supervisor.run().await,
            Ok(_) => {}
            Err(refusal) => tracing::error!(run = %id, %refusal, "a queued run could not begin"),
        }
    }
}

/// A run's protocol and status, for whoever only reads.
///
/// # Errors
/// When the run is unknown or its protocol does not parse.
pub async fn protocol_and_status(
    store: &crate::store::Store,
    run: &RunId,
) -> Result<(Protocol, RunStatus), Refusal> {
    let status = observe(store, run).await?;
    let bytes = store.protocol_bytes(&status.run.experiment_id).await?;
    Ok((frozen_protocol(&bytes)?, status))
}

/// The name of a run state in records.
pub fn state_name(state: RunState) -> String {
    match serde_json::to_value(state) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::from("unknown"),
    }
}
