//! Runs: who ran what, under which digest, engine, build and machine, and how far it got.

use serde_json::json;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::columns::{Columns, micros, word};
use super::events::Write;
use super::faults::{fault, not_found, unreadable};
use super::seal::{ATTEMPTS, RUN_ARMS, RUNS, UNITS};
use super::{Page, Store};
use crate::domain::ids::{ExperimentId, InstantId as _, MachineId, RunId};
use crate::domain::records::{Experiment, Origin, Run, RunState, Validity};
use crate::domain::refusal::{Code, Refusal};

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Of this experiment.
    pub experiment: Option<ExperimentId>,
    /// In this state.
    pub state: Option<RunState>,
}

impl Store {
    /// Whether [`Store::create_run`] would make a run now, without making one.
    ///
    /// # Errors
    /// As [`Store::create_run`].
    pub async fn may_start(&self, experiment: &ExperimentId, engine: &str) -> Result<(), Refusal> {
        let mut connection = self.read().await?;
        startable(&mut connection, experiment, engine).await.map(drop)
    }

    /// Makes a queued run of an experiment, with the plan of its games.
    ///
    /// # Errors
    /// [`Code::EngineMismatch`] when `engine` is not the one the protocol was frozen for,
    /// [`Code::WrongState`] when the experiment is withdrawn or has an active run, [`Code::NotFound`].
    pub async fn create_run(
        &self,
        experiment: &ExperimentId,
        engine: &str,
        build: &str,
        machine: &MachineId,
    ) -> Result<Run, Refusal> {
        let mut write = self.write().await?;
        let frozen = startable(write.sql(), experiment, engine).await?;
        let run = Run {
            id: RunId::mint(write.now, rand::random())
                .map_err(|error| unreadable("clock", &error))?,
            experiment_id: experiment.clone(),
            protocol_sha256: frozen.protocol_sha256,
            state: RunState::Queued,
            validity: Validity::Pending,
            reason: None,
            engine: String::from(engine),
            build: String::from(build),
            machine_id: machine.clone(),
            origin: Origin::Own,
            created_at: write.now,
            started_at: None,
            ended_at: None,
        };
        super::machines::by_id(write.sql(), machine).await?;
        record(&mut write, &run).await?;
        write.commit().await?;
        Ok(run)
    }

    /// A run.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn run(&self, id: &RunId) -> Result<Run, Refusal> {
        let mut connection = self.read().await?;
        by_id(&mut connection, id).await
    }

    /// Runs, the newest first.
    ///
    /// # Errors
    /// `invalid-request` when the page follows a record that does not exist.
    pub async fn runs(&self, filter: &RunFilter, page: &Page) -> Result<Vec<Run>, Refusal> {
        let mut connection = self.read().await?;
        let rows = sqlx::query(
            "SELECT * FROM runs
             WHERE (?1 IS NULL OR experiment_id = ?1) AND (?2 IS NULL OR state = ?2)
               AND (?3 IS NULL OR (created_at, id) < (SELECT created_at, id FROM runs WHERE id = ?3))
             ORDER BY created_at DESC, id DESC LIMIT ?4",
        )
        .bind(filter.experiment.as_ref().map(ExperimentId::as_str))
        .bind(filter.state.map(|state| word(&state)).transpose()?)
        .bind(page.after.as_deref())
        .bind(page.rows())
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?;
        drop(connection);
        let known = "SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?)";
        self.refuse_unknown_cursor(page, rows.is_empty(), known).await?;
        rows.iter().map(run).collect()
    }

    /// Moves a run that is in one of `from` to `to`. `reason` is needed for every end but completion.
    ///
    /// # Errors
    /// [`Code::WrongState`] naming the state it is in; [`Code::Incomplete`] when it should complete
    /// without a result or with unfinished units.
    pub async fn set_run_state(
        &self,
        id: &RunId,
        from: &[RunState],
        to: RunState,
        reason: Option<&str>,
    ) -> Result<Run, Refusal> {
        let mut write = self.write().await?;
        let before = by_id(write.sql(), id).await?;
        if !from.contains(&before.state) {
            return Err(Refusal::new(
                Code::WrongState,
                format!("{id} is {}, so it cannot become {}", word(&before.state)?, word(&to)?),
            ));
        }
        transition(&mut write, &before, to, reason).await?;
        let after = by_id(write.sql(), id).await?;
        write.commit().await?;
        Ok(after)
    }

    /// Judges whether the process followed the protocol. Once judged, it can only become invalid.
    ///
    /// # Errors
    /// [`Code::WrongState`].
    pub async fn set_validity(
        &self,
        id: &RunId,
        validity: Validity,
        reason: &str,
    ) -> Result<Run, Refusal> {
        let mut write = self.write().await?;
        judge(&mut write, id, validity, reason).await?;
        let after = by_id(write.sql(), id).await?;
        write.commit().await?;
        Ok(after)
    }

    /// Resolves what an earlier boot left running: runs, units and attempts become interrupted. Call it
    /// before anything of this boot runs; gives the runs.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn interrupt_all_running(&self, boot: &str) -> Result<Vec<RunId>, Refusal> {
        let reason = format!("the process ended under it; found at boot {boot}");
        let mut write = self.write().await?;
        let rows = sqlx::query("SELECT * FROM runs WHERE state = 'running' ORDER BY id")
            .fetch_all(write.sql())
            .await
            .map_err(fault)?;
        let mut interrupted = Vec::new();
        for row in &rows {
            let run = run(row)?;
            let units = sqlx::query("SELECT key, attempt FROM units WHERE run_id = ? AND state = 'running' ORDER BY position")
                .bind(run.id.as_str())
                .fetch_all(write.sql())
                .await
                .map_err(fault)?;
            for unit in &units {
                let unit = Columns(unit);
                let (key, attempt): (String, i64) = (unit.get("key")?, unit.get("attempt")?);
                interrupt_unit(&mut write, &run.id, &key, attempt, &reason).await?;
            }
            transition(&mut write, &run, RunState::Interrupted, Some(&reason)).await?;
            interrupted.push(run.id);
        }
        write.commit().await?;
        Ok(interrupted)
    }
}

/// The experiment, if a run of it may begin.
async fn startable(
    connection: &mut SqliteConnection,
    experiment: &ExperimentId,
    engine: &str,
) -> Result<Experiment, Refusal> {
    let frozen = super::experiments::by_id(&mut *connection, experiment).await?;
    if frozen.engine != engine {
        return Err(Refusal::new(
            Code::EngineMismatch,
            format!("{experiment} was frozen for engine {}, this program has {engine}", frozen.engine),
        )
        .hint("Run it with the version it was frozen for, or amend the protocol: a new experiment records why."));
    }
    if let Some(at) = frozen.withdrawn_at {
        return Err(Refusal::new(Code::WrongState, format!("{experiment} was withdrawn at {at}")));
    }
    if let Some(run) = super::leases::active_run(&mut *connection, experiment).await? {
        return Err(Refusal::new(Code::WrongState, format!("{run} of {experiment} is active"))
            .hint(format!("Watch it: heldout watch {run}")));
    }
    Ok(frozen)
}

async fn interrupt_unit(
    write: &mut Write,
    run: &RunId,
    key: &str,
    attempt: i64,
    reason: &str,
) -> Result<(), Refusal> {
    let at = write.at();
    sqlx::query("UPDATE units SET state = 'interrupted', reason = ?, ended_at = ? WHERE run_id = ? AND key = ?")
        .bind(reason)
        .bind(at)
        .bind(run.as_str())
        .bind(key)
        .execute(write.sql())
        .await
        .map_err(fault)?;
    sqlx::query(
        "UPDATE attempts SET state = 'interrupted', reason = ?, ended_at = ?
         WHERE run_id = ? AND key = ? AND attempt = ? AND state = 'running'",
    )
    .bind(reason)
    .bind(at)
    .bind(run.as_str())
    .bind(key)
    .bind(attempt)
    .execute(write.sql())
    .await
    .map_err(fault)?;
    seal_unit(write, run, key, attempt).await?;
    let body = json!({ "key": key, "attempt": attempt, "reason": reason });
    write.event("unit-interrupted", &format!("{run}/{key}"), Some(run), body).await?;
    Ok(())
}

/// Seals a unit and one of its attempts.
pub(super) async fn seal_unit(
    write: &mut Write,
    run: &RunId,
    key: &str,
    attempt: i64,
) -> Result<(), Refusal> {
    let id = format!("{run}/{key}");
    write.seal(&UNITS, "run_id = ? AND key = ?", &[run.as_str(), key], &id).await?;
    let number = attempt.to_string();
    write
        .seal(
            &ATTEMPTS,
            "run_id = ? AND key = ? AND attempt = CAST(? AS INTEGER)",
            &[run.as_str(), key, &number],
            &format!("{id}/{attempt}"),
        )
        .await
}

/// Writes the new state of a run and tells of it.
pub(super) async fn transition(
    write: &mut Write,
    before: &Run,
    to: RunState,
    reason: Option<&str>,
) -> Result<(), Refusal> {
    let at = write.at();
    let ended = !matches!(to, RunState::Queued | RunState::Running);
    let id = before.id.as_str();
    let needs_reason = matches!(to, RunState::Stopped | RunState::Interrupted | RunState::Failed);
    if needs_reason && reason.is_none_or(|reason| reason.trim().is_empty()) {
        return Err(Refusal::new(
            Code::InvalidRequest,
            format!("a run that becomes {} says why", word(&to)?),
        ));
    }
    sqlx::query(
        "UPDATE runs SET state = ?1, reason = ?2, ended_at = ?3,
             started_at = CASE WHEN ?1 = 'running' THEN coalesce(started_at, ?4) ELSE started_at END
         WHERE id = ?5",
    )
    .bind(word(&to)?)
    .bind(reason)
    .bind(ended.then_some(at))
    .bind(at)
    .bind(id)
    .execute(write.sql())
    .await
    .map_err(|error| {
        let mut refusal = fault(error);
        if refusal.code == Code::WrongState {
            refusal.detail = format!("{id}: {}", refusal.detail);
        }
        refusal
    })?;
    write.seal(&RUNS, "id = ?", &[id], id).await?;
    let kind = format!("run-{}", word(&to)?);
    write
        .event(&kind, id, Some(&before.id), json!({ "from": before.state, "reason": reason }))
        .await?;
    Ok(())
}

/// Writes the validity of a run and tells of it; the same again changes nothing.
pub(super) async fn judge(
    write: &mut Write,
    id: &RunId,
    validity: Validity,
    reason: &str,
) -> Result<(), Refusal> {
    let before = by_id(write.sql(), id).await?;
    if before.validity == validity {
        return Ok(());
    }
    sqlx::query("UPDATE runs SET validity = ?, validity_reason = ? WHERE id = ?")
        .bind(word(&validity)?)
        .bind(reason)
        .bind(id.as_str())
        .execute(write.sql())
        .await
        .map_err(fault)?;
    write.seal(&RUNS, "id = ?", &[id.as_str()], id.as_str()).await?;
    let body = json!({ "from": before.validity, "to": validity, "reason": reason });
    write.event("run-validity", id.as_str(), Some(id), body).await?;
    Ok(())
}

/// Writes a run and the games it plans.
pub(super) async fn record(write: &mut Write, run: &Run) -> Result<(), Refusal> {
    let id = run.id.as_str();
    sqlx::query(
        "INSERT INTO runs (id, experiment_id, protocol_sha256, engine, build, machine_id, origin, state,
             validity, reason, validity_reason, created_at, started_at, ended_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,
                 CASE WHEN ?9 IN ('partial', 'invalid') THEN coalesce(?10, 'as imported') END, ?11, ?12, ?13)",
    )
    .bind(id)
    .bind(run.experiment_id.as_str())
    .bind(&run.protocol_sha256)
    .bind(&run.engine)
    .bind(&run.build)
    .bind(run.machine_id.as_str())
    .bind(word(&run.origin)?)
    .bind(word(&run.state)?)
    .bind(word(&run.validity)?)
    .bind(&run.reason)
    .bind(micros(run.created_at))
    .bind(run.started_at.map(micros))
    .bind(run.ended_at.map(micros))
    .execute(write.sql())
    .await
    .map_err(fault)?;
    sqlx::query(
        "INSERT INTO run_arms (run_id, arm, position, games, lease_id)
         SELECT ?1, a.arm, a.position, a.games, u.lease_id
         FROM experiment_arms AS a
         JOIN lease_uses AS u ON u.experiment_id = a.experiment_id AND u.block = a.block
         WHERE a.experiment_id = ?2",
    )
    .bind(id)
    .bind(run.experiment_id.as_str())
    .execute(write.sql())
    .await
    .map_err(fault)?;
    write.seal(&RUNS, "id = ?", &[id], id).await?;
    write.seal(&RUN_ARMS, "run_id = ?", &[id], id).await?;
    write
        .event(
            "run-created",
            id,
            Some(&run.id),
            json!({
                "experiment_id": run.experiment_id,
                "protocol_sha256": run.protocol_sha256,
                "engine": run.engine,
                "build": run.build,
                "machine_id": run.machine_id,
                "origin": run.origin,
            }),
        )
        .await?;
    Ok(())
}

pub(super) async fn by_id(connection: &mut SqliteConnection, id: &RunId) -> Result<Run, Refusal> {
    let row = sqlx::query("SELECT * FROM runs WHERE id = ?")
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
        .map_err(fault)?;
    run(&row.ok_or_else(|| not_found("run", id))?)
}

fn run(row: &SqliteRow) -> Result<Run, Refusal> {
    let row = Columns(row);
    let reason: Option<String> = row.get("reason")?;
    let validity_reason: Option<String> = row.get("validity_reason")?;
    Ok(Run {
        id: row.parsed("id")?,
        experiment_id: row.parsed("experiment_id")?,
        protocol_sha256: row.get("protocol_sha256")?,
        state: row.word("state")?,
        validity: row.word("validity")?,
        reason: reason.or(validity_reason),
        engine: row.get("engine")?,
        build: row.get("build")?,
        machine_id: row.parsed("machine_id")?,
        origin: row.word("origin")?,
        created_at: row.time("created_at")?,
        started_at: row.time_option("started_at")?,
        ended_at: row.time_option("ended_at")?,
    })
}
