//! The one move function. The game, the search and the trainer all call [`resolve`]; they differ
//! only in the [`Chance`] they pass, so a rule can be wrong in one place only.
//!
//! A wave works on nibbles in parallel: in a packed column the vertical run through any disc is the
//! whole column, and the horizontal run lengths of all seven rows are carried from column to column
//! as one word with a nibble per row.

use super::Board;
use super::board::{SIDE, column_height};
use super::chance::Chance;
use super::public::PublicState;
use super::scoring::{CLEAR_BONUS, LEVEL_BONUS, MOVES_PER_LEVEL, points_per_disc};

/// One bit per cell of a column word: the lowest bit of each nibble.
const LOW_BITS: u32 = 0x0111_1111;
const COLUMN_MASK: u32 = 0x0fff_ffff;

/// One wave of a cascade: all its discs pop at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wave {
    /// Chain depth, from 1; carries over the rise of the same move.
    pub depth: u32,
    /// Discs that popped, at least 1.
    pub popped: u32,
    /// Gray discs that became numbers.
    pub revealed: u32,
    /// `popped` times the points per disc at this depth.
    pub points: i64,
}

/// What a drop did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The position after the move and any rise: the afterstate. Its next disc is still the disc
    /// that was dropped; whoever owns the future (game, sample) sets the new one.
    pub after: PublicState,
    /// All points of the move: waves, level bonus, clear bonus.
    pub delta: i64,
    /// Whether a rise took place.
    pub rose: bool,
    /// Whether the board was emptied.
    pub cleared: bool,
    /// Discs popped in all waves.
    pub popped: u32,
    /// Gray discs revealed in all waves: the number of draws from the chance source.
    pub revealed: u32,
    /// Depth of the last wave; 0 when nothing popped.
    pub chain_depth: u32,
}

/// Drops the visible disc into `column` and plays out the cascade, the countdown and the rise.
///
/// Draws one disc from `chance` per revealed gray disc, in row-major order of the cells before
/// gravity, wave by wave. `None` when the game is over or the column is illegal: nothing is drawn.
#[inline]
pub fn resolve(state: &PublicState, column: usize, chance: &mut impl Chance) -> Option<Move> {
    resolve_observed(state, column, chance, |_| {})
}

/// [`resolve`], showing every wave to `observe` as it happens.
pub fn resolve_observed(
    state: &PublicState,
    column: usize,
    chance: &mut impl Chance,
    observe: impl FnMut(Wave),
) -> Option<Move> {
    if state.game_over || !state.board.is_legal(column) {
        return None;
    }
    let mut columns = *state.board.columns();
    columns[column] |= u32::from(state.next_disc) << (4 * column_height(columns[column]));

    let mut cascade =
        Cascade { columns, chance, observe, depth: 0, popped: 0, revealed: 0, points: 0 };
    cascade.run();
    let mut bonus = 0;
    let mut cleared = false;
    if cascade.is_clear() {
        bonus += CLEAR_BONUS;
        cleared = true;
    }

    let mut moves_remaining = state.moves_remaining - 1;
    let mut rose = false;
    let mut game_over = false;
    if moves_remaining == 0 {
        if Board::from_packed(cascade.columns).touches_top() {
            game_over = true;
        } else {
            rose = true;
            moves_remaining = MOVES_PER_LEVEL;
            bonus += LEVEL_BONUS;
            for word in &mut cascade.columns {
                *word = ((*word << 4) & COLUMN_MASK) | u32::from(super::board::SOLID);
            }
            cascade.run();
            if cascade.is_clear() {
                bonus += CLEAR_BONUS;
                cleared = true;
            }
        }
    }
    let board = Board::from_packed(cascade.columns);
    game_over |= board.is_full();
    Some(Move {
        after: PublicState { board, next_disc: state.next_disc, moves_remaining, game_over },
        delta: cascade.points + bonus,
        rose,
        cleared,
        popped: cascade.popped,
        revealed: cascade.revealed,
        chain_depth: cascade.depth,
    })
}

/// A cascade in progress: the totals and the depth run on over the rise.
struct Cascade<'a, C, F> {
    columns: [u32; SIDE],
    chance: &'a mut C,
    observe: F,
    depth: u32,
    popped: u32,
    revealed: u32,
    points: i64,
}

impl<C: Chance, F: FnMut(Wave)> Cascade<'_, C, F> {
    fn is_clear(&self) -> bool {
        self.columns == [0; SIDE]
    }

    fn run(&mut self) {
        while let Some(poppers) = poppers(&self.columns) {
            self.depth += 1;
            let revealed = self.hit_grays(&poppers);
            let mut popped = 0;
            for (word, mask) in self.columns.iter_mut().zip(poppers) {
                popped += mask.count_ones();
                *word = without(*word, mask);
            }
            let points = i64::from(popped) * points_per_disc(self.depth);
            self.popped += popped;
            self.revealed += revealed;
            self.points += points;
            (self.observe)(Wave { depth: self.depth, popped, revealed, points });
        }
    }

    /// Cracks and reveals the gray discs next to `poppers`; returns the number of reveals.
    fn hit_grays(&mut self, poppers: &[u32; SIDE]) -> u32 {
        let mut reveals = [0; SIDE];
        let mut any = 0;
        for column in 0..SIDE {
            let word = self.columns[column];
            let gray = (word >> 3) & LOW_BITS;
            if gray == 0 {
                continue;
            }
            let left = if column > 0 { poppers[column - 1] } else { 0 };
            let right = if column + 1 < SIDE { poppers[column + 1] } else { 0 };
            // A nibble of this sum counts the popping neighbours of its cell, 0..=4.
            let hits = (poppers[column] << 4) + (poppers[column] >> 4) + left + right;
            let twice = ((hits >> 1) | (hits >> 2)) & LOW_BITS;
            let hit = (hits | twice) & LOW_BITS;
            let cracked = gray & word;
            let solid = gray & !word;
            reveals[column] = (cracked & hit) | (solid & twice);
            any |= reveals[column];
            self.columns[column] = word | (solid & hit & !twice);
        }
        if any == 0 {
            return 0;
        }
        let mut revealed = 0;
        for shift in (0..SIDE as u32).rev().map(|n| 4 * n).filter(|shift| (any >> shift) & 1 != 0) {
            for (word, mask) in self.columns.iter_mut().zip(&reveals) {
                if (mask >> shift) & 1 != 0 {
                    let disc = u32::from(self.chance.draw());
                    *word = (*word & !(0xf << shift)) | (disc << shift);
                    revealed += 1;
                }
            }
        }
        revealed
    }
}

/// The discs that pop now, one bit per cell (lowest bit of the nibble); `None` when there are none.
#[inline]
fn poppers(columns: &[u32; SIDE]) -> Option<[u32; SIDE]> {
    let occupied = columns.map(|word| LOW_BITS & low_nibbles(column_height(word)));
    // Run lengths, a nibble per row: discs in the run at or left of the cell, then the whole run.
    let mut run = [0; SIDE];
    let mut left = 0;
    for column in 0..SIDE {
        left = (left + occupied[column]) & (occupied[column] * 15);
        run[column] = left;
    }
    let mut right = 0;
    for column in (0..SIDE).rev() {
        run[column] += right & (occupied[column] * 15);
        right = (right + occupied[column]) & (occupied[column] * 15);
    }
    let mut masks = [0; SIDE];
    let mut any = 0;
    for column in 0..SIDE {
        let word = columns[column];
        let vertical = LOW_BITS * column_height(word);
        masks[column] =
            (equal_nibbles(word, run[column]) | equal_nibbles(word, vertical)) & occupied[column];
        any |= masks[column];
    }
    (any != 0).then_some(masks)
}

/// The lowest bit of each nibble in which `a` and `b` agree.
#[inline]
const fn equal_nibbles(a: u32, b: u32) -> u32 {
    let x = a ^ b;
    !(x | (x >> 1) | (x >> 2) | (x >> 3)) & LOW_BITS
}

/// A mask of the `count` lowest nibbles, `count` <= 7.
#[inline]
const fn low_nibbles(count: u32) -> u32 {
    (1 << (4 * count)) - 1
}

/// `word` without the nibbles marked in `mask`; what lay above falls down.
#[inline]
fn without(mut word: u32, mut mask: u32) -> u32 {
    while mask != 0 {
        let shift = mask.ilog2();
        let below = (1 << shift) - 1;
        word = (word & below) | ((word >> 4) & !below);
        mask &= below;
    }
    word
}
