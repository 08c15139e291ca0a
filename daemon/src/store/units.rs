//! Units of work and attempts at them. Whoever works holds the token of an attempt; a report under the
//! token of an attempt that was replaced is recorded, refused, and changes nothing.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteRow;

use super::Store;
use super::columns::{Columns, whole, word};
use super::events::Write;
use super::faults::{fault, not_found};
use super::runs::seal_unit;
use super::seal::UNITS;
use crate::domain::ids::RunId;
use crate::domain::records::{RunState, Unit, WorkState};
use crate::domain::refusal::{Code, Refusal};

/// A unit of a run's plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedUnit {
    /// gates, train, select, main, freeze, edit, screen, analyse.
    pub stage: String,
    /// Unique in the run: `train/C`, `screen/fair-d3s7`.
    pub key: String,
    /// Planned work in the unit's own measure.
    pub total: u64,
}

/// The right to report on one attempt at a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptToken {
    /// The run.
    pub run_id: RunId,
    /// Key of the unit.
    pub key: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// 32 random hex digits.
    pub token: String,
}

impl Store {
    /// Adds the units of a run's plan, in this order. Units that are planned already are left alone, so
    /// a resumed run plans again.
    ///
    /// # Errors
    /// [`Code::WrongState`] when a planned unit has another stage or total.
    pub async fn plan_units(&self, run: &RunId, units: &[PlannedUnit]) -> Result<(), Refusal> {
        let mut write = self.write().await?;
        super::runs::by_id(write.sql(), run).await?;
        let mut position: i64 = sqlx::query_scalar("SELECT count(*) FROM units WHERE run_id = ?")
            .bind(run.as_str())
            .fetch_one(write.sql())
            .await
            .map_err(fault)?;
        let mut added = Vec::new();
        for unit in units {
            let total = whole("total", unit.total)?;
            let known: Option<(String, i64)> =
                sqlx::query_as("SELECT stage, total FROM units WHERE run_id = ? AND key = ?")
                    .bind(run.as_str())
                    .bind(&unit.key)
                    .fetch_optional(write.sql())
                    .await
                    .map_err(fault)?;
            match known {
                Some(known) if known == (unit.stage.clone(), total) => continue,
                Some((stage, total)) => {
                    return Err(Refusal::new(
                        Code::WrongState,
                        format!(
                            "unit {} of {run} is planned as stage {stage} with total {total}",
                            unit.key
                        ),
                    ));
                }
                None => {}
            }
            sqlx::query(
                "INSERT INTO units (run_id, key, position, stage, state, attempt, done, total)
                 VALUES (?, ?, ?, ?, 'pending', 0, 0, ?)",
            )
            .bind(run.as_str())
            .bind(&unit.key)
            .bind(position)
            .bind(&unit.stage)
            .bind(total)
            .execute(write.sql())
            .await
            .map_err(fault)?;
            let id = format!("{run}/{}", unit.key);
            write.seal(&UNITS, "run_id = ? AND key = ?", &[run.as_str(), &unit.key], &id).await?;
            position += 1;
            added.push(unit.key.as_str());
        }
        if added.is_empty() {
            return write.abandon().await;
        }
        write.event("units-planned", run.as_str(), Some(run), json!({ "keys": added })).await?;
        write.commit().await
    }

    /// The units of a run, in the order of its plan.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn units(&self, run: &RunId) -> Result<Vec<Unit>, Refusal> {
        let mut connection = self.read().await?;
        sqlx::query("SELECT * FROM units WHERE run_id = ? ORDER BY position")
            .bind(run.as_str())
            .fetch_all(&mut *connection)
            .await
            .map_err(fault)?
            .iter()
            .map(unit)
            .collect()
    }

    /// Begins the next attempt at a unit of a running run. An attempt that is still running is replaced
    /// by it.
    ///
    /// # Errors
    /// [`Code::WrongState`] when the unit has succeeded or is skipped, or the run is not running.
    pub async fn start_attempt(&self, run: &RunId, key: &str) -> Result<AttemptToken, Refusal> {
        let mut write = self.write().await?;
        let owner = super::runs::by_id(write.sql(), run).await?;
        if owner.state != RunState::Running {
            return Err(Refusal::new(
                Code::WrongState,
                format!("{run} is {}", word(&owner.state)?),
            ));
        }
        let before = by_key(&mut write, run, key).await?;
        if matches!(before.state, WorkState::Succeeded | WorkState::Skipped) {
            return Err(Refusal::new(
                Code::WrongState,
                format!("unit {key} of {run} has {}", word(&before.state)?),
            ));
        }
        let at = write.at();
        if before.state == WorkState::Running {
            let reason = format!("replaced by attempt {}", before.attempt + 1);
            end(&mut write, run, key, before.attempt, WorkState::Interrupted, Some(&reason), None)
                .await?;
        }
        let attempt = before.attempt + 1;
        sqlx::query(
            "UPDATE units SET state = 'running', attempt = ?, reason = NULL, ended_at = NULL,
                 started_at = coalesce(started_at, ?), heartbeat_at = NULL
             WHERE run_id = ? AND key = ?",
        )
        .bind(i64::from(attempt))
        .bind(at)
        .bind(run.as_str())
        .bind(key)
        .execute(write.sql())
        .await
        .map_err(fault)?;
        let token = hex::encode(rand::random::<[u8; 16]>());
        sqlx::query(
            "INSERT INTO attempts (run_id, key, attempt, token, state, started_at)
             VALUES (?, ?, ?, ?, 'running', ?)",
        )
        .bind(run.as_str())
        .bind(key)
        .bind(i64::from(attempt))
        .bind(&token)
        .bind(at)
        .execute(write.sql())
        .await
        .map_err(fault)?;
        seal_unit(&mut write, run, key, i64::from(attempt)).await?;
        let body = json!({ "key": key, "stage": before.stage, "attempt": attempt });
        write.event("unit-started", &format!("{run}/{key}"), Some(run), body).await?;
        write.commit().await?;
        Ok(AttemptToken { run_id: run.clone(), key: String::from(key), attempt, token })
    }

    /// A sign of life with the work done so far. Not an event.
    ///
    /// # Errors
    /// [`Code::Superseded`].
    pub async fn heartbeat(&self, token: &AttemptToken, done: u64) -> Result<(), Refusal> {
        let done = whole("done", done)?;
        let mut write = self.write().await?;
        if !holds(&mut write, token).await? {
            return Err(superseded(token));
        }
        let at = write.at();
        sqlx::query("UPDATE units SET done = ?, heartbeat_at = ? WHERE run_id = ? AND key = ?")
            .bind(done)
            .bind(at)
            .bind(token.run_id.as_str())
            .bind(&token.key)
            .execute(write.sql())
            .await
            .map_err(fault)?;
        write.commit().await
    }

    /// Ends an attempt and with it, for now, the unit. Success needs an output, every other end a
    /// reason. The same end again changes nothing.
    ///
    /// # Errors
    /// [`Code::Superseded`]; [`Code::InvalidRequest`] for an end without its output or reason.
    pub async fn finish_attempt(
        &self,
        token: &AttemptToken,
        state: WorkState,
        reason: Option<&str>,
        output: Option<&Value>,
    ) -> Result<(), Refusal> {
        let fits = match state {
            WorkState::Succeeded => output.is_some(),
            WorkState::Failed | WorkState::Stopped | WorkState::Interrupted => {
                output.is_none() && reason.is_some_and(|reason| !reason.trim().is_empty())
            }
            WorkState::Pending | WorkState::Running | WorkState::Skipped => false,
        };
        if !fits {
            return Err(Refusal::new(
                Code::InvalidRequest,
                "an attempt succeeds with an output, or fails, stops or is interrupted with a reason and no output",
            ));
        }
        let mut write = self.write().await?;
        let before = by_key(&mut write, &token.run_id, &token.key).await?;
        let repeated = before.attempt == token.attempt
            && before.state == state
            && before.output.as_ref() == output;
        if repeated && known(&mut write, token).await? {
            return write.abandon().await;
        }
        let mut write = authorise(write, token, "finish").await?;
        end(&mut write, &token.run_id, &token.key, token.attempt, state, reason, output).await?;
        write.commit().await
    }

    /// Marks a unit that will not be needed, with the reason.
    ///
    /// # Errors
    /// [`Code::WrongState`] when it is running or has succeeded.
    pub async fn skip_unit(&self, run: &RunId, key: &str, reason: &str) -> Result<(), Refusal> {
        let mut write = self.write().await?;
        let before = by_key(&mut write, run, key).await?;
        match before.state {
            WorkState::Skipped => return write.abandon().await,
            WorkState::Running | WorkState::Succeeded => {
                return Err(Refusal::new(
                    Code::WrongState,
                    format!("unit {key} of {run} is {}", word(&before.state)?),
                ));
            }
            _ => {}
        }
        let at = write.at();
        sqlx::query("UPDATE units SET state = 'skipped', reason = ?, ended_at = ? WHERE run_id = ? AND key = ?")
            .bind(reason)
            .bind(at)
            .bind(run.as_str())
            .bind(key)
            .execute(write.sql())
            .await
            .map_err(fault)?;
        let id = format!("{run}/{key}");
        write.seal(&UNITS, "run_id = ? AND key = ?", &[run.as_str(), key], &id).await?;
        write
            .event("unit-skipped", &id, Some(run), json!({ "key": key, "reason": reason }))
            .await?;
        write.commit().await
    }
}

async fn end(
    write: &mut Write,
    run: &RunId,
    key: &str,
    attempt: u32,
    state: WorkState,
    reason: Option<&str>,
    output: Option<&Value>,
) -> Result<(), Refusal> {
    let at = write.at();
    let name = word(&state)?;
    let output_sql = output.map(super::columns::json).transpose()?;
    sqlx::query(
        "UPDATE units SET state = ?, reason = ?, output = ?, ended_at = ? WHERE run_id = ? AND key = ?",
    )
    .bind(&name)
    .bind(reason)
    .bind(output_sql)
    .bind(at)
    .bind(run.as_str())
    .bind(key)
    .execute(write.sql())
    .await
    .map_err(fault)?;
    sqlx::query("UPDATE attempts SET state = ?, reason = ?, ended_at = ? WHERE run_id = ? AND key = ? AND attempt = ?")
        .bind(&name)
        .bind(reason)
        .bind(at)
        .bind(run.as_str())
        .bind(key)
        .bind(i64::from(attempt))
        .execute(write.sql())
        .await
        .map_err(fault)?;
    seal_unit(write, run, key, i64::from(attempt)).await?;
    let body = json!({ "key": key, "attempt": attempt, "reason": reason });
    write.event(&format!("unit-{name}"), &format!("{run}/{key}"), Some(run), body).await?;
    Ok(())
}

/// Goes on with the transaction when the token is that of the running attempt; otherwise records the
/// late report and refuses.
pub(super) async fn authorise(
    mut write: Write,
    token: &AttemptToken,
    what: &str,
) -> Result<Write, Refusal> {
    if holds(&mut write, token).await? {
        return Ok(write);
    }
    let body = json!({ "key": token.key, "attempt": token.attempt, "report": what });
    let subject = format!("{}/{}", token.run_id, token.key);
    super::runs::by_id(write.sql(), &token.run_id).await?;
    write.event("report-superseded", &subject, Some(&token.run_id), body).await?;
    write.commit().await?;
    Err(superseded(token))
}

fn superseded(token: &AttemptToken) -> Refusal {
    Refusal::new(
        Code::Superseded,
        format!(
            "attempt {} at unit {} of {} has ended; nothing was changed",
            token.attempt, token.key, token.run_id
        ),
    )
}

/// Whether the token is that of the unit's running attempt.
async fn holds(write: &mut Write, token: &AttemptToken) -> Result<bool, Refusal> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM attempts
                        WHERE run_id = ? AND key = ? AND attempt = ? AND token = ? AND state = 'running')",
    )
    .bind(token.run_id.as_str())
    .bind(&token.key)
    .bind(i64::from(token.attempt))
    .bind(&token.token)
    .fetch_one(write.sql())
    .await
    .map_err(fault)
}

/// Whether the token ever was that of this attempt.
async fn known(write: &mut Write, token: &AttemptToken) -> Result<bool, Refusal> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM attempts WHERE run_id = ? AND key = ? AND attempt = ? AND token = ?)",
    )
    .bind(token.run_id.as_str())
    .bind(&token.key)
    .bind(i64::from(token.attempt))
    .bind(&token.token)
    .fetch_one(write.sql())
    .await
    .map_err(fault)
}

async fn by_key(write: &mut Write, run: &RunId, key: &str) -> Result<Unit, Refusal> {
    let row = sqlx::query("SELECT * FROM units WHERE run_id = ? AND key = ?")
        .bind(run.as_str())
        .bind(key)
        .fetch_optional(write.sql())
        .await
        .map_err(fault)?;
    unit(&row.ok_or_else(|| not_found("unit", &format!("{key} of {run}")))?)
}

fn unit(row: &SqliteRow) -> Result<Unit, Refusal> {
    let row = Columns(row);
    Ok(Unit {
        run_id: row.parsed("run_id")?,
        stage: row.get("stage")?,
        key: row.get("key")?,
        state: row.word("state")?,
        attempt: row.number("attempt")?,
        reason: row.get("reason")?,
        done: row.number("done")?,
        total: row.number("total")?,
        output: row.json_option("output")?,
        started_at: row.time_option("started_at")?,
        ended_at: row.time_option("ended_at")?,
    })
}
