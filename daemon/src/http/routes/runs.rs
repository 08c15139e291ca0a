//! Runs: an experiment being carried out.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::extract::{Json as Body, Query, Segment};
use super::super::page::{Limit, Listing, cut, window};
use super::super::problem::{ActRefusals, Failure, ListRefusals, ReadRefusals, WriteRefusals};
use crate::app::{App, Validated};
use crate::domain::ids::{ExperimentId, RunId};
use crate::domain::records::{Run, RunState};
use crate::exec::status::RunStatus;
use crate::store::RunFilter;

const LIST: &str = "runs";

/// The operations on runs.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_runs))
        .routes(routes!(read_run))
        .routes(routes!(stop_run))
        .routes(routes!(resume_run))
        .routes(routes!(request_validation))
}

/// Which runs.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RunQuery {
    /// Only those of this experiment.
    experiment: Option<ExperimentId>,
    /// Only those in this state.
    state: Option<RunState>,
    /// Start after this cursor: `next` of the page before.
    after: Option<String>,
    /// Most items of the page.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 100)]
    limit: Limit,
}

/// List runs.
///
/// In pages, newest first. State (how far it got), validity (whether it followed the protocol) and outcome (what
/// the data said; in the result) are separate.
#[utoipa::path(
    get, path = "/api/v1/runs", tag = "runs",
    params(RunQuery),
    responses((status = 200, description = "A page of runs.", body = Listing<Run>), ListRefusals),
)]
async fn list_runs(
    State(app): State<App>,
    Query(query): Query<RunQuery>,
) -> Result<Json<Listing<Run>>, Failure> {
    let page = window(LIST, query.after.as_deref(), query.limit)?;
    let filter = RunFilter { experiment: query.experiment, state: query.state };
    let rows = app.store().runs(&filter, &page).await?;
    Ok(Json(cut(LIST, rows, query.limit, |run| run.id.to_string())))
}

/// Read a run.
///
/// The run with its units of work, validation points, leases, stored games per arm and, once there is one, its
/// result.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}", tag = "runs",
    params(("id" = RunId, Path, description = "Id of the run.", example = "RUN-20260905T193006Z-4fbeb4e5")),
    responses((status = 200, description = "The run and where it stands.", body = RunStatus), ReadRefusals),
)]
async fn read_run(
    State(app): State<App>,
    Segment(id): Segment<RunId>,
) -> Result<Json<RunStatus>, Failure> {
    Ok(Json(app.status(&id).await?))
}

/// Stop a run.
///
/// At the next boundary: training writes a checkpoint, a screen ends the games that are on. Can be resumed.
#[utoipa::path(
    post, path = "/api/v1/runs/{id}/stop", tag = "runs",
    params(("id" = RunId, Path, description = "Id of the run.", example = "RUN-20260905T193006Z-4fbeb4e5")),
    responses((status = 200, description = "The run.", body = Run), ActRefusals),
)]
async fn stop_run(
    State(app): State<App>,
    Segment(id): Segment<RunId>,
) -> Result<Json<Run>, Failure> {
    Ok(Json(app.stop_run(&id).await?))
}

/// Resume a run.
///
/// Training continues from the last whole checkpoint, screens with the games that are missing. A held-out block
/// that this run opened stays open for it and for nobody else.
#[utoipa::path(
    post, path = "/api/v1/runs/{id}/resume", tag = "runs",
    params(("id" = RunId, Path, description = "Id of the run.", example = "RUN-20260905T193006Z-4fbeb4e5")),
    responses((status = 200, description = "The run.", body = Run), ActRefusals),
)]
async fn resume_run(
    State(app): State<App>,
    Segment(id): Segment<RunId>,
) -> Result<Json<Run>, Failure> {
    Ok(Json(app.resume_run(&id).await?))
}

/// Which arm is to be validated.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ValidationRequest {
    /// A training arm, `main` for the long run; the one that trains now when absent.
    #[serde(default)]
    #[schema(example = "main")]
    pub arm: Option<String>,
}

/// Ask for a validation point.
///
/// At the next boundary between chunks. Asking twice for the same number of moves makes one point: a late or a
/// double trigger changes nothing.
#[utoipa::path(
    post, path = "/api/v1/runs/{id}/validations", tag = "runs",
    params(("id" = RunId, Path, description = "Id of the run.", example = "RUN-20260905T193006Z-4fbeb4e5")),
    request_body = ValidationRequest,
    responses(
        (status = 200, description = "There is such a point, or it was asked for before.", body = Validated),
        (status = 202, description = "The point will be made.", body = Validated),
        WriteRefusals,
    ),
)]
async fn request_validation(
    State(app): State<App>,
    Segment(id): Segment<RunId>,
    Body(body): Body<ValidationRequest>,
) -> Result<(StatusCode, Json<Validated>), Failure> {
    let validated = app.validate_now(&id, body.arm).await?;
    let status = match validated {
        Validated::Requested { created: true, .. } => StatusCode::ACCEPTED,
        Validated::Requested { .. } | Validated::Exists { .. } => StatusCode::OK,
    };
    Ok((status, Json(validated)))
}
