//! How fast the engine plays: the fair leaf, fair decisions at depth 3, and whole games.
//!
//! `cargo bench -p engine-core --bench play`. Inputs are the golden files, so every machine measures
//! the same positions; every figure is the median of several runs on one thread.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::path::Path;

use engine_core::drop7::game::MOVE_CAP;
use engine_core::drop7::{Board, PublicState};
use engine_core::leaf::{FairLeaf, Leaf};
use engine_core::ntuple::TrainTables;
use engine_core::ntuple::leaf::TableLeaf;
use engine_core::progress::{StopToken, Unwatched};
use engine_core::screen::{Player, SearchLeaf, play_game};
use engine_core::search::{SearchConfig, Searcher};
use engine_core::train::{SeedBlock, TrainConfig, Trainer};
use serde::Deserialize;
use std::sync::Arc;

const RUNS: usize = 7;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Position {
    board: [u32; 7],
    next_disc: u8,
    moves_remaining: u8,
}

#[derive(Deserialize)]
struct Leaves {
    states: Vec<Position>,
}

#[derive(Deserialize)]
struct Roots {
    roots: Vec<Position>,
}

fn golden<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let text = std::fs::read_to_string(path).expect("a golden file");
    serde_json::from_str(&text).expect("a golden file of the expected form")
}

fn states(positions: &[Position]) -> Vec<PublicState> {
    let state = |position: &Position| {
        let board = Board::from_columns(position.board).expect("a board");
        PublicState::new(board, position.next_disc, position.moves_remaining).expect("a state")
    };
    positions.iter().map(state).collect()
}

/// CPU seconds of this thread.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds: u64 = text.split_whitespace().next().and_then(|n| n.parse().ok()).expect("it");
    nanoseconds as f64 / 1e9
}

/// Median CPU seconds of `RUNS` calls of `work`, and the fastest.
fn seconds(mut work: impl FnMut()) -> (f64, f64) {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = cpu_seconds();
            work();
            cpu_seconds() - start
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[RUNS / 2], times[0])
}

fn report(name: &str, unit: &str, per: f64, (median, fastest): (f64, f64)) {
    println!("{name:28} {:10.3} {unit} (fastest {:.3}, {RUNS} runs)", median * per, fastest * per);
}

fn main() {
    let leaves = states(&golden::<Leaves>("leaf.json").states);
    let rounds = 200;
    let time = seconds(|| {
        for _ in 0..rounds {
            for state in &leaves {
                black_box(FairLeaf.value(black_box(state)));
            }
        }
    });
    report("fair leaf", "ns", 1e9 / (leaves.len() * rounds) as f64, time);

    let roots = states(&golden::<Roots>("search.json").roots);
    let config = SearchConfig::bounded(3, 7).expect("searchable");
    let mut work = 0;
    let time = seconds(|| {
        // A fresh searcher per decision: nothing is warm but the tables of the program.
        work = roots.iter().map(|root| Searcher::new(config, FairLeaf).decide(root).work).sum();
    });
    report("fair-d3s7 decision", "ms", 1e3 / roots.len() as f64, time);
    println!("{:28} {:10} per decision", "fair-d3s7 logical work", work / roots.len() as u64);

    let seeds = SeedBlock { start: 0xa527_7000, count: 4096 };
    let layout = "rows,cols,win23,win32,phase=none".parse().expect("a layout");
    let training = TrainConfig::new(layout, seeds);
    let tables = Arc::new(TrainTables::fresh(layout, 20.0).expect("room"));
    let mut trainer = Trainer::new(training, Arc::clone(&tables)).expect("trainable");
    trainer.advance(300_000, &Unwatched, &StopToken::new());
    let tables = Arc::new(tables.freeze().expect("room"));
    let mut searcher = Searcher::new(config, TableLeaf::new(&*tables));
    let time = seconds(|| {
        work = roots.iter().map(|root| searcher.decide(root).work).sum();
    });
    report("tables-d3s7 decision", "ms", 1e3 / roots.len() as f64, time);
    println!("{:28} {:10} per decision", "tables-d3s7 logical work", work / roots.len() as u64);

    let games = 20_000;
    let mut moves = 0_u64;
    let time = seconds(|| {
        let play = |seed| u64::from(play_game(&Player::CenterFirst, seed, MOVE_CAP).moves);
        moves = (0..games).map(play).sum();
    });
    report("centre-first move", "ns", 1e9 / moves as f64, time);

    let fair = Player::Search { config, leaf: SearchLeaf::Fair };
    let mut moves = 0;
    let time = seconds(|| moves = play_game(&fair, 0xa52f_2140, 30).moves);
    report("fair-d3s7 move in a game", "ms", 1e3 / f64::from(moves), time);
}
