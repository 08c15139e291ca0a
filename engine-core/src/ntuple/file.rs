//! The table file `D7NTUP01`, written and read as a stream.
//!
//! | bytes | content |
//! | --- | --- |
//! | 8 | `D7NTUP01` |
//! | 4 | u32: length L of the layout text |
//! | L | the layout in its canonical spelling, ASCII |
//! | 8 | u64: number of entries N, as the layout has it |
//! | 1 | 0: weights only; 1: both error sums follow the weights |
//! | 4 N | weights, then, behind flag 1, E and A of every entry |
//!
//! All numbers are little-endian, all floats are 32 bits. A file is identified by the SHA-256 of all
//! its bytes; every function here that writes or reads one returns it, so nobody has to read a file
//! twice. Files may be kept compressed ([`compressed`], [`decompressed`]); the identity stays that
//! of the plain bytes, and the digest of the stored bytes comes beside it.
//!
//! Refused: a header that is not exactly the above, missing or surplus bytes, and values that are
//! not finite. A stream is never held in memory, whatever size its header claims.

use std::io::{self, BufWriter, Read, Write};
use std::thread;

use sha2::{Digest as _, Sha256};

use super::layout::LayoutError;
use super::tables::{STUDY_START, TablesError};
use super::{FrozenTables, Layout, TrainTables, Weights};

/// Magic and version.
pub const MAGIC: [u8; 8] = *b"D7NTUP01";

/// Longest layout text a reader looks at; the longest canonical one has 58 bytes.
const MAX_LAYOUT_BYTES: u32 = 256;
/// Entries moved at a time.
const BLOCK: usize = 64 * 1024;
/// Largest window a compressed file may ask a reader to keep: 128 MiB.
const MAX_WINDOW_LOG: u32 = 27;

/// What a run of bytes is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// SHA-256 of the bytes.
    pub sha256: [u8; 32],
    /// Their number.
    pub bytes: u64,
}

/// The header of a table file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The layout of the entries.
    pub layout: Layout,
    /// Whether the error sums follow the weights.
    pub accumulators: bool,
}

impl Header {
    /// Bytes of a file with this header.
    pub fn file_bytes(&self) -> u64 {
        let arrays = if self.accumulators { 3 } else { 1 };
        self.to_bytes().len() as u64 + 4 * arrays * self.layout.entries()
    }

    fn to_bytes(self) -> Vec<u8> {
        let layout = self.layout.to_string();
        let mut bytes = MAGIC.to_vec();
        bytes.extend((layout.len() as u32).to_le_bytes());
        bytes.extend(layout.bytes());
        bytes.extend(self.layout.entries().to_le_bytes());
        bytes.push(u8::from(self.accumulators));
        bytes
    }
}

/// Why bytes are not a table file, or could not become tables.
#[derive(Debug, thiserror::Error)]
pub enum TableFileError {
    /// The stream failed, or a compressed stream is damaged.
    #[error("the table file could not be read: {0}")]
    Io(#[from] io::Error),
    /// Not a table file, or another version.
    #[error("the file starts with {found:?}, not with \"D7NTUP01\"")]
    Magic {
        /// The first eight bytes, what is not ASCII escaped.
        found: String,
    },
    /// A layout text of impossible length.
    #[error("the layout text claims {length} bytes; 1..={MAX_LAYOUT_BYTES} are possible")]
    LayoutLength {
        /// The claimed length.
        length: u32,
    },
    /// A layout text that is not one.
    #[error("the layout text is wrong: {0}")]
    Layout(#[from] LayoutError),
    /// A layout in another spelling: its bytes would have another identity.
    #[error("the layout text is {found:?}; its canonical spelling is \"{canonical}\"")]
    Spelling {
        /// The text of the file, what is not ASCII escaped.
        found: String,
        /// How it has to be written.
        canonical: String,
    },
    /// The header contradicts itself.
    #[error("the file claims {found} entries; layout {layout} has {}", layout.entries())]
    Entries {
        /// The layout of the file.
        layout: Layout,
        /// The claimed number.
        found: u64,
    },
    /// A flag other than 0 and 1.
    #[error("the accumulator flag is {found}; it must be 0 or 1")]
    Flag {
        /// The flag byte.
        found: u8,
    },
    /// The bytes end too early.
    #[error("the file ends inside its {part}")]
    Truncated {
        /// Header, weights, error sums or absolute error sums.
        part: &'static str,
    },
    /// The bytes do not end where they should.
    #[error("the file goes on after its last value, {bytes} bytes from the start")]
    Trailing {
        /// Where it should have ended.
        bytes: u64,
    },
    /// A NaN or an infinity.
    #[error("entry {index} of the {part} is {value}, which is not finite")]
    NotFinite {
        /// Weights, error sums or absolute error sums.
        part: &'static str,
        /// The entry.
        index: u64,
        /// The value.
        value: f32,
    },
    /// No memory for tables of this layout.
    #[error(transparent)]
    Tables(#[from] TablesError),
}

/// Writes a weights-only file: what is frozen, screened and hashed.
///
/// # Errors
/// When `out` fails.
pub fn write_weights<W: Weights + ?Sized>(weights: &W, out: impl Write) -> io::Result<Identity> {
    let mut out = Hashing::new(out);
    out.write_all(&Header { layout: *weights.layout(), accumulators: false }.to_bytes())?;
    write_array(weights.layout(), &mut out, |first, block| weights.copy_weights(first, block))?;
    out.finish()
}

/// Writes weights and error sums: what training resumes from.
///
/// # Errors
/// When `out` fails.
pub fn write_checkpoint(tables: &TrainTables, out: impl Write) -> io::Result<Identity> {
    let mut out = Hashing::new(out);
    out.write_all(&Header { layout: *tables.layout(), accumulators: true }.to_bytes())?;
    for word in 0..PARTS.len() {
        write_array(tables.layout(), &mut out, |first, block| {
            tables.copy_words(first, word, block);
        })?;
    }
    out.finish()
}

/// Names of the arrays in file order.
const PARTS: [&str; 3] = ["weights", "error sums", "absolute error sums"];

fn write_array(
    layout: &Layout,
    out: &mut impl Write,
    copy: impl Fn(u64, &mut [f32]),
) -> io::Result<()> {
    let mut values = vec![0.0; BLOCK];
    let mut bytes = vec![0; 4 * BLOCK];
    let mut first = 0;
    while first < layout.entries() {
        let count = BLOCK.min((layout.entries() - first) as usize);
        copy(first, &mut values[..count]);
        for (value, bytes) in values[..count].iter().zip(bytes.as_chunks_mut::<4>().0) {
            *bytes = value.to_le_bytes();
        }
        out.write_all(&bytes[..4 * count])?;
        first += count as u64;
    }
    Ok(())
}

/// Reads a header, and not a byte more.
///
/// # Errors
/// Every error of a header; see [`TableFileError`].
pub fn read_header(mut file: impl Read) -> Result<Header, TableFileError> {
    let file = &mut file;
    let magic: [u8; 8] = read_some(file)?;
    if magic != MAGIC {
        return Err(TableFileError::Magic { found: magic.escape_ascii().to_string() });
    }
    let length = u32::from_le_bytes(read_some(file)?);
    if !(1..=MAX_LAYOUT_BYTES).contains(&length) {
        return Err(TableFileError::LayoutLength { length });
    }
    let mut text = vec![0; length as usize];
    read_all(file, &mut text, "header")?;
    let layout: Layout = String::from_utf8_lossy(&text).parse()?;
    let canonical = layout.to_string();
    if text != canonical.as_bytes() {
        return Err(TableFileError::Spelling { found: text.escape_ascii().to_string(), canonical });
    }
    let found = u64::from_le_bytes(read_some(file)?);
    if found != layout.entries() {
        return Err(TableFileError::Entries { layout, found });
    }
    let accumulators = match read_some(file)? {
        [0] => false,
        [1] => true,
        [found] => return Err(TableFileError::Flag { found }),
    };
    Ok(Header { layout, accumulators })
}

/// Reads tables to play from. Error sums, when the file has them, are checked and left out.
///
/// # Errors
/// See [`TableFileError`].
pub fn read_frozen(file: impl Read) -> Result<(FrozenTables, Identity), TableFileError> {
    let mut file = Hashing::new(file);
    let header = read_header(&mut file)?;
    let tables = FrozenTables::fresh(header.layout, STUDY_START)?;
    let start = tables.start_value();
    read_array(&header.layout, &mut file, PARTS[0], start, |index, weight| {
        tables.set(index, weight);
    })?;
    if header.accumulators {
        for part in &PARTS[1..] {
            read_array(&header.layout, &mut file, part, 0.0, |_, _| {})?;
        }
    }
    Ok((tables, end_of(file)?))
}

/// Reads tables to go on learning in. A weights-only file has learned nothing yet: its error sums
/// are zero. Entries equal to the start value of `optimistic_rises` take no memory.
///
/// # Errors
/// See [`TableFileError`].
pub fn read_trainable(
    file: impl Read,
    optimistic_rises: f32,
) -> Result<(TrainTables, Header, Identity), TableFileError> {
    let mut file = Hashing::new(file);
    let header = read_header(&mut file)?;
    let tables = TrainTables::fresh(header.layout, optimistic_rises)?;
    let arrays = if header.accumulators { PARTS.len() } else { 1 };
    for (word, part) in PARTS[..arrays].iter().enumerate() {
        let start = if word == 0 { tables.start_value() } else { 0.0 };
        read_array(&header.layout, &mut file, part, start, |index, value| {
            tables.store_bits(index, word, value.to_bits());
        })?;
    }
    Ok((tables, header, end_of(file)?))
}

/// Reads one array and hands over the values whose bits are not those of `start`.
fn read_array(
    layout: &Layout,
    file: &mut impl Read,
    part: &'static str,
    start: f32,
    mut set: impl FnMut(u64, f32),
) -> Result<(), TableFileError> {
    /// Values looked at together: most stretches of a table hold nothing but the start value.
    const STRETCH: usize = 256;
    let start = start.to_bits();
    let mut bytes = vec![0; 4 * BLOCK];
    let mut first = 0;
    while first < layout.entries() {
        let count = BLOCK.min((layout.entries() - first) as usize);
        read_all(file, &mut bytes[..4 * count], part)?;
        let words = bytes[..4 * count].as_chunks::<4>().0;
        for (stretch, words) in (first..).step_by(STRETCH).zip(words.chunks(STRETCH)) {
            if words.iter().fold(0, |any, &word| any | (u32::from_le_bytes(word) ^ start)) == 0 {
                continue;
            }
            for (index, &word) in (stretch..).zip(words) {
                let value = f32::from_le_bytes(word);
                if value.to_bits() == start {
                    continue;
                }
                if !value.is_finite() {
                    return Err(TableFileError::NotFinite { part, index, value });
                }
                set(index, value);
            }
        }
        first += count as u64;
    }
    Ok(())
}

/// The identity of a file that was read to its last value: there must be nothing behind it.
fn end_of(mut file: Hashing<impl Read>) -> Result<Identity, TableFileError> {
    let bytes = file.bytes;
    let mut rest = [0];
    loop {
        match file.inner.read(&mut rest) {
            Ok(0) => return Ok(file.identity()),
            Ok(_) => return Err(TableFileError::Trailing { bytes }),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn read_some<const N: usize>(file: &mut impl Read) -> Result<[u8; N], TableFileError> {
    let mut bytes = [0; N];
    read_all(file, &mut bytes, "header")?;
    Ok(bytes)
}

fn read_all(
    file: &mut impl Read,
    bytes: &mut [u8],
    part: &'static str,
) -> Result<(), TableFileError> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => TableFileError::Truncated { part },
        _ => error.into(),
    })
}

/// An encoder of one zstd frame with a checksum that compresses on all cores. Its bytes are the
/// same for any number of them.
///
/// # Errors
/// When `level` is not a compression level, or there is no memory for the encoder.
pub fn encoder<W: Write>(out: W, level: i32) -> io::Result<zstd::Encoder<'static, W>> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    encoder_on(out, level, cores.min(MOST_WORKERS))
}

/// Every worker holds a piece of the input; more than this many wait for whoever writes.
const MOST_WORKERS: usize = 16;

fn encoder_on<W: Write>(
    out: W,
    level: i32,
    workers: usize,
) -> io::Result<zstd::Encoder<'static, W>> {
    let mut encoder = zstd::Encoder::new(out, level)?;
    encoder.include_checksum(true)?;
    // One worker too compresses in the pieces of many; none would not.
    encoder.multithread(workers as u32)?;
    Ok(encoder)
}

/// Writes what `write` writes to `out` with [`encoder`]. Returns what `write` returned and the
/// identity of the stored bytes.
///
/// # Errors
/// When `out` fails or `level` is not a compression level.
pub fn compressed<T>(
    out: impl Write,
    level: i32,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> io::Result<(T, Identity)> {
    // Handing a piece to the encoder has its price, and some writers write a few bytes at a time.
    let mut plain = BufWriter::with_capacity(1 << 18, encoder(Hashing::new(out), level)?);
    let written = write(&mut plain)?;
    let encoder = plain.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok((written, encoder.finish()?.finish()?))
}

/// Lets `read` read the plain bytes of a zstd stream. Returns what `read` returned and the identity
/// of the stored bytes. Plain bytes are produced only as fast as they are read, so a small file
/// that would unpack to a huge one costs no memory.
///
/// # Errors
/// Those of `read`; a damaged stream surfaces as one of them.
pub fn decompressed<T>(
    file: impl Read,
    read: impl FnOnce(&mut dyn Read) -> Result<T, TableFileError>,
) -> Result<(T, Identity), TableFileError> {
    let mut decoder = zstd::Decoder::new(Hashing::new(file))?;
    decoder.window_log_max(MAX_WINDOW_LOG)?;
    let found = read(&mut decoder)?;
    let bytes = decoder.get_ref().get_ref().bytes;
    // What `read` left unread would not be part of the identity.
    if decoder.read(&mut [0])? != 0 {
        return Err(TableFileError::Trailing { bytes });
    }
    Ok((found, decoder.finish().into_inner().identity()))
}

/// A stream that hashes and counts what passes.
struct Hashing<S> {
    inner: S,
    hash: Sha256,
    bytes: u64,
}

impl<S> Hashing<S> {
    fn new(inner: S) -> Self {
        Self { inner, hash: Sha256::new(), bytes: 0 }
    }

    fn pass(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    fn identity(self) -> Identity {
        Identity { sha256: self.hash.finalize().into(), bytes: self.bytes }
    }
}

impl<S: Write> Hashing<S> {
    fn finish(mut self) -> io::Result<Identity> {
        self.inner.flush()?;
        Ok(self.identity())
    }
}

impl<S: Write> Write for Hashing<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.pass(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<S: Read> Read for Hashing<S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(bytes)?;
        self.pass(&bytes[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drop7::chance::Mulberry32;

    #[test]
    fn any_number_of_workers_gives_the_same_bytes() {
        // Twenty pieces of the fast level, from repetitive to random.
        let mut random = Mulberry32::new(1);
        let plain: Vec<u8> = (0..40_000_000_u32)
            .map(|at| {
                if at % 5_000_000 < 4_000_000 { (at >> 9) as u8 } else { random.next_bits() as u8 }
            })
            .collect();
        let stored = |workers| {
            let mut encoder = encoder_on(Vec::new(), 1, workers).unwrap();
            // In odd pieces: what arrives together must not matter either.
            plain.chunks(1_000_003 * workers).for_each(|piece| encoder.write_all(piece).unwrap());
            encoder.finish().unwrap()
        };
        let one = stored(1);
        assert!(one == stored(2) && one == stored(4));
        assert!(zstd::decode_all(&one[..]).unwrap() == plain);
    }
}
