//! How many instructions the hot paths take, and that they do not take more: `cargo bench -p
//! engine-core --bench instructions`. It needs valgrind, and `gungraun-runner` of the same version as
//! the library.
//!
//! Instructions are counted and not timed, so a figure is the same on a busy machine. Every count was
//! measured in the bench profile with the compiler that the workspace names; more than 3 % above it
//! fails, and so does it in CI. After a change that is worth its instructions, or one that saves some,
//! or with another compiler, put the counts that this prints into the `counted` of the benchmark and
//! say in the commit why they changed. Instructions are not time: a path may get faster by taking more
//! of them, and `heldout bench` says whether it did.
//!
//! The sets `avx2` and `portable` are counted; valgrind cannot run the instructions of `avx512`. A
//! name selects: `-- '*portable*'` for a processor without AVX2.
#![expect(missing_docs, reason = "the macros make undocumented items")]
#![expect(unused_qualifications, reason = "the macros qualify what they name")]
#![expect(clippy::exit, clippy::disallowed_methods, reason = "the macros end the process")]
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]

use std::hint::black_box;
use std::sync::Arc;

use engine_core::drop7::{Board, PublicState};
use engine_core::instructions::{InstructionSet, VARIABLE};
use engine_core::leaf::FairLeaf;
use engine_core::ntuple::direct::{DirectDecision, DirectPolicy};
use engine_core::ntuple::leaf::TableLeaf;
use engine_core::ntuple::tables::UpdateReport;
use engine_core::ntuple::{Features, FrozenTables, LANES, Lanes, Layout, TrainTables};
use engine_core::progress::{StopToken, Unwatched};
use engine_core::search::{Decision, SearchConfig, Searcher};
use engine_core::train::{SeedBlock, TrainConfig, Trainer};
use engine_core::workload::{self, FairReader, positions};
use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};

/// A benchmark on the set `name`, which took `counted` instructions: 3 % more are too many.
fn on(name: &str, counted: u64) -> LibraryBenchmarkConfig {
    let mut callgrind = Callgrind::with_args(["--cache-sim=no"]);
    callgrind.hard_limits([(EventKind::Ir, counted + counted * 3 / 100)]);
    let mut config = LibraryBenchmarkConfig::default();
    config.env(VARIABLE, name).tool(callgrind);
    config
}

/// Every benchmark begins here: another set than the named one would be counted silently.
fn checked<T>(input: T) -> T {
    assert_eq!(InstructionSet::forced(), Ok(Some(InstructionSet::active())));
    input
}

fn layout() -> Layout {
    "win23,win32,phase=none".parse().unwrap()
}

/// Tables after a few games.
fn learned() -> Arc<TrainTables> {
    let seeds = SeedBlock { start: workload::FIRST_SEED, count: 100 };
    let tables = Arc::new(TrainTables::fresh(layout(), 20.0).unwrap());
    let mut trainer = Trainer::new(TrainConfig::new(layout(), seeds), tables).unwrap();
    trainer.advance(300, &Unwatched, &StopToken::new());
    Arc::clone(trainer.tables())
}

fn frozen() -> Arc<FrozenTables> {
    Arc::new(learned().freeze().unwrap())
}

fn config() -> SearchConfig {
    SearchConfig::bounded(2, 7).unwrap()
}

fn root() -> PublicState {
    positions::roots().unwrap()[2]
}

/// Sixteen boards from play.
fn boards() -> Vec<(Board, u8)> {
    let states: Vec<PublicState> = positions::probes().into_iter().step_by(20).collect();
    positions::boards(&states[..LANES])
}

fn some_probes() -> Vec<PublicState> {
    checked(positions::probes().into_iter().step_by(12).take(64).collect())
}

#[library_benchmark]
#[bench::avx2(args = (checked(4)), config = on("avx2", 57_135))]
#[bench::portable(args = (checked(4)), config = on("portable", 61_968))]
fn step(games: u32) -> u64 {
    black_box(workload::centre_first(black_box(games)))
}

#[library_benchmark]
#[bench::avx2(args = (some_probes()), config = on("avx2", 388_134))]
#[bench::portable(args = (some_probes()), config = on("portable", 455_979))]
fn simulated_moves(states: Vec<PublicState>) -> (u64, Vec<PublicState>) {
    (black_box(workload::simulate(black_box(&states))), states)
}

/// A reader whose memory exists already.
fn reader() -> (FairReader, Vec<PublicState>) {
    let states = some_probes();
    let mut reader = FairReader::default();
    reader.read(&states);
    (reader, states)
}

#[library_benchmark]
#[bench::avx2(args = (reader()), config = on("avx2", 103_492))]
#[bench::portable(args = (reader()), config = on("portable", 120_482))]
fn fair_leaf(input: (FairReader, Vec<PublicState>)) -> (f64, (FairReader, Vec<PublicState>)) {
    let (mut reader, states) = input;
    (black_box(reader.read(black_box(&states))), (reader, states))
}

type Boards = (Layout, Vec<(Board, u8)>, Box<Lanes>);

fn lanes() -> Boards {
    checked((layout(), boards(), Box::new(Lanes::new())))
}

#[library_benchmark]
#[bench::avx2(args = (lanes()), config = on("avx2", 3_900))]
#[bench::portable(args = (lanes()), config = on("portable", 7_762))]
fn features_of_sixteen_boards(mut input: Boards) -> Boards {
    workload::features(&input.0, &input.1, &mut input.2);
    input
}

type Asked = (Arc<FrozenTables>, Vec<(Board, u8)>, Box<Lanes>, Vec<f32>);

fn asked() -> Asked {
    checked((frozen(), boards(), Box::new(Lanes::new()), Vec::with_capacity(LANES)))
}

#[library_benchmark]
#[bench::avx2(args = (asked()), config = on("avx2", 21_525))]
#[bench::portable(args = (asked()), config = on("portable", 26_072))]
fn values_of_sixteen_boards(mut input: Asked) -> Asked {
    workload::values(&input.0, &input.1, &mut input.2, &mut input.3);
    input
}

type Direct = (DirectPolicy<Arc<FrozenTables>>, PublicState);

/// A policy that has decided once.
fn direct() -> Direct {
    let mut policy = DirectPolicy::new(checked(frozen()));
    policy.decide(&root());
    (policy, root())
}

#[library_benchmark]
#[bench::avx2(args = (direct()), config = on("avx2", 33_032))]
#[bench::portable(args = (direct()), config = on("portable", 39_308))]
fn direct_decision(mut input: Direct) -> (DirectDecision, Direct) {
    (black_box(input.0.decide(black_box(&input.1))), input)
}

type Fair = (Searcher<FairLeaf>, PublicState);

fn fair() -> Fair {
    checked((Searcher::new(config(), FairLeaf), root()))
}

#[library_benchmark]
#[bench::avx2(args = (fair()), config = on("avx2", 900_049))]
#[bench::portable(args = (fair()), config = on("portable", 1_029_207))]
fn fair_d2s7(mut input: Fair) -> (Decision, Fair) {
    (black_box(input.0.decide(black_box(&input.1))), input)
}

type Tables = (Searcher<TableLeaf<Arc<FrozenTables>>>, PublicState);

fn tables() -> Tables {
    checked((Searcher::new(config(), TableLeaf::new(frozen())), root()))
}

#[library_benchmark]
#[bench::avx2(args = (tables()), config = on("avx2", 619_125))]
#[bench::portable(args = (tables()), config = on("portable", 729_232))]
fn tables_d2s7(mut input: Tables) -> (Decision, Tables) {
    (black_box(input.0.decide(black_box(&input.1))), input)
}

type Learning = (Arc<TrainTables>, Features);

/// Entries that have learned before.
fn learning() -> Learning {
    let tables = checked(learned());
    let mut features = Features::new();
    let root = root().canonical().0;
    layout().features(root.board(), root.moves_remaining(), &mut features);
    tables.update(&features, 21.0, 1.0, 30.0);
    (tables, features)
}

#[library_benchmark]
#[bench::avx2(args = (learning()), config = on("avx2", 5_514))]
#[bench::portable(args = (learning()), config = on("portable", 5_514))]
fn update(input: Learning) -> (UpdateReport, Learning) {
    (black_box(input.0.update(black_box(&input.1), 19.0, 1.0, 30.0)), input)
}

library_benchmark_group!(
    name = hot_paths,
    benchmarks = [
        step,
        simulated_moves,
        fair_leaf,
        features_of_sixteen_boards,
        values_of_sixteen_boards,
        direct_decision,
        fair_d2s7,
        tables_d2s7,
        update
    ]
);

main!(library_benchmark_groups = hot_paths);
