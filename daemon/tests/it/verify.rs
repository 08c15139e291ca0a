//! Verification passes on a run as it was left, and notices every one of ten changes made behind the
//! program's back, with the guards of the database taken away for the moment of the change.

use std::path::Path;
use std::sync::Arc;

use heldout::app::VerifyOptions;
use heldout::app::verify::verify;
use heldout::artifacts::Archive;
use heldout::clock::Clock;
use heldout::exec::local::Pools;
use heldout::store::Store;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};

use crate::whole_run::finished;

/// Names of the checks that fail, in order.
async fn failures(folder: &Path, games: u32) -> Vec<String> {
    let clock = Clock::system();
    let store = Store::open_read_only(&folder.join("heldout.sqlite"), clock.clone()).await.unwrap();
    let archive = Archive::new(folder.join("artifacts"), clock);
    let pools = Arc::new(Pools::new(1).unwrap());
    let options = VerifyOptions { replay: None, first: 0, games };
    let run = &finished().run;
    let report = verify(&store, &archive, &pools, run, &options, Arc::new(|_| {})).await.unwrap();
    store.close().await;
    let failed: Vec<String> = report
        .checks
        .iter()
        .filter(|check| !check.passed)
        .map(|check| check.name.clone())
        .collect();
    assert_eq!(report.passed, failed.is_empty());
    failed
}

/// Runs `sql` on a copy of the finished run, past every trigger, and says what verification finds.
async fn after(sql: &str) -> Vec<String> {
    let folder = finished().copy();
    let mut raw = SqliteConnectOptions::new()
        .filename(folder.path().join("heldout.sqlite"))
        .foreign_keys(false)
        .connect()
        .await
        .unwrap();
    let guards = sqlx::query("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        .fetch_all(&mut raw)
        .await
        .unwrap();
    for guard in &guards {
        let name: String = guard.get(0);
        sqlx::query(AssertSqlSafe(format!("DROP TRIGGER {name}"))).execute(&mut raw).await.unwrap();
    }
    let changed = sqlx::query(AssertSqlSafe(sql.to_owned())).execute(&mut raw).await.unwrap();
    assert_eq!(changed.rows_affected(), 1, "{sql}");
    // Put back word for word, so that a missing guard is not what is noticed.
    for guard in &guards {
        let text: String = guard.get(1);
        sqlx::query(AssertSqlSafe(text)).execute(&mut raw).await.unwrap();
    }
    sqlx::Connection::close(raw).await.unwrap();
    failures(folder.path(), 1).await
}

fn assert_found(failed: &[String], expected: &[&str]) {
    for name in expected {
        assert!(failed.iter().any(|failed| failed == name), "{name} did not fail, but {failed:?}");
    }
}

#[tokio::test]
async fn an_untouched_run_verifies() {
    assert_eq!(failures(finished().path(), 3).await, Vec::<String>::new());
}

#[tokio::test]
async fn corruption_1_a_row_edited() {
    let failed =
        after("UPDATE game_rows SET score = score + 1 WHERE arm = 'fair-d1s3' AND ordinal = 0")
            .await;
    assert_found(&failed, &["rows-game_rows", "statistics", "replay[fair-d1s3]"]);
}

#[tokio::test]
async fn corruption_2_a_game_removed() {
    let failed = after("DELETE FROM game_rows WHERE arm = 'candidate-1ply' AND ordinal = 7").await;
    assert_found(&failed, &["rows-game_rows", "statistics"]);
}

#[tokio::test]
async fn corruption_3_an_artifact_byte_flipped() {
    let folder = finished().copy();
    let mut files = Vec::new();
    for outer in std::fs::read_dir(folder.path().join("artifacts")).unwrap() {
        for file in std::fs::read_dir(outer.unwrap().path()).unwrap() {
            files.push(file.unwrap().path());
        }
    }
    files.sort();
    let mut bytes = std::fs::read(&files[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&files[0], bytes).unwrap();
    assert_found(&failures(folder.path(), 0).await, &["artifacts"]);
}

#[tokio::test]
async fn corruption_4_a_stored_digest_changed() {
    let failed = after(
        "UPDATE artifacts SET stored_sha256 = replace(stored_sha256, substr(stored_sha256, 1, 1), \
         CASE substr(stored_sha256, 1, 1) WHEN 'a' THEN 'b' ELSE 'a' END) \
         WHERE sha256 = (SELECT min(sha256) FROM artifacts)",
    )
    .await;
    assert_found(&failed, &["artifacts", "rows-artifacts"]);
}

#[tokio::test]
async fn corruption_5_an_event_removed() {
    let failed = after("DELETE FROM events WHERE seq = (SELECT max(seq) / 2 FROM events)").await;
    assert_found(&failed, &["event-chain"]);
}

#[tokio::test]
async fn corruption_6_an_event_edited() {
    let failed = after(
        "UPDATE events SET body = json_set(body, '$.planted', 1) \
         WHERE seq = (SELECT max(seq) / 2 FROM events)",
    )
    .await;
    assert_found(&failed, &["event-chain"]);
}

#[tokio::test]
async fn corruption_7_the_protocol_changed() {
    let failed = after(
        "UPDATE experiments SET protocol = CAST(replace(CAST(protocol AS TEXT), \
         'both-halves-positive', 'bootstrap-lower-above-zero') AS BLOB)",
    )
    .await;
    assert_found(&failed, &["protocol-digest"]);
}

#[tokio::test]
async fn corruption_8_a_statistic_of_the_result_changed() {
    let failed = after(
        "UPDATE results SET analysis = json_set(analysis, \
         '$.contrasts[0].score.bootstrap_lower95', 123456.5)",
    )
    .await;
    assert_found(&failed, &["rows-results", "statistics"]);
}

#[tokio::test]
async fn corruption_9_a_digest_of_the_opening_changed() {
    let failed = after(&format!(
        "UPDATE lease_openings SET tables = json_set(tables, '$[0].sha256', '{}')",
        "0".repeat(64)
    ))
    .await;
    assert_found(&failed, &["opening", "statistics"]);
}

#[tokio::test]
async fn corruption_10_a_validation_point_edited() {
    let failed =
        after("UPDATE points SET margin = margin + 1000 WHERE arm = 'main' AND point = 2").await;
    assert_found(&failed, &["rows-points", "points"]);
}

#[tokio::test]
async fn a_verdict_turned_around_is_noticed() {
    let failed =
        after("UPDATE results SET outcome = CASE outcome WHEN 'pass' THEN 'fail' ELSE 'pass' END")
            .await;
    assert_found(&failed, &["rows-results", "verdict"]);
}

#[tokio::test]
async fn an_arm_that_is_not_there_is_a_refusal() {
    let fixture = finished();
    let clock = Clock::system();
    let store =
        Store::open_read_only(&fixture.path().join("heldout.sqlite"), clock.clone()).await.unwrap();
    let archive = Archive::new(fixture.path().join("artifacts"), clock);
    let pools = Arc::new(Pools::new(1).unwrap());
    let options = VerifyOptions { replay: Some(vec![String::from("nobody")]), first: 0, games: 1 };
    let refusal = verify(&store, &archive, &pools, &fixture.run, &options, Arc::new(|_| {}))
        .await
        .unwrap_err();
    assert_eq!(refusal.errors[0].pointer, "/replay/0");
    assert!(refusal.detail.contains("fair-d2s7"), "{refusal}");
}
