//! The entries a position reads: one per table, always distinct, the same for a board and its
//! mirror image because both are read from the smaller of the two.

use super::codec;
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

    /// Replaces the indices by `indices`; those beyond [`MAX_ACTIVE`] are dropped.
    #[inline]
    pub(super) fn replace(&mut self, indices: impl Iterator<Item = u64>) {
        self.len = 0;
        for (slot, index) in self.indices.iter_mut().zip(indices) {
            *slot = index;
            self.len += 1;
        }
    }

    #[inline]
    fn push(&mut self, index: u64) {
        self.indices[self.len] = index;
        self.len += 1;
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

    /// [`Layout::features`] of a board that is known to be canonical: the definition, one table after
    /// the other. Whoever has many positions asks [`Layout::lanes`].
    fn canonical_features(&self, board: &Board, moves_remaining: u8, out: &mut Features) {
        let phase = u64::from(moves_remaining.clamp(1, 5)) - 1;
        let bucket = self.fill_bucket(board);
        let columns = board.columns();
        let rows = codec::row_words(board);
        // Cells of one column whose lowest lies `above` the bottom.
        let pair = |column: usize, above: usize| codec::pair(columns[column] >> (4 * above));
        let triple = |column: usize, above: usize| codec::triple(columns[column] >> (4 * above));
        let quad = |column: usize, above: usize| codec::quad(columns[column] >> (4 * above));
        out.len = 0;
        for family in self.families() {
            let Some(Place { first, stride, phases }) = self.place(family) else { continue };
            let phase = if phases == 1 { 0 } else { phase };
            let slab = first + (bucket * phases + phase) * family.patterns();
            // A window is named by its left column and its top row, and tables follow the rows first.
            let (width, height) = family.window();
            let tables = (0..=SIDE - width).flat_map(|c| (0..=SIDE - height).map(move |t| (c, t)));
            for (table, (c, t)) in (0..).zip(tables) {
                let above = SIDE - height - t;
                let pattern = match family {
                    Family::Rows => codec::line(rows[t]),
                    Family::Cols => codec::line(columns[c]),
                    Family::Win23 => triple(c, above) + 1_000 * triple(c + 1, above),
                    Family::Win32 => {
                        pair(c, above) + 100 * pair(c + 1, above) + 10_000 * pair(c + 2, above)
                    }
                    Family::Win24 => quad(c, above) + 10_000 * quad(c + 1, above),
                    Family::Win42 => {
                        (0..4).rev().fold(0, |code, dc| 100 * code + pair(c + dc, above))
                    }
                };
                out.push(slab + table * stride + u64::from(pattern));
            }
        }
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
}

/// Occupied cells of a column word, packed or not.
#[inline]
const fn discs(word: u32) -> u32 {
    ((word | (word >> 1) | (word >> 2) | (word >> 3)) & 0x0111_1111).count_ones()
}
