//! Leases: who may read which seeds.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::extract::{Json as Body, Query, Segment};
use super::super::page::{Limit, Listing, cut, window};
use super::super::problem::{Failure, ListRefusals, PlainRefusals, ReadRefusals, WriteRefusals};
use super::experiments::Reason;
use crate::app::App;
use crate::domain::ids::{ExperimentId, LeaseId};
use crate::domain::protocol::Role;
use crate::domain::records::{Lease, LeaseState};
use crate::domain::refusal::{Code, Refusal};
use crate::domain::seed_range::{Seed, SeedRange};
use crate::store::{Ask, BlockedRange, LeaseFilter, Reading};

const LIST: &str = "leases";

/// The operations on leases.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_leases, reserve_lease))
        .routes(routes!(read_lease))
        .routes(routes!(list_readings))
        .routes(routes!(cancel_lease))
        .routes(routes!(list_blocked_ranges))
}

/// Which leases.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LeaseQuery {
    /// Only those of this experiment.
    experiment: Option<ExperimentId>,
    /// Only those in this state.
    state: Option<LeaseState>,
    /// Only those of this role.
    role: Option<Role>,
    /// Start after this cursor: `next` of the page before.
    after: Option<String>,
    /// Most items of the page.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 100)]
    limit: Limit,
}

/// List leases.
///
/// In pages, by their seeds. Leases that are not cancelled are disjoint, whatever their role.
#[utoipa::path(
    get, path = "/api/v1/leases", tag = "leases",
    params(LeaseQuery),
    responses((status = 200, description = "A page of leases.", body = Listing<Lease>), ListRefusals),
)]
async fn list_leases(
    State(app): State<App>,
    Query(query): Query<LeaseQuery>,
) -> Result<Json<Listing<Lease>>, Failure> {
    let page = window(LIST, query.after.as_deref(), query.limit)?;
    let filter = LeaseFilter { experiment: query.experiment, state: query.state, role: query.role };
    let rows = app.store().leases(&filter, &page).await?;
    Ok(Json(cut(LIST, rows, query.limit, |lease| lease.id.to_string())))
}

/// A block to be reserved beside those of the protocol.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLease {
    /// The experiment it is for.
    pub experiment: ExperimentId,
    /// Name of the block, unique in the experiment: lower-case words joined by hyphens, at most 64 characters.
    #[schema(pattern = "^[a-z0-9]+(-[a-z0-9]+)*$", max_length = 64, example = "spare")]
    pub name: String,
    /// What the seeds may be used for.
    pub role: Role,
    /// First seed; absent when the daemon draws the next free aligned block.
    #[schema(value_type = Option<String>, pattern = "^0x[0-9a-fA-F]{1,8}$", example = "0x20000000")]
    #[serde(default)]
    pub start: Option<Seed>,
    /// How many seeds.
    #[schema(minimum = 1, example = 256)]
    pub count: u32,
}

/// Reserve a lease.
///
/// Takes a range, or draws the next free block of `count` seeds. Of any number of requests for the same seeds
/// exactly one succeeds; the others are told which lease they collide with.
#[utoipa::path(
    post, path = "/api/v1/leases", tag = "leases",
    request_body = NewLease,
    responses(
        (status = 201, description = "The lease, reserved.", body = Lease,
            headers(("location" = String, description = "Address of the lease."))),
        WriteRefusals,
    ),
)]
async fn reserve_lease(
    State(app): State<App>,
    Body(new): Body<NewLease>,
) -> Result<Response, Failure> {
    let slug = (1..=64).contains(&new.name.len())
        && new.name.split('-').all(|word| {
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        });
    if !slug {
        let detail = "a name is lower-case words joined by hyphens, at most 64 characters";
        return Err(Refusal::new(Code::InvalidRequest, detail).at("/name", detail).into());
    }
    let range = |start| SeedRange::new(start, u64::from(new.count));
    let ask = match new.start {
        Some(start) => range(start).map(Ask::Range),
        None => range(Seed(0)).map(|range| Ask::Count(range.count())),
    }
    .map_err(|error| {
        Refusal::new(Code::InvalidRequest, error.to_string()).at("/count", error.to_string())
    })?;
    let lease = app.store().reserve(&new.experiment, &new.name, new.role, ask).await?;
    let location = [(header::LOCATION, format!("/api/v1/leases/{}", lease.id))];
    Ok((StatusCode::CREATED, location, Json(lease)).into_response())
}

/// Read a lease.
///
/// With its opening, if it is a held-out block that was opened: by which run, when, and for which tables.
#[utoipa::path(
    get, path = "/api/v1/leases/{id}", tag = "leases",
    params(("id" = LeaseId, Path, description = "Id of the lease.", example = "SL-20260905T191317Z-c25f58cd")),
    responses((status = 200, description = "The lease.", body = Lease), ReadRefusals),
)]
async fn read_lease(
    State(app): State<App>,
    Segment(id): Segment<LeaseId>,
) -> Result<Json<Lease>, Failure> {
    Ok(Json(app.store().lease(&id).await?))
}

/// List the readings of a lease.
///
/// Which units of which runs read its seeds, how far, and how often they wrapped around. Training and validation
/// blocks may be read again, but never unseen.
#[utoipa::path(
    get, path = "/api/v1/leases/{id}/readings", tag = "leases",
    params(("id" = LeaseId, Path, description = "Id of the lease.", example = "SL-20260905T191317Z-c25f58cd")),
    responses((status = 200, description = "The readings.", body = Vec<Reading>), ReadRefusals),
)]
async fn list_readings(
    State(app): State<App>,
    Segment(id): Segment<LeaseId>,
) -> Result<Json<Vec<Reading>>, Failure> {
    app.store().lease(&id).await?;
    Ok(Json(app.store().readings(&id).await?))
}

/// Cancel a lease.
///
/// Gives seeds back that were never read. A lease that was opened stays opened for ever.
#[utoipa::path(
    post, path = "/api/v1/leases/{id}/cancel", tag = "leases",
    params(("id" = LeaseId, Path, description = "Id of the lease.", example = "SL-20260905T191317Z-c25f58cd")),
    request_body = Reason,
    responses((status = 200, description = "The lease, cancelled.", body = Lease), WriteRefusals),
)]
async fn cancel_lease(
    State(app): State<App>,
    Segment(id): Segment<LeaseId>,
    Body(body): Body<Reason>,
) -> Result<Json<Lease>, Failure> {
    Ok(Json(app.cancel_lease(&id, &body.reason).await?))
}

/// List the blocked ranges.
///
/// Seeds that no protocol may lease, and why.
#[utoipa::path(
    get, path = "/api/v1/blocked-ranges", tag = "leases",
    responses((status = 200, description = "The ranges, by their seeds.", body = Vec<BlockedRange>), PlainRefusals),
)]
async fn list_blocked_ranges(State(app): State<App>) -> Result<Json<Vec<BlockedRange>>, Failure> {
    Ok(Json(app.store().blocked_ranges().await?))
}
