//! Lockstep training: a function of the configuration and the games in flight, for any number of
//! threads, however often it is stopped; with one game in flight it is serial training.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use engine_core::drop7::{Board, Game};
use engine_core::ntuple::direct::DirectPolicy;
use engine_core::ntuple::tables::Record;
use engine_core::ntuple::{Features, TrainTables, Weights};
use engine_core::progress::{Progress, StopToken, Unwatched};
use engine_core::train::checkpoint::{CheckpointError, Checkpoints};
use engine_core::train::{
    ChunkReport, InFlight, Parallel, SeedBlock, TrainConfig, TrainError, TrainState, Trainer,
};
use proptest::prelude::*;

use crate::checkpoints::{Entries, fresh, written};

/// Small tables, short games, random columns, and a seed block that wraps.
fn config(games: u32, threads: u32) -> TrainConfig {
    let seeds = SeedBlock { start: 0xa527_7000, count: 40 };
    let layout = "cols,win32,phase=none".parse().unwrap();
    let parallel = Parallel::Lockstep { games };
    TrainConfig { epsilon: 0.1, move_cap: 60, threads, parallel, ..TrainConfig::new(layout, seeds) }
}

/// A report without the one figure that tells how many threads there were.
fn row(mut report: ChunkReport) -> ChunkReport {
    report.workers = 0;
    report
}

/// Everything a run leaves.
#[derive(Debug, PartialEq)]
struct Left {
    rows: Vec<ChunkReport>,
    state: TrainState,
    entries: Entries,
    /// The stored records.
    checkpoint_sha256: String,
}

fn left(
    config: &TrainConfig,
    tables: &TrainTables,
    rows: Vec<ChunkReport>,
    state: TrainState,
) -> Left {
    let folder = tempfile::tempdir().unwrap();
    let mut checkpoints = Checkpoints::open(folder.path()).unwrap();
    let saved = checkpoints.save(tables, config, &state, &()).unwrap();
    Left { rows, state, entries: written(tables), checkpoint_sha256: saved.tables_sha256 }
}

const CHUNKS: [u64; 3] = [900, 1, 400];

fn uninterrupted(config: &TrainConfig) -> Left {
    let tables = fresh(config);
    let mut trainer = Trainer::new(config.clone(), Arc::clone(&tables)).unwrap();
    let rows = CHUNKS
        .iter()
        .map(|&moves| row(trainer.advance(moves, &Unwatched, &StopToken::new())))
        .collect();
    left(config, &tables, rows, trainer.state().clone())
}

#[test]
fn one_game_in_flight_is_serial_training() {
    let lockstep = config(1, 3);
    let serial = TrainConfig { threads: 1, parallel: Parallel::LockFree, ..lockstep.clone() };
    assert_eq!(uninterrupted(&lockstep), uninterrupted(&serial));

    // Also in the states that stops after a game leave.
    let stopped = |config: &TrainConfig| {
        let tables = fresh(config);
        let mut trainer = Trainer::new(config.clone(), tables).unwrap();
        let mut states = Vec::new();
        while trainer.state().chunk == 0 {
            let stop = StopToken::new();
            trainer.advance(500, &StopAfter { games: 3.into(), token: stop.clone() }, &stop);
            states.push(trainer.state().clone());
        }
        states
    };
    let states = stopped(&lockstep);
    assert!(states.len() > 3, "{states:?}");
    assert_eq!(states, stopped(&serial));
}

#[test]
fn any_number_of_threads_leaves_the_same() {
    for games in [2, 8, 16] {
        let one = uninterrupted(&config(games, 1));
        assert_eq!(one.rows.len(), CHUNKS.len());
        for report in &one.rows {
            let tally = &report.tally;
            assert_eq!(tally.updates, tally.moves, "every move of a finished game was learned");
            assert!(
                tally.games >= u64::from(games),
                "a chunk plays every game in flight to its end"
            );
        }
        assert_eq!(one.state.cursor, one.state.games);
        for threads in 2..=4 {
            assert!(
                uninterrupted(&config(games, threads)) == one,
                "{games} games, {threads} threads"
            );
        }
    }
}

#[test]
fn games_in_flight_are_part_of_what_is_learned() {
    let [two, eight] = [2, 8].map(|games| uninterrupted(&config(games, 1)));
    assert!(two.entries != eight.entries);
}

/// The definition, one thing after the other.
fn step_by_step(config: &TrainConfig, games: usize, end: u64) -> (Arc<TrainTables>, [f64; 2]) {
    struct Playing {
        game: Game,
        position: Features,
    }
    let tables = fresh(config);
    let layout = *tables.layout();
    let mut policy = DirectPolicy::new(&*tables);
    let (mut moves, mut cursor, mut sums) = (0, 0, [0.0; 2]);
    let mut slots: Vec<Option<Playing>> = (0..games).map(|_| None).collect();
    loop {
        for slot in &mut slots {
            if slot.is_none() && moves < end {
                let mut position = Features::new();
                layout.features(&Board::INITIAL, 5, &mut position);
                *slot = Some(Playing { game: Game::new(config.seeds.at(cursor)), position });
                cursor += 1;
            }
        }
        if slots.iter().all(Option::is_none) {
            return (tables.clone(), sums);
        }
        let mut updates = Vec::new();
        for slot in &mut slots {
            let Some(Playing { game, position }) = slot else { continue };
            let column = policy.decide(game.public()).action.unwrap();
            let mut target = game.play(column).unwrap().delta as f32 / 17_000.0;
            let after = game.public();
            let mut next = Features::new();
            if !after.is_over() {
                layout.features(after.board(), after.moves_remaining(), &mut next);
                target += tables.value(&next);
            }
            let error = (target - tables.value(position)).clamp(-config.clamp, config.clamp);
            updates.push((std::mem::replace(position, next), error));
        }
        for (position, error) in updates {
            sums[0] += f64::from(error.abs());
            for &index in position.as_slice() {
                let Record { weight, error: e, abs_error: a } = tables.record(index);
                let beta = if a > 0.0 { e.abs() / a } else { 1.0 };
                sums[1] += f64::from(beta);
                let step = config.alpha * error / layout.active() as f32;
                let record = Record {
                    weight: weight + beta * step,
                    error: e + error,
                    abs_error: a + error.abs(),
                };
                tables.set_record(index, record);
            }
        }
        for slot in &mut slots {
            if let Some(Playing { game, .. }) = slot
                && (game.public().is_over() || game.moves_played() >= config.move_cap)
            {
                moves += u64::from(game.moves_played());
                *slot = None;
            }
        }
    }
}

#[test]
fn rounds_follow_the_definition() {
    for games in [1_u32, 3, 16] {
        let config = TrainConfig { epsilon: 0.0, ..config(games, 2) };
        let tables = fresh(&config);
        let mut trainer = Trainer::new(config.clone(), Arc::clone(&tables)).unwrap();
        let tally = trainer.advance(1_500, &Unwatched, &StopToken::new()).tally;
        let (defined, sums) = step_by_step(&config, games as usize, 1_500);
        assert!(written(&tables) == written(&defined), "{games} games: entries differ");
        assert_eq!([tally.abs_delta_sum, tally.beta_sum], sums, "{games} games");
    }
}

/// Pulls the stop token after a number of finished games.
struct StopAfter {
    games: AtomicU64,
    token: StopToken,
}

impl Progress for StopAfter {
    fn advance(&self, _moves: u64) {
        if self.games.fetch_sub(1, Relaxed) == 1 {
            self.token.stop();
        }
    }
}

/// The run in sittings, each on the next number of threads; `sit` plays one. The first few sittings
/// go through files.
fn in_sittings(
    games: u32,
    threads: &[u32],
    mut sit: impl FnMut(&mut Trainer, u64) -> ChunkReport,
) -> (Left, usize) {
    let folder = tempfile::tempdir().unwrap();
    let first = config(games, 1);
    let (mut rows, mut state, mut tables) = (Vec::new(), TrainState::default(), fresh(&first));
    let mut in_flight = 0;
    for (sitting, &threads) in threads.iter().cycle().enumerate() {
        let Some(&moves) = CHUNKS.get(state.chunk as usize) else { break };
        let config = config(games, threads);
        let trainer = Trainer::new(config.clone(), Arc::clone(&tables)).unwrap();
        let mut trainer = trainer.resume(state).unwrap();
        let report = sit(&mut trainer, moves);
        state = trainer.state().clone();
        in_flight += state.open.as_ref().map_or(0, |open| open.in_flight.len());
        assert_eq!(report.stopped, state.open.is_some());
        if !report.stopped {
            rows.push(row(report));
        }
        if sitting < 3 {
            Checkpoints::open(folder.path())
                .unwrap()
                .save(&tables, &config, &state, &rows)
                .unwrap();
            let mut checkpoints = Checkpoints::open(folder.path()).unwrap();
            let found = checkpoints.load(&TrainConfig { threads: 7, ..config }).unwrap();
            let restored = found.restored.unwrap();
            (rows, state, tables) = (restored.curve, restored.state, Arc::new(restored.tables));
        }
    }
    (left(&first, &tables, rows, state), in_flight)
}

#[test]
fn a_run_stopped_anywhere_and_resumed_on_other_threads_ends_with_the_same_bits() {
    for games in [1, 2, 8, 16] {
        let whole = uninterrupted(&config(games, 1));
        for games_per_sitting in [1_u64, 5] {
            let (stopped, in_flight) = in_sittings(games, &[2, 1, 4, 3], |trainer, moves| {
                let stop = StopToken::new();
                let games = games_per_sitting.into();
                trainer.advance(moves, &StopAfter { games, token: stop.clone() }, &stop)
            });
            assert!(stopped == whole, "{games} games, {games_per_sitting} per sitting");
            assert_eq!(in_flight > 0, games > 1, "after a game the only one is over");
        }
        // Between any two rounds, wherever the other thread's clock has it.
        let mut patience = 0;
        let (stopped, _) = in_sittings(games, &[1, 2], |trainer, moves| {
            let stop = StopToken::new();
            let token = stop.clone();
            patience += 1;
            let puller = thread::spawn(move || {
                thread::sleep(Duration::from_millis(patience));
                token.stop();
            });
            let report = trainer.advance(moves, &Unwatched, &stop);
            puller.join().unwrap();
            report
        });
        assert!(stopped == whole, "{games} games, stopped by the clock");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn threads_never_matter_and_one_game_is_serial(
        start: u32,
        train_seed: u32,
        epsilon in prop_oneof![Just(0.0), 0.0..0.3],
        clamp in 0.5_f32..40.0,
        move_cap in 1_u32..80,
        games in 1_u32..20,
        threads in 2_u32..5,
        moves in 1_u64..700,
    ) {
        let seeds = SeedBlock { start, count: 9 };
        let one = TrainConfig {
            seeds, train_seed, epsilon, clamp, move_cap, ..config(games, 1)
        };
        let run = |config: &TrainConfig| {
            let tables = fresh(config);
            let mut trainer = Trainer::new(config.clone(), Arc::clone(&tables)).unwrap();
            let report = row(trainer.advance(moves, &Unwatched, &StopToken::new()));
            (report, trainer.state().clone(), written(&tables))
        };
        let expected = run(&one);
        prop_assert!(run(&TrainConfig { threads, ..one.clone() }) == expected, "threads");
        if games == 1 {
            let serial = TrainConfig { parallel: Parallel::LockFree, ..one };
            prop_assert!(run(&serial) == expected, "serial");
        }
    }
}

#[test]
fn there_are_at_most_as_many_workers_as_games() {
    let mut trainer = Trainer::new(config(2, 4), fresh(&config(2, 4))).unwrap();
    assert_eq!(trainer.advance(50, &Unwatched, &StopToken::new()).workers, 2);
}

#[test]
fn a_stop_before_the_first_round_starts_no_game() {
    let mut trainer = Trainer::new(config(8, 2), fresh(&config(8, 2))).unwrap();
    let pulled = StopToken::new();
    pulled.stop();
    let report = trainer.advance(500, &Unwatched, &pulled);
    assert!(report.stopped);
    assert_eq!((report.moves_total, report.seed_cursor), (0, 0));
    let open = trainer.state().open.clone().unwrap();
    assert_eq!((open.end, open.explorers.len(), open.in_flight.len()), (500, 8, 0));
}

#[test]
fn a_panic_of_one_thread_ends_the_call() {
    struct Panics;
    impl Progress for Panics {
        fn advance(&self, _moves: u64) {
            panic!("as a progress may");
        }
    }
    let mut trainer = Trainer::new(config(8, 3), fresh(&config(8, 3))).unwrap();
    let call = std::panic::AssertUnwindSafe(|| trainer.advance(500, &Panics, &StopToken::new()));
    assert!(std::panic::catch_unwind(call).is_err());
}

/// A state with games in flight, and the configuration it belongs to.
fn suspended() -> (TrainConfig, Arc<TrainTables>, TrainState) {
    let config = config(4, 2);
    let tables = fresh(&config);
    let mut trainer = Trainer::new(config.clone(), Arc::clone(&tables)).unwrap();
    let stop = StopToken::new();
    trainer.advance(500, &StopAfter { games: 1.into(), token: stop.clone() }, &stop);
    (config, tables, trainer.state().clone())
}

#[test]
fn an_open_chunk_that_cannot_be_continued_is_refused() {
    let (config, tables, state) = suspended();
    let resume = |config: &TrainConfig, state: &TrainState| {
        let trainer = Trainer::new(config.clone(), Arc::clone(&tables)).unwrap();
        trainer.resume(state.clone()).err()
    };
    assert_eq!(resume(&config, &state), None);
    let five = TrainConfig { parallel: Parallel::Lockstep { games: 5 }, ..config.clone() };
    let streams = TrainError::Streams { stored: 4, configured: 5 };
    assert_eq!(resume(&five, &state), Some(streams));

    let games = state.open.clone().unwrap().in_flight;
    assert!(games.len() > 1);
    let with = |change: &dyn Fn(&mut Vec<InFlight>)| {
        let mut state = state.clone();
        change(&mut state.open.as_mut().unwrap().in_flight);
        state
    };
    let refused = |slot, seed| Some(TrainError::InFlight { slot, seed });
    let InFlight { slot, seed, .. } = games[0].clone();
    let four_threads = TrainConfig { threads: 4, parallel: Parallel::LockFree, ..config.clone() };
    assert_eq!(resume(&four_threads, &state), refused(slot, seed));
    for columns in ["7", "x", &"3".repeat(40), &"0123456".repeat(20)] {
        let state = with(&|games| games[0].columns = columns.to_owned());
        assert_eq!(resume(&config, &state), refused(slot, seed), "{columns}");
    }
    assert_eq!(resume(&config, &with(&|games| games[1].slot = 4)), refused(4, games[1].seed));
    let again = with(&|games| games[1].slot = games[0].slot);
    assert_eq!(resume(&config, &again), refused(slot, games[1].seed));
}

#[test]
fn checkpoints_belong_to_a_mode_and_not_to_a_number_of_threads() {
    let (config, tables, state) = suspended();
    let folder = tempfile::tempdir().unwrap();
    Checkpoints::open(folder.path()).unwrap().save(&tables, &config, &state, &()).unwrap();
    let load = |config: &TrainConfig| Checkpoints::open(folder.path()).unwrap().load::<()>(config);
    let more = TrainConfig { threads: 9, ..config.clone() };
    assert_eq!(load(&more).unwrap().restored.unwrap().state, state);
    for parallel in [Parallel::LockFree, Parallel::Lockstep { games: 5 }] {
        match load(&TrainConfig { parallel, ..config.clone() }) {
            Err(CheckpointError::Configuration { field, .. }) => assert_eq!(field, "parallel"),
            other => panic!("{parallel:?}: {other:?}"),
        }
    }
}

#[test]
fn a_stored_configuration_that_names_no_mode_is_lock_free() {
    let lockstep = config(16, 2);
    let text = serde_json::to_value(&lockstep).unwrap();
    assert_eq!(text["parallel"], serde_json::json!({ "lockstep": { "games": 16 } }));
    assert_eq!(serde_json::from_value::<TrainConfig>(text).unwrap(), lockstep);

    let lock_free = TrainConfig { parallel: Parallel::LockFree, ..lockstep };
    let text = serde_json::to_value(&lock_free).unwrap();
    assert_eq!(text.get("parallel"), None);
    assert_eq!(serde_json::from_value::<TrainConfig>(text).unwrap(), lock_free);
}
