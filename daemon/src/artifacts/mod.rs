//! Stored files: tables, checkpoints, protocols, imports; each under the SHA-256 of its plain bytes.
//!
//! Promised: a file is there whole or not at all, whatever kills the process and whenever; the same
//! bytes are stored once; what is read is what was written, or reading ends in an error. Refused:
//! replacing a stored file, and names that are not digests.
//!
//! A file is zstd inside, so `zstd -dc` reads it; it lives at `<folder>/<aa>/<sha256>.zst`, where `aa`
//! are the first two digits. Everything here blocks: call it from a compute or blocking thread.

mod archive;
mod publish;
mod verify;

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::clock::Clock;
use crate::domain::refusal::{Code, Refusal};

pub use archive::Plain;
pub use publish::Staged;

/// How a file is called until it is whole.
const PARTIAL: &str = ".partial-";

/// A folder of stored files.
#[derive(Debug, Clone)]
pub struct Archive {
    folder: PathBuf,
    clock: Clock,
}

impl Archive {
    /// The archive in `folder`, which is made when the first file is stored.
    pub fn new(folder: impl Into<PathBuf>, clock: Clock) -> Self {
        Self { folder: folder.into(), clock }
    }

    /// Where the file with this digest is, or would be.
    ///
    /// # Errors
    /// [`Code::InvalidRequest`] when `sha256` is not 64 lower-case hex digits.
    pub fn path(&self, sha256: &str) -> Result<PathBuf, Refusal> {
        let hex = sha256.len() == 64
            && sha256.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        match sha256.get(..2) {
            Some(first) if hex => Ok(self.folder.join(first).join(format!("{sha256}.zst"))),
            _ => Err(Refusal::new(
                Code::InvalidRequest,
                format!("{sha256:?} is not a digest: 64 lower-case hex digits"),
            )),
        }
    }

    /// Whether a file with this digest is there; its bytes are not looked at.
    pub fn holds(&self, sha256: &str) -> bool {
        self.path(sha256).is_ok_and(|path| path.is_file())
    }

    /// Removes what a killed process left half written; gives how many files that were. Only for the
    /// process that holds the data folder's lock, before it writes.
    ///
    /// # Errors
    /// When the folder cannot be read or a file not removed.
    pub fn recover(&self) -> Result<usize, Refusal> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(fault(&error)),
        };
        let mut removed = 0;
        for entry in entries {
            let entry = entry.map_err(|error| fault(&error))?;
            if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
                fs::remove_file(entry.path()).map_err(|error| fault(&error))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// A fault of the file system as a refusal; its words go to the log.
fn fault(error: &io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Refusal::new(Code::OverBudget, "the disk is full; the file was not stored")
                .hint("Free some space in the data folder, then resume the run.")
        }
        io::ErrorKind::InvalidData => Refusal::new(Code::Corrupt, error.to_string())
            .hint("Restore the file from a backup, or make it again with a new run."),
        _ => {
            tracing::error!(%error, "archive fault");
            Refusal::new(Code::Internal, "the archive could not be read or written")
        }
    }
}
