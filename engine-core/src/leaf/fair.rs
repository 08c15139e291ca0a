//! The frozen fair leaf: eighteen hand-made terms of the board, the visible disc and the countdown,
//! with fixed weights.
//!
//! Promised: the bits of the reference for every position, popping discs included
//! (`tests/golden/leaf.json`: value and all eighteen terms). Each sum is one rounded addition after
//! the other in row-major order, so nothing here may be re-associated or fused.
//! Refused: learning, and any look at the score, the level or the number of moves played.

use super::planes::{Cells, Planes};
use super::readiness::{HALVES, Row, Supporters};
use super::{BoardPart, Leaf};
use crate::drop7::board::SIDE;
use crate::drop7::{Board, PublicState};
use crate::instructions::{InstructionSet, per_instruction_set};

/// What the eighteen terms measure, in the order of [`terms`].
pub const TERM_NAMES: [&str; 18] = [
    "open_columns",
    "height_load",
    "solid_cells",
    "cracked_cells",
    "numbered_cells",
    "high_low_numbers",
    "direct_potential",
    "latent_chain_potential",
    "cracked_exposure",
    "solid_exposure",
    "adjacent_ones",
    "triple_twos",
    "dead_low_numbers",
    "covered_height_risk",
    "low_number_height_risk",
    "danger_height_squared",
    "rise_pressure",
    "next_disc_vertical_options",
];

/// Points per unit of each term.
pub const WEIGHTS: [f64; 18] = [
    180.0, -20.0, -620.0, -220.0, -18.0, -90.0, 1600.0, 700.0, 100.0, 40.0, -550.0, -750.0, -120.0,
    -95.0, -85.0, -1250.0, -35.0, 220.0,
];

/// The value of a finished game. A search never asks for it: it has its own terminal value.
pub const GAME_OVER: f64 = -2_500_000.0;

/// The frozen fair leaf.
#[derive(Debug, Clone, Copy, Default)]
pub struct FairLeaf;

impl Leaf for FairLeaf {
    const READS_NEXT_DISC: bool = true;
    type Scratch = Workspace;

    fn value(&self, state: &PublicState) -> f64 {
        if state.is_over() {
            return GAME_OVER;
        }
        let set = InstructionSet::active();
        let part = board_part_on(set, state, &mut Workspace::default());
        self.finish(part, state.next_disc())
    }

    fn board_parts(
        &self,
        states: &[PublicState],
        workspace: &mut Workspace,
        parts: &mut Vec<BoardPart>,
    ) {
        board_parts_on(InstructionSet::active(), states, workspace, parts);
    }

    fn finish(&self, part: BoardPart, next_disc: u8) -> f64 {
        finish(part.value, (part.by_disc >> (4 * (next_disc & 7))) & 15)
    }
}

per_instruction_set! {
    /// [`Leaf::board_parts`] with the instructions of `set`.
    fn board_parts_on(
        states: &[PublicState],
        workspace: &mut Workspace,
        parts: &mut Vec<BoardPart>,
    ) = all_board_parts;
}

per_instruction_set! {
    /// [`board_part`] with the instructions of `set`.
    fn board_part_on(state: &PublicState, workspace: &mut Workspace) -> BoardPart = board_part;
}

#[inline(always)]
fn all_board_parts(states: &[PublicState], workspace: &mut Workspace, parts: &mut Vec<BoardPart>) {
    for state in states {
        parts.push(board_part(state, workspace));
    }
}

/// The weighted sum of the seventeen terms that do not read the disc; nibble `d` of `by_disc` counts
/// the columns in which a disc `d` would become number `d` from the bottom.
#[inline(always)]
fn board_part(state: &PublicState, workspace: &mut Workspace) -> BoardPart {
    let value = board_value(&board_terms(state.board(), state.moves_remaining(), workspace));
    let occupied = state.board().occupied_cells().to_le_bytes();
    let mut by_disc = 0;
    for column in &occupied[..SIDE] {
        // Nibble 8, of a full column, drops out.
        by_disc += (1_u64 << (4 * (column.count_ones() + 1))) as u32;
    }
    BoardPart { value, by_disc }
}

/// What is found out per cell on the way, kept from board to board so that nothing is cleared: every
/// place is written before it is read.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// How near a disc is to popping: by more discs first, then by any means.
    ready: [f64; CELLS],
    by_row: [f64; CELLS],
    by_column: [f64; CELLS],
}

impl Default for Workspace {
    fn default() -> Self {
        Self { ready: [0.0; CELLS], by_row: [0.0; CELLS], by_column: [0.0; CELLS] }
    }
}

/// The eighteen terms, unweighted, in the order of [`TERM_NAMES`]. Zeros for a finished game.
pub fn terms(state: &PublicState) -> [f64; 18] {
    if state.is_over() {
        return [0.0; 18];
    }
    let board = board_terms(state.board(), state.moves_remaining(), &mut Workspace::default());
    let mut terms = [0.0; 18];
    terms[..17].copy_from_slice(&board);
    terms[17] = f64::from(vertical_options(state.board(), state.next_disc()));
    terms
}

/// Open columns in which `disc` would pop because of the column alone.
fn vertical_options(board: &Board, disc: u8) -> u32 {
    (0..SIDE).filter(|&column| board.height(column) + 1 == u32::from(disc)).count() as u32
}

/// The weighted sum of the first seventeen terms, in order.
#[inline(always)]
fn board_value(terms: &[f64; 17]) -> f64 {
    terms.iter().zip(WEIGHTS).fold(0.0, |sum, (term, weight)| sum + weight * term)
}

/// The weighted sum of all terms from that of the first seventeen.
#[inline(always)]
fn finish(board_value: f64, vertical_options: u32) -> f64 {
    board_value + WEIGHTS[17] * f64::from(vertical_options)
}

/// Room for an index `8 * row + column`.
const CELLS: usize = 56;

/// Risk of a solid (`[0]`) and a cracked (`[1]`) cover per cell: elevation squared, more at the
/// edge.
const COVER_RISK: [[f64; CELLS]; 2] = {
    let mut table = [[0.0; CELLS]; 2];
    let mut index = 0;
    while index < CELLS {
        let elevation = 7 - index / 8;
        let edge = if index % 8 == 0 || index % 8 == 6 { 1.65 } else { 1.0 };
        let risk = (elevation * elevation) as f64 * edge;
        table[0][index] = risk;
        table[1][index] = risk * 0.72;
        index += 1;
    }
    table
};

/// Cube of a height divided by the moves until the rise: `[moves][height]`.
const RISE_PRESSURE: [[f64; SIDE + 1]; 6] = {
    let mut table = [[0.0; SIDE + 1]; 6];
    let mut moves = 1;
    while moves < 6 {
        let mut height = 0;
        while height < SIDE + 1 {
            table[moves][height] = (height * height * height) as f64 / moves as f64;
            height += 1;
        }
        moves += 1;
    }
    table
};

/// Sum of squared elevations of a column by its height.
const HEIGHT_LOAD: [u32; SIDE + 1] = [0, 1, 5, 14, 30, 55, 91, 140];
/// Squared height above 2 of a low number, by row.
const LOW_NUMBER_RISK: [u32; SIDE] = [25, 16, 9, 4, 1, 0, 0];

/// The chance that one of two independent things happens.
#[inline(always)]
fn either(a: f64, b: f64) -> f64 {
    1.0 - (1.0 - a) * (1.0 - b)
}

#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

/// The first seventeen terms: everything but the visible disc.
#[inline(always)]
fn board_terms(board: &Board, moves_remaining: u8, workspace: &mut Workspace) -> [f64; 17] {
    let Workspace { ready, by_row, by_column } = workspace;
    let planes = Planes::of(board);
    let occupied = planes.occupied();
    let low = planes.ones | planes.twos;
    let mut terms = [0.0; 17];

    // Columns.
    let mut heights = [0_u32; SIDE];
    let mut packed_heights = 0_u64;
    let (mut open, mut tallest, mut height_load) = (0, 0, 0);
    let cells = board.occupied_cells().to_le_bytes();
    for (column, height_of) in heights.iter_mut().enumerate() {
        let height = cells[column].count_ones();
        *height_of = height;
        packed_heights |= u64::from(height) << (8 * column);
        open += u32::from(height < SIDE as u32);
        tallest = tallest.max(height);
        height_load += HEIGHT_LOAD[height as usize];
        terms[16] += RISE_PRESSURE[usize::from(moves_remaining.min(5))][height as usize];
    }
    let danger = tallest.saturating_sub(4);
    terms[0] = f64::from(open);
    terms[1] = f64::from(height_load);
    terms[15] = f64::from(danger * danger);

    // Kinds of disc.
    terms[2] = f64::from(planes.solid.count_ones());
    terms[3] = f64::from(planes.cracked.count_ones());
    terms[4] = f64::from(planes.numbered.count_ones());
    terms[5] = f64::from((low & 0x007f_7f7f).count_ones());
    terms[14] = f64::from(Cells(low).map(|cell| LOW_NUMBER_RISK[cell / 8]).sum::<u32>());
    for cell in Cells(planes.solid | planes.cracked) {
        terms[13] += COVER_RISK[usize::from(planes.cracked >> cell & 1 != 0)][cell];
    }

    // What one more disc next to it would do for every number.
    let mut columns = [Supporters::default(); SIDE];
    for row in 0..SIDE {
        let cells = planes.numbered & (0x7f << (8 * row));
        if cells == 0 {
            continue;
        }
        let line = Row::new(occupied, packed_heights, row);
        for cell in Cells(cells) {
            let column = cell % 8;
            let value = planes.value(cell);
            let vertical = HALVES[value.saturating_sub(heights[column]) as usize];
            let horizontal = line.readiness(column as u32, value);
            let add = either(horizontal, vertical);
            by_row[cell] = horizontal;
            by_column[cell] = vertical;
            ready[cell] = add;
            columns[column].push(add);
            terms[6] += add;
        }
    }

    // What the other numbers of its runs would do for it by popping.
    let mut run_of = Supporters::default();
    for row in 0..SIDE {
        let line = Row::new(occupied, packed_heights, row);
        let mut rest = planes.numbered & (0x7f << (8 * row));
        while rest != 0 {
            let (first, last) = line.run(rest.trailing_zeros() % 8);
            let length = last + 1 - first;
            let run = rest & (((1 << (last + 1)) - 1) << (8 * row));
            rest &= !run;
            run_of.clear();
            for cell in Cells(run) {
                run_of.push(ready[cell]);
            }
            for cell in Cells(run) {
                let (column, value, own) = (cell % 8, planes.value(cell), ready[cell]);
                let height = heights[column];
                let horizontal = run_of.release(length, value, own);
                let vertical = columns[column].release(height, value, own);
                let release = either(horizontal, vertical);
                terms[7] += release;
                ready[cell] = either(own, release);
                if value <= 2 {
                    if length > value && height > value {
                        terms[12] += 1.0 - ready[cell];
                    }
                    // From here on: how a low number gets away along one direction.
                    by_row[cell] = either(by_row[cell], horizontal);
                    by_column[cell] = either(by_column[cell], vertical);
                }
            }
        }
    }

    terms[10] = adjacent_ones(planes.ones, by_row, by_column);
    terms[11] = triple_twos(planes.twos, by_row, by_column);
    (terms[8], terms[9]) = exposure(&planes, ready);
    terms
}

/// Ones next to each other: side by side they get away vertically, stacked horizontally.
#[inline(always)]
fn adjacent_ones(ones: u64, by_row: &[f64; CELLS], by_column: &[f64; CELLS]) -> f64 {
    let mut sum = 0.0;
    for cell in Cells(ones & ((ones >> 1) | (ones >> 8))) {
        if ones >> (cell + 1) & 1 != 0 {
            sum += 1.0 - larger(by_column[cell], by_column[cell + 1]);
        }
        if ones >> (cell + 8) & 1 != 0 {
            sum += 1.0 - larger(by_row[cell], by_row[cell + 8]);
        }
    }
    sum
}

/// Three and more twos in line, first along the rows, then along the columns.
#[inline(always)]
fn triple_twos(twos: u64, by_row: &[f64; CELLS], by_column: &[f64; CELLS]) -> f64 {
    let mut sum = 0.0;
    for (step, line_step, escape) in [(1, 8, by_column), (8, 1, by_row)] {
        if twos & (twos >> step) & (twos >> (2 * step)) == 0 {
            continue;
        }
        for line in 0..SIDE {
            let mut length = 0_u32;
            let mut best = 0.0;
            // One cell more than the line has: it is empty and ends the last run.
            for position in 0..=SIDE {
                let cell = line * line_step + position * step;
                if position < SIDE && twos >> cell & 1 != 0 {
                    length += 1;
                    best = larger(best, escape[cell]);
                    continue;
                }
                if length > 2 {
                    let excess = length - 2;
                    sum += f64::from(excess * excess) * (1.0 - best);
                }
                length = 0;
                best = 0.0;
            }
        }
    }
    sum
}

/// How likely covered discs are hit, from the readiness of the numbers around them: (cracked, solid).
#[inline(always)]
fn exposure(planes: &Planes, ready: &[f64; CELLS]) -> (f64, f64) {
    let numbered = planes.numbered;
    let beside = (numbered << 1) | (numbered >> 1) | (numbered << 8) | (numbered >> 8);
    let (mut cracked, mut solid) = (0.0, 0.0);
    // A gray disc without a number beside it adds zero.
    for cell in Cells((planes.solid | planes.cracked) & beside) {
        let mut around = Supporters::default();
        for neighbour in [cell.wrapping_sub(8), cell.wrapping_sub(1), cell + 1, cell + 8] {
            if neighbour < CELLS && numbered >> neighbour & 1 != 0 {
                around.push(ready[neighbour]);
            }
        }
        let around = around.descending();
        if planes.cracked >> cell & 1 != 0 {
            let missed = around.iter().fold(1.0, |missed, hit| missed * (1.0 - hit));
            cracked += 1.0 - missed;
        } else {
            let place = |at: usize| around.get(at).copied().unwrap_or(0.0);
            solid += place(0) * 0.35 + place(1) * 0.65;
        }
    }
    (cracked, solid)
}
