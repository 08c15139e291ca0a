//! `heldout serve` and `heldout openapi`.

use std::net::SocketAddr;

use clap::Args;

use super::{Exit, Session, out};
use crate::domain::refusal::{Code, Refusal};
use crate::exec::unit::internal;
use crate::shutdown;

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Where to listen. Only loopback addresses: access tokens do not exist yet.
    #[arg(long, env = "HELDOUT_LISTEN", default_value = "127.0.0.1:7878", value_name = "ADDRESS")]
    listen: SocketAddr,
}

/// Serves until SIGTERM or SIGINT; running work then has the grace period to reach a boundary.
pub(super) async fn serve(session: &Session, arguments: &ServeArgs) -> Result<Exit, Refusal> {
    if !arguments.listen.ip().is_loopback() {
        return Err(Refusal::new(
            Code::InvalidRequest,
            format!(
                "{} can be reached from other machines, and there are no access tokens yet",
                arguments.listen
            ),
        )
        .hint("Listen on 127.0.0.1 and put a proxy that asks who is there in front of it."));
    }
    let app = session.open().await?;
    let listener = tokio::net::TcpListener::bind(arguments.listen)
        .await
        .map_err(|error| internal("listening", &error))?;
    let address = listener.local_addr().map_err(|error| internal("listening", &error))?;
    out::note(&format!(
        "heldout listens on http://{address} and keeps its data in {}",
        session.common.data.display()
    ));
    let stopping = app.clone();
    let served = axum::serve(listener, axum::Router::new()).with_graceful_shutdown(async move {
        let signal = shutdown::requested().await;
        tracing::info!(signal, "stopping");
        stopping.shutdown(shutdown::GRACE).await;
    });
    served.await.map_err(|error| internal("serving", &error))?;
    Ok(Exit::Done)
}

/// Prints the OpenAPI description.
pub(super) fn openapi() -> Result<Exit, Refusal> {
    out::json(&"todo")?;
    Ok(Exit::Done)
}
