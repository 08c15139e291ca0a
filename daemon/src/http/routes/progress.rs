//! What a run has done so far: units of work, training curves, validation points, contrasts.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::extract::{Query, Segment};
use super::super::problem::{ActRefusals, Failure, ReadRefusals};
use crate::app::{App, UnitProgress};
use crate::domain::ids::{ResultId, RunId};
use crate::domain::records::{Artifact, Chunk, Point, ResultRecord, Unit};
use crate::domain::refusal::{Code, Refusal};
use crate::store::Store;

/// The operations on the parts of a run.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_units))
        .routes(routes!(list_progress))
        .routes(routes!(list_chunks))
        .routes(routes!(list_points))
        .routes(routes!(list_contrasts))
        .routes(routes!(list_run_artifacts))
}

/// List the units of a run.
///
/// All of them, in the order of the plan.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}/units", tag = "runs",
    params(("id" = RunId, Path, description = "Id of the run.", example = "RUN-20260905T193006Z-4fbeb4e5")),
    responses((status = 200, description = "The units.", body = Vec<Unit>), ReadRefusals),
)]
async fn list_units(
    State(app): State<App>,
    Segment(id): Segment<RunId>,
) -> Result<Json<Vec<Unit>>, Failure> {
    app.store().run(&id).await?;
    Ok(Json(app.store().units(&id).await?))
}

/// List the progress of a run.
///
/// How far the units at work are, from memory and so fresher than the units on record. Empty when nothing of the
/// run is at work.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}/progress", tag = "runs",
    params(("id" = RunId, Path, description = "Id of the run.", example = "RUN-20260905T193006Z-4fbeb4e5")),
    responses((status = 200, description = "The units at work.", body = Vec<UnitProgress>), ReadRefusals),
)]
async fn list_progress(
    State(app): State<App>,
    Segment(id): Segment<RunId>,
) -> Result<Json<Vec<UnitProgress>>, Failure> {
    app.store().run(&id).await?;
    Ok(Json(app.progress(&id)))
}

/// Which arm.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ArmQuery {
    /// Only this training arm; `main` for the long run.
    arm: Option<String>,
}

/// The arms that are asked for: one, or all that have begun.
async fn arms(store: &Store, run: &RunId, arm: Option<String>) -> Result<Vec<String>, Refusal> {
    store.run(run).await?;
    match arm {
        Some(arm) => Ok(vec![arm]),
        None => store.curve_arms(run).await,
    }
}

/// List the chunks of a run.
///
/// The training curves: one row per chunk of moves, by arm and then by moves. Where a later attempt went over a
/// stretch again, its rows stand for the earlier ones; each row names its attempt.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}/chunks", tag = "runs",
    params(("id" = RunId, Path, description = "Id of the run.", example = "RUN-20260905T193006Z-4fbeb4e5"), ArmQuery),
    responses((status = 200, description = "The chunks.", body = Vec<Chunk>), ReadRefusals),
)]
async fn list_chunks(
    State(app): State<App>,
    Segment(id): Segment<RunId>,
    Query(query): Query<ArmQuery>,
) -> Result<Json<Vec<Chunk>>, Failure> {
    let mut chunks = Vec::new();
    for arm in arms(app.store(), &id, query.arm).await? {
        chunks.extend(app.store().chunks(&id, &arm).await?);
    }
    Ok(Json(chunks))
}

/// List the validation points of a run.
///
/// By arm and then by moves. Where a later attempt went over a stretch again, its points stand for the earlier
/// ones; each point names its attempt.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}/points", tag = "runs",
    params(("id" = RunId, Path, description = "Id of the run.", example = "RUN-20260905T193006Z-4fbeb4e5"), ArmQuery),
    responses((status = 200, description = "The points.", body = Vec<Point>), ReadRefusals),
)]
async fn list_points(
    State(app): State<App>,
    Segment(id): Segment<RunId>,
    Query(query): Query<ArmQuery>,
) -> Result<Json<Vec<Point>>, Failure> {
    let mut points = Vec::new();
    for arm in arms(app.store(), &id, query.arm).await? {
        points.extend(app.store().points(&id, &arm).await?);
    }
    Ok(Json(points))
}

/// The contrasts of a run, from its result.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Contrasts {
    /// The result they belong to.
    pub result_id: ResultId,
    /// Paired comparisons of two arms on the same seeds.
    #[schema(value_type = Vec<Object>)]
    pub contrasts: Vec<Value>,
}

/// The contrasts of a result, each with the names of its arms. Those of an imported result are in the
/// words of its publication, by name; they come in the order of the names.
fn contrasts(result: &ResultRecord) -> Vec<Value> {
    if let Some(Value::Array(own)) = result.analysis.get("contrasts") {
        return own.clone();
    }
    let published = result.analysis.pointer("/screen/contrasts").and_then(Value::as_object);
    let arms = |mut contrast: Value| {
        for (theirs, ours) in [("candidateArm", "candidate"), ("referenceArm", "reference")] {
            if let Some(fields) = contrast.as_object_mut()
                && let Some(arm) = fields.remove(theirs)
            {
                fields.insert(ours.to_owned(), arm);
            }
        }
        contrast
    };
    published.map(|all| all.values().cloned().map(arms).collect()).unwrap_or_default()
}

/// List the contrasts of a run.
///
/// Paired comparisons of two arms with intervals, as they were computed from the complete screen. Refused with
/// `incomplete` while there is no result.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}/contrasts", tag = "runs",
    params(("id" = RunId, Path, description = "Id of the run.", example = "RUN-20260905T193006Z-4fbeb4e5")),
    responses((status = 200, description = "The contrasts.", body = Contrasts), ActRefusals),
)]
async fn list_contrasts(
    State(app): State<App>,
    Segment(id): Segment<RunId>,
) -> Result<Json<Contrasts>, Failure> {
    app.store().run(&id).await?;
    let result = app.store().result_of(&id).await?.ok_or_else(|| {
        Refusal::new(Code::Incomplete, format!("run {id} has no result yet"))
            .hint("contrasts are computed when every planned game is there")
    })?;
    let contrasts = contrasts(&result);
    Ok(Json(Contrasts { result_id: result.id, contrasts }))
}

/// List the artefacts of a run.
///
/// Tables, checkpoints and exports that were stored for it, oldest first.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}/artifacts", tag = "artifacts",
    params(("id" = RunId, Path, description = "Id of the run.", example = "RUN-20260905T193006Z-4fbeb4e5")),
    responses((status = 200, description = "The artefacts.", body = Vec<Artifact>), ReadRefusals),
)]
async fn list_run_artifacts(
    State(app): State<App>,
    Segment(id): Segment<RunId>,
) -> Result<Json<Vec<Artifact>>, Failure> {
    app.store().run(&id).await?;
    Ok(Json(app.store().artifacts(&id).await?))
}
