//! The games of a run: in pages, as JSON lines, or as CSV.
//!
//! Rows come in the order of the protocol's arms and of the seeds. The two streams read the database in
//! batches, each in a short transaction of its own, and hold one batch in memory; one that cannot be
//! finished breaks the connection, so that half a file is not taken for a whole one.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::extract::{Query, Segment};
use super::super::negotiate::preferred;
use super::super::page::{self, Limit, Listing};
use super::super::problem::{Failure, ReadRefusals};
use crate::app::App;
use crate::domain::ids::RunId;
use crate::domain::records::GameRecord;
use crate::domain::refusal::{Code, Refusal};
use crate::store::{Page, Store};

const LIST: &str = "games";

/// Rows of one read of a stream.
const BATCH: u32 = 500;

const JSON: &str = "application/json";
const JSON_LINES: &str = "application/jsonl";
const CSV: &str = "text/csv";

/// The columns of the CSV form, named as in the JSON forms.
const COLUMNS: [&str; 16] = [
    "arm",
    "ordinal",
    "seedHex",
    "score",
    "moves",
    "numberedCleared",
    "coversRevealed",
    "maxChainDepth",
    "occupiedSum",
    "meanOccupiedCells",
    "clears",
    "censored",
    "illegalDecisions",
    "incompleteDecisions",
    "work",
    "wallSeconds",
];

/// The operations on games.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_games))
}

/// Which games.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct GameQuery {
    /// Only those of this arm.
    arm: Option<String>,
    /// Start after this cursor: `next` of the page before. Only for pages.
    after: Option<String>,
    /// Most items of the page. Only for pages.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 100)]
    limit: Option<Limit>,
}

/// List the games of a run.
///
/// One row per game, by arm and then in the order of the seeds. `Accept` chooses between a page of JSON and the
/// whole of it as JSON lines or CSV (RFC 4180, with a header line).
#[utoipa::path(
    get, path = "/api/v1/runs/{id}/games", tag = "runs",
    params(("id" = RunId, Path, description = "Id of the run.", example = "RUN-20260905T193006Z-4fbeb4e5"), GameQuery),
    responses(
        (status = 200, description = "A page of games, or all games.", content(
            (Listing<GameRecord> = "application/json"),
            (String = "application/jsonl"),
            (String = "text/csv"),
        )),
        ReadRefusals,
    ),
)]
async fn list_games(
    State(app): State<App>,
    Segment(id): Segment<RunId>,
    Query(query): Query<GameQuery>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let store = app.store();
    if let Some(arm) = &query.arm {
        let known: Vec<_> = store.arms(&id).await?.into_iter().map(|(arm, ..)| arm).collect();
        if !known.contains(arm) {
            return Err(Refusal::new(Code::InvalidRequest, format!("run {id} has no arm {arm:?}"))
                .at("/query/arm", format!("is one of: {}", known.join(", ")))
                .into());
        }
    } else {
        store.run(&id).await?;
    }
    let form = preferred(&headers, &[JSON, JSON_LINES, CSV]);
    let mut response = if form == JSON {
        let limit = query.limit.unwrap_or_default();
        let page = page::window(LIST, query.after.as_deref(), limit)?;
        let games = store.games(&id, query.arm.as_deref(), &page).await?;
        Json(page::cut(LIST, games, limit, key)).into_response()
    } else {
        for (given, name) in [(query.after.is_some(), "after"), (query.limit.is_some(), "limit")] {
            if given {
                let detail = "is for pages; a stream holds every row";
                return Err(Refusal::new(Code::InvalidRequest, format!("{name} {detail}"))
                    .at(format!("/query/{name}"), detail)
                    .into());
            }
        }
        stream_all(store.clone(), id, query.arm, form)
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

/// Where a game stands in the list.
fn key(game: &GameRecord) -> String {
    format!("{}/{}", game.arm, game.ordinal)
}

fn stream_all(store: Store, run: RunId, arm: Option<String>, form: &'static str) -> Response {
    let write = if form == CSV { csv_line } else { json_line };
    let head = if form == CSV { COLUMNS.join(",") + "\r\n" } else { String::new() };
    let body = stream::try_unfold((None, Some(head)), move |(after, head)| {
        let (store, run, arm) = (store.clone(), run.clone(), arm.clone());
        async move {
            let page = Page { after, limit: BATCH };
            let batch = store.games(&run, arm.as_deref(), &page).await.inspect_err(|refusal| {
                tracing::error!(%refusal, %run, "a stream of games broke off");
            })?;
            if batch.is_empty() && head.is_none() {
                return Ok::<_, Refusal>(None);
            }
            let mut text = head.unwrap_or_default();
            for game in &batch {
                write(game, &mut text)?;
            }
            let after = batch.last().map(key).or(page.after);
            Ok(Some((Bytes::from(text), (after, None))))
        }
    });
    let media = if form == CSV { "text/csv; charset=utf-8; header=present" } else { form };
    ([(header::CONTENT_TYPE, media)], Body::from_stream(body)).into_response()
}

fn json_line(game: &GameRecord, text: &mut String) -> Result<(), Refusal> {
    let line = serde_json::to_string(game).map_err(|error| unwritable(game, &error))?;
    text.push_str(&line);
    text.push('\n');
    Ok(())
}

fn csv_line(game: &GameRecord, text: &mut String) -> Result<(), Refusal> {
    let fields = serde_json::to_value(game).map_err(|error| unwritable(game, &error))?;
    for (place, column) in COLUMNS.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        match fields.get(column) {
            None | Some(serde_json::Value::Null) => {}
            Some(serde_json::Value::String(field)) => csv_text(field, text),
            Some(field) => text.push_str(&field.to_string()),
        }
    }
    text.push_str("\r\n");
    Ok(())
}

/// A text field, quoted when it has to be.
fn csv_text(field: &str, text: &mut String) {
    if field.contains(['"', ',', '\r', '\n']) {
        text.push('"');
        text.push_str(&field.replace('"', "\"\""));
        text.push('"');
    } else {
        text.push_str(field);
    }
}

fn unwritable(game: &GameRecord, error: &serde_json::Error) -> Refusal {
    tracing::error!(%error, arm = game.arm, ordinal = game.ordinal, "a game cannot be written");
    Refusal::new(Code::Internal, "a game cannot be written")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::seed_range::Seed;

    fn game() -> GameRecord {
        GameRecord {
            arm: String::from("fair, \"d3\""),
            ordinal: 7,
            seed_hex: Seed(0xa52f_2140),
            score: 123_456,
            moves: 99,
            numbered_cleared: Some(1),
            covers_revealed: Some(2),
            max_chain_depth: Some(3),
            occupied_sum: Some(4),
            mean_occupied_cells: Some(20.5),
            clears: None,
            censored: false,
            illegal_decisions: 0,
            incomplete_decisions: 0,
            work: Some(5),
            wall_seconds: Some(0.25),
        }
    }

    #[test]
    fn csv_has_a_column_for_every_field_and_quotes_what_it_must() {
        let mut text = String::new();
        csv_line(&game(), &mut text).unwrap();
        assert_eq!(
            text,
            "\"fair, \"\"d3\"\"\",7,0xa52f2140,123456,99,1,2,3,4,20.5,,false,0,0,5,0.25\r\n"
        );
        let serde_json::Value::Object(fields) = serde_json::to_value(game()).unwrap() else {
            panic!("a game is an object");
        };
        let mut names: Vec<_> = fields.keys().map(String::as_str).collect();
        let mut columns = COLUMNS.to_vec();
        names.sort_unstable();
        columns.sort_unstable();
        assert_eq!(names, columns);
    }
}
