//! Results: verdicts with everything they rest on.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::extract::{Query, Segment};
use super::super::page::{Limit, Listing, cut, window};
use super::super::problem::{Failure, ListRefusals, ReadRefusals};
use crate::app::App;
use crate::domain::ids::ResultId;
use crate::domain::records::ResultRecord;

const LIST: &str = "results";

/// The operations on results.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_results)).routes(routes!(read_result))
}

/// Which results.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ResultQuery {
    /// Start after this cursor: `next` of the page before.
    after: Option<String>,
    /// Most items of the page.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 100)]
    limit: Limit,
}

/// List results.
///
/// In pages, newest first.
#[utoipa::path(
    get, path = "/api/v1/results", tag = "results",
    params(ResultQuery),
    responses((status = 200, description = "A page of results.", body = Listing<ResultRecord>), ListRefusals),
)]
async fn list_results(
    State(app): State<App>,
    Query(query): Query<ResultQuery>,
) -> Result<Json<Listing<ResultRecord>>, Failure> {
    let page = window(LIST, query.after.as_deref(), query.limit)?;
    let rows = app.store().results(&page).await?;
    Ok(Json(cut(LIST, rows, query.limit, |result| result.id.to_string())))
}

/// Read a result.
///
/// Validity, outcome and evidence tier are three separate fields; `analysis` holds arm summaries, contrasts, gate
/// checks and readings with their observed values.
#[utoipa::path(
    get, path = "/api/v1/results/{id}", tag = "results",
    params(("id" = ResultId, Path, description = "Id of the result.", example = "RS-20260905T215332Z-95d18a5a")),
    responses((status = 200, description = "The result.", body = ResultRecord), ReadRefusals),
)]
async fn read_result(
    State(app): State<App>,
    Segment(id): Segment<ResultId>,
) -> Result<Json<ResultRecord>, Failure> {
    Ok(Json(app.store().result(&id).await?))
}
