//! Which lines of a layout exist, and where: the memory of tables follows what was touched in
//! pieces of sixteen entries, not in pages.
//!
//! A *line* is [`LINE`] entries that follow each other; every slab of every layout is whole lines.
//! A directory holds one number per line of the layout, and pools hold the lines that exist, under
//! their numbers. Line [`UNTOUCHED`] of a pool is never written and stays all zero bits, so reading
//! an entry takes no branch whether its line exists or not. Numbers are given in the order of first
//! touch, which differs from run to run with several threads: nothing that leaves memory (files,
//! fingerprints, counts) may depend on it, and everything walks the directory in index order.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::pages::{self, PageSize, Pages};

/// Entries of a line: their weights are one cache line.
pub(crate) const LINE: usize = 16;
/// Number of the line that stands for all lines that do not exist.
pub(crate) const UNTOUCHED: u32 = 0;

/// Line and place in the line of an entry.
#[inline]
pub(crate) const fn split(index: u64) -> (usize, usize) {
    ((index / LINE as u64) as usize, index as usize % LINE)
}

/// The weights of tables, for reading.
///
/// Entry `index` is word `index % 16` of line `directory[index / 16]` of `weights`, XORed with
/// `start`. Every word of `directory` is below `weights.len()`, always: numbers are given by
/// [`LineMap::claim`] alone, and no pool has fewer lines than the directory plus one.
#[derive(Clone, Copy)]
pub(crate) struct Lines<'a> {
    /// The number of every line of the layout.
    pub(crate) directory: &'a [AtomicU32],
    /// The lines under their numbers.
    pub(crate) weights: &'a [[AtomicU32; LINE]],
    /// Bits of the start value.
    pub(crate) start: u32,
}

impl Lines<'_> {
    /// Entry `index`.
    ///
    /// # Panics
    /// When `index` is out of range.
    #[inline]
    pub(crate) fn weight(&self, index: u64) -> f32 {
        let (line, place) = split(index);
        let number = self.directory[line].load(Relaxed);
        f32::from_bits(self.weights[number as usize][place].load(Relaxed) ^ self.start)
    }

    /// Copies the entries from `first` on.
    ///
    /// # Panics
    /// When they go beyond the last.
    pub(super) fn copy(&self, map: &LineMap, first: u64, out: &mut [f32]) {
        out.fill(f32::from_bits(self.start));
        let ask = |number: u32| pages::prefetch(&self.weights[number as usize]);
        map.for_each_within(first, out, ask, |number, places, out| {
            for (word, slot) in self.weights[number as usize][places].iter().zip(out) {
                *slot = f32::from_bits(word.load(Relaxed) ^ self.start);
            }
        });
    }
}

/// The directory of tables.
pub(super) struct LineMap {
    directory: Pages<1>,
    /// The last number that was given.
    last: Mutex<u32>,
}

impl LineMap {
    /// Lines of which none exists.
    ///
    /// # Errors
    /// When the address space does not allow it.
    pub(super) fn new(entries: u64, page_size: PageSize) -> io::Result<Self> {
        let lines = u32::try_from(entries.div_ceil(LINE as u64)).map_err(|_| {
            io::Error::new(io::ErrorKind::OutOfMemory, "more lines than numbers for them")
        })?;
        Ok(Self { directory: Pages::zeroed(lines.into(), page_size)?, last: Mutex::new(UNTOUCHED) })
    }

    /// A pool of lines of `N` words with room for all lines of the layout and [`UNTOUCHED`].
    ///
    /// # Errors
    /// When the address space does not allow it.
    pub(super) fn pool<const N: usize>(&self, page_size: PageSize) -> io::Result<Pages<N>> {
        Pages::zeroed(self.directory().len() as u64 + 1, page_size)
    }

    /// The number of every line of the layout.
    #[inline]
    pub(super) fn directory(&self) -> &[AtomicU32] {
        self.directory.records().as_flattened()
    }

    /// Lines that exist. They have the numbers from 1 on.
    pub(super) fn existing(&self) -> u32 {
        *self.last()
    }

    /// The number of `line` for storing into it. A line that does not exist is made, unless all
    /// there is to store is zero bits.
    ///
    /// # Panics
    /// When `line` is out of range.
    #[inline]
    pub(super) fn for_storing(&self, line: usize, zero: bool) -> Option<u32> {
        match self.directory()[line].load(Relaxed) {
            UNTOUCHED if zero => None,
            UNTOUCHED => Some(self.claim(line)),
            number => Some(number),
        }
    }

    /// The number of a line, which exists from now on.
    ///
    /// The memory of a new line is zero because nobody ever writes a line without a number, so a
    /// number may become visible to others in any order with what is stored under it.
    ///
    /// # Panics
    /// When `line` is out of range.
    #[cold]
    pub(super) fn claim(&self, line: usize) -> u32 {
        let word = &self.directory()[line];
        let mut last = self.last();
        // Another thread may have been first.
        let number = word.load(Relaxed);
        if number != UNTOUCHED {
            return number;
        }
        // At most as many numbers as words, and a pool has room for one line more.
        *last += 1;
        word.store(*last, Relaxed);
        *last
    }

    /// Makes the same lines exist in this empty map, under the same numbers. Returns how many.
    pub(super) fn copy_from(&mut self, source: &Self) -> u32 {
        // No number is given meanwhile, so none that is copied is above the one that is returned.
        let last = source.last();
        for (to, from) in self.directory().iter().zip(source.directory()) {
            let number = from.load(Relaxed);
            // Storing zeros would take the memory of lines that nobody touched.
            if number != UNTOUCHED {
                to.store(number, Relaxed);
            }
        }
        *self.last.get_mut().unwrap_or_else(PoisonError::into_inner) = *last;
        *last
    }

    /// Shows the existing ones of `lines` in index order: line and number.
    ///
    /// Numbers are scattered over the pools, so a line is a cache miss: `ask` gets every number a
    /// while before `visit`, to prefetch what `visit` will read.
    pub(super) fn for_each(
        &self,
        lines: Range<usize>,
        ask: impl Fn(u32),
        mut visit: impl FnMut(usize, u32),
    ) {
        /// Enough to keep the memory busy, few enough to stay in the nearest cache.
        const AHEAD: usize = 64;
        let mut waiting = [(0, UNTOUCHED); AHEAD];
        let mut seen = 0;
        for (line, word) in lines.clone().zip(&self.directory()[lines]) {
            let number = word.load(Relaxed);
            if number == UNTOUCHED {
                continue;
            }
            ask(number);
            let slot = &mut waiting[seen % AHEAD];
            if seen >= AHEAD {
                visit(slot.0, slot.1);
            }
            *slot = (line, number);
            seen += 1;
        }
        for at in seen.saturating_sub(AHEAD)..seen {
            let (line, number) = waiting[at % AHEAD];
            visit(line, number);
        }
    }

    /// Shows the existing lines that hold an entry of `first..first + out.len()`: the number, the
    /// places of the line that are meant, and the slots of `out` for them.
    pub(super) fn for_each_within<T>(
        &self,
        first: u64,
        out: &mut [T],
        ask: impl Fn(u32),
        mut visit: impl FnMut(u32, Range<usize>, &mut [T]),
    ) {
        let (first, end) = (first as usize, first as usize + out.len());
        self.for_each(first / LINE..end.div_ceil(LINE), ask, |line, number| {
            let from = first.max(LINE * line);
            let to = end.min(LINE * (line + 1));
            let places = from - LINE * line..to - LINE * line;
            visit(number, places, &mut out[from - first..to - first]);
        });
    }

    fn last(&self) -> MutexGuard<'_, u32> {
        // Nothing can panic while it is held.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn shown(map: &LineMap, lines: Range<usize>) -> Vec<(usize, u32)> {
        let mut shown = Vec::new();
        map.for_each(
            lines,
            |number| assert_ne!(number, UNTOUCHED),
            |line, number| {
                shown.push((line, number));
            },
        );
        shown
    }

    #[test]
    fn lines_are_numbered_by_first_touch_and_shown_in_order() {
        let map = LineMap::new(16_000, PageSize::Small).unwrap();
        assert_eq!((map.directory().len(), map.existing()), (1_000, 0));
        assert_eq!(shown(&map, 0..1_000), []);
        for (number, line) in (1..).zip([999, 0, 500, 501, 3]) {
            assert_eq!(map.claim(line), number);
            assert_eq!(map.claim(line), number, "a line is claimed once");
        }
        assert_eq!(map.existing(), 5);
        assert_eq!(shown(&map, 0..1_000), [(0, 2), (3, 5), (500, 3), (501, 4), (999, 1)]);
        assert_eq!(shown(&map, 1..501), [(3, 5), (500, 3)]);
        assert_eq!(shown(&map, 4..500), []);

        let mut copy = LineMap::new(16_000, PageSize::Huge).unwrap();
        assert_eq!(copy.copy_from(&map), 5);
        assert_eq!(shown(&copy, 0..1_000), shown(&map, 0..1_000));
        assert_eq!(copy.claim(7), 6, "numbers go on behind those that were copied");
    }

    #[test]
    fn many_lines_are_all_shown_once_and_asked_for_before() {
        let map = LineMap::new(16 * 700, PageSize::Small).unwrap();
        for line in (0..700).rev().filter(|line| line % 3 != 0) {
            map.claim(line);
        }
        for end in [0, 1, 63, 64, 65, 66, 190, 193, 194, 700] {
            let asked = std::cell::RefCell::new(Vec::new());
            let mut visited = Vec::new();
            map.for_each(
                0..end,
                |number| asked.borrow_mut().push(number),
                |line, number| {
                    assert!(asked.borrow().contains(&number));
                    visited.push(line);
                },
            );
            assert!(visited.iter().copied().eq((0..end).filter(|line| line % 3 != 0)), "{end}");
        }
    }

    #[test]
    fn ranges_of_entries_are_cut_at_both_ends() {
        let map = LineMap::new(160, PageSize::Small).unwrap();
        for line in [1, 2, 9] {
            map.claim(line);
        }
        for (first, length) in [(0, 160), (16, 16), (17, 14), (20, 1), (20, 20), (0, 16), (150, 10)]
        {
            let mut out = vec![0_u64; length];
            map.for_each_within(
                first,
                &mut out,
                |_| {},
                |number, places, out| {
                    assert_eq!(places.len(), out.len());
                    for (place, slot) in places.zip(out) {
                        *slot = u64::from(number) * 100 + place as u64;
                    }
                },
            );
            for (index, found) in (first..).zip(out) {
                let number = u64::from(map.directory()[index as usize / 16].load(Relaxed));
                let expected = if number == 0 { 0 } else { number * 100 + index % 16 };
                assert_eq!(found, expected, "{index}");
            }
        }
    }

    #[test]
    fn threads_that_touch_the_same_lines_agree_on_their_numbers() {
        let lines = if cfg!(miri) { 64 } else { 4_096 };
        let map = LineMap::new(16 * lines as u64, PageSize::Small).unwrap();
        let claimed: Vec<Vec<u32>> = thread::scope(|scope| {
            let claim = || (0..lines).map(|line| map.claim(line)).collect();
            let threads: Vec<_> = (0..2).map(|_| scope.spawn(claim)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(claimed[0], claimed[1]);
        let mut numbers = claimed[0].clone();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(1..=lines as u32), "every number is given once");
    }

    #[test]
    fn more_lines_than_numbers_are_refused() {
        assert!(LineMap::new(16 << 32, PageSize::Small).is_err());
    }
}
