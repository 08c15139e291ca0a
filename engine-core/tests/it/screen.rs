//! Whole games of the fair player against recorded ones, and what a screen promises about workers,
//! stops and rows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use engine_core::drop7::PublicState;
use engine_core::drop7::chance::POLICY_SEED;
use engine_core::drop7::game::MOVE_CAP;
use engine_core::progress::{Progress, StopToken, Unwatched};
use engine_core::screen::{
    Choice, GameRow, Player, Policy, SearchLeaf, play_block, play_game, play_game_observed,
    play_policy,
};
use engine_core::search::SearchConfig;
use serde::Deserialize;

use crate::golden_dir::golden;

/// The fair player of this depth with seven strata.
fn fair(depth: u32) -> Player {
    let config = SearchConfig::bounded(depth, 7).expect("searchable");
    Player::Search { config, leaf: SearchLeaf::Fair }
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads")
}

/// A seed as the files write it: `0x` and hexadecimal digits.
fn seed_of(text: &str) -> u32 {
    u32::from_str_radix(text.trim_start_matches("0x"), 16).expect("a hexadecimal seed")
}

#[derive(Deserialize)]
struct Games {
    config: Definition,
    blocks: Vec<Block>,
    aggregate: Option<Aggregate>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition {
    arm: String,
    depth: u32,
    strata: u32,
    terminal_utility: f64,
    maximum_work: u64,
    policy_seed: u32,
    table_capacity: usize,
    table_from_depth: u32,
    move_cap: u32,
}

impl Definition {
    fn player(&self) -> Player {
        let config = SearchConfig {
            depth: self.depth,
            strata: self.strata,
            terminal: self.terminal_utility,
            work_limit: self.maximum_work,
            table_slots: self.table_capacity,
            table_from_depth: self.table_from_depth,
            policy_seed: self.policy_seed,
        };
        // The named arm is what the short constructor makes.
        if self.policy_seed == POLICY_SEED {
            assert_eq!(SearchConfig::bounded(self.depth, self.strata), Ok(config), "{}", self.arm);
        }
        Player::Search { config, leaf: SearchLeaf::Fair }
    }
}

#[derive(Deserialize)]
struct Block {
    start: String,
    games: Vec<Recorded>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    seed: String,
    score: i64,
    moves: u32,
    level: u32,
    moves_remaining: u8,
    game_over: bool,
    total_clears: u64,
    total_reveals: u64,
    max_chain_depth: u32,
    board_clear_moves: u32,
    occupied_sum: u64,
    censored: bool,
    illegal_decisions: u32,
    incomplete_decisions: u32,
    work: u64,
    nodes: u64,
    leaf_calls: u64,
    move_calls: u64,
    cache_hits: u64,
    final_board: [u32; 7],
    actions: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Aggregate {
    games: usize,
    score_sum: i64,
    mean_score: f64,
    median_score: f64,
    q25_score: f64,
    q75_score: f64,
    min_score: i64,
    max_score: i64,
    moves_sum: u64,
    mean_moves: f64,
    clears_sum: u64,
    reveals_sum: u64,
    clears_per_move: f64,
    reveals_per_move: f64,
    work_sum: u64,
    board_clear_moves: u32,
    censored: usize,
    illegal: u32,
    incomplete: u32,
    max_chain_depth: u32,
}

/// Plays one recorded game again and compares everything the file says about it.
fn replay(player: &Player, recorded: &Recorded, move_cap: u32) -> GameRow {
    let seed = seed_of(&recorded.seed);
    let mut actions = String::new();
    let (mut nodes, mut leaf_calls, mut move_calls, mut cache_hits) = (0, 0, 0, 0);
    let mut end = None;
    let row = play_game_observed(player, seed, move_cap, |turn| {
        let search = turn.choice.search.expect("a search");
        let column = search.action.expect("a column");
        actions.push(char::from_digit(column as u32, 10).expect("a digit"));
        nodes += search.nodes;
        leaf_calls += search.leaf_calls;
        move_calls += search.move_calls;
        cache_hits += search.cache_hits;
        end = Some(turn.game.clone());
    });
    let at = format!("game {}", recorded.seed);
    assert_eq!(actions, recorded.actions, "{at}");
    let expected = GameRow {
        seed,
        score: recorded.score,
        moves: recorded.moves,
        numbered_cleared: recorded.total_clears,
        covers_revealed: recorded.total_reveals,
        max_chain_depth: recorded.max_chain_depth,
        occupied_sum: recorded.occupied_sum,
        censored: recorded.censored,
        illegal_decisions: recorded.illegal_decisions,
        incomplete_decisions: recorded.incomplete_decisions,
        work: recorded.work,
        clears: recorded.board_clear_moves,
    };
    assert_eq!(row, expected, "{at}");
    let counts = (nodes, leaf_calls, move_calls, cache_hits);
    let Recorded { nodes, leaf_calls, move_calls, cache_hits, .. } = *recorded;
    assert_eq!(counts, (nodes, leaf_calls, move_calls, cache_hits), "{at}: counts");
    let end = end.expect("a move");
    assert_eq!(end.level(), recorded.level, "{at}");
    assert_eq!(end.public().moves_remaining(), recorded.moves_remaining, "{at}");
    assert_eq!(end.public().is_over(), recorded.game_over, "{at}");
    assert_eq!(end.public().board().columns(), recorded.final_board, "{at}");
    row
}

/// Replays the games of a file on two threads, at most `take` of each block, shortest first.
fn replay_file(name: &str, take: usize) -> Option<(Games, Vec<GameRow>)> {
    use rayon::prelude::*;
    let file = golden::<Games>(name)?;
    let player = file.config.player();
    let mut games = Vec::new();
    for block in &file.blocks {
        for (k, game) in block.games.iter().enumerate() {
            assert_eq!(seed_of(&game.seed), seed_of(&block.start).wrapping_add(k as u32));
        }
        let mut chosen: Vec<&Recorded> = block.games.iter().collect();
        if take < chosen.len() {
            chosen.sort_by_key(|game| game.moves);
            chosen.truncate(take);
        }
        games.extend(chosen);
    }
    assert!(!games.is_empty(), "{name} must hold games");
    let play = |game: &&Recorded| replay(&player, game, file.config.move_cap);
    let rows = pool(2).install(|| games.par_iter().with_max_len(1).map(play).collect());
    Some((file, rows))
}

#[test]
fn the_shortest_recorded_games_are_played_again_move_by_move() {
    replay_file("games-fair-d3s7.json", 2);
}

#[test]
#[ignore = "whole games at depth 3 take minutes"]
fn all_recorded_games_are_played_again_move_by_move() {
    replay_file("games-fair-d3s7.json", usize::MAX);
}

/// Linear interpolation between the order statistics around `share * (n - 1)`.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (sorted[high] - sorted[low]) * part
}

#[test]
#[ignore = "a block of games at depth 3 takes minutes"]
#[expect(clippy::float_cmp, reason = "the recorded figures must come out to the bit")]
fn the_recorded_block_is_played_again_move_by_move() {
    let Some((file, rows)) = replay_file("screen-1-fair-d3s7.json", usize::MAX) else { return };
    let Some(recorded) = &file.aggregate else { return };
    if recorded.games != rows.len() {
        // The file holds a part of the block its aggregate is about.
        return;
    }
    let mut scores: Vec<f64> = rows.iter().map(|row| row.score as f64).collect();
    scores.sort_by(f64::total_cmp);
    let sum = |of: &dyn Fn(&GameRow) -> u64| rows.iter().map(of).sum::<u64>();
    let games = rows.len() as f64;
    let moves = sum(&|row| u64::from(row.moves));
    assert_eq!(rows.iter().map(|row| row.score).sum::<i64>(), recorded.score_sum);
    assert_eq!(recorded.score_sum as f64 / games, recorded.mean_score);
    assert_eq!(quantile(&scores, 0.5), recorded.median_score);
    assert_eq!(quantile(&scores, 0.25), recorded.q25_score);
    assert_eq!(quantile(&scores, 0.75), recorded.q75_score);
    assert_eq!(rows.iter().map(|row| row.score).min(), Some(recorded.min_score));
    assert_eq!(rows.iter().map(|row| row.score).max(), Some(recorded.max_score));
    assert_eq!(moves, recorded.moves_sum);
    assert_eq!(moves as f64 / games, recorded.mean_moves);
    assert_eq!(sum(&|row| row.numbered_cleared), recorded.clears_sum);
    assert_eq!(sum(&|row| row.covers_revealed), recorded.reveals_sum);
    assert_eq!(recorded.clears_sum as f64 / moves as f64, recorded.clears_per_move);
    assert_eq!(recorded.reveals_sum as f64 / moves as f64, recorded.reveals_per_move);
    assert_eq!(sum(&|row| row.work), recorded.work_sum);
    assert_eq!(rows.iter().map(|row| row.clears).sum::<u32>(), recorded.board_clear_moves);
    assert_eq!(rows.iter().filter(|row| row.censored).count(), recorded.censored);
    assert_eq!(rows.iter().map(|row| row.illegal_decisions).sum::<u32>(), recorded.illegal);
    assert_eq!(rows.iter().map(|row| row.incomplete_decisions).sum::<u32>(), recorded.incomplete);
    assert_eq!(rows.iter().map(|row| row.max_chain_depth).max(), Some(recorded.max_chain_depth));
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Published {
    screen: PublishedScreen,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishedScreen {
    config: PublishedConfig,
    seed_start_hex: String,
    arms: BTreeMap<String, PublishedArm>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishedConfig {
    move_cap: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishedArm {
    #[serde(default)]
    per_game: Vec<PublishedGame>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishedGame {
    seed_hex: String,
    score: i64,
    moves: u32,
    censored: bool,
}

#[test]
#[ignore = "64 games at depth 3 take minutes"]
fn the_fair_player_scores_what_the_first_study_published() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocols/published");
    let text = std::fs::read_to_string(folder.join("RUN-20260905T193006Z-4fbeb4e5.json"))
        .expect("the published run");
    let published: Published = serde_json::from_str(&text).expect("a published run");
    let screen = &published.screen;
    let games = &screen.arms["fair-d3s7"].per_game;
    let games = &games[..games.len().min(64)];
    let start = seed_of(&screen.seed_start_hex);
    let seeds: Vec<u32> = (0..games.len() as u32).map(|k| start.wrapping_add(k)).collect();
    let stop = StopToken::new();
    let cap = screen.config.move_cap;
    let rows = play_block(&pool(2), &fair(3), &seeds, cap, &Unwatched, &stop, &|_, _| {});
    assert!(!games.is_empty());
    for ((seed, row), game) in seeds.iter().zip(rows).zip(games) {
        let row = row.expect("nobody stopped");
        assert_eq!(seed_of(&game.seed_hex), *seed);
        assert_eq!((row.score, row.moves), (game.score, game.moves), "game {}", game.seed_hex);
        assert_eq!(row.censored, game.censored);
        assert_eq!((row.illegal_decisions, row.incomplete_decisions), (0, 0));
    }
}

/// Counts what it is told.
#[derive(Default)]
struct Counted(AtomicU64);

impl Progress for Counted {
    fn advance(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }
}

#[test]
fn rows_do_not_depend_on_the_number_of_workers() {
    let (quick, few) = (Player::CenterFirst, fair(2));
    for (player, games, cap) in [(&quick, 300, MOVE_CAP), (&few, 6, 25)] {
        let seeds: Vec<u32> = (0..games).map(|k| 0xffff_fff0_u32.wrapping_add(k)).collect();
        let alone: Vec<Option<GameRow>> =
            seeds.iter().map(|&seed| Some(play_game(player, seed, cap))).collect();
        for threads in [1, 2, 4] {
            let counted = Counted::default();
            let seen = Mutex::new(vec![None; seeds.len()]);
            let on_row = |index: usize, row: &GameRow| {
                let earlier = seen.lock().expect("lock")[index].replace(*row);
                assert_eq!(earlier, None, "a row is reported once");
            };
            let stop = StopToken::new();
            let rows = play_block(&pool(threads), player, &seeds, cap, &counted, &stop, &on_row);
            assert_eq!(rows, alone, "{threads} threads");
            assert_eq!(seen.into_inner().expect("lock"), alone);
            assert_eq!(counted.0.into_inner(), u64::from(games));
        }
    }
}

#[test]
fn a_stop_leaves_whole_games_only() {
    let seeds: Vec<u32> = (0..200).collect();
    let stop = StopToken::new();
    let done = AtomicU64::new(0);
    let on_row = |_: usize, _: &GameRow| {
        if done.fetch_add(1, Ordering::Relaxed) == 9 {
            stop.stop();
        }
    };
    let player = Player::CenterFirst;
    let rows = play_block(&pool(2), &player, &seeds, MOVE_CAP, &Unwatched, &stop, &on_row);
    let played = rows.iter().flatten().count() as u64;
    assert_eq!(played, done.into_inner());
    assert!((10..200).contains(&played), "{played} games were played");
    for (row, &seed) in rows.iter().zip(&seeds) {
        assert!(row.is_none_or(|row| row == play_game(&player, seed, MOVE_CAP)));
    }
    let none = play_block(&pool(2), &player, &seeds, MOVE_CAP, &Unwatched, &stop, &on_row_never);
    assert!(none.iter().all(Option::is_none), "a stop that came first leaves nothing");
}

fn on_row_never(index: usize, _: &GameRow) {
    panic!("game {index} was played after the stop");
}

/// Plays centre-first until it fails on purpose.
struct Failing {
    moves_left: u32,
    last: Option<usize>,
}

impl Policy for Failing {
    fn choose(&mut self, _: &PublicState) -> Choice {
        let action =
            if self.moves_left == 0 { self.last } else { Some(self.moves_left as usize % 7) };
        self.moves_left = self.moves_left.saturating_sub(1);
        Choice { action, work: 3, complete: self.moves_left > 1, search: None }
    }
}

#[test]
fn an_illegal_choice_ends_the_game_and_is_counted() {
    for last in [None, Some(7), Some(usize::MAX)] {
        let row = play_policy(&mut Failing { moves_left: 4, last }, 5, MOVE_CAP, |_| {});
        assert_eq!((row.moves, row.illegal_decisions), (4, 1), "{last:?}");
        assert_eq!(row.incomplete_decisions, 3, "the last two moves and the failure");
        assert_eq!(row.work, 15);
        assert!(!row.censored);
    }
}

#[test]
fn the_move_cap_censors_a_game_that_is_not_over() {
    let whole = play_game(&Player::CenterFirst, 1, MOVE_CAP);
    assert!(!whole.censored);
    let cut = play_game(&Player::CenterFirst, 1, whole.moves - 1);
    assert!(cut.censored);
    assert_eq!(cut.moves, whole.moves - 1);
    let exact = play_game(&Player::CenterFirst, 1, whole.moves);
    assert_eq!(exact, whole, "a game that ends at the cap is not cut");
    let nothing = play_game(&Player::CenterFirst, 1, 0);
    assert_eq!((nothing.moves, nothing.censored), (0, true));
    assert!(nothing.mean_occupied().abs() < f64::EPSILON);
}

#[test]
fn a_row_survives_json_and_refuses_unknown_fields() {
    let row = play_game(&Player::CenterFirst, 77, MOVE_CAP);
    let json = serde_json::to_string(&row).expect("json");
    assert_eq!(serde_json::from_str::<GameRow>(&json).expect("a row"), row);
    let extra = json.replacen('{', r#"{"luck":1,"#, 1);
    assert!(serde_json::from_str::<GameRow>(&extra).is_err());
}
