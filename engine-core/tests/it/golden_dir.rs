//! Where golden files come from: `HELDOUT_GOLDEN_DIR`, or the folder committed with the tests.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

/// The folder the golden files are read from.
pub(crate) fn golden_dir() -> PathBuf {
    std::env::var_os("HELDOUT_GOLDEN_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden"), PathBuf::from)
}

/// The golden file `name`, parsed. `None` only when it is missing and `HELDOUT_GOLDEN_PARTIAL=1`
/// says that the folder may be incomplete; the skip is printed.
///
/// # Panics
/// When the file is missing otherwise, or is not of the expected form.
#[expect(clippy::print_stderr, reason = "a skipped file must be seen in the test output")]
pub(crate) fn golden<T: DeserializeOwned>(name: &str) -> Option<T> {
    let path = golden_dir().join(name);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && partial() => {
            eprintln!("skipped: {} is missing and HELDOUT_GOLDEN_PARTIAL=1", path.display());
            return None;
        }
        Err(error) => panic!(
            "golden file {}: {error}. Set HELDOUT_GOLDEN_PARTIAL=1 to allow a partial folder.",
            path.display()
        ),
    };
    match serde_json::from_str(&text) {
        Ok(value) => Some(value),
        Err(error) => panic!("golden file {}: {error}", path.display()),
    }
}

fn partial() -> bool {
    std::env::var("HELDOUT_GOLDEN_PARTIAL").is_ok_and(|value| value == "1")
}
