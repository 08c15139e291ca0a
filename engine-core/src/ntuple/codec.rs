//! Base-10 numbers of packed cells. A word holds one cell per nibble; its code reads the lowest
//! nibble as the least significant digit. Nibbles above 9 have no code and never occur on a board.

use crate::drop7::Board;
use crate::drop7::board::SIDE;

/// Codes of three and four nibbles.
static CODE3: [u16; 1 << 12] = code3();
static CODE4: [u16; 1 << 16] = code4();

const fn digits(word: usize) -> u32 {
    let mut code = 0;
    let mut shift = 16;
    while shift > 0 {
        shift -= 4;
        code = code * 10 + ((word >> shift) & 15) as u32;
    }
    code
}

const fn code3() -> [u16; 1 << 12] {
    let mut table = [0; 1 << 12];
    let mut word = 0;
    while word < table.len() {
        table[word] = digits(word) as u16;
        word += 1;
    }
    table
}

#[expect(clippy::large_stack_arrays, reason = "evaluated by the compiler only")]
const fn code4() -> [u16; 1 << 16] {
    let mut table = [0; 1 << 16];
    let mut word = 0;
    while word < table.len() {
        table[word] = digits(word) as u16;
        word += 1;
    }
    table
}

/// The code of the two lowest nibbles, 0..=99.
#[inline]
pub const fn pair(word: u32) -> u32 {
    (word & 15) + 10 * ((word >> 4) & 15)
}

/// The code of the three lowest nibbles, 0..=999.
#[inline]
pub fn triple(word: u32) -> u32 {
    u32::from(CODE3[(word & 0xfff) as usize])
}

/// The code of the four lowest nibbles, 0..=9 999.
#[inline]
pub fn quad(word: u32) -> u32 {
    u32::from(CODE4[(word & 0xffff) as usize])
}

/// The code of the seven lowest nibbles, 0..=9 999 999.
#[inline]
pub fn line(word: u32) -> u32 {
    quad(word) + 10_000 * triple(word >> 16)
}

/// The rows of a board as words, top row first: the nibble at bit `4 c` is the cell of column `c`.
#[inline]
pub fn row_words(board: &Board) -> [u32; SIDE] {
    let mut rows = [0; SIDE];
    for (c, word) in board.columns().iter().enumerate() {
        for (r, row) in rows.iter_mut().enumerate() {
            *row |= ((word >> (4 * (SIDE - 1 - r))) & 15) << (4 * c);
        }
    }
    rows
}

/// Non-zero digits of each number below 1 000.
static OCCUPIED3: [u8; 1_000] = occupied3();

const fn occupied3() -> [u8; 1_000] {
    let mut table = [0; 1_000];
    let mut code = 0;
    while code < table.len() {
        table[code] = (code % 10 != 0) as u8 + (code / 10 % 10 != 0) as u8 + (code >= 100) as u8;
        code += 1;
    }
    table
}

/// Occupied cells of a pattern: the non-zero digits of its code.
#[inline]
pub fn occupied(mut code: u64) -> usize {
    let mut count = 0;
    while code != 0 {
        count += usize::from(OCCUPIED3[(code % 1_000) as usize]);
        code /= 1_000;
    }
    count
}
