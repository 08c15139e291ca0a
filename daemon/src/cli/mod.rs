//! The command line. Answers go to standard output, everything else to standard error.
//!
//! Exit codes: 0 done; 1 a verdict against what was asked (`verify` and `gates` that fail, `run
//! --require-pass` without a pass); 2 the command line or the environment is wrong; 3 refused, with
//! the reason (bad protocol, unknown id, folder in use, a run that ended without a verdict); 4
//! something failed inside; 130 stopped by a signal before the end. A run whose gate fails is a
//! successful run: 0.

mod bars;
mod bench;
mod checks;
mod experiment;
mod export;
mod out;
mod reading;
mod remote;
mod serve;
mod verdict;
mod verifying;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use engine_core::instructions::InstructionSet;
use engine_core::ntuple::Layout;

use crate::app::App;
use crate::artifacts::Archive;
use crate::config::Config;
use crate::domain::ids::RunId;
use crate::domain::refusal::{Code, Refusal};
use crate::exec::local::Pools;
use crate::exec::unit::internal;
use crate::machine::capacity;
use crate::store::Store;
use crate::telemetry::{self, Verbosity};

/// Preregistered game-AI experiments whose held-out games are opened exactly once.
#[derive(Debug, Parser)]
#[command(
    name = "heldout",
    version,
    after_help = "Exit codes: 0 done; 1 a verdict against what was asked (verify, gates, run \
                  --require-pass); 2 wrong command line; 3 refused, with the reason; 4 internal \
                  failure; 130 stopped by a signal.\n\nStart with: heldout run protocols/quickstart.toml"
)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// What every command understands.
#[derive(Debug, Clone, Args)]
struct Common {
    /// Data folder: records, stored tables, unfinished work.
    #[arg(
        long,
        global = true,
        env = "HELDOUT_DATA",
        default_value = "heldout-data",
        value_name = "DIR"
    )]
    data: PathBuf,
    /// Talk to the daemon at this address instead of opening the data folder.
    #[arg(long, global = true, env = "HELDOUT_URL", value_name = "URL")]
    url: Option<String>,
    /// Answer in JSON on standard output.
    #[arg(long, global = true)]
    json: bool,
    /// Worker threads; as many as this process may use when absent.
    #[arg(long, global = true, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a protocol to its verdict, in this process.
    #[command(
        after_help = "Example:\n  heldout run protocols/quickstart.toml\n\nThe same file again \
                            draws fresh seed blocks and says so; a run that was stopped is continued."
    )]
    Run(experiment::RunArgs),
    /// Serve the HTTP interface and carry out runs.
    #[command(after_help = "Example:\n  heldout serve --listen 127.0.0.1:7878")]
    Serve(serve::ServeArgs),
    /// Freeze a protocol; with --url also start it there.
    #[command(
        after_help = "Example:\n  heldout submit protocols/quickstart.toml --url http://127.0.0.1:7878"
    )]
    Submit(experiment::SubmitArgs),
    /// Show runs, or one run.
    #[command(after_help = "Example:\n  heldout status RUN-20260905T193006Z-4fbeb4e5")]
    Status(reading::StatusArgs),
    /// Follow the events of a run, or of everything.
    #[command(
        after_help = "Example:\n  heldout watch RUN-20260905T193006Z-4fbeb4e5 --url http://127.0.0.1:7878"
    )]
    Watch(reading::WatchArgs),
    /// Stop a run of a daemon at its next boundary.
    #[command(
        after_help = "Example:\n  heldout stop RUN-20260905T193006Z-4fbeb4e5 --url http://127.0.0.1:7878"
    )]
    Stop(experiment::ControlArgs),
    /// Continue a stopped or interrupted run.
    #[command(after_help = "Example:\n  heldout resume RUN-20260905T193006Z-4fbeb4e5")]
    Resume(experiment::ControlArgs),
    /// Ask a training arm of a daemon for a validation point at its next boundary.
    #[command(
        after_help = "Example:\n  heldout validate-now RUN-20260905T193006Z-4fbeb4e5 --arm main --url http://127.0.0.1:7878"
    )]
    ValidateNow(experiment::ValidateArgs),
    /// Run the CHECK gates of this build.
    #[command(after_help = "Example:\n  heldout gates --full")]
    Gates(checks::GatesArgs),
    /// Measure how fast this build is on this machine.
    #[command(
        after_help = "Example:\n  heldout bench --quick\n\nThe instructions in use are chosen by what the \
                            processor has; HELDOUT_INSTRUCTIONS=portable measures the plainest ones."
    )]
    Bench(bench::BenchArgs),
    /// List seed leases and who opened them.
    #[command(after_help = "Example:\n  heldout leases --json")]
    Leases,
    /// Re-hash, recompute and replay a run.
    #[command(
        after_help = "Example:\n  heldout verify RUN-20260905T193006Z-4fbeb4e5 --replay fair-d3s7 --games 0..64"
    )]
    Verify(verifying::VerifyArgs),
    /// Take the published runs of a folder over, marked as imported.
    #[command(after_help = "Example:\n  heldout import protocols/published")]
    Import(verifying::ImportArgs),
    /// Write the rows of a run.
    #[command(
        after_help = "Example:\n  heldout export RUN-20260905T193006Z-4fbeb4e5 --format csv > games.csv"
    )]
    Export(export::ExportArgs),
    /// Print the OpenAPI description of the HTTP interface.
    #[command(after_help = "Example:\n  heldout openapi > openapi.json")]
    Openapi,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    /// Done.
    Done,
    /// A verdict against what was asked.
    Negative,
    /// A run that ended without a verdict.
    NoVerdict,
    /// A signal ended it early.
    Signal,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Negative => 1,
            Exit::NoVerdict => 3,
            Exit::Signal => 130,
        })
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            // A closed pipe is no reason to complain about.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    if let Err(error) = InstructionSet::forced() {
        out::note(&error.to_string());
        return ExitCode::from(2);
    }
    telemetry::init(match cli.command {
        Command::Serve(_) => Verbosity::Events,
        _ => Verbosity::Warnings,
    });
    // The worker threads exist before the runtime does: neither may ever wait for the other's.
    let threads = cli.common.threads.unwrap_or_else(|| capacity().threads);
    let outcome = Pools::new(threads).and_then(|pools| {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| internal("starting the runtime", &error))?;
        runtime
            .block_on(dispatch(cli.command, Session { common: cli.common, pools: Arc::new(pools) }))
    });
    match outcome {
        Ok(exit) => exit.into(),
        Err(refusal) => {
            out::refusal(&refusal);
            ExitCode::from(if refusal.code == Code::Internal { 4 } else { 3 })
        }
    }
}

/// The whole command line as clap knows it, for tests of the help texts.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Whether these arguments parse, for tests.
///
/// # Errors
/// What clap says.
pub fn parses(arguments: &[&str]) -> Result<(), clap::Error> {
    let matches = Cli::command().try_get_matches_from(arguments)?;
    Cli::from_arg_matches(&matches).map(|_| ())
}

async fn dispatch(command: Command, session: Session) -> Result<Exit, Refusal> {
    match command {
        Command::Run(arguments) => experiment::run(&session, &arguments).await,
        Command::Serve(arguments) => serve::serve(&session, &arguments).await,
        Command::Submit(arguments) => experiment::submit(&session, &arguments).await,
        Command::Status(arguments) => reading::status(&session, &arguments).await,
        Command::Watch(arguments) => reading::watch(&session, &arguments).await,
        Command::Stop(arguments) => experiment::stop(&session, &arguments).await,
        Command::Resume(arguments) => experiment::resume(&session, &arguments).await,
        Command::ValidateNow(arguments) => experiment::validate_now(&session, &arguments).await,
        Command::Gates(arguments) => checks::gates(&session, &arguments),
        Command::Bench(arguments) => bench::bench(&session, &arguments),
        Command::Leases => reading::leases(&session).await,
        Command::Verify(arguments) => verifying::verify(&session, &arguments).await,
        Command::Import(arguments) => verifying::import(&session, &arguments).await,
        Command::Export(arguments) => export::export(&session, &arguments).await,
        Command::Openapi => serve::openapi(),
    }
}

/// What every command works with.
#[derive(Debug)]
struct Session {
    common: Common,
    pools: Arc<Pools>,
}

impl Session {
    fn config(&self) -> Config {
        Config { threads: self.common.threads, ..Config::new(&self.common.data) }
    }

    /// Opens the data folder for writing.
    async fn open(&self) -> Result<App, Refusal> {
        App::open_with(self.config(), Arc::clone(&self.pools)).await
    }

    /// Opens the records for reading, beside whoever writes.
    async fn read(&self) -> Result<(Store, Archive), Refusal> {
        let config = self.config();
        let store = Store::open_read_only(&config.database(), config.clock.clone()).await?;
        Ok((store, Archive::new(config.artifacts(), config.clock)))
    }

    fn remote(&self) -> Option<remote::Remote> {
        self.common.url.as_deref().map(remote::Remote::new)
    }

    /// The address to talk to, for commands that only a daemon can carry out.
    fn daemon(&self, what: &str) -> Result<remote::Remote, Refusal> {
        self.remote().ok_or_else(|| {
            Refusal::new(
                Code::InvalidRequest,
                format!("{what} needs the daemon that carries the run out"),
            )
            .hint("Name it with --url, like --url http://127.0.0.1:7878.")
        })
    }
}

/// The layouts named on the command line.
fn layouts(texts: &[String]) -> Result<Vec<Layout>, Refusal> {
    let layout = |(index, text): (usize, &String)| {
        text.parse().map_err(|error| {
            Refusal::new(Code::InvalidRequest, format!("layout {text:?}: {error}"))
                .at(format!("/layout/{index}"), "is not a layout")
        })
    };
    texts.iter().enumerate().map(layout).collect()
}

/// A run as it is named on the command line: by its id, or as the latest one.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Named {
    Id(RunId),
    Latest,
}

/// An id, or `latest`.
fn run_id(text: &str) -> Result<Named, String> {
    if text == "latest" {
        return Ok(Named::Latest);
    }
    text.parse()
        .map(Named::Id)
        .map_err(|error: crate::domain::ids::IdError| format!("{error}, or say latest"))
}

impl Session {
    /// The run that is meant. The latest is the one that was created last.
    async fn resolve(&self, named: &Named) -> Result<RunId, Refusal> {
        if let Named::Id(id) = named {
            return Ok(id.clone());
        }
        let newest = if let Some(remote) = self.remote() {
            remote.get("/runs?limit=1").await?["items"][0]["id"]
                .as_str()
                .and_then(|id| id.parse::<RunId>().ok())
        } else {
            let (store, _) = self.read().await?;
            let page = crate::store::Page { after: None, limit: 1 };
            let runs = store.runs(&crate::store::RunFilter::default(), &page).await?;
            runs.into_iter().next().map(|run| run.id)
        };
        newest.ok_or_else(|| Refusal::new(Code::NotFound, "there is no run yet"))
    }
}
