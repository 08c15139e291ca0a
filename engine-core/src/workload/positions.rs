//! Positions to decide on and to evaluate: from the rules and the probe seeds, so they are the same on
//! every machine and in every build.

use std::sync::Arc;

use super::FIRST_SEED;
use crate::check::probes as check_probes;
use crate::drop7::game::MOVE_CAP;
use crate::drop7::{Board, PublicState};
use crate::ntuple::FrozenTables;
use crate::screen::{Player, SearchLeaf, play_game_observed};
use crate::search::{SearchConfig, SearchError};

/// How many [`roots`] there are.
pub const ROOTS: usize = 20;

/// Moves after which a game gives a root.
const ROOT_MOVES: [u32; 5] = [4, 12, 20, 28, 36];

/// Unfinished, canonical positions of random play.
pub fn probes() -> Vec<PublicState> {
    let probes = check_probes::probes().into_iter();
    probes.filter(|probe| !probe.state.is_over()).map(|probe| probe.state.canonical().0).collect()
}

/// All positions before a move of the games of `games` seeds as the fair leaf at one ply plays them.
///
/// # Errors
/// Never: the search is one of those that can be set up.
pub fn played_by_fair(games: u32) -> Result<Vec<Vec<PublicState>>, SearchError> {
    let config = SearchConfig::bounded(1, 7)?;
    let player = Player::Search { config, leaf: SearchLeaf::Fair };
    Ok((1..=games).map(|game| positions(&player, FIRST_SEED + game)).collect())
}

/// Twenty positions early to late in games of the fair leaf at one ply.
///
/// # Errors
/// As [`played_by_fair`].
pub fn roots() -> Result<Vec<PublicState>, SearchError> {
    let games = played_by_fair(16)?;
    let at = |game: &Vec<PublicState>| {
        ROOT_MOVES.map(|moves| game.get(moves as usize).copied()).into_iter().flatten()
    };
    // The k-th root of all games before the (k+1)-th of the first would make a short list of early
    // ones: a game gives all it has.
    Ok(games
        .iter()
        .filter(|game| game.len() > ROOT_MOVES[ROOT_MOVES.len() - 1] as usize)
        .flat_map(at)
        .take(ROOTS)
        .collect())
}

/// The first `count` positions that the one-ply policy over `tables` sees.
pub fn played_by_tables(tables: &Arc<FrozenTables>, count: usize) -> Vec<PublicState> {
    let player = Player::Direct(Arc::clone(tables));
    let mut seen = Vec::new();
    for seed in FIRST_SEED..FIRST_SEED + 0x400 {
        if seen.len() >= count {
            break;
        }
        seen.extend(positions(&player, seed));
    }
    seen.truncate(count);
    seen
}

fn positions(player: &Player, seed: u32) -> Vec<PublicState> {
    let mut seen = Vec::new();
    play_game_observed(player, seed, MOVE_CAP, |turn| seen.push(*turn.before));
    seen
}

/// Canonical boards with the drops left: what tables are asked about.
pub fn boards(states: &[PublicState]) -> Vec<(Board, u8)> {
    let board = |state: &PublicState| (*state.canonical().0.board(), state.moves_remaining());
    states.iter().map(board).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_twenty_roots_early_and_late() {
        let roots = roots().unwrap();
        assert_eq!(roots.len(), ROOTS);
        assert!(roots.iter().all(|root| !root.is_over()));
        let occupied = |root: &PublicState| root.board().occupied();
        assert!(roots.iter().map(occupied).min() < roots.iter().map(occupied).max());
    }
}
