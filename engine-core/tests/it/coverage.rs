//! Which corners of the rules the recorded moves and games turn: a comparison that never meets a
//! blocked rise says nothing about blocked rises.

use std::collections::BTreeMap;

use engine_core::drop7::chance::Mulberry32;
use engine_core::drop7::rules::{Move, resolve_observed};
use engine_core::drop7::{Board, PublicState};

use crate::{naive, rules, trajectories};

/// Everything the committed files must contain, by name.
const CORNERS: [&str; 21] = [
    "a rejected move",
    "a move that pops nothing",
    "a board emptied in mid-level",
    "a board emptied before the rise of the same move",
    "a board emptied after the rise",
    "a rise",
    "a rise on a board without a disc",
    "a blocked rise",
    "a rise that fills the board",
    "a filled board in mid-level",
    "a chain that goes on over the rise",
    "a chain that starts after the rise",
    "reveals in several waves of a move",
    "several reveals in one wave",
    "a chain of depth 5",
    "a chain of depth 10",
    "seven pops in one wave",
    "a cracked cover",
    "a cracked cover that opens",
    "a solid cover that opens at once",
    "poppers before the drop",
];

fn corners_of(state: &PublicState, column: usize, seed: u32) -> impl Iterator<Item = &'static str> {
    let mut waves = Vec::new();
    let mut reveals = Mulberry32::new(seed);
    let played = resolve_observed(state, column, &mut reveals, |wave| waves.push(wave));
    let Some(Move { after, rose, cleared, chain_depth, .. }) = played else {
        return vec![CORNERS[0]].into_iter();
    };
    let hits = naive::hits(state, column, &mut Mulberry32::new(seed));
    let empty = *after.board() == Board::CLEAR;
    let only_grays = after.board().columns() == Board::INITIAL.columns();
    // The waves before the rise are those of the same move with a longer countdown.
    let mut unhurried = Vec::new();
    let later = PublicState::new(*state.board(), state.next_disc(), 5).expect("in range");
    resolve_observed(&later, column, &mut Mulberry32::new(seed), |wave| unhurried.push(wave));
    let after_rise = if rose { waves.len() - unhurried.len() } else { 0 };
    let turned = [
        false,
        waves.is_empty(),
        cleared && !rose,
        cleared && rose && !empty,
        cleared && rose && empty,
        rose,
        rose && only_grays,
        after.is_over() && after.moves_remaining() == 0,
        after.is_over() && rose,
        after.is_over() && !rose && after.moves_remaining() > 0,
        after_rise > 0 && !unhurried.is_empty(),
        after_rise > 0 && unhurried.is_empty(),
        waves.iter().filter(|wave| wave.revealed > 0).count() > 1,
        waves.iter().any(|wave| wave.revealed > 1),
        chain_depth >= 5,
        chain_depth >= 10,
        waves.iter().any(|wave| wave.popped >= 7),
        hits.cracked > 0,
        hits.opened > 0,
        hits.opened_at_once > 0,
        has_poppers(state.board()),
    ];
    let named: Vec<&str> =
        CORNERS.into_iter().zip(turned).filter(|&(_, yes)| yes).map(|(name, _)| name).collect();
    named.into_iter()
}

/// Whether a disc already stands in a run of its own number. Its column is its vertical run.
fn has_poppers(board: &Board) -> bool {
    (0..49).any(|i| {
        let (row, column) = (i / 7, i % 7);
        let cell = u32::from(board.cell(row, column));
        let right = (column..7).take_while(|&c| board.cell(row, c) != 0).count();
        let left = (0..column).rev().take_while(|&c| board.cell(row, c) != 0).count();
        (1..=7).contains(&cell) && (cell == board.height(column) || cell as usize == left + right)
    })
}

#[test]
fn the_recorded_moves_turn_every_corner_of_the_rules() {
    let mut moves = rules::recorded_moves();
    moves.extend(trajectories::recorded_moves());
    let mut seen = BTreeMap::new();
    for (state, column, seed) in &moves {
        for corner in corners_of(state, *column, *seed) {
            *seen.entry(corner).or_insert(0_u32) += 1;
        }
    }
    // Files from elsewhere have their own corners: only the committed ones must have them all.
    if std::env::var_os("HELDOUT_GOLDEN_DIR").is_none() {
        for corner in CORNERS {
            assert!(seen.contains_key(corner), "no recorded move has {corner}: {seen:?}");
        }
    }
}
