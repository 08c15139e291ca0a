//! `heldout serve` and `heldout openapi`.

use std::net::SocketAddr;

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::{Exit, Session, out};
use crate::domain::refusal::Refusal;
use crate::exec::unit::internal;
use crate::{http, shutdown};

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Where to listen. Only loopback addresses: access tokens do not exist yet.
    #[arg(long, env = "HELDOUT_LISTEN", default_value = "127.0.0.1:7878", value_name = "ADDRESS")]
    listen: SocketAddr,
}

/// Serves until SIGTERM or SIGINT; running work then has the grace period to reach a boundary.
pub(super) async fn serve(session: &Session, arguments: &ServeArgs) -> Result<Exit, Refusal> {
    // Before the data folder is touched: an address that is refused or taken changes nothing.
    let listener = http::bind(arguments.listen).await?;
    let app = session.open().await?;
    let address = listener.local_addr().map_err(|error| internal("listening", &error))?;
    out::note(&format!(
        "heldout listens on http://{address} and keeps its data in {}",
        session.common.data.display()
    ));
    let stop = CancellationToken::new();
    let asked = stop.clone();
    let signals = tokio::spawn(async move {
        let signal = shutdown::requested().await;
        tracing::info!(signal, "stopping");
        asked.cancel();
    });
    let served = http::serve(app.clone(), listener, stop).await;
    signals.abort();
    app.shutdown(shutdown::GRACE).await;
    served.map(|()| Exit::Done)
}

/// Prints the OpenAPI description: what a daemon serves at `/openapi.json`.
pub(super) fn openapi() -> Result<Exit, Refusal> {
    let text = http::description().bytes;
    let document: serde_json::Value = serde_json::from_slice(&text)
        .map_err(|error| internal("rendering the description", &error))?;
    out::json(&document)?;
    Ok(Exit::Done)
}
