//! The lock of a data folder: one process at a time writes to it.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use fs_err::{File, OpenOptions};
use rustix::fs::{FlockOperation, flock};

use crate::domain::refusal::{Code, Refusal};
use crate::exec::unit::internal;

/// A lock that is held until it is given back or the process ends, however it ends.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Takes the lock and writes this process's number into the file, for people.
    pub(super) fn take(path: &Path) -> Result<Self, Refusal> {
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| internal("opening the lock", &error))?;
        if flock(file.file(), FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut holder = String::new();
            // What the other process wrote is a help, not a fact.
            let _ = file.read_to_string(&mut holder);
            let folder = path.parent().unwrap_or(path).display().to_string();
            return Err(Refusal::new(
                Code::Locked,
                format!("the data folder {folder} is in use by process {}", holder.trim()),
            )
            .hint("Talk to that process with --url, stop it, or use another folder with --data."));
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(file, "{}", std::process::id()));
        written.map_err(|error| internal("writing the lock", &error))?;
        Ok(Self(file))
    }

    /// Gives the lock back before the process ends.
    pub(super) fn give_back(&self) {
        if let Err(error) = flock(self.0.file(), FlockOperation::Unlock) {
            tracing::warn!(%error, "the lock is given back when the process ends");
        }
    }
}
