//! Tables in memory: what a fresh table costs, what an update does, what threads may not break.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use engine_core::drop7::chance::Mulberry32;
use engine_core::drop7::{Board, Game};
use engine_core::leaf::Leaf;
use engine_core::ntuple::leaf::TableLeaf;
use engine_core::ntuple::tables::{PageSize, Record};
use engine_core::ntuple::{Features, FrozenTables, Layout, TrainTables, Weights, file};
use proptest::prelude::*;

const SMALL: &str = "win23,phase=none";

fn fresh(text: &str) -> TrainTables {
    TrainTables::fresh(text.parse().unwrap(), 20.0).unwrap()
}

fn features(layout: &Layout, board: &Board, moves_remaining: u8) -> Features {
    let mut features = Features::new();
    layout.features(board, moves_remaining, &mut features);
    features
}

/// Bytes of physical memory this process uses.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn the_start_value_is_the_recorded_one() {
    for (layout, bits) in [
        ("rows,cols,win23,win32,phase=all", 0x3e8a_60dd_u32),
        ("win23,win32", 0x3eaa_aaab),
        ("rows,cols,win23,win32,win24,win42,phase=all", 0x3e27_de6d),
    ] {
        let layout: Layout = layout.parse().unwrap();
        assert_eq!(layout.start_value(20.0).to_bits(), bits, "{layout}");
    }
    for layout in ["rows,cols,win23,win32,phase=cols", SMALL] {
        let tables = fresh(layout);
        let value = tables.value(&features(tables.layout(), &Board::INITIAL, 5));
        assert!((value - 20.0).abs() < 1e-3, "{layout}: {value}");
    }
}

#[test]
fn a_billion_entries_start_at_once_and_take_memory_where_they_learn() {
    let before = resident_bytes();
    for layout in [
        "rows,cols,win23,win32,phase=all",
        "rows,cols,win23,win32,phase=all,fill=occ5",
        "rows,cols,win23,win32,win24,win42,phase=all",
    ] {
        let started = Instant::now();
        let tables = fresh(layout);
        let took = started.elapsed();
        assert!(took < Duration::from_secs(1), "{layout} took {took:?}");
        let mut game = Game::new(0xa527_7000);
        for column in [3, 2, 4, 1, 5, 0, 6, 3, 3] {
            game.play(column).unwrap();
            let state = game.public();
            let found = features(tables.layout(), state.board(), state.moves_remaining());
            tables.update(&found, 3.0, 1.0, 30.0);
        }
        assert_eq!(tables.record(tables.layout().entries() - 1).abs_error, 0.0);
    }
    // Nine updates touch at most 9 x 122 pages, of at most 3 records each; other tests run beside
    // this one, so the bound is far from exact and still far below one table of a gigabyte.
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 600_000_000, "{grown} bytes");
}

/// The update, written down once more from its definition.
fn expected(record: Record, delta: f32, alpha: f32, active: usize) -> (Record, f32) {
    let step = alpha * delta / active as f32;
    let beta = if record.abs_error > 0.0 { record.error.abs() / record.abs_error } else { 1.0_f32 };
    let moved = Record {
        weight: record.weight + beta * step,
        error: record.error + delta,
        abs_error: record.abs_error + delta.abs(),
    };
    (moved, beta)
}

#[test]
fn an_update_is_temporal_coherence_to_the_bit() {
    let tables = fresh(SMALL);
    let layout = *tables.layout();
    let boards = [Board::INITIAL, Board::CLEAR];
    let mut betas_below_one = 0;
    for (step, target) in [3.0_f32, 25.0, -100.0, 20.0, 1.5, 60.0].into_iter().enumerate() {
        let found = features(&layout, &boards[step % 2], 5);
        let before: Vec<Record> =
            found.as_slice().iter().map(|&index| tables.record(index)).collect();
        let value = before.iter().fold(0.0_f32, |sum, record| sum + record.weight);
        let report = tables.update(&found, target, 0.7, 30.0);
        assert_eq!(report.prediction.to_bits(), value.to_bits());
        let delta = (target - value).clamp(-30.0, 30.0);
        assert_eq!(report.delta.to_bits(), delta.to_bits());
        let mut beta_sum = 0.0_f64;
        for (record, &index) in before.iter().zip(found.as_slice()) {
            let (moved, beta) = expected(*record, delta, 0.7, layout.active());
            assert_eq!(tables.record(index), moved);
            assert_eq!(tables.weight(index).to_bits(), moved.weight.to_bits());
            beta_sum += f64::from(beta);
            betas_below_one += u64::from(beta < 1.0);
        }
        assert_eq!(report.beta_sum.to_bits(), beta_sum.to_bits());
    }
    assert!(betas_below_one > 0, "no step was damped: the test shows nothing");
}

#[test]
fn an_error_of_zero_changes_nothing() {
    let tables = fresh(SMALL);
    let found = features(tables.layout(), &Board::INITIAL, 5);
    let value = tables.value(&found);
    let report = tables.update(&found, value, 1.0, 30.0);
    assert_eq!(report.delta, 0.0);
    assert_eq!(report.beta_sum, 30.0);
    assert_eq!(tables.touched(), 0);

    tables.update(&found, value + 1.0, 1.0, 30.0);
    assert_eq!(tables.touched(), 30);
    assert!(tables.value(&found) > value);
}

#[test]
fn frozen_tables_are_the_live_ones_at_that_moment() {
    let tables = fresh(SMALL);
    let found = features(tables.layout(), &Board::INITIAL, 3);
    tables.update(&found, 4.0, 1.0, 30.0);
    let frozen = tables.freeze().unwrap();
    assert_eq!(frozen.value(&found).to_bits(), tables.value(&found).to_bits());
    tables.update(&found, -4.0, 1.0, 30.0);
    assert_ne!(frozen.value(&found).to_bits(), tables.value(&found).to_bits());
    let mut written = 0;
    frozen.for_each_written(|index, weight| {
        assert!(found.as_slice().contains(&index));
        assert_eq!(weight.to_bits(), frozen.weight(index).to_bits());
        written += 1;
    });
    assert_eq!(written, 30);
}

#[test]
fn a_leaf_is_the_value_in_points_and_blind_to_the_next_disc() {
    let tables = Arc::new(fresh(SMALL).freeze().unwrap());
    let leaf = TableLeaf::new(Arc::clone(&tables));
    let game = Game::new(1);
    let found = features(tables.layout(), &Board::INITIAL, 5);
    let value = leaf.value(game.public());
    assert_eq!(value.to_bits(), (17_000.0 * f64::from(tables.value(&found))).to_bits());
    for disc in 1..=7 {
        assert_eq!(leaf.value(&game.public().with_next_disc(disc)).to_bits(), value.to_bits());
    }
    const { assert!(!<TableLeaf<Arc<FrozenTables>> as Leaf>::READS_NEXT_DISC) };
}

#[test]
fn threads_may_lose_updates_but_never_tear_a_value() {
    let layout: Layout = SMALL.parse().unwrap();
    let tables = TrainTables::fresh_on(layout, 20.0, PageSize::Huge).unwrap();
    let found = features(&layout, &Board::INITIAL, 5);
    thread::scope(|scope| {
        for target in [-5.0, 50.0] {
            let (tables, found) = (&tables, &found);
            scope.spawn(move || {
                for _ in 0..20_000 {
                    let report = tables.update(found, target, 1.0, 30.0);
                    assert!(report.delta.abs() <= 30.0 && report.beta_sum <= 30.0);
                }
            });
        }
    });
    for &index in found.as_slice() {
        let record = tables.record(index);
        assert!(record.weight.is_finite() && record.abs_error > 0.0);
        assert!(record.weight.abs() <= 60.0, "{record:?}");
    }
    assert_eq!(tables.touched(), 30);
}

/// An entry near one of a few places, so that lines, their neighbours and their edges all occur.
fn crowded() -> impl Strategy<Value = u64> {
    (prop::sample::select(vec![0, 15, 16, 4_095, 999_990, 29_999_968]), 0..32_u64)
        .prop_map(|(place, offset)| place + offset)
        .prop_filter("inside", |&index| index < 30_000_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any order of writes leaves what a plain map would hold, read one by one, as a walk, as a
    /// copy of a stretch, and frozen; and memory for the lines that hold something, once each.
    #[test]
    fn tables_hold_what_was_written_and_nothing_else(
        writes in prop::collection::vec((crowded(), 0..4_u8, -9.0..9.0_f32), 0..200),
        small in any::<bool>(),
    ) {
        let layout: Layout = SMALL.parse().unwrap();
        let page_size = if small { PageSize::Small } else { PageSize::Huge };
        let tables = TrainTables::fresh_on(layout, 20.0, page_size).unwrap();
        let start = Record { weight: tables.start_value(), error: 0.0, abs_error: 0.0 };
        let mut model = BTreeMap::new();
        let mut lines: Vec<u64> = Vec::new();
        for (index, kind, value) in writes {
            let record = match kind {
                // Writing what is there must not take memory; writing it back must not leave a trace.
                0 => start,
                1 => Record { weight: value, ..start },
                2 => Record { error: value, abs_error: value.abs(), ..start },
                _ => Record { weight: value, error: -value, abs_error: 2.0 * value.abs() },
            };
            tables.set_record(index, record);
            if record == start { model.remove(&index); } else { model.insert(index, record); }
            if record != start && !lines.contains(&(index / 16)) {
                lines.push(index / 16);
            }
        }
        prop_assert_eq!(tables.existing_lines(), lines.len() as u64);
        let mut walked = Vec::new();
        tables.for_each_written(|index, record| walked.push((index, record)));
        prop_assert_eq!(&walked, &model.iter().map(|(&i, &r)| (i, r)).collect::<Vec<_>>());
        let frozen = tables.freeze().unwrap();
        let expected = |index| model.get(&index).copied().unwrap_or(start);
        for (first, length) in [(0, 100), (4_090, 60), (999_991, 31), (29_999_961, 39)] {
            let mut copies = [vec![0.0; length], vec![0.0; length]];
            tables.copy_weights(first, &mut copies[0]);
            frozen.copy_weights(first, &mut copies[1]);
            for (at, index) in (first..first + length as u64).enumerate() {
                let record = expected(index);
                prop_assert_eq!(tables.record(index), record);
                let weights = [
                    tables.weight(index), frozen.weight(index), copies[0][at], copies[1][at],
                ];
                prop_assert_eq!(weights, [record.weight; 4]);
            }
        }
        let mut frozen_entries = Vec::new();
        frozen.for_each_written(|index, weight| frozen_entries.push((index, weight)));
        model.retain(|_, record| record.weight != start.weight);
        prop_assert_eq!(frozen_entries, model.iter().map(|(&i, r)| (i, r.weight)).collect::<Vec<_>>());
    }
}

#[test]
fn threads_that_share_lines_lose_no_entry() {
    const ENTRIES: u64 = 64_000;
    let tables = fresh(SMALL);
    // Both threads write to every line at about the same time, each to entries of its own.
    thread::scope(|scope| {
        for parity in 0..2 {
            let tables = &tables;
            scope.spawn(move || {
                for index in (parity..ENTRIES).step_by(2) {
                    let value = index as f32;
                    tables.set_record(
                        index,
                        Record { weight: value, error: -value, abs_error: value + 1.0 },
                    );
                }
            });
        }
    });
    assert_eq!(tables.existing_lines(), ENTRIES / 16);
    for index in 0..ENTRIES {
        let value = index as f32;
        let expected = Record { weight: value, error: -value, abs_error: value + 1.0 };
        assert_eq!(tables.record(index), expected, "{index}");
    }
    assert_eq!(tables.touched(), ENTRIES);
}

#[test]
fn the_order_of_first_touch_is_not_visible() {
    let mut identities = Vec::new();
    for reversed in [false, true] {
        let tables = fresh(SMALL);
        let mut random = Mulberry32::new(7);
        let mut indices: Vec<u64> =
            (0..5_000).map(|_| u64::from(random.next_bits()) % 30_000_000).collect();
        if reversed {
            indices.reverse();
        }
        for index in indices {
            let weight = index as f32;
            tables.set_record(index, Record { weight, error: 1.0, abs_error: 2.0 });
        }
        identities.push(file::write_checkpoint(&tables, std::io::sink()).unwrap());
    }
    assert_eq!(identities[0], identities[1]);
}
