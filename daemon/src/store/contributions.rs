//! Contributions: who did what for which records.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::sqlite::SqliteRow;
use utoipa::ToSchema;

use super::columns::{Columns, json as text, micros};
use super::faults::{fault, not_found};
use super::seal::CONTRIBUTIONS;
use super::{Page, Store};
use crate::domain::ids::ContributionId;
use crate::domain::refusal::Refusal;

/// A contribution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Contribution {
    /// Its id.
    #[schema(value_type = String)]
    pub id: ContributionId,
    /// model, human, tool, mixed.
    pub actor_kind: String,
    /// Who.
    pub actor: String,
    /// L0, the least, to L4.
    pub level: String,
    /// In which roles; at least one.
    pub roles: Vec<ContributionRole>,
    /// What was done.
    pub summary: String,
    /// Ids of theories, experiments, runs and results, and digests of artifacts, all on record.
    pub subjects: Vec<String>,
    /// Commits, by hash.
    pub commits: Vec<String>,
    /// What it does not cover.
    pub limitations: Vec<String>,
    /// Remarks.
    pub notes: Vec<String>,
    /// Whether the actor wrote this record.
    pub self_reported: bool,
    /// When it was recorded.
    #[schema(value_type = String, format = DateTime)]
    pub recorded_at: Timestamp,
}

/// A role in a contribution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContributionRole {
    /// Like `software` or `formal-analysis`.
    pub role: String,
    /// supporting, substantial, lead.
    pub degree: String,
}

impl Store {
    /// Records a contribution.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::domain::refusal::Code::NotFound) when a subject is not on record.
    pub async fn add_contribution(&self, new: &Contribution) -> Result<(), Refusal> {
        let mut write = self.write().await?;
        let id = new.id.as_str();
        sqlx::query(
            "INSERT INTO contributions (id, actor_kind, actor, level, roles, summary, subjects, commits, limitations,
                 notes, self_reported, recorded_at)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(id)
        .bind(&new.actor_kind)
        .bind(&new.actor)
        .bind(&new.level)
        .bind(text(&new.roles)?)
        .bind(&new.summary)
        .bind(text(&new.subjects)?)
        .bind(text(&new.commits)?)
        .bind(text(&new.limitations)?)
        .bind(text(&new.notes)?)
        .bind(new.self_reported)
        .bind(micros(new.recorded_at))
        .execute(write.sql())
        .await
        .map_err(fault)?;
        write.seal(&CONTRIBUTIONS, "id = ?", &[id], id).await?;
        write.event("contribution-recorded", id, None, json!({ "subjects": new.subjects })).await?;
        write.commit().await
    }

    /// A contribution.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::domain::refusal::Code::NotFound).
    pub async fn contribution(&self, id: &ContributionId) -> Result<Contribution, Refusal> {
        let mut connection = self.read().await?;
        let row = sqlx::query("SELECT * FROM contributions WHERE id = ?")
            .bind(id.as_str())
            .fetch_optional(&mut *connection)
            .await
            .map_err(fault)?;
        contribution(&row.ok_or_else(|| not_found("contribution", id))?)
    }

    /// Contributions, the newest first.
    ///
    /// # Errors
    /// `invalid-request` when the page follows a record that does not exist.
    pub async fn contributions(&self, page: &Page) -> Result<Vec<Contribution>, Refusal> {
        let mut connection = self.read().await?;
        let rows = sqlx::query(
            "SELECT * FROM contributions
             WHERE ?1 IS NULL OR (recorded_at, id) < (SELECT recorded_at, id FROM contributions WHERE id = ?1)
             ORDER BY recorded_at DESC, id DESC LIMIT ?2",
        )
        .bind(page.after.as_deref())
        .bind(page.rows())
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?;
        drop(connection);
        let known = "SELECT EXISTS (SELECT 1 FROM contributions WHERE id = ?)";
        self.refuse_unknown_cursor(page, rows.is_empty(), known).await?;
        rows.iter().map(contribution).collect()
    }
}

fn contribution(row: &SqliteRow) -> Result<Contribution, Refusal> {
    let row = Columns(row);
    Ok(Contribution {
        id: row.parsed("id")?,
        actor_kind: row.get("actor_kind")?,
        actor: row.get("actor")?,
        level: row.get("level")?,
        roles: row.json("roles")?,
        summary: row.get("summary")?,
        subjects: row.json("subjects")?,
        commits: row.json("commits")?,
        limitations: row.json("limitations")?,
        notes: row.json("notes")?,
        self_reported: row.get("self_reported")?,
        recorded_at: row.time("recorded_at")?,
    })
}
