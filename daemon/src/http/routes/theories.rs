//! Theories: what is believed, why, and what would prove it wrong.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::extract::{Document, Query, Segment};
use super::super::page::{Limit, Listing, cut, window};
use super::super::problem::{Failure, ListRefusals, ReadRefusals, WriteRefusals};
use crate::app::App;
use crate::domain::ids::TheoryId;
use crate::domain::protocol::TheoryDraft;
use crate::domain::records::Theory;

const LIST: &str = "theories";

/// The operations on theories.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_theories, create_theory)).routes(routes!(read_theory))
}

/// Which theories.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TheoryQuery {
    /// Start after this cursor: `next` of the page before.
    after: Option<String>,
    /// Most items of the page.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 100)]
    limit: Limit,
}

/// List theories.
///
/// In pages, newest first.
#[utoipa::path(
    get, path = "/api/v1/theories", tag = "theories",
    params(TheoryQuery),
    responses((status = 200, description = "A page of theories.", body = Listing<Theory>), ListRefusals),
)]
async fn list_theories(
    State(app): State<App>,
    Query(query): Query<TheoryQuery>,
) -> Result<Json<Listing<Theory>>, Failure> {
    let page = window(LIST, query.after.as_deref(), query.limit)?;
    let rows = app.store().theories(&page).await?;
    Ok(Json(cut(LIST, rows, query.limit, |theory| theory.id.to_string())))
}

/// Record a theory.
///
/// Before any experiment tests it; a protocol then names it by its id. The same words again are the same theory:
/// nothing is recorded and the answer is 200. A protocol can also carry the text of a new theory itself.
#[utoipa::path(
    post, path = "/api/v1/theories", tag = "theories",
    request_body(
        description = "The text of the theory.",
        content((TheoryDraft = "application/json"), (String = "application/toml")),
    ),
    responses(
        (status = 200, description = "The theory, which was on record.", body = Theory),
        (status = 201, description = "The theory.", body = Theory,
            headers(("location" = String, description = "Address of the theory."))),
        WriteRefusals,
    ),
)]
async fn create_theory(State(app): State<App>, document: Document) -> Result<Response, Failure> {
    let (theory, created) = app.create_theory(&document.bytes, document.media).await?;
    if !created {
        return Ok(Json(theory).into_response());
    }
    let location = [(header::LOCATION, format!("/api/v1/theories/{}", theory.id))];
    Ok((StatusCode::CREATED, location, Json(theory)).into_response())
}

/// Read a theory.
///
/// A theory on record never changes.
#[utoipa::path(
    get, path = "/api/v1/theories/{id}", tag = "theories",
    params(("id" = TheoryId, Path, description = "Id of the theory.", example = "TH-20260905-line-tuples-bcb25133")),
    responses((status = 200, description = "The theory.", body = Theory), ReadRefusals),
)]
async fn read_theory(
    State(app): State<App>,
    Segment(id): Segment<TheoryId>,
) -> Result<Json<Theory>, Failure> {
    Ok(Json(app.store().theory(&id).await?))
}
