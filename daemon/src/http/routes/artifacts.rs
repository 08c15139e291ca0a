//! Artefacts: stored files, named by the digest of what they hold.

use std::fmt;
use std::io::Read;
use std::str::FromStr;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::etag;
use super::super::extract::Segment;
use super::super::problem::{Failure, ReadRefusals};
use crate::app::App;
use crate::domain::records::Artifact;

/// Bytes of one piece of a download.
const PIECE: usize = 64 << 10;

/// The operations on artefacts.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read_artifact)).routes(routes!(read_artifact_content))
}

/// A SHA-256 as 64 lower-case hex digits.
#[derive(Debug, Clone)]
pub struct Digest(String);

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() == 64 && text.bytes().all(hex) {
            Ok(Self(text.to_owned()))
        } else {
            Err(DigestError)
        }
    }
}

/// A text that is no digest.
#[derive(Debug, Clone, Copy)]
pub struct DigestError;

impl fmt::Display for DigestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "an artefact is named by 64 lower-case hex digits, the SHA-256 of its plain bytes",
        )
    }
}

/// Read the metadata of an artefact.
///
/// Digest and size of the plain and of the stored bytes. Never changes; the entity tag is the digest of the stored
/// bytes.
#[utoipa::path(
    get, path = "/api/v1/artifacts/{sha256}", tag = "artifacts",
    params(
        ("sha256" = String, Path, description = "SHA-256 of the plain bytes.", pattern = "^[0-9a-f]{64}$"),
        ("if-none-match" = Option<String>, Header, description = "Entity tags that the client has."),
    ),
    responses(
        (status = 200, description = "The metadata.", body = Artifact,
            headers(("etag" = String, description = "The digest, in quotes."))),
        (status = 304, description = "The client has it."),
        ReadRefusals,
    ),
)]
async fn read_artifact(
    State(app): State<App>,
    Segment(Digest(sha256)): Segment<Digest>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let artifact = app.store().artifact(&sha256).await?;
    Ok(etag::immutable(&headers, &artifact.stored_sha256.clone(), Json(artifact)))
}

/// Download an artefact.
///
/// The plain bytes. They are hashed on the way: bytes that are not what was stored break the connection before the
/// end. The entity tag is the digest.
#[utoipa::path(
    get, path = "/api/v1/artifacts/{sha256}/content", tag = "artifacts",
    params(
        ("sha256" = String, Path, description = "SHA-256 of the plain bytes.", pattern = "^[0-9a-f]{64}$"),
        ("if-none-match" = Option<String>, Header, description = "Entity tags that the client has."),
    ),
    responses(
        (status = 200, description = "The plain bytes.", body = Vec<u8>, content_type = "application/octet-stream",
            headers(("etag" = String, description = "The digest, in quotes."))),
        (status = 304, description = "The client has them."),
        ReadRefusals,
    ),
)]
async fn read_artifact_content(
    State(app): State<App>,
    Segment(Digest(sha256)): Segment<Digest>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let artifact = app.store().artifact(&sha256).await?;
    let mut plain = app.archive().open(&sha256)?;
    let (pieces, body) = mpsc::channel::<std::io::Result<Bytes>>(4);
    // A file is read and inflated; no work of a run is done on these threads.
    tokio::task::spawn_blocking(move || {
        loop {
            let mut piece = vec![0; PIECE];
            let read = match plain.read(&mut piece) {
                Ok(0) => return,
                Ok(length) => {
                    piece.truncate(length);
                    Ok(Bytes::from(piece))
                }
                Err(error) => {
                    tracing::error!(%error, "an artefact cannot be read to its end");
                    Err(error)
                }
            };
            let broken = read.is_err();
            if pieces.blocking_send(read).is_err() || broken {
                return;
            }
        }
    });
    let headers_out = [
        (header::CONTENT_TYPE, String::from("application/octet-stream")),
        (header::CONTENT_LENGTH, artifact.bytes.to_string()),
    ];
    let body = Body::from_stream(ReceiverStream::new(body));
    Ok(etag::immutable(&headers, &sha256, (headers_out, body)).into_response())
}
