//! The one composition of store, archive and execution that the command line and HTTP both call.
//!
//! Promised: whoever calls, the same request has the same effect and the same refusal. Refused: a
//! second process on the same data folder, and every request once the daemon is stopping.

mod answers;

pub use answers::{
    Check, CreateOptions, Created, ProtocolCheck, UnitProgress, Validated, VerifyOptions,
    VerifyReport,
};

use std::sync::Arc;
use std::time::Duration;

use crate::domain::ids::{ExperimentId, LeaseId, RunId};
use crate::domain::protocol::{MediaType, estimate, parse};
use crate::domain::records::{Lease, Run};
use crate::domain::refusal::{Code, Refusal};
use crate::exec::status::RunStatus;

/// The daemon's capabilities. Cheap to clone.
#[derive(Debug, Clone)]
pub struct App {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {}

fn not_wired<T>() -> Result<T, Refusal> {
    Err(Refusal::new(Code::Internal, "this part of the daemon is not wired yet"))
}

impl App {
    /// Parses, resolves, hashes and estimates a protocol without storing anything.
    ///
    /// # Errors
    /// One refusal with every fault of the document.
    pub fn validate_protocol(
        &self,
        bytes: &[u8],
        media: MediaType,
    ) -> Result<ProtocolCheck, Refusal> {
        let protocol = parse(bytes, media)?;
        let estimate = estimate(&protocol);
        Ok(ProtocolCheck { protocol, canonical: Vec::new(), sha256: String::new(), estimate })
    }

    /// Freezes a protocol: the experiment, its theory and all its leases in one transaction.
    ///
    /// # Errors
    /// Every fault of the document, every lease that collides, tables that are not stored.
    pub async fn create_experiment(
        &self,
        _bytes: &[u8],
        _media: MediaType,
        _options: CreateOptions,
    ) -> Result<Created, Refusal> {
        not_wired()
    }

    /// Starts a run of an experiment.
    ///
    /// # Errors
    /// When the experiment is unknown, withdrawn, frozen for another engine, its held-out block is
    /// open, or the machine is too small for its budget.
    pub async fn start_run(&self, _experiment: &ExperimentId) -> Result<Run, Refusal> {
        not_wired()
    }

    /// Asks a run to stop at its next boundary and waits until it has.
    ///
    /// # Errors
    /// When the run is unknown or over.
    pub async fn stop_run(&self, _run: &RunId) -> Result<Run, Refusal> {
        not_wired()
    }

    /// Continues a stopped or interrupted run.
    ///
    /// # Errors
    /// When the run is unknown, over, running, or was made by another engine.
    pub async fn resume_run(&self, _run: &RunId) -> Result<Run, Refusal> {
        not_wired()
    }

    /// A validation point of a training arm at its next chunk boundary.
    ///
    /// # Errors
    /// When no such arm is training.
    pub async fn validate_now(
        &self,
        _run: &RunId,
        _arm: Option<String>,
    ) -> Result<Validated, Refusal> {
        not_wired()
    }

    /// Everything known of a run.
    ///
    /// # Errors
    /// When the run is unknown.
    pub async fn status(&self, _run: &RunId) -> Result<RunStatus, Refusal> {
        not_wired()
    }

    /// Gives an unread lease back.
    ///
    /// # Errors
    /// When it is unknown, open, or cancelled already.
    pub async fn cancel_lease(&self, _lease: &LeaseId, _reason: &str) -> Result<Lease, Refusal> {
        not_wired()
    }

    /// Re-hashes, recomputes and replays a run.
    ///
    /// # Errors
    /// When the run is unknown or an option names an arm it does not have.
    pub async fn verify(
        &self,
        _run: &RunId,
        _options: VerifyOptions,
    ) -> Result<VerifyReport, Refusal> {
        not_wired()
    }

    /// Stops every run at its next boundary, for at most `grace`, and gives the data folder back.
    pub async fn shutdown(&self, _grace: Duration) {}

    /// Whether new work is accepted.
    pub fn is_ready(&self) -> bool {
        Arc::strong_count(&self.inner) > 0
    }
}
