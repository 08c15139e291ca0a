//! Seed leases: who may read which seeds. No two that are not cancelled share a seed.

use serde_json::json;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::columns::{Columns, word};
use super::events::Write;
use super::faults::{fault, not_found, unreadable};
use super::pool::{draw, refuse_overlap};
use super::seal::{LEASE_USES, LEASES};
use super::{Page, Store};
use crate::domain::ids::{ExperimentId, InstantId as _, LeaseId, RunId};
use crate::domain::protocol::Role;
use crate::domain::records::{Lease, LeaseState, Opening};
use crate::domain::refusal::{Code, Refusal};
use crate::domain::seed_range::{Seed, SeedRange};

/// The seeds of Drop7 games.
pub(super) const SPACE: &str = "drop7-headless-u32";
/// The stream that decides a game.
pub(super) const DOMAIN: &str = "environment";

/// Seeds asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// These.
    Range(SeedRange),
    /// As many, wherever the pool has them.
    Count(u32),
}

/// Which leases to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseFilter {
    /// Of this experiment, those it reads again included.
    pub experiment: Option<ExperimentId>,
    /// In this state.
    pub state: Option<LeaseState>,
    /// Of this role.
    pub role: Option<Role>,
}

/// Seeds that no protocol may lease.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct BlockedRange {
    /// Generator.
    pub space: String,
    /// Stream of it.
    pub domain: String,
    /// One word.
    pub name: String,
    /// Why.
    pub reason: String,
    /// First seed.
    #[schema(value_type = String)]
    pub start: Seed,
    /// How many.
    pub count: u32,
}

/// Every lease with its opening, if it has one.
macro_rules! select_leases {
    ($tail:literal) => {
        concat!(
            "SELECT l.id, l.experiment_id, l.name, l.space, l.domain, l.role, l.start,
                    l.end_exclusive - l.start AS count, l.state, l.reserved_at, l.cancelled_reason,
                    o.run_id, o.protocol_sha256, o.tables, o.opened_at
             FROM leases AS l LEFT JOIN lease_openings AS o ON o.lease_id = l.id ",
            $tail
        )
    };
}

pub(super) use select_leases;

impl Store {
    /// Reserves seeds for a block of an experiment.
    ///
    /// # Errors
    /// [`Code::LeaseOverlap`] naming the lease, its range and its experiment, [`Code::AlreadyOpened`]
    /// naming run and time, [`Code::PoolExhausted`], [`Code::WrongState`] when the block has its lease
    /// or the experiment is withdrawn.
    pub async fn reserve(
        &self,
        experiment: &ExperimentId,
        name: &str,
        role: Role,
        ask: Ask,
    ) -> Result<Lease, Refusal> {
        let mut write = self.write().await?;
        let before = super::experiments::by_id(write.sql(), experiment).await?;
        if let Some(at) = before.withdrawn_at {
            return Err(Refusal::new(
                Code::WrongState,
                format!("{experiment} was withdrawn at {at}"),
            ));
        }
        let lease = reserve(&mut write, experiment, name, role, ask).await?;
        write.commit().await?;
        Ok(lease)
    }

    /// A lease.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn lease(&self, id: &LeaseId) -> Result<Lease, Refusal> {
        let mut connection = self.read().await?;
        by_id(&mut connection, id).await
    }

    /// Leases in the order of their seeds.
    ///
    /// # Errors
    /// `invalid-request` when the page follows a record that does not exist.
    pub async fn leases(&self, filter: &LeaseFilter, page: &Page) -> Result<Vec<Lease>, Refusal> {
        let mut connection = self.read().await?;
        let rows = sqlx::query(select_leases!(
            "WHERE (?1 IS NULL OR l.id IN (SELECT lease_id FROM lease_uses WHERE experiment_id = ?1))
               AND (?2 IS NULL OR l.state = ?2) AND (?3 IS NULL OR l.role = ?3)
               AND (?4 IS NULL OR (l.space, l.domain, l.start, l.id)
                    > (SELECT space, domain, start, id FROM leases WHERE id = ?4))
             ORDER BY l.space, l.domain, l.start, l.id LIMIT ?5"
        ))
        .bind(filter.experiment.as_ref().map(ExperimentId::as_str))
        .bind(filter.state.map(|state| word(&state)).transpose()?)
        .bind(filter.role.map(|role| word(&role)).transpose()?)
        .bind(page.after.as_deref())
        .bind(page.rows())
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?;
        drop(connection);
        let known = "SELECT EXISTS (SELECT 1 FROM leases WHERE id = ?)";
        self.refuse_unknown_cursor(page, rows.is_empty(), known).await?;
        rows.iter().map(lease).collect()
    }

    /// The leases of an experiment's blocks, by name of the block. One that is read again keeps the id
    /// and the experiment of its owner; its name is the block's name here.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn leases_of(&self, experiment: &ExperimentId) -> Result<Vec<Lease>, Refusal> {
        let mut connection = self.read().await?;
        of_experiment(&mut connection, experiment).await
    }

    /// Seeds that no protocol may lease, in their order.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn blocked_ranges(&self) -> Result<Vec<BlockedRange>, Refusal> {
        let mut connection = self.read().await?;
        sqlx::query("SELECT *, end_exclusive - start AS count FROM blocked_ranges ORDER BY space, domain, start")
            .fetch_all(&mut *connection)
            .await
            .map_err(fault)?
            .iter()
            .map(blocked)
            .collect()
    }

    /// Gives a lease back that nothing has read.
    ///
    /// # Errors
    /// [`Code::WrongState`] when it was opened, is cancelled already, is read by another experiment
    /// too, or a run of its experiment is active.
    pub async fn cancel_lease(&self, id: &LeaseId, reason: &str) -> Result<Lease, Refusal> {
        if reason.trim().is_empty() {
            return Err(Refusal::new(Code::InvalidRequest, "a cancellation says why")
                .at("/reason", "must not be empty"));
        }
        let mut write = self.write().await?;
        let before = by_id(write.sql(), id).await?;
        match (before.state, &before.opening) {
            (LeaseState::Cancelled, _) => {
                return Err(Refusal::new(Code::WrongState, format!("{id} is cancelled already")));
            }
            (LeaseState::Opened, Some(opening)) => {
                return Err(Refusal::new(
                    Code::WrongState,
                    format!("{id} was opened by {} at {}", opening.run_id, opening.opened_at),
                )
                .hint("What was read stays read; it can never be given back."));
            }
            (LeaseState::Opened, None) => {
                return Err(Refusal::new(Code::WrongState, format!("{id} has been read"))
                    .hint("What was read stays read; it can never be given back."));
            }
            (LeaseState::Reserved, _) => {}
        }
        let users = users(write.sql(), id).await?;
        if let Some(other) = users.iter().find(|user| **user != before.experiment_id) {
            return Err(Refusal::new(Code::WrongState, format!("{other} reads {id} too")));
        }
        if let Some(run) = active_run(write.sql(), &before.experiment_id).await? {
            return Err(Refusal::new(Code::WrongState, format!("{run} needs {id} and is active"))
                .hint(format!("Stop it first: heldout stop {run}")));
        }
        cancel(&mut write, id, reason).await?;
        let after = by_id(write.sql(), id).await?;
        write.commit().await?;
        Ok(after)
    }
}

/// Reserves in this transaction and tells of it.
pub(super) async fn reserve(
    write: &mut Write,
    experiment: &ExperimentId,
    name: &str,
    role: Role,
    ask: Ask,
) -> Result<Lease, Refusal> {
    let taken: Option<String> =
        sqlx::query_scalar("SELECT lease_id FROM lease_uses WHERE experiment_id = ? AND block = ?")
            .bind(experiment.as_str())
            .bind(name)
            .fetch_optional(write.sql())
            .await
            .map_err(fault)?;
    if let Some(lease) = taken {
        return Err(Refusal::new(Code::WrongState, format!("block {name} of {experiment} has lease {lease}"))
            .hint("A block has one lease for ever; another block needs another name or an amended protocol."));
    }
    let range = match ask {
        Ask::Range(range) => {
            refuse_overlap(write.sql(), name, range).await?;
            range
        }
        Ask::Count(count) => draw(write.sql(), name, count).await?,
    };
    let id =
        LeaseId::mint(write.now, rand::random()).map_err(|error| unreadable("clock", &error))?;
    record(write, &id, experiment, name, role, range).await?;
    by_id(write.sql(), &id).await
}

/// Writes a reserved lease and its use.
pub(super) async fn record(
    write: &mut Write,
    id: &LeaseId,
    experiment: &ExperimentId,
    name: &str,
    role: Role,
    range: SeedRange,
) -> Result<(), Refusal> {
    let at = write.at();
    sqlx::query(
        "INSERT INTO leases (id, experiment_id, name, space, domain, role, start, end_exclusive, state, reserved_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'reserved', ?)",
    )
    .bind(id.as_str())
    .bind(experiment.as_str())
    .bind(name)
    .bind(SPACE)
    .bind(DOMAIN)
    .bind(word(&role)?)
    .bind(i64::from(range.start().0))
    .bind(range.end().cast_signed())
    .bind(at)
    .execute(write.sql())
    .await
    .map_err(fault)?;
    let body = json!({
        "experiment_id": experiment,
        "name": name,
        "role": role,
        "start": range.start(),
        "count": range.count(),
    });
    record_use(write, experiment, name, id).await?;
    write.seal(&LEASES, "id = ?", &[id.as_str()], id.as_str()).await?;
    write.event("lease-reserved", id.as_str(), None, body).await?;
    Ok(())
}

async fn record_use(
    write: &mut Write,
    experiment: &ExperimentId,
    block: &str,
    lease: &LeaseId,
) -> Result<(), Refusal> {
    sqlx::query("INSERT INTO lease_uses (experiment_id, block, lease_id) VALUES (?, ?, ?)")
        .bind(experiment.as_str())
        .bind(block)
        .bind(lease.as_str())
        .execute(write.sql())
        .await
        .map_err(fault)?;
    let key = format!("{experiment}/{block}");
    write
        .seal(&LEASE_USES, "experiment_id = ? AND block = ?", &[experiment.as_str(), block], &key)
        .await
}

/// Lets an experiment read a lease of a predecessor again.
pub(super) async fn reuse(
    write: &mut Write,
    experiment: &ExperimentId,
    block: &str,
    lease: &LeaseId,
) -> Result<(), Refusal> {
    record_use(write, experiment, block, lease).await?;
    let body = json!({ "experiment_id": experiment, "name": block });
    write.event("lease-reused", lease.as_str(), None, body).await?;
    Ok(())
}

/// The training or validation lease of exactly this range that a predecessor, at any distance, reads.
pub(super) async fn held_by_predecessors(
    connection: &mut SqliteConnection,
    experiment: &ExperimentId,
    role: Role,
    range: SeedRange,
) -> Result<Option<LeaseId>, Refusal> {
    let row = sqlx::query(
        "WITH RECURSIVE ancestors (id) AS (
             SELECT predecessor_id FROM experiments WHERE id = ?1
             UNION
             SELECT e.predecessor_id FROM experiments AS e JOIN ancestors AS a ON e.id = a.id
         )
         SELECT l.id FROM leases AS l JOIN lease_uses AS u ON u.lease_id = l.id
         WHERE u.experiment_id IN (SELECT id FROM ancestors WHERE id IS NOT NULL)
           AND l.role = ?2 AND l.role <> 'held-out' AND l.state <> 'cancelled'
           AND l.space = ?3 AND l.domain = ?4 AND l.start = ?5 AND l.end_exclusive = ?6
         LIMIT 1",
    )
    .bind(experiment.as_str())
    .bind(word(&role)?)
    .bind(SPACE)
    .bind(DOMAIN)
    .bind(i64::from(range.start().0))
    .bind(range.end().cast_signed())
    .fetch_optional(connection)
    .await
    .map_err(fault)?;
    row.map(|row| Columns(&row).parsed("id")).transpose()
}

pub(super) async fn cancel(write: &mut Write, id: &LeaseId, reason: &str) -> Result<(), Refusal> {
    let at = write.at();
    sqlx::query("UPDATE leases SET state = 'cancelled', cancelled_at = ?, cancelled_reason = ? WHERE id = ?")
        .bind(at)
        .bind(reason)
        .bind(id.as_str())
        .execute(write.sql())
        .await
        .map_err(fault)?;
    write.seal(&LEASES, "id = ?", &[id.as_str()], id.as_str()).await?;
    write.event("lease-cancelled", id.as_str(), None, json!({ "reason": reason })).await?;
    Ok(())
}

pub(super) async fn by_id(
    connection: &mut SqliteConnection,
    id: &LeaseId,
) -> Result<Lease, Refusal> {
    let row = sqlx::query(select_leases!("WHERE l.id = ?"))
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
        .map_err(fault)?;
    lease(&row.ok_or_else(|| not_found("lease", id))?)
}

pub(super) async fn of_experiment(
    connection: &mut SqliteConnection,
    experiment: &ExperimentId,
) -> Result<Vec<Lease>, Refusal> {
    let rows = sqlx::query(
        "SELECT l.id, l.experiment_id, u.block AS name, l.space, l.domain, l.role, l.start,
                l.end_exclusive - l.start AS count, l.state, l.reserved_at, l.cancelled_reason,
                o.run_id, o.protocol_sha256, o.tables, o.opened_at
         FROM lease_uses AS u JOIN leases AS l ON l.id = u.lease_id
         LEFT JOIN lease_openings AS o ON o.lease_id = l.id
         WHERE u.experiment_id = ? ORDER BY u.block",
    )
    .bind(experiment.as_str())
    .fetch_all(connection)
    .await
    .map_err(fault)?;
    rows.iter().map(lease).collect()
}

/// The experiments that read a lease.
pub(super) async fn users(
    connection: &mut SqliteConnection,
    id: &LeaseId,
) -> Result<Vec<ExperimentId>, Refusal> {
    let rows =
        sqlx::query("SELECT DISTINCT experiment_id FROM lease_uses WHERE lease_id = ? ORDER BY 1")
            .bind(id.as_str())
            .fetch_all(connection)
            .await
            .map_err(fault)?;
    rows.iter().map(|row| Columns(row).parsed("experiment_id")).collect()
}

/// A queued or running run of an experiment.
pub(super) async fn active_run(
    connection: &mut SqliteConnection,
    experiment: &ExperimentId,
) -> Result<Option<RunId>, Refusal> {
    let row = sqlx::query(
        "SELECT id FROM runs WHERE experiment_id = ? AND state IN ('queued', 'running') LIMIT 1",
    )
    .bind(experiment.as_str())
    .fetch_optional(connection)
    .await
    .map_err(fault)?;
    row.map(|row| Columns(&row).parsed("id")).transpose()
}

pub(super) fn lease(row: &SqliteRow) -> Result<Lease, Refusal> {
    let row = Columns(row);
    let opening = match row.parsed_option::<RunId>("run_id")? {
        None => None,
        Some(run_id) => Some(Opening {
            run_id,
            protocol_sha256: row.get("protocol_sha256")?,
            tables: row.json("tables")?,
            opened_at: row.time("opened_at")?,
        }),
    };
    Ok(Lease {
        id: row.parsed("id")?,
        experiment_id: row.parsed("experiment_id")?,
        name: row.get("name")?,
        space: row.get("space")?,
        domain: row.get("domain")?,
        role: row.word("role")?,
        start: row.seed("start")?,
        count: row.number("count")?,
        state: row.word("state")?,
        reserved_at: row.time("reserved_at")?,
        opening,
    })
}

pub(super) fn blocked(row: &SqliteRow) -> Result<BlockedRange, Refusal> {
    let row = Columns(row);
    Ok(BlockedRange {
        space: row.get("space")?,
        domain: row.get("domain")?,
        name: row.get("name")?,
        reason: row.get("reason")?,
        start: row.seed("start")?,
        count: row.number("count")?,
    })
}
