//! Results: a verdict with everything it rests on, one per run, recorded when every game is there.

use serde_json::json;
use sqlx::sqlite::SqliteRow;

use super::columns::{Columns, json as text, micros, word};
use super::events::Write;
use super::faults::{fault, not_found};
use super::seal::RESULTS;
use super::{Page, Store};
use crate::domain::ids::{ResultId, RunId};
use crate::domain::records::{Outcome, ResultRecord, Validity};
use crate::domain::refusal::{Code, Refusal};

impl Store {
    /// Records the result of a run. A pending validity becomes that of the result in the same step.
    ///
    /// # Errors
    /// [`Code::Incomplete`] with every arm that lacks games, [`Code::WrongState`] when the run has its
    /// result or another validity, [`Code::InvalidRequest`] when it repeats its run wrongly or judges a
    /// run that is not valid.
    pub async fn add_result(&self, result: &ResultRecord) -> Result<(), Refusal> {
        if result.validity != Validity::Valid
            && matches!(result.outcome, Outcome::Pass | Outcome::Fail)
        {
            return Err(Refusal::new(
                Code::InvalidRequest,
                "only a valid run passes or fails; a partial or invalid one is inconclusive or not applicable",
            )
            .at("/outcome", "must be inconclusive or not-applicable"));
        }
        let mut write = self.write().await?;
        let run = super::runs::by_id(write.sql(), &result.run_id).await?;
        match run.validity {
            Validity::Pending => {
                super::runs::judge(&mut write, &run.id, result.validity, &result.summary).await?;
            }
            validity if validity == result.validity => {}
            validity => {
                return Err(Refusal::new(
                    Code::WrongState,
                    format!(
                        "{} is {}, its result says {}",
                        run.id,
                        word(&validity)?,
                        word(&result.validity)?
                    ),
                ));
            }
        }
        if result.validity == Validity::Valid {
            refuse_incomplete(&mut write, &run.id).await?;
        }
        record(&mut write, result).await?;
        write.commit().await
    }

    /// A result.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn result(&self, id: &ResultId) -> Result<ResultRecord, Refusal> {
        let mut connection = self.read().await?;
        let row = sqlx::query("SELECT * FROM results WHERE id = ?")
            .bind(id.as_str())
            .fetch_optional(&mut *connection)
            .await
            .map_err(fault)?;
        result(&row.ok_or_else(|| not_found("result", id))?)
    }

    /// Results, the newest first.
    ///
    /// # Errors
    /// `invalid-request` when the page follows a record that does not exist.
    pub async fn results(&self, page: &Page) -> Result<Vec<ResultRecord>, Refusal> {
        let mut connection = self.read().await?;
        let rows = sqlx::query(
            "SELECT * FROM results
             WHERE ?1 IS NULL OR (recorded_at, id) < (SELECT recorded_at, id FROM results WHERE id = ?1)
             ORDER BY recorded_at DESC, id DESC LIMIT ?2",
        )
        .bind(page.after.as_deref())
        .bind(page.rows())
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?;
        drop(connection);
        let known = "SELECT EXISTS (SELECT 1 FROM results WHERE id = ?)";
        self.refuse_unknown_cursor(page, rows.is_empty(), known).await?;
        rows.iter().map(result).collect()
    }

    /// The result of a run, when it has one.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn result_of(&self, run: &RunId) -> Result<Option<ResultRecord>, Refusal> {
        let mut connection = self.read().await?;
        sqlx::query("SELECT * FROM results WHERE run_id = ?")
            .bind(run.as_str())
            .fetch_optional(&mut *connection)
            .await
            .map_err(fault)?
            .as_ref()
            .map(result)
            .transpose()
    }
}

async fn refuse_incomplete(write: &mut Write, run: &RunId) -> Result<(), Refusal> {
    let arms: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT a.arm, a.games, (SELECT count(*) FROM game_rows AS g WHERE g.run_id = a.run_id AND g.arm = a.arm)
         FROM run_arms AS a WHERE a.run_id = ? ORDER BY a.position",
    )
    .bind(run.as_str())
    .fetch_all(write.sql())
    .await
    .map_err(fault)?;
    let lacking: Vec<String> = arms
        .iter()
        .filter(|(_, planned, played)| planned != played)
        .map(|(arm, planned, played)| format!("{arm} {played} of {planned}"))
        .collect();
    if !arms.is_empty() && lacking.is_empty() {
        return Ok(());
    }
    let detail = if arms.is_empty() {
        format!("{run} plans no games, so there is nothing to judge")
    } else {
        format!("{run} is judged when every arm has every planned game: {}", lacking.join(", "))
    };
    Err(Refusal::new(Code::Incomplete, detail).hint(format!("Resume it: heldout resume {run}")))
}

pub(super) async fn record(write: &mut Write, result: &ResultRecord) -> Result<(), Refusal> {
    let id = result.id.as_str();
    sqlx::query(
        "INSERT INTO results (id, run_id, experiment_id, protocol_sha256, validity, outcome, tier, analysis,
             summary, limitations, machine_id, origin, recorded_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(id)
    .bind(result.run_id.as_str())
    .bind(result.experiment_id.as_str())
    .bind(&result.protocol_sha256)
    .bind(word(&result.validity)?)
    .bind(word(&result.outcome)?)
    .bind(&result.tier)
    .bind(text(&result.analysis)?)
    .bind(&result.summary)
    .bind(text(&result.limitations)?)
    .bind(result.machine_id.as_str())
    .bind(word(&result.origin)?)
    .bind(micros(result.recorded_at))
    .execute(write.sql())
    .await
    .map_err(fault)?;
    write.seal(&RESULTS, "id = ?", &[id], id).await?;
    let body = json!({
        "run_id": result.run_id, "validity": result.validity, "outcome": result.outcome, "tier": result.tier,
        "summary": result.summary,
    });
    write.event("result-recorded", id, Some(&result.run_id), body).await?;
    Ok(())
}

fn result(row: &SqliteRow) -> Result<ResultRecord, Refusal> {
    let row = Columns(row);
    Ok(ResultRecord {
        id: row.parsed("id")?,
        run_id: row.parsed("run_id")?,
        experiment_id: row.parsed("experiment_id")?,
        protocol_sha256: row.get("protocol_sha256")?,
        validity: row.word("validity")?,
        outcome: row.word("outcome")?,
        tier: row.get("tier")?,
        analysis: row.json("analysis")?,
        summary: row.get("summary")?,
        limitations: row.json("limitations")?,
        machine_id: row.parsed("machine_id")?,
        origin: row.word("origin")?,
        recorded_at: row.time("recorded_at")?,
    })
}
