//! Sixteen positions side by side against one position after the other.

use engine_core::drop7::{Board, Game};
use engine_core::instructions::InstructionSet;
use engine_core::ntuple::{Features, LANES, Lanes, Layout, TrainTables, Weights};
use proptest::prelude::*;

use crate::synthetic::Synthetic;
use crate::tuples::any_layout;

fn any_board() -> impl Strategy<Value = Board> {
    prop::collection::vec(prop::collection::vec(1_u32..=9, 0..=7), 7).prop_map(|columns| {
        let words: Vec<u32> = columns
            .iter()
            .map(|cells| cells.iter().rev().fold(0, |word, cell| word << 4 | cell))
            .collect();
        Board::from_columns(words.try_into().unwrap()).unwrap().canonical().0
    })
}

fn one_by_one(layout: &Layout, (board, moves_remaining): &(Board, u8)) -> Features {
    let mut features = Features::new();
    layout.features(board, *moves_remaining, &mut features);
    features
}

/// All lanes of `positions`, on every instruction set.
fn assert_lanes(layout: &Layout, positions: &[(Board, u8)], lanes: &mut Lanes) {
    for set in InstructionSet::available() {
        layout.lanes_on(set, positions, lanes);
        assert_eq!(lanes.filled(), positions.len());
        let mut found = Features::new();
        for lane in 0..LANES {
            lanes.features(lane, &mut found);
            let position = positions.get(lane).unwrap_or(&positions[positions.len() - 1]);
            assert_eq!(found, one_by_one(layout, position), "{layout} lane {lane} on {set:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn lanes_hold_the_entries_of_their_positions(
        positions in prop::collection::vec((any_board(), 0_u8..=7), 1..=LANES),
        layouts in prop::collection::vec(any_layout(), 1..4),
    ) {
        let mut lanes = Lanes::new();
        for layout in layouts {
            assert_lanes(&layout, &positions, &mut lanes);
        }
    }

    #[test]
    fn values_are_the_sums_of_one_position_after_the_other(
        positions in prop::collection::vec((any_board(), 1_u8..=5), 0..40),
        layout in any_layout(),
    ) {
        let weights = Synthetic::new(&layout.to_string());
        let (mut lanes, mut values) = (Lanes::new(), vec![1.0; 3]);
        weights.values(&mut lanes, &positions, &mut values);
        prop_assert_eq!(values.len(), positions.len());
        for (position, value) in positions.iter().zip(values) {
            let expected = weights.value(&one_by_one(&layout, position));
            prop_assert_eq!(value.to_bits(), expected.to_bits());
        }
    }
}

/// Canonical positions of games with columns by the seed.
fn played(seeds: std::ops::Range<u32>) -> Vec<(Board, u8)> {
    let mut positions = Vec::new();
    for seed in seeds {
        let mut game = Game::new(seed);
        while !game.public().is_over() {
            let (state, _) = game.public().canonical();
            positions.push((*state.board(), state.moves_remaining()));
            let wish = (seed + game.moves_played() * 5) as usize % 7;
            let legal = (0..7).map(|n| (wish + n) % 7).find(|&c| state.board().is_legal(c));
            if legal.is_none_or(|column| game.play(column).is_none()) {
                break;
            }
        }
    }
    positions
}

#[test]
fn positions_of_games_in_batches_of_every_size() {
    let positions = played(0..6);
    assert!(positions.len() > 100);
    for text in [
        "rows,cols,win23,win32,win24,win42,phase=all",
        "rows,cols,win23,win32,phase=cols,fill=occ5",
        "win23,win32,phase=none,fill=hgt5",
        "win42",
    ] {
        let layout = text.parse().unwrap();
        let mut lanes = Lanes::new();
        for size in 1..=LANES {
            positions.chunks(size).for_each(|batch| assert_lanes(&layout, batch, &mut lanes));
        }
    }
}

#[test]
fn tables_sum_what_they_hold() {
    let positions = played(10..16);
    for text in ["rows,cols,win23,win32,phase=all", "win23,win32,phase=none,fill=hgt5"] {
        let layout: Layout = text.parse().unwrap();
        let tables = TrainTables::fresh(layout, 20.0).unwrap();
        for (n, position) in positions.iter().enumerate().step_by(2) {
            tables.update(&one_by_one(&layout, position), n as f32, 1.0, 30.0);
        }
        let frozen = tables.freeze().unwrap();
        let (mut lanes, mut live, mut still) = (Lanes::new(), Vec::new(), Vec::new());
        for size in [1, 2, 5, 8, 9, 15, 16, 17, 40] {
            for batch in positions.chunks(size) {
                tables.values(&mut lanes, batch, &mut live);
                frozen.values(&mut lanes, batch, &mut still);
                for (n, position) in batch.iter().enumerate() {
                    let expected = tables.value(&one_by_one(&layout, position)).to_bits();
                    assert_eq!(live[n].to_bits(), expected);
                    assert_eq!(still[n].to_bits(), expected);
                }
            }
        }
    }
}

#[test]
fn an_empty_batch_has_no_values() {
    let weights = Synthetic::new("rows");
    let mut values = vec![1.0];
    weights.values(&mut Lanes::new(), &[], &mut values);
    assert!(values.is_empty());
}

#[test]
#[should_panic(expected = "17 positions do not fit")]
fn more_positions_than_lanes_are_refused() {
    let layout: Layout = "rows".parse().unwrap();
    layout.lanes(&[(Board::INITIAL, 5); LANES + 1], &mut Lanes::new());
}
