//! The table file: what is written comes back, and nothing else is accepted.

use std::io::{self, Read, Write};
use std::sync::LazyLock;

use engine_core::drop7::Board;
use engine_core::ntuple::file::{self, Header, TableFileError};
use engine_core::ntuple::{Features, Layout, TrainTables, Weights};
use sha2::{Digest, Sha256};

/// The smallest layouts have 30 million entries.
const LAYOUT: &str = "win23,phase=none";

fn trained() -> TrainTables {
    let layout: Layout = LAYOUT.parse().unwrap();
    let tables = TrainTables::fresh(layout, 20.0).unwrap();
    let mut features = Features::new();
    for (board, target) in [(Board::INITIAL, 7.0), (Board::CLEAR, -3.0), (Board::INITIAL, 9.5)] {
        layout.features(&board, 4, &mut features);
        tables.update(&features, target, 1.0, 30.0);
    }
    tables
}

/// A weights-only file of `trained`, once for all tests.
static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = Vec::new();
    let identity = file::write_weights(&trained(), &mut bytes).unwrap();
    assert_eq!(identity.bytes, bytes.len() as u64);
    assert_eq!(identity.sha256, <[u8; 32]>::from(Sha256::digest(&bytes)));
    bytes
});

fn header() -> Header {
    Header { layout: LAYOUT.parse().unwrap(), accumulators: false }
}

#[test]
fn the_header_is_laid_out_as_documented() {
    let bytes = &FILE[..];
    assert_eq!(&bytes[..8], b"D7NTUP01");
    assert_eq!(bytes[8..12], (LAYOUT.len() as u32).to_le_bytes());
    let end = 12 + LAYOUT.len();
    assert_eq!(&bytes[12..end], LAYOUT.as_bytes());
    assert_eq!(bytes[end..end + 8], 30_000_000_u64.to_le_bytes());
    assert_eq!(bytes[end + 8], 0);
    assert_eq!(bytes.len(), end + 9 + 4 * 30_000_000);
    assert_eq!(header().file_bytes(), bytes.len() as u64);
    // Entry 0 of the first table is the pattern of six empty cells.
    assert_eq!(bytes[end + 9..end + 13], trained().weight(0).to_le_bytes());
    let wide: Layout = "rows,cols,win23,win32,phase=all".parse().unwrap();
    let wide = Header { layout: wide, accumulators: false };
    assert_eq!(wide.file_bytes(), 52 + 4_000_000_000);
    assert_eq!(file::read_header(bytes).unwrap(), header());
}

#[test]
fn weights_come_back_for_play_and_for_training() {
    let tables = trained();
    let (frozen, identity) = file::read_frozen(&FILE[..]).unwrap();
    assert_eq!(identity.sha256, <[u8; 32]>::from(Sha256::digest(&FILE[..])));
    assert_eq!(identity.bytes, FILE.len() as u64);
    let (trainable, found, again) = file::read_trainable(&FILE[..], 20.0).unwrap();
    assert_eq!((found, again), (header(), identity));
    let mut written = 0;
    tables.for_each_written(|index, record| {
        assert_eq!(frozen.weight(index).to_bits(), record.weight.to_bits());
        assert_eq!(trainable.weight(index).to_bits(), record.weight.to_bits());
        written += 1;
    });
    assert!(written > 30);
    let mut found = 0;
    frozen.for_each_written(|_, _| found += 1);
    assert_eq!(found, written);
    // A weights-only file has no history.
    assert_eq!(trainable.touched(), 0);
    assert_eq!(file::write_weights(&frozen, io::sink()).unwrap(), identity);
    assert_eq!(file::write_weights(&trainable, io::sink()).unwrap(), identity);
}

#[test]
fn a_checkpoint_keeps_the_history_and_plays_like_its_weights() {
    let tables = trained();
    let mut stored = Vec::new();
    let (plain, compressed) =
        file::compressed(&mut stored, 1, |out| file::write_checkpoint(&tables, out)).unwrap();
    assert_eq!(compressed.bytes, stored.len() as u64);
    assert_eq!(compressed.sha256, <[u8; 32]>::from(Sha256::digest(&stored)));
    assert_eq!(plain.bytes, Header { accumulators: true, ..header() }.file_bytes());

    // Another start value is a matter of memory, not of content.
    for start in [20.0, 3.0] {
        let ((read, found, identity), same) =
            file::decompressed(&stored[..], |plain| file::read_trainable(plain, start)).unwrap();
        assert!(found.accumulators);
        assert_eq!((identity, same), (plain, compressed));
        assert_eq!(read.touched(), tables.touched());
        tables.for_each_written(|index, record| assert_eq!(read.record(index), record));
        if start == 20.0 {
            assert_eq!(file::write_checkpoint(&read, io::sink()).unwrap(), plain);
        }
    }
    let ((frozen, identity), _) =
        file::decompressed(&stored[..], |plain| file::read_frozen(plain)).unwrap();
    assert_eq!(identity, plain);
    let weights = file::write_weights(&frozen, io::sink()).unwrap();
    assert_eq!(weights.sha256, <[u8; 32]>::from(Sha256::digest(&FILE[..])));
}

fn refusal(bytes: impl Read) -> TableFileError {
    file::read_frozen(bytes).expect_err("this is not a table file")
}

/// The file with one stretch of bytes replaced.
fn altered(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = FILE[..200].to_vec();
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn a_wrong_header_is_refused_by_name() {
    let end = 12 + LAYOUT.len();
    let error = refusal(&altered(7, b"2")[..]);
    assert!(matches!(&error, TableFileError::Magic { found } if found == "D7NTUP02"), "{error}");
    for length in [0_u32, 257, u32::MAX] {
        let error = refusal(&altered(8, &length.to_le_bytes())[..]);
        assert!(matches!(error, TableFileError::LayoutLength { length: l } if l == length));
    }
    let error = refusal(&altered(12, b"win99")[..]);
    assert!(matches!(error, TableFileError::Layout(_)), "{error}");
    assert!(error.to_string().contains("win99"));
    let error = refusal(&altered(12, b"WIN23")[..]);
    assert!(matches!(error, TableFileError::Layout(_)), "{error}");
    let error = refusal(&altered(12, b"phase=none,win23")[..]);
    assert!(matches!(error, TableFileError::Spelling { .. }), "{error}");
    assert!(error.to_string().contains(LAYOUT), "{error}");
    let error = refusal(&altered(end, &29_999_999_u64.to_le_bytes())[..]);
    assert!(matches!(error, TableFileError::Entries { found: 29_999_999, .. }), "{error}");
    assert!(error.to_string().contains("30000000"), "{error}");
    let error = refusal(&altered(end + 8, &[2])[..]);
    assert!(matches!(error, TableFileError::Flag { found: 2 }), "{error}");
    for length in 0..end + 9 {
        let error = refusal(&FILE[..length]);
        assert!(matches!(error, TableFileError::Truncated { part: "header" }), "{error}");
    }
    assert!(file::read_header(&b"\xff\xfe"[..]).is_err());
}

#[test]
fn a_wrong_end_is_refused() {
    let error = refusal(&FILE[..FILE.len() - 1]);
    assert!(matches!(error, TableFileError::Truncated { part: "weights" }), "{error}");
    let error = refusal((&FILE[..]).chain(&b"\0"[..]));
    let bytes = FILE.len() as u64;
    assert!(matches!(error, TableFileError::Trailing { bytes: b } if b == bytes), "{error}");

    // A checkpoint whose flag says that error sums follow, and they do not all do.
    let mut start = FILE[..20 + LAYOUT.len()].to_vec();
    start.push(1);
    let weights = &FILE[start.len()..];
    let error = refusal((&start[..]).chain(weights));
    assert!(matches!(error, TableFileError::Truncated { part: "error sums" }), "{error}");
    let zeros = io::repeat(0).take(4 * 30_000_000 + 17);
    let error = refusal((&start[..]).chain(weights).chain(zeros));
    assert!(matches!(error, TableFileError::Truncated { part: "absolute error sums" }), "{error}");
}

#[test]
fn values_that_are_not_finite_are_refused_where_they_are() {
    let first = 21 + LAYOUT.len();
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for index in [0_usize, 29_999_999, 777_777] {
            let at = first + 4 * index;
            let value = value.to_le_bytes();
            let bytes = (&FILE[..at]).chain(&value[..]).chain(&FILE[at + 4..]);
            let error = file::read_trainable(bytes, 20.0).unwrap_err();
            let TableFileError::NotFinite { part: "weights", index: found, .. } = error else {
                panic!("{error}")
            };
            assert_eq!(found, index as u64);
            if index != 0 {
                break;
            }
        }
    }
}

#[test]
fn compressed_streams_are_refused_when_damaged_or_too_long() {
    let mut stored = Vec::new();
    file::compressed(&mut stored, 3, |out| file::write_weights(&trained(), out)).unwrap();
    let read = |bytes: &[u8]| file::decompressed(bytes, |plain| file::read_frozen(plain));
    assert!(read(&stored).is_ok());
    assert!(read(&stored[..stored.len() - 1]).is_err());
    assert!(read(&[&stored[..], b"more"].concat()).is_err());
    assert!(read(&FILE[..1000]).is_err());
    let mut damaged = stored.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x40;
    assert!(read(&damaged).is_err());

    // A small file that unpacks to far more than its header announces is given up at the first
    // surplus byte.
    let mut bomb = Vec::new();
    file::compressed(&mut bomb, 1, |out| {
        out.write_all(&FILE)?;
        io::copy(&mut io::repeat(0).take(1 << 30), out)
    })
    .unwrap();
    let error = read(&bomb).unwrap_err();
    assert!(matches!(error, TableFileError::Trailing { .. }), "{error}");
}

/// A writer that is full after a while.
struct Full(u64);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let taken = bytes.len().min(self.0 as usize).min(1000);
        self.0 -= taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_and_short_writes_are_not_errors() {
    let whole = file::write_weights(&trained(), Full(u64::MAX)).unwrap();
    assert_eq!(whole.sha256, <[u8; 32]>::from(Sha256::digest(&FILE[..])));
    for room in [0, 5, 100_000] {
        let error = file::write_weights(&trained(), Full(room)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
