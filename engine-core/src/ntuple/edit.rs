//! Edits of frozen tables that involve no training: what the untouched entries are worth.
//!
//! An entry is *untouched* when its bits are those of the studies' start value, 20 row rises over
//! the tables of the layout. [`zeroed`] makes all of them 0; [`class_mean`] gives each the mean of
//! the touched entries of the same table, phase and number of occupied cells.
//!
//! Promised: the bytes of the reference, down to the order of its additions. An edit takes no memory:
//! it is computed while it is read, and [`super::file::write_weights`] makes a file of it. Refused:
//! layouts split by fill, for which the reference defines no classes.

use super::layout::{Family, Layout, Location};
use super::tables::STUDY_START;
use super::{FrozenTables, TrainTables, Weights, codec};

/// Why tables cannot be edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// Classes are defined for tables without fill buckets only.
    #[error(
        "tables of {layout} are split by fill; edits are defined for layouts without fill only"
    )]
    Filled {
        /// The layout of the tables.
        layout: Layout,
    },
}

/// What an edit found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditReport {
    /// Entries at the start value.
    pub untouched: u64,
    /// All others. None of them moves.
    pub touched: u64,
    /// Entries whose bits the edit changes.
    pub changed: u64,
    /// Classes without a touched entry, in all tables and phases: they have no mean.
    pub empty_classes: u64,
    /// In the order of the layout.
    pub families: Vec<FamilyReport>,
}

/// What an edit found in one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilyReport {
    /// The family.
    pub family: Family,
    /// Untouched entries by occupied cells of the pattern, over all tables and phases.
    pub untouched: Vec<u64>,
    /// Patterns of one table and phase by occupied cells.
    pub patterns: Vec<u64>,
}

/// Frozen tables with their untouched entries replaced, computed on reading.
#[derive(Debug)]
pub struct Edited<'a> {
    source: &'a FrozenTables,
    classes: Classes,
    report: EditReport,
}

impl Edited<'_> {
    /// What the edit found and did.
    pub const fn report(&self) -> &EditReport {
        &self.report
    }

    /// The replacement of untouched entries of a class; `None` when the layout has no such class.
    /// Empty classes keep the start value.
    pub fn replacement(
        &self,
        family: Family,
        table: u64,
        phase: u64,
        occupied: usize,
    ) -> Option<f32> {
        let location = Location { family, table, bucket: 0, phase, pattern: 0 };
        self.source.layout().index(&location)?;
        (occupied <= family.cells() as usize).then(|| {
            self.classes.values[self.classes.of(self.source.layout(), &location) + occupied]
        })
    }
}

impl Weights for Edited<'_> {
    fn layout(&self) -> &Layout {
        self.source.layout()
    }

    fn weight(&self, index: u64) -> f32 {
        let weight = self.source.weight(index);
        if weight.to_bits() != self.classes.start {
            return weight;
        }
        let layout = self.source.layout();
        layout.locate(index).map_or(weight, |location| {
            self.classes.values[self.classes.of(layout, &location) + location.occupied()]
        })
    }

    fn copy_weights(&self, first: u64, out: &mut [f32]) {
        self.source.copy_weights(first, out);
        let layout = self.source.layout();
        let mut at = 0;
        while at < out.len() {
            // To the end of the slab the class follows from the pattern alone.
            let Some(location) = layout.locate(first + at as u64) else { return };
            let rest = (location.family.patterns() - location.pattern) as usize;
            let end = out.len().min(at + rest);
            let values = &self.classes.values[self.classes.of(layout, &location)..];
            for (pattern, slot) in (location.pattern..).zip(&mut out[at..end]) {
                if slot.to_bits() == self.classes.start {
                    *slot = values[codec::occupied(pattern)];
                }
            }
            at = end;
        }
    }
}

/// One value per table, phase and number of occupied cells.
#[derive(Debug)]
struct Classes {
    /// Bits of an untouched entry.
    start: u32,
    values: Vec<f32>,
}

impl Classes {
    fn new(layout: &Layout) -> Self {
        let slabs: u64 = layout
            .families()
            .map(|family| family.tables() * layout.place(family).map_or(0, |place| place.phases))
            .sum();
        let start = layout.start_value(STUDY_START);
        Self { start: start.to_bits(), values: vec![start; slabs as usize * CLASSES] }
    }

    /// Where the classes of a slab start.
    fn of(&self, layout: &Layout, location: &Location) -> usize {
        let mut slab = 0;
        for family in layout.families() {
            let phases = layout.place(family).map_or(0, |place| place.phases);
            if family == location.family {
                slab += location.table * phases + location.phase;
                break;
            }
            slab += family.tables() * phases;
        }
        debug_assert!((slab as usize) * CLASSES < self.values.len());
        slab as usize * CLASSES
    }
}

/// Room for 0..=8 occupied cells.
const CLASSES: usize = 9;

/// Untouched entries become 0.
///
/// # Errors
/// [`EditError`].
pub fn zeroed(source: &FrozenTables) -> Result<Edited<'_>, EditError> {
    edit(source, |_| 0.0)
}

/// Untouched entries become the mean of the touched entries of their class. A class without a
/// touched entry keeps the start value.
///
/// # Errors
/// [`EditError`].
pub fn class_mean(source: &FrozenTables) -> Result<Edited<'_>, EditError> {
    let start = source.layout().start_value(STUDY_START);
    edit(source, |touched| mean(touched).unwrap_or(start))
}

fn edit(
    source: &FrozenTables,
    replacement: impl Fn(&[f32]) -> f32,
) -> Result<Edited<'_>, EditError> {
    let layout = *source.layout();
    if layout.is_filled() {
        return Err(EditError::Filled { layout });
    }
    let mut classes = Classes::new(&layout);
    let mut report =
        EditReport { untouched: 0, touched: 0, changed: 0, empty_classes: 0, families: Vec::new() };
    for family in layout.families() {
        let class_count = family.cells() as usize + 1;
        let patterns = pattern_counts(family);
        let mut untouched = vec![0; class_count];
        let phases = layout.place(family).map_or(0, |place| place.phases);
        for (table, phase) in (0..family.tables()).flat_map(|t| (0..phases).map(move |p| (t, p))) {
            let slab = Location { family, table, bucket: 0, phase, pattern: 0 };
            let first_class = classes.of(&layout, &slab);
            let touched = touched_of(source, &slab, classes.start);
            for (k, touched) in touched[..class_count].iter().enumerate() {
                let value = replacement(touched);
                classes.values[first_class + k] = value;
                let left = patterns[k] - touched.len() as u64;
                untouched[k] += left;
                report.touched += touched.len() as u64;
                report.empty_classes += u64::from(touched.is_empty());
                if value.to_bits() != classes.start {
                    report.changed += left;
                }
            }
        }
        report.untouched += untouched.iter().sum::<u64>();
        report.families.push(FamilyReport { family, untouched, patterns });
    }
    Ok(Edited { source, classes, report })
}

/// The touched weights of one table and phase by occupied cells, in the order of their patterns.
fn touched_of(source: &FrozenTables, slab: &Location, start: u32) -> [Vec<f32>; CLASSES] {
    let mut touched: [Vec<f32>; CLASSES] = std::array::from_fn(|_| Vec::new());
    let Some(first) = source.layout().index(slab) else { return touched };
    let mut block = vec![0.0; 1 << 16];
    let mut pattern = 0;
    while pattern < slab.family.patterns() {
        let count = block.len().min((slab.family.patterns() - pattern) as usize);
        source.copy_weights(first + pattern, &mut block[..count]);
        for (pattern, &weight) in (pattern..).zip(&block[..count]) {
            if weight.to_bits() != start {
                touched[codec::occupied(pattern)].push(weight);
            }
        }
        pattern += count as u64;
    }
    touched
}

/// Patterns of one table by occupied cells: choose the cells, then nine contents for each.
fn pattern_counts(family: Family) -> Vec<u64> {
    let cells = u64::from(family.cells());
    let mut arrangements = 1;
    (0..=cells)
        .map(|k| {
            let count = arrangements * 9_u64.pow(k as u32);
            arrangements = arrangements * (cells - k) / (k + 1);
            count
        })
        .collect()
}

/// The mean as the reference's array library takes it: a pairwise sum in `f32`, divided once.
fn mean(values: &[f32]) -> Option<f32> {
    // The reference divides by a 64-bit count, which takes the quotient to `f64` and back.
    (!values.is_empty()).then(|| (f64::from(pairwise_sum(values)) / values.len() as f64) as f32)
}

/// Sums blocks of at most 128 in eight lanes, and halves longer runs at a multiple of eight.
fn pairwise_sum(values: &[f32]) -> f32 {
    const BLOCK: usize = 128;
    if values.len() > BLOCK {
        let half = values.len() / 2;
        let (left, right) = values.split_at(half - half % 8);
        return pairwise_sum(left) + pairwise_sum(right);
    }
    let (eights, rest) = values.as_chunks::<8>();
    let Some((first, eights)) = eights.split_first() else {
        return rest.iter().fold(0.0, |sum, value| sum + value);
    };
    let mut lanes = *first;
    for eight in eights {
        for (lane, value) in lanes.iter_mut().zip(eight) {
            *lane += value;
        }
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    let sum = ((a + b) + (c + d)) + ((e + f) + (g + h));
    rest.iter().fold(sum, |sum, value| sum + value)
}

/// Where "at the start value" and "has learned" disagree in a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disagreement {
    /// Entries that have learned and sit at the start value: an edit takes them for untouched.
    pub learned_at_start: u64,
    /// Entries that have not learned and are elsewhere.
    pub unlearned_elsewhere: u64,
}

/// Compares the edits' notion of untouched with the error history of a checkpoint.
pub fn disagreement(tables: &TrainTables) -> Disagreement {
    let layout = *tables.layout();
    let start = layout.start_value(STUDY_START).to_bits();
    let mut found = Disagreement { learned_at_start: 0, unlearned_elsewhere: 0 };
    let mut written = 0;
    tables.for_each_written(|_, record| {
        written += 1;
        let at_start = record.weight.to_bits() == start;
        let learned = record.abs_error > 0.0;
        found.learned_at_start += u64::from(at_start && learned);
        found.unlearned_elsewhere += u64::from(!at_start && !learned);
    });
    if tables.start_value().to_bits() != start {
        found.unlearned_elsewhere += layout.entries() - written;
    }
    found
}
