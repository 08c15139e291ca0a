//! Strong entity tags of things that never change: their tag is the digest of their bytes.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Never asked for again by a cache that has it.
const FOR_EVER: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");

/// Of this build; another one may say something else.
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

/// `body`, which never changes, under the tag `digest`, or 304 when the client has it already.
pub fn immutable(request: &HeaderMap, digest: &str, body: impl IntoResponse) -> Response {
    tagged(request, digest, FOR_EVER, body)
}

/// `body` under the tag `digest`, or 304 when the client has this version of it.
pub fn revalidated(request: &HeaderMap, digest: &str, body: impl IntoResponse) -> Response {
    tagged(request, digest, REVALIDATE, body)
}

fn tagged(
    request: &HeaderMap,
    digest: &str,
    cache: HeaderValue,
    body: impl IntoResponse,
) -> Response {
    let tag = format!("\"{digest}\"");
    let mut response = if is_known(request, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        body.into_response()
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
        response.headers_mut().insert(header::CACHE_CONTROL, cache);
    }
    response
}

/// Whether `If-None-Match` names the tag (compared weakly, as RFC 9110 §13.1.2 wants).
fn is_known(request: &HeaderMap, tag: &str) -> bool {
    request
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_tag_is_not_sent_again() {
        let status = |known: Option<&'static str>| {
            let mut request = HeaderMap::new();
            if let Some(known) = known {
                request.insert(header::IF_NONE_MATCH, HeaderValue::from_static(known));
            }
            let response = immutable(&request, "abc", "body");
            assert_eq!(response.headers()[header::ETAG], "\"abc\"");
            response.status()
        };
        assert_eq!(status(None), StatusCode::OK);
        assert_eq!(status(Some("\"abd\"")), StatusCode::OK);
        assert_eq!(status(Some("abc")), StatusCode::OK);
        assert_eq!(status(Some("\"abc\"")), StatusCode::NOT_MODIFIED);
        assert_eq!(status(Some("\"x\", W/\"abc\"")), StatusCode::NOT_MODIFIED);
        assert_eq!(status(Some("*")), StatusCode::NOT_MODIFIED);
    }
}
