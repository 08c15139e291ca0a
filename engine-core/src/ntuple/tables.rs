//! The entries of a layout in memory: [`TrainTables`] to learn in, [`FrozenTables`] to play from.
//!
//! Both hold every weight XORed with the bits of the start value, so an entry nobody learned in is
//! zero bits; the XOR is exact, so values keep their bits. Entries are kept in lines of sixteen that
//! exist once something was written to them: four bytes per line of the layout say where, and a line
//! takes 64 bytes of weights and, while training, 128 bytes of history. Nothing is filled at the
//! start, and reading takes no memory.
//!
//! Training access is through `&self`: any number of threads read and write one set of tables with
//! relaxed loads and stores. Concurrent updates of one entry may lose one of them; that is the
//! lock-free algorithm, and it is why it is reproducible with one thread only.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::features::MAX_ACTIVE;
use super::lines::{LINE, LineMap, Lines, UNTOUCHED, split};
pub use super::pages::PageSize;
use super::pages::{self, Pages};
use super::{Features, LANES, Lanes, Layout, Weights, sums};

/// Row rises an unseen board is worth in the four studies, and in every file they froze.
pub const STUDY_START: f32 = 20.0;

/// Tables could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("no room for {bytes} bytes of tables ({layout}): {source}")]
pub struct TablesError {
    /// The layout asked for.
    pub layout: Layout,
    /// Address space it takes.
    pub bytes: u64,
    /// What the system said.
    pub source: std::io::Error,
}

/// One entry with its learning history.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record {
    /// The weight, in row rises.
    pub weight: f32,
    /// Sum of the errors seen (E).
    pub error: f32,
    /// Sum of their absolute values (A): above 0 exactly when the entry has learned.
    pub abs_error: f32,
}

/// What one update did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UpdateReport {
    /// The value before the update, in row rises.
    pub prediction: f32,
    /// The clamped error, in row rises.
    pub delta: f32,
    /// Sum of the step sizes of the entries, each 0..=1.
    pub beta_sum: f64,
}

/// Words of a line of history: the error sums E and A of sixteen entries, side by side.
const HISTORY: usize = 2 * LINE;

/// Room for tables with `pools` bytes per line of them.
fn room<T>(
    layout: Layout,
    pools: u64,
    make: impl FnOnce() -> std::io::Result<T>,
) -> Result<T, TablesError> {
    let lines = layout.entries().div_ceil(LINE as u64);
    let bytes = lines * 4 + (lines + 1) * pools;
    make().map_err(|source| TablesError { layout, bytes, source })
}

/// Weights with their learning history, one record per entry, shared by all training threads.
pub struct TrainTables {
    layout: Layout,
    start: u32,
    map: LineMap,
    weights: Pages<LINE>,
    /// Entry k of a line has E in word 2k and A in word 2k + 1.
    history: Pages<HISTORY>,
}

impl TrainTables {
    /// Tables in which every board is worth about `optimistic_rises` row rises.
    ///
    /// # Errors
    /// When the system refuses the address space (12.25 bytes per entry).
    pub fn fresh(layout: Layout, optimistic_rises: f32) -> Result<Self, TablesError> {
        Self::fresh_on(layout, optimistic_rises, PageSize::default())
    }

    /// [`TrainTables::fresh`] with a choice of pages.
    ///
    /// # Errors
    /// As [`TrainTables::fresh`].
    pub fn fresh_on(
        layout: Layout,
        optimistic_rises: f32,
        page_size: PageSize,
    ) -> Result<Self, TablesError> {
        let start = layout.start_value(optimistic_rises).to_bits();
        room(layout, 4 * (LINE + HISTORY) as u64, || {
            let map = LineMap::new(layout.entries(), page_size)?;
            let (weights, history) = (map.pool(page_size)?, map.pool(page_size)?);
            Ok(Self { layout, start, map, weights, history })
        })
    }

    /// The layout of the entries.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The value every entry started with.
    pub const fn start_value(&self) -> f32 {
        f32::from_bits(self.start)
    }

    /// Lines of sixteen entries that take memory: 192 bytes each.
    pub fn existing_lines(&self) -> u64 {
        self.map.existing().into()
    }

    /// The weights, for kernels that read many at once.
    #[inline]
    pub(crate) fn lines(&self) -> Lines<'_> {
        Lines {
            directory: self.map.directory(),
            weights: self.weights.records(),
            start: self.start,
        }
    }

    /// The stored words of entry `index` in line `number`: weight, E, A.
    #[inline]
    fn words(&self, number: u32, place: usize) -> [&AtomicU32; 3] {
        let history = &self.history.records()[number as usize];
        let weight = &self.weights.records()[number as usize][place];
        [weight, &history[2 * place], &history[2 * place + 1]]
    }

    /// Entry `index` with its history.
    ///
    /// # Panics
    /// When `index` is not below the layout's entry count.
    pub fn record(&self, index: u64) -> Record {
        let (line, place) = split(index);
        self.record_in(self.map.directory()[line].load(Relaxed), place)
    }

    fn record_in(&self, number: u32, place: usize) -> Record {
        let [weight, error, abs_error] = self.words(number, place);
        Record {
            weight: f32::from_bits(weight.load(Relaxed) ^ self.start),
            error: f32::from_bits(error.load(Relaxed)),
            abs_error: f32::from_bits(abs_error.load(Relaxed)),
        }
    }

    /// Replaces entry `index`. Storing the start record does not take memory.
    ///
    /// # Panics
    /// When `index` is not below the layout's entry count.
    pub fn set_record(&self, index: u64, record: Record) {
        let Record { weight, error, abs_error } = record;
        let bits = [weight.to_bits() ^ self.start, error.to_bits(), abs_error.to_bits()];
        let (line, place) = split(index);
        self.store(line, place, bits);
    }

    /// Stores the words of an entry.
    fn store(&self, line: usize, place: usize, bits: [u32; 3]) {
        let Some(number) = self.map.for_storing(line, bits == [0; 3]) else { return };
        for (word, bits) in self.words(number, place).into_iter().zip(bits) {
            word.store(bits, Relaxed);
        }
    }

    /// Stores one word of a record as a file holds it: 0 weight, 1 error, 2 absolute error.
    pub(super) fn store_bits(&self, index: u64, word: usize, bits: u32) {
        let stored = if word == 0 { bits ^ self.start } else { bits };
        let (line, place) = split(index);
        let Some(number) = self.map.for_storing(line, stored == 0) else { return };
        self.words(number, place)[word].store(stored, Relaxed);
    }

    /// Copies one word of the records from `first` on, as a file holds it.
    pub(super) fn copy_words(&self, first: u64, word: usize, out: &mut [f32]) {
        let Some(offset) = word.checked_sub(1) else {
            return self.lines().copy(&self.map, first, out);
        };
        out.fill(0.0);
        let history = self.history.records();
        self.map.for_each_within(
            first,
            out,
            |number| self.ask_history(number),
            |number, places, out| {
                for (place, slot) in places.zip(out) {
                    let word = &history[number as usize][2 * place + offset];
                    *slot = f32::from_bits(word.load(Relaxed));
                }
            },
        );
    }

    fn ask_history(&self, number: u32) {
        let (first, second) = self.history.records()[number as usize].split_at(LINE);
        pages::prefetch(&first[0]);
        pages::prefetch(&second[0]);
    }

    /// Asks for all that an update of these entries reads and writes, ahead of its use. Changes no
    /// value.
    ///
    /// # Panics
    /// When the features were extracted with a larger layout.
    #[inline]
    pub fn prefetch_update(&self, features: &Features) {
        for &index in features.as_slice() {
            let (line, place) = split(index);
            let number = self.map.directory()[line].load(Relaxed) as usize;
            pages::prefetch(&self.weights.records()[number]);
            pages::prefetch(&self.history.records()[number][2 * place]);
        }
    }

    /// Moves the value of a position towards `target` by temporal coherence.
    ///
    /// The error is `target - value`, clamped to `±clamp` (at least 0); every entry moves by
    /// `alpha * error / active` times its own step size, the ratio of its signed to its absolute
    /// error history (1 until it has one), and then the error enters that history.
    ///
    /// # Panics
    /// When the features were extracted with a larger layout.
    pub fn update(&self, features: &Features, target: f32, alpha: f32, clamp: f32) -> UpdateReport {
        let mut beta_sum = 0.0;
        let (prediction, delta) = self.update_adding(features, target, alpha, clamp, &mut beta_sum);
        UpdateReport { prediction, delta, beta_sum }
    }

    /// [`TrainTables::update`] that adds the step sizes to a running sum, entry by entry: summed over
    /// a run, the figure is rounded after every entry and not once per update. Returns the value
    /// before the update and the clamped error.
    ///
    /// # Panics
    /// As [`TrainTables::update`].
    pub fn update_adding(
        &self,
        features: &Features,
        target: f32,
        alpha: f32,
        clamp: f32,
        betas: &mut f64,
    ) -> (f32, f32) {
        let directory = self.map.directory();
        let weights = self.weights.records();
        let features = features.as_slice();
        // One look at where each entry is; all cache lines are asked for before the first is read.
        let mut numbers = [UNTOUCHED; MAX_ACTIVE];
        for (number, &index) in numbers.iter_mut().zip(features) {
            let (line, place) = split(index);
            *number = directory[line].load(Relaxed);
            pages::prefetch(&weights[*number as usize]);
            pages::prefetch(&self.history.records()[*number as usize][2 * place]);
        }
        let mut prediction = 0.0;
        for (&number, &index) in numbers.iter().zip(features) {
            let bits = weights[number as usize][split(index).1].load(Relaxed) ^ self.start;
            prediction += f32::from_bits(bits);
        }
        let delta = (target - prediction).max(-clamp).min(clamp);
        let step = alpha * delta / f32::from(self.layout.active() as u8);
        let mut beta_sum = *betas;
        for (&number, &index) in numbers.iter().zip(features) {
            let (line, place) = split(index);
            let beta = self.learn_in(number, line, place, step, delta);
            beta_sum += f64::from(beta);
        }
        *betas = beta_sum;
        (prediction, delta)
    }

    /// What an update towards `target` would do, changing nothing: the clamped error, and how far an
    /// entry of step size 1 moves.
    ///
    /// # Panics
    /// As [`TrainTables::update`].
    pub(crate) fn error(
        &self,
        features: &Features,
        target: f32,
        alpha: f32,
        clamp: f32,
    ) -> (f32, f32) {
        let delta = (target - self.value(features)).max(-clamp).min(clamp);
        (delta, alpha * delta / f32::from(self.layout.active() as u8))
    }

    /// The part of an update that belongs to `entries`: moves each by `step` times its own step size,
    /// which goes to `betas`, and enters the error into its history.
    ///
    /// # Panics
    /// When an index is not below the layout's entry count.
    pub(crate) fn learn(&self, entries: &[AtomicU64], step: f32, error: f32, betas: &[AtomicU32]) {
        let mut numbers = [UNTOUCHED; MAX_ACTIVE];
        for (number, entry) in numbers.iter_mut().zip(entries) {
            let (line, place) = split(entry.load(Relaxed));
            *number = self.map.directory()[line].load(Relaxed);
            pages::prefetch(&self.weights.records()[*number as usize]);
            pages::prefetch(&self.history.records()[*number as usize][2 * place]);
        }
        for ((&number, entry), beta) in numbers.iter().zip(entries).zip(betas) {
            let (line, place) = split(entry.load(Relaxed));
            let learned = self.learn_in(number, line, place, step, error);
            beta.store(learned.to_bits(), Relaxed);
        }
    }

    /// Updates the entry of `line`, which is at `number`; returns its step size.
    #[inline]
    fn learn_in(&self, number: u32, line: usize, place: usize, step: f32, error: f32) -> f32 {
        let Record { weight: w, error: e, abs_error: a } = self.record_in(number, place);
        let beta = if a > 0.0 { e.abs() / a } else { 1.0 };
        let bits = [
            (w + beta * step).to_bits() ^ self.start,
            (e + error).to_bits(),
            (a + error.abs()).to_bits(),
        ];
        if number == UNTOUCHED {
            self.store(line, place, bits);
        } else {
            for (word, bits) in self.words(number, place).into_iter().zip(bits) {
                word.store(bits, Relaxed);
            }
        }
        beta
    }

    /// Entries that have learned: those that saw an error other than zero.
    pub fn touched(&self) -> u64 {
        let history = self.history.records();
        let mut touched = 0;
        let lines = 0..self.map.directory().len();
        self.map.for_each(
            lines,
            |number| self.ask_history(number),
            |_, number| {
                let (pairs, _) = history[number as usize].as_chunks::<2>();
                let learned = |[_, a]: &&[AtomicU32; 2]| f32::from_bits(a.load(Relaxed)) > 0.0;
                touched += pairs.iter().filter(learned).count() as u64;
            },
        );
        touched
    }

    /// Shows every entry that differs from a fresh one to `visit`, in index order.
    pub fn for_each_written(&self, mut visit: impl FnMut(u64, Record)) {
        let ask = |number: u32| {
            pages::prefetch(&self.weights.records()[number as usize]);
            self.ask_history(number);
        };
        self.map.for_each(0..self.map.directory().len(), ask, |line, number| {
            for (index, place) in ((LINE * line) as u64..).zip(0..LINE) {
                if self.words(number, place).iter().any(|word| word.load(Relaxed) != 0) {
                    visit(index, self.record_in(number, place));
                }
            }
        });
    }

    /// A copy of the weights alone, as they are now.
    ///
    /// # Errors
    /// When the system refuses the address space (4.25 bytes per entry).
    pub fn freeze(&self) -> Result<FrozenTables, TablesError> {
        let mut frozen = FrozenTables::constant(self.layout, self.start_value())?;
        let last = frozen.map.copy_from(&self.map) as usize;
        let lines = frozen.weights.records().iter().zip(self.weights.records());
        for (to, from) in lines.skip(1).take(last) {
            for (to, from) in to.iter().zip(from) {
                to.store(from.load(Relaxed), Relaxed);
            }
        }
        Ok(frozen)
    }
}

impl Weights for TrainTables {
    #[inline]
    fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    fn weight(&self, index: u64) -> f32 {
        self.lines().weight(index)
    }

    fn lane_values(&self, lanes: &Lanes, out: &mut [f32; LANES]) {
        sums::lane_values(&self.layout, self.lines(), lanes, out);
    }

    fn copy_weights(&self, first: u64, out: &mut [f32]) {
        self.copy_words(first, 0, out);
    }
}

impl fmt::Debug for TrainTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrainTables")
            .field("layout", &self.layout)
            .field("start", &self.start_value())
            .finish_non_exhaustive()
    }
}

/// Weights alone, for play: nothing in here changes them.
pub struct FrozenTables {
    layout: Layout,
    start: u32,
    map: LineMap,
    weights: Pages<LINE>,
}

impl FrozenTables {
    /// Tables in which every board is worth about `optimistic_rises` row rises.
    ///
    /// # Errors
    /// When the system refuses the address space (4.25 bytes per entry).
    pub fn fresh(layout: Layout, optimistic_rises: f32) -> Result<Self, TablesError> {
        Self::constant(layout, layout.start_value(optimistic_rises))
    }

    /// Tables in which every entry is `value`.
    ///
    /// # Errors
    /// As [`FrozenTables::fresh`].
    pub fn constant(layout: Layout, value: f32) -> Result<Self, TablesError> {
        room(layout, 4 * LINE as u64, || {
            let page_size = PageSize::default();
            let map = LineMap::new(layout.entries(), page_size)?;
            let weights = map.pool(page_size)?;
            Ok(Self { layout, start: value.to_bits(), map, weights })
        })
    }

    /// The layout of the entries.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The value of entries that take no memory.
    pub const fn start_value(&self) -> f32 {
        f32::from_bits(self.start)
    }

    /// The weights, for kernels that read many at once.
    #[inline]
    pub(crate) fn lines(&self) -> Lines<'_> {
        Lines {
            directory: self.map.directory(),
            weights: self.weights.records(),
            start: self.start,
        }
    }

    /// Replaces entry `index` while the tables are being made. Takes no memory when nothing changes.
    pub(crate) fn set(&self, index: u64, weight: f32) {
        let bits = weight.to_bits() ^ self.start;
        let (line, place) = split(index);
        let Some(number) = self.map.for_storing(line, bits == 0) else { return };
        self.weights.records()[number as usize][place].store(bits, Relaxed);
    }

    /// Shows every entry whose bits differ from the start value to `visit`, in index order.
    pub fn for_each_written(&self, mut visit: impl FnMut(u64, f32)) {
        let weights = self.weights.records();
        let ask = |number: u32| pages::prefetch(&weights[number as usize]);
        self.map.for_each(0..self.map.directory().len(), ask, |line, number| {
            for (index, word) in ((LINE * line) as u64..).zip(&weights[number as usize]) {
                let bits = word.load(Relaxed);
                if bits != 0 {
                    visit(index, f32::from_bits(bits ^ self.start));
                }
            }
        });
    }
}

impl Weights for FrozenTables {
    #[inline]
    fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    fn weight(&self, index: u64) -> f32 {
        self.lines().weight(index)
    }

    fn lane_values(&self, lanes: &Lanes, out: &mut [f32; LANES]) {
        sums::lane_values(&self.layout, self.lines(), lanes, out);
    }

    fn copy_weights(&self, first: u64, out: &mut [f32]) {
        self.lines().copy(&self.map, first, out);
    }
}

impl fmt::Debug for FrozenTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrozenTables")
            .field("layout", &self.layout)
            .field("start", &self.start_value())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
#[expect(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a test stops at the first surprise; equal bits are meant"
)]
mod tests {
    use super::*;

    /// Bytes of physical memory this process uses.
    fn resident() -> u64 {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
        pages * 4096
    }

    /// The directory alone has 250 MB, of which every page is read here. Other tests of this program
    /// run meanwhile and take a few MB.
    #[test]
    fn reading_takes_no_memory() {
        let layout: Layout = "rows,cols,win23,win32,phase=all".parse().unwrap();
        for page_size in [PageSize::Small, PageSize::Huge] {
            let tables = TrainTables::fresh_on(layout, 20.0, page_size).unwrap();
            let before = resident();
            for index in (0..layout.entries()).step_by(4_000) {
                assert_eq!(tables.weight(index), tables.start_value());
                assert_eq!(tables.record(index).abs_error, 0.0);
            }
            let frozen = tables.freeze().unwrap();
            assert_eq!(frozen.weight(0), tables.start_value());
            assert_eq!((tables.touched(), tables.existing_lines()), (0, 0));
            let grown = resident().saturating_sub(before);
            assert!(grown < 100_000_000, "{page_size:?}: {grown} bytes");
        }
    }
}
