//! Screens: arms that play whole games on identical seeds, one row per game.
//!
//! Promised: a row is a function of the player, the seed and the move cap. The number of workers,
//! their order and earlier games do not matter; a stop leaves whole games only.
//! Refused: clocks (whoever runs a screen measures it), seeds from anywhere but the caller, and
//! any sight of the seed, the score or the future for the player.
//!
//! | room | holds |
//! | --- | --- |
//! | [`player`] | who can play, and the policy a player is for one game |
//! | [`row`] | what is kept of a game |

pub mod player;
pub mod row;

pub use player::{Choice, Player, Policy, SearchLeaf};
pub use row::GameRow;

use rayon::prelude::*;

use crate::drop7::rules::Move;
use crate::drop7::{Game, PublicState};
use crate::progress::{Progress, StopToken};

/// One move of a game as it is shown to a watcher.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    /// What the policy saw.
    pub before: &'a PublicState,
    /// What it chose and what that took.
    pub choice: &'a Choice,
    /// What the move did.
    pub played: &'a Move,
    /// The game after the move.
    pub game: &'a Game,
}

/// Plays the game `seed` to its end, or to `move_cap` moves.
pub fn play_game(player: &Player, seed: u32, move_cap: u32) -> GameRow {
    play_game_observed(player, seed, move_cap, |_| {})
}

/// [`play_game`], showing every move to `observe`.
pub fn play_game_observed(
    player: &Player,
    seed: u32,
    move_cap: u32,
    observe: impl FnMut(Turn<'_>),
) -> GameRow {
    play_policy(&mut *player.policy(), seed, move_cap, observe)
}

/// Plays one game with a policy of any kind.
///
/// A choice of no column or of an illegal one counts as illegal and ends the game there; a choice
/// that is not complete is counted and played.
pub fn play_policy(
    policy: &mut (impl Policy + ?Sized),
    seed: u32,
    move_cap: u32,
    mut observe: impl FnMut(Turn<'_>),
) -> GameRow {
    let mut game = Game::new(seed);
    let (mut illegal_decisions, mut incomplete_decisions, mut work) = (0, 0, 0_u64);
    while !game.public().is_over() && game.moves_played() < move_cap {
        let before = *game.public();
        let choice = policy.choose(&before);
        work = work.saturating_add(choice.work);
        incomplete_decisions += u32::from(!choice.complete);
        let Some(played) = choice.action.and_then(|column| game.play(column)) else {
            illegal_decisions += 1;
            break;
        };
        observe(Turn { before: &before, choice: &choice, played: &played, game: &game });
    }
    GameRow::of(&game, move_cap, illegal_decisions, incomplete_decisions, work)
}

/// Plays one game per seed on the threads of `pool`. Row `i` of the result is the game of seed
/// `i`; it is `None` when `stop` was pulled before that game began.
///
/// `on_row` gets every row as soon as its game ends, from the worker that played it and in no
/// particular order; `progress` advances by one per game.
pub fn play_block(
    pool: &rayon::ThreadPool,
    player: &Player,
    seeds: &[u32],
    move_cap: u32,
    progress: &dyn Progress,
    stop: &StopToken,
    on_row: &(dyn Fn(usize, &GameRow) + Sync),
) -> Vec<Option<GameRow>> {
    let play = |(index, &seed): (usize, &u32)| {
        if stop.is_stopped() {
            return None;
        }
        let row = play_game(player, seed, move_cap);
        on_row(index, &row);
        progress.advance(1);
        Some(row)
    };
    // Games differ in length by a factor of ten: hand them out one by one.
    pool.install(|| seeds.par_iter().enumerate().with_max_len(1).map(play).collect())
}
