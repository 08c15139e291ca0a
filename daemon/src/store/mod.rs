//! Records in one SQLite file, and the only place with SQL.
//!
//! Promised: every change is one transaction on one writing connection, begun IMMEDIATE, synced to disk
//! before the call returns, and told by an event chained to the one before; rows are sealed by digests
//! in these events, so that [`Store::verify_rows`] notices an edit made with any other tool. The rules
//! themselves (frozen protocols, disjoint leases, open once, append-only rows, verdicts on every
//! planned game) are constraints and triggers of the schema in `migrations/`; the functions here check
//! first in order to refuse with names and ranges, and the schema has the last word.
//!
//! Refused: reading through the writing connection, writing through the reading ones, and anything but
//! SQL (and the hashing of the chain) between begin and commit.

mod artifacts;
mod columns;
mod contributions;
mod curves;
mod datasets;
mod events;
mod experiments;
mod faults;
mod games;
mod import;
mod leases;
mod machines;
mod openings;
mod pool;
mod results;
mod runs;
mod seal;
mod theories;
mod units;
mod verify;

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use tokio::sync::watch;

use crate::clock::Clock;
use crate::domain::refusal::{Code, Refusal};

pub use contributions::{Contribution, ContributionRole};
pub use datasets::Dataset;
pub use experiments::{Frozen, NewExperiment};
pub use import::RunImport;
pub use leases::{Ask, BlockedRange, LeaseFilter};
pub use openings::Reading;
pub use pool::lowest_free;
pub use runs::RunFilter;
pub use units::{AttemptToken, PlannedUnit};
pub use verify::RowCheck;

use faults::{fault, migration_fault};

/// Every migration, in order. A released one never changes; a test holds their digests.
pub static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// How long a connection waits for another process's write.
const BUSY: Duration = Duration::from_secs(10);

/// Most rows of a page, whatever is asked for.
pub const PAGE_LIMIT: u32 = 1000;

/// A part of a list: what follows the record `after`, at most `limit` records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Id of the last record of the page before; the first page has none.
    pub after: Option<String>,
    /// How many records, 1..=[`PAGE_LIMIT`]; more is cut, 0 is 1.
    pub limit: u32,
}

impl Default for Page {
    fn default() -> Self {
        Self { after: None, limit: 100 }
    }
}

impl Page {
    fn rows(&self) -> i64 {
        i64::from(self.limit.clamp(1, PAGE_LIMIT))
    }
}

/// The records. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Store {
    writer: Option<SqlitePool>,
    reader: SqlitePool,
    clock: Clock,
    wake: watch::Sender<u64>,
    path: PathBuf,
}

impl Store {
    /// Opens or makes the file, brings its schema up to date, and connects: one connection that
    /// writes, four that read.
    ///
    /// # Errors
    /// [`Code::Corrupt`] when a migration that was applied is not the one of this build or unknown to
    /// it, [`Code::Locked`] when another process holds the file, [`Code::Internal`] otherwise.
    pub async fn open(path: &Path, clock: Clock) -> Result<Self, Refusal> {
        let writing = options(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full);
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(Duration::from_mins(1))
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(writing)
            .await
            .map_err(fault)?;
        migrate(&writer).await?;
        let reader = reader(path).await?;
        let store = Self {
            writer: Some(writer),
            reader,
            clock,
            wake: watch::Sender::new(0),
            path: path.to_path_buf(),
        };
        store.wake.send_replace(store.last_seq().await?);
        Ok(store)
    }

    /// Opens an existing file for reading. Every writing function refuses with [`Code::Locked`].
    ///
    /// # Errors
    /// [`Code::NotFound`] when there is no such file, [`Code::Corrupt`] when it is not ours or of
    /// another version.
    pub async fn open_read_only(path: &Path, clock: Clock) -> Result<Self, Refusal> {
        if !path.is_file() {
            return Err(Refusal::new(
                Code::NotFound,
                format!("there is no database at {}", path.display()),
            )
            .hint("Give the folder that `heldout run` or `heldout serve` made, with --data."));
        }
        let reader = reader(path).await?;
        let store = Self {
            writer: None,
            reader,
            clock,
            wake: watch::Sender::new(0),
            path: path.to_path_buf(),
        };
        store.check_versions().await?;
        store.wake.send_replace(store.last_seq().await?);
        Ok(store)
    }

    /// The number of the last event, sent after every commit of this store: a wake-up, nothing more.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.wake.subscribe()
    }

    /// Where the records are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The clock that stamps records.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Asks the writing connection for a sign of life, for readiness checks.
    ///
    /// # Errors
    /// When the file cannot be read or, in a writing store, not be locked for writing.
    pub async fn ping(&self) -> Result<(), Refusal> {
        self.last_seq().await?;
        if self.writer.is_some() {
            self.write().await?.abandon().await?;
        }
        Ok(())
    }

    /// Moves the write-ahead log into the file and closes every connection.
    pub async fn close(&self) {
        if let Some(writer) = &self.writer {
            self.reader.close().await;
            if let Err(error) = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(writer).await
            {
                tracing::warn!(%error, "the write-ahead log was not folded in; the next start does it");
            }
            writer.close().await;
        } else {
            self.reader.close().await;
        }
    }

    /// An empty page after a record that does not exist is no end of a list but a wrong request.
    async fn refuse_unknown_cursor(
        &self,
        page: &Page,
        is_empty: bool,
        exists: &'static str,
    ) -> Result<(), Refusal> {
        let Some(after) = page.after.as_deref().filter(|_| is_empty) else { return Ok(()) };
        let mut connection = self.read().await?;
        let known: bool = sqlx::query_scalar(exists)
            .bind(after)
            .fetch_one(&mut *connection)
            .await
            .map_err(fault)?;
        if known {
            return Ok(());
        }
        Err(Refusal::new(Code::InvalidRequest, format!("no record of this list is {after:?}"))
            .at("/after", "is the id of the last record of the page before"))
    }

    async fn read(&self) -> Result<sqlx::pool::PoolConnection<sqlx::Sqlite>, Refusal> {
        self.reader.acquire().await.map_err(fault)
    }

    async fn check_versions(&self) -> Result<(), Refusal> {
        let mut connection = self.read().await?;
        let applied: Vec<(i64, Vec<u8>)> = sqlx::query_as(
            "SELECT version, checksum FROM _sqlx_migrations WHERE success ORDER BY version",
        )
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| {
            tracing::error!(%error, "no migrations table");
            Refusal::new(Code::Corrupt, "the file is not a heldout database")
        })?;
        let known: Vec<(i64, Vec<u8>)> =
            MIGRATIONS.iter().map(|m| (m.version, m.checksum.to_vec())).collect();
        if applied == known {
            return Ok(());
        }
        Err(Refusal::new(
            Code::Corrupt,
            format!(
                "the schema of {} is version {}, this program reads version {}",
                self.path.display(),
                applied.last().map_or(0, |(version, _)| *version),
                known.last().map_or(0, |(version, _)| *version),
            ),
        )
        .hint("Open it once with `heldout serve` of this version to bring it up to date, or use the version that made it."))
    }
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY)
        .foreign_keys(true)
        .pragma("recursive_triggers", "ON")
}

async fn reader(path: &Path) -> Result<SqlitePool, Refusal> {
    SqlitePoolOptions::new()
        .max_connections(4)
        .acquire_timeout(Duration::from_secs(30))
        .connect_with(options(path).read_only(true).pragma("query_only", "ON"))
        .await
        .map_err(fault)
}

/// Two processes may find the same new file: the one that comes second tries again and finds the
/// work done.
async fn migrate(writer: &SqlitePool) -> Result<(), Refusal> {
    let mut tries = 0;
    loop {
        match MIGRATIONS.run(writer).await {
            Ok(()) => return Ok(()),
            Err(
                sqlx::migrate::MigrateError::Execute(_)
                | sqlx::migrate::MigrateError::ExecuteMigration(..),
            ) if tries < 5 => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(50 * tries)).await;
            }
            Err(error) => return Err(migration_fault(&error)),
        }
    }
}

/// A fresh copy of the schema in memory, to compare a file's guards with.
async fn fresh_schema() -> Result<SqliteConnection, Refusal> {
    use sqlx::ConnectOptions as _;
    let mut connection =
        SqliteConnectOptions::new().in_memory(true).connect().await.map_err(fault)?;
    MIGRATIONS
        .run_direct(None, &mut connection, false)
        .await
        .map_err(|error| migration_fault(&error))?;
    Ok(connection)
}
