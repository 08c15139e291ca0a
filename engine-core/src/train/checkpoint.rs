//! Checkpoints: tables with their accumulators, the state of the trainer and the caller's curve, as
//! one set of files that is whole or not there.
//!
//! A set is three files with one sequence number. The manifest is published last and holds size and
//! SHA-256 of the other two, so a set exists from the moment its manifest does; a kill before that
//! leaves files nobody reads, and the next save removes them. The last good set before the newest is
//! kept: when the newest does not verify, [`Checkpoints::load`] takes the one before and says why.
//!
//! Refused: a set of another configuration (an error, not a fallback), and files that are not what
//! the manifest says. Tables are stored as the records that were written, in a zstd stream: the size
//! and the time of a save grow with what was learned, not with the layout.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::publish::{UNFINISHED, publish};
use super::sparse;
use super::{TrainConfig, TrainState};
use crate::ntuple::TrainTables;
use crate::ntuple::file::{self, Identity, TableFileError};

/// Name of the manifest format.
const FORMAT: &str = "heldout-checkpoint-v1";
/// Time matters more than the last tenth of the size.
const ZSTD_LEVEL: i32 = 1;
const MANIFEST: &str = "manifest.json";
const STATE: &str = "state.json";
const TABLES: &str = "records.zst";
/// No manifest is near this long; a longer one is damaged.
const MANIFEST_LIMIT: u64 = 1 << 16;

/// A checkpoint could not be written, or nothing can be said about the ones there are.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The folder or a file in it could not be listed, written or removed.
    #[error("checkpoint folder {}: {source}", folder.display())]
    Io {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The stored set is whole, but was written by another run.
    #[error("checkpoint {sequence} belongs to another configuration: {field} differs")]
    Configuration {
        /// Sequence number of the set.
        sequence: u64,
        /// The first field that differs.
        field: &'static str,
    },
    /// There is no room for the tables of a set.
    #[error("checkpoint {sequence}: {source}")]
    Memory {
        /// Sequence number of the set.
        sequence: u64,
        /// What the system said.
        source: Box<TableFileError>,
    },
}

/// What a save wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// Sequence number of the set.
    pub sequence: u64,
    /// Bytes of its files.
    pub stored_bytes: u64,
    /// SHA-256 of the stored records, in lowercase hexadecimal.
    pub tables_sha256: String,
}

/// A set that was read back and verified.
#[derive(Debug)]
pub struct Restored<C> {
    /// Sequence number of the set.
    pub sequence: u64,
    /// The tables.
    pub tables: TrainTables,
    /// Where the run stood.
    pub state: TrainState,
    /// What the caller stored beside it.
    pub curve: C,
}

/// A set that was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Sequence number of the set.
    pub sequence: u64,
    /// Why, in words.
    pub reason: String,
}

/// What [`Checkpoints::load`] found.
#[derive(Debug)]
pub struct Found<C> {
    /// The newest set that verifies. Without one, a run may start from nothing only when `rejected`
    /// is empty too: otherwise there was something, and it is lost.
    pub restored: Option<Restored<C>>,
    /// Newer sets that do not verify, newest first.
    pub rejected: Vec<Rejected>,
}

/// The checkpoints of one run, in a folder of their own.
#[derive(Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    /// The newest set this value wrote or verified.
    good: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    format: String,
    sequence: u64,
    state: Stored,
    tables: Stored,
}

#[derive(Serialize, Deserialize, PartialEq, Eq)]
struct Stored {
    bytes: u64,
    sha256: String,
}

impl Stored {
    fn of(bytes: &[u8]) -> Self {
        let sha256 = Sha256::digest(bytes).into();
        Self::from(Identity { sha256, bytes: bytes.len() as u64 })
    }
}

impl From<Identity> for Stored {
    fn from(identity: Identity) -> Self {
        Self { bytes: identity.bytes, sha256: super::best::hexadecimal(&identity.sha256) }
    }
}

#[derive(Serialize, Deserialize)]
struct StateFile<T, C> {
    config: T,
    state: TrainState,
    curve: C,
}

/// Why a set is not taken.
enum Refusal {
    /// Try the one before.
    Damaged(String),
    /// Nothing older may be taken instead.
    Fatal(CheckpointError),
}

impl Checkpoints {
    /// The checkpoints in `folder`, which is created when it is not there.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, CheckpointError> {
        let checkpoints = Self { folder: folder.into(), good: None };
        fs::create_dir_all(&checkpoints.folder).map_err(|source| checkpoints.io(source))?;
        Ok(checkpoints)
    }

    /// Writes one set. After `Ok` it survives a power cut, and older sets but the last good one, as
    /// well as what killed saves left, are gone. Call it between two calls of
    /// [`Trainer::advance`](super::Trainer::advance).
    ///
    /// # Errors
    /// When a file cannot be written or removed. The sets there were are still there.
    pub fn save(
        &mut self,
        tables: &TrainTables,
        config: &TrainConfig,
        state: &TrainState,
        curve: &impl Serialize,
    ) -> Result<Saved, CheckpointError> {
        let saved = self.write(tables, &StateFile { config, state: state.clone(), curve });
        saved.map_err(|source| self.io(source))
    }

    /// Reads the newest set that verifies, for a run with `config`.
    ///
    /// # Errors
    /// When the folder cannot be listed, the newest whole set belongs to another configuration, or
    /// there is no room for its tables. A damaged set is not an error: see [`Found`].
    pub fn load<C: DeserializeOwned>(
        &mut self,
        config: &TrainConfig,
    ) -> Result<Found<C>, CheckpointError> {
        let mut rejected = Vec::new();
        let sequences = self.sequences(&[MANIFEST]).map_err(|source| self.io(source))?;
        for sequence in sequences.into_iter().rev() {
            match self.read(sequence, config) {
                Ok(restored) => {
                    self.good = Some(sequence);
                    return Ok(Found { restored: Some(restored), rejected });
                }
                Err(Refusal::Damaged(reason)) => rejected.push(Rejected { sequence, reason }),
                Err(Refusal::Fatal(error)) => return Err(error),
            }
        }
        Ok(Found { restored: None, rejected })
    }

    fn write<T: Serialize, C: Serialize>(
        &mut self,
        tables: &TrainTables,
        stored: &StateFile<T, C>,
    ) -> io::Result<Saved> {
        let used = self.sequences(&[TABLES, STATE, MANIFEST])?;
        let sequence = used.last().map_or(Some(1), |last| last.checked_add(1));
        let sequence = sequence.ok_or_else(|| io::Error::other("no sequence number is left"))?;
        // A process that wrote and verified nothing yet keeps the newest set there is.
        let keep = self.good.or(self.sequences(&[MANIFEST])?.last().copied());

        let ((), tables) = publish(&self.folder, &file_name(sequence, TABLES), |out| {
            file::compressed(out, ZSTD_LEVEL, |out| sparse::write(tables, out))
        })?;
        let state = serde_json::to_vec(stored)?;
        publish(&self.folder, &file_name(sequence, STATE), |out| out.write_all(&state))?;
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            sequence,
            state: Stored::of(&state),
            tables: tables.into(),
        };
        let text = serde_json::to_vec_pretty(&manifest)?;
        publish(&self.folder, &file_name(sequence, MANIFEST), |out| out.write_all(&text))?;
        self.good = Some(sequence);
        self.remove_all_but(&[Some(sequence), keep])?;
        Ok(Saved {
            sequence,
            stored_bytes: tables.bytes + state.len() as u64 + text.len() as u64,
            tables_sha256: manifest.tables.sha256,
        })
    }

    fn read<C: DeserializeOwned>(
        &self,
        sequence: u64,
        config: &TrainConfig,
    ) -> Result<Restored<C>, Refusal> {
        let damaged = |reason: &str| Refusal::Damaged(reason.to_owned());
        let manifest = self.bytes(sequence, MANIFEST, MANIFEST_LIMIT)?;
        let manifest: Manifest = serde_json::from_slice(&manifest)
            .map_err(|error| Refusal::Damaged(format!("the manifest does not parse: {error}")))?;
        if manifest.format != FORMAT || manifest.sequence != sequence {
            return Err(damaged("the manifest is of another format or of another set"));
        }
        let state = self.bytes(sequence, STATE, manifest.state.bytes)?;
        if Stored::of(&state) != manifest.state {
            return Err(damaged("the state file has another digest than the manifest says"));
        }
        let stored: StateFile<TrainConfig, C> = serde_json::from_slice(&state)
            .map_err(|error| Refusal::Damaged(format!("the state does not parse: {error}")))?;
        if let Some(field) = first_difference(&stored.config, config) {
            return Err(Refusal::Fatal(CheckpointError::Configuration { sequence, field }));
        }
        let path = self.folder.join(file_name(sequence, TABLES));
        let tables = File::open(path).map_err(|error| unreadable(TABLES, &error))?;
        let length = tables.metadata().map_err(|error| unreadable(TABLES, &error))?.len();
        let read = file::decompressed(BufReader::with_capacity(1 << 20, tables), |plain| {
            let mut plain = BufReader::with_capacity(1 << 16, plain);
            let tables = sparse::read(&mut plain, config.layout, config.optimistic_rises)?;
            match plain.fill_buf()? {
                [] => Ok(tables),
                _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the records go on").into()),
            }
        });
        let (tables, stored_tables) = match read {
            Ok(read) => read,
            Err(source @ TableFileError::Tables(_)) => {
                let source = Box::new(source);
                return Err(Refusal::Fatal(CheckpointError::Memory { sequence, source }));
            }
            Err(error) => return Err(Refusal::Damaged(format!("{TABLES}: {error}"))),
        };
        if Stored::from(stored_tables) != manifest.tables || length != manifest.tables.bytes {
            return Err(damaged("the table file has another digest than the manifest says"));
        }
        Ok(Restored { sequence, tables, state: stored.state, curve: stored.curve })
    }

    /// The file of a set, when it has at most `limit` bytes.
    fn bytes(&self, sequence: u64, kind: &str, limit: u64) -> Result<Vec<u8>, Refusal> {
        let path = self.folder.join(file_name(sequence, kind));
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes))
            .map_err(|error| unreadable(kind, &error))?;
        if bytes.len() as u64 > limit {
            return Err(Refusal::Damaged(format!("{kind} is longer than it can be")));
        }
        Ok(bytes)
    }

    /// Sequence numbers that have a file of one of the `kinds`, ascending.
    fn sequences(&self, kinds: &[&str]) -> io::Result<Vec<u64>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let Some((sequence, kind)) = name.to_str().and_then(parse_name) else { continue };
            if kinds.contains(&kind) {
                found.push(sequence);
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Removes files of other sets and unfinished files. Manifests go first, so that no set is ever
    /// seen with a part missing.
    fn remove_all_but(&self, keep: &[Option<u64>]) -> io::Result<()> {
        let mut others = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            let whole = name.strip_suffix(UNFINISHED).unwrap_or(name);
            let Some((sequence, kind)) = parse_name(whole) else { continue };
            if whole != name || !keep.contains(&Some(sequence)) {
                others.push((kind != MANIFEST, name.to_owned()));
            }
        }
        others.sort_unstable();
        others.iter().try_for_each(|(_, name)| fs::remove_file(self.folder.join(name)))
    }

    fn io(&self, source: io::Error) -> CheckpointError {
        CheckpointError::Io { folder: self.folder.clone(), source }
    }
}

fn unreadable(kind: &str, error: &io::Error) -> Refusal {
    Refusal::Damaged(format!("{kind} cannot be read: {error}"))
}

fn file_name(sequence: u64, kind: &str) -> String {
    format!("{sequence:012}.{kind}")
}

/// Sequence number and kind of a file name of a set; `None` for files that are not ours.
fn parse_name(name: &str) -> Option<(u64, &str)> {
    let (digits, kind) = name.split_once('.')?;
    let ours = digits.len() >= 12 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let kind = [TABLES, STATE, MANIFEST].into_iter().find(|known| *known == kind)?;
    ours.then(|| digits.parse().ok().map(|sequence| (sequence, kind)))?
}

/// The first field in which two configurations differ, bit for bit. In lockstep the number of threads
/// changes no bit and may be another one.
fn first_difference(a: &TrainConfig, b: &TrainConfig) -> Option<&'static str> {
    [
        ("layout", a.layout == b.layout),
        ("alpha", a.alpha.to_bits() == b.alpha.to_bits()),
        ("epsilon", a.epsilon.to_bits() == b.epsilon.to_bits()),
        ("optimistic_rises", a.optimistic_rises.to_bits() == b.optimistic_rises.to_bits()),
        ("clamp", a.clamp.to_bits() == b.clamp.to_bits()),
        ("move_cap", a.move_cap == b.move_cap),
        ("train_seed", a.train_seed == b.train_seed),
        ("seeds", a.seeds == b.seeds),
        ("parallel", a.parallel == b.parallel),
        ("threads", a.threads == b.threads || !a.parallel.is_lock_free()),
    ]
    .into_iter()
    .find_map(|(field, same)| (!same).then_some(field))
}
