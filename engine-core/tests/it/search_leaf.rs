//! Tables as the leaf of a search and as a one-ply player, against `search-leaf.json`.

use engine_core::drop7::chance::POLICY_SEED;
use engine_core::drop7::{Board, PublicState};
use engine_core::ntuple::direct::DirectPolicy;
use engine_core::ntuple::leaf::TableLeaf;
use engine_core::ntuple::{FrozenTables, TrainTables};
use engine_core::screen::{GameRow, Player, SearchLeaf, play_game, play_policy};
use engine_core::search::{SearchConfig, Searcher, completion_bound};
use serde::Deserialize;
use std::sync::Arc;

use crate::golden_dir::golden;
use crate::synthetic::Synthetic;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Golden {
    layout: String,
    search: GoldenSearch,
    root_columns: Vec<Root>,
    d3s7_games: Vec<SearchGame>,
    direct_games: Vec<DirectGame>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoldenSearch {
    depth: u32,
    chance_samples: u32,
    terminal_utility: f64,
    policy_seed_hex: String,
    maximum_work: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Root {
    board: String,
    next_disc: u8,
    moves_remaining: u8,
    canonical_columns: Vec<Column>,
    action: usize,
    train_search: RootTotals,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Column {
    #[serde(rename = "column")]
    canonical: usize,
    value: f64,
    value_bits: String,
}

/// What the recorded training-time search saw at the same root.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RootTotals {
    root_utility_bits: String,
    root_score_bits: String,
    root_score: f64,
    leaf_calls: u64,
    move_calls: u64,
    nodes: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SearchGame {
    seed_hex: String,
    move_cap: u32,
    score: i64,
    moves: u32,
    work: u64,
    numbered_cleared: u64,
    covers_revealed: u64,
    max_chain_depth: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DirectGame {
    seed_hex: String,
    score: i64,
    moves: u32,
    work: u64,
    numbered_cleared: u64,
    covers_revealed: u64,
    max_chain_depth: u32,
    mean_occupied_cells: f64,
}

fn seed(hex: &str) -> u32 {
    u32::from_str_radix(hex.trim_start_matches("0x"), 16).unwrap()
}

fn config(golden: &GoldenSearch) -> SearchConfig {
    let config = SearchConfig::bounded(golden.depth, golden.chance_samples).unwrap();
    assert_eq!(config.terminal, golden.terminal_utility);
    assert_eq!(format!("{:#010x}", config.policy_seed), golden.policy_seed_hex);
    assert_eq!(config.policy_seed, POLICY_SEED);
    // The recorded limit is the bound itself; one more never binds either.
    let bound = completion_bound(golden.depth, golden.chance_samples).unwrap();
    assert!(golden.maximum_work == bound || golden.maximum_work == bound + 1);
    config
}

fn search(golden: &Golden) -> Searcher<TableLeaf<Synthetic>> {
    Searcher::new(config(&golden.search), TableLeaf::new(Synthetic::new(&golden.layout)))
}

#[test]
fn root_columns_are_the_golden_columns() {
    let Some(golden) = golden::<Golden>("search-leaf.json") else { return };
    let mut searcher = search(&golden);
    for root in &golden.root_columns {
        let board = Board::from_text(&root.board).unwrap();
        let state = PublicState::new(board, root.next_disc, root.moves_remaining).unwrap();
        let columns = searcher.column_values(&state, golden.search.depth);
        assert_eq!(columns.len(), root.canonical_columns.len(), "{board}");
        for (found, expected) in columns.iter().zip(&root.canonical_columns) {
            assert_eq!(found.canonical_column, expected.canonical, "{board}");
            let bits = format!("{:016x}", found.value.to_bits());
            assert_eq!(bits, expected.value_bits, "{board} column {}", expected.canonical);
            assert_eq!(found.value, expected.value, "{board} column {}", expected.canonical);
        }
        let decision = searcher.decide(&state);
        assert_eq!(decision.action, Some(root.action), "{board}");
        assert_eq!(decision.completed_depth, golden.search.depth);

        let best = columns.iter().fold(f64::NEG_INFINITY, |best, column| best.max(column.value));
        let bits = format!("{:016x}", best.to_bits());
        let recorded = &root.train_search;
        assert_eq!(bits, recorded.root_utility_bits, "{board}");
        // Their score is the same search without the penalty of lost games.
        let score_bits = format!("{:016x}", recorded.root_score.to_bits());
        assert_eq!(score_bits, recorded.root_score_bits, "{board}");
        assert!(best <= recorded.root_score, "{board}");
        assert_eq!(
            columns.iter().map(|c| c.leaf_calls).sum::<u64>(),
            recorded.leaf_calls,
            "{board}"
        );
        assert_eq!(
            columns.iter().map(|c| c.move_calls).sum::<u64>(),
            recorded.move_calls,
            "{board}"
        );
        assert_eq!(columns.iter().map(|c| c.nodes).sum::<u64>(), recorded.nodes, "{board}");
    }
}

fn check_search_game(golden: &Golden, game: &SearchGame) {
    let row = play_policy(&mut search(golden), seed(&game.seed_hex), game.move_cap, |_| {});
    assert_eq!((row.illegal_decisions, row.incomplete_decisions), (0, 0));
    assert_eq!(row.score, game.score, "{}", game.seed_hex);
    assert_eq!(row.moves, game.moves, "{}", game.seed_hex);
    assert_eq!(row.work, game.work, "{}", game.seed_hex);
    assert_eq!(row.numbered_cleared, game.numbered_cleared, "{}", game.seed_hex);
    assert_eq!(row.covers_revealed, game.covers_revealed, "{}", game.seed_hex);
    assert_eq!(row.max_chain_depth, game.max_chain_depth, "{}", game.seed_hex);
}

#[test]
fn searching_games_are_the_golden_games() {
    let Some(golden) = golden::<Golden>("search-leaf.json") else { return };
    assert!(!golden.d3s7_games.is_empty());
    golden.d3s7_games.iter().for_each(|game| check_search_game(&golden, game));
}

#[test]
fn one_ply_games_are_the_golden_games() {
    let Some(golden) = golden::<Golden>("search-leaf.json") else { return };
    let mut policy = DirectPolicy::new(Synthetic::new(&golden.layout));
    for game in &golden.direct_games {
        let row = play_policy(&mut policy, seed(&game.seed_hex), 2_000, |_| {});
        assert_eq!(row.illegal_decisions, 0);
        assert_eq!(row.score, game.score, "{}", game.seed_hex);
        assert_eq!(row.moves, game.moves, "{}", game.seed_hex);
        assert_eq!(row.work, game.work, "{}", game.seed_hex);
        assert_eq!(row.numbered_cleared, game.numbered_cleared, "{}", game.seed_hex);
        assert_eq!(row.covers_revealed, game.covers_revealed, "{}", game.seed_hex);
        assert_eq!(row.max_chain_depth, game.max_chain_depth, "{}", game.seed_hex);
        // Recorded with two decimals.
        assert!((row.mean_occupied() - game.mean_occupied_cells).abs() <= 0.005 + 1e-9);
    }
}

#[test]
fn players_over_tables_play_like_the_policies_they_name() {
    let layout = "win23,phase=all".parse().unwrap();
    let tables = Arc::new(FrozenTables::fresh(layout, 20.0).unwrap());
    let live = TrainTables::fresh(layout, 20.0).unwrap();
    let config = SearchConfig::bounded(2, 7).unwrap();
    let row = |player: Player| -> GameRow { play_game(&player, 0xa527_7100, 40) };

    let direct = row(Player::Direct(Arc::clone(&tables)));
    let expected = play_policy(&mut DirectPolicy::new(&live), 0xa527_7100, 40, |_| {});
    assert_eq!(direct, expected);
    assert!(direct.work >= 7 * u64::from(direct.moves));

    let searched = row(Player::Search { config, leaf: SearchLeaf::Tables(Arc::clone(&tables)) });
    let mut searcher = Searcher::new(config, TableLeaf::new(&live));
    assert_eq!(searched, play_policy(&mut searcher, 0xa527_7100, 40, |_| {}));
    assert_eq!(searched.incomplete_decisions, 0);
    assert_ne!(searched.work, row(Player::Search { config, leaf: SearchLeaf::Fair }).work);
}
