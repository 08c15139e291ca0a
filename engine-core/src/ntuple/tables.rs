//! The entries of a layout in memory: [`TrainTables`] to learn in, [`FrozenTables`] to play from.
//!
//! Both hold every weight XORed with the bits of the start value. Fresh tables are therefore all
//! zero bytes, which the kernel provides without being asked twice: nothing is filled at the start,
//! and a page nobody learned in takes no memory. The XOR is exact, so values keep their bits.
//!
//! Training access is through `&self`: any number of threads read and write one set of tables with
//! relaxed loads and stores. Concurrent updates of one entry may lose one of them; that is the
//! algorithm, and it is why only single-threaded training is reproducible.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

pub use super::pages::PageSize;
use super::pages::Pages;
use super::{Features, Layout, Weights};

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

/// The written ranges of a whole region, looked up piece by piece.
fn stretches<const N: usize>(pages: &Pages<N>) -> impl Iterator<Item = Range<usize>> {
    const PIECE: usize = 1 << 20;
    let records = pages.records().len();
    (0..records)
        .step_by(PIECE)
        .flat_map(move |first| pages.written(first..records.min(first + PIECE)))
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

/// Weights with their learning history, one record per entry, shared by all training threads.
pub struct TrainTables {
    layout: Layout,
    start: u32,
    records: Pages<3>,
}

impl TrainTables {
    /// Tables in which every board is worth about `optimistic_rises` row rises.
    ///
    /// # Errors
    /// When the system refuses the address space (12 bytes per entry).
    pub fn fresh(layout: Layout, optimistic_rises: f32) -> Result<Self, TablesError> {
        Self::fresh_on(layout, optimistic_rises, PageSize::Small)
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
        let records = Pages::zeroed(layout.entries(), page_size).map_err(|source| TablesError {
            layout,
            bytes: layout.entries() * 12,
            source,
        })?;
        Ok(Self { layout, start, records })
    }

    /// The layout of the entries.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The value every entry started with.
    pub const fn start_value(&self) -> f32 {
        f32::from_bits(self.start)
    }

    /// Entry `index` with its history.
    ///
    /// # Panics
    /// When `index` is not below the layout's entry count.
    pub fn record(&self, index: u64) -> Record {
        let [weight, error, abs_error] = &self.records.records()[index as usize];
        Record {
            weight: f32::from_bits(weight.load(Relaxed) ^ self.start),
            error: f32::from_bits(error.load(Relaxed)),
            abs_error: f32::from_bits(abs_error.load(Relaxed)),
        }
    }

    /// Replaces entry `index`. Words that already hold the value are not written, so storing the
    /// start record does not take memory.
    ///
    /// # Panics
    /// When `index` is not below the layout's entry count.
    pub fn set_record(&self, index: u64, record: Record) {
        let bits = [
            record.weight.to_bits() ^ self.start,
            record.error.to_bits(),
            record.abs_error.to_bits(),
        ];
        for (word, bits) in self.records.records()[index as usize].iter().zip(bits) {
            if word.load(Relaxed) != bits {
                word.store(bits, Relaxed);
            }
        }
    }

    /// Stores one word of a record as a file holds it: 0 weight, 1 error, 2 absolute error.
    pub(super) fn store_bits(&self, index: u64, word: usize, bits: u32) {
        let stored = if word == 0 { bits ^ self.start } else { bits };
        self.records.records()[index as usize][word].store(stored, Relaxed);
    }

    /// Copies one word of the records from `first` on, as a file holds it.
    pub(super) fn copy_words(&self, first: u64, word: usize, out: &mut [f32]) {
        let start = if word == 0 { self.start } else { 0 };
        let first = first as usize;
        out.fill(f32::from_bits(start));
        for range in self.records.written(first..first + out.len()) {
            let slots = &mut out[range.start - first..range.end - first];
            for (record, slot) in self.records.records()[range].iter().zip(slots) {
                *slot = f32::from_bits(record[word].load(Relaxed) ^ start);
            }
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
        let prediction = self.value(features);
        let delta = (target - prediction).max(-clamp).min(clamp);
        let step = alpha * delta / f32::from(self.layout.active() as u8);
        let mut beta_sum = *betas;
        let records = self.records.records();
        for &index in features.as_slice() {
            let [weight, error, abs_error] = &records[index as usize];
            let e = f32::from_bits(error.load(Relaxed));
            let a = f32::from_bits(abs_error.load(Relaxed));
            let beta = if a > 0.0 { e.abs() / a } else { 1.0 };
            let w = f32::from_bits(weight.load(Relaxed) ^ self.start);
            weight.store((w + beta * step).to_bits() ^ self.start, Relaxed);
            error.store((e + delta).to_bits(), Relaxed);
            abs_error.store((a + delta.abs()).to_bits(), Relaxed);
            beta_sum += f64::from(beta);
        }
        *betas = beta_sum;
        (prediction, delta)
    }

    /// Entries that have learned: those that saw an error other than zero.
    pub fn touched(&self) -> u64 {
        let mut touched = 0;
        self.for_each_written(|_, record| touched += u64::from(record.abs_error > 0.0));
        touched
    }

    /// Shows every entry that differs from a fresh one to `visit`, in index order.
    pub fn for_each_written(&self, mut visit: impl FnMut(u64, Record)) {
        for range in stretches(&self.records) {
            for (index, words) in (range.start as u64..).zip(&self.records.records()[range]) {
                if words.iter().any(|word| word.load(Relaxed) != 0) {
                    visit(index, self.record(index));
                }
            }
        }
    }

    /// A copy of the weights alone, as they are now.
    ///
    /// # Errors
    /// When the system refuses the address space (4 bytes per entry).
    pub fn freeze(&self) -> Result<FrozenTables, TablesError> {
        let frozen = FrozenTables::constant(self.layout, self.start_value())?;
        self.for_each_written(|index, record| frozen.set(index, record.weight));
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
        f32::from_bits(self.records.records()[index as usize][0].load(Relaxed) ^ self.start)
    }

    #[inline]
    fn prefetch(&self, features: &Features) {
        features.as_slice().iter().for_each(|&index| self.records.prefetch(index));
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
    words: Pages<1>,
}

impl FrozenTables {
    /// Tables in which every board is worth about `optimistic_rises` row rises.
    ///
    /// # Errors
    /// When the system refuses the address space (4 bytes per entry).
    pub fn fresh(layout: Layout, optimistic_rises: f32) -> Result<Self, TablesError> {
        Self::constant(layout, layout.start_value(optimistic_rises))
    }

    /// Tables in which every entry is `value`.
    ///
    /// # Errors
    /// As [`FrozenTables::fresh`].
    pub fn constant(layout: Layout, value: f32) -> Result<Self, TablesError> {
        let words = Pages::zeroed(layout.entries(), PageSize::Small)
            .map_err(|source| TablesError { layout, bytes: layout.entries() * 4, source })?;
        Ok(Self { layout, start: value.to_bits(), words })
    }

    /// The layout of the entries.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The value of entries that take no memory.
    pub const fn start_value(&self) -> f32 {
        f32::from_bits(self.start)
    }

    /// Replaces entry `index` while the tables are being made. Takes no memory when nothing changes.
    pub(crate) fn set(&self, index: u64, weight: f32) {
        let [word] = &self.words.records()[index as usize];
        let bits = weight.to_bits() ^ self.start;
        if word.load(Relaxed) != bits {
            word.store(bits, Relaxed);
        }
    }

    /// Shows every entry whose bits differ from the start value to `visit`, in index order.
    pub fn for_each_written(&self, mut visit: impl FnMut(u64, f32)) {
        for range in stretches(&self.words) {
            for (index, [word]) in (range.start as u64..).zip(&self.words.records()[range]) {
                let bits = word.load(Relaxed);
                if bits != 0 {
                    visit(index, f32::from_bits(bits ^ self.start));
                }
            }
        }
    }
}

impl Weights for FrozenTables {
    #[inline]
    fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    fn weight(&self, index: u64) -> f32 {
        f32::from_bits(self.words.records()[index as usize][0].load(Relaxed) ^ self.start)
    }

    #[inline]
    fn prefetch(&self, features: &Features) {
        features.as_slice().iter().for_each(|&index| self.words.prefetch(index));
    }

    fn copy_weights(&self, first: u64, out: &mut [f32]) {
        let first = first as usize;
        out.fill(self.start_value());
        for range in self.words.written(first..first + out.len()) {
            let slots = &mut out[range.start - first..range.end - first];
            for ([word], slot) in self.words.records()[range].iter().zip(slots) {
                *slot = f32::from_bits(word.load(Relaxed) ^ self.start);
            }
        }
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
