//! What is said about one arm of a screen.

use serde::{Deserialize, Serialize};

use super::summary::MILLION;
use super::{Played, StatsError, Summary, pairwise};
use crate::screen::GameRow;

/// The figures of an arm over all its games. Wall time is not among them: whoever runs games
/// measures it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    /// Games, at least 1.
    pub games: usize,
    /// Points per game.
    pub score: Summary,
    /// Moves per game.
    pub moves: Summary,
    /// Games of a million points or more.
    pub million_games: usize,
    /// Numbered discs popped per move, over all moves of all games.
    pub clears_per_move: f64,
    /// Gray discs revealed per move, over all moves of all games.
    pub reveals_per_move: f64,
    /// Occupied cells after a move, 0..=49: the mean over the games of each game's own mean.
    pub mean_occupied: f64,
    /// Deepest wave of any move.
    pub max_chain_depth: u32,
    /// Moves that emptied the board.
    pub board_clears: u64,
    /// Games cut by the move cap.
    pub censored: usize,
    /// Illegal decisions.
    pub illegal: u64,
    /// Incomplete decisions.
    pub incomplete: u64,
    /// Logical work per game.
    pub mean_work: f64,
}

impl ArmSummary {
    /// The summary of `rows`, in seed order: the last bits of means of fractions depend on it.
    ///
    /// # Errors
    /// When there is no row.
    pub fn of(rows: &[GameRow]) -> Result<Self, StatsError> {
        let series = |of: fn(&GameRow) -> f64| rows.iter().map(of).collect::<Vec<f64>>();
        let total = |of: fn(&GameRow) -> u64| rows.iter().map(of).sum::<u64>();
        let scores = series(|row| row.score as f64);
        let per_move = |sum: u64| sum as f64 / total(|row| row.moves.into()).max(1) as f64;
        Ok(Self {
            games: rows.len(),
            score: Summary::of(&scores)?,
            moves: Summary::of(&series(|row| row.moves.into()))?,
            million_games: scores.iter().filter(|&&score| score >= MILLION).count(),
            clears_per_move: per_move(total(|row| row.numbered_cleared)),
            reveals_per_move: per_move(total(|row| row.covers_revealed)),
            mean_occupied: pairwise::mean(&series(GameRow::mean_occupied))?,
            max_chain_depth: rows.iter().map(|row| row.max_chain_depth).max().unwrap_or(0),
            board_clears: total(|row| row.clears.into()),
            censored: rows.iter().filter(|row| row.censored).count(),
            illegal: total(|row| row.illegal_decisions.into()),
            incomplete: total(|row| row.incomplete_decisions.into()),
            mean_work: pairwise::mean(&series(|row| row.work as f64))?,
        })
    }
}

impl From<&GameRow> for Played {
    fn from(row: &GameRow) -> Self {
        Self {
            seed: row.seed,
            score: row.score,
            moves: row.moves,
            illegal_decisions: row.illegal_decisions,
            incomplete_decisions: row.incomplete_decisions,
        }
    }
}
