//! The one writer of a run: takes what its units report, in order, and stores it.
//!
//! Promised: rows are stored as they come, games in small batches, and the end of a unit only after
//! everything it produced. When the store refuses something (a superseded attempt, a second row that
//! differs), the run is stopped, the rest of that unit is not stored, and the unit ends as failed
//! with what was refused.

use std::collections::HashMap;

use tokio::sync::mpsc;

use super::unit::{Ending, Report, Stop, UnitResult};
use crate::domain::ids::RunId;
use crate::domain::records::{GameRecord, Lease, Validity, WorkState};
use crate::domain::refusal::{Code, Refusal};
use crate::store::{AttemptToken, Store};

/// Reports taken from the channel at once.
const BATCH: usize = 256;

/// A unit that has ended, and how.
#[derive(Debug)]
pub struct Ended {
    /// Its key.
    pub key: String,
    /// As it was stored.
    pub state: WorkState,
}

/// Stores what arrives on `reports` until every sender is gone.
pub async fn write(
    store: Store,
    run: RunId,
    stop: Stop,
    mut reports: mpsc::Receiver<Report>,
    ended: mpsc::UnboundedSender<Ended>,
) {
    let mut writer = Writer { store, run, stop, refused: HashMap::new(), games: Vec::new() };
    let mut batch = Vec::with_capacity(BATCH);
    while reports.recv_many(&mut batch, BATCH).await > 0 {
        for report in batch.drain(..) {
            if let Some(unit) = writer.take(report).await
                && ended.send(unit).is_err()
            {
                tracing::warn!(run = %writer.run, "the supervisor of this run has ended early");
            }
        }
        writer.flush().await;
    }
}

struct Writer {
    store: Store,
    run: RunId,
    stop: Stop,
    /// What was refused, by key of the unit.
    refused: HashMap<String, Refusal>,
    games: Vec<(AttemptToken, Lease, GameRecord)>,
}

impl Writer {
    async fn take(&mut self, report: Report) -> Option<Ended> {
        if let Report::Game(token, lease, row) = report {
            if self.games.first().is_some_and(|(held, _, _)| *held != token) {
                self.flush().await;
            }
            self.games.push((token, lease, *row));
            return None;
        }
        self.flush().await;
        match report {
            Report::End { token, done, result } => {
                let state = self.end(&token, done, result).await;
                return Some(Ended { key: token.key, state });
            }
            Report::Chunk(token, chunk) => {
                let stored = self.store.add_chunk(&token, &chunk).await;
                self.note(&token.key, stored);
            }
            Report::Point(token, point) => {
                let stored = self.store.add_point(&token, &point).await.map(|_| ());
                self.note(&token.key, stored);
            }
            Report::Reading { token, lease, cursor, wraps } => {
                let stored = self
                    .store
                    .record_reading(&lease.id, &self.run, &token.key, cursor, wraps)
                    .await;
                self.note(&token.key, stored);
            }
            Report::Artifact(token, artifact) => {
                let stored = self.store.add_artifact(&artifact).await;
                self.note(&token.key, stored);
            }
            Report::Result(token, result) => {
                let stored = self.verdict(*result).await;
                self.note(&token.key, stored);
            }
            Report::Game(..) => {}
        }
        None
    }

    async fn flush(&mut self) {
        let games = std::mem::take(&mut self.games);
        let Some((token, lease, _)) = games.first() else { return };
        let (token, lease) = (token.clone(), lease.clone());
        let rows: Vec<GameRecord> = games.into_iter().map(|(_, _, row)| row).collect();
        let stored = self.store.add_games(&token, &lease.id, &rows).await.map(|_| ());
        self.note(&token.key, stored);
    }

    async fn verdict(&self, result: crate::domain::records::ResultRecord) -> Result<(), Refusal> {
        let reason = match result.validity {
            Validity::Valid => {
                "every planned game was played and every decision was legal and complete"
            }
            _ => "illegal or incomplete decisions",
        };
        // An earlier attempt may have ended between the two.
        if self.store.run(&self.run).await?.validity != result.validity {
            self.store.set_validity(&self.run, result.validity, reason).await?;
        }
        self.store.add_result(&result).await
    }

    fn note(&mut self, key: &str, stored: Result<(), Refusal>) {
        if let Err(refusal) = stored {
            tracing::error!(run = %self.run, unit = key, %refusal, "the store refused a report");
            self.stop.request();
            self.refused.entry(key.to_owned()).or_insert(refusal);
        }
    }

    async fn end(&mut self, token: &AttemptToken, done: u64, result: UnitResult) -> WorkState {
        let key = token.key.as_str();
        let beat = self.store.heartbeat(token, done).await;
        self.note(key, beat);
        let result = match self.refused.remove(key) {
            Some(refusal) => {
                if refusal.code == Code::Corrupt {
                    let invalid = self
                        .store
                        .set_validity(&self.run, Validity::Invalid, &refusal.detail)
                        .await;
                    if let Err(error) = invalid {
                        tracing::error!(run = %self.run, %error, "the run could not be marked invalid");
                    }
                }
                Err(Ending::from(refusal))
            }
            None => result,
        };
        let (state, reason, output) = match result {
            Ok(output) => (WorkState::Succeeded, None, Some(output)),
            Err(Ending::Stopped) => {
                (WorkState::Stopped, Some(String::from("stopped on request")), None)
            }
            Err(Ending::Failed(reason)) => (WorkState::Failed, Some(reason), None),
        };
        match self.store.finish_attempt(token, state, reason.as_deref(), output.as_ref()).await {
            Ok(()) => state,
            Err(refusal) => {
                tracing::error!(run = %self.run, unit = key, %refusal, "the end of a unit was refused");
                self.stop.request();
                WorkState::Failed
            }
        }
    }
}
