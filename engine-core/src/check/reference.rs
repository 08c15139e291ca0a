//! Patterns, buckets and entry numbers once more, cell by cell and digit by digit. Slow on purpose:
//! nothing here is shared with what the gates compare it to.

use crate::drop7::Board;
use crate::ntuple::Layout;
use crate::ntuple::layout::{Family, Fill, Phase};

type Cells = [[u64; 7]; 7];

/// Rows and columns of the board as it is read: the mirror image when that comes first.
fn canonical_cells(board: &Board) -> Cells {
    let cells: Cells =
        std::array::from_fn(|row| std::array::from_fn(|column| board.cell(row, column).into()));
    let mirrored = cells.map(|mut row| {
        row.reverse();
        row
    });
    if mirrored < cells { mirrored } else { cells }
}

/// The number whose digits, most significant first, are `digits`.
fn number(digits: impl IntoIterator<Item = u64>) -> u64 {
    digits.into_iter().fold(0, |number, digit| 10 * number + digit)
}

/// The base-10 number of the seven lowest nibbles of `word`, the lowest nibble being the units.
pub(super) fn line_code(word: u32) -> u64 {
    number((0..7).rev().map(|nibble| u64::from((word >> (4 * nibble)) & 15)))
}

/// The fill bucket of a board.
pub(super) fn bucket(fill: Fill, board: &Board) -> u64 {
    let discs = |column: usize| (0..7).filter(|&row| board.cell(row, column) != 0).count();
    let (value, lowest): (usize, [usize; 4]) = match fill {
        Fill::None => return 0,
        Fill::Occ5 => ((0..7).map(discs).sum(), [14, 21, 28, 35]),
        Fill::Hgt5 => ((0..7).map(discs).max().unwrap_or(0), [4, 5, 6, 7]),
    };
    lowest.iter().filter(|&&bound| value >= bound).count() as u64
}

/// A window of `width` columns and `height` rows whose top left cell is (`top`, `left`): columns
/// from right to left are the more significant groups, and in a column the upper cell is.
fn window(cells: &Cells, top: usize, left: usize, width: usize, height: usize) -> u64 {
    number((0..width).rev().flat_map(|c| (0..height).map(move |r| cells[top + r][left + c])))
}

/// The patterns of all tables of a family, in table order.
fn patterns(family: Family, cells: &Cells) -> Vec<u64> {
    let windows = |width: usize, height: usize| -> Vec<u64> {
        (0..=7 - width)
            .flat_map(|left| (0..=7 - height).map(move |top| (top, left)))
            .map(|(top, left)| window(cells, top, left, width, height))
            .collect()
    };
    match family {
        Family::Rows => (0..7).map(|row| window(cells, row, 0, 7, 1)).collect(),
        Family::Cols => (0..7).map(|column| window(cells, 0, column, 1, 7)).collect(),
        Family::Win23 => windows(2, 3),
        Family::Win32 => windows(3, 2),
        Family::Win24 => windows(2, 4),
        Family::Win42 => windows(4, 2),
    }
}

/// The number of cells of a pattern.
fn cells_of(family: Family) -> u32 {
    match family {
        Family::Rows | Family::Cols => 7,
        Family::Win23 | Family::Win32 => 6,
        Family::Win24 | Family::Win42 => 8,
    }
}

fn phase_keyed(phase: Phase, family: Family) -> bool {
    match phase {
        Phase::None => false,
        Phase::Cols => family == Family::Cols,
        Phase::All => cells_of(family) < 8,
    }
}

/// The entries of a position and the number of entries of the layout.
pub(super) fn entries(layout: &Layout, board: &Board, moves_remaining: u8) -> (Vec<u64>, u64) {
    let cells = canonical_cells(board);
    let buckets = if layout.fill() == Fill::None { 1 } else { 5 };
    let bucket = bucket(layout.fill(), board);
    let mut indices = Vec::new();
    let mut base = 0;
    for family in layout.families() {
        let size = 10_u64.pow(cells_of(family));
        let keyed = phase_keyed(layout.phase(), family);
        let phases = if keyed { 5 } else { 1 };
        let phase = if keyed { u64::from(moves_remaining.clamp(1, 5)) - 1 } else { 0 };
        for pattern in patterns(family, &cells) {
            indices.push(base + (bucket * phases + phase) * size + pattern);
            base += buckets * phases * size;
        }
    }
    (indices, base)
}
