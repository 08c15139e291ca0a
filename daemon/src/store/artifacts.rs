//! Records of stored files. The bytes are in the archive; the same bytes are one record, however many
//! runs made or used them.

use serde_json::json;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::Store;
use super::columns::{Columns, micros, whole};
use super::events::Write;
use super::faults::{fault, not_found};
use super::seal::{ARTIFACT_USES, ARTIFACTS};
use crate::domain::ids::RunId;
use crate::domain::records::Artifact;
use crate::domain::refusal::{Code, Refusal};

impl Store {
    /// Records a stored file, and its use by `run_id` under `name`. The same again changes nothing.
    ///
    /// # Errors
    /// [`Code::Corrupt`] when these bytes are on record with other figures.
    pub async fn add_artifact(&self, artifact: &Artifact) -> Result<(), Refusal> {
        let mut write = self.write().await?;
        if record(&mut write, artifact).await? {
            write.commit().await
        } else {
            write.abandon().await
        }
    }

    /// A stored file by the SHA-256 of its plain bytes; run and name are those it was recorded with
    /// first.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn artifact(&self, sha256: &str) -> Result<Artifact, Refusal> {
        let mut connection = self.read().await?;
        by_digest(&mut connection, sha256).await?.ok_or_else(|| not_found("artifact", &sha256))
    }

    /// The stored files of a run, under the names it uses, in the order of time.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn artifacts(&self, run: &RunId) -> Result<Vec<Artifact>, Refusal> {
        let mut connection = self.read().await?;
        sqlx::query(
            "SELECT a.sha256, a.bytes, a.stored_sha256, a.stored_bytes, u.kind, u.run_id, u.name, u.created_at
             FROM artifact_uses AS u JOIN artifacts AS a ON a.sha256 = u.sha256
             WHERE u.run_id = ? ORDER BY u.created_at, u.kind, u.name, u.sha256",
        )
        .bind(run.as_str())
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?
        .iter()
        .map(artifact)
        .collect()
    }
}

async fn record(write: &mut Write, new: &Artifact) -> Result<bool, Refusal> {
    let (bytes, stored_bytes) =
        (whole("bytes", new.bytes)?, whole("stored_bytes", new.stored_bytes)?);
    let mut changed = false;
    match by_digest(write.sql(), &new.sha256).await? {
        Some(known) if known.bytes == new.bytes && known.stored_sha256 == new.stored_sha256 => {}
        Some(known) => {
            return Err(Refusal::new(
                Code::Corrupt,
                format!(
                    "{} is on record with {} bytes stored as {}",
                    new.sha256, known.bytes, known.stored_sha256
                ),
            ));
        }
        None => {
            sqlx::query(
                "INSERT INTO artifacts (sha256, bytes, stored_sha256, stored_bytes, kind, name, created_at)
                 VALUES (?, ?, ?, ?, ?, ?, ?)",
            )
            .bind(&new.sha256)
            .bind(bytes)
            .bind(&new.stored_sha256)
            .bind(stored_bytes)
            .bind(&new.kind)
            .bind(&new.name)
            .bind(micros(new.created_at))
            .execute(write.sql())
            .await
            .map_err(fault)?;
            write.seal(&ARTIFACTS, "sha256 = ?", &[&new.sha256], &new.sha256).await?;
            changed = true;
        }
    }
    if let Some(run) = &new.run_id {
        let used: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM artifact_uses WHERE run_id = ? AND kind = ? AND name = ? AND sha256 = ?)",
        )
        .bind(run.as_str())
        .bind(&new.kind)
        .bind(&new.name)
        .bind(&new.sha256)
        .fetch_one(write.sql())
        .await
        .map_err(fault)?;
        if !used {
            sqlx::query("INSERT INTO artifact_uses (run_id, name, kind, sha256, created_at) VALUES (?, ?, ?, ?, ?)")
                .bind(run.as_str())
                .bind(&new.name)
                .bind(&new.kind)
                .bind(&new.sha256)
                .bind(micros(new.created_at))
                .execute(write.sql())
                .await
                .map_err(fault)?;
            write
                .seal(
                    &ARTIFACT_USES,
                    "run_id = ? AND kind = ? AND name = ? AND sha256 = ?",
                    &[run.as_str(), &new.kind, &new.name, &new.sha256],
                    &format!("{run}/{}/{}/{}", new.kind, new.name, new.sha256),
                )
                .await?;
            changed = true;
        }
    }
    if changed {
        let body = json!({
            "kind": new.kind, "name": new.name, "bytes": new.bytes,
            "stored_sha256": new.stored_sha256, "stored_bytes": new.stored_bytes,
        });
        write.event("artifact-stored", &new.sha256, new.run_id.as_ref(), body).await?;
    }
    Ok(changed)
}

async fn by_digest(
    connection: &mut SqliteConnection,
    sha256: &str,
) -> Result<Option<Artifact>, Refusal> {
    sqlx::query(
        "SELECT a.*, (SELECT u.run_id FROM artifact_uses AS u WHERE u.sha256 = a.sha256
                      ORDER BY u.created_at, u.run_id LIMIT 1) AS run_id
         FROM artifacts AS a WHERE a.sha256 = ?",
    )
    .bind(sha256)
    .fetch_optional(connection)
    .await
    .map_err(fault)?
    .as_ref()
    .map(artifact)
    .transpose()
}

fn artifact(row: &SqliteRow) -> Result<Artifact, Refusal> {
    let row = Columns(row);
    Ok(Artifact {
        sha256: row.get("sha256")?,
        bytes: row.number("bytes")?,
        stored_sha256: row.get("stored_sha256")?,
        stored_bytes: row.number("stored_bytes")?,
        kind: row.get("kind")?,
        run_id: row.parsed_option("run_id")?,
        name: row.get("name")?,
        created_at: row.time("created_at")?,
    })
}
