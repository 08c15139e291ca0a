//! What a process is told at its start.

use std::path::PathBuf;

use crate::clock::Clock;

/// Settings of an [`App`](crate::app::App).
#[derive(Debug, Clone)]
pub struct Config {
    /// The data folder.
    pub data: PathBuf,
    /// Worker threads; as many as this process may use when absent.
    pub threads: Option<usize>,
    /// Resident bytes that runs may declare; what this process may use when absent.
    pub memory_bytes: Option<u64>,
    /// The clock.
    pub clock: Clock,
}

impl Config {
    /// The defaults for a data folder.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self { data: data.into(), threads: None, memory_bytes: None, clock: Clock::system() }
    }

    /// The file of the records.
    pub fn database(&self) -> PathBuf {
        self.data.join("heldout.sqlite")
    }

    /// The folder of stored files.
    pub fn artifacts(&self) -> PathBuf {
        self.data.join("artifacts")
    }

    /// The folder of unfinished work.
    pub fn work(&self) -> PathBuf {
        self.data.join("work")
    }

    /// The file whose lock says that the folder is in use.
    pub fn lock(&self) -> PathBuf {
        self.data.join("lock")
    }
}

/// Version and commit of this program. The commit is known when the build was told, in
/// `HELDOUT_COMMIT`; otherwise it says that it is not.
pub fn build_id() -> String {
    let commit = option_env!("HELDOUT_COMMIT").unwrap_or("commit unknown");
    format!("{} ({commit})", env!("CARGO_PKG_VERSION"))
}
