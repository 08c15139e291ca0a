//! Taking over a published run: its theory, experiment, leases, games, curves and result in one
//! transaction, all marked as imported. The rules of the schema hold for it too, but for those about
//! work that was not done here: units, attempts and stored tables.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::Store;
use super::events::Write;
use super::experiments::{self, Arm};
use super::faults::fault;
use super::seal::LEASES;
use super::{curves, games, leases, machines, openings, pool, results, runs, theories};
use crate::domain::protocol::Role;
use crate::domain::records::{
    Chunk, Experiment, GameRecord, Lease, LeaseState, Machine, Origin, Point, ResultRecord, Run,
    RunState, Theory,
};
use crate::domain::refusal::{Code, Refusal};
use crate::domain::seed_range::SeedRange;

/// A published run with everything it needs. Ids are those of the publication; `origin` of every part
/// is taken as imported, whatever it says.
#[derive(Debug, Clone)]
pub struct RunImport {
    /// The theory; left alone when its id is on record.
    pub theory: Theory,
    /// The experiment; left alone when its id is on record.
    pub experiment: Experiment,
    /// The bytes that `experiment.protocol_sha256` is the digest of.
    pub protocol: Vec<u8>,
    /// The leases of the experiment; one that is opened and held out says by its opening which tables
    /// were played.
    pub leases: Vec<Lease>,
    /// The machine; left alone when its id is on record.
    pub machine: Machine,
    /// The run, ended.
    pub run: Run,
    /// Name of the held-out block, and arms with their games per arm, in order.
    pub screen: (String, Vec<(String, u32)>),
    /// Every game of the screen.
    pub games: Vec<GameRecord>,
    /// Training chunks, as far as they are published.
    pub chunks: Vec<Chunk>,
    /// Validation points.
    pub points: Vec<Point>,
    /// The published result.
    pub result: Option<ResultRecord>,
}

impl Store {
    /// Takes over a published run; false when it is on record already.
    ///
    /// # Errors
    /// [`Code::LeaseOverlap`] when its seeds are leased here, [`Code::Incomplete`] when a valid result
    /// lacks games, [`Code::InvalidRequest`] when parts contradict each other. Nothing is stored then.
    pub async fn import_run(&self, import: &RunImport) -> Result<bool, Refusal> {
        let mut write = self.write().await?;
        if exists(
            &mut write,
            "SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?)",
            import.run.id.as_str(),
        )
        .await?
        {
            write.abandon().await?;
            return Ok(false);
        }
        import_all(&mut write, import).await?;
        write.commit().await?;
        Ok(true)
    }
}

async fn exists(write: &mut Write, sql: &'static str, id: &str) -> Result<bool, Refusal> {
    sqlx::query_scalar(sql).bind(id).fetch_one(write.sql()).await.map_err(fault)
}

async fn import_all(write: &mut Write, import: &RunImport) -> Result<(), Refusal> {
    let id = import.theory.id.as_str();
    if !exists(write, "SELECT EXISTS (SELECT 1 FROM theories WHERE id = ?)", id).await? {
        theories::record(write, &Theory { origin: Origin::Imported, ..import.theory.clone() })
            .await?;
    }
    let id = import.experiment.id.as_str();
    if !exists(write, "SELECT EXISTS (SELECT 1 FROM experiments WHERE id = ?)", id).await? {
        import_experiment(write, import).await?;
    }
    let id = import.machine.id.as_str();
    if !exists(write, "SELECT EXISTS (SELECT 1 FROM machines WHERE id = ?)", id).await? {
        machines::record(write, &import.machine).await?;
    }
    if matches!(import.run.state, RunState::Queued | RunState::Running) {
        return Err(Refusal::new(Code::InvalidRequest, format!("{} has not ended", import.run.id)));
    }
    runs::record(write, &Run { origin: Origin::Imported, ..import.run.clone() }).await?;
    for lease in import.leases.iter().filter(|lease| lease.state == LeaseState::Opened) {
        open(write, import, lease).await?;
    }
    for chunk in &import.chunks {
        curves::record_chunk(write, &Chunk { run_id: import.run.id.clone(), ..chunk.clone() })
            .await?;
    }
    for point in &import.points {
        curves::record_point(write, &Point { run_id: import.run.id.clone(), ..point.clone() })
            .await?;
    }
    let screen = import.leases.iter().find(|lease| lease.name == import.screen.0);
    match screen {
        Some(lease) if !import.games.is_empty() => {
            let all: Vec<&GameRecord> = import.games.iter().collect();
            games::record(write, &import.run.id, 0, &lease.id, &all).await?;
        }
        None if !import.games.is_empty() => {
            return Err(Refusal::new(
                Code::InvalidRequest,
                format!("no lease is named {}, but there are games", import.screen.0),
            ));
        }
        _ => {}
    }
    if let Some(result) = &import.result {
        results::record(write, &ResultRecord { origin: Origin::Imported, ..result.clone() })
            .await?;
    }
    Ok(())
}

async fn import_experiment(write: &mut Write, import: &RunImport) -> Result<(), Refusal> {
    if hex::encode(Sha256::digest(&import.protocol)) != import.experiment.protocol_sha256 {
        return Err(Refusal::new(
            Code::InvalidRequest,
            format!(
                "the protocol of {} does not have the digest it is given",
                import.experiment.id
            ),
        ));
    }
    let (block, arms) = &import.screen;
    let arms: Vec<Arm<'_>> =
        arms.iter().map(|(name, games)| Arm { name, games: *games, block }).collect();
    let experiment = Experiment { origin: Origin::Imported, ..import.experiment.clone() };
    experiments::record(write, &experiment, &import.protocol, false, &arms).await?;
    for lease in &import.leases {
        let range = SeedRange::new(lease.start, u64::from(lease.count)).map_err(|error| {
            Refusal::new(Code::InvalidRequest, format!("{}: {error}", lease.id))
        })?;
        pool::refuse_overlap(write.sql(), &lease.name, range).await?;
        leases::record(write, &lease.id, &experiment.id, &lease.name, lease.role, range).await?;
    }
    Ok(())
}

/// Opens a held-out lease as its opening says, or marks another one as read.
async fn open(write: &mut Write, import: &RunImport, lease: &Lease) -> Result<(), Refusal> {
    let run = &import.run.id;
    if lease.role == Role::HeldOut {
        let Some(opening) = &lease.opening else {
            return Err(Refusal::new(
                Code::InvalidRequest,
                format!("{} is opened, but nothing says by whom", lease.id),
            ));
        };
        return openings::record(
            write,
            &lease.id,
            run,
            &import.run.protocol_sha256,
            &opening.tables,
            opening.opened_at,
        )
        .await;
    }
    let at = write.at();
    sqlx::query(
        "INSERT INTO lease_readings (lease_id, run_id, unit, cursor, wraps, updated_at)
         VALUES (?, ?, 'imported', 0, 0, ?)",
    )
    .bind(lease.id.as_str())
    .bind(run.as_str())
    .bind(at)
    .execute(write.sql())
    .await
    .map_err(fault)?;
    write.seal(&LEASES, "id = ?", &[lease.id.as_str()], lease.id.as_str()).await?;
    write.event("lease-read", lease.id.as_str(), Some(run), json!({ "unit": "imported" })).await?;
    Ok(())
}
