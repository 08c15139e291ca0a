//! Game rows: one per planned game of an arm, stored as they come, never changed.

use serde_json::json;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::columns::{Columns, whole};
use super::events::Write;
use super::faults::fault;
use super::seal::GAME_ROWS;
use super::units::{AttemptToken, authorise};
use super::{Page, Store};
use crate::domain::ids::{LeaseId, RunId};
use crate::domain::records::{GameRecord, Validity};
use crate::domain::refusal::{Code, Refusal};

impl Store {
    /// Adds games of the token's attempt; gives how many were new. A game that is on record is compared
    /// (but for its wall time) and not stored again.
    ///
    /// # Errors
    /// [`Code::Superseded`]; [`Code::Corrupt`] when a game is on record with another course, which also
    /// makes the run invalid; [`Code::InvalidRequest`] for a game that is not planned or a seed that is
    /// not that of its ordinal; [`Code::WrongState`] before the lease is opened by this run or after
    /// the verdict. In every case nothing of the batch is stored.
    pub async fn add_games(
        &self,
        token: &AttemptToken,
        lease: &LeaseId,
        games: &[GameRecord],
    ) -> Result<usize, Refusal> {
        let mut write = authorise(self.write().await?, token, "games").await?;
        let run = &token.run_id;
        let mut new = Vec::with_capacity(games.len());
        for game in games {
            let stored = by_ordinal(write.sql(), run, &game.arm, game.ordinal).await?;
            match stored {
                None => new.push(game),
                Some(stored) if same_course(&stored, game) => {}
                Some(_) => {
                    write.abandon().await?;
                    return Err(self.diverged(run, game).await?);
                }
            }
        }
        if new.is_empty() {
            write.abandon().await?;
            return Ok(0);
        }
        record(&mut write, run, token.attempt, lease, &new).await?;
        write.commit().await?;
        Ok(new.len())
    }

    /// Games in the order of arms and ordinals, of one arm or of all. The cursor is `arm/ordinal`.
    ///
    /// # Errors
    /// [`Code::InvalidRequest`] for a cursor of another form.
    pub async fn games(
        &self,
        run: &RunId,
        arm: Option<&str>,
        page: &Page,
    ) -> Result<Vec<GameRecord>, Refusal> {
        let (after_arm, after_ordinal) = match &page.after {
            None => (None, -1),
            Some(cursor) => cursor
                .rsplit_once('/')
                .and_then(|(arm, ordinal)| Some((Some(arm), ordinal.parse::<i64>().ok()?)))
                .ok_or_else(|| {
                    Refusal::new(
                        Code::InvalidRequest,
                        format!("{cursor:?} is not a cursor of games"),
                    )
                    .at("/after", "is an arm, a slash and an ordinal, as given by the page before")
                })?,
        };
        let mut connection = self.read().await?;
        sqlx::query(
            "SELECT g.* FROM run_arms AS a
             JOIN game_rows AS g ON g.run_id = a.run_id AND g.arm = a.arm
             WHERE a.run_id = ?1 AND (?2 IS NULL OR a.arm = ?2)
               AND (?3 IS NULL OR (a.position, g.ordinal)
                    > ((SELECT position FROM run_arms WHERE run_id = ?1 AND arm = ?3), ?4))
             ORDER BY a.position, g.ordinal LIMIT ?5",
        )
        .bind(run.as_str())
        .bind(arm)
        .bind(after_arm)
        .bind(after_ordinal)
        .bind(page.rows())
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?
        .iter()
        .map(game)
        .collect()
    }

    /// How many games of an arm are on record.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn game_count(&self, run: &RunId, arm: &str) -> Result<u64, Refusal> {
        let mut connection = self.read().await?;
        let count: i64 =
            sqlx::query_scalar("SELECT count(*) FROM game_rows WHERE run_id = ? AND arm = ?")
                .bind(run.as_str())
                .bind(arm)
                .fetch_one(&mut *connection)
                .await
                .map_err(fault)?;
        Ok(count.unsigned_abs())
    }

    /// The ordinals below `count` that an arm has no game for, in order.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn missing_ordinals(
        &self,
        run: &RunId,
        arm: &str,
        count: u32,
    ) -> Result<Vec<u32>, Refusal> {
        let mut connection = self.read().await?;
        let stored: Vec<i64> = sqlx::query_scalar(
            "SELECT ordinal FROM game_rows WHERE run_id = ? AND arm = ? ORDER BY ordinal",
        )
        .bind(run.as_str())
        .bind(arm)
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?;
        let mut stored = stored.into_iter().peekable();
        Ok((0..count).filter(|ordinal| stored.next_if_eq(&i64::from(*ordinal)).is_none()).collect())
    }

    /// Every game of a run, in the order of arms and ordinals.
    ///
    /// # Errors
    /// Only faults of the database.
    pub async fn all_games(&self, run: &RunId) -> Result<Vec<GameRecord>, Refusal> {
        let mut connection = self.read().await?;
        sqlx::query(
            "SELECT g.* FROM run_arms AS a JOIN game_rows AS g ON g.run_id = a.run_id AND g.arm = a.arm
             WHERE a.run_id = ? ORDER BY a.position, g.ordinal",
        )
        .bind(run.as_str())
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?
        .iter()
        .map(game)
        .collect()
    }

    /// The plan of a run: every arm in order, with how many games it needs and has.
    ///
    /// # Errors
    /// [`Code::NotFound`] for an unknown run.
    pub async fn arms(&self, run: &RunId) -> Result<Vec<(String, u32, u32)>, Refusal> {
        let mut connection = self.read().await?;
        let arms: Vec<(String, i64, i64)> = sqlx::query_as(
            "SELECT a.arm, a.games, (SELECT count(*) FROM game_rows AS g WHERE g.run_id = a.run_id AND g.arm = a.arm)
             FROM run_arms AS a WHERE a.run_id = ? ORDER BY a.position",
        )
        .bind(run.as_str())
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?;
        if arms.is_empty() {
            super::runs::by_id(&mut connection, run).await?;
        }
        Ok(arms
            .into_iter()
            .map(|(arm, games, played)| (arm, games as u32, played as u32))
            .collect())
    }

    /// A deterministic game came out twice in two ways: nothing of this run can be trusted.
    async fn diverged(&self, run: &RunId, game: &GameRecord) -> Result<Refusal, Refusal> {
        let detail =
            format!("game {} of arm {} is on record with another course", game.ordinal, game.arm);
        let mut write = self.write().await?;
        let body = json!({ "arm": game.arm, "ordinal": game.ordinal, "seed": game.seed_hex, "score": game.score });
        write.event("game-diverged", run.as_str(), Some(run), body).await?;
        super::runs::judge(&mut write, run, Validity::Invalid, &detail).await?;
        write.commit().await?;
        Ok(Refusal::new(Code::Corrupt, format!("{detail}; {run} is invalid")).hint(
            "The same seed must give the same game: check the machine's memory and the build.",
        ))
    }
}

/// Equal in everything but the wall time.
fn same_course(stored: &GameRecord, new: &GameRecord) -> bool {
    *stored == GameRecord { wall_seconds: stored.wall_seconds, ..new.clone() }
}

/// Writes games as one batch under the digest of one event.
pub(super) async fn record(
    write: &mut Write,
    run: &RunId,
    attempt: u32,
    lease: &LeaseId,
    games: &[&GameRecord],
) -> Result<(), Refusal> {
    let batch = whole("batch", write.next_seq())?;
    for game in games {
        let big =
            |name: &str, value: Option<u64>| value.map(|value| whole(name, value)).transpose();
        let numbered = big("numberedCleared", game.numbered_cleared)?;
        let covers = big("coversRevealed", game.covers_revealed)?;
        let occupied = big("occupiedSum", game.occupied_sum)?;
        let work = big("work", game.work)?;
        sqlx::query(
            "INSERT INTO game_rows (run_id, arm, ordinal, lease_id, attempt, batch, seed, score, moves,
                 numbered_cleared, covers_revealed, max_chain_depth, occupied_sum, mean_occupied_cells,
                 clears, censored, illegal_decisions, incomplete_decisions, work, wall_seconds)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(run.as_str())
        .bind(&game.arm)
        .bind(i64::from(game.ordinal))
        .bind(lease.as_str())
        .bind(i64::from(attempt))
        .bind(batch)
        .bind(i64::from(game.seed_hex.0))
        .bind(game.score)
        .bind(i64::from(game.moves))
        .bind(numbered)
        .bind(covers)
        .bind(game.max_chain_depth.map(i64::from))
        .bind(occupied)
        .bind(game.mean_occupied_cells)
        .bind(game.clears.map(i64::from))
        .bind(game.censored)
        .bind(i64::from(game.illegal_decisions))
        .bind(i64::from(game.incomplete_decisions))
        .bind(work)
        .bind(game.wall_seconds)
        .execute(write.sql())
        .await
        .map_err(|error| {
            let mut refusal = fault(error);
            refusal.detail = format!("game {} of arm {}: {}", game.ordinal, game.arm, refusal.detail);
            refusal
        })?;
    }
    let batch = batch.to_string();
    write
        .seal(
            &GAME_ROWS,
            "run_id = ? AND batch = CAST(? AS INTEGER)",
            &[run.as_str(), &batch],
            &format!("{run}/{batch}"),
        )
        .await?;
    let mut arms = std::collections::BTreeMap::<&str, u32>::new();
    for game in games {
        *arms.entry(&game.arm).or_default() += 1;
    }
    let body = json!({ "lease_id": lease, "attempt": attempt, "games": arms });
    write.event("games-stored", run.as_str(), Some(run), body).await?;
    Ok(())
}

async fn by_ordinal(
    connection: &mut SqliteConnection,
    run: &RunId,
    arm: &str,
    ordinal: u32,
) -> Result<Option<GameRecord>, Refusal> {
    sqlx::query("SELECT * FROM game_rows WHERE run_id = ? AND arm = ? AND ordinal = ?")
        .bind(run.as_str())
        .bind(arm)
        .bind(i64::from(ordinal))
        .fetch_optional(connection)
        .await
        .map_err(fault)?
        .as_ref()
        .map(game)
        .transpose()
}

fn game(row: &SqliteRow) -> Result<GameRecord, Refusal> {
    let row = Columns(row);
    Ok(GameRecord {
        arm: row.get("arm")?,
        ordinal: row.number("ordinal")?,
        seed_hex: row.seed("seed")?,
        score: row.get("score")?,
        moves: row.number("moves")?,
        numbered_cleared: row.number_option("numbered_cleared")?,
        covers_revealed: row.number_option("covers_revealed")?,
        max_chain_depth: row.number_option("max_chain_depth")?,
        occupied_sum: row.number_option("occupied_sum")?,
        mean_occupied_cells: row.get("mean_occupied_cells")?,
        clears: row.number_option("clears")?,
        censored: row.get("censored")?,
        illegal_decisions: row.number("illegal_decisions")?,
        incomplete_decisions: row.number("incomplete_decisions")?,
        work: row.number_option("work")?,
        wall_seconds: row.get("wall_seconds")?,
    })
}
