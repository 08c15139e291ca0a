//! The history: one writing transaction tells what it changed in events, each with the hash of the one
//! before.
//!
//! `hash = SHA-256(hash of the one before, as 64 hex digits, then the RFC 8785 form of the event as it
//! is served, without its hash)`. The first event follows 64 zeros.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Sqlite, Transaction};
use tokio::sync::watch;

use super::columns::{Columns, micros, whole};
use super::faults::{fault, unreadable};
use super::seal::{Seal, Sealed, seal};
use super::{PAGE_LIMIT, Store};
use crate::domain::ids::RunId;
use crate::domain::records::Event;
use crate::domain::refusal::{Code, Refusal};

/// The hash before the first event.
pub(super) const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What is hashed: the event as it is served, without its hash.
#[derive(Serialize)]
struct Told<'a> {
    seq: u64,
    at: Timestamp,
    kind: &'a str,
    subject: &'a str,
    run_id: Option<&'a str>,
    body: &'a Value,
}

/// The RFC 8785 form of a value.
pub(super) fn canonical(value: &impl Serialize) -> Result<String, Refusal> {
    serde_json_canonicalizer::to_string(value).map_err(|error| unreadable("document", &error))
}

fn chain_hash(previous: &str, told: &Told<'_>) -> Result<String, Refusal> {
    let mut digest = Sha256::new();
    digest.update(previous.as_bytes());
    digest.update(canonical(told)?.as_bytes());
    Ok(hex::encode(digest.finalize()))
}

/// One writing transaction. Dropped without [`Write::commit`], nothing of it remains.
pub(super) struct Write {
    tx: Transaction<'static, Sqlite>,
    wake: watch::Sender<u64>,
    /// The instant of the transaction: every row and event of it carries the same one.
    pub(super) now: Timestamp,
    seq: u64,
    hash: String,
    seals: Vec<Seal>,
}

impl Write {
    /// The connection inside the transaction.
    pub(super) fn sql(&mut self) -> &mut SqliteConnection {
        &mut self.tx
    }

    /// The instant as it is stored.
    pub(super) fn at(&self) -> i64 {
        micros(self.now)
    }

    /// The number that the next event will get.
    pub(super) const fn next_seq(&self) -> u64 {
        self.seq + 1
    }

    /// Seals rows; the next event carries the seal.
    pub(super) async fn seal(
        &mut self,
        sealed: &Sealed,
        where_sql: &'static str,
        binds: &[&str],
        key: &str,
    ) -> Result<(), Refusal> {
        let seal = seal(&mut self.tx, sealed, where_sql, binds, key).await?;
        self.seals.push(seal);
        Ok(())
    }

    /// Appends an event with the seals gathered since the last one. `body` is an object.
    pub(super) async fn event(
        &mut self,
        kind: &str,
        subject: &str,
        run: Option<&RunId>,
        mut body: Value,
    ) -> Result<u64, Refusal> {
        let seals = std::mem::take(&mut self.seals);
        if let Value::Object(fields) = &mut body
            && !seals.is_empty()
        {
            let seals = serde_json::to_value(seals).map_err(|error| unreadable("seal", &error))?;
            fields.insert(String::from("seals"), seals);
        }
        let seq = self.seq + 1;
        let run = run.map(RunId::as_str);
        let told = Told { seq, at: self.now, kind, subject, run_id: run, body: &body };
        let hash = chain_hash(&self.hash, &told)?;
        sqlx::query(
            "INSERT INTO events (seq, at, kind, subject, run_id, body, prev_hash, hash)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(whole("seq", seq)?)
        .bind(micros(self.now))
        .bind(kind)
        .bind(subject)
        .bind(run)
        .bind(canonical(&body)?)
        .bind(&self.hash)
        .bind(&hash)
        .execute(&mut *self.tx)
        .await
        .map_err(fault)?;
        self.seq = seq;
        self.hash = hash;
        Ok(seq)
    }

    /// Makes it last, then wakes the readers.
    pub(super) async fn commit(self) -> Result<(), Refusal> {
        debug_assert!(self.seals.is_empty(), "seals without an event");
        self.tx.commit().await.map_err(fault)?;
        let seq = self.seq;
        self.wake.send_if_modified(|last| {
            let newer = seq > *last;
            *last = seq.max(*last);
            newer
        });
        Ok(())
    }

    /// Takes it back.
    pub(super) async fn abandon(self) -> Result<(), Refusal> {
        self.tx.rollback().await.map_err(fault)
    }
}

impl Store {
    /// Begins a writing transaction; it waits for the one before.
    pub(super) async fn write(&self) -> Result<Write, Refusal> {
        let writer = self.writer.as_ref().ok_or_else(|| {
            Refusal::new(Code::Locked, "the database is open for reading only")
                .hint("Send the request to the running daemon with --url, or stop it first.")
        })?;
        let mut tx = writer.begin_with("BEGIN IMMEDIATE").await.map_err(fault)?;
        let (seq, hash) = head(&mut tx).await?;
        Ok(Write {
            tx,
            wake: self.wake.clone(),
            now: self.clock.now(),
            seq: seq.unsigned_abs(),
            hash,
            seals: Vec::new(),
        })
    }

    pub(super) async fn last_seq(&self) -> Result<u64, Refusal> {
        let mut connection = self.read().await?;
        let (seq, _) = head(&mut connection).await?;
        Ok(seq.unsigned_abs())
    }

    /// Events after number `after`, oldest first, of one run or of all.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn events(
        &self,
        after: u64,
        limit: u32,
        run: Option<&RunId>,
    ) -> Result<Vec<Event>, Refusal> {
        let mut connection = self.read().await?;
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let limit = i64::from(limit.clamp(1, PAGE_LIMIT));
        let rows = match run {
            None => {
                sqlx::query("SELECT * FROM events WHERE seq > ? ORDER BY seq LIMIT ?")
                    .bind(after)
                    .bind(limit)
                    .fetch_all(&mut *connection)
                    .await
            }
            Some(run) => {
                sqlx::query(
                    "SELECT * FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?",
                )
                .bind(run.as_str())
                .bind(after)
                .bind(limit)
                .fetch_all(&mut *connection)
                .await
            }
        };
        rows.map_err(fault)?.iter().map(event).collect()
    }

    /// Recomputes the whole chain and compares its end with the head kept beside it; gives the number
    /// of events.
    ///
    /// # Errors
    /// [`Code::Corrupt`] naming the first event that does not fit.
    pub async fn verify_event_chain(&self) -> Result<u64, Refusal> {
        let mut snapshot = self.snapshot().await?;
        walk_chain(&mut snapshot, &mut |_| Ok(())).await
    }

    /// A reading transaction: everything in it is read as of one instant, whatever is written meanwhile.
    pub(super) async fn snapshot(&self) -> Result<Transaction<'static, Sqlite>, Refusal> {
        self.reader.begin().await.map_err(fault)
    }
}

/// The walk itself; `each` sees every event whose hash fits.
pub(super) async fn walk_chain(
    connection: &mut SqliteConnection,
    each: &mut (dyn FnMut(&Event) -> Result<(), Refusal> + Send),
) -> Result<u64, Refusal> {
    let (head_seq, head_hash) = head(connection).await?;
    let mut last = 0_u64;
    let mut previous = String::from(GENESIS);
    loop {
        let rows =
            sqlx::query("SELECT * FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT 1000")
                .bind(whole("seq", last)?)
                .bind(head_seq)
                .fetch_all(&mut *connection)
                .await
                .map_err(fault)?;
        if rows.is_empty() {
            break;
        }
        for row in &rows {
            let event = event(row).map_err(|_| broken(last + 1, "cannot be read"))?;
            if event.seq != last + 1 {
                return Err(broken(last + 1, "is missing"));
            }
            let columns = Columns(row);
            if columns.get::<&str>("prev_hash")? != previous {
                return Err(broken(event.seq, "does not hold the hash of the one before"));
            }
            let run = event.run_id.as_ref().map(RunId::as_str);
            let told = Told {
                seq: event.seq,
                at: event.at,
                kind: &event.kind,
                subject: &event.subject,
                run_id: run,
                body: &event.body,
            };
            if chain_hash(&previous, &told)? != event.hash
                || canonical(&event.body)? != columns.get::<&str>("body")?
            {
                return Err(broken(event.seq, "was changed: its hash does not fit"));
            }
            each(&event)?;
            last = event.seq;
            previous.clone_from(&event.hash);
        }
    }
    if last != head_seq.unsigned_abs() {
        return Err(broken(last + 1, "is missing, though the chain was longer"));
    }
    if previous != head_hash {
        return Err(broken(last, "is not the end that was recorded"));
    }
    let extra: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM events WHERE seq > ? AND seq > (SELECT seq FROM event_head)",
    )
    .bind(head_seq)
    .fetch_one(&mut *connection)
    .await
    .map_err(fault)?;
    if extra > 0 {
        return Err(broken(last + 1, "stands behind the recorded end"));
    }
    Ok(last)
}

/// Number and hash of the last event, as kept beside the events.
async fn head(connection: &mut SqliteConnection) -> Result<(i64, String), Refusal> {
    sqlx::query_as("SELECT seq, hash FROM event_head WHERE only = 1")
        .fetch_optional(connection)
        .await
        .map_err(fault)?
        .ok_or_else(|| {
            Refusal::new(Code::Corrupt, "the recorded end of the history is gone")
                .hint("The history was changed by something other than heldout; restore the data folder from a backup.")
        })
}

fn broken(seq: u64, what: &str) -> Refusal {
    Refusal::new(Code::Corrupt, format!("event {seq} {what}"))
        .hint("The history was changed by something other than heldout; restore the data folder from a backup.")
}

fn event(row: &SqliteRow) -> Result<Event, Refusal> {
    let row = Columns(row);
    Ok(Event {
        seq: row.number("seq")?,
        at: row.time("at")?,
        kind: row.get("kind")?,
        subject: row.get("subject")?,
        run_id: row.parsed_option("run_id")?,
        body: row.json("body")?,
        hash: row.get("hash")?,
    })
}
