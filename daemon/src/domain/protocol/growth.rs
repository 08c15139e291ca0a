//! How much memory training takes.
//!
//! Tables are kept in lines of 16 entries that exist once one of them has learnt: 192 bytes for each
//! line that exists, and 4 bytes for each line there is, which say where it is. A frozen copy has the
//! same lines at 64 bytes. What share of the lines exists was measured for whole layouts, one game at
//! a time, after 7,812 x 2^k moves: to 500 thousand moves for tables that are not split and to 250
//! thousand for windows of eight cells, and with two threads at a million moves. The points for 8, 16
//! and 32 million moves are fitted to readings of the widest layout (2.8, 3.6 and 4.5 GB of lines); the
//! others are filled in smoothly. Between the points the share is interpolated, beyond the last it
//! grows by the last step per doubling. A table that is split by phase spreads its moves thinner, as
//! if it had seen 1/2.25 of them; one that is split by fill, 1/6. Fifteen percent of the lines and a
//! fixed amount for the program are added. Nothing exceeds all lines, nor one line per entry that a
//! move can touch. A warm start is taken at the bound, because what its source had touched is not
//! known here.

use engine_core::ntuple::Layout;
use engine_core::ntuple::layout::Family;

/// Entries of a line.
const LINE: u64 = 16;
/// Bytes that say where a line is.
const PLACE: u64 = 4;
/// Bytes of a line that is trained: weights and two error sums.
const TRAINABLE_LINE: u64 = 12 * LINE;
/// Bytes of a line of a frozen table.
const FROZEN_LINE: u64 = 4 * LINE;
/// The program without its tables: 96 MiB.
pub(super) const PROGRAM: u64 = 96 << 20;
/// Moves at the first measured point.
const FIRST_POINT: f64 = 7_812.5;
/// Share of lines touched by rows after 7,812 x 2^k moves.
const ROWS: [f64; 13] = [
    0.00163, 0.00287, 0.00497, 0.00846, 0.0144, 0.0229, 0.0341, 0.0475, 0.0625, 0.079, 0.096,
    0.114, 0.132,
];
/// The same for columns.
const COLS: [f64; 13] = [
    0.00086, 0.00131, 0.00199, 0.00297, 0.00435, 0.00617, 0.00842, 0.011, 0.0139, 0.017, 0.0202,
    0.0235, 0.027,
];
/// The same for windows of six cells.
const WINDOWS: [f64; 13] = [
    0.0112, 0.018, 0.0285, 0.0441, 0.0659, 0.0925, 0.1241, 0.158, 0.192, 0.226, 0.258, 0.288, 0.315,
];
/// The same for windows of eight cells.
const WIDE: [f64; 13] = [
    0.000218, 0.000372, 0.000629, 0.00106, 0.00181, 0.00302, 0.0049, 0.0079, 0.0124, 0.019, 0.0283,
    0.0384, 0.0505,
];

/// Most bytes of tables while they are trained.
pub(super) const fn trainable_bound(layout: &Layout) -> u64 {
    lines(layout) * (PLACE + TRAINABLE_LINE)
}

/// Most bytes of frozen tables.
pub(super) const fn frozen_bound(layout: &Layout) -> u64 {
    lines(layout) * (PLACE + FROZEN_LINE)
}

const fn lines(layout: &Layout) -> u64 {
    layout.entries() / LINE
}

/// Tables after a number of moves.
pub(super) struct Trained {
    pub(super) layout: Layout,
    pub(super) moves: u64,
    /// Resident bytes of the records.
    pub(super) records: u64,
    /// Resident bytes of a frozen copy, which has the lines that the records have.
    pub(super) frozen: u64,
}

impl Trained {
    /// After `moves` moves from a fresh start, or from the tables of an earlier run when `warm`.
    pub(super) fn new(layout: Layout, moves: u64, warm: bool) -> Self {
        let all = lines(&layout);
        let touchable = moves.saturating_mul(layout.active() as u64);
        let touched =
            if warm { all } else { touched_lines(&layout, moves).min(all).min(touchable) };
        let records = all * PLACE + touched * TRAINABLE_LINE;
        let frozen = all * PLACE + touched * FROZEN_LINE;
        Self { layout, moves, records, frozen }
    }

    /// Records, a frozen copy of the best point, and the program.
    pub(super) fn while_training(&self) -> u64 {
        self.records + self.frozen + PROGRAM
    }

    /// The same if every line were touched.
    pub(super) fn bound(&self) -> u64 {
        trainable_bound(&self.layout) + frozen_bound(&self.layout) + PROGRAM
    }
}

/// Expected lines of a layout that exist after `moves` moves from a fresh start.
fn touched_lines(layout: &Layout, moves: u64) -> u64 {
    layout
        .families()
        .map(|family| {
            let place = layout.place(family);
            let lines = place.map_or(0, |place| family.tables() * place.stride / LINE);
            let phased = place.is_some_and(|place| place.phases > 1);
            let thinner = if phased { 2.25 } else { 1.0 };
            let thinner = if layout.is_filled() { 6.0 * thinner } else { thinner };
            let share = share(family, moves as f64 / thinner);
            (1.15 * share * lines as f64) as u64
        })
        .sum()
}

/// Share of the lines of a family that `moves` moves touch, 0..=1.
fn share(family: Family, moves: f64) -> f64 {
    let points = match family {
        Family::Rows => ROWS,
        Family::Cols => COLS,
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

    fn measured(layout: &str, moves: u64, lines: u64) {
        let layout: Layout = layout.parse().unwrap();
        let ratio = touched_lines(&layout, moves) as f64 / lines as f64;
        assert!((0.98..1.6).contains(&ratio), "{layout} {moves}: {ratio}");
    }

    #[test]
    fn the_growth_model_covers_what_was_measured() {
        measured("rows,cols,win23,win32,phase=none", 62_503, 215_455);
        measured("rows,cols,win23,win32,phase=none", 499_996, 651_136);
        measured("rows,cols,win23,win32,phase=all", 1_000_052, 2_958_271);
        measured("rows,cols,win23,win32,phase=all,fill=hgt5", 125_018, 1_273_592);
        let wide = "rows,cols,win23,win32,win24,win42,phase=all";
        measured(wide, 15_638, 340_928);
        measured(wide, 62_505, 899_199);
        measured(wide, 250_016, 2_305_653);
        measured(wide, 1_000_080, 5_325_082);
        measured(wide, 8_000_000, 14_600_000);
        measured(wide, 16_000_000, 18_750_000);
        measured(wide, 32_000_000, 23_400_000);
    }

    #[test]
    fn memory_grows_with_moves_and_never_past_the_bound() {
        let layout: Layout = "rows,cols,win23,win32,win24,win42,phase=all".parse().unwrap();
        let mut last = 0;
        for doubling in 0..64 {
            let records = Trained::new(layout, 1 << doubling, false).records;
            assert!(records >= last && records <= trainable_bound(&layout));
            last = records;
        }
        assert!(Trained::new(layout, 1, true).records == trainable_bound(&layout));
    }
}
