//! What the memory of a machine can do for tables: random reads of cache lines, and random updates of
//! records, over an array as large as the caller likes.
//!
//! Both know the addresses of a group before they use the first, as the entries of a board are known.

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::ntuple::pages::{Pages, prefetch};
use crate::ntuple::tables::PageSize;

/// Words of a cache line.
const LINE: usize = 16;
/// Words of a record: weight, E, A, and one that pads it to a quarter of a line.
const RECORD: usize = 4;
/// Addresses known ahead: about the entries of a board.
const GROUP: usize = 64;

/// An array whose every line exists.
pub struct Array(Pages<LINE>);

impl Array {
    /// An array of `bytes`, at least one line, all of it written once.
    ///
    /// # Errors
    /// When the system refuses the address space.
    pub fn filled(bytes: u64, page_size: PageSize) -> io::Result<Self> {
        let pages = Pages::zeroed((bytes / (4 * LINE as u64)).clamp(1, 1 << 32), page_size)?;
        let one = 1.0_f32.to_bits();
        for word in pages.records().iter().flatten() {
            word.store(one, Relaxed);
        }
        Ok(Self(pages))
    }

    /// Reads about `count` lines, at least one group of them; returns how many.
    pub fn read(&self, seed: u64, count: u64) -> u64 {
        let lines = self.0.records();
        let mut random = Random(seed);
        let groups = (count / GROUP as u64).max(1);
        let mut sum = 0_u32;
        for _ in 0..groups {
            let group: [&AtomicU32; GROUP] = std::array::from_fn(|_| {
                let word = &lines[random.below(lines.len())][0];
                prefetch(word);
                word
            });
            for word in group {
                sum = sum.wrapping_add(word.load(Relaxed));
            }
        }
        black_box(sum);
        groups * GROUP as u64
    }

    /// Updates about `count` records as learning does, at least one group; returns how many.
    pub fn update(&self, seed: u64, count: u64) -> u64 {
        let lines = self.0.records();
        let mut random = Random(seed);
        let groups = (count / GROUP as u64).max(1);
        for _ in 0..groups {
            let group: [&[AtomicU32]; GROUP] = std::array::from_fn(|_| {
                let line = &lines[random.below(lines.len())];
                let place = RECORD * random.below(LINE / RECORD);
                prefetch(&line[place]);
                &line[place..place + RECORD]
            });
            let delta = black_box(1e-3_f32);
            for record in group {
                learn(record, delta);
            }
        }
        groups * GROUP as u64
    }
}

/// The arithmetic of [`crate::ntuple::TrainTables::update`] for one record.
#[inline]
fn learn(record: &[AtomicU32], delta: f32) {
    let [weight, error, abs_error, _] = record else { return };
    let read = |word: &AtomicU32| f32::from_bits(word.load(Relaxed));
    let (w, e, a) = (read(weight), read(error), read(abs_error));
    let beta = if a > 0.0 { e.abs() / a } else { 1.0 };
    weight.store((w + beta * (delta / 74.0)).to_bits(), Relaxed);
    error.store((e + delta).to_bits(), Relaxed);
    abs_error.store((a + delta.abs()).to_bits(), Relaxed);
}

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Array").field("lines", &self.0.records().len()).finish_non_exhaustive()
    }
}

/// A congruential generator: its high bits are random enough for addresses, and it is quick.
struct Random(u64);

impl Random {
    /// Uniform in 0..`end`, which is at most 2^32.
    #[inline]
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (((self.0 >> 32) * end as u64) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_updates_stay_inside_and_count() {
        for page_size in [PageSize::Small, PageSize::Huge] {
            let array = Array::filled(1 << 16, page_size).unwrap();
            assert_eq!(array.read(1, 1000), 960);
            assert_eq!(array.update(2, 1), 64);
            let changed = array.0.records().iter().flatten();
            let changed = changed.filter(|word| word.load(Relaxed) != 1.0_f32.to_bits()).count();
            assert!((100..=192).contains(&changed), "{changed}");
        }
    }
}
