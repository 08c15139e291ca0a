//! Experiments: one frozen protocol each, with the leases it needs, made in one transaction.

use serde_json::json;
use sha2::{Digest as _, Sha256};
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::columns::{Columns, micros, word};
use super::events::Write;
use super::faults::{fault, not_found, unreadable};
use super::leases::{self, Ask};
use super::seal::{EXPERIMENT_ARMS, EXPERIMENTS};
use super::{Page, Store, theories};
use crate::domain::ids::{ExperimentId, TheoryId, TitledId as _};
use crate::domain::protocol::{Protocol, Role, SeedBlock};
use crate::domain::records::{Experiment, Lease, LeaseState, Origin};
use crate::domain::refusal::{Code, FieldError, Refusal};
use crate::domain::seed_range::SeedRange;

/// A protocol about to be frozen.
#[derive(Debug, Clone)]
pub struct NewExperiment {
    /// The complete protocol.
    pub protocol: Protocol,
    /// Its canonical bytes, stored verbatim.
    pub canonical: Vec<u8>,
    /// Their SHA-256, as 64 hex digits.
    pub sha256: String,
    /// Rules id and golden-trace hash of the engine.
    pub engine: String,
    /// The experiment it amends or repeats, and why; without it, `amends` of the protocol counts. A
    /// predecessor with the same digest makes this a repeat.
    pub predecessor: Option<(ExperimentId, String)>,
    /// Where it comes from.
    pub origin: Origin,
    /// Its id, when it has one already.
    pub id: Option<ExperimentId>,
}

/// A frozen experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Frozen {
    /// The experiment.
    pub experiment: Experiment,
    /// The leases of its blocks, by name of the block.
    pub leases: Vec<Lease>,
    /// False when the same protocol was frozen before and this is that experiment.
    pub created: bool,
}

impl Store {
    /// Freezes a protocol and reserves every block it needs, or does nothing at all.
    ///
    /// A protocol that is frozen and not withdrawn is given back as it stands, unless `predecessor` is
    /// an experiment of the same protocol. Blocks without a start get the lowest free block of the
    /// pool. Pinned training and validation blocks that a predecessor holds are read again under the
    /// same lease.
    ///
    /// # Errors
    /// [`Code::LeaseOverlap`] or [`Code::AlreadyOpened`] with every block at fault,
    /// [`Code::PoolExhausted`], [`Code::NotFound`] for an unknown theory or predecessor.
    pub async fn create_experiment(&self, new: NewExperiment) -> Result<Frozen, Refusal> {
        let mut write = self.write().await?;
        let frozen = freeze(&mut write, &new).await?;
        if frozen.created {
            write.commit().await?;
        } else {
            write.abandon().await?;
        }
        Ok(frozen)
    }

    /// What [`Store::create_experiment`] would do, with nothing kept: ids and drawn blocks may be
    /// others when it is done in earnest.
    ///
    /// # Errors
    /// As [`Store::create_experiment`].
    pub async fn try_experiment(&self, new: NewExperiment) -> Result<Frozen, Refusal> {
        let mut write = self.write().await?;
        let frozen = freeze(&mut write, &new).await?;
        write.abandon().await?;
        Ok(frozen)
    }

    /// An experiment.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn experiment(&self, id: &ExperimentId) -> Result<Experiment, Refusal> {
        let mut connection = self.read().await?;
        by_id(&mut connection, id).await
    }

    /// The latest experiment with this protocol digest that is not withdrawn.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn experiment_by_digest(&self, sha256: &str) -> Result<Option<Experiment>, Refusal> {
        let mut connection = self.read().await?;
        by_digest(&mut connection, sha256).await
    }

    /// Experiments, the newest first.
    ///
    /// # Errors
    /// `invalid-request` when the page follows a record that does not exist.
    pub async fn experiments(&self, page: &Page) -> Result<Vec<Experiment>, Refusal> {
        let mut connection = self.read().await?;
        let rows = sqlx::query(
            "SELECT * FROM experiments
             WHERE ?1 IS NULL OR (frozen_at, id) < (SELECT frozen_at, id FROM experiments WHERE id = ?1)
             ORDER BY frozen_at DESC, id DESC LIMIT ?2",
        )
        .bind(page.after.as_deref())
        .bind(page.rows())
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?;
        drop(connection);
        let known = "SELECT EXISTS (SELECT 1 FROM experiments WHERE id = ?)";
        self.refuse_unknown_cursor(page, rows.is_empty(), known).await?;
        rows.iter().map(experiment).collect()
    }

    /// The frozen bytes, verbatim.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Corrupt`] when they do not have their digest any more.
    pub async fn protocol_bytes(&self, id: &ExperimentId) -> Result<Vec<u8>, Refusal> {
        let mut connection = self.read().await?;
        let row: Option<(Vec<u8>, String)> =
            sqlx::query_as("SELECT protocol, protocol_sha256 FROM experiments WHERE id = ?")
                .bind(id.as_str())
                .fetch_optional(&mut *connection)
                .await
                .map_err(fault)?;
        let (bytes, sha256) = row.ok_or_else(|| not_found("experiment", id))?;
        if hex::encode(Sha256::digest(&bytes)) != sha256 {
            return Err(Refusal::new(
                Code::Corrupt,
                format!("the stored protocol of {id} does not have its digest {sha256}"),
            ));
        }
        Ok(bytes)
    }

    /// Withdraws an experiment: it stays on record, starts no run, and its leases that nothing has
    /// read are cancelled.
    ///
    /// # Errors
    /// [`Code::WrongState`] while a run of it is active or when it is withdrawn already.
    pub async fn withdraw_experiment(
        &self,
        id: &ExperimentId,
        reason: &str,
    ) -> Result<Experiment, Refusal> {
        if reason.trim().is_empty() {
            return Err(Refusal::new(Code::InvalidRequest, "a withdrawal says why")
                .at("/reason", "must not be empty"));
        }
        let mut write = self.write().await?;
        let before = by_id(write.sql(), id).await?;
        if let Some(at) = before.withdrawn_at {
            return Err(Refusal::new(Code::WrongState, format!("{id} was withdrawn at {at}")));
        }
        if let Some(run) = leases::active_run(write.sql(), id).await? {
            return Err(Refusal::new(Code::WrongState, format!("{run} of {id} is active"))
                .hint(format!("Stop it first: heldout stop {run}")));
        }
        let at = write.at();
        sqlx::query("UPDATE experiments SET withdrawn_at = ?, withdrawn_reason = ? WHERE id = ?")
            .bind(at)
            .bind(reason)
            .bind(id.as_str())
            .execute(write.sql())
            .await
            .map_err(fault)?;
        write.seal(&EXPERIMENTS, "id = ?", &[id.as_str()], id.as_str()).await?;
        write.event("experiment-withdrawn", id.as_str(), None, json!({ "reason": reason })).await?;
        for lease in leases::of_experiment(write.sql(), id).await? {
            let shared = leases::users(write.sql(), &lease.id).await?.len() > 1;
            if lease.state == LeaseState::Reserved && lease.experiment_id == *id && !shared {
                leases::cancel(&mut write, &lease.id, &format!("{id} was withdrawn")).await?;
            }
        }
        let after = by_id(write.sql(), id).await?;
        write.commit().await?;
        Ok(after)
    }
}

async fn freeze(write: &mut Write, new: &NewExperiment) -> Result<Frozen, Refusal> {
    if hex::encode(Sha256::digest(&new.canonical)) != new.sha256 {
        return Err(Refusal::new(
            Code::Internal,
            "the canonical bytes do not have the given digest",
        ));
    }
    let predecessor = new.predecessor.clone().or_else(|| {
        new.protocol
            .amends
            .as_ref()
            .map(|amends| (amends.experiment.clone(), amends.reason.clone()))
    });
    let mut is_repeat = false;
    let mut was_open = None;
    if let Some((id, _)) = &predecessor {
        let before = by_id(write.sql(), id).await.map_err(|refusal| {
            refusal.at("/amends/experiment", "no experiment on record has this id")
        })?;
        is_repeat = before.protocol_sha256 == new.sha256;
        was_open = Some(held_out_was_open(write.sql(), id).await?);
    }
    if !is_repeat && let Some(experiment) = by_digest(write.sql(), &new.sha256).await? {
        let leases = leases::of_experiment(write.sql(), &experiment.id).await?;
        return Ok(Frozen { experiment, leases, created: false });
    }

    let theory_id = theories::resolve(write, &new.protocol.theory).await?;
    let id = match &new.id {
        Some(id) => id.clone(),
        None => ExperimentId::mint(write.now, &new.protocol.title, rand::random())
            .map_err(|error| unreadable("clock", &error))?,
    };
    let experiment = Experiment {
        id: id.clone(),
        theory_id,
        title: new.protocol.title.clone(),
        kind: word(&new.protocol.kind)?,
        tier: word(&new.protocol.tier)?,
        protocol_sha256: new.sha256.clone(),
        predecessor: predecessor.as_ref().map(|(id, _)| id.clone()),
        predecessor_reason: predecessor.map(|(_, reason)| reason),
        predecessor_was_open: was_open,
        engine: new.engine.clone(),
        origin: new.origin,
        frozen_at: write.now,
        withdrawn_at: None,
        withdrawn_reason: None,
    };
    let screen = &new.protocol.screen;
    let games = new.protocol.seeds.get(&screen.seeds).map_or(0, |block| block.count);
    let arms: Vec<Arm<'_>> = screen
        .arms
        .iter()
        .map(|arm| Arm { name: &arm.name, games, block: &screen.seeds })
        .collect();
    record(write, &experiment, &new.canonical, is_repeat, &arms).await?;
    reserve_blocks(write, &id, &new.protocol).await?;
    let leases = leases::of_experiment(write.sql(), &id).await?;
    Ok(Frozen { experiment, leases, created: true })
}

/// Pinned blocks first, so that drawn ones keep clear of them; every block at fault is reported.
async fn reserve_blocks(
    write: &mut Write,
    id: &ExperimentId,
    protocol: &Protocol,
) -> Result<(), Refusal> {
    let mut refused: Option<Refusal> = None;
    let pinned = protocol.seeds.iter().filter(|(_, block)| block.start.is_some());
    let drawn = protocol.seeds.iter().filter(|(_, block)| block.start.is_none());
    for (name, block) in pinned.chain(drawn) {
        let pointer = format!("/seeds/{}", name.replace('~', "~0").replace('/', "~1"));
        if let Err(refusal) = reserve_block(write, id, name, *block, &pointer).await {
            if refusal.code == Code::Internal {
                return Err(refusal);
            }
            let error = FieldError { pointer, detail: refusal.detail.clone() };
            let all = refused.get_or_insert(Refusal { errors: Vec::new(), ..refusal });
            all.errors.push(error);
        }
    }
    refused.map_or(Ok(()), Err)
}

async fn reserve_block(
    write: &mut Write,
    id: &ExperimentId,
    name: &str,
    block: SeedBlock,
    pointer: &str,
) -> Result<(), Refusal> {
    let ask = match block.start {
        None => Ask::Count(block.count),
        Some(start) => {
            let range = SeedRange::new(start, u64::from(block.count)).map_err(|error| {
                Refusal::new(Code::InvalidProtocol, error.to_string()).at(pointer, "out of range")
            })?;
            if block.role != Role::HeldOut
                && let Some(lease) =
                    leases::held_by_predecessors(write.sql(), id, block.role, range).await?
            {
                return leases::reuse(write, id, name, &lease).await;
            }
            Ask::Range(range)
        }
    };
    leases::reserve(write, id, name, block.role, ask).await.map(drop)
}

/// One arm of the plan.
pub(super) struct Arm<'a> {
    pub(super) name: &'a str,
    pub(super) games: u32,
    pub(super) block: &'a str,
}

/// Writes an experiment and its arms.
pub(super) async fn record(
    write: &mut Write,
    experiment: &Experiment,
    canonical: &[u8],
    is_repeat: bool,
    arms: &[Arm<'_>],
) -> Result<(), Refusal> {
    let id = experiment.id.as_str();
    sqlx::query(
        "INSERT INTO experiments (id, theory_id, title, kind, tier, protocol, protocol_sha256,
             predecessor_id, predecessor_reason, predecessor_was_open, is_repeat, engine, origin, frozen_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(id)
    .bind(experiment.theory_id.as_str())
    .bind(&experiment.title)
    .bind(&experiment.kind)
    .bind(&experiment.tier)
    .bind(canonical)
    .bind(&experiment.protocol_sha256)
    .bind(experiment.predecessor.as_ref().map(ExperimentId::as_str))
    .bind(&experiment.predecessor_reason)
    .bind(experiment.predecessor_was_open)
    .bind(is_repeat)
    .bind(&experiment.engine)
    .bind(word(&experiment.origin)?)
    .bind(micros(experiment.frozen_at))
    .execute(write.sql())
    .await
    .map_err(fault)?;
    for (position, arm) in arms.iter().enumerate() {
        sqlx::query(
            "INSERT INTO experiment_arms (experiment_id, arm, position, games, block) VALUES (?, ?, ?, ?, ?)",
        )
        .bind(id)
        .bind(arm.name)
        .bind(position as i64)
        .bind(i64::from(arm.games))
        .bind(arm.block)
        .execute(write.sql())
        .await
        .map_err(fault)?;
    }
    write.seal(&EXPERIMENTS, "id = ?", &[id], id).await?;
    write.seal(&EXPERIMENT_ARMS, "experiment_id = ?", &[id], id).await?;
    write
        .event(
            "experiment-frozen",
            id,
            None,
            json!({
                "title": experiment.title,
                "protocol_sha256": experiment.protocol_sha256,
                "engine": experiment.engine,
                "predecessor": experiment.predecessor,
                "predecessor_was_open": experiment.predecessor_was_open,
                "origin": experiment.origin,
            }),
        )
        .await?;
    Ok(())
}

pub(super) async fn by_id(
    connection: &mut SqliteConnection,
    id: &ExperimentId,
) -> Result<Experiment, Refusal> {
    let row = sqlx::query("SELECT * FROM experiments WHERE id = ?")
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
        .map_err(fault)?;
    experiment(&row.ok_or_else(|| not_found("experiment", id))?)
}

async fn by_digest(
    connection: &mut SqliteConnection,
    sha256: &str,
) -> Result<Option<Experiment>, Refusal> {
    sqlx::query(
        "SELECT * FROM experiments WHERE protocol_sha256 = ? AND withdrawn_at IS NULL
         ORDER BY frozen_at DESC, id DESC LIMIT 1",
    )
    .bind(sha256)
    .fetch_optional(connection)
    .await
    .map_err(fault)?
    .as_ref()
    .map(experiment)
    .transpose()
}

async fn held_out_was_open(
    connection: &mut SqliteConnection,
    id: &ExperimentId,
) -> Result<bool, Refusal> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM lease_uses AS u JOIN lease_openings AS o ON o.lease_id = u.lease_id
                        WHERE u.experiment_id = ?)",
    )
    .bind(id.as_str())
    .fetch_one(connection)
    .await
    .map_err(fault)
}

fn experiment(row: &SqliteRow) -> Result<Experiment, Refusal> {
    let row = Columns(row);
    Ok(Experiment {
        id: row.parsed("id")?,
        theory_id: row.parsed::<TheoryId>("theory_id")?,
        title: row.get("title")?,
        kind: row.get("kind")?,
        tier: row.get("tier")?,
        protocol_sha256: row.get("protocol_sha256")?,
        predecessor: row.parsed_option("predecessor_id")?,
        predecessor_reason: row.get("predecessor_reason")?,
        predecessor_was_open: row.get("predecessor_was_open")?,
        engine: row.get("engine")?,
        origin: row.word("origin")?,
        frozen_at: row.time("frozen_at")?,
        withdrawn_at: row.time_option("withdrawn_at")?,
        withdrawn_reason: row.get("withdrawn_reason")?,
    })
}
