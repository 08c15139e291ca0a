//! Edits made behind the program's back. Every trigger is dropped, one thing is changed, and the
//! triggers are put back word for word: what was done must still be found.

use std::path::{Path, PathBuf};

use heldout::clock::Clock;
use heldout::domain::ids::RunId;
use heldout::domain::refusal::Code;
use heldout::store::{RowCheck, Store};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Connection as _};

use crate::lab::{Lab, table};

/// A finished store whose file can be copied, edited and verified.
struct Original {
    lab: Lab,
    run: RunId,
    copies: tempfile::TempDir,
}

impl Original {
    async fn new() -> Self {
        let lab = Lab::new().await;
        let (screening, _) = lab.judged().await;
        let run = screening.run.id.clone();
        lab.store.add_artifact(&table('a', Some(&run))).await.unwrap();
        lab.fill_the_rest(&screening).await;
        assert_eq!(failures(&lab.store.verify_everything().await.unwrap()), Vec::<String>::new());
        assert_eq!(failures(&lab.store.verify_rows(&run).await.unwrap()), Vec::<String>::new());
        lab.store.close().await;
        Self { lab, run, copies: tempfile::tempdir().unwrap() }
    }

    /// A copy in which `sql` was run without any trigger or foreign key in its way.
    async fn edited(&self, sql: &str, put_guards_back: bool) -> PathBuf {
        let copy = self.copies.path().join("copy.sqlite");
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{suffix}", copy.display()));
        }
        std::fs::copy(self.lab.path(), &copy).unwrap();
        let options = SqliteConnectOptions::new()
            .filename(&copy)
            .foreign_keys(false)
            .synchronous(SqliteSynchronous::Off);
        let mut raw = SqliteConnection::connect_with(&options).await.unwrap();
        let triggers: Vec<(String, String)> =
            sqlx::query_as("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
                .fetch_all(&mut raw)
                .await
                .unwrap();
        let mut script = String::from("PRAGMA ignore_check_constraints = ON; BEGIN;");
        for (name, _) in &triggers {
            script.extend(["DROP TRIGGER ", name, ";"]);
        }
        script.push_str(sql);
        script.push(';');
        if put_guards_back {
            for (_, sql) in &triggers {
                script.push_str(sql);
                script.push(';');
            }
        }
        script.push_str("COMMIT");
        run(&mut raw, &script).await;
        raw.close().await.unwrap();
        copy
    }
}

async fn run(raw: &mut SqliteConnection, sql: &str) {
    let done = sqlx::raw_sql(AssertSqlSafe(String::from(sql))).execute(raw).await;
    assert!(done.is_ok(), "{sql}: {done:?}");
}

fn failures(checks: &[RowCheck]) -> Vec<String> {
    checks
        .iter()
        .filter(|check| !check.passed)
        .map(|check| format!("{}: {}", check.name, check.evidence))
        .collect()
}

async fn everything(path: &Path) -> Vec<String> {
    let store = Store::open_read_only(path, Clock::system()).await.unwrap();
    let failures = failures(&store.verify_everything().await.unwrap());
    store.close().await;
    failures
}

/// Columns that say how far live work is, and stand in no event.
const LIVE: [(&str, &str); 8] = [
    ("units", "done"),
    ("units", "heartbeat_at"),
    ("lease_readings", "lease_id"),
    ("lease_readings", "run_id"),
    ("lease_readings", "unit"),
    ("lease_readings", "cursor"),
    ("lease_readings", "wraps"),
    ("lease_readings", "updated_at"),
];

#[tokio::test]
async fn every_edited_cell_and_every_removed_row_is_found() {
    let original = Original::new().await;
    let copy = original.edited("SELECT 1", false).await;
    let options = SqliteConnectOptions::new()
        .filename(&copy)
        .foreign_keys(false)
        .synchronous(SqliteSynchronous::Off)
        .pragma("ignore_check_constraints", "ON");
    let mut raw = SqliteConnection::connect_with(&options).await.unwrap();
    let cells: Vec<(String, String, i64)> = sqlx::query_as(
        "SELECT t.name, c.name, c.pk FROM pragma_table_list AS t JOIN pragma_table_info(t.name) AS c
         WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND t.name <> '_sqlx_migrations'",
    )
    .fetch_all(&mut raw)
    .await
    .unwrap();
    let mut edits = Vec::new();
    for (table, column, _) in &cells {
        if LIVE.contains(&(table.as_str(), column.as_str())) {
            continue;
        }
        // The first row only.
        let sql = format!(
            "UPDATE {table} SET {column} = CASE typeof({column}) WHEN 'integer' THEN {column} + 1000003
                 WHEN 'real' THEN {column} + 0.5 WHEN 'blob' THEN x'00'
                 WHEN 'null' THEN (CASE (SELECT type FROM pragma_table_info('{table}') WHERE name = '{column}')
                                   WHEN 'TEXT' THEN 'x' ELSE 1 END)
                 ELSE replace({column} || ' ', '1', '2') END
             WHERE {}",
            first_row(table, &cells)
        );
        edits.push((table, format!("{table}.{column}"), sql));
    }
    assert!(edits.len() > 150, "{}", edits.len());
    let mut tables: Vec<&String> = cells.iter().map(|(table, ..)| table).collect();
    tables.dedup();
    for table in tables.into_iter().filter(|table| *table != "lease_readings") {
        let sql = format!("DELETE FROM {table} WHERE {}", first_row(table, &cells));
        edits.push((table, format!("a row of {table}"), sql));
    }

    let store = Store::open_read_only(&copy, Clock::system()).await.unwrap();
    let found = async || match store.verify_everything().await {
        Ok(checks) => failures(&checks)
            .into_iter()
            .filter(|line| !line.starts_with("schema-guards: "))
            .collect(),
        Err(refusal) => {
            assert_eq!(refusal.code, Code::Corrupt);
            vec![refusal.detail]
        }
    };
    assert_eq!(found().await, Vec::<String>::new());
    let mut unseen = Vec::new();
    for (table, what, sql) in edits {
        run(&mut raw, &format!("CREATE TEMP TABLE before AS SELECT * FROM {table}; {sql}")).await;
        if found().await.is_empty() {
            unseen.push(what);
        }
        let undo = format!(
            "DELETE FROM {table}; INSERT INTO {table} SELECT * FROM before; DROP TABLE before"
        );
        run(&mut raw, &undo).await;
    }
    assert_eq!(found().await, Vec::<String>::new(), "every edit was undone");
    assert_eq!(unseen, Vec::<String>::new());
}

/// `(key columns) = (SELECT … LIMIT 1)`.
fn first_row(table: &str, cells: &[(String, String, i64)]) -> String {
    let keys: Vec<&str> = cells
        .iter()
        .filter(|(t, _, pk)| t == table && *pk > 0)
        .map(|(_, column, _)| column.as_str())
        .collect();
    let keys = keys.join(", ");
    format!("({keys}) = (SELECT {keys} FROM {table} ORDER BY {keys} LIMIT 1)")
}

#[tokio::test]
async fn the_check_that_fails_says_what_was_done() {
    let original = Original::new().await;
    let cut = "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)";
    let cases = [
        (
            "UPDATE game_rows SET score = score + 1 WHERE arm = 'deep' AND ordinal = 2",
            "rows-game_rows: ",
            "was changed",
        ),
        (
            "DELETE FROM game_rows WHERE arm = 'deep' AND ordinal = 2",
            "rows-game_rows: ",
            "has 3 rows, 4 were told of",
        ),
        (
            "DELETE FROM game_rows WHERE arm = 'deep' AND ordinal = 2",
            "games-as-planned: ",
            "/deep lacks games under a valid result",
        ),
        (
            "UPDATE game_rows SET ordinal = 7 WHERE arm = 'deep' AND ordinal = 2",
            "games-as-planned: ",
            "/deep/7 is not the planned game",
        ),
        ("UPDATE results SET outcome = 'fail'", "rows-results: RS-", "was changed"),
        (
            "UPDATE experiments SET protocol = x'7b7d'",
            "frozen-protocols: the protocol of EX-",
            "does not have its digest",
        ),
        ("DELETE FROM lease_openings", "rows-lease_openings: SL-", "is gone"),
        ("DELETE FROM lease_openings", "leases-disjoint: ", "and its opening do not agree"),
        (
            "UPDATE leases SET start = start - 1 WHERE start = (SELECT max(start) FROM leases)",
            "rows-leases: ",
            "was changed",
        ),
        (
            "INSERT INTO leases SELECT 'SL-2', experiment_id, name, space, domain, role, start, end_exclusive, state, reserved_at, NULL, NULL FROM leases WHERE role = 'held-out' LIMIT 1",
            "leases-disjoint: ",
            "share seeds",
        ),
        (
            "INSERT INTO artifacts SELECT 'b' || substr(sha256, 2), bytes, stored_sha256, stored_bytes, kind, name, created_at FROM artifacts",
            "rows-artifacts: ",
            "was never told of",
        ),
        (
            "UPDATE events SET body = replace(body, 'shallow', 'SHALLOW') WHERE kind = 'games-stored'",
            "event-chain: event ",
            "was changed",
        ),
        ("UPDATE events SET at = at + 1 WHERE seq = 3", "event-chain: event 3 ", "was changed"),
        ("DELETE FROM events WHERE seq = 5", "event-chain: event 5 ", "is missing"),
        (cut, "event-chain: event ", "though the chain was longer"),
        (cut, "rows-contributions: CT-", "was never told of"),
        (
            "UPDATE event_head SET hash = '0000000000000000000000000000000000000000000000000000000000000000'",
            "event-chain: event ",
            "is not the end",
        ),
        (
            "DELETE FROM blocked_ranges WHERE name = 'final'",
            "blocked-ranges: final of drop7-headless-u32/environment",
            "is gone",
        ),
        ("DELETE FROM experiments", "database-integrity: ", "names a record that is gone"),
    ];
    for (sql, name, evidence) in cases {
        let found = everything(&original.edited(sql, true).await).await;
        assert!(
            found.iter().any(|line| line.starts_with(name) && line.contains(evidence)),
            "{sql}: {name}…{evidence} is not in {found:#?}"
        );
    }
    // A tail cut off together with the head still leaves rows that nothing tells of.
    let with_head = format!(
        "{cut}; UPDATE event_head SET (seq, hash) = (SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1)"
    );
    let found = everything(&original.edited(&with_head, true).await).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("rows-contributions: CT-") && found[0].contains("was never told of"),
        "{found:?}"
    );
    // Guards that were not put back.
    let found = everything(&original.edited("SELECT 1", false).await).await;
    assert!(
        found[0].starts_with("schema-guards: trigger ") && found[0].contains("is gone; "),
        "{found:?}"
    );
}

#[tokio::test]
async fn the_report_of_a_run_is_about_that_run() {
    let original = Original::new().await;
    let report = async |sql: &str| {
        let copy = original.edited(sql, true).await;
        let store = Store::open_read_only(&copy, Clock::system()).await.unwrap();
        let found = failures(&store.verify_rows(&original.run).await.unwrap());
        store.close().await;
        found
    };
    assert_eq!(report("SELECT 1").await, Vec::<String>::new());
    for table in [
        "game_rows",
        "units",
        "attempts",
        "results",
        "run_arms",
        "artifact_uses",
        "artifacts",
        "machines",
        "theories",
        "leases",
        "lease_openings",
    ] {
        let of_run = match table {
            "results" | "game_rows" | "units" | "attempts" | "run_arms" | "artifact_uses" => {
                format!("run_id = '{}'", original.run)
            }
            "machines" => {
                format!("id = (SELECT machine_id FROM runs WHERE id = '{}')", original.run)
            }
            _ => String::from("1"),
        };
        let found = report(&format!("DELETE FROM {table} WHERE {of_run}")).await;
        assert!(
            found.iter().any(|line| line.starts_with(&format!("rows-{table}: "))
                || (["machines", "theories"].contains(&table)
                    && line.contains("names a record that is gone"))),
            "{table}: {found:#?}"
        );
    }
    // The curve of another run is not this run's affair; the seeds of all are.
    assert_eq!(report("UPDATE points SET margin = 9").await, Vec::<String>::new());
    assert_eq!(report("UPDATE leases SET name = 'x'").await.len(), 1);
}

/// Verification reads as of one instant, so a run that goes on meanwhile is no fault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verifying_beside_a_writer_finds_nothing() {
    let lab = Lab::new().await;
    let screening = lab.screening().await;
    let writer = tokio::spawn({
        let store = lab.store.clone();
        async move {
            for number in 0..60 {
                store.add_machine(serde_json::json!({ "number": number })).await.unwrap();
            }
        }
    });
    while !writer.is_finished() {
        for checks in [
            lab.store.verify_everything().await.unwrap(),
            lab.store.verify_rows(&screening.run.id).await.unwrap(),
        ] {
            assert_eq!(failures(&checks), Vec::<String>::new());
        }
        lab.store.verify_event_chain().await.unwrap();
    }
    writer.await.unwrap();
}
