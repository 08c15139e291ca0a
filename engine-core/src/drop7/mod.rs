//! Drop7, five-move Hardcore, exactly: one board, one move function, one table of points.
//!
//! Promised here: every board, score, reveal and next disc equals the reference implementation bit
//! for bit (`tests/golden/{rng,moves,trajectories}.json`), on any platform, with integers only.
//! Refused here: any notion of strategy. What a policy may look at is [`PublicState`]; the score,
//! the level, the number of moves played and the seed live in [`Game`] and cannot be read from it.
//!
//! | room | holds |
//! | --- | --- |
//! | [`board`] | four bit planes of 49 cells |
//! | `gravity` | discs that fall, with and without special instructions |
//! | [`rules`] | the one move function, generic over [`chance::Chance`] |
//! | [`scoring`] | points of a wave, bonuses |
//! | [`chance`] | the random streams: headless games, stratified samples of a search |
//! | [`public`] | what a policy sees |
//! | [`game`] | a whole seeded game |

pub mod board;
pub mod chance;
pub mod game;
pub(crate) mod gravity;
pub mod public;
pub mod rules;
pub mod scoring;

pub use board::Board;
pub use game::Game;
pub use public::PublicState;
pub use rules::{Move, resolve};

/// Columns in search order, centre first. Ties in every policy go to the earlier column.
pub const CENTER_FIRST: [usize; 7] = [3, 2, 4, 1, 5, 0, 6];
