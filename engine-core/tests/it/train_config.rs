//! The configuration record of a reference training run, as its `config.json` writes it.

use std::sync::Arc;

use engine_core::ntuple::{Layout, TrainTables};
use engine_core::progress::{StopToken, Unwatched};
use engine_core::train::{ChunkReport, Parallel, SeedBlock, TrainConfig, Trainer};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RunConfig {
    pub(crate) format: String,
    pub(crate) experiment: String,
    pub(crate) layout: String,
    pub(crate) entries: u64,
    pub(crate) active_per_state: usize,
    pub(crate) seeds_start_hex: String,
    pub(crate) seeds_count: u32,
    pub(crate) moves: u64,
    pub(crate) chunk_moves: u64,
    pub(crate) threads: u32,
    pub(crate) alpha: f32,
    pub(crate) epsilon: f64,
    pub(crate) optimistic_rise_units: f32,
    pub(crate) delta_clamp_rise_units: f32,
    pub(crate) reveal_samples: u32,
    pub(crate) validate_start_hex: String,
    pub(crate) validate_games: u32,
    pub(crate) validate_every: u64,
    pub(crate) quick_every: u64,
    pub(crate) wall_seconds: f64,
    pub(crate) move_cap: u32,
    pub(crate) train_seed_hex: String,
    pub(crate) value_unit_points: f32,
    pub(crate) checkpoint: bool,
    pub(crate) checkpoint_every: u64,
    pub(crate) plateau_window: usize,
    pub(crate) plateau_min_points: usize,
    pub(crate) init_from: Option<String>,
    pub(crate) actor: String,
    pub(crate) targets: String,
    /// Of an actor this library does not have.
    #[serde(rename = "searchDepth")]
    _search_depth: u32,
    pub(crate) validate_at_start: bool,
}

/// A seed as the records write it: `0x` and hexadecimal digits.
pub(crate) fn seed(hex: &str) -> u32 {
    let digits = hex.strip_prefix("0x").unwrap_or_else(|| panic!("{hex} has no 0x"));
    u32::from_str_radix(digits, 16).unwrap()
}

impl RunConfig {
    /// The layout, after checking what the record says about it.
    pub(crate) fn layout(&self) -> Layout {
        let layout: Layout = self.layout.parse().unwrap();
        assert_eq!(layout.to_string(), self.layout, "the record has the canonical spelling");
        assert_eq!(layout.entries(), self.entries);
        assert_eq!(layout.active(), self.active_per_state);
        layout
    }

    /// What decides how the run learns. Refuses records of trainers this library does not have.
    pub(crate) fn train(&self) -> TrainConfig {
        assert_eq!(self.format, "drop7-ntuple-scale-train-config-v1");
        assert_eq!((self.actor.as_str(), self.targets.as_str()), ("oneply", "visited"));
        assert_eq!(self.reveal_samples, 7);
        assert_eq!(self.value_unit_points.to_bits(), engine_core::ntuple::RISE.to_bits());
        assert_eq!(self.threads, 1, "only serial runs repeat");
        TrainConfig {
            layout: self.layout(),
            alpha: self.alpha,
            epsilon: self.epsilon,
            optimistic_rises: self.optimistic_rise_units,
            clamp: self.delta_clamp_rise_units,
            move_cap: self.move_cap,
            train_seed: seed(&self.train_seed_hex),
            seeds: SeedBlock { start: seed(&self.seeds_start_hex), count: self.seeds_count },
            threads: self.threads,
            parallel: Parallel::LockFree,
        }
    }
}

/// Trains `tables` to `budget` moves in chunks of `chunk`, and returns the report of every chunk.
pub(crate) fn train_to(
    config: &TrainConfig,
    tables: &Arc<TrainTables>,
    budget: u64,
    chunk: u64,
) -> Vec<ChunkReport> {
    let mut trainer = Trainer::new(config.clone(), Arc::clone(tables)).unwrap();
    let mut reports = Vec::new();
    while trainer.state().moves < budget {
        let moves = chunk.min(budget - trainer.state().moves);
        reports.push(trainer.advance(moves, &Unwatched, &StopToken::new()));
    }
    reports
}

/// Compares the figures of `report` with a row of the records: every figure the row has, and at
/// least `at_least` of them.
pub(crate) fn assert_row(
    report: &ChunkReport,
    row: &Map<String, Value>,
    at_least: usize,
    of: &str,
) {
    let mut compared = 0;
    for (name, figure) in report.figures() {
        let Some(expected) = row.get(name) else { continue };
        let figure: f64 = figure.parse().unwrap();
        assert_eq!(Some(figure), expected.as_f64(), "{of}: {name} of chunk {}", report.chunk);
        compared += 1;
    }
    assert!(compared >= at_least, "{of}: only {compared} figures were compared");
    assert!(!report.stopped && report.workers == 1);
}
