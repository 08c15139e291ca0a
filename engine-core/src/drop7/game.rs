//! A whole headless game: seed in, moves played one by one, totals kept.

use super::chance::{headless_disc, reveal_stream};
use super::rules::{Move, Wave, resolve_observed};
use super::scoring::MOVES_PER_LEVEL;
use super::{Board, PublicState};

/// Moves after which a game is cut and counted as censored.
pub const MOVE_CAP: u32 = 2000;

/// A seeded game in progress. Disc `m` depends on (seed, m) only; the reveals of move `p` on
/// (seed, p) and their order within the move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Game {
    seed: u32,
    state: PublicState,
    score: i64,
    level: u32,
    moves_played: u32,
    totals: Totals,
}

/// Sums over the moves of a game.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Numbered discs popped.
    pub popped: u64,
    /// Gray discs revealed.
    pub revealed: u64,
    /// Deepest wave of any move.
    pub chain_depth: u32,
    /// Occupied cells after each move, summed over the moves.
    pub occupied: u64,
    /// Moves that emptied the board.
    pub clears: u32,
}

impl Game {
    /// The first position of the game `seed`.
    pub fn new(seed: u32) -> Self {
        let state = PublicState {
            board: Board::INITIAL,
            next_disc: headless_disc(seed, 0),
            moves_remaining: MOVES_PER_LEVEL,
            game_over: false,
        };
        Self { seed, state, score: 0, level: 1, moves_played: 0, totals: Totals::default() }
    }

    /// What a policy sees of the game.
    pub const fn public(&self) -> &PublicState {
        &self.state
    }

    /// The seed of the game.
    pub const fn seed(&self) -> u32 {
        self.seed
    }

    /// Points so far.
    pub const fn score(&self) -> i64 {
        self.score
    }

    /// Level: 1 at the start, one more per rise.
    pub const fn level(&self) -> u32 {
        self.level
    }

    /// Moves played so far.
    pub const fn moves_played(&self) -> u32 {
        self.moves_played
    }

    /// Sums over the moves so far.
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Plays the visible disc into `column`. `None` when the move is illegal: nothing changes.
    pub fn play(&mut self, column: usize) -> Option<Move> {
        self.play_observed(column, |_| {})
    }

    /// [`Game::play`], showing every wave to `observe`.
    pub fn play_observed(&mut self, column: usize, observe: impl FnMut(Wave)) -> Option<Move> {
        let mut reveals = reveal_stream(self.seed, self.moves_played);
        let mut played = resolve_observed(&self.state, column, &mut reveals, observe)?;
        self.score += played.delta;
        self.level += u32::from(played.rose);
        self.moves_played += 1;
        self.totals.popped += u64::from(played.popped);
        self.totals.revealed += u64::from(played.revealed);
        self.totals.chain_depth = self.totals.chain_depth.max(played.chain_depth);
        self.totals.occupied += u64::from(played.after.board.occupied());
        self.totals.clears += u32::from(played.cleared);
        if !played.after.game_over {
            played.after.next_disc = headless_disc(self.seed, self.moves_played);
        }
        self.state = played.after;
        Some(played)
    }
}
