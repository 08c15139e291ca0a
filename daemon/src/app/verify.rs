//! Checking a run against what is stored of it: re-hash, recompute, replay.
//!
//! Promised: every check says what it compared and how much of it; a check that compared nothing has
//! not passed. Nothing is written. Refused: trusting a stored number that can be made again.

mod published;
mod recompute;
mod records;
mod replay;

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Check, VerifyOptions, VerifyReport, protocol_and_status};
use crate::artifacts::Archive;
use crate::domain::ids::RunId;
use crate::domain::protocol::Protocol;
use crate::domain::records::{Artifact, GameRecord, Origin};
use crate::domain::refusal::{Code, Refusal};
use crate::exec::local::Pools;
use crate::exec::status::RunStatus;
use crate::exec::unit::internal;
use crate::store::Store;

/// What the checks look at.
struct Subject {
    archive: Archive,
    run: RunId,
    protocol: Protocol,
    status: RunStatus,
    rows: Vec<GameRecord>,
    artifacts: Vec<Artifact>,
}

/// Hears what is being done.
pub type Note = Arc<dyn Fn(&str) + Send + Sync>;

impl Check {
    /// A check that held.
    fn passed(name: impl Into<String>, evidence: impl Into<String>) -> Self {
        Self { name: name.into(), passed: true, evidence: evidence.into() }
    }

    /// A check that did not hold.
    fn failed(name: impl Into<String>, evidence: impl Into<String>) -> Self {
        Self { name: name.into(), passed: false, evidence: evidence.into() }
    }

    /// Passed with the evidence, or failed with the sentence.
    fn of(name: impl Into<String>, outcome: Result<String, String>) -> Self {
        match outcome {
            Ok(evidence) => Self::passed(name, evidence),
            Err(fault) => Self::failed(name, fault),
        }
    }
}

/// Verifies `run`. `note` hears what is being done.
///
/// # Errors
/// When the run is unknown, an option names an arm it does not have, or the database cannot be read.
/// What is wrong with the run itself is a failed check, not an error.
pub async fn verify(
    store: &Store,
    archive: &Archive,
    pools: &Arc<Pools>,
    run: &RunId,
    options: &VerifyOptions,
    note: Note,
) -> Result<VerifyReport, Refusal> {
    let mut checks = Vec::new();
    // Ids and states have to read back before anything can be said about them.
    let stored = store.run(run).await?;
    note("protocol");
    let digest = records::protocol_digest(store, &stored).await?;
    let is_readable = digest.passed;
    checks.push(digest);
    note("history and rows");
    checks.extend(records::rows(store, run).await?);
    match subject(store, archive, run).await {
        Ok(subject) => {
            refuse_unknown_arms(&subject, options)?;
            let pools = Arc::clone(pools);
            let options = options.clone();
            checks.extend(off_the_runtime(move || subject.checks(&pools, &options, &note)).await?);
        }
        // A protocol that does not parse is what `protocol-digest` has just reported.
        Err(refusal) if refusal.code == Code::Corrupt && !is_readable => {}
        Err(refusal) if refusal.code == Code::Corrupt => {
            checks.push(Check::failed("records-read-back", refusal.detail));
        }
        Err(refusal) => return Err(refusal),
    }
    let passed = checks.iter().all(|check| check.passed);
    Ok(VerifyReport { run_id: run.clone(), passed, checks })
}

/// Reads everything the other checks look at.
async fn subject(store: &Store, archive: &Archive, run: &RunId) -> Result<Subject, Refusal> {
    let (protocol, status) = protocol_and_status(store, run).await?;
    let rows = store.all_games(run).await?;
    let mut artifacts = store.artifacts(run).await?;
    // Tables that the protocol names may have been stored by other runs.
    for table in &protocol.tables {
        if !artifacts.iter().any(|artifact| artifact.sha256 == table.sha256)
            && let Ok(artifact) = store.artifact(&table.sha256).await
        {
            artifacts.push(artifact);
        }
    }
    Ok(Subject { archive: archive.clone(), run: run.clone(), protocol, status, rows, artifacts })
}

impl Subject {
    /// Hashing, statistics and games: minutes of work, so not for a thread of the runtime.
    fn checks(
        &self,
        pools: &Pools,
        options: &VerifyOptions,
        note: &Note,
    ) -> Result<Vec<Check>, Refusal> {
        let mut checks = Vec::new();
        if self.status.run.origin == Origin::Imported {
            note("published figures");
            checks.extend(published::checks(self));
        } else {
            checks.push(records::artifacts(self, note)?);
            checks.push(records::opening(self));
            checks.push(records::curve_points(self));
            checks.push(records::selection(self));
            note("statistics");
            checks.extend(recompute::checks(self));
        }
        checks.extend(replay::checks(self, pools, options, note)?);
        Ok(checks)
    }
}

/// Does `work` on a thread of its own.
async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let (answer, answered) = oneshot::channel();
    std::thread::Builder::new()
        .name(String::from("verify"))
        .spawn(move || {
            // Whoever asked may have gone away.
            let _ = answer.send(work());
        })
        .map_err(|error| internal("starting a thread", &error))?;
    answered.await.map_err(|error| internal("verifying", &error))?
}

fn refuse_unknown_arms(subject: &Subject, options: &VerifyOptions) -> Result<(), Refusal> {
    let known: Vec<&str> =
        subject.protocol.screen.arms.iter().map(|arm| arm.name.as_str()).collect();
    let mut refusal = Refusal::new(
        Code::InvalidRequest,
        format!("{} has no such arm; its arms are {}", subject.run, known.join(", ")),
    );
    for (index, arm) in options.replay.iter().flatten().enumerate() {
        if !known.contains(&arm.as_str()) {
            refusal = refusal.at(format!("/replay/{index}"), format!("{arm:?} is not an arm"));
        }
    }
    if refusal.errors.is_empty() { Ok(()) } else { Err(refusal) }
}

impl super::App {
    /// Re-hashes, recomputes and replays a run.
    ///
    /// # Errors
    /// When the run is unknown or an option names an arm it does not have.
    pub async fn verify(
        &self,
        run: &RunId,
        options: VerifyOptions,
    ) -> Result<VerifyReport, Refusal> {
        let pools = Arc::clone(&self.inner.pools);
        verify(self.store(), self.archive(), &pools, run, &options, Arc::new(|_| {})).await
    }
}
