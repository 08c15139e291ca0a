//! Machine profiles: what a run ran on, without the name of the host.

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
use crate::domain::ids::MachineId;
use crate::domain::records::Machine;

const LIST: &str = "machines";

/// The operations on machine profiles.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_machines)).routes(routes!(read_machine))
}

/// Which machine profiles.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct MachineQuery {
    /// Start after this cursor: `next` of the page before.
    after: Option<String>,
    /// Most items of the page.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 100)]
    limit: Limit,
}

/// List machine profiles.
///
/// In pages, newest first.
#[utoipa::path(
    get, path = "/api/v1/machines", tag = "machines",
    params(MachineQuery),
    responses((status = 200, description = "A page of machine profiles.", body = Listing<Machine>), ListRefusals),
)]
async fn list_machines(
    State(app): State<App>,
    Query(query): Query<MachineQuery>,
) -> Result<Json<Listing<Machine>>, Failure> {
    let page = window(LIST, query.after.as_deref(), query.limit)?;
    let rows = app.store().machines(&page).await?;
    Ok(Json(cut(LIST, rows, query.limit, |machine| machine.id.to_string())))
}

/// Read a machine profile.
///
/// What could not be found out is null, never guessed.
#[utoipa::path(
    get, path = "/api/v1/machines/{id}", tag = "machines",
    params(("id" = MachineId, Path, description = "Id of the machine profile.", example = "MACH-20260905T193006Z-4fbeb4e5")),
    responses((status = 200, description = "The machine profile.", body = Machine), ReadRefusals),
)]
async fn read_machine(
    State(app): State<App>,
    Segment(id): Segment<MachineId>,
) -> Result<Json<Machine>, Failure> {
    Ok(Json(app.store().machine(&id).await?))
}
