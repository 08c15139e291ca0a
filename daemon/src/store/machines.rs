//! Machine profiles: what a run ran on, without the host name.

use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::columns::{Columns, json as text, micros};
use super::events::Write;
use super::faults::{fault, not_found, unreadable};
use super::seal::MACHINES;
use super::{Page, Store};
use crate::domain::ids::{InstantId as _, MachineId};
use crate::domain::records::Machine;
use crate::domain::refusal::{Code, Refusal};

impl Store {
    /// Records a machine profile, a JSON object.
    ///
    /// # Errors
    /// [`Code::InvalidRequest`] when it is not an object.
    pub async fn add_machine(&self, profile: Value) -> Result<Machine, Refusal> {
        if !profile.is_object() {
            return Err(Refusal::new(Code::InvalidRequest, "a machine profile is a JSON object"));
        }
        let mut write = self.write().await?;
        let id = MachineId::mint(write.now, rand::random())
            .map_err(|error| unreadable("clock", &error))?;
        let machine = Machine { id, profile, captured_at: write.now };
        record(&mut write, &machine).await?;
        write.commit().await?;
        Ok(machine)
    }

    /// A machine profile.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn machine(&self, id: &MachineId) -> Result<Machine, Refusal> {
        let mut connection = self.read().await?;
        by_id(&mut connection, id).await
    }

    /// Machine profiles, the newest first.
    ///
    /// # Errors
    /// `invalid-request` when the page follows a record that does not exist.
    pub async fn machines(&self, page: &Page) -> Result<Vec<Machine>, Refusal> {
        let mut connection = self.read().await?;
        let rows = sqlx::query(
            "SELECT * FROM machines
             WHERE ?1 IS NULL OR (captured_at, id) < (SELECT captured_at, id FROM machines WHERE id = ?1)
             ORDER BY captured_at DESC, id DESC LIMIT ?2",
        )
        .bind(page.after.as_deref())
        .bind(page.rows())
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?;
        drop(connection);
        let known = "SELECT EXISTS (SELECT 1 FROM machines WHERE id = ?)";
        self.refuse_unknown_cursor(page, rows.is_empty(), known).await?;
        rows.iter().map(machine).collect()
    }
}

pub(super) async fn record(write: &mut Write, machine: &Machine) -> Result<(), Refusal> {
    let id = machine.id.as_str();
    sqlx::query("INSERT INTO machines (id, profile, captured_at) VALUES (?, ?, ?)")
        .bind(id)
        .bind(text(&machine.profile)?)
        .bind(micros(machine.captured_at))
        .execute(write.sql())
        .await
        .map_err(fault)?;
    write.seal(&MACHINES, "id = ?", &[id], id).await?;
    write.event("machine-recorded", id, None, json!({})).await?;
    Ok(())
}

pub(super) async fn by_id(
    connection: &mut SqliteConnection,
    id: &MachineId,
) -> Result<Machine, Refusal> {
    let row = sqlx::query("SELECT * FROM machines WHERE id = ?")
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
        .map_err(fault)?;
    machine(&row.ok_or_else(|| not_found("machine", id))?)
}

fn machine(row: &SqliteRow) -> Result<Machine, Refusal> {
    let row = Columns(row);
    Ok(Machine {
        id: row.parsed("id")?,
        profile: row.json("profile")?,
        captured_at: row.time("captured_at")?,
    })
}
