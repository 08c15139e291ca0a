//! When a process is asked to end.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

/// How long running work may take to reach a boundary after the first request to end.
pub const GRACE: Duration = Duration::from_mins(1);

/// Waits for SIGTERM or SIGINT and says which it was.
///
/// Without the right to listen for signals it never returns: the process then ends the hard way,
/// which it must survive anyhow.
pub async fn requested() -> &'static str {
    let listen = |kind| signal(kind).inspect_err(|error| tracing::warn!(%error, "no signals"));
    match (listen(SignalKind::terminate()), listen(SignalKind::interrupt())) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            }
        }
        _ => std::future::pending().await,
    }
}
