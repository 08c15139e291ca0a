//! The board: four planes of 49 cells, one bit of the cell code each. Bit `8 * column + height` is the
//! cell `height` cells above the bottom of `column`; a column is a byte, so a mirror image is a swap of
//! bytes, a neighbour is a shift, and bit 7 of a byte, always clear, keeps columns apart.
//!
//! Every [`Board`] of a game is gravity-packed: no empty cell lies under an occupied one.

use std::fmt;

/// An empty cell.
pub const EMPTY: u8 = 0;
/// A gray disc that has not been hit: its number is unknown to everybody.
pub const SOLID: u8 = 8;
/// A gray disc that has been hit once.
pub const CRACKED: u8 = 9;
/// Rows and columns of the board.
pub const SIDE: usize = 7;

/// The bottom cell of every column.
pub(super) const BOTTOM: u64 = 0x0001_0101_0101_0101;
/// The top cell of every column.
pub(super) const TOP: u64 = BOTTOM << 6;

const COLUMN_MASK: u32 = 0x0fff_ffff;

/// A gravity-packed 7 x 7 board. Row 0 is the top, column 0 the left.
///
/// Cell codes: 0 empty, 1..=7 numbered, 8 solid gray, 9 cracked gray.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Board {
    planes: [u64; 4],
}

/// Why seven words or a text are not a board.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BoardError {
    /// A nibble above 9, or something in bits 28..32.
    #[error("column {column} holds {word:#010x}: cells are 0..=9 in the low 28 bits")]
    Cell {
        /// The column, 0 at the left.
        column: usize,
        /// The offending word.
        word: u32,
    },
    /// An empty cell below an occupied one.
    #[error("column {column} holds {word:#010x}: an empty cell lies under an occupied one")]
    Floating {
        /// The column, 0 at the left.
        column: usize,
        /// The offending word.
        word: u32,
    },
    /// A text that is not 49 digits 0..=9.
    #[error("a board is 49 digits 0..=9, row-major from the top; got {0:?}")]
    Text(String),
}

impl Board {
    /// The board of a new game: one row of solid gray discs at the bottom.
    pub const INITIAL: Self = Self { planes: [0, 0, 0, BOTTOM] };
    /// No disc at all; clearing down to it earns a bonus.
    pub const CLEAR: Self = Self { planes: [0; 4] };

    /// A board from seven words, one per column: seven nibbles, the bottom cell in the lowest.
    ///
    /// # Errors
    /// [`BoardError::Cell`] and [`BoardError::Floating`] name the first bad column.
    pub fn from_columns(columns: [u32; SIDE]) -> Result<Self, BoardError> {
        for (column, &word) in columns.iter().enumerate() {
            let cells = (0..SIDE).map(|n| (word >> (4 * n)) & 15);
            if word & !COLUMN_MASK != 0 || cells.clone().any(|cell| cell > 9) {
                return Err(BoardError::Cell { column, word });
            }
            let height = cells.clone().filter(|&cell| cell != 0).count();
            if cells.take(height).any(|cell| cell == 0) {
                return Err(BoardError::Floating { column, word });
            }
        }
        Ok(Self::from_cells(columns))
    }

    /// The planes of any seven words of seven cells 0..=9, packed or not.
    pub(crate) fn from_cells(columns: [u32; SIDE]) -> Self {
        let mut planes = [0; 4];
        for (column, word) in columns.into_iter().enumerate() {
            for (bit, plane) in planes.iter_mut().enumerate() {
                let cells = (0..SIDE).map(|height| (word >> (4 * height + bit) & 1) << height);
                *plane |= u64::from(cells.sum::<u32>()) << (8 * column);
            }
        }
        Self { planes }
    }

    /// Planes that are known to hold cells 0..=9 and no bit 7: the rules keep it so.
    #[inline]
    pub(super) const fn from_planes(planes: [u64; 4]) -> Self {
        Self { planes }
    }

    /// Bit `b` of every cell code, for `b` in 0..4.
    #[inline]
    pub(crate) const fn planes(&self) -> &[u64; 4] {
        &self.planes
    }

    /// The occupied cells.
    #[inline]
    pub(crate) const fn occupied_cells(&self) -> u64 {
        let [a, b, c, d] = self.planes;
        a | b | c | d
    }

    /// One word per column: seven nibbles, the bottom cell in the lowest.
    #[inline]
    pub fn columns(&self) -> [u32; SIDE] {
        let bytes = self.planes.map(u64::to_le_bytes);
        std::array::from_fn(|column| {
            let nibbles = |bit: usize| SPREAD[usize::from(bytes[bit][column] & 0x7f)] << bit;
            nibbles(0) | nibbles(1) | nibbles(2) | nibbles(3)
        })
    }

    /// The cell code at `row` (0 = top) and `column` (0 = left).
    ///
    /// # Panics
    /// When `row` or `column` is above 6.
    pub fn cell(&self, row: usize, column: usize) -> u8 {
        assert!(row < SIDE && column < SIDE, "row {row} and column {column} must be 0..=6");
        self.cell_at(8 * column + SIDE - 1 - row)
    }

    /// The cell code behind bit `at` of the planes, `at` < 64.
    #[inline]
    fn cell_at(&self, at: usize) -> u8 {
        (0..4).map(|bit| ((self.planes[bit] >> at & 1) << bit) as u8).sum()
    }

    /// Discs in a column, 0..=7.
    ///
    /// # Panics
    /// When `column` is above 6.
    #[inline]
    pub fn height(&self, column: usize) -> u32 {
        assert!(column < SIDE, "column {column} must be 0..=6");
        self.occupied_cells().to_le_bytes()[column].count_ones()
    }

    /// Discs on the board, gray ones included, 0..=49.
    #[inline]
    pub fn occupied(&self) -> u32 {
        self.occupied_cells().count_ones()
    }

    /// Whether a disc can be dropped into `column`. Out of range is not legal.
    #[inline]
    pub fn is_legal(&self, column: usize) -> bool {
        column < SIDE && self.occupied_cells() >> (8 * column + SIDE - 1) & 1 == 0
    }

    /// Whether the top cell of any column is occupied: the next rise would end the game.
    #[inline]
    pub fn touches_top(&self) -> bool {
        self.occupied_cells() & TOP != 0
    }

    /// Whether no column is legal.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.occupied_cells() & TOP == TOP
    }

    /// The left-right mirror image.
    #[inline]
    #[must_use]
    pub fn mirror(&self) -> Self {
        // Eight bytes swap to the other end, and the one behind the last column drops out.
        Self { planes: self.planes.map(|plane| plane.swap_bytes() >> 8) }
    }

    /// Whether the mirror image comes first in row-major order of cell codes, top row first.
    pub fn mirror_is_smaller(&self) -> bool {
        self.is_larger_than_mirror(&self.mirror())
    }

    #[inline]
    fn is_larger_than_mirror(&self, mirror: &Self) -> bool {
        const LEFT_HALF: u64 = 0x00ff_ffff;
        let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (self.planes, mirror.planes);
        let differs = ((a0 ^ b0) | (a1 ^ b1) | (a2 ^ b2) | (a3 ^ b3)) & LEFT_HALF;
        // The cells in which the mirror image has the smaller code, all at once.
        let smaller = (a0 & !b0) & !(a1 ^ b1) | (a1 & !b1);
        let smaller = smaller & !(a2 ^ b2) | (a2 & !b2);
        let smaller = smaller & !(a3 ^ b3) | (a3 & !b3);
        // The highest row with a difference decides, and in it the leftmost column.
        let rows = (differs | differs >> 8 | differs >> 16) & 0x7f;
        let highest = (rows | 1).ilog2();
        let first = (differs >> highest & BOTTOM | 1 << 63).trailing_zeros();
        smaller >> ((first + highest) & 63) & u64::from(differs != 0) != 0
    }

    /// The smaller of the board and its mirror image, and whether it is the mirror image.
    #[inline]
    pub fn canonical(&self) -> (Self, bool) {
        let mirror = self.mirror();
        let mirrored = self.is_larger_than_mirror(&mirror);
        // Which of the two it is cannot be predicted: select without a branch.
        let choice = 0_u64.wrapping_sub(u64::from(mirrored));
        let pick = |bit: usize| self.planes[bit] ^ (self.planes[bit] ^ mirror.planes[bit]) & choice;
        (Self { planes: [pick(0), pick(1), pick(2), pick(3)] }, mirrored)
    }

    /// A board from 49 digits, row-major, top row first.
    ///
    /// # Errors
    /// As [`Board::from_columns`], and [`BoardError::Text`] for anything but 49 digits.
    pub fn from_text(text: &str) -> Result<Self, BoardError> {
        let bytes = text.as_bytes();
        if bytes.len() != SIDE * SIDE || !bytes.iter().all(u8::is_ascii_digit) {
            return Err(BoardError::Text(text.to_owned()));
        }
        let mut columns = [0; SIDE];
        for (i, digit) in bytes.iter().enumerate() {
            columns[i % SIDE] |= u32::from(digit - b'0') << (4 * (SIDE - 1 - i / SIDE));
        }
        Self::from_columns(columns)
    }
}

/// Bit `n` of the index becomes the lowest bit of nibble `n`.
static SPREAD: [u32; 1 << SIDE] = {
    let mut table = [0; 1 << SIDE];
    let mut bits = 0;
    while bits < table.len() {
        let mut n = 0;
        while n < SIDE {
            table[bits] |= ((bits as u32 >> n) & 1) << (4 * n);
            n += 1;
        }
        bits += 1;
    }
    table
};

/// 49 digits, row-major, top row first: the inverse of [`Board::from_text`].
impl fmt::Display for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..SIDE * SIDE).try_for_each(|i| write!(f, "{}", self.cell(i / SIDE, i % SIDE)))
    }
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Board({self})")
    }
}
