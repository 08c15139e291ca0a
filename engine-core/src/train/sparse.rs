//! Tables as a stream of the records that were written, for checkpoints only: its size grows with
//! what a run has learned, not with the layout.
//!
//! | part | content |
//! | --- | --- |
//! | magic | `HOLDTAB1` |
//! | layout | u32 length, canonical text |
//! | start | u32: bits of the weight every record that is not listed has |
//! | runs | gap to the end of the run before, number of records (both LEB128), then 12 bytes per record: weight, E, A |
//! | end | a run of no records whose gap reaches the end of the table |
//!
//! Little-endian. Read back, the tables have the same bits, listed or not. What is frozen and
//! published is the dense format of [`file`](crate::ntuple::file), never this one.

use std::io::{self, Read, Write};

use crate::ntuple::file::TableFileError;
use crate::ntuple::tables::Record;
use crate::ntuple::{Layout, TrainTables};

const MAGIC: [u8; 8] = *b"HOLDTAB1";
/// Records in a run at most: a writer holds one run in memory.
const LONGEST_RUN: usize = 4096;
const RECORD: usize = 12;

/// Writes every record of `tables` that is not fresh.
pub(super) fn write(tables: &TrainTables, out: &mut dyn Write) -> io::Result<()> {
    let layout = tables.layout().to_string();
    out.write_all(&MAGIC)?;
    out.write_all(&(layout.len() as u32).to_le_bytes())?;
    out.write_all(layout.as_bytes())?;
    out.write_all(&tables.start_value().to_bits().to_le_bytes())?;
    let mut run = Run { first: 0, bytes: Vec::with_capacity(LONGEST_RUN * RECORD) };
    let mut end = 0;
    let mut result = Ok(());
    tables.for_each_written(|index, record| {
        if result.is_err() {
            return;
        }
        if index != run.end() || run.bytes.len() == LONGEST_RUN * RECORD {
            result = run.flush(&mut end, out);
            run.first = index;
        }
        for value in [record.weight, record.error, record.abs_error] {
            run.bytes.extend_from_slice(&value.to_le_bytes());
        }
    });
    result?;
    run.flush(&mut end, out)?;
    write_number(tables.layout().entries() - end, out)?;
    write_number(0, out)
}

/// Records that follow each other.
struct Run {
    first: u64,
    bytes: Vec<u8>,
}

impl Run {
    fn end(&self) -> u64 {
        self.first + (self.bytes.len() / RECORD) as u64
    }

    /// Writes the run, if there is one; `end` is the end of the run before and becomes that of this.
    fn flush(&mut self, end: &mut u64, out: &mut dyn Write) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        write_number(self.first - *end, out)?;
        write_number((self.bytes.len() / RECORD) as u64, out)?;
        out.write_all(&self.bytes)?;
        *end = self.end();
        self.bytes.clear();
        Ok(())
    }
}

/// Reads tables of `layout` back. Nothing may follow them in `file`; the caller checks that.
///
/// # Errors
/// When the stream ends early or is not of this format, when it is of another layout or start value,
/// and when there is no memory.
pub(super) fn read(
    file: &mut dyn Read,
    layout: Layout,
    optimistic_rises: f32,
) -> Result<TrainTables, TableFileError> {
    if bytes::<8>(file)? != MAGIC {
        return Err(invalid("it is not a stream of records"));
    }
    let expected = layout.to_string();
    let length = u32::from_le_bytes(bytes(file)?);
    if length as usize != expected.len() {
        return Err(invalid("it is of another layout"));
    }
    let mut text = vec![0; expected.len()];
    file.read_exact(&mut text)?;
    if text != expected.as_bytes() {
        return Err(invalid("it is of another layout"));
    }
    let tables = TrainTables::fresh(layout, optimistic_rises)?;
    if u32::from_le_bytes(bytes(file)?) != tables.start_value().to_bits() {
        return Err(invalid("it has another start value"));
    }
    let mut end = 0_u64;
    let mut run = vec![0; LONGEST_RUN * RECORD];
    loop {
        let gap = read_number(file)?;
        let count = read_number(file)?;
        if gap > layout.entries() - end {
            return Err(invalid("a run begins behind the last entry"));
        }
        let first = end + gap;
        if count == 0 {
            return if first == layout.entries() {
                Ok(tables)
            } else {
                Err(invalid("it ends before the last entry"))
            };
        }
        if count > LONGEST_RUN as u64 || count > layout.entries() - first {
            return Err(invalid("a run is longer than it can be"));
        }
        let run = &mut run[..count as usize * RECORD];
        file.read_exact(run)?;
        for (index, words) in (first..).zip(run.as_chunks::<RECORD>().0) {
            let value = |at: usize| {
                f32::from_le_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]])
            };
            let record = Record { weight: value(0), error: value(4), abs_error: value(8) };
            let values = [record.weight, record.error, record.abs_error];
            if !values.iter().all(|value| value.is_finite()) {
                return Err(invalid("a value is not finite"));
            }
            tables.set_record(index, record);
        }
        end = first + count;
    }
}

fn invalid(what: &str) -> TableFileError {
    TableFileError::Io(io::Error::new(io::ErrorKind::InvalidData, what))
}

fn bytes<const N: usize>(file: &mut dyn Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// LEB128: seven bits to a byte, the lowest first, the high bit on all but the last.
fn write_number(mut number: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut bytes = [0; 10];
    let mut length = 0;
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        bytes[length] = if number == 0 { low } else { low | 0x80 };
        length += 1;
        if number == 0 {
            return out.write_all(&bytes[..length]);
        }
    }
}

fn read_number(file: &mut dyn Read) -> Result<u64, TableFileError> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let [byte] = bytes(file)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(invalid("a number is longer than it can be"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: &str = "win32,phase=none";

    fn entries(tables: &TrainTables) -> Vec<(u64, [u32; 3])> {
        let mut found = Vec::new();
        tables.for_each_written(|index, record| {
            let bits = [record.weight, record.error, record.abs_error].map(f32::to_bits);
            found.push((index, bits));
        });
        found
    }

    /// Runs of every interesting length: at both ends, alone, and longer than a run can be.
    fn written() -> (TrainTables, Vec<u8>) {
        let tables = TrainTables::fresh(LAYOUT.parse().unwrap(), 20.0).unwrap();
        let last = tables.layout().entries() - 1;
        let long = 1_000..1_000 + 2 * LONGEST_RUN as u64 + 1;
        for index in [0, 1, 77, last].into_iter().chain(long) {
            let weight = tables.start_value() + index as f32 + 1.0;
            tables.set_record(index, Record { weight, error: -1.5, abs_error: 2.5 });
        }
        let mut stream = Vec::new();
        write(&tables, &mut stream).unwrap();
        (tables, stream)
    }

    #[test]
    fn what_is_written_comes_back_and_nothing_else() {
        let (tables, stream) = written();
        let mut rest = stream.as_slice();
        let read = read(&mut rest, *tables.layout(), 20.0).unwrap();
        assert!(rest.is_empty());
        assert!(entries(&read) == entries(&tables));

        let fresh = TrainTables::fresh(LAYOUT.parse().unwrap(), 20.0).unwrap();
        let mut stream = Vec::new();
        write(&fresh, &mut stream).unwrap();
        assert!(stream.len() < 64, "fresh tables are all gap");
        let read = super::read(&mut stream.as_slice(), *fresh.layout(), 20.0).unwrap();
        assert_eq!(read.touched(), 0);
    }

    #[test]
    fn every_cut_and_every_other_table_is_refused() {
        let (tables, stream) = written();
        let layout = *tables.layout();
        for cut in (0..200).chain(stream.len() - 200..stream.len()) {
            assert!(read(&mut &stream[..cut], layout, 20.0).is_err(), "cut at {cut}");
        }
        assert!(read(&mut stream.as_slice(), "win23".parse().unwrap(), 20.0).is_err());
        assert!(read(&mut stream.as_slice(), layout, 19.0).is_err(), "start value");
    }

    #[test]
    fn numbers_of_any_size_come_back() {
        for number in [0, 1, 127, 128, 16_383, 16_384, 5_800_000_000, (1 << 63) - 1] {
            let mut bytes = Vec::new();
            write_number(number, &mut bytes).unwrap();
            assert_eq!(read_number(&mut bytes.as_slice()).unwrap(), number);
        }
        assert!(read_number(&mut [0xff; 20].as_slice()).is_err());
    }

    #[test]
    fn a_run_outside_the_table_is_refused() {
        let (tables, _) = written();
        let layout = *tables.layout();
        let mut head = Vec::new();
        write(&TrainTables::fresh(layout, 20.0).unwrap(), &mut head).unwrap();
        // The head ends with the gap to the end (four bytes) and a zero.
        let head = &head[..head.len() - 5];
        for (gap, count) in [
            (layout.entries() + 1, 0),
            (layout.entries() - 1, 0),
            (layout.entries(), 1),
            (layout.entries() - 1, 2),
            (0, LONGEST_RUN as u64 + 1),
        ] {
            let mut stream = head.to_vec();
            write_number(gap, &mut stream).unwrap();
            write_number(count, &mut stream).unwrap();
            stream.resize(stream.len() + 2 * LONGEST_RUN * RECORD, 0);
            assert!(read(&mut stream.as_slice(), layout, 20.0).is_err(), "{gap} {count}");
        }
    }
}
