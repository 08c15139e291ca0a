//! What a policy may see.

use super::Board;

/// Everything public about a position: the board, the disc about to be dropped, the drops left until
/// the rise, and whether the game is over.
///
/// The score, the level, the number of moves played and the seed are **not** here, so no leaf,
/// search or table can read them. `tests/boundary/` holds the programs that must not compile; in
/// short, this does:
///
/// ```
/// fn seen(state: &engine_core::drop7::PublicState) -> (u8, u8, bool) {
///     (state.next_disc(), state.moves_remaining(), state.is_over())
/// }
/// ```
///
/// and none of these does:
///
/// ```compile_fail,E0599
/// fn score(state: &engine_core::drop7::PublicState) -> i64 { state.score() }
/// ```
/// ```compile_fail,E0599
/// fn level(state: &engine_core::drop7::PublicState) -> u32 { state.level() }
/// ```
/// ```compile_fail,E0599
/// fn age(state: &engine_core::drop7::PublicState) -> u32 { state.moves_played() }
/// ```
/// ```compile_fail,E0599
/// fn seed(state: &engine_core::drop7::PublicState) -> u32 { state.seed() }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicState {
    pub(crate) board: Board,
    pub(crate) next_disc: u8,
    pub(crate) moves_remaining: u8,
    pub(crate) game_over: bool,
}

/// A field of a public state is out of its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "next disc {next_disc} must be 1..=7 and moves remaining {moves_remaining} 0..=5, \
     0 only when the game is over"
)]
pub struct PublicStateError {
    /// The disc that was given.
    pub next_disc: u8,
    /// The countdown that was given.
    pub moves_remaining: u8,
}

impl PublicState {
    /// A position that is not over.
    ///
    /// # Errors
    /// When `next_disc` is not 1..=7 or `moves_remaining` is not 1..=5.
    pub fn new(board: Board, next_disc: u8, moves_remaining: u8) -> Result<Self, PublicStateError> {
        if (1..=7).contains(&next_disc) && (1..=5).contains(&moves_remaining) {
            Ok(Self { board, next_disc, moves_remaining, game_over: false })
        } else {
            Err(PublicStateError { next_disc, moves_remaining })
        }
    }

    /// The board.
    pub const fn board(&self) -> &Board {
        &self.board
    }

    /// The disc that will be dropped, 1..=7. When the game is over, the last disc that was dropped.
    pub const fn next_disc(&self) -> u8 {
        self.next_disc
    }

    /// Drops left until the rise, 1..=5; 0 only after a blocked rise ended the game.
    pub const fn moves_remaining(&self) -> u8 {
        self.moves_remaining
    }

    /// Whether the game has ended.
    pub const fn is_over(&self) -> bool {
        self.game_over
    }

    /// The same position with another visible disc (1..=7).
    #[must_use]
    pub const fn with_next_disc(mut self, next_disc: u8) -> Self {
        self.next_disc = next_disc;
        self
    }

    /// The same position on the canonical board, and whether it was mirrored.
    pub fn canonical(&self) -> (Self, bool) {
        let (board, mirrored) = self.board.canonical();
        (Self { board, ..*self }, mirrored)
    }
}
