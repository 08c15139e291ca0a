//! Theories: what is claimed, and what would prove it wrong.

use sqlx::sqlite::SqliteRow;

use super::columns::{Columns, json, micros, word};
use super::events::Write;
use super::faults::{fault, not_found};
use super::seal::THEORIES;
use super::{Page, Store};
use crate::domain::ids::{TheoryId, TitledId as _};
use crate::domain::protocol::{TheoryDraft, TheoryRef};
use crate::domain::records::{Origin, Theory};
use crate::domain::refusal::Refusal;

impl Store {
    /// A theory.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::domain::refusal::Code::NotFound).
    pub async fn theory(&self, id: &TheoryId) -> Result<Theory, Refusal> {
        let mut connection = self.read().await?;
        let row = sqlx::query("SELECT * FROM theories WHERE id = ?")
            .bind(id.as_str())
            .fetch_optional(&mut *connection)
            .await
            .map_err(fault)?;
        theory(&row.ok_or_else(|| not_found("theory", id))?)
    }

    /// Theories, the newest first.
    ///
    /// # Errors
    /// `invalid-request` when the page follows a record that does not exist.
    pub async fn theories(&self, page: &Page) -> Result<Vec<Theory>, Refusal> {
        let mut connection = self.read().await?;
        let rows = sqlx::query(
            "SELECT * FROM theories
             WHERE ?1 IS NULL OR (created_at, id) < (SELECT created_at, id FROM theories WHERE id = ?1)
             ORDER BY created_at DESC, id DESC LIMIT ?2",
        )
        .bind(page.after.as_deref())
        .bind(page.rows())
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?;
        drop(connection);
        let known = "SELECT EXISTS (SELECT 1 FROM theories WHERE id = ?)";
        self.refuse_unknown_cursor(page, rows.is_empty(), known).await?;
        rows.iter().map(theory).collect()
    }

    /// Records a theory before any experiment tests it. The same words again are the same theory; the
    /// flag says whether this call recorded it.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn create_theory(&self, draft: &TheoryDraft) -> Result<(Theory, bool), Refusal> {
        let mut write = self.write().await?;
        if let Some(id) = same_words(&mut write, draft).await? {
            write.abandon().await?;
            return Ok((self.theory(&id).await?, false));
        }
        let id = record_draft(&mut write, draft).await?;
        write.commit().await?;
        Ok((self.theory(&id).await?, true))
    }
}

/// The theory a protocol names; a new one is recorded unless the same words are on record.
pub(super) async fn resolve(write: &mut Write, named: &TheoryRef) -> Result<TheoryId, Refusal> {
    match named {
        TheoryRef::Known(id) => {
            let known: Option<i64> = sqlx::query_scalar("SELECT 1 FROM theories WHERE id = ?")
                .bind(id.as_str())
                .fetch_optional(write.sql())
                .await
                .map_err(fault)?;
            if known.is_some() {
                return Ok(id.clone());
            }
            Err(not_found("theory", id).at("/theory", "no theory on record has this id").hint(
                "Name a theory from `GET /api/v1/theories`, or write a new one into the protocol.",
            ))
        }
        TheoryRef::New(draft) => match same_words(write, draft).await? {
            Some(id) => Ok(id),
            None => record_draft(write, draft).await,
        },
    }
}

async fn same_words(write: &mut Write, draft: &TheoryDraft) -> Result<Option<TheoryId>, Refusal> {
    let row = sqlx::query(
        "SELECT id FROM theories
         WHERE title = ? AND claim = ? AND mechanism = ? AND falsification_criteria = ?",
    )
    .bind(&draft.title)
    .bind(&draft.claim)
    .bind(&draft.mechanism)
    .bind(json(&draft.falsification_criteria)?)
    .fetch_optional(write.sql())
    .await
    .map_err(fault)?;
    row.map(|row| Columns(&row).parsed("id")).transpose()
}

async fn record_draft(write: &mut Write, draft: &TheoryDraft) -> Result<TheoryId, Refusal> {
    let id = TheoryId::mint(write.now, &draft.title, rand::random())
        .map_err(|error| super::faults::unreadable("clock", &error))?;
    let theory = Theory {
        id: id.clone(),
        title: draft.title.clone(),
        claim: draft.claim.clone(),
        mechanism: draft.mechanism.clone(),
        falsification_criteria: draft.falsification_criteria.clone(),
        origin: Origin::Own,
        created_at: write.now,
    };
    record(write, &theory).await?;
    Ok(id)
}

/// Records a theory as it is.
pub(super) async fn record(write: &mut Write, theory: &Theory) -> Result<(), Refusal> {
    sqlx::query(
        "INSERT INTO theories (id, title, claim, mechanism, falsification_criteria, origin, created_at)
         VALUES (?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(theory.id.as_str())
    .bind(&theory.title)
    .bind(&theory.claim)
    .bind(&theory.mechanism)
    .bind(json(&theory.falsification_criteria)?)
    .bind(word(&theory.origin)?)
    .bind(micros(theory.created_at))
    .execute(write.sql())
    .await
    .map_err(fault)?;
    let id = theory.id.as_str();
    write.seal(&THEORIES, "id = ?", &[id], id).await?;
    write.event("theory-recorded", id, None, serde_json::json!({ "title": theory.title })).await?;
    Ok(())
}

fn theory(row: &SqliteRow) -> Result<Theory, Refusal> {
    let row = Columns(row);
    Ok(Theory {
        id: row.parsed("id")?,
        title: row.get("title")?,
        claim: row.get("claim")?,
        mechanism: row.get("mechanism")?,
        falsification_criteria: row.json("falsification_criteria")?,
        origin: row.word("origin")?,
        created_at: row.time("created_at")?,
    })
}
