//! The event log as a stream of server-sent events.
//!
//! Promised: the id of a message is the sequence number of its event; every event after the given
//! number is sent once and in order, also when thousands happen while the reader is slow, because they
//! are read from the database and never from a queue that could overflow; keep-alive comments have no
//! id; the stream ends with a message named `end` when the daemon stops.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event as Message, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, Stream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::domain::ids::RunId;
use crate::domain::records::Event;
use crate::store::Store;

/// Events read at once.
const BATCH: u32 = 256;

/// How long a client should wait before it comes back.
const RETRY: Duration = Duration::from_secs(2);

/// Silence after which a comment is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The response that follows the log after event `after`.
pub fn follow(store: Store, stop: CancellationToken, after: u64, run: Option<RunId>) -> Response {
    let news = store.subscribe();
    let reader = Reader {
        store,
        stop,
        news,
        after,
        run,
        read: VecDeque::new(),
        greeted: false,
        ended: false,
    };
    let sse = Sse::new(messages(reader)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    let headers = [
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
        (axum::http::header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, sse).into_response()
}

struct Reader {
    store: Store,
    stop: CancellationToken,
    news: watch::Receiver<u64>,
    after: u64,
    run: Option<RunId>,
    read: VecDeque<Event>,
    greeted: bool,
    ended: bool,
}

fn messages(reader: Reader) -> impl Stream<Item = Result<Message, Infallible>> {
    stream::unfold(reader, |mut reader| async move {
        let message = reader.next().await?;
        Some((Ok(message), reader))
    })
}

impl Reader {
    async fn next(&mut self) -> Option<Message> {
        if self.ended {
            return None;
        }
        if !self.greeted {
            // Sent at once, so that a client knows that the stream stands.
            self.greeted = true;
            return Some(Message::default().retry(RETRY).comment("follows the log"));
        }
        loop {
            if let Some(event) = self.read.pop_front() {
                self.after = event.seq;
                match Message::default().id(event.seq.to_string()).json_data(&event) {
                    Ok(message) => return Some(message),
                    Err(error) => {
                        tracing::error!(%error, seq = event.seq, "an event cannot be written as JSON");
                        return Some(self.end("error"));
                    }
                }
            }
            if self.stop.is_cancelled() {
                return Some(self.end("stopping"));
            }
            // Marked before the read: an event that is written after it wakes the wait below.
            self.news.mark_unchanged();
            match self.store.events(self.after, BATCH, self.run.as_ref()).await {
                Ok(events) if !events.is_empty() => self.read = events.into(),
                Ok(_) => {
                    let changed = tokio::select! {
                        () = self.stop.cancelled() => true,
                        changed = self.news.changed() => changed.is_ok(),
                    };
                    if !changed {
                        return Some(self.end("stopping"));
                    }
                }
                Err(refusal) => {
                    tracing::error!(%refusal, "the event log cannot be read");
                    return Some(self.end("error"));
                }
            }
        }
    }

    /// The last message: it has no id, so a client that comes back starts where it was.
    fn end(&mut self, reason: &str) -> Message {
        self.ended = true;
        Message::default().event("end").data(format!("{{\"reason\":\"{reason}\"}}"))
    }
}
