//! Lock-free training with several threads: counters stay exact, values stay finite, play stays sane. The bits
//! are not compared, because they do not repeat.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use engine_core::ntuple::TrainTables;
use engine_core::progress::{Progress, StopToken, Unwatched};
use engine_core::train::{Parallel, SeedBlock, TrainConfig, TrainError, TrainState, Trainer};

const THREADS: u32 = 2;

fn trainer(epsilon: f64) -> (Trainer, Arc<TrainTables>) {
    let seeds = SeedBlock { start: 0xa527_7000, count: 512 };
    let layout = "win23,win32,phase=none".parse().unwrap();
    let config = TrainConfig { threads: THREADS, epsilon, ..TrainConfig::new(layout, seeds) };
    let tables = Arc::new(TrainTables::fresh(layout, config.optimistic_rises).unwrap());
    (Trainer::new(config, Arc::clone(&tables)).unwrap(), tables)
}

#[derive(Default)]
struct Counter(AtomicU64);

impl Progress for Counter {
    fn advance(&self, amount: u64) {
        self.0.fetch_add(amount, Relaxed);
    }
}

#[test]
fn counters_agree_and_values_stay_finite() {
    let (mut trainer, tables) = trainer(0.05);
    let active = tables.layout().active() as u64;
    let counter = Counter::default();
    let (mut moves, mut games) = (0, 0);
    for chunk in 0..3 {
        let end = trainer.state().moves + 6_000;
        let report = trainer.advance(6_000, &counter, &StopToken::new());
        let tally = &report.tally;
        moves += tally.moves;
        games += tally.games;
        assert_eq!((report.chunk, report.workers, report.stopped), (chunk, THREADS, false));
        assert_eq!((report.moves_total, report.games_total), (moves, games));
        assert_eq!((trainer.state().moves, trainer.state().games), (moves, games));
        assert_eq!(counter.0.load(Relaxed), moves);
        assert_eq!(report.seed_cursor, games, "one seed for each game");
        assert_eq!(report.seed_wraps, games / 512);
        let longest = u64::from(THREADS) * u64::from(trainer.config().move_cap);
        assert!((end..end + longest).contains(&report.moves_total), "{report:?}");
        // Every move of a game that ended updates one position.
        assert_eq!((tally.updates, tally.entry_updates), (tally.moves, tally.moves * active));
        assert!((50_000.0..150_000.0).contains(&tally.mean_score()), "{tally:?}");
        assert!((20.0..60.0).contains(&tally.mean_moves()), "{tally:?}");
        assert!((0.0..5.0).contains(&tally.mean_abs_delta()), "{tally:?}");
        assert!((0.0..=1.0).contains(&tally.mean_beta()), "{tally:?}");
    }
    let mut learned = 0_u64;
    tables.for_each_written(|index, record| {
        let values = [record.weight, record.error, record.abs_error];
        assert!(values.iter().all(|value| value.is_finite()), "entry {index}: {record:?}");
        assert!(record.error.abs() <= record.abs_error * 1.001, "entry {index}: {record:?}");
        learned += u64::from(record.abs_error > 0.0);
    });
    assert_eq!(learned, tables.touched());
    assert!(learned > 10_000, "{learned}");
}

#[test]
fn a_stop_leaves_whole_games_and_the_next_call_fills_the_chunk() {
    let (mut trainer, _) = trainer(0.0);
    let pulled = StopToken::new();
    pulled.stop();
    let report = trainer.advance(2_000, &Unwatched, &pulled);
    assert!(report.stopped);
    assert_eq!((report.moves_total, report.seed_cursor), (0, 0), "no game was started");
    let open = trainer.state().open.clone().unwrap();
    assert_eq!((open.end, open.explorers.len()), (2_000, THREADS as usize));

    let report = trainer.advance(7, &Unwatched, &StopToken::new());
    assert!(!report.stopped);
    assert_eq!(report.chunk, 0);
    assert!(report.moves_total >= 2_000, "the open chunk keeps its own end");
    assert_eq!(trainer.state().chunk, 1);
}

#[test]
fn an_open_chunk_of_other_threads_is_refused() {
    let (mut two, tables) = trainer(0.0);
    let pulled = StopToken::new();
    pulled.stop();
    two.advance(100, &Unwatched, &pulled);
    let state: TrainState = two.state().clone();
    let one = TrainConfig { threads: 1, ..two.config().clone() };
    let refused = Trainer::new(one, tables).unwrap().resume(state);
    assert_eq!(refused.err(), Some(TrainError::Streams { stored: 2, configured: 1 }));
}

#[test]
fn a_configuration_out_of_range_is_refused_by_name() {
    let (trainer, tables) = trainer(0.0);
    let good = trainer.config().clone();
    let none = SeedBlock { start: 0, count: 0 };
    let lockstep = |games| Parallel::Lockstep { games };
    for (field, config) in [
        ("alpha", TrainConfig { alpha: 0.0, ..good.clone() }),
        ("alpha", TrainConfig { alpha: f32::NAN, ..good.clone() }),
        ("epsilon", TrainConfig { epsilon: -0.1, ..good.clone() }),
        ("epsilon", TrainConfig { epsilon: f64::NAN, ..good.clone() }),
        ("optimistic_rises", TrainConfig { optimistic_rises: f32::INFINITY, ..good.clone() }),
        ("clamp", TrainConfig { clamp: f32::INFINITY, ..good.clone() }),
        ("move_cap", TrainConfig { move_cap: 0, ..good.clone() }),
        ("seeds.count", TrainConfig { seeds: none, ..good.clone() }),
        ("threads", TrainConfig { threads: 0, ..good.clone() }),
        ("parallel.lockstep.games", TrainConfig { parallel: lockstep(0), ..good.clone() }),
        ("parallel.lockstep.games", TrainConfig { parallel: lockstep(1025), ..good.clone() }),
    ] {
        match Trainer::new(config, Arc::clone(&tables)).err() {
            Some(TrainError::Config { field: named, .. }) => assert_eq!(named, field),
            other => panic!("{field}: {other:?}"),
        }
    }
    let other = TrainConfig { layout: "rows".parse().unwrap(), ..good };
    assert!(matches!(Trainer::new(other, tables), Err(TrainError::Layout { .. })));
}
