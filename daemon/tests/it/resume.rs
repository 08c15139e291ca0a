//! A run that is stopped or killed, anywhere, ends where an undisturbed one ends.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use heldout::domain::records::{RunState, WorkState};
use heldout::exec::status::RunStatus;

use crate::whole_run::{decided, finished, open, read, start, tiny_file, until};

async fn undisturbed() -> serde_json::Value {
    let (status, rows) = read(finished().path()).await.unwrap();
    decided(&status, &rows)
}

/// Stops a run as soon as `holds`, resumes it in a new process' place, and compares.
async fn stop_and_resume(holds: impl Fn(&RunStatus) -> bool, is_where: &str) {
    let folder = tempfile::tempdir().unwrap();
    let app = open(folder.path()).await;
    let run = start(&app).await;
    until(&app, &run, holds).await;
    let stopped = app.stop_run(&run).await.unwrap();
    assert_eq!(stopped.state, RunState::Stopped);
    app.shutdown(Duration::from_mins(1)).await;
    let (status, _) = read(folder.path()).await.unwrap();
    let state = status.unit(is_where).map(|unit| unit.state);
    assert_eq!(state, Some(WorkState::Stopped), "{:?}", status.units);

    let app = open(folder.path()).await;
    app.resume_run(&run).await.unwrap();
    until(&app, &run, |status| status.run.state == RunState::Completed).await;
    app.wait(&run).await;
    app.shutdown(Duration::from_mins(1)).await;
    let (status, rows) = read(folder.path()).await.unwrap();
    assert_eq!(status.unit(is_where).unwrap().attempt, 2);
    assert_eq!(decided(&status, &rows), undisturbed().await);
    assert!(!folder.path().join("work").join(run.as_str()).exists(), "the working folder is gone");
}

fn points(status: &RunStatus, arm: &str) -> usize {
    status.points.iter().filter(|point| point.arm == arm).count()
}

#[tokio::test]
async fn stopped_between_two_points_of_training() {
    stop_and_resume(|status| points(status, "main") == 1, "train/main").await;
}

#[tokio::test]
async fn stopped_between_two_games_of_the_screen() {
    let is_playing = |status: &RunStatus| {
        status.games.get("fair-d2s7").is_some_and(|&games| (1..11).contains(&games))
    };
    stop_and_resume(is_playing, "screen/fair-d2s7").await;
}

/// The real program, to be killed.
fn program(folder: &Path, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_heldout"))
        .arg("--data")
        .arg(folder)
        .args(["--threads", "1"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills the program with SIGKILL as soon as `holds`, resumes with the program, and compares.
async fn kill_and_resume(holds: impl Fn(&RunStatus) -> bool, is_where: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = tiny_file();
    let mut child = program(folder.path(), &["run", file.to_str().unwrap()]);
    let begun = Instant::now();
    loop {
        if let Some((status, _)) = read(folder.path()).await {
            if holds(&status) {
                break;
            }
            assert_ne!(status.run.state, RunState::Completed, "came too late");
        }
        assert!(child.try_wait().unwrap().is_none(), "the program ended by itself");
        assert!(begun.elapsed() < Duration::from_mins(15), "waited too long");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (status, _) = read(folder.path()).await.unwrap();
    assert_eq!(status.run.state, RunState::Running, "nobody was left to say otherwise");
    assert_eq!(status.unit(is_where).unwrap().state, WorkState::Running);

    let run = status.run.id.to_string();
    let mut child = program(folder.path(), &["resume", &run]);
    let code = tokio::task::spawn_blocking(move || child.wait()).await.unwrap().unwrap().code();
    assert_eq!(code, Some(0));
    let (status, rows) = read(folder.path()).await.unwrap();
    assert_eq!(status.run.state, RunState::Completed);
    assert_eq!(status.unit(is_where).unwrap().attempt, 2);
    assert_eq!(decided(&status, &rows), undisturbed().await);
}

#[tokio::test]
async fn killed_between_two_points_of_training() {
    kill_and_resume(|status| points(status, "main") == 1, "train/main").await;
}

#[tokio::test]
async fn killed_between_two_games_of_the_screen() {
    let is_playing = |status: &RunStatus| {
        status.games.get("fair-d2s7").is_some_and(|&games| (1..11).contains(&games))
    };
    kill_and_resume(is_playing, "screen/fair-d2s7").await;
}
