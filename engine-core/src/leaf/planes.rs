//! The board turned on its side for the fair leaf: one bit per cell and kind of disc, rows from the
//! top, so that "row-major" is "lowest bit first" and a neighbour is a shift.
//!
//! A cell has the index `8 * row + column`; the eighth column stays empty, so nothing wraps.

use crate::drop7::Board;

/// One bit in every row, column 0.
const COLUMN_0: u64 = 0x0001_0101_0101_0101;

/// Which cells hold what, a bit per cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planes {
    pub(super) numbered: u64,
    pub(super) ones: u64,
    pub(super) twos: u64,
    pub(super) solid: u64,
    pub(super) cracked: u64,
}

impl Planes {
    /// The planes of `board`.
    pub(super) fn of(board: &Board) -> Self {
        let mut bits = [0_u64; 4];
        for (column, word) in board.columns().into_iter().enumerate() {
            let rows = one_cell_per_byte(word);
            for (n, plane) in bits.iter_mut().enumerate() {
                *plane |= ((rows >> n) & COLUMN_0) << column;
            }
        }
        let [b0, b1, b2, b3] = bits;
        Self {
            numbered: (b0 | b1 | b2) & !b3,
            ones: b0 & !(b1 | b2 | b3),
            twos: b1 & !(b0 | b2 | b3),
            solid: b3 & !b0,
            cracked: b3 & b0,
        }
    }

    /// All discs.
    pub(super) const fn occupied(&self) -> u64 {
        self.numbered | self.solid | self.cracked
    }
}

/// Byte `row` of the result is the cell at `row` (0 = top) of a column word.
#[inline]
const fn one_cell_per_byte(word: u32) -> u64 {
    let x = word as u64;
    let x = (x | (x << 16)) & 0x0000_ffff_0000_ffff;
    let x = (x | (x << 8)) & 0x00ff_00ff_00ff_00ff;
    let x = (x | (x << 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    // The bottom cell is in the lowest byte now and belongs into byte 6.
    x.swap_bytes() >> 8
}

/// The indices of the set bits, ascending: row-major order of the cells.
pub(super) struct Cells(pub(super) u64);

impl Iterator for Cells {
    type Item = usize;

    #[inline]
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
