//! The command line as a program: help, exit codes, streams, refusals.

use std::path::Path;
use std::process::{Command, Output};

use heldout::app::CreateOptions;
use heldout::domain::refusal::Code;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};

use crate::bad_protocols;
use crate::whole_run::{finished, open, tiny_file};

fn heldout(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heldout"))
        .env_remove("HELDOUT_URL")
        .arg("--data")
        .arg(folder)
        .args(["--threads", "1"])
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn every_command_has_help_with_an_example() {
    let command = heldout::cli::command();
    let mut seen = 0;
    for mut sub in command.get_subcommands().cloned() {
        let name = sub.get_name().to_owned();
        let help = sub.render_long_help().to_string();
        assert!(sub.get_about().is_some(), "{name} says nothing");
        if name != "leases" && name != "openapi" && name != "import" {
            assert!(help.contains("Example:\n  heldout "), "{name} has no example:\n{help}");
        }
        for line in help.lines().filter_map(|line| line.trim().strip_prefix("heldout ")) {
            let words: Vec<&str> = line.split('>').next().unwrap().split_whitespace().collect();
            let words = [&["heldout"], words.as_slice()].concat();
            heldout::cli::parses(&words).unwrap_or_else(|error| panic!("{name}: {line}: {error}"));
        }
        seen += 1;
    }
    assert!(seen >= 14, "{seen}");
}

#[test]
fn exit_codes_tell_usage_from_refusal_from_verdict() {
    let folder = finished().copy();
    let path = folder.path();
    let run = finished().run.as_str();
    let code = |arguments: &[&str]| heldout(path, arguments).status.code();
    assert_eq!(code(&["--help"]), Some(0));
    assert_eq!(code(&["no-such-command"]), Some(2));
    assert_eq!(code(&["verify", "not-a-run"]), Some(2));
    assert_eq!(code(&["verify", run, "--games", "3..1"]), Some(2));
    assert_eq!(code(&["status", "RUN-20200101T000000Z-00000000"]), Some(3));
    assert_eq!(code(&["run", "no-such-file.toml"]), Some(3));
    assert_eq!(code(&["resume", run]), Some(3), "a finished run cannot be resumed");
    assert_eq!(code(&["stop", run]), Some(3), "needs a daemon");
    assert_eq!(code(&["verify", run, "--games", "0"]), Some(0));
    assert_eq!(code(&["verify", "latest", "--games", "0"]), Some(0));
    for file in std::fs::read_dir(path.join("artifacts")).unwrap() {
        std::fs::remove_dir_all(file.unwrap().path()).unwrap();
    }
    assert_eq!(code(&["verify", run, "--games", "0"]), Some(1));
}

#[test]
fn reading_commands_answer_in_text_and_json() {
    let path = finished().path();
    let run = finished().run.as_str();
    let status = heldout(path, &["status", run]);
    let shown = text(&status.stdout);
    assert!(shown.contains("Verdict:") && shown.contains("Where to look next"), "{shown}");
    let json: serde_json::Value =
        serde_json::from_slice(&heldout(path, &["status", run, "--json"]).stdout).unwrap();
    assert_eq!(json["run"]["id"], run);
    let runs: serde_json::Value =
        serde_json::from_slice(&heldout(path, &["status", "--json"]).stdout).unwrap();
    assert_eq!(runs.as_array().unwrap().len(), 1);
    let leases: serde_json::Value =
        serde_json::from_slice(&heldout(path, &["leases", "--json"]).stdout).unwrap();
    assert_eq!(leases.as_array().unwrap().len(), 3);
    let latest: serde_json::Value =
        serde_json::from_slice(&heldout(path, &["status", "latest", "--json"]).stdout).unwrap();
    assert_eq!(latest["run"]["id"], run);
    let events = text(&heldout(path, &["watch", run, "--once"]).stdout);
    assert!(events.contains("lease-opened"), "{events}");
}

#[test]
fn rows_are_exported_as_json_lines_and_csv() {
    let path = finished().path();
    let run = finished().run.as_str();
    let lines = text(&heldout(path, &["export", run]).stdout);
    let rows: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 48);
    let csv =
        text(&heldout(path, &["export", run, "--format", "csv", "--arm", "fair-d1s3"]).stdout);
    let cells: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(cells.len(), 13, "a head and twelve games");
    assert!(cells.iter().all(|row| row.len() == 16));
    let first = rows.iter().find(|row| row["arm"] == "fair-d1s3").unwrap();
    assert_eq!(cells[1][3], first["score"].to_string());
    assert_eq!(cells[1][2], first["seedHex"].as_str().unwrap());
}

#[test]
fn a_dry_run_prints_the_plan_and_stores_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let answer = heldout(folder.path(), &["run", tiny_file().to_str().unwrap(), "--dry-run"]);
    assert_eq!(answer.status.code(), Some(0), "{}", text(&answer.stderr));
    let plan: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!(plan["sha256"].as_str().unwrap().len(), 64);
    assert!(plan["experiment"].is_null());
    let runs = heldout(folder.path(), &["status", "--json"]);
    assert_eq!(text(&runs.stdout).trim(), "[]");
}

/// Every row of every table, as text.
async fn content(folder: &Path) -> Vec<String> {
    let mut raw = SqliteConnectOptions::new()
        .filename(folder.join("heldout.sqlite"))
        .read_only(true)
        .connect()
        .await
        .unwrap();
    let tables = sqlx::query(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1",
    )
    .fetch_all(&mut raw)
    .await
    .unwrap();
    let mut content = Vec::new();
    for table in tables {
        let name: String = table.get(0);
        let columns =
            sqlx::query(AssertSqlSafe(format!("SELECT name FROM pragma_table_info('{name}')")))
                .fetch_all(&mut raw)
                .await
                .unwrap();
        let columns: Vec<String> =
            columns.iter().map(|row| format!("quote({})", row.get::<String, _>(0))).collect();
        let sql = format!("SELECT {} FROM {name}", columns.join(" || '|' || "));
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut raw).await.unwrap();
        let mut rows: Vec<String> =
            rows.iter().map(|row| format!("{name}: {}", row.get::<String, _>(0))).collect();
        rows.sort();
        content.extend(rows);
    }
    sqlx::Connection::close(raw).await.unwrap();
    content
}

#[tokio::test]
async fn bad_protocols_are_refused_and_change_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let app = open(folder.path()).await;
    let before = content(folder.path()).await;
    assert!(!before.is_empty());
    let documents = bad_protocols::all();
    let mut refused = 0;
    for document in documents.iter().filter(|document| document.needs.is_none()) {
        let refusal = app
            .create_experiment(&document.bytes, document.media, CreateOptions::default())
            .await
            .expect_err(&document.name);
        assert_ne!(refusal.code, Code::Internal, "{}: {refusal}", document.name);
        refused += 1;
    }
    assert!(refused >= 30, "{refused}");
    assert_eq!(content(folder.path()).await, before);
    app.shutdown(std::time::Duration::from_secs(5)).await;

    // The same through the program, for some of them: the exit code and the words.
    for document in documents.iter().filter(|document| document.needs.is_none()).step_by(20) {
        let ending = document.name.rsplit('.').next().unwrap();
        let file = folder.path().join(format!("document.{ending}"));
        std::fs::write(&file, &document.bytes).unwrap();
        let answer = heldout(folder.path(), &["run", file.to_str().unwrap()]);
        assert_eq!(answer.status.code(), Some(3), "{}", document.name);
        assert!(answer.stdout.is_empty(), "{}", document.name);
        let words = text(&answer.stderr);
        assert!(words.starts_with("refused: "), "{}: {words}", document.name);
    }
    assert_eq!(content(folder.path()).await, before);
}
