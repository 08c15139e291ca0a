//! Writing: digests on the way, a partial name until everything is on disk, one rename.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use engine_core::ntuple::file::encoder;
use fs_err as fs;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::verify::digests;
use super::{Archive, PARTIAL, fault};
use crate::domain::ids::RunId;
use crate::domain::records::Artifact;
use crate::domain::refusal::{Code, Refusal};

/// Compression: fast, and still a third smaller on trained tables.
const LEVEL: i32 = 3;

/// A file that is whole and on disk under a partial name. Dropped, it is gone.
#[derive(Debug)]
pub struct Staged {
    file: NamedTempFile,
    sha256: String,
    bytes: u64,
    stored_sha256: String,
    stored_bytes: u64,
}

impl Staged {
    /// SHA-256 of the plain bytes.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// How many plain bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Archive {
    /// Stores what `write` writes. The same bytes again give the same artifact.
    ///
    /// # Errors
    /// What `write` fails with, a full disk, or [`Code::Corrupt`] when the file that stands there under
    /// this digest does not have it. In every case nothing new can be seen afterwards.
    pub fn publish(
        &self,
        kind: &str,
        name: &str,
        run: Option<&RunId>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Artifact, Refusal> {
        let staged = self.stage(write)?;
        self.settle(staged, kind, name, run)
    }

    /// Writes and syncs a file without publishing it.
    ///
    /// # Errors
    /// As [`Archive::publish`].
    pub fn stage(
        &self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Staged, Refusal> {
        self.stage_io(write).map_err(|error| fault(&error))
    }

    fn stage_io(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<Staged> {
        fs::create_dir_all(&self.folder)?;
        let file = tempfile::Builder::new().prefix(PARTIAL).tempfile_in(&self.folder)?;
        let stored = Hashing::new(BufWriter::with_capacity(1 << 20, file.as_file()));
        let mut plain = Hashing::new(encoder(stored, LEVEL)?);
        write(&mut plain)?;
        let (encoder, sha256, bytes) = plain.finish();
        let (mut buffer, stored_sha256, stored_bytes) = encoder.finish()?.finish();
        buffer.flush()?;
        drop(buffer);
        file.as_file().sync_all()?;
        Ok(Staged { file, sha256, bytes, stored_sha256, stored_bytes })
    }

    /// Gives a staged file its name.
    ///
    /// # Errors
    /// As [`Archive::publish`].
    pub fn settle(
        &self,
        staged: Staged,
        kind: &str,
        name: &str,
        run: Option<&RunId>,
    ) -> Result<Artifact, Refusal> {
        let Staged { file, sha256, bytes, stored_sha256, stored_bytes } = staged;
        let path = self.path(&sha256)?;
        let mut artifact = Artifact {
            sha256,
            bytes,
            stored_sha256,
            stored_bytes,
            kind: String::from(kind),
            run_id: run.cloned(),
            name: String::from(name),
            created_at: self.clock.now(),
        };
        if self.rename(file, &path).map_err(|error| fault(&error))? {
            return Ok(artifact);
        }
        // Another writer was first. Its compression may differ; its plain bytes may not.
        let there = digests(&path, bytes).map_err(|error| fault(&error))?;
        if there.sha256 != artifact.sha256 {
            return Err(Refusal::new(
                Code::Corrupt,
                format!("the stored file {} does not have its digest", artifact.sha256),
            )
            .hint(format!("Move {} away and try again.", path.display())));
        }
        artifact.stored_sha256 = there.stored_sha256;
        artifact.stored_bytes = there.stored_bytes;
        Ok(artifact)
    }

    /// False when there is such a file already.
    fn rename(&self, file: NamedTempFile, path: &PathBuf) -> io::Result<bool> {
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)?;
        match file.persist_noclobber(path) {
            Ok(_) => {
                fs::File::open(folder)?.sync_all()?;
                fs::File::open(&self.folder)?.sync_all()?;
                Ok(true)
            }
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.error),
        }
    }
}

/// A writer that hashes and counts what passes.
struct Hashing<W> {
    inner: W,
    digest: Sha256,
    bytes: u64,
}

impl<W> Hashing<W> {
    fn new(inner: W) -> Self {
        Self { inner, digest: Sha256::new(), bytes: 0 }
    }

    fn finish(self) -> (W, String, u64) {
        (self.inner, hex::encode(self.digest.finalize()), self.bytes)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        if let Some(bytes) = bytes.get(..written) {
            self.digest.update(bytes);
        }
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
