//! Talking to a daemon over HTTP. Its problems come back as the refusals they were.

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde::Deserialize;
use serde_json::Value;

use crate::domain::refusal::{Code, FieldError, Refusal};

/// Records per page of a list: the most that a daemon gives.
const PAGE: u32 = 500;

/// A daemon at an address.
#[derive(Debug)]
pub(super) struct Remote {
    base: String,
    client: Client,
}

/// The fields of an RFC 9457 problem that a refusal needs.
#[derive(Debug, Deserialize)]
struct Problem {
    code: Code,
    detail: String,
    hint: Option<String>,
    #[serde(default)]
    errors: Vec<FieldError>,
}

impl Remote {
    pub(super) fn new(url: &str) -> Self {
        Self { base: url.trim_end_matches('/').to_owned(), client: Client::new() }
    }

    /// Reads a record.
    pub(super) async fn get(&self, path: &str) -> Result<Value, Refusal> {
        self.answer(self.request(Method::GET, path)).await
    }

    /// Reads every record of a list, page by page.
    pub(super) async fn list(&self, path: &str) -> Result<Vec<Value>, Refusal> {
        let mut items = Vec::new();
        let mut after = String::new();
        loop {
            let mut page = self.get(&format!("{path}?limit={PAGE}{after}")).await?;
            if let Value::Array(more) = page["items"].take() {
                items.extend(more);
            }
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return Ok(items),
            }
        }
    }

    /// Asks for something, with a JSON body.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, Refusal> {
        self.answer(self.request(Method::POST, path).json(body)).await
    }

    /// Asks for something, with a document as the body.
    pub(super) async fn post_document(
        &self,
        path: &str,
        media: &str,
        body: Vec<u8>,
    ) -> Result<Value, Refusal> {
        self.answer(self.request(Method::POST, path).header(CONTENT_TYPE, media).body(body)).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}/api/v1{path}", self.base))
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Value, Refusal> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let is_success = response.status().is_success();
        let status = response.status();
        let body = self.body(response).await?;
        if is_success {
            return Ok(body);
        }
        Err(match serde_json::from_value::<Problem>(body) {
            Ok(problem) => Refusal {
                code: problem.code,
                detail: problem.detail,
                hint: problem.hint,
                errors: problem.errors,
            },
            Err(_) => Refusal::new(
                Code::Internal,
                format!("{} answered {status} without a problem this program can read", self.base),
            ),
        })
    }

    async fn body(&self, response: Response) -> Result<Value, Refusal> {
        let bytes = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|_| {
            Refusal::new(
                Code::Internal,
                format!("{} answered something that is not JSON", self.base),
            )
        })
    }

    fn unreachable(&self, error: &reqwest::Error) -> Refusal {
        tracing::debug!(%error, "request failed");
        Refusal::new(Code::NotFound, format!("there is no daemon at {}", self.base))
            .hint("Start one with `heldout serve`, or leave --url away to open the data folder.")
    }
}
