//! Every random function against the recorded values of the reference (`rng.json`).

use engine_core::drop7::Board;
use engine_core::drop7::chance::{
    Chance, DISC, Mulberry32, REVL, headless_bits, headless_disc, mix32, reveal_stream,
    sampled_next_disc, scenario_seed, stratified_disc, stratified_unit,
};
use engine_core::drop7::scoring::points_per_disc;
use proptest::prelude::*;
use serde::Deserialize;

use crate::golden_dir::golden;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    seeds: Vec<Streams>,
    stratified_unit: Vec<Draw>,
    scenario_seed: Vec<Node>,
    wave_score: Vec<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Streams {
    seed: u32,
    mix32: u32,
    mulberry32_bits: Vec<u32>,
    mulberry32_discs: Vec<u8>,
    headless_disc_bits: Vec<u32>,
    headless_disc: Vec<u8>,
    reveal_seed_for_moves_played: Vec<u32>,
    reveal_discs_for_moves_played: Vec<Vec<u8>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Draw {
    state_seed: u32,
    sample: u32,
    count: u32,
    event: u32,
    reveal_unit: String,
    reveal_disc: u8,
    next_disc_unit: String,
    next_disc: u8,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    board: [u32; 7],
    cells: String,
    next_disc: u8,
    moves_remaining: u8,
    depth: u32,
    policy_seed: u32,
    scenario_seed: u32,
}

#[test]
fn streams_and_hashes_equal_the_recorded_ones() {
    let Some(file) = golden::<File>("rng.json") else { return };
    assert!(!file.seeds.is_empty(), "the file must hold seeds");
    for case in &file.seeds {
        let seed = case.seed;
        assert_eq!(mix32(seed), case.mix32, "mix32({seed})");
        let mut stream = Mulberry32::new(seed);
        let bits: Vec<u32> = case.mulberry32_bits.iter().map(|_| stream.next_bits()).collect();
        assert_eq!(bits, case.mulberry32_bits, "bits of seed {seed}");
        let mut stream = Mulberry32::new(seed);
        let discs: Vec<u8> = case.mulberry32_discs.iter().map(|_| stream.draw()).collect();
        assert_eq!(discs, case.mulberry32_discs, "discs of seed {seed}");

        let moves = 0..case.headless_disc_bits.len() as u32;
        let bits: Vec<u32> = moves.map(|m| headless_bits(seed, m)).collect();
        assert_eq!(bits, case.headless_disc_bits, "headless bits of seed {seed}");
        let moves = 0..case.headless_disc.len() as u32;
        let discs: Vec<u8> = moves.map(|m| headless_disc(seed, m)).collect();
        assert_eq!(discs, case.headless_disc, "headless discs of seed {seed}");

        let moves = 0..case.reveal_seed_for_moves_played.len() as u32;
        let seeds: Vec<u32> = moves.map(|m| reveal_stream(seed, m).state()).collect();
        assert_eq!(seeds, case.reveal_seed_for_moves_played, "reveal seeds of seed {seed}");
        for (played, recorded) in case.reveal_discs_for_moves_played.iter().enumerate() {
            let mut stream = reveal_stream(seed, played as u32);
            let discs: Vec<u8> = recorded.iter().map(|_| stream.draw()).collect();
            assert_eq!(&discs, recorded, "reveals of seed {seed}, move {played}");
        }
    }
}

#[test]
fn stratified_units_equal_the_recorded_ones_bit_for_bit() {
    let Some(file) = golden::<File>("rng.json") else { return };
    assert!(!file.stratified_unit.is_empty(), "the file must hold stratified units");
    for case in &file.stratified_unit {
        let (seed, sample, count) = (case.state_seed, case.sample, case.count);
        let at = format!("seed {seed} sample {sample} of {count} event {}", case.event);
        let unit = stratified_unit(seed, sample, count, REVL, case.event);
        assert_eq!(format!("{:016x}", unit.to_bits()), case.reveal_unit, "reveal {at}");
        let disc = stratified_disc(seed, sample, count, REVL, case.event);
        assert_eq!(disc, case.reveal_disc, "reveal {at}");
        // There is one next disc per sample, its event is always 0.
        let unit = stratified_unit(seed, sample, count, DISC, 0);
        assert_eq!(format!("{:016x}", unit.to_bits()), case.next_disc_unit, "next disc {at}");
        assert_eq!(sampled_next_disc(seed, sample, count), case.next_disc, "next disc {at}");
        assert_eq!(stratified_disc(seed, sample, count, DISC, 0), case.next_disc, "next disc {at}");
    }
}

#[test]
fn scenario_seeds_equal_the_recorded_ones() {
    let Some(file) = golden::<File>("rng.json") else { return };
    assert!(!file.scenario_seed.is_empty(), "the file must hold scenario seeds");
    for case in &file.scenario_seed {
        let board = Board::from_columns(case.board).expect("a board");
        assert_eq!(board, Board::from_text(&case.cells).expect("a board"));
        assert_eq!(board.to_string(), case.cells);
        let (disc, left) = (case.next_disc, case.moves_remaining);
        let seed = scenario_seed(&board, disc, left, case.policy_seed, case.depth);
        assert_eq!(seed, case.scenario_seed, "{board} {disc} {left} depth {}", case.depth);
    }
}

#[test]
fn points_of_a_wave_equal_the_recorded_ones() {
    let Some(file) = golden::<File>("rng.json") else { return };
    assert!(!file.wave_score.is_empty(), "the file must hold wave scores");
    for (index, &points) in file.wave_score.iter().enumerate() {
        assert_eq!(points_per_disc(index as u32 + 1), points, "depth {}", index + 1);
    }
}

proptest! {
    /// Seven strata have a shortcut without floating point: it must be the formula.
    #[test]
    fn the_shortcut_for_seven_strata_is_the_formula(
        seed: u32, sample in 0_u32..7, event in 0_u32..200, reveal: bool
    ) {
        let domain = if reveal { REVL } else { DISC };
        let formula = (stratified_unit(seed, sample, 7, domain, event) * 7.0) as u8 + 1;
        prop_assert_eq!(stratified_disc(seed, sample, 7, domain, event), formula);
    }
}
