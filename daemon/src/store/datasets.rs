//! Datasets: rows gathered for learning or analysis, with the leases and datasets they stem from.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::sqlite::SqliteRow;
use utoipa::ToSchema;

use super::columns::{Columns, json as text, micros, whole};
use super::faults::{fault, not_found};
use super::seal::DATASETS;
use super::{Page, Store};
use crate::domain::ids::{DatasetId, LeaseId};
use crate::domain::refusal::Refusal;

/// A dataset. Its bytes are an artifact, which holds both digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Dataset {
    /// Its id.
    #[schema(value_type = String)]
    pub id: DatasetId,
    /// One line.
    pub title: String,
    /// training, validation, held-out, diagnostic.
    pub data_role: String,
    /// public-only, privileged-teacher, mixed.
    pub information_class: String,
    /// What one origin is: a game, a position.
    pub origin_unit: String,
    /// How many origins.
    pub origin_count: u64,
    /// How many rows.
    pub row_count: u64,
    /// Whether splits keep the rows of one origin together.
    pub whole_origin_split: bool,
    /// Leases whose seeds were read for it.
    #[schema(value_type = Vec<String>)]
    pub leases: Vec<LeaseId>,
    /// Datasets it was made of.
    #[schema(value_type = Vec<String>)]
    pub parents: Vec<DatasetId>,
    /// Names of the columns.
    pub fields: Vec<String>,
    /// Those that no player may see.
    pub privileged_fields: Vec<String>,
    /// Remarks.
    pub notes: Vec<String>,
    /// SHA-256 of its plain bytes.
    pub artifact_sha256: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

impl Store {
    /// Records a dataset.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::domain::refusal::Code::NotFound) when a lease or parent is not on
    /// record.
    pub async fn add_dataset(&self, dataset: &Dataset) -> Result<(), Refusal> {
        let origins = whole("origin_count", dataset.origin_count)?;
        let rows = whole("row_count", dataset.row_count)?;
        let mut write = self.write().await?;
        let id = dataset.id.as_str();
        sqlx::query(
            "INSERT INTO datasets (id, title, data_role, information_class, origin_unit, origin_count, row_count,
                 whole_origin_split, leases, parents, fields, privileged_fields, notes, artifact_sha256, created_at)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(id)
        .bind(&dataset.title)
        .bind(&dataset.data_role)
        .bind(&dataset.information_class)
        .bind(&dataset.origin_unit)
        .bind(origins)
        .bind(rows)
        .bind(dataset.whole_origin_split)
        .bind(text(&dataset.leases)?)
        .bind(text(&dataset.parents)?)
        .bind(text(&dataset.fields)?)
        .bind(text(&dataset.privileged_fields)?)
        .bind(text(&dataset.notes)?)
        .bind(&dataset.artifact_sha256)
        .bind(micros(dataset.created_at))
        .execute(write.sql())
        .await
        .map_err(fault)?;
        write.seal(&DATASETS, "id = ?", &[id], id).await?;
        let body = json!({ "title": dataset.title, "artifact_sha256": dataset.artifact_sha256 });
        write.event("dataset-recorded", id, None, body).await?;
        write.commit().await
    }

    /// A dataset.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::domain::refusal::Code::NotFound).
    pub async fn dataset(&self, id: &DatasetId) -> Result<Dataset, Refusal> {
        let mut connection = self.read().await?;
        let row = sqlx::query("SELECT * FROM datasets WHERE id = ?")
            .bind(id.as_str())
            .fetch_optional(&mut *connection)
            .await
            .map_err(fault)?;
        dataset(&row.ok_or_else(|| not_found("dataset", id))?)
    }

    /// Datasets, the newest first.
    ///
    /// # Errors
    /// `invalid-request` when the page follows a record that does not exist.
    pub async fn datasets(&self, page: &Page) -> Result<Vec<Dataset>, Refusal> {
        let mut connection = self.read().await?;
        let rows = sqlx::query(
            "SELECT * FROM datasets
             WHERE ?1 IS NULL OR (created_at, id) < (SELECT created_at, id FROM datasets WHERE id = ?1)
             ORDER BY created_at DESC, id DESC LIMIT ?2",
        )
        .bind(page.after.as_deref())
        .bind(page.rows())
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?;
        drop(connection);
        let known = "SELECT EXISTS (SELECT 1 FROM datasets WHERE id = ?)";
        self.refuse_unknown_cursor(page, rows.is_empty(), known).await?;
        rows.iter().map(dataset).collect()
    }
}

fn dataset(row: &SqliteRow) -> Result<Dataset, Refusal> {
    let row = Columns(row);
    Ok(Dataset {
        id: row.parsed("id")?,
        title: row.get("title")?,
        data_role: row.get("data_role")?,
        information_class: row.get("information_class")?,
        origin_unit: row.get("origin_unit")?,
        origin_count: row.number("origin_count")?,
        row_count: row.number("row_count")?,
        whole_origin_split: row.get("whole_origin_split")?,
        leases: row.json("leases")?,
        parents: row.json("parents")?,
        fields: row.json("fields")?,
        privileged_fields: row.json("privileged_fields")?,
        notes: row.json("notes")?,
        artifact_sha256: row.get("artifact_sha256")?,
        created_at: row.time("created_at")?,
    })
}
