//! What a screen keeps of a game.

use serde::{Deserialize, Serialize};

use crate::drop7::Game;

/// One game of one arm. Integers only, so that rows can be compared, hashed and stored exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GameRow {
    /// The seed of the game.
    pub seed: u32,
    /// Points at the end.
    pub score: i64,
    /// Moves played.
    pub moves: u32,
    /// Numbered discs popped.
    pub numbered_cleared: u64,
    /// Gray discs revealed.
    pub covers_revealed: u64,
    /// Deepest wave of any move.
    pub max_chain_depth: u32,
    /// Occupied cells after each move, summed over the moves.
    pub occupied_sum: u64,
    /// Whether the move cap cut the game; its score counts as it stands.
    pub censored: bool,
    /// 1 when the player chose no column or an illegal one, which ends the game.
    pub illegal_decisions: u32,
    /// Decisions that a work limit cut short of the configured depth.
    pub incomplete_decisions: u32,
    /// Logical work of all decisions.
    pub work: u64,
    /// Moves that emptied the board.
    pub clears: u32,
}

impl GameRow {
    pub(super) fn of(
        game: &Game,
        move_cap: u32,
        illegal_decisions: u32,
        incomplete_decisions: u32,
        work: u64,
    ) -> Self {
        let totals = game.totals();
        Self {
            seed: game.seed(),
            score: game.score(),
            moves: game.moves_played(),
            numbered_cleared: totals.popped,
            covers_revealed: totals.revealed,
            max_chain_depth: totals.chain_depth,
            occupied_sum: totals.occupied,
            censored: !game.public().is_over() && game.moves_played() >= move_cap,
            illegal_decisions,
            incomplete_decisions,
            work,
            clears: totals.clears,
        }
    }

    /// Occupied cells after a move, mean over the moves, 0..=49. 0 for a game without a move.
    pub fn mean_occupied(&self) -> f64 {
        self.occupied_sum as f64 / f64::from(self.moves.max(1))
    }
}
