//! Freezing: the weights of a point, alone, as a file whose digest is known before any held-out
//! seed is read.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::publish::publish;
use crate::ntuple::{FrozenTables, file};

/// Most of a table is one repeated value; time matters more than the last tenth of the size.
const ZSTD_LEVEL: i32 = 1;

/// A weights-only file that was written. Its identity is the digest of the plain bytes; stored it is
/// a zstd stream of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FrozenFile {
    /// SHA-256 of the plain table file, in lowercase hexadecimal: what a protocol records.
    pub sha256: String,
    /// Bytes of the plain file.
    pub bytes: u64,
    /// SHA-256 of the stored bytes.
    pub stored_sha256: String,
    /// Bytes on disk.
    pub stored_bytes: u64,
}

/// Writes `tables` as the file `name` of `folder`, replacing the file of an earlier best point only
/// when the new one is whole and synced.
///
/// # Errors
/// When the file cannot be written.
pub fn freeze(tables: &FrozenTables, folder: &Path, name: &str) -> io::Result<FrozenFile> {
    let (plain, stored) = publish(folder, name, |out| {
        file::compressed(out, ZSTD_LEVEL, |out| file::write_weights(tables, out))
    })?;
    Ok(FrozenFile {
        sha256: hexadecimal(&plain.sha256),
        bytes: plain.bytes,
        stored_sha256: hexadecimal(&stored.sha256),
        stored_bytes: stored.bytes,
    })
}

/// A digest as records write it.
pub(super) fn hexadecimal(digest: &[u8; 32]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    digest.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
