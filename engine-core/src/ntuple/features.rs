//! The entries a position reads: one per table, always distinct, the same for a board and its
//! mirror image because both are read from the smaller of the two.

use super::codec::{line, pair, quad, row_words, triple};
use super::layout::{Family, Fill, Layout, Place};
use crate::drop7::Board;
use crate::drop7::board::{BoardError, SIDE};

/// The largest number of tables of any layout.
pub const MAX_ACTIVE: usize = 122;

/// The entry indices of one position, in table order.
#[derive(Clone)]
pub struct Features {
    indices: [u64; MAX_ACTIVE],
    len: usize,
}

impl Features {
    /// No entry: to be filled by [`Layout::features`].
    pub const fn new() -> Self {
        Self { indices: [0; MAX_ACTIVE], len: 0 }
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
        self.features(&Board::from_packed(*columns), moves_remaining, out);
        Ok(())
    }

    /// [`Layout::features`] of a board that is known to be canonical.
    #[inline]
    pub(crate) fn canonical_features(
        &self,
        board: &Board,
        moves_remaining: u8,
        out: &mut Features,
    ) {
        let phase = u64::from(moves_remaining.clamp(1, 5)) - 1;
        let bucket = self.fill_bucket(board);
        let columns = board.columns();
        let mut writer = Writer { out, at: 0 };
        if let Some(slabs) = self.slabs(Family::Rows, bucket, phase) {
            let rows = row_words(board);
            writer.table_run(slabs, rows.map(line));
        }
        if let Some(slabs) = self.slabs(Family::Cols, bucket, phase) {
            writer.table_run(slabs, columns.map(line));
        }
        if let Some(mut slabs) = self.slabs(Family::Win23, bucket, phase) {
            let column = columns.map(|word| from_top::<5>(word, 3, triple));
            for c in 0..SIDE - 1 {
                let codes =
                    std::array::from_fn::<_, 5, _>(|t| column[c][t] + 1_000 * column[c + 1][t]);
                slabs = writer.table_run(slabs, codes);
            }
        }
        if let Some(mut slabs) = self.slabs(Family::Win32, bucket, phase) {
            let column = columns.map(|word| from_top::<6>(word, 2, pair));
            for c in 0..SIDE - 2 {
                let codes = std::array::from_fn::<_, 6, _>(|t| {
                    column[c][t] + 100 * column[c + 1][t] + 10_000 * column[c + 2][t]
                });
                slabs = writer.table_run(slabs, codes);
            }
        }
        if let Some(mut slabs) = self.slabs(Family::Win24, bucket, phase) {
            let column = columns.map(|word| from_top::<4>(word, 4, quad));
            for c in 0..SIDE - 1 {
                let codes =
                    std::array::from_fn::<_, 4, _>(|t| column[c][t] + 10_000 * column[c + 1][t]);
                slabs = writer.table_run(slabs, codes);
            }
        }
        if let Some(mut slabs) = self.slabs(Family::Win42, bucket, phase) {
            let column = columns.map(|word| from_top::<6>(word, 2, pair));
            for c in 0..SIDE - 3 {
                let codes = std::array::from_fn::<_, 6, _>(|t| {
                    column[c][t]
                        + 100 * column[c + 1][t]
                        + 10_000 * column[c + 2][t]
                        + 1_000_000 * column[c + 3][t]
                });
                slabs = writer.table_run(slabs, codes);
            }
        }
        writer.out.len = writer.at;
    }

    /// The fill bucket of a board, 0..=4; 0 when the layout is not split by fill.
    #[inline]
    pub fn fill_bucket(&self, board: &Board) -> u64 {
        match self.fill() {
            Fill::None => 0,
            Fill::Occ5 => match board.columns().iter().map(|&word| discs(word)).sum() {
                0..=13 => 0,
                14..=20 => 1,
                21..=27 => 2,
                28..=34 => 3,
                _ => 4,
            },
            Fill::Hgt5 => {
                let tallest = board.columns().iter().fold(3, |most, &word| most.max(discs(word)));
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
    /// Writes one entry for each of the next tables.
    #[inline]
    fn table_run<const N: usize>(&mut self, mut slabs: Slabs, codes: [u32; N]) -> Slabs {
        for (slot, code) in self.out.indices[self.at..].iter_mut().zip(codes) {
            *slot = slabs.next + u64::from(code);
            slabs.next += slabs.stride;
        }
        self.at += N;
        slabs
    }
}

/// Occupied cells of a column word, packed or not.
#[inline]
const fn discs(word: u32) -> u32 {
    ((word | (word >> 1) | (word >> 2) | (word >> 3)) & 0x0111_1111).count_ones()
}

/// Codes of `cells` adjacent cells of one column, for each top row from row 0 on.
#[inline]
fn from_top<const N: usize>(word: u32, cells: usize, code: impl Fn(u32) -> u32) -> [u32; N] {
    std::array::from_fn(|t| code(word >> (4 * (SIDE - cells - t))))
}
