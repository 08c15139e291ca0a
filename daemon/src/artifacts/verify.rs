//! Checking a stored file against its record: both digests and both sizes, in one pass.

use std::io::{self, BufReader, Read};
use std::path::Path;

use fs_err as fs;
use sha2::{Digest as _, Sha256};

use super::archive::bad;
use super::{Archive, fault};
use crate::domain::records::Artifact;
use crate::domain::refusal::{Code, Refusal};

/// What a file on disk turns out to be.
pub(super) struct Digests {
    pub(super) sha256: String,
    pub(super) bytes: u64,
    pub(super) stored_sha256: String,
    pub(super) stored_bytes: u64,
}

impl Archive {
    /// Hashes the stored file again, as it is stored and as it is plain.
    ///
    /// # Errors
    /// [`Code::NotFound`] when it is gone, [`Code::Corrupt`] naming what differs.
    pub fn verify(&self, artifact: &Artifact) -> Result<(), Refusal> {
        let path = self.path(&artifact.sha256)?;
        let found = match digests(&path, artifact.bytes) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Refusal::new(
                    Code::NotFound,
                    format!(
                        "the file {} ({}) is gone from the archive",
                        artifact.sha256, artifact.name
                    ),
                ));
            }
            Err(error) => return Err(fault(&error)),
        };
        let differs = [
            ("SHA-256 of the stored bytes", &found.stored_sha256, &artifact.stored_sha256),
            ("SHA-256 of the plain bytes", &found.sha256, &artifact.sha256),
            (
                "size of the stored bytes",
                &found.stored_bytes.to_string(),
                &artifact.stored_bytes.to_string(),
            ),
            ("size of the plain bytes", &found.bytes.to_string(), &artifact.bytes.to_string()),
        ]
        .iter()
        .filter(|(_, found, recorded)| found != recorded)
        .map(|(what, found, recorded)| format!("{what} is {found}, recorded is {recorded}"))
        .collect::<Vec<_>>();
        if differs.is_empty() {
            return Ok(());
        }
        Err(Refusal::new(
            Code::Corrupt,
            format!(
                "the stored file {} ({}): {}",
                artifact.sha256,
                artifact.name,
                differs.join("; ")
            ),
        )
        .hint("Restore the file from a backup, or make it again with a new run."))
    }
}

/// Reads a file to its end, and at most one plain byte more than `most`.
pub(super) fn digests(path: &Path, most: u64) -> io::Result<Digests> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let stored = Counting { inner: fs::File::open(path)?, digest: Sha256::new(), bytes: 0 };
    let mut decoder = zstd::Decoder::with_buffer(BufReader::with_capacity(1 << 20, stored))?;
    let mut plain = Counting {
        inner: (&mut decoder).take(most.saturating_add(1)),
        digest: Sha256::new(),
        bytes: 0,
    };
    io::copy(&mut plain, &mut io::sink()).map_err(|error| bad(&name, &error))?;
    let (sha256, bytes) = plain.finish();
    let mut stored = decoder.finish();
    io::copy(&mut stored, &mut io::sink())?;
    let (stored_sha256, stored_bytes) = stored.into_inner().finish();
    Ok(Digests { sha256, bytes, stored_sha256, stored_bytes })
}

/// A reader that hashes and counts what passes.
struct Counting<R> {
    inner: R,
    digest: Sha256,
    bytes: u64,
}

impl<R> Counting<R> {
    fn finish(self) -> (String, u64) {
        (hex::encode(self.digest.finalize()), self.bytes)
    }
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        if let Some(bytes) = buffer.get(..count) {
            self.digest.update(bytes);
        }
        self.bytes += count as u64;
        Ok(count)
    }
}
