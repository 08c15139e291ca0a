//! The frozen fair leaf against the recorded bits (`leaf.json`): the value and all eighteen terms.

use engine_core::drop7::{Board, PublicState};
use engine_core::leaf::{FairLeaf, Leaf, fair};
use serde::Deserialize;

use crate::golden_dir::golden;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    term_names: Vec<String>,
    states: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    tag: String,
    board: [u32; 7],
    cells: String,
    next_disc: u8,
    moves_remaining: u8,
    value: f64,
    bits: String,
    terms: Vec<String>,
}

fn hex(value: f64) -> String {
    format!("{:016x}", value.to_bits())
}

#[test]
fn value_and_terms_equal_the_recorded_bits() {
    let Some(file) = golden::<File>("leaf.json") else { return };
    assert!(!file.states.is_empty(), "the file must hold states");
    assert_eq!(file.term_names, fair::TERM_NAMES);
    for (index, case) in file.states.iter().enumerate() {
        let board = Board::from_columns(case.board).expect("a board");
        assert_eq!(board.to_string(), case.cells);
        let state = PublicState::new(board, case.next_disc, case.moves_remaining).expect("a state");
        let terms = fair::terms(&state);
        for (k, (term, recorded)) in terms.iter().zip(&case.terms).enumerate() {
            let name = fair::TERM_NAMES[k];
            assert_eq!(hex(*term), *recorded, "{index} {} {state:?}: {name} = {term}", case.tag);
        }
        assert_eq!(case.terms.len(), terms.len());
        let value = FairLeaf.value(&state);
        assert_eq!(hex(value), case.bits, "{index} {} {state:?}: {value}", case.tag);
        assert_eq!(hex(value), hex(case.value), "{index}: the file disagrees with itself");
    }
}

#[test]
fn the_board_part_of_another_disc_finishes_to_the_same_bits() {
    let Some(file) = golden::<File>("leaf.json") else { return };
    for case in &file.states {
        let board = Board::from_columns(case.board).expect("a board");
        let state = PublicState::new(board, case.next_disc, case.moves_remaining).expect("a state");
        let mut parts = Vec::new();
        FairLeaf.board_parts(&[state, state], &mut fair::Workspace::default(), &mut parts);
        assert_eq!(parts[0], parts[1]);
        for disc in 1..=7 {
            let other = state.with_next_disc(disc);
            assert_eq!(hex(FairLeaf.finish(parts[0], disc)), hex(FairLeaf.value(&other)));
        }
    }
}
