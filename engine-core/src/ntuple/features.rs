//! The entries a position reads: one per table, always distinct, the same for a board and its
//! mirror image because both are read from the smaller of the two.

use super::layout::{Family, Fill, Layout, Place};
use crate::drop7::Board;
use crate::drop7::board::{BoardError, SIDE};

/// The largest number of tables of any layout.
pub const MAX_ACTIVE: usize = 122;

/// The entry indices of one position, in table order.
#[derive(Clone)]
pub struct Features {
    /// With room for the lanes that are stored behind the last table.
    indices: [u64; MAX_ACTIVE + LANES],
    len: usize,
}

impl Features {
    /// No entry: to be filled by [`Layout::features`].
    pub const fn new() -> Self {
        Self { indices: [0; MAX_ACTIVE + LANES], len: 0 }
    }

    /// The indices, rows first.
    #[inline]
    pub fn as_slice(&self) -> &[u64] {
        &self.indices[..self.len]
    }
}

impl Default for Features {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Features {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Features {}

impl std::fmt::Debug for Features {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

impl Layout {
    /// Writes the entries of `board` with `moves_remaining` drops left until the rise into `out`.
    /// The board need not be canonical; the count is clamped to 1..=5 (a finished game carries 0).
    #[inline]
    pub fn features(&self, board: &Board, moves_remaining: u8, out: &mut Features) {
        self.canonical_features(&board.canonical().0, moves_remaining, out);
    }

    /// [`Layout::features`] for any seven column words, gravity-packed or not: patterns are defined
    /// for every arrangement of cells.
    ///
    /// # Errors
    /// [`BoardError::Cell`] when a word holds anything but seven cells 0..=9; `out` is unchanged.
    pub fn features_of_cells(
        &self,
        columns: &[u32; SIDE],
        moves_remaining: u8,
        out: &mut Features,
    ) -> Result<(), BoardError> {
        for (column, &word) in columns.iter().enumerate() {
            if word >> (4 * SIDE) != 0 || (0..SIDE).any(|n| (word >> (4 * n)) & 15 > 9) {
                return Err(BoardError::Cell { column, word });
            }
        }
        // Nothing below reads a height, so the packing that a `Board` promises is not needed.
        self.features(&Board::from_cells(*columns), moves_remaining, out);
        Ok(())
    }

    /// [`Layout::features`] of a board that is known to be canonical.
    ///
    /// All placements of a family in one column are lanes of one vector, top row first, so that a
    /// family takes a few multiplications by powers of ten per column.
    #[inline]
    pub(crate) fn canonical_features(
        &self,
        board: &Board,
        moves_remaining: u8,
        out: &mut Features,
    ) {
        let phase = u64::from(moves_remaining.clamp(1, 5)) - 1;
        let bucket = self.fill_bucket(board);
        let cells = board.columns().map(from_the_top);
        // A cell and the one below it.
        let pairs = cells.map(|column| 10 * column + (column >> 8));
        let mut writer = Writer { out, at: 0 };
        if let Some(slabs) = self.slabs(Family::Rows, bucket, phase) {
            let [c0, c1, c2, c3, c4, c5, c6] = cells;
            let left = join(lanes(c0 + 10 * c1), 100, lanes(c2 + 10 * c3));
            let right = join(lanes(c4 + 10 * c5), 100, lanes(c6));
            writer.tables::<7>(slabs, widen(left, 10_000, right));
        }
        if let Some(slabs) = self.slabs(Family::Cols, bucket, phase) {
            let mut codes = [0; LANES];
            for ((code, cells), pairs) in codes.iter_mut().zip(cells).zip(pairs) {
                let digit = |column: u64, row: u64| (column >> (8 * row)) as u32 & 0xff;
                *code = 100_000 * digit(pairs, 0)
                    + 1_000 * digit(pairs, 2)
                    + 10 * digit(pairs, 4)
                    + digit(cells, 6);
            }
            writer.tables::<7>(slabs, codes);
        }
        if let Some(mut slabs) = self.slabs(Family::Win23, bucket, phase) {
            let triples: [_; SIDE] =
                std::array::from_fn(|c| join(lanes(pairs[c] >> 8), 100, lanes(cells[c])));
            for c in 0..SIDE - 1 {
                slabs = writer.tables::<5>(slabs, widen(triples[c], 1_000, triples[c + 1]));
            }
        }
        if self.place(Family::Win32).is_none() && self.place(Family::Win42).is_none() {
            // Nothing below reads two rows of two columns but the tall windows.
            if let Some(slabs) = self.slabs(Family::Win24, bucket, phase) {
                writer.tall_windows(slabs, &pairs);
            }
            writer.out.len = writer.at;
            return;
        }
        // The pair of column c and, a hundred times, that of column c + 1.
        let squares: [_; SIDE - 1] =
            std::array::from_fn(|c| join(lanes(pairs[c]), 100, lanes(pairs[c + 1])));
        if let Some(mut slabs) = self.slabs(Family::Win32, bucket, phase) {
            for c in 0..SIDE - 2 {
                let codes = widen(squares[c], 10_000, lanes(pairs[c + 2]));
                slabs = writer.tables::<6>(slabs, codes);
            }
        }
        if let Some(slabs) = self.slabs(Family::Win24, bucket, phase) {
            writer.tall_windows(slabs, &pairs);
        }
        if let Some(mut slabs) = self.slabs(Family::Win42, bucket, phase) {
            for c in 0..SIDE - 3 {
                slabs = writer.tables::<6>(slabs, widen(squares[c], 10_000, squares[c + 2]));
            }
        }
        writer.out.len = writer.at;
    }

    /// The fill bucket of a board, 0..=4; 0 when the layout is not split by fill.
    #[inline]
    pub fn fill_bucket(&self, board: &Board) -> u64 {
        match self.fill() {
            Fill::None => 0,
            Fill::Occ5 => match board.columns().into_iter().map(discs).sum() {
                0..=13 => 0,
                14..=20 => 1,
                21..=27 => 2,
                28..=34 => 3,
                _ => 4,
            },
            Fill::Hgt5 => {
                let tallest =
                    board.columns().into_iter().fold(3, |most, word| most.max(discs(word)));
                u64::from(tallest) - 3
            }
        }
    }

    /// Where the slabs of a family start for one bucket and phase.
    #[inline]
    fn slabs(&self, family: Family, bucket: u64, phase: u64) -> Option<Slabs> {
        let Place { first, stride, phases } = self.place(family)?;
        let phase = if phases == 1 { 0 } else { phase };
        let slab = (bucket * phases + phase) * family.patterns();
        Some(Slabs { next: first + slab, stride })
    }
}

/// The first pattern of the next table's slab, and the distance from table to table.
#[derive(Clone, Copy)]
struct Slabs {
    next: u64,
    stride: u64,
}

struct Writer<'a> {
    out: &'a mut Features,
    at: usize,
}

impl Writer<'_> {
    /// Writes the entries of the next `N` tables. All lanes are stored; the next run, or the length
    /// of the list, takes back those behind the `N`-th.
    #[inline]
    fn tables<const N: usize>(&mut self, slabs: Slabs, codes: [u32; LANES]) -> Slabs {
        if let Some(slots) = self.out.indices[self.at..].first_chunk_mut::<LANES>() {
            let mut first = slabs.next;
            for (slot, code) in slots.iter_mut().zip(codes) {
                *slot = first + u64::from(code);
                first += slabs.stride;
            }
        }
        self.at += N;
        Slabs { next: slabs.next + N as u64 * slabs.stride, ..slabs }
    }

    /// The windows 2 wide and 4 tall.
    #[inline]
    fn tall_windows(&mut self, mut slabs: Slabs, pairs: &[u64; SIDE]) {
        let quads = pairs.map(|column| join(lanes(column >> 16), 100, lanes(column)));
        for c in 0..SIDE - 1 {
            slabs = self.tables::<4>(slabs, widen(quads[c], 10_000, quads[c + 1]));
        }
    }
}

/// Rows of a column, and one lane to spare.
const LANES: usize = 8;

/// The cells of a column as bytes, top row in the lowest.
#[inline]
const fn from_the_top(word: u32) -> u64 {
    let mut cells = word as u64;
    cells = (cells | (cells << 16)) & 0x0000_ffff_0000_ffff;
    cells = (cells | (cells << 8)) & 0x00ff_00ff_00ff_00ff;
    cells = (cells | (cells << 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    (cells << 8).swap_bytes()
}

#[inline]
fn lanes(bytes: u64) -> [u16; LANES] {
    bytes.to_le_bytes().map(u16::from)
}

/// `low + factor * high` in every lane; at most 9 999.
#[inline]
fn join(low: [u16; LANES], factor: u16, high: [u16; LANES]) -> [u16; LANES] {
    std::array::from_fn(|lane| low[lane] + factor * high[lane])
}

/// `low + factor * high` in every lane; at most 99 999 999.
#[inline]
fn widen(low: [u16; LANES], factor: u16, high: [u16; LANES]) -> [u32; LANES] {
    std::array::from_fn(|lane| u32::from(low[lane]) + u32::from(factor) * u32::from(high[lane]))
}

/// Occupied cells of a column word, packed or not.
#[inline]
const fn discs(word: u32) -> u32 {
    ((word | (word >> 1) | (word >> 2) | (word >> 3)) & 0x0111_1111).count_ones()
}
