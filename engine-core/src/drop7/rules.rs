//! The one move function. The game, the search and the trainer all play through [`resolve`] or its
//! two halves, [`start`] and [`Pending::finish`]; they differ only in the [`Chance`] they pass, so a
//! rule can be wrong in one place only.
//!
//! A wave works on all cells in parallel: run lengths are counted as bit planes beside the planes of
//! the board, so a disc pops where its three bits equal those of a run. What happens before the first
//! gray disc turns into a number is the same for every sample of a search, and is played once.

use super::Board;
use super::board::{BOTTOM, SIDE, TOP};
use super::chance::Chance;
#[cfg(target_arch = "x86_64")]
use super::gravity::Bmi2;
use super::gravity::{Gravity, Shifts};
use super::public::PublicState;
use super::scoring::{CLEAR_BONUS, LEVEL_BONUS, MOVES_PER_LEVEL, points_per_disc};
use crate::instructions::{InstructionSet, per_instruction_set};

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

/// How far a drop goes without chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// To its end: nothing was revealed.
    Settled(Move),
    /// To the first wave that reveals a gray disc.
    Pending(Pending),
}

/// A move at its first reveal, to be finished as often as there are samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    cascade: Cascade,
    wave: Poppers,
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
#[inline]
pub fn resolve_observed(
    state: &PublicState,
    column: usize,
    chance: &mut impl Chance,
    observe: impl FnMut(Wave),
) -> Option<Move> {
    resolve_on(InstructionSet::active(), state, column, chance, observe)
}

/// The part of [`resolve`] that no chance can change. `None` when the game is over or the column is
/// illegal.
#[inline]
pub fn start(state: &PublicState, column: usize) -> Option<Start> {
    start_on(InstructionSet::active(), state, column)
}

impl Pending {
    /// The move as [`resolve`] would have played it with this source.
    #[inline]
    pub fn finish(&self, chance: &mut impl Chance) -> Move {
        finish_on(InstructionSet::active(), self, chance)
    }
}

per_instruction_set! {
    /// [`resolve_observed`] with the instructions of `set`.
    fn resolve_on[C: Chance, F: FnMut(Wave)](
        state: &PublicState,
        column: usize,
        chance: &mut C,
        observe: F,
    ) -> Option<Move> = resolve_with, Shifts, Bmi2::here();
}

per_instruction_set! {
    /// [`start`] with the instructions of `set`.
    fn start_on(state: &PublicState, column: usize) -> Option<Start> =
        start_with, Shifts, Bmi2::here();
}

per_instruction_set! {
    /// [`Pending::finish`] with the instructions of `set`.
    fn finish_on[C: Chance](pending: &Pending, chance: &mut C) -> Move =
        finish_with, Shifts, Bmi2::here();
}

#[inline(always)]
fn resolve_with<C: Chance, F: FnMut(Wave)>(
    gravity: impl Gravity,
    state: &PublicState,
    column: usize,
    chance: &mut C,
    mut observe: F,
) -> Option<Move> {
    let mut cascade = Cascade::drop(state, column)?;
    while let Some(wave) = cascade.next_reveal(gravity, &mut observe) {
        cascade.reveal(gravity, &wave, chance, &mut observe);
    }
    Some(cascade.ended())
}

/// [`start`] for callers that run under an instruction set already.
/// [`start`] for a body that is compiled for several instruction sets itself.
#[inline(always)]
pub(crate) fn start_with(
    gravity: impl Gravity,
    state: &PublicState,
    column: usize,
) -> Option<Start> {
    let mut cascade = Cascade::drop(state, column)?;
    Some(match cascade.next_reveal(gravity, &mut |_| {}) {
        None => Start::Settled(cascade.ended()),
        Some(wave) => Start::Pending(Pending { cascade, wave }),
    })
}

/// [`Pending::finish`] for a body that is compiled for several instruction sets itself.
#[inline(always)]
pub(crate) fn finish_with<C: Chance>(
    gravity: impl Gravity,
    pending: &Pending,
    chance: &mut C,
) -> Move {
    let Pending { mut cascade, mut wave } = *pending;
    loop {
        cascade.reveal(gravity, &wave, chance, &mut |_| {});
        match cascade.next_reveal(gravity, &mut |_| {}) {
            Some(next) => wave = next,
            None => return cascade.ended(),
        }
    }
}

/// The discs of one wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Poppers {
    popping: u64,
    /// Gray discs that turn into numbers.
    revealed: u64,
}

/// A move in progress: the totals and the depth run on over the rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cascade {
    planes: [u64; 4],
    occupied: u64,
    points: i64,
    depth: u32,
    popped: u32,
    revealed: u32,
    disc: u8,
    moves_remaining: u8,
    rose: bool,
    cleared: bool,
    game_over: bool,
}

impl Cascade {
    /// The board with the visible disc in `column`, before anything pops.
    #[inline(always)]
    fn drop(state: &PublicState, column: usize) -> Option<Self> {
        let occupied = state.board.occupied_cells();
        if state.game_over || column >= SIDE || occupied >> (8 * column + SIDE - 1) & 1 != 0 {
            return None;
        }
        // The lowest empty cell: adding one to a column of ones carries there.
        let cell = (occupied + (1 << (8 * column))) & !occupied & (0xff << (8 * column));
        let mut planes = *state.board.planes();
        set(&mut planes, cell, state.next_disc);
        Some(Self {
            planes,
            occupied: occupied | cell,
            points: 0,
            depth: 0,
            popped: 0,
            revealed: 0,
            disc: state.next_disc,
            moves_remaining: state.moves_remaining,
            rose: false,
            cleared: false,
            game_over: false,
        })
    }

    /// Plays on until a wave reveals a gray disc; `None` when the move has ended first.
    #[inline(always)]
    fn next_reveal(
        &mut self,
        gravity: impl Gravity,
        observe: &mut impl FnMut(Wave),
    ) -> Option<Poppers> {
        loop {
            match self.poppers() {
                Some(wave) if wave.revealed != 0 => return Some(wave),
                Some(wave) => self.fall(gravity, &wave, observe),
                None if self.rises() => {}
                None => return None,
            }
        }
    }

    /// The wave that pops now, its solid discs that are hit once already cracked.
    #[inline(always)]
    fn poppers(&mut self) -> Option<Poppers> {
        let [a, b, c, d] = self.planes;
        let occupied = self.occupied;
        let row = row_lengths(occupied);
        let column = column_lengths(occupied);
        let equal = |length: [u64; 3]| !((a ^ length[0]) | (b ^ length[1]) | (c ^ length[2]));
        let popping = (equal(row) | equal(column)) & occupied & !d;
        if popping == 0 {
            return None;
        }
        // Bit 7 of a byte holds no disc, so what leaves a column upwards or downwards hits nothing.
        let (up, down, left, right) = (popping << 1, popping >> 1, popping >> 8, popping << 8);
        let once = up | down | left | right;
        let twice = (up & down) | (left & right) | ((up | down) & (left | right));
        let revealed = d & ((a & once) | (!a & twice));
        self.planes[0] |= d & once & !twice;
        Some(Poppers { popping, revealed })
    }

    /// Draws the numbers of the revealed discs, row by row from the top, and lets the wave fall.
    #[inline(always)]
    fn reveal(
        &mut self,
        gravity: impl Gravity,
        wave: &Poppers,
        chance: &mut impl Chance,
        observe: &mut impl FnMut(Wave),
    ) {
        let mut rest = wave.revealed;
        self.planes.iter_mut().for_each(|plane| *plane &= !rest);
        while rest != 0 {
            let rows = rest | rest >> 32;
            let rows = rows | rows >> 16;
            let rows = (rows | rows >> 8) & 0x7f;
            let highest = rows.ilog2();
            let mut row = rest & (BOTTOM << highest);
            rest ^= row;
            while row != 0 {
                let cell = row & row.wrapping_neg();
                row ^= cell;
                set(&mut self.planes, cell, chance.draw());
            }
        }
        self.fall(gravity, wave, observe);
    }

    /// Removes the popping discs and counts the wave.
    #[inline(always)]
    fn fall(&mut self, gravity: impl Gravity, wave: &Poppers, observe: &mut impl FnMut(Wave)) {
        (self.planes, self.occupied) = gravity.fall(self.planes, self.occupied & !wave.popping);
        self.depth += 1;
        let (popped, revealed) = (wave.popping.count_ones(), wave.revealed.count_ones());
        let points = i64::from(popped) * points_per_disc(self.depth);
        self.popped += popped;
        self.revealed += revealed;
        self.points += points;
        observe(Wave { depth: self.depth, popped, revealed, points });
    }

    /// What follows when nothing pops any more: the clear bonus, then the countdown and the rise.
    /// Whether a rise took place, after which discs may pop again.
    #[inline(always)]
    fn rises(&mut self) -> bool {
        if self.occupied == 0 {
            self.points += CLEAR_BONUS;
            self.cleared = true;
        }
        if self.rose {
            return false;
        }
        self.moves_remaining -= 1;
        if self.moves_remaining != 0 {
            return false;
        }
        if self.occupied & TOP != 0 {
            self.game_over = true;
            return false;
        }
        self.rose = true;
        self.moves_remaining = MOVES_PER_LEVEL;
        self.points += LEVEL_BONUS;
        // The top cells are empty, so nothing leaves its column.
        self.planes.iter_mut().for_each(|plane| *plane <<= 1);
        self.planes[3] |= BOTTOM;
        self.occupied = self.occupied << 1 | BOTTOM;
        true
    }

    #[inline(always)]
    fn ended(&self) -> Move {
        let board = Board::from_planes(self.planes);
        Move {
            after: PublicState {
                board,
                next_disc: self.disc,
                moves_remaining: self.moves_remaining,
                game_over: self.game_over || self.occupied & TOP == TOP,
            },
            delta: self.points,
            rose: self.rose,
            cleared: self.cleared,
            popped: self.popped,
            revealed: self.revealed,
            chain_depth: self.depth,
        }
    }
}

/// Puts a numbered disc into the empty `cell`.
#[inline(always)]
fn set(planes: &mut [u64; 4], cell: u64, disc: u8) {
    for (bit, plane) in planes[..3].iter_mut().enumerate() {
        *plane |= cell & 0_u64.wrapping_sub(u64::from(disc >> bit & 1));
    }
}

/// The three bits of the length of every cell's run within its row.
///
/// A window of length n starts where n cells in a row are occupied; the cells of all such windows are
/// those in runs of at least n.
#[inline(always)]
fn row_lengths(occupied: u64) -> [u64; 3] {
    let start2 = occupied & occupied >> 8;
    let start3 = start2 & occupied >> 16;
    let start4 = start2 & start2 >> 16;
    let start5 = start4 & occupied >> 32;
    let start6 = start3 & start3 >> 24;
    let start7 = start4 & start3 >> 32;
    let two = |cells: u64| cells | cells << 8;
    let three = |cells: u64| cells | cells << 8 | cells << 16;
    let four = |cells: u64| two(cells) | two(cells) << 16;
    let least2 = two(start2);
    let least3 = three(start3);
    let least4 = four(start4);
    let least5 = four(start5) | start5 << 32;
    let least6 = three(start6) | three(start6) << 24;
    let least7 = four(start7) | three(start7) << 32;
    [
        (occupied & !least2) | (least3 & !least4) | (least5 & !least6) | least7,
        (least2 & !least4) | least6,
        least4,
    ]
}

/// The three bits of the height of every cell's column: in a packed column its run is the column.
#[inline(always)]
fn column_lengths(occupied: u64) -> [u64; 3] {
    let odd = occupied & !(occupied >> 1)
        | occupied >> 2 & !(occupied >> 3)
        | occupied >> 4 & !(occupied >> 5)
        | occupied >> 6;
    let two_or_three = occupied >> 1 & !(occupied >> 3) | occupied >> 5;
    [odd, two_or_three, occupied >> 3].map(|bits| {
        let bits = bits & BOTTOM;
        (bits << SIDE) - bits
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::drop7::chance::Mulberry32;

    /// Any packed board: heights and cells.
    fn board() -> impl Strategy<Value = Board> {
        let column = prop::collection::vec(1_u32..=9, 0..=SIDE);
        prop::array::uniform7(column).prop_map(|columns| {
            let word = |cells: Vec<u32>| cells.iter().rev().fold(0, |word, cell| word << 4 | cell);
            Board::from_columns(columns.map(word)).expect("packed")
        })
    }

    proptest! {
        #[test]
        fn every_instruction_set_and_both_halves_play_the_same_move(
            board in board(), disc in 1_u8..=7, moves in 1_u8..=5, column in 0_usize..7, seed: u32,
        ) {
            let state = PublicState::new(board, disc, moves).expect("in range");
            let mut stream = Mulberry32::new(seed);
            let mut waves = Vec::new();
            let whole = resolve_on(
                InstructionSet::PORTABLE, &state, column, &mut stream, |wave| waves.push(wave),
            );
            for set in InstructionSet::available() {
                let mut other_stream = Mulberry32::new(seed);
                let mut seen = Vec::new();
                let observe = |wave| seen.push(wave);
                let other = resolve_on(set, &state, column, &mut other_stream, observe);
                prop_assert_eq!(&other, &whole);
                prop_assert_eq!(&seen, &waves);
                prop_assert_eq!(&other_stream, &stream);
                let mut half_stream = Mulberry32::new(seed);
                let halves = start_on(set, &state, column).map(|start| match start {
                    Start::Settled(played) => played,
                    Start::Pending(pending) => finish_on(set, &pending, &mut half_stream),
                });
                prop_assert_eq!(&halves, &whole);
                prop_assert_eq!(&half_stream, &stream);
            }
        }
    }
}
