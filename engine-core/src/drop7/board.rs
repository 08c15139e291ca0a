//! The board: seven columns of seven cells, each column one `u32` with the bottom cell in the
//! lowest nibble. Every [`Board`] is gravity-packed: no empty cell lies under an occupied one.

use std::fmt;

/// An empty cell.
pub const EMPTY: u8 = 0;
/// A gray disc that has not been hit: its number is unknown to everybody.
pub const SOLID: u8 = 8;
/// A gray disc that has been hit once.
pub const CRACKED: u8 = 9;
/// Rows and columns of the board.
pub const SIDE: usize = 7;

const COLUMN_MASK: u32 = 0x0fff_ffff;
const TOP_CELL: u32 = 0x0f00_0000;

/// A gravity-packed 7 x 7 board. Row 0 is the top, column 0 the left.
///
/// Cell codes: 0 empty, 1..=7 numbered, 8 solid gray, 9 cracked gray.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Board {
    columns: [u32; SIDE],
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
    pub const INITIAL: Self = Self { columns: [SOLID as u32; SIDE] };
    /// No disc at all; clearing down to it earns a bonus.
    pub const CLEAR: Self = Self { columns: [0; SIDE] };

    /// A board from its seven column words.
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
        Ok(Self { columns })
    }

    /// Columns that are known to be packed and in range: the rules keep it so.
    pub(crate) const fn from_packed(columns: [u32; SIDE]) -> Self {
        Self { columns }
    }

    /// The seven column words.
    pub const fn columns(&self) -> &[u32; SIDE] {
        &self.columns
    }

    /// The cell code at `row` (0 = top) and `column` (0 = left).
    ///
    /// # Panics
    /// When `row` or `column` is above 6.
    pub fn cell(&self, row: usize, column: usize) -> u8 {
        ((self.columns[column] >> (4 * (SIDE - 1 - row))) & 15) as u8
    }

    /// Discs in a column, 0..=7.
    pub fn height(&self, column: usize) -> u32 {
        column_height(self.columns[column])
    }

    /// Discs on the board, gray ones included, 0..=49.
    pub fn occupied(&self) -> u32 {
        self.columns.iter().map(|&word| column_height(word)).sum()
    }

    /// Whether a disc can be dropped into `column`. Out of range is not legal.
    pub fn is_legal(&self, column: usize) -> bool {
        self.columns.get(column).is_some_and(|word| word & TOP_CELL == 0)
    }

    /// Whether the top cell of any column is occupied: the next rise would end the game.
    pub fn touches_top(&self) -> bool {
        self.columns.iter().any(|word| word & TOP_CELL != 0)
    }

    /// Whether no column is legal.
    pub fn is_full(&self) -> bool {
        self.columns.iter().all(|word| word & TOP_CELL != 0)
    }

    /// The left-right mirror image.
    pub fn mirror(&self) -> Self {
        let mut columns = self.columns;
        columns.reverse();
        Self { columns }
    }

    /// Whether the mirror image comes first in row-major order of cell codes, top row first.
    pub fn mirror_is_smaller(&self) -> bool {
        // Rows decide from the top, and within a row the leftmost difference: compare the pairs
        // (0,6), (1,5), (2,4) at the highest nibble in which any pair differs.
        let differences: [u32; 3] =
            std::array::from_fn(|c| self.columns[c] ^ self.columns[SIDE - 1 - c]);
        let any = differences[0] | differences[1] | differences[2];
        if any == 0 {
            return false;
        }
        let shift = any.ilog2() & !3;
        for (c, difference) in differences.iter().enumerate() {
            if (difference >> shift) & 15 != 0 {
                let left = (self.columns[c] >> shift) & 15;
                let right = (self.columns[SIDE - 1 - c] >> shift) & 15;
                return right < left;
            }
        }
        false
    }

    /// The smaller of the board and its mirror image, and whether it is the mirror image.
    pub fn canonical(&self) -> (Self, bool) {
        if self.mirror_is_smaller() { (self.mirror(), true) } else { (*self, false) }
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

/// Number of occupied cells of a packed column word.
#[inline]
pub(crate) const fn column_height(word: u32) -> u32 {
    8 - word.leading_zeros() / 4
}

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
