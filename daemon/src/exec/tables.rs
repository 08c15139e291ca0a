//! Frozen tables in memory, by the digest they were read with.
//!
//! Promised: a table that is handed out was hashed while it was read, and the digest is the one that
//! was asked for. One copy is held however many arms play from it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use engine_core::ntuple::FrozenTables;
use engine_core::ntuple::file::{TableFileError, read_frozen};

use super::train::FairControl;
use super::unit::internal;
use crate::artifacts::Archive;
use crate::domain::refusal::{Code, Refusal};

/// The tables one run has read.
#[derive(Debug)]
pub struct TableCache {
    archive: Archive,
    held: Mutex<HashMap<String, Arc<FrozenTables>>>,
    /// Fair games of validation blocks.
    pub(super) fair: FairControl,
}

impl TableCache {
    /// An empty cache over `archive`.
    pub fn new(archive: Archive) -> Self {
        Self { archive, held: Mutex::new(HashMap::new()), fair: FairControl::default() }
    }

    /// The table whose plain file has the digest `sha256`.
    ///
    /// # Errors
    /// When it is not stored, its bytes have another digest, or there is no memory for it.
    pub fn get(&self, sha256: &str) -> Result<Arc<FrozenTables>, Refusal> {
        // Held while reading: two arms that ask at once would otherwise read twice.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tables) = held.get(sha256) {
            return Ok(Arc::clone(tables));
        }
        let file = self.archive.open(sha256)?;
        let (tables, identity) = read_frozen(file).map_err(|error| unreadable(sha256, error))?;
        let read = hex::encode(identity.sha256);
        if read != sha256 {
            return Err(Refusal::new(
                Code::Corrupt,
                format!("the table {sha256} holds bytes whose digest is {read}"),
            ));
        }
        let tables = Arc::new(tables);
        held.insert(sha256.to_owned(), Arc::clone(&tables));
        Ok(tables)
    }

    /// Forgets every table that nobody else holds.
    pub fn clear(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

fn unreadable(sha256: &str, error: TableFileError) -> Refusal {
    match error {
        TableFileError::Tables(cause) => internal("reserving memory for a table", &cause),
        error => Refusal::new(Code::Corrupt, format!("the table {sha256} does not read: {error}")),
    }
}
