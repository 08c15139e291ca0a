//! Serial training against the reference runs: figures, every touched entry, and the bytes of the
//! files, bit for bit.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine_core::drop7::{Game, PublicState};
use engine_core::ntuple::direct::DirectPolicy;
use engine_core::ntuple::promote::warm_start;
use engine_core::ntuple::{Features, Layout, RISE, TrainTables, Weights, file, fingerprint};
use engine_core::progress::{StopToken, Unwatched};
use engine_core::train::{SeedBlock, TrainConfig, Trainer};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::golden_dir::golden;
use crate::train_config::{RunConfig, assert_row, seed, train_to};

#[derive(Deserialize)]
struct TdSerial {
    runs: Vec<Run>,
    traces: Vec<Trace>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    name: String,
    layout: String,
    config: RunConfig,
    progress: Vec<Map<String, Value>>,
    touched_entries: u64,
    touched_sha256: String,
    entries_bit_equal_to_optimistic_start: u64,
    weights_file_sha256: String,
    weights_file_bytes: u64,
    checkpoint_file_sha256: String,
    /// Index, weight bits, E bits, A bits.
    sample: Vec<(u64, u32, u32, u32)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Trace {
    layout: Layout,
    seeds_start_hex: String,
    requested_moves: u64,
    moves: u64,
    games: u64,
    score_sum: i64,
    updates: u64,
    entry_updates: u64,
    abs_delta_sum: f64,
    beta_sum: f64,
    touched_entries: u64,
    fingerprint_fnv: String,
    #[serde(rename = "trace")]
    steps: Vec<Step>,
    games_played: Vec<Played>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Step {
    game: u64,
    #[serde(rename = "move")]
    number: u32,
    seed_hex: String,
    board: String,
    next_disc: u8,
    moves_remaining: u8,
    action: i64,
    decision_value_bits: u32,
    simulations: u64,
    score_delta: i64,
    after_board: String,
    after_moves_remaining: u8,
    terminal: bool,
    reward_bits: u32,
    target_bits: u32,
    prediction_bits: u32,
    delta_bits: u32,
    value_after_update_bits: u32,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Played {
    seed_hex: String,
    score: i64,
    moves: u32,
}

/// A run of more moves, or of more entries, belongs to the ignored suite: the dev profile would
/// need more than about twenty seconds or six gigabytes for it.
fn is_small(run: &Run) -> bool {
    run.config.moves <= 50_000 && run.config.entries <= 200_000_000
}

/// Whether hashing the whole files of a run is quick enough for every test run.
fn has_small_files(run: &Run) -> bool {
    is_small(run) && run.config.entries <= 60_000_000
}

/// The tables of `run` after all its moves, and its reports checked against the record.
fn tables_after(run: &Run, all: &BTreeMap<&str, &Run>) -> Arc<TrainTables> {
    let config = run.config.train();
    assert_eq!(run.layout, run.config.layout, "{}", run.name);
    let tables = match &run.config.init_from {
        None => TrainTables::fresh(config.layout, config.optimistic_rises).unwrap(),
        Some(origin) => {
            let name = origin.strip_suffix("/latest-weights.bin").unwrap();
            let source = tables_after(all[name], all).freeze().unwrap();
            warm_start(&source, config.layout, config.optimistic_rises).unwrap()
        }
    };
    let tables = Arc::new(tables);
    let reports = train_to(&config, &tables, run.config.moves, run.config.chunk_moves);
    assert_eq!(reports.len(), run.progress.len(), "{}: chunks", run.name);
    for (report, row) in reports.iter().zip(&run.progress) {
        assert_row(report, row, 14, &run.name);
    }
    tables
}

fn assert_entries(run: &Run, tables: &TrainTables) {
    let layout = tables.layout();
    let start = layout.start_value(run.config.optimistic_rise_units).to_bits();
    let mut hash = Sha256::new();
    let (mut touched, mut changed) = (0, 0);
    let mut sample = run.sample.iter().peekable();
    tables.for_each_written(|index, record| {
        let bits =
            (index, record.weight.to_bits(), record.error.to_bits(), record.abs_error.to_bits());
        changed += u64::from(bits.1 != start);
        if record.abs_error > 0.0 {
            touched += 1;
            hash.update(index.to_le_bytes());
            for word in [bits.1, bits.2, bits.3] {
                hash.update(word.to_le_bytes());
            }
            if sample.peek().is_some_and(|expected| expected.0 == index) {
                assert_eq!(Some(&bits), sample.next(), "{}", run.name);
            }
        }
    });
    assert_eq!(sample.next(), None, "{}: sampled entry that is not touched", run.name);
    assert_eq!(touched, run.touched_entries, "{}", run.name);
    assert_eq!(tables.touched(), run.touched_entries, "{}", run.name);
    assert_eq!(hex::encode(hash.finalize()), run.touched_sha256, "{}: touched entries", run.name);
    let untouched = layout.entries() - changed;
    assert_eq!(untouched, run.entries_bit_equal_to_optimistic_start, "{}", run.name);
}

fn assert_files(run: &Run, tables: &TrainTables) {
    let weights = file::write_weights(tables, std::io::sink()).unwrap();
    assert_eq!(hex::encode(weights.sha256), run.weights_file_sha256, "{}: weights", run.name);
    assert_eq!(weights.bytes, run.weights_file_bytes, "{}", run.name);
    let checkpoint = file::write_checkpoint(tables, std::io::sink()).unwrap();
    assert_eq!(hex::encode(checkpoint.sha256), run.checkpoint_file_sha256, "{}", run.name);
}

fn check_runs(file: &TdSerial, wanted: impl Fn(&Run) -> bool, check: impl Fn(&Run, &TrainTables)) {
    let all: BTreeMap<&str, &Run> = file.runs.iter().map(|run| (run.name.as_str(), run)).collect();
    for run in file.runs.iter().filter(|run| wanted(run)) {
        check(run, &tables_after(run, &all));
    }
}

#[test]
fn figures_and_every_touched_entry_equal_the_reference() {
    let Some(file) = golden::<TdSerial>("td-serial.json") else { return };
    check_runs(&file, is_small, assert_entries);
}

#[test]
fn files_of_small_runs_equal_the_reference_byte_for_byte() {
    let Some(file) = golden::<TdSerial>("td-serial.json") else { return };
    check_runs(&file, has_small_files, assert_files);
}

#[test]
#[ignore = "big layouts and long runs: minutes, and gigabytes of hashing"]
fn all_runs_equal_the_reference_entries_and_files() {
    let Some(file) = golden::<TdSerial>("td-serial.json") else { return };
    check_runs(
        &file,
        |_| true,
        |run, tables| {
            assert_entries(run, tables);
            assert_files(run, tables);
        },
    );
}

#[test]
#[ignore = "a million moves on a billion entries: seconds in release, minutes in the dev profile"]
fn a_million_serial_moves_have_the_published_fingerprint() {
    let layout: Layout = "rows,cols,win23,win32,phase=all".parse().unwrap();
    let config = TrainConfig::new(layout, SeedBlock { start: 0xa530_0000, count: 2_031_616 });
    let tables = Arc::new(TrainTables::fresh(layout, config.optimistic_rises).unwrap());
    let mut trainer = Trainer::new(config, Arc::clone(&tables)).unwrap();
    let report = trainer.advance(1_000_000, &Unwatched, &StopToken::new());
    assert_eq!(report.moves_total, 1_000_025);
    assert_eq!(fingerprint::fingerprint(&*tables), 0xf9ae_94dd_f767_fc1b);
}

fn fingerprint(tables: &TrainTables) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for index in 0..tables.layout().entries() {
        hash = (hash ^ u64::from(tables.weight(index).to_bits())).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

fn board_text(state: &PublicState) -> String {
    (0..49).map(|cell| char::from(b'0' + state.board().cell(cell / 7, cell % 7))).collect()
}

fn trace_config(trace: &Trace) -> TrainConfig {
    let start = seed(&trace.seeds_start_hex);
    TrainConfig::new(trace.layout, SeedBlock { start, count: u32::MAX })
}

#[test]
fn every_step_of_a_game_equals_the_traces() {
    let Some(file) = golden::<TdSerial>("td-serial.json") else { return };
    for trace in &file.traces {
        let config = trace_config(trace);
        let tables = TrainTables::fresh(trace.layout, config.optimistic_rises).unwrap();
        let mut policy = DirectPolicy::new(&tables);
        let mut steps = trace.steps.iter().peekable();
        let mut games = trace.games_played.iter();
        let (mut moves, mut number) = (0, 0);
        let (mut previous, mut next) = (Features::new(), Features::new());
        while moves < trace.requested_moves {
            let mut game = Game::new(config.seeds.at(number));
            trace.layout.features(game.public().board(), 5, &mut previous);
            while !game.public().is_over() && game.moves_played() < config.move_cap {
                let before = *game.public();
                let number_of_move = game.moves_played();
                let mut value: Option<f32> = None;
                let decision = policy.decide_observed(&before, |column| {
                    if value.is_none_or(|most| column.value > most) {
                        value = Some(column.value);
                    }
                });
                let Some(column) = decision.action else { break };
                let played = game.play(column).unwrap();
                let reward = played.delta as f32 / RISE;
                let terminal = played.after.is_over();
                let mut target = reward;
                if !terminal {
                    let after = &played.after;
                    trace.layout.features(after.board(), after.moves_remaining(), &mut next);
                    target = reward + tables.value(&next);
                }
                let update = tables.update(&previous, target, config.alpha, config.clamp);
                let here = (number, number_of_move);
                if steps.peek().is_some_and(|step| (step.game, step.number) == here) {
                    let step = Step {
                        game: number,
                        number: number_of_move,
                        seed_hex: format!("{:#010x}", game.seed()),
                        board: board_text(&before),
                        next_disc: before.next_disc(),
                        moves_remaining: before.moves_remaining(),
                        action: column as i64,
                        decision_value_bits: value.unwrap().to_bits(),
                        simulations: decision.simulations,
                        score_delta: played.delta,
                        after_board: board_text(&played.after),
                        after_moves_remaining: played.after.moves_remaining(),
                        terminal,
                        reward_bits: reward.to_bits(),
                        target_bits: target.to_bits(),
                        prediction_bits: update.prediction.to_bits(),
                        delta_bits: update.delta.to_bits(),
                        value_after_update_bits: tables.value(&previous).to_bits(),
                    };
                    assert_eq!(Some(&step), steps.next());
                }
                std::mem::swap(&mut previous, &mut next);
            }
            let played = Played {
                seed_hex: format!("{:#010x}", game.seed()),
                score: game.score(),
                moves: game.moves_played(),
            };
            assert_eq!(Some(&played), games.next(), "game {number}");
            moves += u64::from(game.moves_played());
            number += 1;
        }
        assert_eq!((steps.next(), games.next()), (None, None), "the record goes on");
        assert_eq!((moves, number), (trace.moves, trace.games));
        assert_eq!(tables.touched(), trace.touched_entries);
        assert_eq!(fingerprint(&tables), trace.fingerprint_fnv);
    }
}

#[test]
fn the_trainer_repeats_the_traces() {
    let Some(file) = golden::<TdSerial>("td-serial.json") else { return };
    for trace in &file.traces {
        let config = trace_config(trace);
        let tables = Arc::new(TrainTables::fresh(trace.layout, config.optimistic_rises).unwrap());
        let mut trainer = Trainer::new(config, Arc::clone(&tables)).unwrap();
        let report = trainer.advance(trace.requested_moves, &Unwatched, &StopToken::new());
        let tally = &report.tally;
        assert_eq!((report.moves_total, report.games_total), (trace.moves, trace.games));
        assert_eq!((tally.moves, tally.games), (trace.moves, trace.games));
        assert_eq!(tally.score_sum, trace.score_sum);
        let best = trace.games_played.iter().map(|game| game.score).max();
        assert_eq!(Some(tally.max_score), best);
        assert_eq!((tally.updates, tally.entry_updates), (trace.updates, trace.entry_updates));
        assert_eq!(tally.abs_delta_sum.to_bits(), trace.abs_delta_sum.to_bits());
        assert_eq!(tally.beta_sum.to_bits(), trace.beta_sum.to_bits());
        assert_eq!(tables.touched(), trace.touched_entries);
        assert_eq!(fingerprint(&tables), trace.fingerprint_fnv);
    }
}
