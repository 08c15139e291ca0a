//! Moves per second of the training loop, the memory it takes, and what a checkpoint and a file of
//! the weights cost after it.
//!
//! `cargo bench -p engine-core --bench train -- [LAYOUT [THREADS [MOVES]]]`; without arguments the
//! small line layout with one and with two threads.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use std::time::Instant;

use engine_core::ntuple::{TrainTables, file};
use engine_core::progress::{StopToken, Unwatched};
use engine_core::train::best::freeze;
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

    let lines = tables.existing_lines();
    println!(
        "  {lines} lines exist, {:.0} MB of lines and {:.0} MB of directory; {:.0} MB resident",
        lines as f64 * 192.0 / 1e6,
        config.layout.entries() as f64 / 4e6,
        memory("VmRSS")?,
    );
    let touched = timed("count touched entries", || Ok(tables.touched()))?;
    println!("  {touched} of {} entries touched", config.layout.entries());

    let folder = std::env::temp_dir().join(format!("heldout-bench-train-{}", std::process::id()));
    let mut checkpoints = Checkpoints::open(&folder)?;
    let saved = timed("save checkpoint", || {
        Ok(checkpoints.save(&tables, &config, trainer.state(), &())?)
    })?;
    println!("  checkpoint of {} bytes", saved.stored_bytes);
    let found = timed("load checkpoint", || Ok(checkpoints.load::<()>(&config)?))?;
    let found = found.restored.ok_or("the checkpoint does not load")?;
    if found.tables.touched() != touched {
        return Err("the checkpoint holds something else".into());
    }
    drop(found);

    let frozen = timed("freeze", || Ok(tables.freeze()?))?;
    let file = timed("publish weights", || Ok(freeze(&frozen, &folder, "weights.zst")?))?;
    println!("  weights of {} bytes, stored in {}", file.bytes, file.stored_bytes);
    drop(frozen);
    timed("load weights", || {
        let stored = BufReader::with_capacity(1 << 20, File::open(folder.join("weights.zst"))?);
        Ok(file::decompressed(stored, |plain| file::read_frozen(plain))?)
    })?;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// Says how long `work` takes, in wall and in CPU time of all threads, and how much memory it takes
/// at its peak, on top of what there was.
fn timed<T>(name: &str, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // Restarts the peak; where that is refused, the peak is that of the whole run.
    let _refused = std::fs::write("/proc/self/clear_refs", "5");
    let before = memory("VmRSS")?;
    let (begin, used) = (Instant::now(), cpu_seconds()?);
    let done = work()?;
    println!(
        "  {name}: {:.2} s, {:.2} CPU s, at most {:.0} MB more",
        begin.elapsed().as_secs_f64(),
        cpu_seconds()? - used,
        memory("VmHWM")? - before,
    );
    Ok(done)
}

/// CPU time of this process, as the kernel counts it in hundredths.
fn cpu_seconds() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program, which may hold blanks, is in brackets; eleven figures later come the
    // ticks of the program and of the kernel for it.
    let words = text.rsplit(')').next().unwrap_or("").split_whitespace();
    let ticks: Vec<f64> = words.skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / 100.0)
}

/// A figure of this process in MB.
fn memory(figure: &str) -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
    let word = line.and_then(|rest| rest.split_whitespace().next()).ok_or("no such figure")?;
    Ok(word.parse::<f64>()? * 1024.0 / 1e6)
}
