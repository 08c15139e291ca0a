//! What SQLite says, as refusals. Names of rules come from the schema's own messages; whatever has no
//! name is logged and becomes [`Code::Internal`] without any of SQLite's words.

use sqlx::migrate::MigrateError;

use crate::domain::refusal::{Code, Refusal};

/// The words before the colon in the schema's messages, and what they mean to a caller.
const RULES: [(&str, Code); 16] = [
    ("already-opened", Code::AlreadyOpened),
    ("append-only", Code::WrongState),
    ("engine-mismatch", Code::EngineMismatch),
    ("event-chain", Code::Corrupt),
    ("frozen-protocol", Code::WrongState),
    ("game-not-planned", Code::InvalidRequest),
    ("incomplete", Code::Incomplete),
    ("lease-not-opened", Code::WrongState),
    ("lease-overlap", Code::LeaseOverlap),
    ("missing-table", Code::MissingTable),
    ("result-mismatch", Code::InvalidRequest),
    ("success-without-output", Code::WrongState),
    ("transition", Code::WrongState),
    ("unknown-reference", Code::NotFound),
    ("verdict-recorded", Code::WrongState),
    ("wrong-seed", Code::InvalidRequest),
];

/// A fault of SQLite as a refusal.
#[expect(clippy::needless_pass_by_value, reason = "used as the function of map_err")]
pub(super) fn fault(error: sqlx::Error) -> Refusal {
    if let sqlx::Error::Database(database) = &error {
        let message = database.message();
        if let Some((name, detail)) = message.split_once(": ")
            && let Some((_, code)) = RULES.iter().find(|(rule, _)| *rule == name)
        {
            return Refusal::new(*code, detail);
        }
        // Primary result codes 5 and 6 are BUSY and LOCKED; the extended ones hold them in the low byte.
        let primary =
            database.code().and_then(|code| code.parse::<u32>().ok()).map(|code| code & 0xff);
        match primary {
            Some(5 | 6) => {
                return Refusal::new(Code::Locked, "another process is writing to the database")
                    .hint("Stop the other process, or try again when it has finished.");
            }
            Some(11 | 26) => {
                tracing::error!(%error, "the database file is damaged");
                return Refusal::new(
                    Code::Corrupt,
                    "the database file is damaged or not a database",
                )
                .hint("Restore the data folder from a backup; nothing was changed.");
            }
            Some(8 | 14) => {
                tracing::error!(%error, "the database file cannot be opened or written");
                return Refusal::new(
                    Code::Internal,
                    "the database file cannot be opened or written",
                )
                .hint(
                    "Look at the owner and the permissions of the data folder and of its files.",
                );
            }
            Some(13) => {
                return Refusal::new(Code::OverBudget, "the disk is full; nothing was stored")
                    .hint("Free some space in the data folder, then resume the run.");
            }
            _ => {}
        }
    }
    tracing::error!(%error, "database fault");
    Refusal::new(Code::Internal, "the database refused the operation")
}

/// A fault while bringing the schema up to date.
pub(super) fn migration_fault(error: &MigrateError) -> Refusal {
    tracing::error!(%error, "migration fault");
    match error {
        MigrateError::VersionMismatch(version) => Refusal::new(
            Code::Corrupt,
            format!("migration {version:04} was applied to this database in another wording"),
        )
        .hint("Use the version of heldout that made the data folder."),
        MigrateError::VersionMissing(version) | MigrateError::VersionTooNew(version, _) => {
            Refusal::new(
                Code::Corrupt,
                format!(
                    "the database has migration {version:04}, which this version does not know"
                ),
            )
            .hint("A newer heldout has opened this data folder; use that version.")
        }
        _ => Refusal::new(Code::Internal, "the schema could not be brought up to date"),
    }
}

/// Something stored cannot be read back as what it should be.
pub(super) fn unreadable(what: &str, cause: &dyn std::fmt::Display) -> Refusal {
    tracing::error!(what, %cause, "unreadable row");
    Refusal::new(Code::Corrupt, format!("a stored {what} cannot be read back"))
        .hint("Run `heldout verify` to find out what was changed.")
}

/// No record of this kind with this id.
pub(super) fn not_found(kind: &str, id: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(Code::NotFound, format!("there is no {kind} {id}"))
}
