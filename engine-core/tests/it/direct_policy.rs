//! The one-ply policy against `direct-policy.json`, and against itself on mirror images.

use std::collections::BTreeMap;

use engine_core::drop7::chance::{POLICY_SEED, scenario_seed};
use engine_core::drop7::{Board, CENTER_FIRST, Game, PublicState, resolve};
use engine_core::ntuple::direct::{ColumnValue, DirectDecision, DirectPolicy, SAMPLES};
use engine_core::ntuple::{Features, Weights, file};
use serde::Deserialize;

use crate::golden_dir::golden;
use crate::synthetic::Synthetic;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Golden {
    policy: GoldenPolicy,
    models: Vec<Model>,
    synthetic_file_sha256: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoldenPolicy {
    reveal_samples: u32,
    policy_seed_hex: String,
    column_order: Vec<usize>,
    seed_depth: u32,
}

#[derive(Deserialize)]
struct Model {
    name: String,
    layout: String,
    decisions: Vec<Decision>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Decision {
    id: String,
    board: String,
    next_disc: u8,
    moves_remaining: u8,
    game_over: bool,
    mirrored_is_smaller: bool,
    canonical_board: String,
    state_seed: u32,
    canonical_columns: Vec<Column>,
    action: i64,
    value_bits: Option<u32>,
    simulations: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Column {
    #[serde(rename_all = "camelCase")]
    Legal {
        column: usize,
        value: f64,
        value_bits: u32,
        simulations: u64,
    },
    Illegal {
        column: usize,
        illegal: bool,
    },
}

/// The recorded position. A finished one is reached the only way there is: by a last move.
fn state(decision: &Decision) -> PublicState {
    let board = Board::from_text(&decision.board).unwrap();
    if !decision.game_over {
        return PublicState::new(board, decision.next_disc, decision.moves_remaining).unwrap();
    }
    let finished = |state: &PublicState| {
        state.is_over()
            && state.board() == &board
            && state.next_disc() == decision.next_disc
            && state.moves_remaining() == decision.moves_remaining
    };
    for (column, drops) in (0..7).flat_map(|column| (1..=5).map(move |drops| (column, drops))) {
        let mut columns = board.columns();
        let height = board.height(column);
        if height == 0 {
            continue;
        }
        columns[column] &= (1 << (4 * (height - 1))) - 1;
        let before = Board::from_columns(columns).unwrap();
        let before = PublicState::new(before, decision.next_disc, drops).unwrap();
        let mut reveals = engine_core::drop7::chance::Mulberry32::new(0);
        let after = resolve(&before, column, &mut reveals).unwrap().after;
        if finished(&after) {
            return after;
        }
    }
    panic!("{}: no last move leads to this position", decision.id)
}

fn model(model: &Model) -> Synthetic {
    if model.name == "zero" {
        Synthetic::zero(&model.layout)
    } else {
        Synthetic::new(&model.layout)
    }
}

#[test]
fn decisions_are_the_golden_decisions() {
    let Some(golden) = golden::<Golden>("direct-policy.json") else { return };
    assert_eq!(golden.policy.reveal_samples, SAMPLES);
    assert_eq!(golden.policy.policy_seed_hex, format!("{POLICY_SEED:#010x}"));
    assert_eq!(golden.policy.column_order, CENTER_FIRST);
    for model_of_file in &golden.models {
        let weights = model(model_of_file);
        let mut policy = DirectPolicy::new(&weights);
        for decision in &model_of_file.decisions {
            let id = format!("{} {}", model_of_file.name, decision.id);
            let state = state(decision);
            let (canonical, mirrored) = state.canonical();
            assert_eq!(mirrored, decision.mirrored_is_smaller, "{id}");
            assert_eq!(canonical.board().to_string(), decision.canonical_board, "{id}");
            let seed = scenario_seed(
                canonical.board(),
                decision.next_disc,
                decision.moves_remaining,
                POLICY_SEED,
                golden.policy.seed_depth,
            );
            assert_eq!(seed, decision.state_seed, "{id}");

            let mut columns: Vec<ColumnValue> = Vec::new();
            let found = policy.decide_observed(&state, |column| columns.push(column));
            assert_eq!(found.action.map_or(-1, |action| action as i64), decision.action, "{id}");
            assert_eq!(found.simulations, decision.simulations, "{id}");
            assert_eq!(found, policy.decide(&state), "{id}");
            let mut legal = columns.iter();
            for expected in &decision.canonical_columns {
                match *expected {
                    Column::Legal { column, value, value_bits, simulations } => {
                        let found = legal.next().expect("a column is missing");
                        assert_eq!(found.column, column, "{id}");
                        assert_eq!(found.value.to_bits(), value_bits, "{id} column {column}");
                        assert_eq!(found.value, value as f32, "{id} column {column}");
                        assert_eq!(found.simulations, simulations, "{id} column {column}");
                    }
                    Column::Illegal { column, illegal } => {
                        assert!(illegal && !canonical.board().is_legal(column), "{id}");
                    }
                }
            }
            assert!(legal.next().is_none(), "{id}: more columns than recorded");
            let chosen = found.action.map(|action| if mirrored { 6 - action } else { action });
            let best = columns.iter().find(|column| Some(column.column) == chosen);
            assert_eq!(best.map(|best| best.value.to_bits()), decision.value_bits, "{id}");
        }
    }
}

#[test]
fn synthetic_files_have_the_golden_digests() {
    let Some(golden) = golden::<Golden>("direct-policy.json") else { return };
    let mut checked = 0;
    for (name, sha256) in &golden.synthetic_file_sha256 {
        let Some((_, layout)) = name.split_once('(') else { continue };
        let weights = Synthetic::new(layout.trim_end_matches(')'));
        let written = file::write_weights(&weights, std::io::sink()).unwrap();
        assert_eq!(hex::encode(written.sha256), *sha256, "{name}");
        let header = file::Header { layout: *weights.layout(), accumulators: false };
        assert_eq!(written.bytes, header.file_bytes(), "{name}");
        checked += 1;
    }
    assert!(checked > 0);
}

/// Plays a game of the policy and shows every position and decision.
fn play(
    weights: &Synthetic,
    seed: u32,
    mut see: impl FnMut(&mut DirectPolicy<&Synthetic>, &PublicState, DirectDecision, &PublicState),
) {
    let mut policy = DirectPolicy::new(weights);
    let mut game = Game::new(seed);
    while !game.public().is_over() {
        let before = *game.public();
        let decision = policy.decide(&before);
        game.play(decision.action.expect("a live position has a legal column"))
            .expect("the policy plays legal columns");
        let after = *game.public();
        see(&mut policy, &before, decision, &after);
    }
}

#[test]
fn a_mirror_image_gets_the_mirrored_column() {
    let weights = Synthetic::new("win32,phase=all");
    let mut mirrored = DirectPolicy::new(&weights);
    let mut checked = 0;
    for seed in 0..12 {
        play(&weights, seed, |_, before, decision, _| {
            let image = PublicState::new(
                before.board().mirror(),
                before.next_disc(),
                before.moves_remaining(),
            )
            .unwrap();
            let other = mirrored.decide(&image);
            assert_eq!(other.simulations, decision.simulations);
            if image.board() != before.board() {
                assert_eq!(other.action, decision.action.map(|action| 6 - action));
                checked += 1;
            }
        });
    }
    assert!(checked > 50);
}

#[test]
fn what_was_evaluated_is_what_an_evaluation_would_give() {
    let weights = Synthetic::new("win32,phase=all");
    let (mut known, mut moves) = (0, 0);
    for seed in 0..12 {
        play(&weights, seed, |policy, _, _, after| {
            moves += 1;
            let mut features = Features::new();
            if after.is_over() {
                assert!(policy.evaluated(after, &mut features).is_none());
            } else if let Some(value) = policy.evaluated(after, &mut features) {
                known += 1;
                let mut fresh = Features::new();
                weights.layout().features(after.board(), after.moves_remaining(), &mut fresh);
                assert_eq!(features, fresh);
                assert_eq!(value.to_bits(), weights.value(&fresh).to_bits());
            }
        });
    }
    assert!(known * 2 > moves, "{known} of {moves} boards were known");
}

#[test]
fn a_finished_game_has_no_action() {
    let weights = Synthetic::zero("win32");
    play(&weights, 3, |policy, _, _, after| {
        if after.is_over() {
            let decision = policy.decide(after);
            assert_eq!(decision, DirectDecision { action: None, simulations: 0 });
        }
    });
}
