//! Training curves: chunks and validation points. An attempt that goes on from a checkpoint repeats
//! what the one before did after it; both stay on record, and the curve is the joined one.

use serde_json::json;
use sqlx::sqlite::SqliteRow;

use super::Store;
use super::columns::{Columns, whole};
use super::events::Write;
use super::faults::fault;
use super::seal::{CHUNKS, POINTS};
use super::units::{AttemptToken, authorise};
use crate::domain::ids::RunId;
use crate::domain::records::{Chunk, Point};
use crate::domain::refusal::{Code, Refusal};

impl Store {
    /// Adds a chunk of the token's attempt (`run_id` and `attempt` of the chunk are taken from the
    /// token). The same chunk again changes nothing.
    ///
    /// # Errors
    /// [`Code::Superseded`]; [`Code::Corrupt`] when another chunk stands under its number.
    pub async fn add_chunk(&self, token: &AttemptToken, chunk: &Chunk) -> Result<(), Refusal> {
        let mut write = authorise(self.write().await?, token, "chunk").await?;
        let chunk = Chunk { run_id: token.run_id.clone(), attempt: token.attempt, ..chunk.clone() };
        let row = sqlx::query(
            "SELECT * FROM chunks WHERE run_id = ? AND arm = ? AND attempt = ? AND chunk = ?",
        )
        .bind(chunk.run_id.as_str())
        .bind(&chunk.arm)
        .bind(i64::from(chunk.attempt))
        .bind(i64::from(chunk.chunk))
        .fetch_optional(write.sql())
        .await
        .map_err(fault)?;
        if let Some(row) = row {
            write.abandon().await?;
            return same("chunk", chunk.chunk, &chunk.arm, self::chunk(&row)? == chunk);
        }
        record_chunk(&mut write, &chunk).await?;
        write.commit().await
    }

    /// The chunks of an arm: of two attempts at the same stretch, the later one.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn chunks(&self, run: &RunId, arm: &str) -> Result<Vec<Chunk>, Refusal> {
        let mut connection = self.read().await?;
        sqlx::query(
            "SELECT * FROM chunks AS c WHERE run_id = ? AND arm = ?
               AND NOT EXISTS (SELECT 1 FROM chunks AS later
                               WHERE later.run_id = c.run_id AND later.arm = c.arm
                                 AND later.attempt > c.attempt AND later.chunk <= c.chunk)
             ORDER BY chunk, attempt",
        )
        .bind(run.as_str())
        .bind(arm)
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?
        .iter()
        .map(chunk)
        .collect()
    }

    /// Adds a validation point of the token's attempt; false when the same point is on record.
    ///
    /// # Errors
    /// [`Code::Superseded`]; [`Code::Corrupt`] when another point stands under its number or moves.
    pub async fn add_point(&self, token: &AttemptToken, point: &Point) -> Result<bool, Refusal> {
        let mut write = authorise(self.write().await?, token, "point").await?;
        let point = Point { run_id: token.run_id.clone(), attempt: token.attempt, ..point.clone() };
        let row = sqlx::query(
            "SELECT * FROM points WHERE run_id = ? AND arm = ? AND attempt = ? AND (point = ? OR moves = ?)",
        )
        .bind(point.run_id.as_str())
        .bind(&point.arm)
        .bind(i64::from(point.attempt))
        .bind(i64::from(point.point))
        .bind(whole("moves", point.moves)?)
        .fetch_optional(write.sql())
        .await
        .map_err(fault)?;
        if let Some(row) = row {
            write.abandon().await?;
            return same("point", point.point, &point.arm, self::point(&row)? == point)
                .map(|()| false);
        }
        record_point(&mut write, &point).await?;
        write.commit().await?;
        Ok(true)
    }

    /// The validation points of an arm: of two attempts at the same stretch, the later one.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn points(&self, run: &RunId, arm: &str) -> Result<Vec<Point>, Refusal> {
        let mut connection = self.read().await?;
        sqlx::query(
            "SELECT * FROM points AS p WHERE run_id = ? AND arm = ?
               AND NOT EXISTS (SELECT 1 FROM points AS later
                               WHERE later.run_id = p.run_id AND later.arm = p.arm
                                 AND later.attempt > p.attempt AND later.point <= p.point)
             ORDER BY point, attempt",
        )
        .bind(run.as_str())
        .bind(arm)
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?
        .iter()
        .map(point)
        .collect()
    }

    /// Every point of a run as it was stored, also those that a later attempt repeated.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn all_points(&self, run: &RunId) -> Result<Vec<Point>, Refusal> {
        let mut connection = self.read().await?;
        sqlx::query("SELECT * FROM points WHERE run_id = ? ORDER BY arm, attempt, point")
            .bind(run.as_str())
            .fetch_all(&mut *connection)
            .await
            .map_err(fault)?
            .iter()
            .map(point)
            .collect()
    }

    /// The arms of a run that have chunks or points, in alphabetical order.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn curve_arms(&self, run: &RunId) -> Result<Vec<String>, Refusal> {
        let mut connection = self.read().await?;
        sqlx::query_scalar("SELECT arm FROM chunks WHERE run_id = ?1 UNION SELECT arm FROM points WHERE run_id = ?1 ORDER BY 1")
            .bind(run.as_str())
            .fetch_all(&mut *connection)
            .await
            .map_err(fault)
    }
}

fn same(what: &str, number: u32, arm: &str, equal: bool) -> Result<(), Refusal> {
    if equal {
        return Ok(());
    }
    Err(Refusal::new(
        Code::Corrupt,
        format!("{what} {number} of arm {arm} is on record with other figures"),
    ))
}

pub(super) async fn record_chunk(write: &mut Write, chunk: &Chunk) -> Result<(), Refusal> {
    let moves = whole("moves_total", chunk.moves_total)?;
    sqlx::query(
        "INSERT INTO chunks (run_id, arm, attempt, chunk, moves_total, figures) VALUES (?, ?, ?, ?, ?, ?)",
    )
    .bind(chunk.run_id.as_str())
    .bind(&chunk.arm)
    .bind(i64::from(chunk.attempt))
    .bind(i64::from(chunk.chunk))
    .bind(moves)
    .bind(super::columns::json(&chunk.figures)?)
    .execute(write.sql())
    .await
    .map_err(fault)?;
    let (attempt, number) = (chunk.attempt.to_string(), chunk.chunk.to_string());
    write
        .seal(
            &CHUNKS,
            "run_id = ? AND arm = ? AND attempt = CAST(? AS INTEGER) AND chunk = CAST(? AS INTEGER)",
            &[chunk.run_id.as_str(), &chunk.arm, &attempt, &number],
            &format!("{}/{}/{attempt}/{number}", chunk.run_id, chunk.arm),
        )
        .await?;
    let body = json!({
        "arm": chunk.arm, "attempt": chunk.attempt, "chunk": chunk.chunk, "moves_total": chunk.moves_total,
    });
    write.event("chunk-trained", chunk.run_id.as_str(), Some(&chunk.run_id), body).await?;
    Ok(())
}

pub(super) async fn record_point(write: &mut Write, point: &Point) -> Result<(), Refusal> {
    if !point.margin.is_finite() {
        return Err(Refusal::new(Code::InvalidRequest, format!("the margin is {}", point.margin)));
    }
    let moves = whole("moves", point.moves)?;
    sqlx::query(
        "INSERT INTO points (run_id, arm, attempt, point, moves, margin, is_best, figures)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(point.run_id.as_str())
    .bind(&point.arm)
    .bind(i64::from(point.attempt))
    .bind(i64::from(point.point))
    .bind(moves)
    .bind(point.margin)
    .bind(point.is_best)
    .bind(super::columns::json(&point.figures)?)
    .execute(write.sql())
    .await
    .map_err(fault)?;
    let (attempt, number) = (point.attempt.to_string(), point.point.to_string());
    write
        .seal(
            &POINTS,
            "run_id = ? AND arm = ? AND attempt = CAST(? AS INTEGER) AND point = CAST(? AS INTEGER)",
            &[point.run_id.as_str(), &point.arm, &attempt, &number],
            &format!("{}/{}/{attempt}/{number}", point.run_id, point.arm),
        )
        .await?;
    let body = json!({
        "arm": point.arm, "attempt": point.attempt, "point": point.point, "moves": point.moves,
        "margin": point.margin, "is_best": point.is_best,
    });
    write.event("point-validated", point.run_id.as_str(), Some(&point.run_id), body).await?;
    Ok(())
}

fn chunk(row: &SqliteRow) -> Result<Chunk, Refusal> {
    let row = Columns(row);
    Ok(Chunk {
        run_id: row.parsed("run_id")?,
        arm: row.get("arm")?,
        attempt: row.number("attempt")?,
        chunk: row.number("chunk")?,
        moves_total: row.number("moves_total")?,
        figures: row.json("figures")?,
    })
}

fn point(row: &SqliteRow) -> Result<Point, Refusal> {
    let row = Columns(row);
    Ok(Point {
        run_id: row.parsed("run_id")?,
        arm: row.get("arm")?,
        attempt: row.number("attempt")?,
        point: row.number("point")?,
        moves: row.number("moves")?,
        margin: row.get("margin")?,
        is_best: row.get("is_best")?,
        figures: row.json("figures")?,
    })
}
