//! How cost grows. One JSON line per point, as soon as it is known.

use std::time::Duration;

use engine_core::drop7::PublicState;
use engine_core::drop7::game::MOVE_CAP;
use engine_core::ntuple::Layout;
use engine_core::progress::{StopToken, Unwatched};
use engine_core::screen::{Player, SearchLeaf, play_block};
use engine_core::search::SearchConfig;
use engine_core::train::Parallel;
use engine_core::workload::{FIRST_SEED, positions};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::super::{Session, out};
use super::arm::{Arm, Per, Schedule, measure};
use super::clock::Stopwatch;
use super::svg::{Axis, Figure, Panel, Series};
use super::{BenchArgs, Curve, report, workloads};
use crate::domain::refusal::{Code, Refusal};
use crate::exec::unit::internal;
use crate::machine;

/// The first point of a curve of training.
const FIRST_POINT: u64 = 100_000;
/// Occupied cells that are one point.
const BIN: u32 = 7;

/// Measures the curve, prints its points, and draws it when asked to.
pub(super) fn print(
    session: &Session,
    arguments: &BenchArgs,
    curve: Curve,
    layouts: &[Layout],
) -> Result<(), Refusal> {
    let figure = match curve {
        Curve::Training => {
            training(layouts, arguments.moves, session.common.threads.unwrap_or(1).max(1))?
        }
        Curve::Fill => fill(arguments.quick)?,
        Curve::Workers => {
            let most = session.common.threads.unwrap_or_else(|| machine::capacity().threads);
            workers(most.max(1), if arguments.quick { 32 } else { 256 })?
        }
    };
    if let Some(file) = &arguments.svg {
        fs_err::write(file, figure.draw()).map_err(|error| {
            Refusal::new(Code::InvalidRequest, format!("the figure was not written: {error}"))
        })?;
    }
    Ok(())
}

/// One line of the answer.
fn emit(point: &Value) {
    out::line(&point.to_string());
}

/// 100 000, 300 000, 1 000 000, …, and `end`.
fn points(end: u64) -> Vec<u64> {
    let decades = std::iter::successors(Some(FIRST_POINT), |decade| decade.checked_mul(10));
    let mut points: Vec<u64> = decades
        .flat_map(|decade| [decade, decade.saturating_mul(3)])
        .take_while(|&point| point < end)
        .collect();
    points.push(end);
    points
}

/// Training goes on from point to point; the rate at a point is that of the last tenth before it.
fn training(layouts: &[Layout], end: u64, threads: usize) -> Result<Figure, Refusal> {
    let (mut rates, mut memory) = (Vec::new(), Vec::new());
    for layout in layouts {
        let mut trainer = workloads::trainer(*layout, threads, Parallel::LockFree)?;
        let name = layout.to_string();
        let (mut rate, mut bytes) = (Series::new(&name), Series::new(&name));
        for point in points(end) {
            workloads::train_to(&mut trainer, point - point / 10);
            let before = trainer.state().moves;
            let stopwatch = Stopwatch::start(threads);
            let missing = point.saturating_sub(before).max(1);
            let chunk = trainer.advance(missing, &Unwatched, &StopToken::new());
            let taken = stopwatch.taken();
            let moves = (trainer.state().moves - before) as f64;
            let resident = machine::resident_bytes();
            emit(&json!({
                "curve": "training",
                "layout": name,
                "threads": threads,
                "moves": trainer.state().moves,
                "movesPerSecond": moves / taken.cpu,
                "movesPerSecondOfTheWall": moves / taken.wall,
                "utilisation": taken.utilisation(),
                "lines": trainer.tables().existing_lines(),
                "residentBytes": resident,
                "meanScore": chunk.tally.mean_score(),
                "meanMoves": chunk.tally.mean_moves(),
                "instructionSet": report::machine()["instructionSet"],
            }));
            rate.push(trainer.state().moves as f64, moves / taken.cpu);
            if let Some(resident) = resident {
                bytes.push(trainer.state().moves as f64, resident as f64 / f64::from(1 << 30));
            }
        }
        rates.push(rate);
        memory.push(bytes);
    }
    Ok(Figure {
        title: String::from("Training: rate and memory over moves"),
        description: format!(
            "Moves per second of processor time ({threads} thread{}) and resident memory of the \
             process while training goes on; moves on a logarithmic axis.",
            if threads == 1 { "" } else { "s" }
        ),
        x: Axis::logarithmic("training moves"),
        panels: vec![
            Panel { label: "moves per second", series: rates },
            Panel { label: "resident memory, GiB", series: memory },
        ],
    })
}

/// Time of decisions of three plies by how full the board is.
fn fill(quick: bool) -> Result<Figure, Refusal> {
    let failed = |error| internal("setting a search up", &error);
    let (kept, games) = if quick { (2, 8) } else { (8, 64) };
    let mut states = positions::probes();
    states.extend(positions::played_by_fair(games).map_err(failed)?.into_iter().flatten());
    let config = SearchConfig::bounded(3, 7).map_err(failed)?;
    let player = Player::Search { config, leaf: SearchLeaf::Fair };
    let mut bins = Vec::new();
    for first in (0..49).step_by(BIN as usize) {
        let range = first..first + BIN;
        let inside = |state: &&PublicState| range.contains(&state.board().occupied());
        let inside: Vec<PublicState> = states.iter().filter(inside).copied().collect();
        if !inside.is_empty() {
            let step = inside.len().div_ceil(kept);
            bins.push((range, inside.into_iter().step_by(step).collect::<Vec<_>>()));
        }
    }
    let mut arms = Vec::new();
    for (range, states) in &bins {
        let player = &player;
        arms.push(Arm::new(format!("{range:?}"), Per::Milliseconds("decision"), move || {
            let mut policy = player.policy();
            for state in states {
                std::hint::black_box(policy.choose(state));
            }
            states.len() as u64
        }));
    }
    let runs = if quick { 3 } else { 7 };
    let schedule = Schedule { runs, slice: Duration::from_millis(if quick { 20 } else { 200 }) };
    let rows = measure(arms, schedule, &ProgressBar::hidden());
    let mut time = Series::new("fair-d3s7");
    for ((range, states), row) in bins.iter().zip(rows) {
        emit(&json!({
            "curve": "fill",
            "occupiedFrom": range.start,
            "occupiedTo": range.end - 1,
            "positions": states.len(),
            "millisecondsPerDecision": row.median,
            "fastest": row.fastest,
            "slowest": row.slowest,
            "utilisation": row.utilisation,
        }));
        time.push(f64::from(range.start + BIN / 2), row.median);
    }
    Ok(Figure {
        title: String::from("Time of a decision over the filling of the board"),
        description: String::from(
            "Milliseconds of processor time of a decision of fair-d3s7, by occupied cells in bins of \
             seven.",
        ),
        x: Axis::linear("occupied cells"),
        panels: vec![Panel { label: "ms per decision", series: vec![time] }],
    })
}

/// Games of a screen per second of the wall clock by the number of workers.
fn workers(most: usize, games: u32) -> Result<Figure, Refusal> {
    let config =
        SearchConfig::bounded(2, 7).map_err(|error| internal("setting a search up", &error))?;
    let player = Player::Search { config, leaf: SearchLeaf::Fair };
    let seeds: Vec<u32> = (FIRST_SEED..FIRST_SEED + games).collect();
    let mut rate = Series::new("fair-d2s7");
    let mut of_one = None;
    for workers in 1..=most {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(workers)
            .build()
            .map_err(|error| internal("starting the worker threads", &error))?;
        let stopwatch = Stopwatch::of_process(workers);
        play_block(&pool, &player, &seeds, MOVE_CAP, &Unwatched, &StopToken::new(), &|_, _| {});
        let taken = stopwatch.taken();
        let per_second = f64::from(games) / taken.wall;
        let of_one = *of_one.get_or_insert(per_second);
        emit(&json!({
            "curve": "workers",
            "workers": workers,
            "games": games,
            "gamesPerSecondOfTheWall": per_second,
            "gamesPerSecond": f64::from(games) / taken.cpu,
            "utilisation": taken.utilisation(),
            "timesOneWorker": per_second / of_one,
        }));
        rate.push(workers as f64, per_second);
    }
    Ok(Figure {
        title: String::from("Games of a screen over workers"),
        description: format!(
            "Games of fair-d2s7 per second of the wall clock, {games} games, by worker threads."
        ),
        x: Axis::linear("worker threads"),
        panels: vec![Panel { label: "games per second", series: vec![rate] }],
    })
}

#[cfg(test)]
mod tests {
    use super::points;

    #[test]
    fn points_go_up_by_three_and_ten_and_end_where_asked() {
        assert_eq!(points(50_000), [50_000]);
        assert_eq!(points(1_000_000), [100_000, 300_000, 1_000_000]);
        assert_eq!(points(2_000_000), [100_000, 300_000, 1_000_000, 2_000_000]);
    }
}
