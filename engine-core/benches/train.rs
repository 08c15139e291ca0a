//! Moves per second of the training loop, and what a checkpoint costs after it.
//!
//! `cargo bench -p engine-core --bench train -- [LAYOUT [THREADS [MOVES]]]`; without arguments the
//! small line layout with one and with two threads.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::sync::Arc;
use std::time::Instant;

use engine_core::ntuple::TrainTables;
use engine_core::progress::{StopToken, Unwatched};
use engine_core::train::checkpoint::Checkpoints;
use engine_core::train::{SeedBlock, TrainConfig, Trainer};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    // `cargo bench` passes a flag of its own.
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let layout = words.next();
    let threads = words.next().map(|word| word.parse()).transpose()?;
    let moves = words.next().map(|word| word.parse()).transpose()?.unwrap_or(1_000_000);
    let layout = layout.as_deref().unwrap_or("rows,cols,phase=none");
    match threads {
        Some(threads) => measure(layout, threads, moves),
        None => [1, 2].into_iter().try_for_each(|threads| measure(layout, threads, moves)),
    }
}

fn measure(layout: &str, threads: u32, moves: u64) -> Result<(), Failure> {
    let seeds = SeedBlock { start: 0xa530_0000, count: 2_031_616 };
    let config = TrainConfig { threads, ..TrainConfig::new(layout.parse()?, seeds) };
    let tables = Arc::new(TrainTables::fresh(config.layout, config.optimistic_rises)?);
    let mut trainer = Trainer::new(config.clone(), Arc::clone(&tables))?;
    let begin = Instant::now();
    let report = trainer.advance(moves, &Unwatched, &StopToken::new());
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{layout}, {threads} thread(s): {} moves in {seconds:.1} s, {:.0} moves/s, mean score {:.0}",
        report.moves_total,
        report.moves_total as f64 / seconds,
        report.tally.mean_score(),
    );

    let begin = Instant::now();
    let touched = tables.touched();
    println!(
        "  {touched} of {} entries touched, counted in {:.2} s",
        config.layout.entries(),
        begin.elapsed().as_secs_f64()
    );
    let folder = std::env::temp_dir().join(format!("heldout-bench-train-{}", std::process::id()));
    let mut checkpoints = Checkpoints::open(&folder)?;
    let begin = Instant::now();
    let saved = checkpoints.save(&tables, &config, trainer.state(), &())?;
    println!(
        "  checkpoint of {} bytes in {:.2} s",
        saved.stored_bytes,
        begin.elapsed().as_secs_f64()
    );
    let begin = Instant::now();
    let found = checkpoints.load::<()>(&config)?;
    println!("  restored in {:.2} s: {}", begin.elapsed().as_secs_f64(), found.restored.is_some());
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
