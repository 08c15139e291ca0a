//! The description of the interface, for machines.

use axum::extract::Extension;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::etag;
use super::super::openapi::Description;
use super::super::problem::PlainRefusals;
use crate::app::App;

/// The one operation.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read_openapi))
}

/// Read this document.
///
/// OpenAPI 3.1: every operation with its parameters, bodies and refusals.
#[utoipa::path(
    get, path = "/openapi.json", tag = "openapi",
    params(("if-none-match" = Option<String>, Header, description = "Entity tags that the client has.")),
    responses(
        (status = 200, description = "The document.", body = serde_json::Value,
            headers(("etag" = String, description = "Digest of the document, in quotes."))),
        (status = 304, description = "The client has it."),
        PlainRefusals,
    ),
)]
async fn read_openapi(
    Extension(description): Extension<Description>,
    headers: HeaderMap,
) -> Response {
    let body = ([(header::CONTENT_TYPE, "application/json")], description.bytes.clone());
    etag::revalidated(&headers, &description.sha256, body)
}
