//! `heldout run`, `submit`, `stop`, `resume` and `validate-now`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::bars::{Display, measure};
use super::{Exit, Named, Session, out, run_id, verdict};
use crate::app::{App, CreateOptions, Created};
use crate::domain::ids::{ExperimentId, RunId};
use crate::domain::protocol::MediaType;
use crate::domain::records::{LeaseState, Outcome, Run, RunState, Unit, WorkState};
use crate::domain::refusal::{Code, Refusal};
use crate::exec::status::RunStatus;
use crate::exec::wording::thousands;
use crate::shutdown;
use crate::store::{Page, RunFilter};

/// How often the display looks.
const TICK: Duration = Duration::from_millis(200);
/// Files longer than this are refused without being read; what a document may have is less, and the
/// parser's to say.
const LONGEST: u64 = 64 << 20;

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Protocol document, TOML or (with the ending .json) JSON.
    file: PathBuf,
    /// Freeze and start a new experiment even when a run of this protocol could be continued.
    #[arg(long)]
    fresh: bool,
    /// Exit with 1 unless the gate passes.
    #[arg(long)]
    require_pass: bool,
    /// Say what would happen and store nothing.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct SubmitArgs {
    /// Protocol document, TOML or (with the ending .json) JSON.
    file: PathBuf,
    /// A new experiment of a protocol that is frozen already, on fresh seeds.
    #[arg(long)]
    repeat: bool,
    /// Say what would happen and store nothing.
    #[arg(long)]
    dry_run: bool,
    /// Freeze only.
    #[arg(long)]
    no_start: bool,
}

#[derive(Debug, Args)]
pub(super) struct ControlArgs {
    /// The run, or `latest`.
    #[arg(value_parser = run_id)]
    run: Named,
}

#[derive(Debug, Args)]
pub(super) struct ValidateArgs {
    /// The run, or `latest`.
    #[arg(value_parser = run_id)]
    run: Named,
    /// Training arm, `main` for the long run; the one that is training when absent.
    #[arg(long)]
    arm: Option<String>,
}

/// Reads a document and tells its language from the name.
fn document(file: &Path) -> Result<(Vec<u8>, MediaType), Refusal> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Refusal::new(Code::NotFound, format!("{} cannot be read: {error}", file.display()))
    };
    let length = fs_err::metadata(file).map_err(|error| unreadable(&error))?.len();
    if length > LONGEST {
        return Err(Refusal::new(
            Code::TooLarge,
            format!("{} has {length} bytes; a protocol has at most {LONGEST}", file.display()),
        ));
    }
    let bytes = fs_err::read(file).map_err(|error| unreadable(&error))?;
    let is_json = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    Ok((bytes, if is_json { MediaType::Json } else { MediaType::Toml }))
}

pub(super) async fn run(session: &Session, arguments: &RunArgs) -> Result<Exit, Refusal> {
    let (bytes, media) = document(&arguments.file)?;
    let app = session.open().await?;
    let outcome = begin_and_follow(session, &app, &bytes, media, arguments).await;
    app.shutdown(shutdown::GRACE).await;
    outcome
}

async fn begin_and_follow(
    session: &Session,
    app: &App,
    bytes: &[u8],
    media: MediaType,
    arguments: &RunArgs,
) -> Result<Exit, Refusal> {
    let plain = CreateOptions { repeat: false, dry_run: arguments.dry_run };
    let mut created = app.create_experiment(bytes, media, plain).await?;
    if arguments.dry_run {
        out::json(&created)?;
        return Ok(Exit::Done);
    }
    let mut found = None;
    if !created.created {
        let experiment = experiment_id(&created)?;
        let screen = created.leases.iter().any(|lease| {
            lease.role == crate::domain::protocol::Role::HeldOut
                && lease.state != LeaseState::Reserved
        });
        found = if arguments.fresh { None } else { resumable(app, &experiment).await? };
        if let Some(run) = &found {
            out::note(&format!(
                "{} of this protocol is {}; continuing it (--fresh begins a new experiment)",
                run.id,
                crate::app::state_name(run.state)
            ));
        } else if screen || arguments.fresh {
            let repeat = CreateOptions { repeat: true, dry_run: false };
            created = app.create_experiment(bytes, media, repeat).await?;
            out::note(&format!(
                "this protocol was run before ({experiment}) and its held-out block stays opened: \
                 {} repeats it on a fresh block",
                experiment_id(&created)?
            ));
        }
    }
    let run = if let Some(run) = found {
        introduce(&created, None)?;
        app.resume_run(&run.id).await?
    } else {
        let run = app.start_run(&experiment_id(&created)?).await?;
        introduce(&created, Some(&run))?;
        run
    };
    follow(session, app, &run.id, arguments.require_pass).await
}

fn experiment_id(created: &Created) -> Result<ExperimentId, Refusal> {
    created
        .experiment
        .as_ref()
        .map(|experiment| experiment.id.clone())
        .ok_or_else(|| Refusal::new(Code::Internal, "the experiment was not stored"))
}

/// The newest run of the experiment, or of one that repeats it, that can go on.
async fn resumable(app: &App, experiment: &ExperimentId) -> Result<Option<Run>, Refusal> {
    for state in [RunState::Interrupted, RunState::Stopped] {
        let filter = RunFilter { experiment: Some(experiment.clone()), state: Some(state) };
        let runs = app.store().runs(&filter, &Page::default()).await?;
        if let Some(run) = runs.into_iter().next() {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

fn introduce(created: &Created, run: Option<&Run>) -> Result<(), Refusal> {
    let Some(experiment) = &created.experiment else { return Ok(()) };
    out::note(&experiment.title);
    out::note(&format!("  experiment {}", experiment.id));
    if let Some(run) = run {
        out::note(&format!("  run        {}", run.id));
    }
    out::note(&format!("  protocol   sha256 {}", created.sha256));
    for lease in &created.leases {
        let role = serde_json::to_value(lease.role)
            .map_err(|error| crate::exec::unit::internal("naming a role", &error))?;
        out::note(&format!(
            "  seeds      {:<10} {} from {} ({}, {})",
            lease.name,
            thousands(f64::from(lease.count)),
            lease.start,
            role.as_str().unwrap_or_default(),
            lease.id,
        ));
    }
    out::note("");
    Ok(())
}

/// Shows a run until it is over, and then what came of it.
async fn follow(
    session: &Session,
    app: &App,
    run: &RunId,
    require_pass: bool,
) -> Result<Exit, Refusal> {
    let mut display = Display::new();
    let mut events = app.store().subscribe();
    let mut signals = Box::pin(shutdown::requested());
    let mut is_stopping = false;
    display.skip(&app.status(run).await?.units);
    let status = loop {
        let status = app.status(run).await?;
        display.ended(&status.units, describe);
        let is_at_work = matches!(status.run.state, RunState::Queued | RunState::Running);
        if !is_at_work {
            break status;
        }
        // Rows and heartbeats are events too; the display needs no more than this.
        events.mark_unchanged();
        let deadline = tokio::time::sleep(Duration::from_secs(1));
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                signal = &mut signals, if !is_stopping => {
                    is_stopping = true;
                    display.line(&format!("{signal}: stopping at the next boundary"));
                    let app = app.clone();
                    let run = run.clone();
                    tokio::spawn(async move { app.stop_run(&run).await });
                }
                () = &mut deadline => break,
                changed = events.changed() => if changed.is_err() { break },
                () = tokio::time::sleep(TICK) => display.update(&app.progress(run)),
            }
            if events.has_changed().unwrap_or(false) {
                break;
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    display.clear();
    app.wait(run).await;
    finish(session, app, &status, require_pass).await
}

async fn finish(
    session: &Session,
    app: &App,
    status: &RunStatus,
    require_pass: bool,
) -> Result<Exit, Refusal> {
    let status = app.status(&status.run.id).await?;
    if session.common.json {
        out::json(&status)?;
    }
    let run = &status.run;
    let reason = run.reason.clone().unwrap_or_default();
    match (run.state, &status.result) {
        (RunState::Completed, Some(result)) => {
            if !session.common.json {
                let protocol = app.protocol(&run.experiment_id).await?;
                out::line(&verdict::report(&protocol, &status, result, &invocation(session))?);
            }
            let is_missed = require_pass && result.outcome != Outcome::Pass;
            Ok(if is_missed { Exit::Negative } else { Exit::Done })
        }
        (RunState::Stopped | RunState::Interrupted, _) => {
            out::note(&format!("{} is stopped: {reason}", run.id));
            out::note(&format!("continue it with: {} resume {}", invocation(session), run.id));
            Ok(Exit::Signal)
        }
        _ => {
            out::note(&format!("{} ended without a verdict: {reason}", run.id));
            Ok(Exit::NoVerdict)
        }
    }
}

/// How to call this program again on the same folder.
fn invocation(session: &Session) -> String {
    if session.common.data == Path::new("heldout-data") {
        String::from("heldout")
    } else {
        format!("heldout --data {}", session.common.data.display())
    }
}

/// One line about a unit that has ended.
fn describe(unit: &Unit) -> String {
    let seconds = match (unit.started_at, unit.ended_at) {
        (Some(from), Some(to)) => to.duration_since(from).as_secs_f64(),
        _ => 0.0,
    };
    let field = |name: &str| unit.output.as_ref().and_then(|output| output.get(name)).cloned();
    let mut what = match unit.state {
        WorkState::Succeeded => match unit.stage.as_str() {
            "gates" => field("outcomes")
                .and_then(|outcomes| outcomes.as_array().map(Vec::len))
                .map_or_else(String::new, |count| format!("{count} gates passed")),
            "train" | "main" => trained(unit),
            "select" => format!("arm {}", text(field("arm").as_ref())),
            "freeze" => frozen(field("tables")),
            "screen" => format!("{} games", unit.total),
            _ => String::new(),
        },
        state => format!("{}: {}", state_word(state), unit.reason.clone().unwrap_or_default()),
    };
    if what.is_empty() {
        what = String::from("done");
    }
    format!("  {:<28} {what}  ({seconds:.1} s)", unit.key)
}

fn state_word(state: WorkState) -> &'static str {
    match state {
        WorkState::Pending => "pending",
        WorkState::Running => "running",
        WorkState::Succeeded => "done",
        WorkState::Failed => "FAILED",
        WorkState::Stopped => "stopped",
        WorkState::Interrupted => "interrupted",
        WorkState::Skipped => "skipped",
    }
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or("?").to_owned()
}

fn trained(unit: &Unit) -> String {
    let number = |name: &str| {
        unit.output
            .as_ref()
            .and_then(|output| output.get(name))
            .and_then(Value::as_f64)
            .unwrap_or(0.0)
    };
    format!(
        "{} {}, {} games, {} entries learned, {} points",
        thousands(number("moves")),
        measure(&unit.key),
        thousands(number("games")),
        thousands(number("touched")),
        number("points")
    )
}

fn frozen(tables: Option<Value>) -> String {
    let Some(Value::Array(tables)) = tables else { return String::new() };
    tables
        .iter()
        .map(|table| {
            let digest = text(table.get("sha256"));
            format!("{} {}", text(table.get("name")), digest.get(..12).unwrap_or(&digest))
        })
        .collect::<Vec<_>>()
        .join(", ")
}

pub(super) async fn submit(session: &Session, arguments: &SubmitArgs) -> Result<Exit, Refusal> {
    let (bytes, media) = document(&arguments.file)?;
    let options = CreateOptions { repeat: arguments.repeat, dry_run: arguments.dry_run };
    if let Some(remote) = session.remote() {
        let media = match media {
            MediaType::Toml => "application/toml",
            MediaType::Json => "application/json",
        };
        let path = format!("/experiments?repeat={}&dry_run={}", options.repeat, options.dry_run);
        let created = remote.post_document(&path, media, bytes).await?;
        let id = created["experiment"]["id"].as_str().unwrap_or_default().to_owned();
        let run = if arguments.no_start || options.dry_run {
            Value::Null
        } else {
            remote.post(&format!("/experiments/{id}/runs"), &json!({})).await?
        };
        out::json(&json!({ "created": created, "run": run }))?;
        return Ok(Exit::Done);
    }
    let app = session.open().await?;
    let created = app.create_experiment(&bytes, media, options).await;
    app.shutdown(shutdown::GRACE).await;
    out::json(&created?)?;
    if !arguments.dry_run {
        out::note("frozen; `heldout run` or a daemon starts it");
    }
    Ok(Exit::Done)
}

pub(super) async fn stop(session: &Session, arguments: &ControlArgs) -> Result<Exit, Refusal> {
    let daemon = session.daemon("stopping a run")?;
    let run = session.resolve(&arguments.run).await?;
    out::json(&daemon.post(&format!("/runs/{run}/stop"), &json!({})).await?)?;
    Ok(Exit::Done)
}

pub(super) async fn resume(session: &Session, arguments: &ControlArgs) -> Result<Exit, Refusal> {
    let run = session.resolve(&arguments.run).await?;
    if let Some(remote) = session.remote() {
        out::json(&remote.post(&format!("/runs/{run}/resume"), &json!({})).await?)?;
        return Ok(Exit::Done);
    }
    let app = session.open().await?;
    let outcome = async {
        app.resume_run(&run).await?;
        follow(session, &app, &run, false).await
    }
    .await;
    app.shutdown(shutdown::GRACE).await;
    outcome
}

pub(super) async fn validate_now(
    session: &Session,
    arguments: &ValidateArgs,
) -> Result<Exit, Refusal> {
    let daemon = session.daemon("a validation point")?;
    let run = session.resolve(&arguments.run).await?;
    let path = format!("/runs/{run}/validations");
    out::json(&daemon.post(&path, &json!({ "arm": arguments.arm })).await?)?;
    Ok(Exit::Done)
}
