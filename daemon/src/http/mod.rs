//! The HTTP interface.
//!
//! Promised: everything that is refused is a problem (RFC 9457) with a stable code; every address is in
//! the OpenAPI document, because both come from the same list; what is read is read from the database,
//! so no page view can disturb a run. Refused: listening anywhere but on this machine, as there are no
//! tokens yet; what a page of another site makes a browser send; bodies over 1 MiB; fields and parameters
//! that nobody knows.

pub mod edge;
pub mod etag;
pub mod extract;
pub mod negotiate;
pub mod openapi;
pub mod page;
pub mod problem;
pub mod routes;
pub mod sse;

use std::net::SocketAddr;
use std::time::Duration;

use axum::{Extension, Router, middleware};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

use crate::app::App;
use crate::domain::refusal::{Code, Refusal};
use openapi::Description;

/// How long open answers may take to end once the daemon stops.
const GRACE: Duration = Duration::from_secs(5);

/// The whole interface as one service. Streams end when `stop` is cancelled.
pub fn router(app: App, stop: CancellationToken) -> Router {
    let (router, document) = routes::all().split_for_parts();
    let router =
        router.with_state(app).layer(Extension(Description::of(&document))).layer(Extension(stop));
    guarded(router)
}

/// `router`, with request ids, and with a problem for whatever it refuses, does not have, or panics in.
pub fn guarded(router: Router) -> Router {
    router
        .fallback(edge::nothing_here)
        .method_not_allowed_fallback(edge::unknown_method)
        .layer(middleware::from_fn(edge::local))
        .layer(CatchPanicLayer::custom(edge::panicked))
        .layer(middleware::from_fn(edge::stamp))
}

/// The OpenAPI document as it is served.
pub fn description() -> Description {
    Description::of(&routes::all().into_openapi())
}

/// Listens at `address`, which must be on this machine only.
///
/// # Errors
/// [`Code::InvalidRequest`] for any other address, [`Code::Locked`] when it is taken,
/// [`Code::Internal`] when it cannot be had.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, Refusal> {
    local(address)?;
    TcpListener::bind(address).await.map_err(|error| {
        let code = match error.kind() {
            std::io::ErrorKind::AddrInUse => Code::Locked,
            _ => Code::Internal,
        };
        Refusal::new(code, format!("{address} cannot be listened on: {error}"))
            .hint("choose another port, or port 0 for any that is free")
    })
}

fn local(address: SocketAddr) -> Result<(), Refusal> {
    if address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(Refusal::new(
        Code::InvalidRequest,
        format!("{address} can be reached from other machines, and there are no access tokens yet"),
    )
    .hint("listen on 127.0.0.1 or [::1]; for access from elsewhere, forward a port over SSH"))
}

/// Serves until `stop` is cancelled, then lets what is open end, for at most five seconds.
///
/// # Errors
/// [`Code::InvalidRequest`] when the listener is not on this machine only, [`Code::Internal`] when it
/// breaks.
pub async fn serve(
    app: App,
    listener: TcpListener,
    stop: CancellationToken,
) -> Result<(), Refusal> {
    let broken = |error: std::io::Error| {
        Refusal::new(Code::Internal, format!("the listener broke: {error}"))
    };
    local(listener.local_addr().map_err(broken)?)?;
    let serving = axum::serve(listener, router(app, stop.clone()))
        .with_graceful_shutdown(stop.clone().cancelled_owned());
    let overdue = async {
        stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        served = serving.into_future() => served.map_err(broken),
        () = overdue => {
            tracing::warn!("some answers did not end in time and are cut off");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_may_connect() {
        for address in ["127.0.0.1:80", "127.8.8.8:0", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
            assert_eq!(local(address.parse().unwrap()), Ok(()), "{address}");
        }
        for address in ["0.0.0.0:80", "[::]:80", "192.168.1.2:80", "[::ffff:10.0.0.1]:80"] {
            let refusal = local(address.parse().unwrap()).unwrap_err();
            assert_eq!(refusal.code, Code::InvalidRequest, "{address}");
            assert!(refusal.detail.contains("tokens"), "{refusal}");
        }
    }
}
