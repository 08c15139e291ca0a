//! Whole games, move by move, against the recorded ones (`trajectories.json`).

use engine_core::drop7::chance::{A, Mulberry32, reveal_stream};
use engine_core::drop7::{Board, CENTER_FIRST, Game, PublicState};
use serde::Deserialize;

use crate::golden_dir::golden;
use crate::rules::row;

#[derive(Deserialize)]
struct File {
    games: Vec<Recorded>,
}

#[derive(Deserialize)]
struct Recorded {
    seed: u32,
    policy: String,
    initial: Initial,
    moves: Vec<Step>,
    r#final: Final,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initial {
    board: [u32; 7],
    cells: String,
    next_disc: u8,
    moves_remaining: u8,
    level: u32,
}

#[derive(Deserialize)]
struct Step {
    col: usize,
    delta: i64,
    board: [u32; 7],
    next: u8,
    mr: u8,
    level: u32,
    over: bool,
    cleared: bool,
    rose: bool,
    waves: Vec<(u32, u32, u32, i64)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Final {
    score: i64,
    moves: u32,
    level: u32,
    moves_remaining: u8,
    game_over: bool,
    total_clears: u64,
    total_reveals: u64,
    max_chain_depth: u32,
    board_clear_moves: u32,
}

/// The moves of `trajectories.json`, for [`crate::coverage`]: position, column, seed of the reveals.
pub(crate) fn recorded_moves() -> Vec<(PublicState, usize, u32)> {
    let games = golden::<File>("trajectories.json").map(|file| file.games).unwrap_or_default();
    let mut moves = Vec::new();
    for recorded in games {
        let mut game = Game::new(recorded.seed);
        for step in &recorded.moves {
            let reveals = reveal_stream(recorded.seed, game.moves_played());
            moves.push((*game.public(), step.col, reveals.state()));
            game.play(step.col).expect("a recorded move is legal");
        }
    }
    moves
}

/// The column the named policy would choose, where the name defines it.
fn choice(policy: &str, board: &Board, stream: &mut Mulberry32) -> Option<usize> {
    match policy {
        "center" => CENTER_FIRST.into_iter().find(|&column| board.is_legal(column)),
        "random" => {
            let legal: Vec<usize> = (0..7).filter(|&column| board.is_legal(column)).collect();
            let index = (u64::from(stream.next_bits()) * legal.len() as u64) >> 32;
            legal.get(index as usize).copied()
        }
        _ => None,
    }
}

#[test]
fn whole_games_equal_the_recorded_ones() {
    let Some(file) = golden::<File>("trajectories.json") else { return };
    assert!(!file.games.is_empty(), "the file must hold games");
    for Recorded { seed, policy, initial, moves, r#final: end } in &file.games {
        let mut game = Game::new(*seed);
        let mut stream = Mulberry32::new(seed ^ A);
        assert_eq!(game.public().board().columns(), initial.board);
        assert_eq!(game.public().board().to_string(), initial.cells);
        assert_eq!(game.public().next_disc(), initial.next_disc, "seed {seed}");
        assert_eq!(game.public().moves_remaining(), initial.moves_remaining);
        assert_eq!(game.level(), initial.level);
        assert_eq!((game.seed(), game.score(), game.moves_played()), (*seed, 0, 0));

        for (index, step) in moves.iter().enumerate() {
            let at = format!("{policy} game {seed}, move {index}");
            if let Some(column) = choice(policy, game.public().board(), &mut stream) {
                assert_eq!(column, step.col, "{at}: choice");
            }
            let before = game.score();
            let mut waves = Vec::new();
            let played =
                game.play_observed(step.col, |wave| waves.push(row(wave))).expect("recorded");
            assert_eq!(waves, step.waves, "{at}");
            assert_eq!(played.delta, step.delta, "{at}");
            assert_eq!(game.score() - before, step.delta, "{at}");
            assert_eq!(game.public().board().columns(), step.board, "{at}");
            assert_eq!(game.public().next_disc(), step.next, "{at}");
            assert_eq!(game.public().moves_remaining(), step.mr, "{at}");
            assert_eq!(game.level(), step.level, "{at}");
            assert_eq!(game.public().is_over(), step.over, "{at}");
            assert_eq!(played.cleared, step.cleared, "{at}");
            assert_eq!(played.rose, step.rose, "{at}");
        }

        let at = format!("{policy} game {seed}, end");
        assert_eq!(game.score(), end.score, "{at}");
        assert_eq!(game.moves_played(), end.moves, "{at}");
        assert_eq!(game.moves_played() as usize, moves.len(), "{at}");
        assert_eq!(game.level(), end.level, "{at}");
        assert_eq!(game.public().moves_remaining(), end.moves_remaining, "{at}");
        assert_eq!(game.public().is_over(), end.game_over, "{at}");
        let totals = game.totals();
        assert_eq!(totals.popped, end.total_clears, "{at}");
        assert_eq!(totals.revealed, end.total_reveals, "{at}");
        assert_eq!(totals.chain_depth, end.max_chain_depth, "{at}");
        assert_eq!(totals.clears, end.board_clear_moves, "{at}");
        if end.game_over {
            let unchanged = game.clone();
            assert_eq!(game.play(3), None, "{at}: a finished game takes no move");
            assert_eq!(game, unchanged, "{at}");
        }
    }
}
