//! Arm summaries against the aggregates of recorded screens.

use engine_core::screen::GameRow;
use engine_core::stats::{ArmSummary, Cohort, Metric, Paired, Played, ScreenPlan, StatsError};
use serde::Deserialize;

use crate::golden_dir::golden;

#[derive(Deserialize)]
struct Sample {
    individuals: Vec<Individual>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Individual {
    name: String,
    games: Vec<SampleGame>,
    numbered_clears_per_move: f64,
    cover_reveals_per_move: f64,
    censored_games: usize,
    incomplete_decisions: u64,
    illegal_decisions: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SampleGame {
    seed_hex: String,
    score: i64,
    moves: u32,
    numbered_cleared: u64,
    covers_revealed: u64,
    max_chain_depth: u32,
    mean_occupied_cells: f64,
    censored: bool,
    illegal_decisions: u32,
    incomplete_decisions: u32,
    work: u64,
}

#[derive(Deserialize)]
struct Games {
    blocks: Vec<Block>,
    aggregate: Aggregate,
}

#[derive(Deserialize)]
struct Block {
    games: Vec<Game>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Game {
    seed: String,
    score: i64,
    moves: u32,
    total_clears: u64,
    total_reveals: u64,
    max_chain_depth: u32,
    board_clear_moves: u32,
    occupied_sum: u64,
    censored: bool,
    illegal_decisions: u32,
    incomplete_decisions: u32,
    work: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Aggregate {
    games: usize,
    mean_score: f64,
    median_score: f64,
    q25_score: f64,
    q75_score: f64,
    min_score: f64,
    max_score: f64,
    mean_moves: f64,
    clears_per_move: f64,
    reveals_per_move: f64,
    work_sum: u64,
    board_clear_moves: u64,
    censored: usize,
    illegal: u64,
    incomplete: u64,
    max_chain_depth: u32,
}

fn seed(text: &str) -> u32 {
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

fn row(game: &SampleGame) -> GameRow {
    GameRow {
        seed: seed(&game.seed_hex),
        score: game.score,
        moves: game.moves,
        numbered_cleared: game.numbered_cleared,
        covers_revealed: game.covers_revealed,
        max_chain_depth: game.max_chain_depth,
        occupied_sum: (game.mean_occupied_cells * f64::from(game.moves)).round() as u64,
        censored: game.censored,
        illegal_decisions: game.illegal_decisions,
        incomplete_decisions: game.incomplete_decisions,
        work: game.work,
        clears: 0,
    }
}

#[test]
fn arms_of_the_recorded_screen_have_the_recorded_rates() {
    let Some(sample) = golden::<Sample>("screen-sample.json") else { return };
    assert!(!sample.individuals.is_empty());
    for arm in &sample.individuals {
        let rows: Vec<GameRow> = arm.games.iter().map(row).collect();
        for (row, game) in rows.iter().zip(&arm.games) {
            assert_eq!(row.mean_occupied(), game.mean_occupied_cells, "{}", arm.name);
        }
        let ours = ArmSummary::of(&rows).unwrap();
        assert_eq!(ours.games, arm.games.len(), "{}", arm.name);
        assert_eq!(ours.clears_per_move, arm.numbered_clears_per_move, "{}", arm.name);
        assert_eq!(ours.reveals_per_move, arm.cover_reveals_per_move, "{}", arm.name);
        assert_eq!(
            (ours.censored, ours.incomplete, ours.illegal),
            (arm.censored_games, arm.incomplete_decisions, arm.illegal_decisions),
            "{}",
            arm.name
        );
    }
}

#[test]
fn arms_of_the_recorded_screen_can_be_compared() {
    let Some(sample) = golden::<Sample>("screen-sample.json") else { return };
    let most = sample.individuals.iter().max_by_key(|arm| arm.games.len()).unwrap();
    let seeds: Vec<u32> = most.games.iter().map(|game| seed(&game.seed_hex)).collect();
    let mut plan = ScreenPlan::whole_block(seeds, sample.individuals.iter().map(|arm| &arm.name));
    for (planned, arm) in plan.arms.iter_mut().zip(&sample.individuals) {
        planned.games = arm.games.len();
    }
    let cohort: Cohort = plan
        .complete(sample.individuals.iter().map(|arm| {
            (arm.name.clone(), arm.games.iter().map(|game| Played::from(&row(game))).collect())
        }))
        .unwrap();
    for pair in sample.individuals.windows(2) {
        let both = pair[0].games.len().min(pair[1].games.len());
        let scores = |arm: &Individual| -> Vec<f64> {
            arm.games[..both].iter().map(|game| game.score as f64).collect()
        };
        let ours = cohort.contrast(&pair[0].name, &pair[1].name, Metric::Score);
        assert_eq!(ours, Ok(Paired::of(&scores(&pair[0]), &scores(&pair[1])).unwrap()));
    }
}

#[test]
fn a_whole_recorded_block_has_the_recorded_aggregate() {
    let Some(recorded) = golden::<Games>("screen-1-fair-d3s7.json") else { return };
    let rows: Vec<GameRow> = recorded
        .blocks
        .iter()
        .flat_map(|block| &block.games)
        .map(|game| GameRow {
            seed: seed(&game.seed),
            score: game.score,
            moves: game.moves,
            numbered_cleared: game.total_clears,
            covers_revealed: game.total_reveals,
            max_chain_depth: game.max_chain_depth,
            occupied_sum: game.occupied_sum,
            censored: game.censored,
            illegal_decisions: game.illegal_decisions,
            incomplete_decisions: game.incomplete_decisions,
            work: game.work,
            clears: game.board_clear_moves,
        })
        .collect();
    let ours = ArmSummary::of(&rows).unwrap();
    let expected = &recorded.aggregate;
    if rows.len() != expected.games {
        // The committed file holds the first games of the block only; the aggregate is of them all.
        eprintln!("not compared: {} of {} games are in the file", rows.len(), expected.games);
        assert!(ours.score.min >= expected.min_score && ours.score.max <= expected.max_score);
        assert!(ours.max_chain_depth <= expected.max_chain_depth);
        return;
    }
    for (field, ours, expected) in [
        ("meanScore", ours.score.mean, expected.mean_score),
        ("medianScore", ours.score.median, expected.median_score),
        ("q25Score", ours.score.q25, expected.q25_score),
        ("q75Score", ours.score.q75, expected.q75_score),
        ("minScore", ours.score.min, expected.min_score),
        ("maxScore", ours.score.max, expected.max_score),
        ("meanMoves", ours.moves.mean, expected.mean_moves),
        ("clearsPerMove", ours.clears_per_move, expected.clears_per_move),
        ("revealsPerMove", ours.reveals_per_move, expected.reveals_per_move),
        ("mean work", ours.mean_work, expected.work_sum as f64 / expected.games as f64),
    ] {
        assert_eq!(ours.to_bits(), expected.to_bits(), "{field}: {ours} against {expected}");
    }
    assert_eq!(
        (ours.censored, ours.illegal, ours.incomplete, ours.max_chain_depth, ours.board_clears),
        (
            expected.censored,
            expected.illegal,
            expected.incomplete,
            expected.max_chain_depth,
            expected.board_clear_moves
        )
    );
}

#[test]
fn an_arm_without_games_has_no_summary() {
    assert_eq!(ArmSummary::of(&[]), Err(StatsError::TooFew { got: 0, needed: 1 }));
}
