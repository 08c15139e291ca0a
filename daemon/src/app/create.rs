//! Freezing protocols.

use super::{App, CreateOptions, Created, ProtocolCheck};
use crate::domain::canonical;
use crate::domain::ids::{ExperimentId, LeaseId};
use crate::domain::protocol::{MediaType, Protocol, estimate, parse, parse_theory};
use crate::domain::records::{Lease, Origin, Theory};
use crate::domain::refusal::{Code, Refusal};
use crate::store::NewExperiment;

/// Why a repeat exists beside its predecessor.
const REPEAT_REASON: &str = "repeat on fresh seeds";

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
        self.refuse_other_engine(&protocol)?;
        let canonical = canonical::to_bytes(&protocol)?;
        let sha256 = canonical::sha256_hex(&canonical);
        let estimate = estimate(&protocol);
        Ok(ProtocolCheck { protocol, canonical, sha256, estimate })
    }

    /// Freezes a protocol: the experiment, its theory and all its leases in one transaction.
    ///
    /// # Errors
    /// Every fault of the document, every lease that collides, tables that are not stored.
    pub async fn create_experiment(
        &self,
        bytes: &[u8],
        media: MediaType,
        options: CreateOptions,
    ) -> Result<Created, Refusal> {
        self.refuse_when_stopping()?;
        let check = self.validate_protocol(bytes, media)?;
        self.refuse_missing_tables(&check.protocol).await?;
        let store = self.store();
        let predecessor = if options.repeat {
            let earlier = store.experiment_by_digest(&check.sha256).await?;
            earlier.map(|earlier| (earlier.id, REPEAT_REASON.to_owned()))
        } else {
            None
        };
        let new = NewExperiment {
            protocol: check.protocol,
            canonical: check.canonical,
            sha256: check.sha256.clone(),
            engine: self.engine().to_owned(),
            predecessor,
            origin: Origin::Own,
            id: None,
        };
        let frozen = if options.dry_run {
            store.try_experiment(new).await?
        } else {
            store.create_experiment(new).await?
        };
        let is_stored = !(options.dry_run && frozen.created);
        Ok(Created {
            experiment: is_stored.then_some(frozen.experiment),
            sha256: check.sha256,
            leases: frozen.leases,
            estimate: check.estimate,
            created: frozen.created && !options.dry_run,
        })
    }

    /// Records a theory before any experiment tests it, or finds it by its words; the flag says whether
    /// this call recorded it.
    ///
    /// # Errors
    /// Every fault of the document.
    pub async fn create_theory(
        &self,
        bytes: &[u8],
        media: MediaType,
    ) -> Result<(Theory, bool), Refusal> {
        self.refuse_when_stopping()?;
        self.store().create_theory(&parse_theory(bytes, media)?).await
    }

    /// The frozen protocol of an experiment, from its stored bytes.
    ///
    /// # Errors
    /// When the experiment is unknown, or its bytes are not what was hashed.
    pub async fn protocol(&self, experiment: &ExperimentId) -> Result<Protocol, Refusal> {
        let bytes = self.store().protocol_bytes(experiment).await?;
        frozen_protocol(&bytes)
    }

    /// Gives an unread lease back.
    ///
    /// # Errors
    /// When it is unknown, open, or cancelled already.
    pub async fn cancel_lease(&self, lease: &LeaseId, reason: &str) -> Result<Lease, Refusal> {
        self.refuse_when_stopping()?;
        self.store().cancel_lease(lease, reason).await
    }

    fn refuse_other_engine(&self, protocol: &Protocol) -> Result<(), Refusal> {
        let rules = self.engine().split('+').next().unwrap_or_default();
        // A protocol may name the rules, or this very engine.
        if protocol.engine == rules || protocol.engine == self.engine() {
            return Ok(());
        }
        Err(Refusal::new(
            Code::EngineMismatch,
            format!(
                "the protocol is for engine {}, this build has {}",
                protocol.engine,
                self.engine()
            ),
        )
        .at("/engine", format!("must be {rules:?} or {:?}", self.engine())))
    }

    async fn refuse_missing_tables(&self, protocol: &Protocol) -> Result<(), Refusal> {
        let mut refusal =
            Refusal::new(Code::MissingTable, "tables of the protocol are not stored here");
        for (index, table) in protocol.tables.iter().enumerate() {
            if let Err(error) = self.store().artifact(&table.sha256).await {
                if error.code != Code::NotFound {
                    return Err(error);
                }
                refusal = refusal.at(
                    format!("/tables/{index}/sha256"),
                    format!("no table with the digest {} is stored here", table.sha256),
                );
            }
        }
        if refusal.errors.is_empty() {
            return Ok(());
        }
        Err(refusal
            .hint("Import the table file first, or name a digest that `heldout export` shows."))
    }
}

/// A protocol from its canonical bytes.
///
/// # Errors
/// [`Code::Corrupt`] when they do not parse.
pub(super) fn frozen_protocol(bytes: &[u8]) -> Result<Protocol, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| {
        Refusal::new(Code::Corrupt, format!("the frozen protocol does not parse: {error}"))
    })
}
