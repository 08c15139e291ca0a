//! Extractors whose rejections are problems.
//!
//! Promised: a value that is wrong is refused with a pointer to it; an unknown query parameter or body
//! field is refused instead of ignored; a body is read up to [`BODY_LIMIT`] bytes and no further.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use futures::StreamExt;
use serde::de::DeserializeOwned;

use super::problem::Failure;
use crate::domain::protocol::MediaType;
use crate::domain::refusal::{Code, Refusal};

/// Most bytes of a request body: 1 MiB.
pub const BODY_LIMIT: usize = 1 << 20;

/// How much of a body that is too large is read and thrown away, so that a client that is still
/// writing gets to see the answer instead of a broken connection.
const DRAIN_LIMIT: usize = 64 << 20;

/// How long that may take.
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// The one parameter of the path, parsed.
#[derive(Debug, Clone, Copy)]
pub struct Segment<T>(pub T);

impl<S: Send + Sync, T> FromRequestParts<S> for Segment<T>
where
    T: FromStr<Err: fmt::Display>,
{
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let unreadable = |detail: String| {
            Refusal::new(Code::InvalidRequest, "the address cannot be read").at("/path", detail)
        };
        let params = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|rejection| unreadable(rejection.body_text()))?;
        let Some((name, text)) = params.iter().next() else {
            return Err(unreadable(String::from("it has no parameter")).into());
        };
        text.parse().map(Self).map_err(|error: T::Err| {
            Refusal::new(Code::InvalidRequest, error.to_string())
                .at(format!("/path/{name}"), error.to_string())
                .into()
        })
    }
}

/// The query, parsed; `T` should deny unknown fields.
#[derive(Debug, Clone, Copy)]
pub struct Query<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(value)| Self(value))
            .map_err(|rejection| query_refusal(&rejection, parts).into())
    }
}

fn query_refusal(rejection: &QueryRejection, parts: &Parts) -> Refusal {
    let text = rejection.body_text();
    let text = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
    // The text starts with the name of the parameter when one is at fault; believe it only if the
    // query has that name.
    let names = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
        .map(|axum::extract::Query(pairs)| pairs)
        .unwrap_or_default();
    let known = |name: &str| names.iter().any(|(other, _)| other == name);
    let (pointer, detail) = match text.split_once(": ") {
        Some((name, rest)) if known(name) => (format!("/query/{}", escape(name)), rest),
        _ => match text.split('`').nth(1).filter(|name| known(name)) {
            Some(name) => (format!("/query/{}", escape(name)), text),
            None => (String::from("/query"), text),
        },
    };
    Refusal::new(Code::InvalidRequest, format!("the query has a fault: {detail}"))
        .at(pointer, detail)
}

/// A part of an RFC 6901 pointer.
fn escape(part: &str) -> String {
    part.replace('~', "~0").replace('/', "~1")
}

/// A JSON body; `T` should deny unknown fields.
#[derive(Debug, Clone, Copy)]
pub struct Json<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let (parts, body) = request.into_parts();
        match media_type(&parts.headers) {
            Some(MediaType::Json) => {}
            Some(MediaType::Toml) | None => {
                return Err(unsupported(&parts.headers, "application/json").into());
            }
        }
        let bytes = read(&parts.headers, body).await?;
        Ok(Self(from_json(&bytes)?))
    }
}

fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let pointer = pointer(error.path());
        let error = error.into_inner();
        let detail = error.to_string();
        if error.is_data() {
            Refusal::new(Code::InvalidRequest, format!("the body has a fault: {detail}"))
                .at(pointer, detail)
        } else {
            Refusal::new(Code::MalformedDocument, format!("the body is not JSON: {detail}"))
                .at("", detail)
        }
    })?;
    deserializer.end().map_err(|error| {
        Refusal::new(Code::MalformedDocument, format!("the body is not one JSON value: {error}"))
            .at("", error.to_string())
    })?;
    Ok(value)
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment as Part;
    path.iter()
        .map(|part| match part {
            Part::Seq { index } => format!("/{index}"),
            Part::Map { key } => format!("/{}", escape(key)),
            Part::Enum { variant } => format!("/{}", escape(variant)),
            Part::Unknown => String::new(),
        })
        .collect()
}

/// A protocol document as it was sent.
#[derive(Debug, Clone)]
pub struct Document {
    /// The bytes, not looked at.
    pub bytes: Bytes,
    /// What they are said to be.
    pub media: MediaType,
}

impl<S: Send + Sync> FromRequest<S> for Document {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let (parts, body) = request.into_parts();
        let media = media_type(&parts.headers)
            .ok_or_else(|| unsupported(&parts.headers, "application/json or application/toml"))?;
        Ok(Self { bytes: read(&parts.headers, body).await?, media })
    }
}

/// What a body says it is; `None` when that is nothing this program reads.
fn media_type(headers: &HeaderMap) -> Option<MediaType> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let utf8 = value.split(';').skip(1).all(|parameter| {
        match parameter.trim().to_ascii_lowercase().split_once('=') {
            Some(("charset", charset)) => charset.trim_matches('"') == "utf-8",
            _ => true,
        }
    });
    match essence.as_str() {
        "application/json" if utf8 => Some(MediaType::Json),
        "application/toml" if utf8 => Some(MediaType::Toml),
        _ => None,
    }
}

fn unsupported(headers: &HeaderMap, accepted: &str) -> Refusal {
    let sent = headers.get(header::CONTENT_TYPE).map_or_else(
        || String::from("the request names no media type"),
        |sent| {
            format!(
                "the media type {:?} is not read here",
                String::from_utf8_lossy(sent.as_bytes())
            )
        },
    );
    Refusal::new(Code::UnsupportedMediaType, format!("{sent}; send {accepted} in UTF-8"))
        .at("/header/content-type", format!("must be {accepted}"))
}

/// The whole body, if it is not too large.
async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Refusal> {
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let mut frames = body.into_data_stream();
    let mut bytes = Vec::new();
    let mut too_large = declared.is_some_and(|length| length > BODY_LIMIT as u64);
    while !too_large && let Some(frame) = frames.next().await {
        let frame = frame.map_err(|_| {
            Refusal::new(Code::MalformedDocument, "the body broke off before its end")
        })?;
        too_large = bytes.len() + frame.len() > BODY_LIMIT;
        if !too_large {
            bytes.extend_from_slice(&frame);
        }
    }
    if !too_large {
        return Ok(bytes.into());
    }
    let drain = async {
        let mut drained = 0;
        while let Some(Ok(frame)) = frames.next().await {
            drained += frame.len();
            if drained > DRAIN_LIMIT {
                break;
            }
        }
    };
    // Whether it ran dry or out of time: the answer is the same.
    drop(tokio::time::timeout(DRAIN_TIME, drain).await);
    Err(Refusal::new(
        Code::TooLarge,
        match declared {
            Some(length) => {
                format!("the body has {length} bytes; at most {BODY_LIMIT} are read")
            }
            None => format!("the body has more than {BODY_LIMIT} bytes"),
        },
    )
    .at("", format!("at most {BODY_LIMIT} bytes")))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the refusals matter")]
    struct Outer {
        inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the refusals matter")]
    struct Inner {
        count: u32,
    }

    fn refusal(text: &str) -> (Code, String) {
        let refusal = from_json::<Outer>(text.as_bytes()).unwrap_err();
        (refusal.code, refusal.errors[0].pointer.clone())
    }

    #[test]
    fn wrong_bodies_name_the_place() {
        assert_eq!(
            refusal(r#"{"inner":[{"count":1},{"count":-1}]}"#),
            (Code::InvalidRequest, String::from("/inner/1/count"))
        );
        assert_eq!(
            refusal(r#"{"inner":[{"count":1,"a/b~":2}]}"#),
            (Code::InvalidRequest, String::from("/inner/0/a~1b~0"))
        );
        assert_eq!(
            refusal(r#"{"inner":[{"count":1,"count":2}]}"#),
            (Code::InvalidRequest, String::from("/inner/0"))
        );
        assert_eq!(refusal(r#"{"inner":[]} 1"#), (Code::MalformedDocument, String::new()));
        assert_eq!(refusal(r#"{"inner":["#), (Code::MalformedDocument, String::new()));
        assert_eq!(refusal(&"[".repeat(100_000)).0, Code::InvalidRequest);
    }

    #[test]
    fn only_utf8_json_and_toml_are_read() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(text));
            media_type(&headers)
        };
        assert_eq!(of("application/json"), Some(MediaType::Json));
        assert_eq!(of("Application/JSON; charset=\"UTF-8\""), Some(MediaType::Json));
        assert_eq!(of("application/toml"), Some(MediaType::Toml));
        assert_eq!(of("application/json; charset=latin1"), None);
        assert_eq!(of("text/plain"), None);
        assert_eq!(media_type(&HeaderMap::new()), None);
    }
}
