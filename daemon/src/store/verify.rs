//! Whether the records are those that this program wrote.
//!
//! The chain of events is recomputed; the last seal of every row is compared with the row as it is; the
//! guards of the schema are compared with those of this build; and what the guards promise is looked
//! at again, in case they were taken away for a while. An editor who recomputes the whole chain can
//! only be found with a hash noted elsewhere: every event is served with its own.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sqlx::sqlite::SqliteConnection;
use tokio::sync::OnceCell;
use utoipa::ToSchema;

use super::events::walk_chain;
use super::faults::{fault, unreadable};
use super::seal::{ALL, Seal, Sealed, digests};
use super::{Store, fresh_schema};
use crate::domain::ids::RunId;
use crate::domain::refusal::Refusal;

/// One check of stored rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RowCheck {
    /// Stable name, like `rows-game_rows`.
    pub name: String,
    /// Whether it holds.
    pub passed: bool,
    /// What was counted, or what is wrong, with the first few keys.
    pub evidence: String,
}

impl RowCheck {
    /// Passed when nothing is `wrong`.
    fn new(name: impl Into<String>, wrong: &[String], counted: String) -> Self {
        let passed = wrong.is_empty();
        let evidence = if passed {
            counted
        } else {
            let shown = wrong.iter().take(5).map(String::as_str).collect::<Vec<_>>().join("; ");
            match wrong.len().saturating_sub(5) {
                0 => shown,
                more => format!("{shown}; and {more} more"),
            }
        };
        Self { name: name.into(), passed, evidence }
    }
}

/// The last seal of a key, and whether it stands in an event of the run that is looked at.
type Seals = BTreeMap<(String, String), (Seal, bool)>;

impl Store {
    /// Checks everything a run rests on: the history, the schema, its own rows, and all experiments
    /// and leases.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::domain::refusal::Code::NotFound) for an unknown run; what does not
    /// hold is no error but a check that has not passed.
    pub async fn verify_rows(&self, run: &RunId) -> Result<Vec<RowCheck>, Refusal> {
        self.run(run).await?;
        self.verify_scope(Some(run)).await
    }

    /// Checks every row of every table.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn verify_everything(&self) -> Result<Vec<RowCheck>, Refusal> {
        self.verify_scope(None).await
    }

    async fn verify_scope(&self, run: Option<&RunId>) -> Result<Vec<RowCheck>, Refusal> {
        let mut seals = Seals::new();
        let mut connection = self.snapshot().await?;
        let chain = walk_chain(&mut connection, &mut |event| {
            let Some(found) = event.body.get("seals") else { return Ok(()) };
            let found: Vec<Seal> = serde_json::from_value(found.clone())
                .map_err(|error| unreadable("seal", &error))?;
            let ours = run.is_none_or(|run| event.run_id.as_ref() == Some(run));
            for seal in found {
                if ours || !per_run(&seal.table) {
                    seals.insert((seal.table.clone(), seal.key.clone()), (seal, ours));
                }
            }
            Ok(())
        })
        .await;
        let mut checks = vec![match &chain {
            Ok(events) => RowCheck::new("event-chain", &[], format!("{events} events")),
            Err(refusal) => {
                RowCheck::new("event-chain", std::slice::from_ref(&refusal.detail), String::new())
            }
        }];
        checks.extend(guards(&mut connection).await?);
        checks.push(integrity(&mut connection).await?);
        checks.push(protocols(&mut connection).await?);
        checks.push(disjoint(&mut connection).await?);
        checks.push(games(&mut connection, run).await?);
        for sealed in ALL {
            checks.push(rows(&mut connection, sealed, run, &seals).await?);
        }
        Ok(checks)
    }
}

/// Tables, indexes and triggers are word for word those of this build, and so are the blocked ranges.
async fn guards(connection: &mut SqliteConnection) -> Result<[RowCheck; 2], Refusal> {
    static FRESH: OnceCell<(BTreeMap<String, String>, BTreeSet<String>)> = OnceCell::const_new();
    let (expected, expected_ranges) = FRESH
        .get_or_try_init(async || {
            let mut fresh = fresh_schema().await?;
            Ok::<_, Refusal>((schema(&mut fresh).await?, blocked(&mut fresh).await?))
        })
        .await?;
    let here = schema(connection).await?;
    let mut wrong = Vec::new();
    for (name, sql) in expected {
        match here.get(name) {
            None => wrong.push(format!("{name} is gone")),
            Some(other) if other != sql => wrong.push(format!("{name} was changed")),
            Some(_) => {}
        }
    }
    wrong.extend(
        here.keys()
            .filter(|name| !expected.contains_key(*name))
            .map(|name| format!("{name} was added")),
    );
    let schema = RowCheck::new(
        "schema-guards",
        &wrong,
        format!("{} tables, indexes and triggers", expected.len()),
    );
    let ranges = blocked(connection).await?;
    let wrong: Vec<String> =
        expected_ranges.difference(&ranges).map(|range| format!("{range} is gone")).collect();
    Ok([schema, RowCheck::new("blocked-ranges", &wrong, format!("{} ranges", ranges.len()))])
}

/// Tables that grow with every run; their seals are kept for one run only.
fn per_run(table: &str) -> bool {
    matches!(table, "units" | "attempts" | "chunks" | "points" | "game_rows" | "artifact_uses")
}

async fn rows(
    connection: &mut SqliteConnection,
    sealed: &Sealed,
    run: Option<&RunId>,
    seals: &Seals,
) -> Result<RowCheck, Refusal> {
    let here = digests(connection, sealed, run.map(RunId::as_str)).await?;
    let whole = run.is_none() || sealed.of_run.is_none();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (key, (rows, sha256)) in &here {
        count += rows;
        match seals.get(&(String::from(sealed.table), key.clone())) {
            None => wrong.push(format!("{key} was never told of")),
            Some((seal, _)) if seal.rows != *rows => {
                wrong.push(format!("{key} has {rows} rows, {} were told of", seal.rows));
            }
            Some((seal, _)) if seal.sha256 != *sha256 => wrong.push(format!("{key} was changed")),
            Some(_) => {}
        }
    }
    for ((table, key), (seal, ours)) in seals {
        if table == sealed.table && (whole || *ours) && seal.rows > 0 && !here.contains_key(key) {
            wrong.push(format!("{key} is gone"));
        }
    }
    Ok(RowCheck::new(format!("rows-{}", sealed.table), &wrong, format!("{count} rows")))
}

async fn schema(connection: &mut SqliteConnection) -> Result<BTreeMap<String, String>, Refusal> {
    let rows: Vec<(String, String, Option<String>)> = sqlx::query_as(
        "SELECT type, name, sql FROM sqlite_schema
         WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> '_sqlx_migrations'",
    )
    .fetch_all(connection)
    .await
    .map_err(fault)?;
    Ok(rows
        .into_iter()
        .map(|(kind, name, sql)| (format!("{kind} {name}"), sql.unwrap_or_default()))
        .collect())
}

async fn blocked(connection: &mut SqliteConnection) -> Result<BTreeSet<String>, Refusal> {
    let all: Vec<String> = sqlx::query_scalar(
        "SELECT name || ' of ' || space || '/' || domain || format(' [0x%08x, 0x%08x): ', start, end_exclusive) || reason
         FROM blocked_ranges",
    )
    .fetch_all(connection)
    .await
    .map_err(fault)?;
    Ok(all.into_iter().collect())
}

async fn integrity(connection: &mut SqliteConnection) -> Result<RowCheck, Refusal> {
    let pages: Vec<String> = sqlx::query_scalar("PRAGMA quick_check(5)")
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?;
    let mut wrong: Vec<String> = pages.into_iter().filter(|line| line != "ok").collect();
    let dangling: Vec<(String,)> = sqlx::query_as("SELECT \"table\" FROM pragma_foreign_key_check")
        .fetch_all(connection)
        .await
        .map_err(fault)?;
    wrong.extend(
        dangling
            .into_iter()
            .map(|(table,)| format!("a row of {table} names a record that is gone")),
    );
    Ok(RowCheck::new("database-integrity", &wrong, String::from("pages and references")))
}

/// The frozen bytes have their digest, and runs, openings and results carry it.
async fn protocols(connection: &mut SqliteConnection) -> Result<RowCheck, Refusal> {
    let frozen: Vec<(String, Vec<u8>, String)> =
        sqlx::query_as("SELECT id, protocol, protocol_sha256 FROM experiments ORDER BY id")
            .fetch_all(&mut *connection)
            .await
            .map_err(fault)?;
    let mut wrong: Vec<String> = frozen
        .iter()
        .filter(|(_, bytes, sha256)| hex::encode(Sha256::digest(bytes)) != *sha256)
        .map(|(id, _, _)| format!("the protocol of {id} does not have its digest"))
        .collect();
    let strays: Vec<(String,)> = sqlx::query_as(
        "SELECT r.id FROM runs AS r JOIN experiments AS e ON e.id = r.experiment_id
         WHERE e.protocol_sha256 <> r.protocol_sha256
         UNION ALL
         SELECT o.lease_id FROM lease_openings AS o JOIN runs AS r ON r.id = o.run_id
         WHERE o.protocol_sha256 <> r.protocol_sha256
         UNION ALL
         SELECT s.id FROM results AS s JOIN runs AS r ON r.id = s.run_id
         WHERE s.protocol_sha256 <> r.protocol_sha256 OR s.experiment_id <> r.experiment_id",
    )
    .fetch_all(connection)
    .await
    .map_err(fault)?;
    wrong.extend(strays.into_iter().map(|(id,)| format!("{id} carries another digest")));
    Ok(RowCheck::new("frozen-protocols", &wrong, format!("{} protocols", frozen.len())))
}

async fn disjoint(connection: &mut SqliteConnection) -> Result<RowCheck, Refusal> {
    let pairs: Vec<(String, String)> = sqlx::query_as(
        "WITH held AS (
             SELECT id, space, domain, start, end_exclusive FROM leases WHERE state <> 'cancelled'
             UNION ALL
             SELECT name, space, domain, start, end_exclusive FROM blocked_ranges)
         SELECT a.id, b.id FROM held AS a JOIN held AS b
           ON a.space = b.space AND a.domain = b.domain AND a.id < b.id
          AND a.start < b.end_exclusive AND b.start < a.end_exclusive",
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(fault)?;
    let leases: i64 = sqlx::query_scalar("SELECT count(*) FROM leases WHERE state <> 'cancelled'")
        .fetch_one(&mut *connection)
        .await
        .map_err(fault)?;
    let unopened: Vec<(String,)> = sqlx::query_as(
        "SELECT l.id FROM leases AS l LEFT JOIN lease_openings AS o ON o.lease_id = l.id
         WHERE l.role = 'held-out' AND (l.state = 'opened') <> (o.lease_id IS NOT NULL)",
    )
    .fetch_all(connection)
    .await
    .map_err(fault)?;
    let mut wrong: Vec<String> =
        pairs.iter().map(|(a, b)| format!("{a} and {b} share seeds")).collect();
    wrong.extend(unopened.iter().map(|(id,)| format!("{id} and its opening do not agree")));
    Ok(RowCheck::new("leases-disjoint", &wrong, format!("{leases} leases that are not cancelled")))
}

/// Every game is the planned one, and a valid result has all of them.
async fn games(
    connection: &mut SqliteConnection,
    run: Option<&RunId>,
) -> Result<RowCheck, Refusal> {
    let strays: Vec<(String, String, i64)> = sqlx::query_as(
        "SELECT g.run_id, g.arm, g.ordinal FROM game_rows AS g
         LEFT JOIN run_arms AS a ON a.run_id = g.run_id AND a.arm = g.arm AND a.lease_id = g.lease_id
         LEFT JOIN leases AS l ON l.id = g.lease_id
         LEFT JOIN lease_openings AS o ON o.lease_id = g.lease_id AND o.run_id = g.run_id
         WHERE (?1 IS NULL OR g.run_id = ?1)
           AND (a.arm IS NULL OR g.ordinal >= a.games OR g.seed <> l.start + g.ordinal OR o.lease_id IS NULL)",
    )
    .bind(run.map(RunId::as_str))
    .fetch_all(&mut *connection)
    .await
    .map_err(fault)?;
    let lacking: Vec<(String, String)> = sqlx::query_as(
        "SELECT a.run_id, a.arm FROM results AS s JOIN run_arms AS a ON a.run_id = s.run_id
         WHERE s.validity = 'valid' AND (?1 IS NULL OR s.run_id = ?1)
           AND a.games <> (SELECT count(*) FROM game_rows AS g WHERE g.run_id = a.run_id AND g.arm = a.arm)",
    )
    .bind(run.map(RunId::as_str))
    .fetch_all(&mut *connection)
    .await
    .map_err(fault)?;
    let count: i64 =
        sqlx::query_scalar("SELECT count(*) FROM game_rows WHERE ?1 IS NULL OR run_id = ?1")
            .bind(run.map(RunId::as_str))
            .fetch_one(connection)
            .await
            .map_err(fault)?;
    let mut wrong: Vec<String> = strays
        .iter()
        .map(|(run, arm, ordinal)| format!("{run}/{arm}/{ordinal} is not the planned game"))
        .collect();
    wrong.extend(
        lacking.iter().map(|(run, arm)| format!("{run}/{arm} lacks games under a valid result")),
    );
    Ok(RowCheck::new("games-as-planned", &wrong, format!("{count} games")))
}
