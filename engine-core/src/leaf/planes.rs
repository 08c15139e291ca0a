//! The board turned on its side for the fair leaf: one bit per cell and kind of disc, rows from the
//! top, so that "row-major" is "lowest bit first" and a neighbour is a shift.
//!
//! A cell has the index `8 * row + column`; the eighth column stays empty, so nothing wraps.

use crate::drop7::Board;

/// Which cells hold what, a bit per cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planes {
    /// The three low bits of the cell codes.
    bits: [u64; 3],
    pub(super) numbered: u64,
    pub(super) ones: u64,
    pub(super) twos: u64,
    pub(super) solid: u64,
    pub(super) cracked: u64,
}

impl Planes {
    /// The planes of `board`.
    #[inline(always)]
    pub(super) fn of(board: &Board) -> Self {
        let [b0, b1, b2, b3] = board.planes().map(by_rows);
        Self {
            bits: [b0, b1, b2],
            numbered: (b0 | b1 | b2) & !b3,
            ones: b0 & !(b1 | b2 | b3),
            twos: b1 & !(b0 | b2 | b3),
            solid: b3 & !b0,
            cracked: b3 & b0,
        }
    }

    /// All discs.
    #[inline(always)]
    pub(super) const fn occupied(&self) -> u64 {
        self.numbered | self.solid | self.cracked
    }

    /// The number of a numbered cell, 1..=7.
    #[inline(always)]
    pub(super) const fn value(&self, cell: usize) -> u32 {
        let [b0, b1, b2] = self.bits;
        ((b0 >> cell & 1) | (b1 >> cell & 1) << 1 | (b2 >> cell & 1) << 2) as u32
    }
}

/// A plane of a board, columns from the bottom, as rows from the top.
#[inline(always)]
const fn by_rows(plane: u64) -> u64 {
    // Transpose blocks of 1, 2 and 4 bits across the diagonal of an 8 x 8 square.
    let swap = (plane ^ plane >> 7) & 0x00aa_00aa_00aa_00aa;
    let x = plane ^ swap ^ swap << 7;
    let swap = (x ^ x >> 14) & 0x0000_cccc_0000_cccc;
    let x = x ^ swap ^ swap << 14;
    let swap = (x ^ x >> 28) & 0x0000_0000_f0f0_f0f0;
    let x = x ^ swap ^ swap << 28;
    // The bottom row is in the lowest byte now and belongs into byte 6.
    x.swap_bytes() >> 8
}

/// The indices of the set bits, ascending: row-major order of the cells.
pub(super) struct Cells(pub(super) u64);

impl Iterator for Cells {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let index = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_on_the_plane_of_its_kind() {
        let text = "5000000400000130000022000905100180998072088906217";
        let board = Board::from_text(text).unwrap();
        let planes = Planes::of(&board);
        for row in 0..7 {
            for column in 0..7 {
                let bit = 1_u64 << (8 * row + column);
                let cell = board.cell(row, column);
                assert_eq!(planes.numbered & bit != 0, (1..=7).contains(&cell));
                if planes.numbered & bit != 0 {
                    assert_eq!(planes.value(8 * row + column), u32::from(cell));
                }
                assert_eq!(planes.ones & bit != 0, cell == 1);
                assert_eq!(planes.twos & bit != 0, cell == 2);
                assert_eq!(planes.solid & bit != 0, cell == 8);
                assert_eq!(planes.cracked & bit != 0, cell == 9);
                assert_eq!(planes.occupied() & bit != 0, cell != 0);
            }
        }
        let listed: Vec<usize> = Cells(planes.occupied()).collect();
        assert!(listed.is_sorted() && listed.len() == board.occupied() as usize);
    }
}
