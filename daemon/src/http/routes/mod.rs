//! One file per noun; each says at its `router` which operations it has. An operation is added there
//! with `routes!`, which takes its address, method and description from the handler: there is no other
//! way in, so the router and the OpenAPI document cannot drift apart.

#![expect(
    unused_qualifications,
    reason = "utoipa writes the parameter types of a handler a second time, by their whole path"
)]

pub mod artifacts;
pub mod events;
pub mod experiments;
pub mod games;
pub mod health;
pub mod leases;
pub mod machines;
pub mod openapi;
pub mod problems;
pub mod progress;
pub mod results;
pub mod runs;
pub mod theories;

use utoipa_axum::router::OpenApiRouter;

use crate::app::App;

/// Every operation, with its description.
pub fn all() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(super::openapi::base())
        .merge(theories::router())
        .merge(experiments::router())
        .merge(leases::router())
        .merge(runs::router())
        .merge(progress::router())
        .merge(games::router())
        .merge(results::router())
        .merge(artifacts::router())
        .merge(machines::router())
        .merge(events::router())
        .merge(problems::router())
        .merge(health::router())
        .merge(openapi::router())
}
