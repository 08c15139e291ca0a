//! What is measured: every arm of the benchmark, and what it needs.

use std::sync::Arc;

use engine_core::drop7::PublicState;
use engine_core::ntuple::tables::{PageSize, STUDY_START};
use engine_core::ntuple::{FrozenTables, Lanes, Layout, TrainTables};
use engine_core::progress::{StopToken, Unwatched};
use engine_core::screen::{Player, SearchLeaf};
use engine_core::search::SearchConfig;
use engine_core::train::{Parallel, SeedBlock, TrainConfig, Trainer};
use engine_core::workload::memory::Array;
use engine_core::workload::{self, FairReader, positions, traffic};
use rayon::ThreadPool;

use super::arm::{Arm, Per, Row};
use super::{Plan, Selection};
use crate::domain::refusal::Refusal;
use crate::exec::unit::internal;

/// Training plays the block that the published studies trained on: no held-out game is in it.
pub(super) const TRAINING: SeedBlock = SeedBlock { start: 0xa530_0000, count: 2_031_616 };

/// Moves of one call of the trainer; a few hundred games, so that the last ones of several threads
/// do not weigh.
const CHUNK: u64 = 10_000;

/// Positions that tables are asked about.
const POSITIONS: usize = 4096;

/// A trainer at the start of a run with `threads` threads that share the tables like this.
pub(super) fn trainer(
    layout: Layout,
    threads: usize,
    parallel: Parallel,
) -> Result<Trainer, Refusal> {
    let settings = TrainConfig::new(layout, TRAINING);
    let config = TrainConfig { threads: threads as u32, parallel, ..settings };
    let tables = TrainTables::fresh(layout, STUDY_START)
        .map_err(|error| internal("setting tables up", &error))?;
    Trainer::new(config, Arc::new(tables)).map_err(|error| internal("setting a trainer up", &error))
}

/// Trains on to `moves` moves.
pub(super) fn train_to(trainer: &mut Trainer, moves: u64) {
    let missing = moves.saturating_sub(trainer.state().moves);
    if missing > 0 {
        trainer.advance(missing, &Unwatched, &StopToken::new());
    }
}

/// Tables of one layout that have learned, with the positions they lead to.
pub(super) struct Learned {
    layout: Layout,
    tables: Arc<FrozenTables>,
    states: Vec<PublicState>,
}

impl Learned {
    /// Trains `layout` for `moves` moves.
    pub(super) fn new(layout: Layout, moves: u64) -> Result<Self, Refusal> {
        let mut trainer = trainer(layout, 1, Parallel::LockFree)?;
        train_to(&mut trainer, moves);
        let tables =
            trainer.tables().freeze().map_err(|error| internal("freezing tables", &error))?;
        let tables = Arc::new(tables);
        let states = positions::played_by_tables(&tables, POSITIONS);
        Ok(Self { layout, tables, states })
    }

    /// What the tables read.
    pub(super) const fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// Arms of the rules and of the fair leaf.
pub(super) fn play<'a>(selection: &Selection) -> Vec<Arm<'a>> {
    let mut arms = Vec::new();
    let name = "engine/centre-first";
    if selection.has(name) {
        arms.push(Arm::new(name.into(), Per::Second("moves"), || workload::centre_first(100)));
    }
    let name = "engine/simulated-move";
    if selection.has(name) {
        let states = positions::probes();
        arms.push(
            Arm::new(name.into(), Per::Nanoseconds("board"), move || workload::simulate(&states))
                .noting("played once up to the first reveal, then once per sample"),
        );
    }
    let name = "leaf/fair";
    if selection.has(name) {
        let states = positions::probes();
        let mut reader = FairReader::default();
        arms.push(Arm::new(name.into(), Per::Nanoseconds("board"), move || {
            reader.read(&states);
            states.len() as u64
        }));
    }
    arms
}

/// Arms of the search, and what its decisions count. A searcher decides on all roots, as it decides on
/// all moves of a game.
pub(super) fn search<'a>(
    selection: &Selection,
    plan: &Plan,
    learned: Option<&Learned>,
    pool: &'a ThreadPool,
) -> Result<(Vec<Arm<'a>>, Vec<Row>), Refusal> {
    let failed = |error| internal("setting a search up", &error);
    let (mut arms, mut rows) = (Vec::new(), Vec::new());
    let roots = positions::roots().map_err(failed)?;
    let leaves = [
        ("fair", Some(SearchLeaf::Fair)),
        ("tables", learned.map(|learned| SearchLeaf::Tables(Arc::clone(&learned.tables)))),
    ];
    for (depth, count) in [(3, plan.roots), (4, plan.deep_roots)] {
        let config = SearchConfig::bounded(depth, 7).map_err(failed)?;
        for (kind, leaf) in &leaves {
            let name = format!("search/{kind}-d{depth}s7");
            let Some(leaf) = leaf else { continue };
            if !selection.has(&name) {
                continue;
            }
            let roots = spread(&roots, count);
            let player = Player::Search { config, leaf: leaf.clone() };
            let mut policy = player.policy();
            let work: u64 = roots.iter().map(|root| policy.choose(root).work).sum();
            drop(policy);
            let per_decision = |sum: u64| sum as f64 / roots.len() as f64;
            let read = traffic::leaves_read(config, leaf, &roots);
            let note = format!("mean of {count} roots");
            for (what, figure) in [("logical-work", work), ("leaves-evaluated", read)] {
                let name = format!("{name}/{what}");
                rows.push(Row::counted(name, "per decision", per_decision(figure), note.clone()));
            }
            let decide = move || {
                let mut policy = player.policy();
                for root in &roots {
                    std::hint::black_box(policy.choose(root));
                }
                roots.len() as u64
            };
            arms.push(Arm::new(name, Per::Milliseconds("decision"), decide).noting(note));
        }
    }
    let threads = pool.current_num_threads();
    let name = format!("search/fair-d4s7/threads={threads}");
    if threads > 1 && selection.has(&name) {
        let config = SearchConfig::bounded(4, 7).map_err(failed)?;
        let roots = spread(&roots, plan.deep_roots);
        let arm = Arm::new(name, Per::Milliseconds("decision"), move || {
            workload::decide_on_several_cores(pool, config, &roots)
        });
        arms.push(arm.on(threads));
    }
    Ok((arms, rows))
}

/// `count` of the roots, early and late.
fn spread(roots: &[PublicState], count: usize) -> Vec<PublicState> {
    roots.iter().copied().step_by(roots.len() / count).take(count).collect()
}

/// Arms that ask learned tables.
pub(super) fn tables<'a>(selection: &Selection, learned: &'a Learned) -> Vec<Arm<'a>> {
    let layout = learned.layout;
    let mut arms = Vec::new();
    let name = format!("features/{layout}");
    if selection.has(&name) {
        let boards = positions::boards(&learned.states);
        let mut lanes = Lanes::new();
        arms.push(Arm::new(name, Per::Nanoseconds("board"), move || {
            workload::features(&layout, &boards, &mut lanes);
            boards.len() as u64
        }));
    }
    let name = format!("value/{layout}");
    if selection.has(&name) {
        let boards = positions::boards(&learned.states);
        let (mut lanes, mut values) = (Lanes::new(), Vec::new());
        let arm = Arm::new(name, Per::Nanoseconds("board"), move || {
            workload::values(&learned.tables, &boards, &mut lanes, &mut values);
            boards.len() as u64
        });
        arms.push(arm.noting("features and look-ups"));
    }
    let name = format!("direct/{layout}");
    if selection.has(&name) {
        let player = Player::Direct(Arc::clone(&learned.tables));
        arms.push(Arm::new(name, Per::Second("decisions"), move || {
            let mut policy = player.policy();
            for state in &learned.states {
                std::hint::black_box(policy.choose(state));
            }
            learned.states.len() as u64
        }));
    }
    arms
}

/// What one move of training asks of memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demand {
    look_ups: f64,
    lines: f64,
    updates: f64,
    /// Lines beyond the second-level cache, and weights and history beyond the third.
    beyond: Option<[f64; 3]>,
}

/// Counts what a move of training asks of memory. `caches` are the bytes of the second and the third
/// level, where the system says.
pub(super) fn demand(learned: &Learned, caches: Option<[u64; 2]>, rows: &mut Vec<Row>) -> Demand {
    let states = &learned.states;
    let traffic = traffic::of_moves(&learned.tables, states, caches.unwrap_or_default());
    let per_move = |sum: u64| sum as f64 / traffic.moves.max(1) as f64;
    let far = traffic.far_weights + traffic.far_history;
    let demand = Demand {
        look_ups: per_move(traffic.look_ups),
        lines: per_move(traffic.lines),
        updates: learned.layout.active() as f64,
        beyond: caches
            .map(|_| [traffic.near, traffic.far_weights, traffic.far_history].map(per_move)),
    };
    let mut figures =
        vec![("look-ups", demand.look_ups), ("lines", demand.lines), ("updates", demand.updates)];
    if caches.is_some() {
        figures.push(("lines-beyond-L2", per_move(traffic.near + far)));
        figures.push(("lines-beyond-L3", per_move(far)));
    }
    for (what, figure) in figures {
        let name = format!("traffic/{}/{what}", learned.layout);
        let note = if what.contains("beyond") { "of weights and history, simulated" } else { "" };
        rows.push(Row::counted(name, "per move", figure, note.to_owned()));
    }
    demand
}

/// Training goes on from slice to slice, from `warm` moves on.
pub(super) fn training<'a>(
    name: String,
    layout: Layout,
    (threads, parallel): (usize, Parallel),
    warm: u64,
) -> Result<Arm<'a>, Refusal> {
    let mut trainer = trainer(layout, threads, parallel)?;
    train_to(&mut trainer, warm);
    let arm = Arm::new(name, Per::Second("moves"), move || {
        trainer.advance(CHUNK, &Unwatched, &StopToken::new()).tally.moves
    });
    Ok(arm.on(threads).noting(format!("from {warm} moves on")))
}

/// Sizes of arrays: inside the second-level cache, inside or near the third, beyond it, and beyond
/// what 2 MB pages can address without a walk.
pub(super) const SIZES: [(&str, u64); 4] =
    [("1MB", 1 << 20), ("30MB", 30 << 20), ("250MB", 250 << 20), ("4GB", 4 << 30)];

/// The arrays of one page size.
pub(super) struct Arrays {
    pages: &'static str,
    arrays: Vec<(&'static str, Array)>,
}

/// Page sizes by the name they have in rows.
pub(super) const PAGES: [(&str, PageSize); 2] =
    [("2MB-pages", PageSize::Huge), ("4KB-pages", PageSize::Small)];

impl Arrays {
    /// Writes the arrays that are wanted and not above `largest` bytes.
    pub(super) fn filled(
        selection: &Selection,
        (pages, page_size): (&'static str, PageSize),
        largest: u64,
    ) -> Result<Self, Refusal> {
        let mut arrays = Vec::new();
        for (size, bytes) in SIZES {
            let wanted = ["read", "update"]
                .iter()
                .any(|what| selection.has(&format!("memory/{what}/{size}/{pages}")));
            if wanted && bytes <= largest {
                let array = Array::filled(bytes, page_size)
                    .map_err(|error| internal("mapping an array", &error))?;
                arrays.push((size, array));
            }
        }
        Ok(Self { pages, arrays })
    }

    /// Random reads and updates of every array.
    pub(super) fn arms<'a>(&'a self, selection: &Selection) -> Vec<Arm<'a>> {
        const COUNT: u64 = 1 << 16;
        let mut arms = Vec::new();
        for (what, per) in [("read", Per::Second("lines")), ("update", Per::Second("records"))] {
            for (size, array) in &self.arrays {
                let name = format!("memory/{what}/{size}/{}", self.pages);
                if !selection.has(&name) {
                    continue;
                }
                let mut seed = 0;
                arms.push(Arm::new(name, per, move || {
                    seed += 1;
                    if what == "read" { array.read(seed, COUNT) } else { array.update(seed, COUNT) }
                }));
            }
        }
        arms
    }
}

/// Moves per second of one thread if memory did nothing but what training asks of it, at the random
/// rates that were measured on 2 MB pages: of the largest array for what comes from memory, of 30 MB
/// for what the third-level cache holds.
pub(super) fn limits(layout: &Layout, demand: Demand, rows: &mut Vec<Row>) {
    let rate_of = |what: &str, size: &str| {
        let name = format!("memory/{what}/{size}/{}", PAGES[0].0);
        rows.iter().find(|row| row.name == name).map(|row| row.median)
    };
    let largest = |what: &str| {
        SIZES.iter().rev().find_map(|(size, _)| rate_of(what, size).map(|rate| (*size, rate)))
    };
    let (Some((size, reads)), Some((_, updates))) = (largest("read"), largest("update")) else {
        return;
    };
    let learning = demand.updates / updates;
    let mut limits = vec![
        ("look-ups", demand.look_ups / reads + learning, format!("every look-up from {size}")),
        ("lines", demand.lines / reads + learning, format!("every line once per move from {size}")),
    ];
    if let (Some([near, weights, history]), Some(cached)) =
        (demand.beyond, rate_of("read", SIZES[1].0))
    {
        let seconds = near / cached + weights / reads + history / updates;
        limits.push(("caches", seconds, format!("only what the caches do not hold, from {size}")));
    }
    let name = format!("training/{layout}/threads=1");
    if let Some(row) = rows.iter_mut().find(|row| row.name == name) {
        let shares: Vec<String> = limits
            .iter()
            .map(|(what, seconds, _)| format!("{:.2} of limit {what}", row.median * seconds))
            .collect();
        row.note = format!("{}; {}", shares.join(", "), row.note);
    }
    for (what, seconds, note) in limits {
        rows.push(Row::counted(format!("limit/{layout}/{what}"), "moves/s", 1.0 / seconds, note));
    }
}
