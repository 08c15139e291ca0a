//! Experiments: protocols that were frozen before any of their data was seen.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::etag;
use super::super::extract::{Document, Json as Body, Query, Segment};
use super::super::page::{Limit, Listing, cut, window};
use super::super::problem::{
    ActRefusals, Failure, ListRefusals, ProtocolRefusals, ReadRefusals, WriteRefusals,
};
use crate::app::{App, CreateOptions, Created};
use crate::domain::ids::ExperimentId;
use crate::domain::records::{Experiment, Run};

const LIST: &str = "experiments";

/// The operations on experiments.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_experiments, create_experiment))
        .routes(routes!(read_experiment))
        .routes(routes!(read_protocol))
        .routes(routes!(withdraw_experiment))
        .routes(routes!(start_run))
}

/// Which experiments.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExperimentQuery {
    /// Start after this cursor: `next` of the page before.
    after: Option<String>,
    /// Most items of the page.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 100)]
    limit: Limit,
}

/// List experiments.
///
/// In pages, newest first, with those that were withdrawn.
#[utoipa::path(
    get, path = "/api/v1/experiments", tag = "experiments",
    params(ExperimentQuery),
    responses((status = 200, description = "A page of experiments.", body = Listing<Experiment>), ListRefusals),
)]
async fn list_experiments(
    State(app): State<App>,
    Query(query): Query<ExperimentQuery>,
) -> Result<Json<Listing<Experiment>>, Failure> {
    let page = window(LIST, query.after.as_deref(), query.limit)?;
    let rows = app.store().experiments(&page).await?;
    Ok(Json(cut(LIST, rows, query.limit, |experiment| experiment.id.to_string())))
}

/// How an experiment is created.
#[derive(Debug, Clone, Copy, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CreateQuery {
    /// Answer as usual, but store nothing and reserve nothing.
    #[serde(default)]
    #[param(default = false)]
    dry_run: bool,
    /// Make a new experiment of a protocol that is frozen already, on fresh seeds.
    #[serde(default)]
    #[param(default = false)]
    repeat: bool,
}

/// Create an experiment.
///
/// Freezes a protocol: fills its defaults, hashes its canonical form (RFC 8785, SHA-256) and reserves all its
/// seed blocks, in one transaction. The same protocol again is the same experiment: nothing is made and the
/// answer is 200 with `created` false, so a request whose answer was lost can simply be repeated. All faults of
/// a document are reported together, each with a JSON pointer.
#[utoipa::path(
    post, path = "/api/v1/experiments", tag = "experiments",
    params(CreateQuery),
    request_body(
        description = "A protocol, at most 1 MiB; `protocols/README.md` describes the format.",
        content((serde_json::Value = "application/json"), (String = "application/toml")),
    ),
    responses(
        (status = 200, description = "Nothing was made: the protocol is frozen already, or this was a dry run.", body = Created),
        (status = 201, description = "The experiment, its leases, and what a run will cost.", body = Created,
            headers(("location" = String, description = "Address of the experiment."))),
        ProtocolRefusals,
    ),
)]
async fn create_experiment(
    State(app): State<App>,
    Query(query): Query<CreateQuery>,
    document: Document,
) -> Result<Response, Failure> {
    let options = CreateOptions { repeat: query.repeat, dry_run: query.dry_run };
    let created = app.create_experiment(&document.bytes, document.media, options).await?;
    let location = created
        .experiment
        .as_ref()
        .filter(|_| created.created)
        .map(|experiment| format!("/api/v1/experiments/{}", experiment.id));
    Ok(match location {
        Some(location) => {
            (StatusCode::CREATED, [(header::LOCATION, location)], Json(created)).into_response()
        }
        None => Json(created).into_response(),
    })
}

/// Read an experiment.
///
/// The frozen part never changes; an experiment can only be withdrawn, which leaves everything readable.
#[utoipa::path(
    get, path = "/api/v1/experiments/{id}", tag = "experiments",
    params(("id" = ExperimentId, Path, description = "Id of the experiment.", example = "EX-20260905-line-tuples-535b2620")),
    responses((status = 200, description = "The experiment.", body = Experiment), ReadRefusals),
)]
async fn read_experiment(
    State(app): State<App>,
    Segment(id): Segment<ExperimentId>,
) -> Result<Json<Experiment>, Failure> {
    Ok(Json(app.store().experiment(&id).await?))
}

/// Read the frozen protocol.
///
/// The canonical bytes as they were hashed: `sha256sum` of this body is `protocol_sha256`. The entity tag is
/// that digest.
#[utoipa::path(
    get, path = "/api/v1/experiments/{id}/protocol", tag = "experiments",
    params(
        ("id" = ExperimentId, Path, description = "Id of the experiment.", example = "EX-20260905-line-tuples-535b2620"),
        ("if-none-match" = Option<String>, Header, description = "Entity tags that the client has."),
    ),
    responses(
        (status = 200, description = "The canonical bytes.", body = serde_json::Value,
            headers(("etag" = String, description = "The digest, in quotes."))),
        (status = 304, description = "The client has them."),
        ReadRefusals,
    ),
)]
async fn read_protocol(
    State(app): State<App>,
    Segment(id): Segment<ExperimentId>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let experiment = app.store().experiment(&id).await?;
    let bytes = app.store().protocol_bytes(&id).await?;
    let body = ([(header::CONTENT_TYPE, "application/json")], bytes);
    Ok(etag::immutable(&headers, &experiment.protocol_sha256, body))
}

/// Why something is taken back.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// For the record: 1 to 2000 characters, not only blanks.
    #[schema(
        min_length = 1,
        max_length = 2000,
        pattern = r"\S",
        example = "the layout was a slip of the pen"
    )]
    #[serde(deserialize_with = "reason")]
    pub reason: String,
}

fn reason<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.trim().is_empty() || text.chars().count() > 2000 {
        return Err(serde::de::Error::custom(
            "a reason has 1 to 2000 characters and is not only blanks",
        ));
    }
    Ok(text)
}

/// Withdraw an experiment.
///
/// Marks it with a reason: no run can be started any more. Nothing is deleted; seeds that nobody has read are
/// given back.
#[utoipa::path(
    post, path = "/api/v1/experiments/{id}/withdraw", tag = "experiments",
    params(("id" = ExperimentId, Path, description = "Id of the experiment.", example = "EX-20260905-line-tuples-535b2620")),
    request_body = Reason,
    responses((status = 200, description = "The experiment, withdrawn.", body = Experiment), WriteRefusals),
)]
async fn withdraw_experiment(
    State(app): State<App>,
    Segment(id): Segment<ExperimentId>,
    Body(body): Body<Reason>,
) -> Result<Json<Experiment>, Failure> {
    Ok(Json(app.store().withdraw_experiment(&id, &body.reason).await?))
}

/// Start a run.
///
/// Queues a run of the experiment and answers at once; follow it under `/runs/{id}` or in the event stream.
/// The held-out block is opened by the run itself, once, after every table is frozen.
#[utoipa::path(
    post, path = "/api/v1/experiments/{id}/runs", tag = "runs",
    params(("id" = ExperimentId, Path, description = "Id of the experiment.", example = "EX-20260905-line-tuples-535b2620")),
    responses(
        (status = 201, description = "The run.", body = Run,
            headers(("location" = String, description = "Address of the run."))),
        ActRefusals,
    ),
)]
async fn start_run(
    State(app): State<App>,
    Segment(id): Segment<ExperimentId>,
) -> Result<Response, Failure> {
    let run = app.start_run(&id).await?;
    let location = [(header::LOCATION, format!("/api/v1/runs/{}", run.id))];
    Ok((StatusCode::CREATED, location, Json(run)).into_response())
}
