//! Long serial runs against the reference curves: every row, every figure.

use std::sync::Arc;

use engine_core::ntuple::{Layout, TrainTables};
use engine_core::train::{SeedBlock, TrainConfig};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::golden_dir::golden;
use crate::train_config::{assert_row, seed, train_to};

#[derive(Deserialize)]
struct Curves {
    runs: Vec<Curve>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Curve {
    name: String,
    layout: Layout,
    seeds_start_hex: String,
    seeds_count: u32,
    moves: u64,
    chunk_moves: u64,
    rows: Vec<Map<String, Value>>,
}

fn check(curve: &Curve) {
    let seeds = SeedBlock { start: seed(&curve.seeds_start_hex), count: curve.seeds_count };
    let config = TrainConfig::new(curve.layout, seeds);
    let tables = Arc::new(TrainTables::fresh(curve.layout, config.optimistic_rises).unwrap());
    let reports = train_to(&config, &tables, curve.moves, curve.chunk_moves);
    assert_eq!(reports.len(), curve.rows.len(), "{}: chunks", curve.name);
    for (report, row) in reports.iter().zip(&curve.rows) {
        assert_row(report, row, 12, &curve.name);
    }
}

#[test]
#[ignore = "millions of moves for each curve: minutes even when optimised"]
fn every_row_of_every_curve_equals_the_reference() {
    let Some(file) = golden::<Curves>("serial-curves.json") else { return };
    assert!(!file.runs.is_empty());
    // HELDOUT_CURVE picks one curve, so that they can be run side by side.
    let only = std::env::var("HELDOUT_CURVE").ok();
    for curve in &file.runs {
        if only.as_ref().is_none_or(|name| *name == curve.name) {
            check(curve);
        }
    }
}
