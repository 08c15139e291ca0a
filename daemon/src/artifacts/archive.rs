//! Reading: plain bytes, checked against the digest before the end is told.

use std::io::{self, BufReader, Read};

use fs_err as fs;
use sha2::{Digest as _, Sha256};

use super::{Archive, fault};
use crate::domain::refusal::{Code, Refusal};

/// The plain bytes of a stored file. Reading to the end checks them: instead of an end there is an
/// error of kind `InvalidData` when they do not have the digest. Bytes read before that are not checked,
/// so nothing may be done with them that cannot be undone.
pub struct Plain {
    decoder: zstd::Decoder<'static, BufReader<fs::File>>,
    /// Until the end is reached.
    digest: Option<Sha256>,
    /// What the end said; no second read makes it good.
    whole: bool,
    sha256: String,
}

impl std::fmt::Debug for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plain").field("sha256", &self.sha256).finish_non_exhaustive()
    }
}

impl Archive {
    /// Opens a stored file for reading its plain bytes.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::InvalidRequest`] for a name that is not a digest.
    pub fn open(&self, sha256: &str) -> Result<Plain, Refusal> {
        let path = self.path(sha256)?;
        let file = match fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Refusal::new(
                    Code::NotFound,
                    format!("the file {sha256} is not in the archive"),
                ));
            }
            Err(error) => return Err(fault(&error)),
        };
        let decoder = zstd::Decoder::new(file).map_err(|error| fault(&error))?;
        Ok(Plain {
            decoder,
            digest: Some(Sha256::new()),
            whole: false,
            sha256: String::from(sha256),
        })
    }
}

impl Read for Plain {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let count = self.decoder.read(buffer).map_err(|error| bad(&self.sha256, &error))?;
        if count > 0 {
            if let (Some(digest), Some(bytes)) = (&mut self.digest, buffer.get(..count)) {
                digest.update(bytes);
            }
            return Ok(count);
        }
        if let Some(digest) = self.digest.take() {
            self.whole = hex::encode(digest.finalize()) == self.sha256;
        }
        self.whole.then_some(0).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the stored file {} does not have its digest", self.sha256),
            )
        })
    }
}

/// zstd reports damage as `Other`; faults of the disk keep their kind.
pub(super) fn bad(sha256: &str, error: &io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::Other | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the stored file {sha256} is damaged: {error}"),
            )
        }
        kind => io::Error::new(kind, error.to_string()),
    }
}
