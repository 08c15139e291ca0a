//! Entries of up to sixteen positions side by side: one vector lane per position, one row per table.
//!
//! Promised: lane `l` holds exactly the entries that [`Layout::features`] lists for its position, and
//! a value summed over the rows has the bits of the sequential sum. Positions of one call may differ
//! in everything, countdown and fill bucket included. Refused: boards that are not canonical; a
//! search and a policy have canonical boards anyway.
//!
//! Sixteen columns are taken apart at once. A code of a pair of cells serves the columns, the
//! triples, the squares and the windows that contain it, so that one entry costs about ten vector
//! instructions for sixteen positions. Codes of up to four cells fit 16 bits: one 256-bit vector.

use super::features::MAX_ACTIVE;
use super::layout::{Family, Layout, Place};
use super::{Features, Weights};
use crate::drop7::Board;
use crate::drop7::board::SIDE;
use crate::instructions::{InstructionSet, per_instruction_set};

/// Positions side by side.
pub const LANES: usize = 16;

/// A number below 10 000 in every lane.
type Code = [u16; LANES];
/// A number in every lane.
type Row = [u32; LANES];

/// The entries of up to [`LANES`] positions, and the memory to work them out: to be reused.
///
/// The entry of lane `l` in table `t` is `first[t] + offsets[t][l]`. An offset is the place inside
/// the table, bucket and phase included; it fits 32 bits in every layout, an entry does not.
#[derive(Clone)]
#[repr(align(64))]
pub struct Lanes {
    offsets: [Row; MAX_ACTIVE],
    first: [u64; MAX_ACTIVE],
    /// Whose tables `first` holds.
    layout: Option<Layout>,
    filled: usize,
    work: Work,
}

/// Base-10 codes of cells of one column, or of two neighbours, upper cell and left column first.
#[derive(Clone)]
struct Work {
    columns: [Row; SIDE],
    cells: [[Code; SIDE]; SIDE],
    pairs: [[Code; SIDE - 1]; SIDE],
    triples: [[Code; SIDE - 2]; SIDE],
    quads: [[Code; SIDE - 3]; SIDE],
    /// The pair of a column and, a hundred times, that of the next one.
    squares: [[Code; SIDE - 1]; SIDE - 1],
}

impl Lanes {
    /// No position: to be filled by [`Layout::lanes`].
    pub const fn new() -> Self {
        Self {
            offsets: [[0; LANES]; MAX_ACTIVE],
            first: [0; MAX_ACTIVE],
            layout: None,
            filled: 0,
            work: Work {
                columns: [[0; LANES]; SIDE],
                cells: [[[0; LANES]; SIDE]; SIDE],
                pairs: [[[0; LANES]; SIDE - 1]; SIDE],
                triples: [[[0; LANES]; SIDE - 2]; SIDE],
                quads: [[[0; LANES]; SIDE - 3]; SIDE],
                squares: [[[0; LANES]; SIDE - 1]; SIDE - 1],
            },
        }
    }

    /// Lanes that hold a position.
    pub const fn filled(&self) -> usize {
        self.filled
    }

    /// The tables in order: the first entry of each, and every lane's place in it. Lanes behind
    /// [`Lanes::filled`] repeat the last position.
    #[inline]
    pub fn tables(&self) -> impl ExactSizeIterator<Item = (u64, &[u32; LANES])> {
        let active = self.layout.as_ref().map_or(0, Layout::active);
        self.first[..active].iter().copied().zip(&self.offsets[..active])
    }

    /// Writes the entries of one lane into `out`.
    ///
    /// # Panics
    /// When `lane` is not below [`LANES`].
    pub fn features(&self, lane: usize, out: &mut Features) {
        out.replace(self.tables().map(|(first, offsets)| first + u64::from(offsets[lane])));
    }

    /// Makes this the lanes of `layout`. Costs nothing when they are already.
    fn belong_to(&mut self, layout: &Layout) {
        if self.layout.as_ref() == Some(layout) {
            return;
        }
        let families = layout.families().filter_map(|family| Some((family, layout.place(family)?)));
        let tables = families.flat_map(|(family, Place { first, stride, .. })| {
            (0..family.tables()).map(move |table| first + table * stride)
        });
        self.first.iter_mut().zip(tables).for_each(|(slot, first)| *slot = first);
        self.layout = Some(*layout);
    }
}

impl Default for Lanes {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Lanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lanes")
            .field("layout", &self.layout)
            .field("filled", &self.filled)
            .finish_non_exhaustive()
    }
}

impl Layout {
    /// Writes the entries of `positions` into `lanes`: canonical boards, each with the drops left
    /// until the rise, which are clamped to 1..=5.
    ///
    /// # Panics
    /// When there are more than [`LANES`] positions.
    pub fn lanes(&self, positions: &[(Board, u8)], lanes: &mut Lanes) {
        self.lanes_on(InstructionSet::active(), positions, lanes);
    }

    /// [`Layout::lanes`] with the instructions of `set`.
    ///
    /// # Panics
    /// As [`Layout::lanes`].
    pub fn lanes_on(&self, set: InstructionSet, positions: &[(Board, u8)], lanes: &mut Lanes) {
        assert!(positions.len() <= LANES, "{} positions do not fit", positions.len());
        lanes.belong_to(self);
        lanes.filled = positions.len();
        if let Some(last) = positions.last() {
            fill_on(set, self, positions, *last, lanes);
        }
    }
}

per_instruction_set! {
    /// The entries of `positions`, and those of `last` in the lanes behind them.
    fn fill_on(
        layout: &Layout,
        positions: &[(Board, u8)],
        last: (Board, u8),
        lanes: &mut Lanes,
    ) = fill;
}

#[inline(always)]
fn fill(layout: &Layout, positions: &[(Board, u8)], last: (Board, u8), lanes: &mut Lanes) {
    let Lanes { offsets, work, .. } = lanes;
    let mut phase = [0; LANES];
    let mut bucket = [0; LANES];
    for lane in 0..LANES {
        let (board, moves_remaining) = positions.get(lane).unwrap_or(&last);
        for (row, word) in work.columns.iter_mut().zip(board.columns()) {
            row[lane] = word;
        }
        phase[lane] = u32::from(moves_remaining.clamp(&1, &5) - 1);
        if layout.is_filled() {
            bucket[lane] = layout.fill_bucket(board) as u32;
        }
    }
    // Where the slab of every lane starts in a table of the family.
    let slabs = |family: Family| -> Option<Row> {
        let Place { phases, .. } = layout.place(family)?;
        let keyed = u32::from(phases != 1);
        let mut slabs = [0; LANES];
        for lane in 0..LANES {
            let slab = bucket[lane] * phases as u32 + keyed * phase[lane];
            slabs[lane] = slab * family.patterns() as u32;
        }
        Some(slabs)
    };
    let mut rows = offsets.iter_mut();

    work.split_columns();
    if let Some(slabs) = slabs(Family::Rows) {
        let cells = &work.cells;
        for (r, out) in (0..SIDE).zip(&mut rows) {
            let (mut left, mut right) = ([0; LANES], [0; LANES]);
            let (mut even, mut odd) = ([0; LANES], [0; LANES]);
            join(&cells[0][r], 10, &cells[1][r], &mut even);
            join(&cells[2][r], 10, &cells[3][r], &mut odd);
            join(&even, 100, &odd, &mut left);
            join(&cells[4][r], 10, &cells[5][r], &mut even);
            join(&even, 100, &cells[6][r], &mut right);
            widen(&slabs, &left, 10_000, &right, out);
        }
    }
    if let Some(slabs) = slabs(Family::Cols) {
        let columns = work.cells.iter().zip(&work.pairs);
        for ((cells, pairs), out) in columns.zip(&mut rows) {
            let (mut low, mut high) = ([0; LANES], [0; LANES]);
            join(&pairs[5], 100, &pairs[3], &mut low);
            join(&pairs[1], 100, &cells[0], &mut high);
            widen(&slabs, &low, 10_000, &high, out);
        }
    }
    if let Some(slabs) = slabs(Family::Win23) {
        for ((triples, pairs), cells) in work.triples.iter_mut().zip(&work.pairs).zip(&work.cells) {
            for (t, triple) in triples.iter_mut().enumerate() {
                join(&pairs[t + 1], 100, &cells[t], triple);
            }
        }
        for c in 0..SIDE - 1 {
            let (left, right) = (&work.triples[c], &work.triples[c + 1]);
            for (t, out) in (0..5).zip(&mut rows) {
                widen(&slabs, &left[t], 1_000, &right[t], out);
            }
        }
    }
    let (win32, win42) = (slabs(Family::Win32), slabs(Family::Win42));
    if win32.is_some() || win42.is_some() {
        for (c, squares) in work.squares.iter_mut().enumerate() {
            let (left, right) = (&work.pairs[c], &work.pairs[c + 1]);
            for (t, square) in squares.iter_mut().enumerate() {
                join(&left[t], 100, &right[t], square);
            }
        }
    }
    if let Some(slabs) = win32 {
        for c in 0..SIDE - 2 {
            let (left, right) = (&work.squares[c], &work.pairs[c + 2]);
            for (t, out) in (0..6).zip(&mut rows) {
                widen(&slabs, &left[t], 10_000, &right[t], out);
            }
        }
    }
    if let Some(slabs) = slabs(Family::Win24) {
        for (quads, pairs) in work.quads.iter_mut().zip(&work.pairs) {
            for (t, quad) in quads.iter_mut().enumerate() {
                join(&pairs[t + 2], 100, &pairs[t], quad);
            }
        }
        for c in 0..SIDE - 1 {
            let (left, right) = (&work.quads[c], &work.quads[c + 1]);
            for (t, out) in (0..4).zip(&mut rows) {
                widen(&slabs, &left[t], 10_000, &right[t], out);
            }
        }
    }
    if let Some(slabs) = win42 {
        for c in 0..SIDE - 3 {
            let (left, right) = (&work.squares[c], &work.squares[c + 2]);
            for (t, out) in (0..6).zip(&mut rows) {
                widen(&slabs, &left[t], 10_000, &right[t], out);
            }
        }
    }
}

impl Work {
    /// Columns into cells and pairs of cells.
    #[inline(always)]
    fn split_columns(&mut self) {
        for (words, cells) in self.columns.iter().zip(&mut self.cells) {
            for (r, cells) in cells.iter_mut().enumerate() {
                for (cell, word) in cells.iter_mut().zip(words) {
                    *cell = ((word >> (4 * (SIDE - 1 - r))) & 15) as u16;
                }
            }
        }
        for (cells, pairs) in self.cells.iter().zip(&mut self.pairs) {
            for (t, pair) in pairs.iter_mut().enumerate() {
                join(&cells[t + 1], 10, &cells[t], pair);
            }
        }
    }
}

/// `low + factor * high` in every lane; at most 9 999.
#[inline(always)]
fn join(low: &Code, factor: u16, high: &Code, out: &mut Code) {
    for lane in 0..LANES {
        out[lane] = low[lane].wrapping_add(factor.wrapping_mul(high[lane]));
    }
}

/// `slab + low + factor * high` in every lane.
#[inline(always)]
fn widen(slabs: &Row, low: &Code, factor: u32, high: &Code, out: &mut Row) {
    for lane in 0..LANES {
        let pattern = u32::from(low[lane]).wrapping_add(factor.wrapping_mul(u32::from(high[lane])));
        out[lane] = slabs[lane].wrapping_add(pattern);
    }
}

/// Values of all positions, [`LANES`] at a time: the body of [`Weights::values`].
pub(super) fn values<W: Weights + ?Sized>(
    weights: &W,
    lanes: &mut Lanes,
    positions: &[(Board, u8)],
    out: &mut Vec<f32>,
) {
    out.clear();
    let mut sums = [0.0; LANES];
    for positions in positions.chunks(LANES) {
        weights.layout().lanes(positions, lanes);
        weights.lane_values(lanes, &mut sums);
        out.extend_from_slice(&sums[..positions.len()]);
    }
}
