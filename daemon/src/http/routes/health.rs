//! Whether the daemon lives, and whether it can work.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::problem::{Failure, PlainRefusals, ReadinessRefusals};
use crate::app::App;
use crate::domain::refusal::{Code, Refusal};

/// The two probes.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(readyz))
}

/// A sign of life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Health {
    /// Always `ok`.
    #[schema(example = "ok")]
    pub status: &'static str,
    /// Version of the program.
    #[schema(example = "0.1.0")]
    pub version: &'static str,
}

/// Whether the daemon lives.
///
/// Answers as long as the process answers at all; it looks at nothing else.
#[utoipa::path(
    get, path = "/healthz", tag = "health",
    responses((status = 200, description = "It lives.", body = Health), PlainRefusals),
)]
async fn healthz() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// Something that must be so before work is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Condition {
    /// Stable name.
    #[schema(example = "database")]
    pub name: &'static str,
    /// What was looked at and found.
    pub evidence: String,
}

/// That the daemon can work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Readiness {
    /// Always true: when it is not, the answer is a problem.
    pub ready: bool,
    /// What was looked at.
    pub conditions: Vec<Condition>,
}

/// Whether the daemon can work.
///
/// Looks at what work needs: the database for writing, the archive, and that the daemon is not stopping. What is
/// missing is in the `errors` of the problem.
#[utoipa::path(
    get, path = "/readyz", tag = "health",
    responses((status = 200, description = "It can work.", body = Readiness), ReadinessRefusals),
)]
async fn readyz(State(app): State<App>) -> Result<Json<Readiness>, Failure> {
    let mut refusal = Refusal::new(Code::Stopping, "the daemon cannot take work");
    let mut conditions = Vec::new();
    let mut look = |name: &'static str, found: Result<String, String>| match found {
        Ok(evidence) => conditions.push(Condition { name, evidence }),
        Err(reason) => refusal = refusal.clone().at(format!("/conditions/{name}"), reason),
    };
    look(
        "accepting",
        if app.is_ready() { Ok("takes work".into()) } else { Err("the daemon is stopping".into()) },
    );
    look(
        "database",
        match app.store().ping().await {
            Ok(()) => Ok("reads, and can be locked for writing".into()),
            Err(refusal) => Err(refusal.detail),
        },
    );
    look(
        "archive",
        if app.archive().folder().is_dir() {
            Ok("its folder is there".into())
        } else {
            Err("the folder of stored files is gone".into())
        },
    );
    if refusal.errors.is_empty() {
        return Ok(Json(Readiness { ready: true, conditions }));
    }
    if app.is_ready() {
        refusal.code = Code::Internal;
    }
    Err(refusal.into())
}
