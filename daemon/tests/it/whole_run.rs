//! Whole runs of the tiny protocol, in this process, for tests that look at what they leave.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use heldout::app::{App, CreateOptions};
use heldout::clock::Clock;
use heldout::config::Config;
use heldout::domain::ids::RunId;
use heldout::domain::protocol::MediaType;
use heldout::domain::records::{GameRecord, RunState};
use heldout::exec::status::RunStatus;
use heldout::exec::supervise::observe;
use heldout::exec::train::curve;
use heldout::store::{Page, RunFilter, Store};
use serde_json::Value;
use tempfile::TempDir;

/// The protocol of every test here.
pub(crate) const TINY: &[u8] = include_bytes!("../protocols/tiny.toml");

/// Long enough for a crowded machine.
const PATIENCE: Duration = Duration::from_mins(15);

/// The file with the protocol, for command lines.
pub(crate) fn tiny_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protocols/tiny.toml")
}

/// Opens a data folder with one worker thread.
pub(crate) async fn open(folder: &Path) -> App {
    App::open(Config { threads: Some(1), ..Config::new(folder) }).await.unwrap()
}

/// Freezes the tiny protocol and starts a run of it.
pub(crate) async fn start(app: &App) -> RunId {
    let created =
        app.create_experiment(TINY, MediaType::Toml, CreateOptions::default()).await.unwrap();
    app.start_run(&created.experiment.unwrap().id).await.unwrap().id
}

/// Waits until `holds`, and says what was there when it did not.
pub(crate) async fn until(app: &App, run: &RunId, holds: impl Fn(&RunStatus) -> bool) -> RunStatus {
    let begun = std::time::Instant::now();
    loop {
        let status = app.status(run).await.unwrap();
        if holds(&status) {
            return status;
        }
        let is_over = matches!(
            status.run.state,
            RunState::Completed | RunState::Failed | RunState::Stopped | RunState::Interrupted
        );
        assert!(!is_over, "the run came to rest first: {:?} {:?}", status.run, status.units);
        assert!(begun.elapsed() < PATIENCE, "waited too long: {:?}", status.units);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A finished run nobody disturbed, made once for all tests.
pub(crate) struct Finished {
    folder: TempDir,
    pub(crate) run: RunId,
}

/// The one finished run. Copy it before changing anything.
pub(crate) fn finished() -> &'static Finished {
    static FINISHED: OnceLock<Finished> = OnceLock::new();
    FINISHED.get_or_init(|| {
        // A runtime of its own: the caller is inside one.
        std::thread::spawn(|| {
            let folder = tempfile::tempdir().unwrap();
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let run = runtime.block_on(async {
                let app = open(folder.path()).await;
                let run = start(&app).await;
                until(&app, &run, |status| status.run.state == RunState::Completed).await;
                app.wait(&run).await;
                app.shutdown(PATIENCE).await;
                run
            });
            Finished { folder, run }
        })
        .join()
        .unwrap()
    })
}

impl Finished {
    /// A copy of its data folder.
    pub(crate) fn copy(&self) -> TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_folder(self.folder.path(), copy.path());
        copy
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// What a folder holds of its one run, read beside whoever writes.
pub(crate) async fn read(folder: &Path) -> Option<(RunStatus, Vec<GameRecord>)> {
    let store =
        Store::open_read_only(&folder.join("heldout.sqlite"), Clock::system()).await.ok()?;
    let runs = store.runs(&RunFilter::default(), &Page::default()).await.ok()?;
    let run = runs.first()?;
    let status = observe(&store, &run.id).await.ok()?;
    let rows = store.all_games(&run.id).await.ok()?;
    store.close().await;
    Some((status, rows))
}

/// Everything about a run that its protocol and its seeds decide, and nothing that time or chance
/// does.
pub(crate) fn decided(status: &RunStatus, rows: &[GameRecord]) -> Value {
    let result = status.result.as_ref().expect("a result");
    let arms = ["small", "tall", "main"].map(|arm| {
        let points: Vec<Value> = curve(&status.points, arm)
            .into_iter()
            .map(|point| {
                let mut figures = point.figures.clone();
                figures.as_object_mut().unwrap().remove("wallSeconds");
                serde_json::json!({
                    "point": point.point, "moves": point.moves, "margin": point.margin,
                    "best": point.is_best, "figures": figures,
                })
            })
            .collect();
        Value::Array(points)
    });
    let rows: Vec<GameRecord> =
        rows.iter().map(|row| GameRecord { wall_seconds: None, ..row.clone() }).collect();
    let mut analysis = result.analysis.clone();
    analysis["block"].as_object_mut().unwrap().remove("lease");
    for arm in analysis["arms"].as_array_mut().unwrap() {
        arm.as_object_mut().unwrap().remove("mean_wall_seconds");
    }
    let screen = status.lease("screen").unwrap();
    let selected = status.unit("select").and_then(|unit| unit.output.clone());
    serde_json::json!({
        "points": arms, "rows": rows, "analysis": analysis, "selected": selected,
        "tables": screen.opening.as_ref().unwrap().tables,
        "summary": result.summary, "outcome": result.outcome, "validity": result.validity,
    })
}
