//! Logs on standard error. Standard output belongs to answers.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

/// How much is logged, when the environment does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// What went wrong: commands whose answer is the point.
    Warnings,
    /// What happened: a daemon.
    Events,
}

/// Starts logging: `HELDOUT_LOG` in the syntax of tracing's filter, `HELDOUT_LOG_FORMAT=json` for
/// machines. A second call changes nothing.
pub fn init(verbosity: Verbosity) {
    let default = match verbosity {
        Verbosity::Warnings => "warn",
        Verbosity::Events => "info",
    };
    let filter = EnvFilter::try_from_env("HELDOUT_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let layer = fmt().with_env_filter(filter).with_writer(io::stderr);
    let is_json = std::env::var("HELDOUT_LOG_FORMAT").is_ok_and(|format| format == "json");
    // An embedding test may have set a subscriber of its own.
    let _ = if is_json {
        layer.json().try_init()
    } else {
        layer.with_ansi(io::stderr().is_terminal()).compact().try_init()
    };
}
