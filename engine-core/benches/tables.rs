//! How fast the tables are, in thread CPU time: `cargo bench -p engine-core --bench tables`.
//!
//! Arms are interleaved in rounds, because a shared machine drifts more between minutes than arms
//! differ; the median and the best round are printed. Arguments: rounds,
//! training moves, and words that must occur in `LAYOUT PAGES`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]

use std::hint::black_box;

use engine_core::drop7::chance::StratifiedReveals;
use engine_core::drop7::{Board, Game, PublicState, resolve};
use engine_core::ntuple::direct::DirectPolicy;
use engine_core::ntuple::tables::PageSize;
use engine_core::ntuple::{Features, LANES, Lanes, Layout, TrainTables, Weights, file};

const LAYOUTS: [&str; 3] =
    ["rows,cols,phase=none", "rows,cols,win23,win32,phase=none", "rows,cols,win23,win32,phase=all"];

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// Nanoseconds per item. The clock ticks in milliseconds, so the items are repeated for a while.
fn time(items: usize, mut work: impl FnMut(usize)) -> f64 {
    const LONG_ENOUGH: u64 = 150_000_000;
    let start = cpu_ns();
    let mut done = 0;
    loop {
        (0..items).for_each(&mut work);
        done += items;
        let taken = cpu_ns() - start;
        if taken > LONG_ENOUGH {
            return taken as f64 / done as f64;
        }
    }
}

/// Weights that are never looked up: what is left is playing out moves and extracting features.
struct NoLookUp(Layout);

impl Weights for NoLookUp {
    fn layout(&self) -> &Layout {
        &self.0
    }

    fn weight(&self, _index: u64) -> f32 {
        0.0
    }

    fn lane_values(&self, lanes: &Lanes, _out: &mut [f32; LANES]) {
        black_box(lanes);
    }
}

/// Serial training from `seed` for `moves`; returns what it left, and the last positions it saw.
fn train(tables: &TrainTables, seed: u32, moves: usize) -> Vec<PublicState> {
    let layout = *tables.layout();
    let mut policy = DirectPolicy::new(tables);
    let (mut previous, mut next) = (Features::new(), Features::new());
    let mut seen = Vec::new();
    for seed in seed.. {
        let mut game = Game::new(seed);
        layout.features(&Board::INITIAL, 5, &mut previous);
        while !game.public().is_over() {
            seen.push(*game.public());
            let Some(column) = policy.decide(game.public()).action else { break };
            let reward = game.play(column).unwrap().delta as f32 / 17_000.0;
            let after = game.public();
            let target = if after.is_over() {
                reward
            } else {
                let value = policy.evaluated(after, &mut next).unwrap_or_else(|| {
                    layout.features(after.board(), after.moves_remaining(), &mut next);
                    tables.value(&next)
                });
                tables.prefetch_update(&next);
                reward + value
            };
            tables.update(&previous, target, 1.0, 30.0);
            std::mem::swap(&mut previous, &mut next);
        }
        if seen.len() >= moves {
            break;
        }
    }
    seen.split_off(seen.len().saturating_sub(8_192))
}

struct Arm {
    name: String,
    unit: &'static str,
    rounds: Vec<f64>,
}

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let is_word = |word: &String| word.parse::<usize>().is_err() && !word.starts_with('-');
    let words: Vec<String> = std::env::args().skip(1).filter(is_word).collect();
    let rounds = numbers.first().copied().unwrap_or(7);
    let moves = numbers.get(1).copied().unwrap_or(200_000);
    let mut arms: Vec<Arm> = Vec::new();
    for (text, pages) in
        LAYOUTS.into_iter().flat_map(|text| [(text, PageSize::Small), (text, PageSize::Huge)])
    {
        let layout: Layout = text.parse().unwrap();
        let wanted = format!("{text} {pages:?}");
        if !words.iter().all(|word| wanted.contains(word.as_str())) {
            continue;
        }
        let touched = TrainTables::fresh_on(layout, 20.0, pages).unwrap();
        let fresh = TrainTables::fresh_on(layout, 20.0, pages).unwrap();
        let states = train(&touched, 0xa527_7000, moves);
        println!("{text}: {} entries touched after {moves} moves", touched.touched());
        let features: Vec<Features> = states
            .iter()
            .map(|state| {
                let mut features = Features::new();
                layout.features(state.board(), state.moves_remaining(), &mut features);
                features
            })
            .collect();
        let positions: Vec<(Board, u8)> = states
            .iter()
            .map(|state| (state.canonical().0.board().to_owned(), state.moves_remaining()))
            .collect();
        let count = states.len();
        let batches = count / LANES;
        let first = arms.len();
        let mut seed = 0xb000_0000;
        for round in 0..rounds {
            let mut figures: Vec<(&str, &str, f64)> = Vec::new();
            let mut lanes = Lanes::new();
            figures.push((
                "features",
                "ns",
                time(batches, |i| {
                    layout.lanes(black_box(&positions[LANES * i..LANES * (i + 1)]), &mut lanes);
                    black_box(&lanes);
                }) / LANES as f64,
            ));
            for (name, tables) in [("value fresh", &fresh), ("value touched", &touched)] {
                let mut values = Vec::new();
                figures.push((
                    name,
                    "ns",
                    time(batches, |i| {
                        let positions = black_box(&positions[LANES * i..LANES * (i + 1)]);
                        tables.values(&mut lanes, positions, &mut values);
                        black_box(&values);
                    }) / LANES as f64,
                ));
            }
            for (name, tables) in [("decide fresh", &fresh), ("decide touched", &touched)] {
                let mut policy = DirectPolicy::new(tables);
                figures.push((
                    name,
                    "decisions/s",
                    1e9 / time(count, |i| {
                        black_box(policy.decide(black_box(&states[i])));
                    }),
                ));
            }
            let mut policy = DirectPolicy::new(NoLookUp(layout));
            figures.push((
                "decide without look-ups",
                "decisions/s",
                1e9 / time(count, |i| {
                    black_box(policy.decide(black_box(&states[i])));
                }),
            ));
            figures.push((
                "play out all columns once",
                "ns",
                time(count, |i| {
                    for column in 0..7 {
                        let mut reveals = StratifiedReveals::new(i as u32, 0, 7);
                        black_box(resolve(black_box(&states[i]), column, &mut reveals));
                    }
                }),
            ));
            figures.push(("train", "moves/s", {
                let start = cpu_ns();
                let played = train(&touched, seed, 16_384).len() * 2;
                seed += 10_000;
                played as f64 * 1e9 / (cpu_ns() - start) as f64
            }));
            // Last: it changes the values, though not the pages.
            figures.push((
                "update",
                "updates/s",
                1e9 / time(count, |i| {
                    black_box(touched.update(&features[i], 20.0, 1e-6, 30.0));
                }),
            ));
            for (at, (name, unit, figure)) in figures.into_iter().enumerate() {
                if round == 0 {
                    arms.push(Arm {
                        name: format!("{text} {pages:?} {name}"),
                        unit,
                        rounds: Vec::new(),
                    });
                }
                arms[first + at].rounds.push(figure);
            }
        }
        let start = cpu_ns();
        let written = file::write_weights(&touched, std::io::sink()).unwrap();
        let seconds = (cpu_ns() - start) as f64 / 1e9;
        println!("{text}: {} bytes hashed in {seconds:.2} s", written.bytes);
        for Arm { name, unit, rounds } in &mut arms[first..] {
            rounds.sort_by(f64::total_cmp);
            let median = rounds[rounds.len() / 2];
            let (low, high) = (rounds[0], rounds[rounds.len() - 1]);
            println!("{name:65} median {median:12.1} {unit:12} ({low:.1} - {high:.1})");
        }
    }
}
