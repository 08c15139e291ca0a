//! Edits, promotion and coverage of trained tables, against `edits-small.json` and definitions.

use std::collections::BTreeMap;
use std::io;

use engine_core::drop7::{Board, Game};
use engine_core::ntuple::direct::DirectPolicy;
use engine_core::ntuple::edit::{self, EditError, EditReport, Edited};
use engine_core::ntuple::fingerprint::fingerprint;
use engine_core::ntuple::layout::{Family, Location};
use engine_core::ntuple::promote::{WarmStartError, warm_start};
use engine_core::ntuple::tables::Record;
use engine_core::ntuple::{Features, FrozenTables, Layout, TrainTables, Weights, coverage, file};
use serde::Deserialize;

use crate::golden_dir::golden;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Golden {
    cases: Vec<Case>,
    touched_by_fill: TouchedByFill,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    layout: String,
    moves: u64,
    start_bits: u32,
    entries: u64,
    untouched: u64,
    touched: u64,
    classes_with_no_touched_entry: u64,
    families: BTreeMap<String, CaseFamily>,
    source_sha256: String,
    zeroed_sha256: String,
    classmean_sha256: String,
    zeroed_changed: u64,
    classmean_changed: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CaseFamily {
    untouched_by_occupied: Vec<u64>,
    patterns_by_occupied: Vec<u64>,
    class_mean_bits: Vec<Vec<Vec<Option<u32>>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TouchedByFill {
    layout: String,
    moves: u64,
    phases: u64,
    rows: LineCoverage,
    cols: LineCoverage,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LineCoverage {
    #[serde(rename = "byOccupied_patterns_touched")]
    by_occupied: Vec<(u64, u64)>,
    touched_per_table_by_occupied: Vec<Vec<u64>>,
}

/// Serial training as the files describe it, written out: greedy play from the live tables on the
/// seeds 0xa5277000.., alpha 1, clamp 30, every afterstate towards reward plus next value.
fn trained(layout: &str, moves: u64) -> TrainTables {
    let layout: Layout = layout.parse().unwrap();
    let tables = TrainTables::fresh(layout, 20.0).unwrap();
    let mut policy = DirectPolicy::new(&tables);
    let (mut played, mut seed) = (0, 0xa527_7000);
    let (mut previous, mut next) = (Features::new(), Features::new());
    while played < moves {
        let mut game = Game::new(seed);
        seed += 1;
        layout.features(&Board::INITIAL, 5, &mut previous);
        while !game.public().is_over() && game.moves_played() < 2_000 {
            let Some(column) = policy.decide(game.public()).action else { break };
            let reward = game.play(column).unwrap().delta as f32 / 17_000.0;
            let after = game.public();
            let target = if after.is_over() {
                reward
            } else {
                layout.features(after.board(), after.moves_remaining(), &mut next);
                reward + tables.value(&next)
            };
            tables.update(&previous, target, 1.0, 30.0);
            std::mem::swap(&mut previous, &mut next);
        }
        played += u64::from(game.moves_played());
    }
    tables
}

fn sha256(weights: &impl Weights) -> String {
    hex::encode(file::write_weights(weights, io::sink()).unwrap().sha256)
}

#[test]
fn edits_are_the_golden_edits() {
    let Some(golden) = golden::<Golden>("edits-small.json") else { return };
    for case in &golden.cases {
        let name = &case.layout;
        let tables = trained(name, case.moves).freeze().unwrap();
        let layout = *tables.layout();
        assert_eq!(layout.start_value(20.0).to_bits(), case.start_bits, "{name}");
        assert_eq!(layout.entries(), case.entries, "{name}");
        assert_eq!(sha256(&tables), case.source_sha256, "{name}: not the same training");

        let zeroed = edit::zeroed(&tables).unwrap();
        let mean = edit::class_mean(&tables).unwrap();
        for (edited, changed) in [(&zeroed, case.zeroed_changed), (&mean, case.classmean_changed)] {
            let report = edited.report();
            assert_eq!(report.untouched, case.untouched, "{name}");
            assert_eq!(report.touched, case.touched, "{name}");
            assert_eq!(report.empty_classes, case.classes_with_no_touched_entry, "{name}");
            assert_eq!(report.changed, changed, "{name}");
            assert_eq!(report.families.len(), case.families.len(), "{name}");
            for family in &report.families {
                let expected = &case.families[family.family.name()];
                assert_eq!(family.untouched, expected.untouched_by_occupied, "{name}");
                assert_eq!(family.patterns, expected.patterns_by_occupied, "{name}");
            }
        }
        for (family, expected) in &case.families {
            let family = Family::ALL.into_iter().find(|known| known.name() == family).unwrap();
            for (table, phases) in (0..).zip(&expected.class_mean_bits) {
                for (phase, classes) in (0..).zip(phases) {
                    for (k, bits) in classes.iter().enumerate() {
                        let found = mean.replacement(family, table, phase, k).unwrap().to_bits();
                        let bits = bits.unwrap_or(case.start_bits);
                        assert_eq!(found, bits, "{name} {family:?} {table} {phase} {k}");
                    }
                }
            }
        }
        assert_eq!(sha256(&zeroed), case.zeroed_sha256, "{name}");
        assert_eq!(sha256(&mean), case.classmean_sha256, "{name}");
    }
}

#[test]
fn coverage_is_the_golden_coverage() {
    let Some(Golden { touched_by_fill: golden, .. }) = golden("edits-small.json") else { return };
    let tables = trained(&golden.layout, golden.moves);
    let coverage = coverage::Coverage::of(&tables);
    for (family, expected) in [(Family::Rows, &golden.rows), (Family::Cols, &golden.cols)] {
        let of_family = coverage.sum(|slab| slab.family == family);
        let found: Vec<_> = of_family.iter().map(|class| (class.patterns, class.touched)).collect();
        assert_eq!(found, expected.by_occupied);
        for (table, touched) in (0..).zip(&expected.touched_per_table_by_occupied) {
            let of_table = coverage.sum(|slab| slab.family == family && slab.table == table);
            let found: Vec<_> = of_table.iter().map(|class| class.touched).collect();
            assert_eq!(found, *touched, "{family:?} {table}");
        }
        let slabs = coverage.slabs.iter().filter(|slab| slab.family == family);
        assert_eq!(slabs.count() as u64, family.tables() * golden.phases);
    }
    // Nothing that was learned is left out: every touched line is possible.
    let all = coverage.sum(|_| true);
    assert_eq!(coverage::at_least(&all, 0).touched, tables.touched());
    let full = coverage::at_least(&all, 5);
    assert_eq!(full.touched, all[5].touched + all[6].touched + all[7].touched);
    assert!(full.fraction().is_some_and(|fraction| fraction > 0.0 && fraction < 1.0));
}

/// A few hand-made records in an otherwise fresh table.
fn made(layout: &str, records: &[(Location, f32, f32)]) -> TrainTables {
    let tables = TrainTables::fresh(layout.parse().unwrap(), 20.0).unwrap();
    for &(location, weight, abs_error) in records {
        let index = tables.layout().index(&location).unwrap();
        tables.set_record(index, Record { weight, error: 0.0, abs_error });
    }
    tables
}

fn at(family: Family, table: u64, phase: u64, pattern: u64) -> Location {
    Location { family, table, bucket: 0, phase, pattern }
}

fn value(edited: &Edited<'_>, location: &Location) -> f32 {
    let index = edited.layout().index(location).unwrap();
    let mut copied = [0.0];
    edited.copy_weights(index, &mut copied);
    assert_eq!(copied[0].to_bits(), edited.weight(index).to_bits());
    copied[0]
}

#[test]
fn a_class_is_a_table_a_phase_and_a_number_of_discs() {
    use Family::{Cols, Win23};
    let tables = made(
        "cols,win23,phase=cols",
        &[
            (at(Cols, 2, 3, 5_000_000), 1.0, 1.0),
            (at(Cols, 2, 3, 4), 3.5, 1.0),
            (at(Cols, 2, 4, 4), 100.0, 1.0),
            (at(Cols, 3, 3, 4), 200.0, 1.0),
            (at(Cols, 2, 3, 44), 300.0, 1.0),
            (at(Win23, 29, 0, 999_999), -2.0, 1.0),
        ],
    )
    .freeze()
    .unwrap();
    let mean = edit::class_mean(&tables).unwrap();
    let start = tables.start_value();
    for (location, expected) in [
        (at(Cols, 2, 3, 700), 2.25),
        (at(Cols, 2, 3, 4), 3.5),
        (at(Cols, 2, 4, 90_000), 100.0),
        (at(Cols, 3, 3, 1), 200.0),
        (at(Cols, 2, 3, 1_000_001), 300.0),
        (at(Cols, 2, 3, 0), start),
        (at(Cols, 2, 0, 4), start),
        (at(Win23, 29, 0, 111_111), -2.0),
        (at(Win23, 28, 0, 111_111), start),
    ] {
        assert_eq!(value(&mean, &location).to_bits(), expected.to_bits(), "{location:?}");
    }
    let zeroed = edit::zeroed(&tables).unwrap();
    assert_eq!(value(&zeroed, &at(Cols, 2, 3, 4)).to_bits(), 3.5_f32.to_bits());
    assert_eq!(value(&zeroed, &at(Cols, 2, 3, 700)).to_bits(), 0);
    let EditReport { touched, untouched, changed, .. } = *zeroed.report();
    assert_eq!((touched, untouched), (6, tables.layout().entries() - 6));
    assert_eq!(changed, untouched);
    assert_eq!(mean.replacement(Win23, 0, 0, 7), None);
    assert_eq!(mean.replacement(Family::Rows, 0, 0, 0), None);
}

#[test]
fn filled_tables_have_no_classes() {
    let layout: Layout = "win23,fill=occ5".parse().unwrap();
    let tables = FrozenTables::fresh(layout, 20.0).unwrap();
    assert_eq!(edit::zeroed(&tables).unwrap_err(), EditError::Filled { layout });
    assert!(edit::class_mean(&tables).unwrap_err().to_string().contains("fill=occ5"));
}

#[test]
fn a_checkpoint_shows_what_an_edit_cannot_see() {
    use Family::Win23;
    let start = "win23".parse::<Layout>().unwrap().start_value(20.0);
    let tables = made(
        "win23",
        &[
            (at(Win23, 0, 0, 1), start, 2.0),
            (at(Win23, 0, 0, 2), start, 0.5),
            (at(Win23, 7, 0, 3), 1.0, 0.0),
            (at(Win23, 7, 0, 4), 1.0, 1.0),
        ],
    );
    let expected = edit::Disagreement { learned_at_start: 2, unlearned_elsewhere: 1 };
    assert_eq!(edit::disagreement(&tables), expected);
    assert_eq!(tables.touched(), 3);
}

/// Positions of greedy games with all phases.
fn positions(count: usize) -> Vec<(Board, u8)> {
    let mut found = Vec::new();
    for seed in 0.. {
        let mut game = Game::new(seed);
        while let Some(column) =
            (0..7).map(|c| (c + seed as usize) % 7).find(|&c| game.public().board().is_legal(c))
        {
            if found.len() == count || game.play(column).is_none() {
                break;
            }
            found.extend((1..=5).map(|drops| (*game.public().board(), drops)));
            found.truncate(count);
        }
        if found.len() == count {
            break;
        }
    }
    found
}

#[test]
fn a_split_table_starts_with_the_same_values_and_then_parts() {
    let source = trained("rows,win32,phase=cols", 600);
    let frozen = source.freeze().unwrap();
    for fill in ["occ5", "hgt5"] {
        let layout: Layout = format!("rows,win32,phase=cols,fill={fill}").parse().unwrap();
        let split = warm_start(&frozen, layout, 20.0).unwrap();
        assert_eq!(split.layout().entries(), 5 * frozen.layout().entries());
        assert_eq!(split.touched(), 0);
        let (mut of_source, mut of_split) = (Features::new(), Features::new());
        let mut buckets = [false; 5];
        for (board, drops) in positions(2_000) {
            frozen.layout().features(&board, drops, &mut of_source);
            layout.features(&board, drops, &mut of_split);
            assert_eq!(
                split.value(&of_split).to_bits(),
                frozen.value(&of_source).to_bits(),
                "{board}"
            );
            buckets[layout.fill_bucket(&board) as usize] = true;
        }
        assert!(buckets.iter().filter(|&&reached| reached).count() > 2, "{fill}: {buckets:?}");

        // One update moves its own bucket and no other.
        layout.features(&Board::INITIAL, 5, &mut of_split);
        let before = split.value(&of_split);
        split.update(&of_split, before + 5.0, 1.0, 100.0);
        assert!(split.value(&of_split) > before);
        frozen.layout().features(&Board::INITIAL, 5, &mut of_source);
        for &index in of_source.as_slice() {
            let location = frozen.layout().locate(index).unwrap();
            for bucket in 1..5 {
                let other = layout.index(&Location { bucket, ..location }).unwrap();
                assert_eq!(split.weight(other).to_bits(), frozen.weight(index).to_bits());
                assert!(split.record(other).abs_error == 0.0);
            }
        }
    }
}

#[test]
fn a_warm_start_keeps_the_layout_or_splits_it_and_nothing_else() {
    let source = trained("win23,phase=all", 300);
    let frozen = source.freeze().unwrap();
    let same = warm_start(&frozen, *frozen.layout(), 20.0).unwrap();
    assert_eq!(fingerprint(&same), fingerprint(&source));
    assert_ne!(
        fingerprint(&same),
        fingerprint(&FrozenTables::fresh(*frozen.layout(), 20.0).unwrap())
    );
    assert_eq!(same.touched(), 0);
    for wanted in ["win23,phase=none", "win23,win32,phase=all", "win23,phase=cols,fill=occ5"] {
        let error = warm_start(&frozen, wanted.parse().unwrap(), 20.0).unwrap_err();
        assert!(matches!(error, WarmStartError::Layouts { .. }));
        assert!(error.to_string().contains("win23,phase=all"), "{error}");
    }
    let split: Layout = "win23,phase=all,fill=hgt5".parse().unwrap();
    let split = warm_start(&frozen, split, 20.0).unwrap().freeze().unwrap();
    assert!(warm_start(&split, *frozen.layout(), 20.0).is_err());
}

#[test]
fn another_start_value_is_a_matter_of_memory_only() {
    let frozen = trained("win23,phase=none", 300).freeze().unwrap();
    let other = warm_start(&frozen, *frozen.layout(), 1.0).unwrap();
    assert_eq!(fingerprint(&other), fingerprint(&frozen));
}

#[test]
fn every_entry_has_one_place() {
    for text in ["rows,win42,phase=all", "cols,win32,phase=cols,fill=hgt5", "win24,win23,phase=all"]
    {
        let layout: Layout = text.parse().unwrap();
        let step = layout.entries() / 10_007;
        for index in (0..layout.entries()).step_by(step as usize).chain([layout.entries() - 1]) {
            let location = layout.locate(index).unwrap();
            assert_eq!(layout.index(&location), Some(index), "{text} {location:?}");
        }
        assert_eq!(layout.locate(layout.entries()), None);
        assert_eq!(layout.locate(u64::MAX), None);
    }
    let layout: Layout = "win23".parse().unwrap();
    for outside in [
        at(Family::Rows, 0, 0, 0),
        at(Family::Win23, 30, 0, 0),
        at(Family::Win23, 0, 1, 0),
        at(Family::Win23, 0, 0, 1_000_000),
        Location { bucket: 1, ..at(Family::Win23, 0, 0, 0) },
    ] {
        assert_eq!(layout.index(&outside), None, "{outside:?}");
    }
}
