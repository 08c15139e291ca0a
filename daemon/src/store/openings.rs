//! Opening a held-out lease, once, and keeping count of what was read of the others.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::Store;
use super::columns::{Columns, json, whole};
use super::faults::{fault, unreadable};
use super::leases::by_id;
use super::seal::{LEASE_OPENINGS, LEASES};
use crate::domain::ids::{LeaseId, RunId};
use crate::domain::protocol::Role;
use crate::domain::records::{LeaseState, Opening, RunState, TableDigest};
use crate::domain::refusal::{Code, Refusal};

/// How far a unit of a run has read a training or validation lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Reading {
    /// The run.
    #[schema(value_type = String)]
    pub run_id: RunId,
    /// Key of the unit.
    pub unit: String,
    /// Seeds read since the last wrap.
    pub cursor: u64,
    /// How often the end of the block was passed.
    pub wraps: u64,
    /// When this was told last.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl Store {
    /// Opens a held-out lease for a run: the row is on disk when this returns, and no seed of the lease
    /// may be derived before. The same run, digest and tables again give the same opening, so that an
    /// interrupted run can go on.
    ///
    /// # Errors
    /// [`Code::AlreadyOpened`] with who and when; [`Code::MissingTable`] with every table that is not
    /// stored; [`Code::WrongState`] when the lease is cancelled or of another role, the run is not
    /// running, of another experiment or under another digest, or an earlier stage is unfinished.
    pub async fn open_lease(
        &self,
        lease: &LeaseId,
        run: &RunId,
        protocol_sha256: &str,
        tables: &[TableDigest],
    ) -> Result<Opening, Refusal> {
        let mut write = self.write().await?;
        let before = by_id(write.sql(), lease).await?;
        if let Some(opening) = before.opening {
            if opening.run_id == *run
                && opening.protocol_sha256 == protocol_sha256
                && opening.tables == tables
            {
                write.abandon().await?;
                return Ok(opening);
            }
            let what =
                if opening.run_id == *run { "with other tables or another protocol " } else { "" };
            return Err(Refusal::new(
                Code::AlreadyOpened,
                format!("{lease} was opened {what}by {} at {}", opening.run_id, opening.opened_at),
            )
            .hint(format!(
                "Its games are known now. Resume {} if it is unfinished, or repeat the experiment: a new held-out block is drawn.",
                opening.run_id
            )));
        }
        if before.role != Role::HeldOut {
            return Err(Refusal::new(Code::WrongState, format!("{lease} is not a held-out lease"))
                .hint("Training and validation leases are read, not opened."));
        }
        if before.state == LeaseState::Cancelled {
            return Err(Refusal::new(Code::WrongState, format!("{lease} was cancelled"))
                .hint("Repeat the experiment: a new held-out block is drawn."));
        }
        let reader = super::runs::by_id(write.sql(), run).await?;
        if reader.experiment_id != before.experiment_id {
            return Err(Refusal::new(
                Code::WrongState,
                format!(
                    "{lease} belongs to {}, {run} to {}",
                    before.experiment_id, reader.experiment_id
                ),
            ));
        }
        if reader.protocol_sha256 != protocol_sha256 {
            return Err(Refusal::new(
                Code::WrongState,
                format!(
                    "{run} runs under protocol {}, not {protocol_sha256}",
                    reader.protocol_sha256
                ),
            ));
        }
        if reader.state != RunState::Running {
            return Err(Refusal::new(Code::WrongState, format!("{run} is not running"))
                .hint(format!("Resume it first: heldout resume {run}")));
        }
        let unfinished: Option<String> = sqlx::query_scalar(
            "SELECT key FROM units WHERE run_id = ? AND stage NOT IN ('screen', 'analyse')
               AND state NOT IN ('succeeded', 'skipped') ORDER BY position LIMIT 1",
        )
        .bind(run.as_str())
        .fetch_optional(write.sql())
        .await
        .map_err(fault)?;
        if let Some(key) = unfinished {
            return Err(Refusal::new(
                Code::WrongState,
                format!("unit {key} of {run} has not succeeded; {lease} stays closed until it has"),
            ));
        }
        refuse_missing_tables(write.sql(), lease, tables).await?;
        let opened_at = write.now;
        record(&mut write, lease, run, protocol_sha256, tables, opened_at).await?;
        write.commit().await?;
        Ok(Opening {
            run_id: run.clone(),
            protocol_sha256: String::from(protocol_sha256),
            tables: tables.to_vec(),
            opened_at,
        })
    }

    /// Tells how far a unit has read a training or validation lease; the first time opens it. What was
    /// read stays read: a report behind an earlier one changes nothing.
    ///
    /// # Errors
    /// [`Code::WrongState`] for a held-out or cancelled lease or one of another experiment.
    pub async fn record_reading(
        &self,
        lease: &LeaseId,
        run: &RunId,
        unit: &str,
        cursor: u64,
        wraps: u64,
    ) -> Result<(), Refusal> {
        let (cursor_sql, wraps_sql) = (whole("cursor", cursor)?, whole("wraps", wraps)?);
        let mut write = self.write().await?;
        let at = write.at();
        let known: Option<(i64, i64)> = sqlx::query_as(
            "SELECT wraps, cursor FROM lease_readings WHERE lease_id = ? AND run_id = ? AND unit = ?",
        )
        .bind(lease.as_str())
        .bind(run.as_str())
        .bind(unit)
        .fetch_optional(write.sql())
        .await
        .map_err(fault)?;
        if let Some(known) = known {
            if (wraps_sql, cursor_sql) <= known {
                return write.abandon().await;
            }
            sqlx::query(
                "UPDATE lease_readings SET cursor = ?, wraps = ?, updated_at = ?
                 WHERE lease_id = ? AND run_id = ? AND unit = ?",
            )
            .bind(cursor_sql)
            .bind(wraps_sql)
            .bind(at)
            .bind(lease.as_str())
            .bind(run.as_str())
            .bind(unit)
            .execute(write.sql())
            .await
            .map_err(fault)?;
            return write.commit().await;
        }
        let held = by_id(write.sql(), lease).await?;
        if held.role == Role::HeldOut {
            return Err(Refusal::new(
                Code::WrongState,
                format!("{lease} is held out: it is opened, not read"),
            ));
        }
        sqlx::query(
            "INSERT INTO lease_readings (lease_id, run_id, unit, cursor, wraps, updated_at)
             VALUES (?, ?, ?, ?, ?, ?)",
        )
        .bind(lease.as_str())
        .bind(run.as_str())
        .bind(unit)
        .bind(cursor_sql)
        .bind(wraps_sql)
        .bind(at)
        .execute(write.sql())
        .await
        .map_err(fault)?;
        write.seal(&LEASES, "id = ?", &[lease.as_str()], lease.as_str()).await?;
        write.event("lease-read", lease.as_str(), Some(run), json!({ "unit": unit })).await?;
        write.commit().await
    }

    /// Who has read a lease, and how far.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn readings(&self, lease: &LeaseId) -> Result<Vec<Reading>, Refusal> {
        let mut connection = self.read().await?;
        let rows =
            sqlx::query("SELECT * FROM lease_readings WHERE lease_id = ? ORDER BY run_id, unit")
                .bind(lease.as_str())
                .fetch_all(&mut *connection)
                .await
                .map_err(fault)?;
        rows.iter()
            .map(|row| {
                let row = Columns(row);
                Ok(Reading {
                    run_id: row.parsed("run_id")?,
                    unit: row.get("unit")?,
                    cursor: row.number("cursor")?,
                    wraps: row.number("wraps")?,
                    updated_at: row.time("updated_at")?,
                })
            })
            .collect()
    }
}

/// Writes the opening; the schema moves the lease to `opened` in the same step.
pub(super) async fn record(
    write: &mut super::events::Write,
    lease: &LeaseId,
    run: &RunId,
    protocol_sha256: &str,
    tables: &[TableDigest],
    opened_at: Timestamp,
) -> Result<(), Refusal> {
    sqlx::query(
        "INSERT INTO lease_openings (lease_id, run_id, protocol_sha256, tables, opened_at)
         VALUES (?, ?, ?, ?, ?)",
    )
    .bind(lease.as_str())
    .bind(run.as_str())
    .bind(protocol_sha256)
    .bind(json(&tables)?)
    .bind(super::columns::micros(opened_at))
    .execute(write.sql())
    .await
    .map_err(fault)?;
    write.seal(&LEASE_OPENINGS, "lease_id = ?", &[lease.as_str()], lease.as_str()).await?;
    write.seal(&LEASES, "id = ?", &[lease.as_str()], lease.as_str()).await?;
    let tables = serde_json::to_value(tables).map_err(|error| unreadable("tables", &error))?;
    let body = json!({ "protocol_sha256": protocol_sha256, "tables": tables });
    write.event("lease-opened", lease.as_str(), Some(run), body).await?;
    Ok(())
}

async fn refuse_missing_tables(
    connection: &mut sqlx::sqlite::SqliteConnection,
    lease: &LeaseId,
    tables: &[TableDigest],
) -> Result<(), Refusal> {
    let mut missing = Vec::new();
    for table in tables {
        let stored: bool =
            sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM artifacts WHERE sha256 = ?)")
                .bind(&table.sha256)
                .fetch_one(&mut *connection)
                .await
                .map_err(fault)?;
        if !stored {
            missing.push(format!("{} {}", table.name, table.sha256));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(
        Code::MissingTable,
        format!("{lease} stays closed: these tables are not stored here: {}", missing.join(", ")),
    ))
}
