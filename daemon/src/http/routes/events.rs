//! The log of every change: as a list, and as a stream.

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::extract::Query;
use super::super::page::Limit;
use super::super::problem::{Failure, ListRefusals};
use super::super::sse;
use crate::app::App;
use crate::domain::ids::RunId;
use crate::domain::records::Event;
use crate::domain::refusal::{Code, Refusal};

/// The largest sequence number that SQLite can hold.
const SEQ_MAX: u64 = i64::MAX as u64;

/// The operations on events.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_events)).routes(routes!(follow_events))
}

/// A sequence number, or 0 for the start of the log.
#[derive(Debug, Clone, Copy, Default)]
struct Seq(u64);

impl<'de> Deserialize<'de> for Seq {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seq = u64::deserialize(deserializer)?;
        if seq > SEQ_MAX {
            return Err(serde::de::Error::custom("a sequence number is below 2^63"));
        }
        Ok(Self(seq))
    }
}

/// Which events.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct EventQuery {
    /// Only events with a larger sequence number.
    #[serde(default)]
    #[param(value_type = Option<u64>, default = 0, maximum = 9223372036854775807_i64)]
    after: Seq,
    /// Only events of this run.
    run: Option<RunId>,
    /// Most items of the page.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 100)]
    limit: Limit,
}

/// A part of the log.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct EventPage {
    /// The events, by sequence number.
    pub items: Vec<Event>,
    /// Pass it as `after` to get the following events; null when there are none yet.
    #[schema(required)]
    pub next: Option<u64>,
}

/// List events.
///
/// Every change of every record, numbered without gaps; each event carries a hash over itself and the hash
/// before it.
#[utoipa::path(
    get, path = "/api/v1/events", tag = "events",
    params(EventQuery),
    responses((status = 200, description = "A part of the log.", body = EventPage), ListRefusals),
)]
async fn list_events(
    State(app): State<App>,
    Query(query): Query<EventQuery>,
) -> Result<Json<EventPage>, Failure> {
    let limit = query.limit.0;
    let mut items = app.store().events(query.after.0, limit + 1, query.run.as_ref()).await?;
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next = if more { items.last().map(|event| event.seq) } else { None };
    Ok(Json(EventPage { items, next }))
}

/// Where a stream starts.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct StreamQuery {
    /// Only events with a larger sequence number; the header `last-event-id` has precedence.
    #[serde(default)]
    #[param(value_type = Option<u64>, default = 0, maximum = 9223372036854775807_i64)]
    after: Seq,
    /// Only events of this run.
    run: Option<RunId>,
}

/// Follow events.
///
/// Server-sent events: first those that there are, then each new one. The id of a message is the sequence number of
/// its event, so a client that comes back with `last-event-id` misses none and gets none twice. Comments keep the
/// connection alive. When the daemon stops, the last message is named `end`.
#[utoipa::path(
    get, path = "/api/v1/events/stream", tag = "events",
    params(
        StreamQuery,
        ("last-event-id" = Option<u64>, Header, description = "The id of the last message that was received.",
            maximum = 9223372036854775807_i64),
    ),
    responses(
        (status = 200, description = "The stream; the data of a message is an event.", body = String,
            content_type = "text/event-stream"),
        ListRefusals,
    ),
)]
async fn follow_events(
    State(app): State<App>,
    Extension(stop): Extension<CancellationToken>,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let after = last_event_id(&headers)?.unwrap_or(query.after.0);
    Ok(sse::follow(app.store().clone(), stop, after, query.run))
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    value
        .to_str()
        .ok()
        .and_then(|text| text.parse().ok())
        .filter(|seq| *seq <= SEQ_MAX)
        .map(Some)
        .ok_or_else(|| {
            let detail = "is the sequence number of an event, like 17";
            Refusal::new(Code::InvalidRequest, format!("last-event-id {detail}"))
                .at("/header/last-event-id", detail)
        })
}
