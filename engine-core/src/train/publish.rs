//! Files that are either whole or not there: written under a temporary name, synced, renamed, and
//! the folder synced.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

/// Ending of files that are being written. Whoever finds one may delete it.
pub(super) const UNFINISHED: &str = ".unfinished";

/// Writes the file `name` of `folder` with `write`. After `Ok` the file survives a power cut; after
/// an error or a kill there is at most an unfinished file beside what there was.
pub(super) fn publish<T>(
    folder: &Path,
    name: &str,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> io::Result<T> {
    let unfinished = folder.join(format!("{name}{UNFINISHED}"));
    let mut writer = BufWriter::with_capacity(1 << 20, File::create(&unfinished)?);
    let value = write(&mut writer)?;
    writer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    rename(&unfinished, &folder.join(name))?;
    sync_folder(folder)?;
    Ok(value)
}

#[expect(clippy::disallowed_methods, reason = "this is where the library publishes files")]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Makes the names in `folder` survive a power cut.
fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}
