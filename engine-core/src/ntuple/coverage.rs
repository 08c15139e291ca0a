//! How much of the row and column tables training has reached, by how full the pattern is.
//!
//! A full column is seen late and rarely; this says how late and how rarely. It needs error sums, so
//! it is made from a checkpoint, not from frozen weights.

use super::layout::{Family, Layout, Location};
use super::tables::{Record, TrainTables};

/// Cells of a line; there are `LINE + 1` classes of patterns.
const LINE: usize = 7;

/// Patterns with the same number of occupied cells.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Class {
    /// Patterns there are. For columns only those that gravity allows.
    pub patterns: u64,
    /// Entries that have learned.
    pub touched: u64,
    weight_sum: f64,
    abs_error_sum: f64,
}

impl Class {
    /// Share of the patterns that have learned; `None` when there are none.
    pub fn fraction(&self) -> Option<f64> {
        (self.patterns > 0).then(|| self.touched as f64 / self.patterns as f64)
    }

    /// Mean weight of the entries that have learned, in row rises.
    pub fn mean_weight(&self) -> Option<f64> {
        (self.touched > 0).then(|| self.weight_sum / self.touched as f64)
    }

    /// Mean sum of absolute errors of the entries that have learned, in row rises.
    pub fn mean_abs_error(&self) -> Option<f64> {
        (self.touched > 0).then(|| self.abs_error_sum / self.touched as f64)
    }

    fn add(&mut self, other: &Self) {
        self.patterns += other.patterns;
        self.touched += other.touched;
        self.weight_sum += other.weight_sum;
        self.abs_error_sum += other.abs_error_sum;
    }

    fn see(&mut self, record: &Record) {
        self.touched += 1;
        self.weight_sum += f64::from(record.weight);
        self.abs_error_sum += f64::from(record.abs_error);
    }
}

/// Classes of one slab of one table, by occupied cells 0..=7.
#[derive(Debug, Clone, PartialEq)]
pub struct Slab {
    /// Rows or columns.
    pub family: Family,
    /// Row from the top or column from the left, 0..=6.
    pub table: u64,
    /// Fill bucket; 0 when the layout is not split.
    pub bucket: u64,
    /// Drops left until the rise minus one; 0 when the family is not phase-keyed.
    pub phase: u64,
    /// By occupied cells.
    pub classes: [Class; LINE + 1],
}

/// The coverage of all row and column tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Coverage {
    /// Every slab of every row table, then of every column table.
    pub slabs: Vec<Slab>,
}

impl Coverage {
    /// Counts the entries of `tables`. Empty when the layout reads neither rows nor columns.
    pub fn of(tables: &TrainTables) -> Self {
        let layout = tables.layout();
        let mut slabs = slabs(layout);
        tables.for_each_written(|index, record| {
            let Some(location) = layout.locate(index) else { return };
            if record.abs_error > 0.0 && is_possible(&location) {
                // Slabs lie in the order of the entries.
                let at = slabs.partition_point(|slab| slab.key() <= key(&location)) - 1;
                slabs[at].classes[location.occupied()].see(&record);
            }
        });
        Self { slabs }
    }

    /// The classes of all slabs that `keep` accepts, added up.
    pub fn sum(&self, keep: impl Fn(&Slab) -> bool) -> [Class; LINE + 1] {
        let mut sum = [Class::default(); LINE + 1];
        for slab in self.slabs.iter().filter(|slab| keep(slab)) {
            for (sum, class) in sum.iter_mut().zip(&slab.classes) {
                sum.add(class);
            }
        }
        sum
    }
}

/// The classes with at least `discs` occupied cells, added up.
pub fn at_least(classes: &[Class; LINE + 1], discs: usize) -> Class {
    let mut sum = Class::default();
    for class in classes.iter().skip(discs) {
        sum.add(class);
    }
    sum
}

type Key = (Family, u64, u64, u64);

const fn key(location: &Location) -> Key {
    (location.family, location.table, location.bucket, location.phase)
}

impl Slab {
    const fn key(&self) -> Key {
        (self.family, self.table, self.bucket, self.phase)
    }
}

/// Whether a line can occur: columns have no gap under a disc.
fn is_possible(location: &Location) -> bool {
    match location.family {
        Family::Rows => true,
        Family::Cols => location.pattern < 10_u64.pow(location.occupied() as u32),
        Family::Win23 | Family::Win32 | Family::Win24 | Family::Win42 => false,
    }
}

/// All slabs, nothing seen yet.
fn slabs(layout: &Layout) -> Vec<Slab> {
    let mut slabs = Vec::new();
    for family in [Family::Rows, Family::Cols] {
        let Some(place) = layout.place(family) else { continue };
        let mut classes = [Class::default(); LINE + 1];
        let mut arrangements = 1;
        for (k, class) in (0..).zip(&mut classes) {
            let contents = 9_u64.pow(k);
            class.patterns =
                if family == Family::Rows { arrangements * contents } else { contents };
            // Binomials of seven: the ways to choose which cells are occupied.
            arrangements = arrangements * (LINE as u64 - u64::from(k)) / (u64::from(k) + 1);
        }
        for table in 0..family.tables() {
            for bucket in 0..layout.buckets() {
                for phase in 0..place.phases {
                    slabs.push(Slab { family, table, bucket, phase, classes });
                }
            }
        }
    }
    slabs
}
