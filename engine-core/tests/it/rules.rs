//! Single moves on arbitrary positions against the recorded ones (`moves.json`).

use engine_core::drop7::chance::{Chance, Mulberry32};
use engine_core::drop7::rules::{Wave, resolve_observed};
use engine_core::drop7::{Board, PublicState};
use serde::Deserialize;

use crate::golden_dir::golden;

#[derive(Deserialize)]
struct File {
    moves: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    tag: String,
    board: [u32; 7],
    cells: String,
    next_disc: u8,
    moves_remaining: u8,
    level: u32,
    mulberry_seed: u32,
    col: usize,
    legal: bool,
    #[serde(flatten)]
    after: Option<Outcome>,
}

/// The moves of `moves.json`, for [`crate::coverage`]: position, column, seed of the reveals.
pub(crate) fn recorded_moves() -> Vec<(PublicState, usize, u32)> {
    let cases = golden::<File>("moves.json").map(|file| file.moves).unwrap_or_default();
    let position = |case: &Case| {
        let board = Board::from_columns(case.board).expect("a board");
        PublicState::new(board, case.next_disc, case.moves_remaining).expect("a state")
    };
    cases.iter().map(|case| (position(case), case.col, case.mulberry_seed)).collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    delta: i64,
    after_board: [u32; 7],
    after_cells: String,
    after_next: u8,
    after_mr: u8,
    after_level: u32,
    over: bool,
    cleared: bool,
    rose: bool,
    waves: Vec<(u32, u32, u32, i64)>,
    mulberry_next_bits_after: u32,
}

/// A wave as the golden files write it: depth, popped, revealed, points.
pub(crate) fn row(wave: Wave) -> (u32, u32, u32, i64) {
    (wave.depth, wave.popped, wave.revealed, wave.points)
}

#[test]
fn single_moves_equal_the_recorded_ones() {
    let Some(file) = golden::<File>("moves.json") else { return };
    assert!(!file.moves.is_empty(), "the file must hold moves");
    for (index, case) in file.moves.iter().enumerate() {
        let at = format!("move {index} ({})", case.tag);
        let board = Board::from_columns(case.board).expect("a board");
        assert_eq!(board.to_string(), case.cells, "{at}");
        assert_eq!(Board::from_text(&case.cells), Ok(board), "{at}");
        let state = PublicState::new(board, case.next_disc, case.moves_remaining).expect("a state");
        let mut stream = Mulberry32::new(case.mulberry_seed);
        let mut waves = Vec::new();
        let played = resolve_observed(&state, case.col, &mut stream, |wave| waves.push(row(wave)));
        assert_eq!(played.is_some(), case.legal, "{at}");
        assert_eq!(board.is_legal(case.col), case.legal, "{at}");
        let Some(played) = played else {
            assert!(waves.is_empty(), "{at}");
            assert_eq!(stream, Mulberry32::new(case.mulberry_seed), "{at}: a draw was taken");
            continue;
        };
        let after = case.after.as_ref().expect("a legal move records what comes after");
        assert_eq!(played.after.board().columns(), after.after_board, "{at}");
        assert_eq!(played.after.board().to_string(), after.after_cells, "{at}");
        assert_eq!(played.delta, after.delta, "{at}");
        assert_eq!(played.after.moves_remaining(), after.after_mr, "{at}");
        assert_eq!(case.level + u32::from(played.rose), after.after_level, "{at}");
        assert_eq!(played.after.is_over(), after.over, "{at}");
        assert_eq!(played.cleared, after.cleared, "{at}");
        assert_eq!(played.rose, after.rose, "{at}");
        assert_eq!(waves, after.waves, "{at}");
        assert_eq!(played.popped, waves.iter().map(|wave| wave.1).sum::<u32>(), "{at}");
        assert_eq!(played.revealed, waves.iter().map(|wave| wave.2).sum::<u32>(), "{at}");
        assert_eq!(played.chain_depth, waves.last().map_or(0, |wave| wave.0), "{at}");
        // The generic driver draws the next disc last, and only when the game goes on.
        let next = if played.after.is_over() { case.next_disc } else { stream.draw() };
        assert_eq!(next, after.after_next, "{at}");
        assert_eq!(stream.next_bits(), after.mulberry_next_bits_after, "{at}: number of draws");
    }
}

#[test]
fn a_finished_game_and_a_column_out_of_range_reject_the_move() {
    let state = PublicState::new(Board::INITIAL, 3, 5).expect("a state");
    let mut stream = Mulberry32::new(1);
    for column in [7, 8, 255, usize::MAX] {
        assert_eq!(resolve_observed(&state, column, &mut stream, |_| {}), None);
        assert!(!state.board().is_legal(column));
    }
    // Seven full columns without a popper but one drop: fill the last cell, then try again.
    let full = Board::from_text("8888880888888888888888888888888888888888888888888").expect("full");
    let state = PublicState::new(full, 1, 4).expect("a state");
    let ended = resolve_observed(&state, 6, &mut stream, |_| {}).expect("legal").after;
    assert!(ended.is_over(), "all seven columns are full");
    for column in 0..7 {
        assert_eq!(resolve_observed(&ended, column, &mut stream, |_| {}), None);
    }
    assert_eq!(stream, Mulberry32::new(1), "nothing was drawn");
}
