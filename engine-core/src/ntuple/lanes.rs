//! Entries of up to sixteen positions side by side: one vector lane per position, one row per table.
//!
//! Promised: lane `l` holds exactly the entries that [`Layout::features`] lists for its position, and
//! a value summed over the rows has the bits of the sequential sum. Positions of one call may differ
//! in everything, countdown and fill bucket included. Refused: boards that are not canonical; a
//! search and a policy have canonical boards anyway.
//!
//! Columns of sixteen boards are taken apart at once. A code of a pair of cells serves the columns, the
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
    /// Of every plane of the boards, the bytes of the left four columns and of the right three.
    planes: [[Row; 2]; 4],
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
                planes: [[[0; LANES]; 2]; 4],
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

    /// Whose entries these are; `None` before anything was filled in.
    pub(super) const fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// The first entry of each table in order, and every lane's place in it.
    #[inline]
    pub(super) fn entries(&self) -> (&[u64], &[[u32; LANES]]) {
        let active = self.layout.as_ref().map_or(0, Layout::active);
        (&self.first[..active], &self.offsets[..active])
    }

    /// The tables in order: the first entry of each, and every lane's place in it. Lanes behind
    /// [`Lanes::filled`] repeat the last position.
    #[inline]
    pub fn tables(&self) -> impl ExactSizeIterator<Item = (u64, &[u32; LANES])> {
        let (first, offsets) = self.entries();
        first.iter().copied().zip(offsets)
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
        for (rows, plane) in work.planes.iter_mut().zip(board.planes()) {
            rows[0][lane] = *plane as u32;
            rows[1][lane] = (plane >> 32) as u32;
        }
        phase[lane] = u32::from((*moves_remaining).clamp(1, 5)) - 1;
        if layout.is_filled() {
            bucket[lane] = layout.fill_bucket(board) as u32;
        }
    }
    let mut rows = offsets.iter_mut();

    work.split_planes();
    if let Some(slabs) = slabs(layout, Family::Rows, &phase, &bucket) {
        let cells = &work.cells;
        for (r, out) in (0..SIDE).zip(&mut rows) {
            let [a, b, c, d, e, f, g] = cells.each_ref().map(|column| &column[r]);
            let left = join(&join(a, 10, b), 100, &join(c, 10, d));
            let right = join(&join(e, 10, f), 100, g);
            *out = widen(&slabs, &left, 10_000, &right);
        }
    }
    if let Some(slabs) = slabs(layout, Family::Cols, &phase, &bucket) {
        let columns = work.cells.iter().zip(&work.pairs);
        for ((cells, pairs), out) in columns.zip(&mut rows) {
            let low = join(&pairs[5], 100, &pairs[3]);
            let high = join(&pairs[1], 100, &cells[0]);
            *out = widen(&slabs, &low, 10_000, &high);
        }
    }
    if let Some(slabs) = slabs(layout, Family::Win23, &phase, &bucket) {
        for ((triples, pairs), cells) in work.triples.iter_mut().zip(&work.pairs).zip(&work.cells) {
            for (t, triple) in triples.iter_mut().enumerate() {
                *triple = join(&pairs[t + 1], 100, &cells[t]);
            }
        }
        for c in 0..SIDE - 1 {
            let (left, right) = (&work.triples[c], &work.triples[c + 1]);
            for (t, out) in (0..5).zip(&mut rows) {
                *out = widen(&slabs, &left[t], 1_000, &right[t]);
            }
        }
    }
    let (win32, win42) = (
        slabs(layout, Family::Win32, &phase, &bucket),
        slabs(layout, Family::Win42, &phase, &bucket),
    );
    if win32.is_some() || win42.is_some() {
        for (c, squares) in work.squares.iter_mut().enumerate() {
            let (left, right) = (&work.pairs[c], &work.pairs[c + 1]);
            for (t, square) in squares.iter_mut().enumerate() {
                *square = join(&left[t], 100, &right[t]);
            }
        }
    }
    if let Some(slabs) = win32 {
        for c in 0..SIDE - 2 {
            let (left, right) = (&work.squares[c], &work.pairs[c + 2]);
            for (t, out) in (0..6).zip(&mut rows) {
                *out = widen(&slabs, &left[t], 10_000, &right[t]);
            }
        }
    }
    if let Some(slabs) = slabs(layout, Family::Win24, &phase, &bucket) {
        for (quads, pairs) in work.quads.iter_mut().zip(&work.pairs) {
            for (t, quad) in quads.iter_mut().enumerate() {
                *quad = join(&pairs[t + 2], 100, &pairs[t]);
            }
        }
        for c in 0..SIDE - 1 {
            let (left, right) = (&work.quads[c], &work.quads[c + 1]);
            for (t, out) in (0..4).zip(&mut rows) {
                *out = widen(&slabs, &left[t], 10_000, &right[t]);
            }
        }
    }
    if let Some(slabs) = win42 {
        for c in 0..SIDE - 3 {
            let (left, right) = (&work.squares[c], &work.squares[c + 2]);
            for (t, out) in (0..6).zip(&mut rows) {
                *out = widen(&slabs, &left[t], 10_000, &right[t]);
            }
        }
    }
}

/// Where the slab of every lane starts in a table of the family.
#[inline(always)]
fn slabs(layout: &Layout, family: Family, phase: &Row, bucket: &Row) -> Option<Row> {
    let Place { phases, .. } = layout.place(family)?;
    let (patterns, phases) = (family.patterns() as u32, phases as u32);
    let keyed = u32::from(phases != 1);
    let mut slabs = [0; LANES];
    for lane in 0..LANES {
        slabs[lane] = (bucket[lane] * phases + keyed * phase[lane]) * patterns;
    }
    Some(slabs)
}

impl Work {
    /// Planes into cells and pairs of cells.
    #[inline(always)]
    fn split_planes(&mut self) {
        const NIBBLES: u32 = 0x0f0f_0f0f;
        // The left four columns, then the right three; the lower four cells of them, then the upper.
        for (side, above) in [(0, 0), (0, 4), (1, 0), (1, 4)] {
            let [a, b, c, d] = &self.planes;
            let (mut low, mut high) = ([0; LANES], [0; LANES]);
            for lane in 0..LANES {
                let nibbles = |plane: &[Row; 2]| plane[side][lane] >> above & NIBBLES;
                low[lane] = nibbles(a) | nibbles(b) << 4;
                high[lane] = nibbles(c) | nibbles(d) << 4;
            }
            for (byte, cells) in self.cells[4 * side..].iter_mut().take(4).enumerate() {
                // Four cells of four bits, one plane in every nibble.
                let mut matrix = [0; LANES];
                for lane in 0..LANES {
                    let planes = |planes: u32| planes >> (8 * byte) & 0xff;
                    matrix[lane] = (planes(low[lane]) | planes(high[lane]) << 8) as u16;
                }
                // Rows and columns of the matrix change places: one cell in every nibble.
                for code in &mut matrix {
                    let swap = (*code ^ *code >> 3) & 0x0a0a;
                    *code ^= swap ^ swap << 3;
                    let swap = (*code ^ *code >> 6) & 0x00cc;
                    *code ^= swap ^ swap << 6;
                }
                for (n, cell) in cells.iter_mut().rev().skip(above).take(4).enumerate() {
                    *cell = matrix.map(|code| code >> (4 * n) & 15);
                }
            }
        }
        for (cells, pairs) in self.cells.iter().zip(&mut self.pairs) {
            for (t, pair) in pairs.iter_mut().enumerate() {
                *pair = join(&cells[t + 1], 10, &cells[t]);
            }
        }
    }
}

/// `low + factor * high` in every lane; at most 9 999.
///
/// Made as a value: whether an output lies among the inputs is then no question, and the loop is one
/// vector operation each.
#[inline(always)]
fn join(low: &Code, factor: u16, high: &Code) -> Code {
    let mut code = [0; LANES];
    for lane in 0..LANES {
        code[lane] = low[lane].wrapping_add(factor.wrapping_mul(high[lane]));
    }
    code
}

/// `slab + low + factor * high` in every lane.
#[inline(always)]
fn widen(slabs: &Row, low: &Code, factor: u32, high: &Code) -> Row {
    let mut offsets = [0; LANES];
    for lane in 0..LANES {
        let pattern = u32::from(low[lane]).wrapping_add(factor.wrapping_mul(u32::from(high[lane])));
        offsets[lane] = slabs[lane].wrapping_add(pattern);
    }
    offsets
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
