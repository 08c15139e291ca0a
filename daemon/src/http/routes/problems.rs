//! The explanations that the `type` of a problem leads to.

use std::str::FromStr;

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::extract::Segment;
use super::super::negotiate::preferred;
use super::super::problem::{
    CODES, Failure, PlainRefusals, ReadRefusals, explain, status, type_uri,
};
use crate::app::App;
use crate::domain::refusal::{Code, Refusal};

const JSON: &str = "application/json";
const HTML: &str = "text/html";

/// The operations on explanations.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_problems)).routes(routes!(read_problem))
}

/// What a code means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ProblemPage {
    /// The `type` of such problems.
    #[serde(rename = "type")]
    #[schema(example = "/problems/lease-overlap")]
    pub type_uri: String,
    /// The stable code.
    pub code: Code,
    /// A few words.
    pub title: &'static str,
    /// The status of such answers.
    pub status: u16,
    /// When it is answered.
    pub meaning: &'static str,
    /// What a client should do.
    pub remedy: &'static str,
}

impl From<Code> for ProblemPage {
    fn from(code: Code) -> Self {
        let explanation = explain(code);
        Self {
            type_uri: type_uri(code),
            code,
            title: explanation.title,
            status: status(code).as_u16(),
            meaning: explanation.meaning,
            remedy: explanation.remedy,
        }
    }
}

impl ProblemPage {
    fn html(&self) -> String {
        // No value is foreign: all of it is text of this program without markup.
        format!(
            "<h2 id=\"{name}\"><a href=\"{uri}\">{title}</a></h2>\n<p><code>{name}</code>, status {status}</p>\n<p>{meaning}</p>\n<p>{remedy}</p>\n",
            name = self.code.name(),
            uri = self.type_uri,
            title = self.title,
            status = self.status,
            meaning = self.meaning,
            remedy = self.remedy,
        )
    }
}

fn render<T: Serialize>(
    headers: &HeaderMap,
    title: &str,
    pages: &[ProblemPage],
    json: T,
) -> Response {
    let mut response = if preferred(headers, &[JSON, HTML]) == HTML {
        let body: String = pages.iter().map(ProblemPage::html).collect();
        Html(format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n<h1>heldout: {title}</h1>\n{body}</html>\n"
        ))
        .into_response()
    } else {
        Json(json).into_response()
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// List the problem codes.
///
/// Every reason for which this program refuses something. As JSON or, for people, as a page.
#[utoipa::path(
    get, path = "/problems", tag = "problems",
    responses(
        (status = 200, description = "All codes.", content(
            (Vec<ProblemPage> = "application/json"), (String = "text/html"))),
        PlainRefusals,
    ),
)]
async fn list_problems(headers: HeaderMap) -> Response {
    let pages: Vec<ProblemPage> = CODES.iter().map(|code| ProblemPage::from(*code)).collect();
    render(&headers, "Problems", &pages, &pages)
}

/// A code in a path.
#[derive(Debug, Clone, Copy)]
pub struct Name(Option<Code>);

impl FromStr for Name {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(CODES.into_iter().find(|code| code.name() == text)))
    }
}

/// Explain a problem code.
///
/// Where the `type` of a problem leads: when it is answered and what to do. As JSON or, for people, as a page.
#[utoipa::path(
    get, path = "/problems/{code}", tag = "problems",
    params(("code" = Code, Path, description = "The code.", example = "lease-overlap")),
    responses(
        (status = 200, description = "The explanation.", content(
            (ProblemPage = "application/json"), (String = "text/html"))),
        ReadRefusals,
    ),
)]
async fn read_problem(
    Segment(Name(code)): Segment<Name>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let code = code.ok_or_else(|| {
        Refusal::new(Code::NotFound, "there is no problem of this name")
            .hint("/problems lists them all")
    })?;
    let page = ProblemPage::from(code);
    Ok(render(&headers, page.title, std::slice::from_ref(&page), &page))
}
