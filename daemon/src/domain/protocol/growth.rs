//! How much memory training takes.
//!
//! Tables cost 12 bytes per entry when every page of them is touched, but a page is only there once
//! something on it has learnt. What share of the pages that is was measured (Linux, 4 KiB pages, one
//! game at a time) for whole lines, six-cell and eight-cell windows from 31 thousand to 2 million moves,
//! and fitted at 8, 16 and 32 million moves to readings of whole layouts; the other points of `LINES`,
//! `WINDOWS` and `WIDE` are filled in smoothly. Between the points the share is interpolated, beyond
//! the last it grows by the last step per doubling. A table that is split by phase spreads its moves
//! thinner, as if it had seen 1/2.25 of them; one that is split by fill, 1/8. Fifteen percent and a
//! fixed amount for the program are added. Nothing exceeds the 12 bytes, nor one page per entry that
//! a move can touch. A warm start is taken at the bound, because what its source had touched is not
//! known here.

use engine_core::ntuple::Layout;
use engine_core::ntuple::layout::Family;

/// Bytes per entry while it is trained: weight and two accumulators.
pub(super) const TRAINABLE: u64 = 12;
/// Bytes per entry of a frozen table.
pub(super) const FROZEN: u64 = 4;
/// The program without its tables: 96 MiB.
pub(super) const PROGRAM: u64 = 96 << 20;
/// Bytes of a page.
const PAGE: u64 = 4096;
/// Moves at the first measured point.
const FIRST_POINT: f64 = 7_812.5;
/// Share of pages touched by rows and columns after 7,812 × 2^k moves.
const LINES: [f64; 13] =
    [0.018, 0.0255, 0.036, 0.051, 0.072, 0.1, 0.134, 0.172, 0.213, 0.252, 0.295, 0.34, 0.385];
/// The same for windows of six cells.
const WINDOWS: [f64; 13] =
    [0.11, 0.145, 0.19, 0.25, 0.315, 0.385, 0.464, 0.526, 0.58, 0.63, 0.672, 0.7, 0.73];
/// The same for windows of eight cells.
const WIDE: [f64; 13] =
    [0.003, 0.0046, 0.007, 0.0108, 0.0163, 0.0239, 0.0338, 0.046, 0.062, 0.09, 0.135, 0.165, 0.193];

/// Tables after a number of moves.
pub(super) struct Trained {
    pub(super) layout: Layout,
    pub(super) moves: u64,
    /// Resident bytes of the records.
    pub(super) records: u64,
    /// Resident bytes of a frozen copy: never more pages than the records have.
    pub(super) frozen: u64,
}

impl Trained {
    /// After `moves` moves from a fresh start, or from the tables of an earlier run when `warm`.
    pub(super) fn new(layout: Layout, moves: u64, warm: bool) -> Self {
        let bound = TRAINABLE * layout.entries();
        let touched = moves.saturating_mul(layout.active() as u64).saturating_mul(PAGE);
        let records = if warm { bound } else { resident(&layout, moves).min(bound).min(touched) };
        Self { layout, moves, records, frozen: records.min(FROZEN * layout.entries()) }
    }

    /// Records, a frozen copy of the best point, and the program.
    pub(super) fn while_training(&self) -> u64 {
        self.records + self.frozen + PROGRAM
    }

    /// The same if every page were touched.
    pub(super) fn bound(&self) -> u64 {
        (TRAINABLE + FROZEN) * self.layout.entries() + PROGRAM
    }
}

/// Expected resident bytes of the records of a layout after `moves` moves from a fresh start.
fn resident(layout: &Layout, moves: u64) -> u64 {
    layout
        .families()
        .map(|family| {
            let place = layout.place(family);
            let entries = place.map_or(0, |place| family.tables() * place.stride);
            let phased = place.is_some_and(|place| place.phases > 1);
            let thinner = if phased { 2.25 } else { 1.0 };
            let thinner = if layout.is_filled() { 8.0 * thinner } else { thinner };
            let share = share(family, moves as f64 / thinner);
            (1.15 * share * (TRAINABLE * entries) as f64) as u64
        })
        .sum()
}

/// Share of the pages of a family that `moves` moves touch, 0..=1.
fn share(family: Family, moves: f64) -> f64 {
    let points = match family {
        Family::Rows | Family::Cols => LINES,
        Family::Win23 | Family::Win32 => WINDOWS,
        Family::Win24 | Family::Win42 => WIDE,
    };
    let last = points.len() - 1;
    let step = points[last] - points[last - 1];
    let at = |point: usize| {
        if point <= last { points[point] } else { points[last] + step * (point - last) as f64 }
    };
    let mut reached = FIRST_POINT;
    let mut point = 0;
    while moves >= 2.0 * reached && at(point) < 1.0 {
        reached *= 2.0;
        point += 1;
    }
    let along = ((moves - reached) / reached).clamp(0.0, 1.0);
    (at(point) + along * (at(point + 1) - at(point))).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(layout: &str, moves: u64, mebibytes: f64) {
        let layout: Layout = layout.parse().unwrap();
        let ratio = resident(&layout, moves) as f64 / (mebibytes * f64::from(1 << 20));
        assert!((0.98..1.6).contains(&ratio), "{layout} {moves}: {ratio}");
    }

    #[test]
    fn the_growth_model_covers_what_was_measured() {
        measured("rows,cols,phase=none", 62_524, 81.0);
        measured("rows,cols,phase=none", 1_000_031, 276.0);
        measured("win23,win32,phase=none", 1_000_010, 361.0);
        measured("rows,cols,win23,win32,phase=all", 62_513, 860.0);
        measured("rows,cols,win23,win32,phase=all", 1_000_025, 2_592.0);
        measured("rows,cols,win23,win32,phase=all", 8_000_000, 4_291.0);
        measured("rows,cols,win23,win32,phase=all", 32_000_000, 5_150.0);
        measured("win24,win42,phase=none", 500_027, 1_857.0);
        measured("rows,cols,win23,win32,win24,win42,phase=all", 32_000_000, 15_736.0);
        measured("rows,cols,phase=none,fill=occ5", 500_007, 361.0);
        measured("rows,cols,win23,win32,phase=all,fill=hgt5", 250_027, 2_849.0);
    }

    #[test]
    fn memory_grows_with_moves_and_never_past_the_bound() {
        let layout: Layout = "rows,cols,win23,win32,win24,win42,phase=all".parse().unwrap();
        let mut last = 0;
        for doubling in 0..50 {
            let records = Trained::new(layout, 1 << doubling, false).records;
            assert!(records >= last && records <= TRAINABLE * layout.entries());
            last = records;
        }
        assert_eq!(last, TRAINABLE * layout.entries());
    }
}
