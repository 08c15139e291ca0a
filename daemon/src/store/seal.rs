//! Seals: digests of rows, written into the event that tells of them.
//!
//! A seal names a table and a key and holds the SHA-256 of every column of the rows with that key, in
//! key order, with their SQLite types. The last seal of a key must be that of the row as it is; a row
//! without a seal, or a seal without its row, was not written by this program.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Row as _, TypeInfo as _, ValueRef as _};

use super::faults::{fault, unreadable};
use crate::domain::refusal::Refusal;

/// A sealed table: how its rows are keyed, which columns count, and the order within a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sealed {
    pub(super) table: &'static str,
    key: &'static str,
    columns: &'static str,
    order: &'static str,
    /// The rows a run rests on, `?1` being its id; without it, all rows.
    pub(super) of_run: Option<&'static str>,
}

macro_rules! sealed {
    ($($name:ident $table:literal by $key:literal order $order:literal columns $columns:literal of $of:expr;)*) => {
        $(pub(super) const $name: Sealed =
            Sealed { table: $table, key: $key, columns: $columns, order: $order, of_run: $of };)*
        /// Every sealed table.
        pub(super) const ALL: &[&Sealed] = &[$(&$name),*];
    };
}

sealed! {
    THEORIES "theories" by "id" order "id"
        columns "id, title, claim, mechanism, falsification_criteria, origin, created_at"
        of Some("id IN (SELECT e.theory_id FROM experiments AS e JOIN runs AS r ON r.experiment_id = e.id WHERE r.id = ?1)");
    EXPERIMENTS "experiments" by "id" order "id"
        columns "id, theory_id, title, kind, tier, protocol, protocol_sha256, predecessor_id, predecessor_reason, predecessor_was_open, is_repeat, engine, origin, frozen_at, withdrawn_at, withdrawn_reason"
        of None;
    EXPERIMENT_ARMS "experiment_arms" by "experiment_id" order "arm"
        columns "experiment_id, arm, position, games, block"
        of None;
    LEASES "leases" by "id" order "id"
        columns "id, experiment_id, name, space, domain, role, start, end_exclusive, state, reserved_at, cancelled_at, cancelled_reason"
        of None;
    LEASE_USES "lease_uses" by "experiment_id || '/' || block" order "block"
        columns "experiment_id, block, lease_id"
        of None;
    LEASE_OPENINGS "lease_openings" by "lease_id" order "lease_id"
        columns "lease_id, run_id, protocol_sha256, tables, opened_at"
        of None;
    MACHINES "machines" by "id" order "id"
        columns "id, profile, captured_at"
        of Some("id IN (SELECT machine_id FROM runs WHERE id = ?1)");
    RUNS "runs" by "id" order "id"
        columns "id, experiment_id, protocol_sha256, engine, build, machine_id, origin, state, validity, reason, validity_reason, created_at, started_at, ended_at"
        of Some("id = ?1");
    RUN_ARMS "run_arms" by "run_id" order "arm"
        columns "run_id, arm, position, games, lease_id"
        of Some("run_id = ?1");
    UNITS "units" by "run_id || '/' || key" order "key"
        columns "run_id, key, position, stage, state, attempt, reason, total, output, started_at, ended_at"
        of Some("run_id = ?1");
    ATTEMPTS "attempts" by "run_id || '/' || key || '/' || attempt" order "attempt"
        columns "run_id, key, attempt, token, state, reason, started_at, ended_at"
        of Some("run_id = ?1");
    CHUNKS "chunks" by "run_id || '/' || arm || '/' || attempt || '/' || chunk" order "chunk"
        columns "run_id, arm, attempt, chunk, moves_total, figures"
        of Some("run_id = ?1");
    POINTS "points" by "run_id || '/' || arm || '/' || attempt || '/' || point" order "point"
        columns "run_id, arm, attempt, point, moves, margin, is_best, figures"
        of Some("run_id = ?1");
    GAME_ROWS "game_rows" by "run_id || '/' || batch" order "arm, ordinal"
        columns "run_id, arm, ordinal, lease_id, attempt, batch, seed, score, moves, numbered_cleared, covers_revealed, max_chain_depth, occupied_sum, mean_occupied_cells, clears, censored, illegal_decisions, incomplete_decisions, work, wall_seconds"
        of Some("run_id = ?1");
    RESULTS "results" by "id" order "id"
        columns "id, run_id, experiment_id, protocol_sha256, validity, outcome, tier, analysis, summary, limitations, machine_id, origin, recorded_at"
        of Some("run_id = ?1");
    ARTIFACTS "artifacts" by "sha256" order "sha256"
        columns "sha256, bytes, stored_sha256, stored_bytes, kind, name, created_at"
        of Some("sha256 IN (SELECT sha256 FROM artifact_uses WHERE run_id = ?1 UNION SELECT json_extract(t.value, '$.sha256') FROM lease_openings AS o, json_each(o.tables) AS t WHERE o.run_id = ?1)");
    ARTIFACT_USES "artifact_uses" by "run_id || '/' || kind || '/' || name || '/' || sha256" order "name"
        columns "run_id, name, kind, sha256, created_at"
        of Some("run_id = ?1");
    DATASETS "datasets" by "id" order "id"
        columns "id, title, data_role, information_class, origin_unit, origin_count, row_count, whole_origin_split, leases, parents, fields, privileged_fields, notes, artifact_sha256, created_at"
        of None;
    CONTRIBUTIONS "contributions" by "id" order "id"
        columns "id, actor_kind, actor, level, roles, summary, subjects, commits, limitations, notes, self_reported, recorded_at"
        of None;
}

/// A seal as it stands in an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seal {
    pub(super) table: String,
    pub(super) key: String,
    pub(super) rows: u64,
    pub(super) sha256: String,
}

/// Seals the rows of `key` as they are in this transaction.
pub(super) async fn seal(
    connection: &mut SqliteConnection,
    sealed: &Sealed,
    where_sql: &'static str,
    binds: &[&str],
    key: &str,
) -> Result<Seal, Refusal> {
    let sql = format!(
        "SELECT {} FROM {} WHERE {where_sql} ORDER BY {}",
        sealed.columns, sealed.table, sealed.order
    );
    let mut query = sqlx::query(AssertSqlSafe(sql));
    for bind in binds {
        query = query.bind(*bind);
    }
    let rows = query.fetch_all(connection).await.map_err(fault)?;
    let mut digest = Sha256::new();
    for row in &rows {
        digest.update(canonical_row(row, 0)?.as_bytes());
    }
    Ok(Seal {
        table: String::from(sealed.table),
        key: String::from(key),
        rows: rows.len() as u64,
        sha256: hex::encode(digest.finalize()),
    })
}

/// The digests of a whole table as it is now, or of the rows a run rests on: key to (rows, SHA-256).
pub(super) async fn digests(
    connection: &mut SqliteConnection,
    sealed: &Sealed,
    run: Option<&str>,
) -> Result<BTreeMap<String, (u64, String)>, Refusal> {
    let run = run.zip(sealed.of_run);
    let filter = run.map(|(_, of_run)| format!("WHERE {of_run}")).unwrap_or_default();
    let sql = format!(
        "SELECT {} AS seal_key, {} FROM {} {filter} ORDER BY seal_key, {}",
        sealed.key, sealed.columns, sealed.table, sealed.order
    );
    let mut query = sqlx::query(AssertSqlSafe(sql));
    if let Some((run, _)) = run {
        query = query.bind(run);
    }
    let mut open: BTreeMap<String, (u64, Sha256)> = BTreeMap::new();
    for row in query.fetch_all(connection).await.map_err(fault)? {
        let key: String = row.try_get(0).map_err(|error| unreadable(sealed.table, &error))?;
        let entry = open.entry(key).or_insert_with(|| (0, Sha256::new()));
        entry.0 += 1;
        entry.1.update(canonical_row(&row, 1)?.as_bytes());
    }
    Ok(open
        .into_iter()
        .map(|(key, (rows, digest))| (key, (rows, hex::encode(digest.finalize()))))
        .collect())
}

/// One line per row: `i` and digits, `r` and the bits of the double, `t` and length and text, `b` and
/// hex, `n`; no two different rows share a line.
fn canonical_row(row: &SqliteRow, from: usize) -> Result<String, Refusal> {
    let mut line = String::new();
    for index in from..row.len() {
        let raw = row.try_get_raw(index).map_err(|error| unreadable("row", &error))?;
        let kind =
            if raw.is_null() { String::from("NULL") } else { raw.type_info().name().to_owned() };
        let bad = |error: sqlx::Error| unreadable("row", &error);
        let written = match kind.as_str() {
            "NULL" => write!(line, "n|"),
            "INTEGER" => write!(line, "i{}|", row.try_get::<i64, _>(index).map_err(bad)?),
            "REAL" => {
                write!(line, "r{:016x}|", row.try_get::<f64, _>(index).map_err(bad)?.to_bits())
            }
            "TEXT" => {
                let text = row.try_get::<&str, _>(index).map_err(bad)?;
                write!(line, "t{}:{text}|", text.len())
            }
            "BLOB" => {
                write!(line, "b{}|", hex::encode(row.try_get::<&[u8], _>(index).map_err(bad)?))
            }
            other => return Err(unreadable("row", &format!("a column of type {other}"))),
        };
        written.map_err(|error| unreadable("row", &error))?;
    }
    line.push('\n');
    Ok(line)
}
