//! `heldout bench`: how fast this build is on this machine, and how much of that is the machine.
//!
//! Promised: figures are in processor time of the threads that did the work, the median of several
//! slices that took turns, with the best and the worst beside it; slices that did not get a whole
//! processor are flagged. Positions and seeds are fixed. It needs no data folder and no daemon.
//! Refused: any seed that a lease could cover as held out.
//!
//! | room | holds |
//! | --- | --- |
//! | `clock` | processor time of slices |
//! | `arm` | arms that take turns, and the rows they become |
//! | `workloads` | what is measured |
//! | `report` | the table and the document |
//! | `curve` | how cost grows: with moves, with the filling of the board, with workers |
//! | `svg` | the figure of a curve |

mod arm;
mod clock;
mod curve;
mod report;
mod svg;
mod workloads;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use engine_core::ntuple::Layout;
use engine_core::train::Parallel;
use indicatif::ProgressBar;
use rayon::{ThreadPool, ThreadPoolBuilder};

use self::arm::{Schedule, measure};
use self::report::{Report, Skipped};
use self::workloads::{Arrays, Learned, PAGES, SIZES};
use super::{Exit, Session, layouts, out};
use crate::domain::refusal::Refusal;
use crate::exec::unit::internal;
use crate::machine;

/// Arm C of the published studies, and the same without the countdown.
const LAYOUTS: [&str; 2] = ["rows,cols,win23,win32,phase=all", "rows,cols,win23,win32,phase=none"];

/// Games in flight of training in lockstep.
const GAMES: u32 = 16;

/// Memory left alone when the largest array is chosen.
const SPARE: u64 = 1 << 30;

#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    /// Finish in about twenty seconds: fewer and shorter slices, fewer roots, no array of 4 GB.
    #[arg(long)]
    quick: bool,
    /// Measure only what begins with this, like search/fair; may be given more than once.
    #[arg(long, value_name = "PREFIX", conflicts_with = "curve")]
    only: Vec<String>,
    /// A layout to measure tables with, in place of the usual two; may be given more than once.
    #[arg(long, value_name = "LAYOUT")]
    layout: Vec<String>,
    /// Moves that tables learn from before they are measured.
    #[arg(long, value_name = "MOVES", conflicts_with = "curve")]
    warm: Option<u64>,
    /// Slices of every arm.
    #[arg(long, value_name = "N", conflicts_with = "curve")]
    runs: Option<usize>,
    /// Measure how cost grows, one JSON line per point.
    #[arg(long, value_enum, value_name = "KIND")]
    curve: Option<Curve>,
    /// Where the curve of training ends.
    #[arg(long, value_name = "MOVES", requires = "curve", default_value_t = 1_000_000)]
    moves: u64,
    /// Also draw the curve into this file.
    #[arg(long, value_name = "FILE", requires = "curve")]
    svg: Option<PathBuf>,
}

/// What a curve runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Curve {
    /// Moves of training: rate, memory, lines of tables.
    Training,
    /// Occupied cells of the board: time of a decision.
    Fill,
    /// Worker threads: games of a screen per second.
    Workers,
}

/// How thorough a run is.
#[derive(Debug, Clone, Copy)]
struct Plan {
    schedule: Schedule,
    /// Roots of decisions of three and of four plies.
    roots: usize,
    deep_roots: usize,
    /// Moves that tables learn from first.
    warm: u64,
    /// Bytes of the largest array.
    largest: u64,
}

impl Plan {
    const QUICK: Self = Self {
        schedule: Schedule { runs: 3, slice: Duration::from_millis(60) },
        roots: 4,
        deep_roots: 1,
        warm: 20_000,
        largest: SIZES[2].1,
    };
    const FULL: Self = Self {
        schedule: Schedule { runs: 7, slice: Duration::from_millis(400) },
        roots: 20,
        deep_roots: 20,
        warm: 500_000,
        largest: SIZES[3].1,
    };

    fn of(arguments: &BenchArgs) -> Self {
        let mut plan = if arguments.quick { Self::QUICK } else { Self::FULL };
        plan.warm = arguments.warm.unwrap_or(plan.warm);
        plan.schedule.runs = arguments.runs.unwrap_or(plan.schedule.runs).max(1);
        plan
    }
}

/// Which rows are wanted.
#[derive(Debug)]
struct Selection(Vec<String>);

impl Selection {
    fn has(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }

    /// Whether a row that begins with `group` may be wanted.
    fn may_have(&self, group: &str) -> bool {
        self.has(group) || self.0.iter().any(|prefix| prefix.starts_with(group))
    }
}

/// Measures and prints.
pub(super) fn bench(session: &Session, arguments: &BenchArgs) -> Result<Exit, Refusal> {
    let chosen = if arguments.layout.is_empty() {
        layouts(&LAYOUTS.map(String::from))?
    } else {
        layouts(&arguments.layout)?
    };
    if let Some(curve) = arguments.curve {
        curve::print(session, arguments, curve, &chosen)?;
        return Ok(Exit::Done);
    }
    let threads = session.common.threads.unwrap_or(2).max(1);
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| internal("starting the worker threads", &error))?;
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(200));
    let report =
        run(&Plan::of(arguments), &Selection(arguments.only.clone()), &chosen, &pool, &bar);
    bar.finish_and_clear();
    let report = report?;
    if session.common.json {
        out::json(&report)?;
    } else {
        report.print();
    }
    Ok(Exit::Done)
}

fn run(
    plan: &Plan,
    selection: &Selection,
    chosen: &[Layout],
    pool: &ThreadPool,
    bar: &ProgressBar,
) -> Result<Report, Refusal> {
    let threads = pool.current_num_threads();
    let mut rows = Vec::new();
    let mut skipped = Vec::new();
    let largest = fitting(plan.largest, selection, &mut skipped);
    for pages in PAGES {
        bar.set_message(format!("writing arrays on {}", pages.0));
        let arrays = Arrays::filled(selection, pages, largest)?;
        rows.extend(measure(arrays.arms(selection), plan.schedule, bar));
    }

    let mut learned = Vec::new();
    for (index, layout) in chosen.iter().enumerate() {
        let groups = ["features", "value", "direct", "traffic", "limit"];
        let asked = groups.iter().any(|group| selection.may_have(&format!("{group}/{layout}")));
        if asked || (index == 0 && selection.may_have("search/tables")) {
            bar.set_message(format!("learning {layout}"));
            learned.push(Learned::new(*layout, plan.warm)?);
        }
    }
    let mut arms = workloads::play(selection);
    let mut counted = Vec::new();
    if selection.may_have("search/") {
        let (searches, counts) = workloads::search(selection, plan, learned.first(), pool)?;
        arms.extend(searches);
        counted.extend(counts);
    }
    for learned in &learned {
        arms.extend(workloads::tables(selection, learned));
    }
    for layout in chosen {
        let mut ways = vec![("", 1, Parallel::LockFree)];
        if threads > 1 {
            ways.push(("", threads, Parallel::LockFree));
            ways.push((",lockstep", threads, Parallel::Lockstep { games: GAMES }));
        }
        for (how, threads, parallel) in ways {
            let name = format!("training/{layout}/threads={threads}{how}");
            if selection.has(&name) {
                bar.set_message(format!("warming up {name}"));
                let way = (threads, parallel);
                arms.push(workloads::training(name, *layout, way, plan.warm)?);
            }
        }
    }
    rows.extend(measure(arms, plan.schedule, bar));
    rows.append(&mut counted);
    for learned in &learned {
        if selection.may_have("traffic/") || selection.may_have("limit/") {
            let demand = workloads::demand(learned, machine::cache_bytes(), &mut rows);
            workloads::limits(learned.layout(), demand, &mut rows);
        }
    }
    rows.retain(|row| selection.has(&row.name));
    rows.sort_by(|a, b| report::place(&a.name).cmp(&report::place(&b.name)));
    Ok(Report::new(rows, skipped))
}

/// The largest array that leaves some memory free. Says which sizes are left out.
fn fitting(largest: u64, selection: &Selection, skipped: &mut Vec<Skipped>) -> u64 {
    let available = machine::available_bytes().unwrap_or(u64::MAX);
    let mut fits = 0;
    for (size, bytes) in SIZES {
        let reason = if bytes > largest {
            "a quick run leaves it out"
        } else if bytes.saturating_add(SPARE) > available {
            "there is not enough free memory"
        } else {
            fits = bytes;
            continue;
        };
        if selection.may_have("memory/") {
            skipped.push(Skipped { name: format!("memory/*/{size}"), reason });
        }
    }
    fits
}
