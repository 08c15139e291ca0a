//! A whole training run of the reference, rebuilt: chunks, quick checks, validation points, the best
//! point, the plateau and the stop record. Everything is compared but wall time.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine_core::ntuple::{FrozenTables, TrainTables};
use engine_core::progress::{StopToken, Unwatched};
use engine_core::screen::GameRow;
use engine_core::train::Trainer;
use engine_core::train::best::freeze;
use engine_core::train::schedule::Every;
use engine_core::train::validation::{
    Hall, PlateauRule, QuickPoint, TableGames, ValidationBlock, ValidationPoint, play_direct,
    play_fair, play_tables,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::golden_dir::{golden, golden_dir};
use crate::train_config::{RunConfig, assert_row, seed};

/// The games of one recorded validation point.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Artifact {
    config: ArtifactConfig,
    seed_start_hex: String,
    individuals: Vec<Individual>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ArtifactConfig {
    experiment: String,
    validation: bool,
    moves_trained: u64,
    games: usize,
    move_cap: u32,
    arms: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Individual {
    name: String,
    games: Vec<RecordedGame>,
    numbered_clears_per_move: f64,
    cover_reveals_per_move: f64,
    censored_games: usize,
    incomplete_decisions: u32,
    illegal_decisions: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RecordedGame {
    seed_hex: String,
    score: i64,
    moves: u32,
    numbered_cleared: u64,
    covers_revealed: u64,
    max_chain_depth: u32,
    mean_occupied_cells: f64,
    censored: bool,
    illegal_decisions: u32,
    incomplete_decisions: u32,
    work: u64,
    #[serde(rename = "wallSeconds")]
    _wall: f64,
}

impl RecordedGame {
    fn row(&self) -> GameRow {
        GameRow {
            seed: seed(&self.seed_hex),
            score: self.score,
            moves: self.moves,
            numbered_cleared: self.numbered_cleared,
            covers_revealed: self.covers_revealed,
            max_chain_depth: self.max_chain_depth,
            occupied_sum: (self.mean_occupied_cells * f64::from(self.moves)).round() as u64,
            censored: self.censored,
            illegal_decisions: self.illegal_decisions,
            incomplete_decisions: self.incomplete_decisions,
            work: self.work,
            // Not recorded.
            clears: 0,
        }
    }
}

impl Individual {
    fn rows(&self) -> Vec<GameRow> {
        self.games.iter().map(RecordedGame::row).collect()
    }

    /// Compares games that were played here, and the rates over them, with the record.
    fn assert_equals(&self, played: &[GameRow]) {
        let known: Vec<GameRow> = played.iter().map(|row| GameRow { clears: 0, ..*row }).collect();
        assert_eq!(known, self.rows(), "{}", self.name);
        for (row, recorded) in played.iter().zip(&self.games) {
            assert_eq!(row.mean_occupied(), recorded.mean_occupied_cells, "{}", self.name);
        }
        let sum = |field: fn(&GameRow) -> u64| played.iter().map(field).sum::<u64>();
        let moves = sum(|row| u64::from(row.moves)).max(1) as f64;
        let rates = (
            sum(|row| row.numbered_cleared) as f64 / moves,
            sum(|row| row.covers_revealed) as f64 / moves,
        );
        assert_eq!(rates, (self.numbered_clears_per_move, self.cover_reveals_per_move));
        assert_eq!(played.iter().filter(|row| row.censored).count(), self.censored_games);
        let incomplete = sum(|row| row.incomplete_decisions.into());
        assert_eq!(incomplete, u64::from(self.incomplete_decisions));
        assert_eq!(sum(|row| row.illegal_decisions.into()), u64::from(self.illegal_decisions));
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Best {
    moves: u64,
    artifact: String,
    paired_delta_d3: f64,
    ntuple_d3_mean: f64,
    fair_d3_mean: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Stop {
    reason: String,
    moves_total: u64,
    games_total: u64,
    #[serde(rename = "wallSeconds")]
    _wall: f64,
    validation_points: usize,
    plateau_window: usize,
    recent_window_mean: Option<f64>,
    previous_window_mean: Option<f64>,
    best_margin: Option<f64>,
}

/// The recorded run.
struct Sample {
    config: RunConfig,
    rows: Vec<String>,
    artifacts: BTreeMap<String, Artifact>,
    best: Option<Best>,
    stop: Stop,
    done: String,
}

fn sample() -> Option<Sample> {
    let config: RunConfig = golden("train-run-sample/config.json")?;
    let folder = golden_dir().join("train-run-sample");
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let mut artifacts = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with("val-") {
            artifacts.insert(name.clone(), serde_json::from_str(&text(&name)).unwrap());
        }
    }
    Some(Sample {
        rows: text("progress.jsonl").lines().map(str::to_owned).collect(),
        artifacts,
        best: folder
            .join("best.json")
            .exists()
            .then(|| serde_json::from_str(&text("best.json")).unwrap()),
        stop: serde_json::from_str(&text("stop.json")).unwrap(),
        done: text("DONE"),
        config,
    })
}

/// Every field of the record that is not null there must be equal here; whole numbers may be written
/// with or without a fraction.
fn assert_fields(here: &impl Serialize, record: &Value, of: &str) {
    fn same(here: &Value, record: &Value) -> bool {
        match (here, record) {
            (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
            (Value::Object(a), Value::Object(b)) => {
                b.iter().all(|(name, b)| a.get(name).is_some_and(|a| same(a, b)))
            }
            _ => here == record,
        }
    }
    let here = serde_json::to_value(here).unwrap();
    for (name, expected) in record.as_object().unwrap() {
        if name == "artifact" {
            continue;
        }
        let found = here.get(name).unwrap_or_else(|| panic!("{of}: there is no {name}"));
        assert!(same(found, expected), "{of}: {name} is {found}, recorded {expected}");
    }
}

/// Rebuilds the run. With `play_search` all games are played; without, the searches (minutes) are
/// taken from the recorded artefacts, where there is one, and only their judgement is checked.
fn rebuild(sample: &Sample, play_search: bool) {
    let config = &sample.config;
    let train = config.train();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let stop = StopToken::new();
    let hall = Hall { pool: &pool, progress: &Unwatched, stop: &stop };
    let first = seed(&config.validate_start_hex);
    let block = ValidationBlock {
        seeds: (0..config.validate_games).map(|index| first + index).collect(),
        move_cap: config.move_cap,
    };
    let rule = PlateauRule { window: config.plateau_window, min_points: config.plateau_min_points };
    assert!(config.checkpoint && config.checkpoint_every > 0 && config.wall_seconds == 0.0);
    assert!(config.init_from.is_none() && !config.validate_at_start);

    let recorded = sample.artifacts.values().next().unwrap();
    let fair =
        if play_search { play_fair(hall, &block).unwrap() } else { recorded.individuals[2].rows() };

    let tables = Arc::new(TrainTables::fresh(train.layout, train.optimistic_rises).unwrap());
    let mut trainer = Trainer::new(train, Arc::clone(&tables)).unwrap();
    let mut quick_due = Every::after(0, config.quick_every);
    let mut validation_due = Every::after(0, config.validate_every);
    let mut points: Vec<ValidationPoint> = Vec::new();
    let mut margins = Vec::new();
    let mut compared = 0;
    let mut reason = "moves";
    for text in &sample.rows {
        let row: Map<String, Value> = serde_json::from_str(text).unwrap();
        let moves = config.chunk_moves.min(config.moves - trainer.state().moves);
        let report = trainer.advance(moves, &Unwatched, &stop);
        assert_row(&report, &row, 14, "train-run-sample");
        for (name, figure) in report.figures() {
            assert!(text.contains(&format!("\"{name}\":{figure},")), "{name}: {figure} in {text}");
        }
        for unused in ["rootUpdates", "internalUpdates", "leafCalls"] {
            assert_eq!(row[unused], 0, "the one-ply actor does not search");
        }
        let frozen: Arc<FrozenTables> = Arc::new(tables.freeze().unwrap());
        let of = format!("chunk {}", report.chunk);
        let direct = play_direct(hall, &block, &frozen).unwrap();
        if quick_due.is_due(report.moves_total) {
            assert_fields(&QuickPoint::of(&direct, &fair).unwrap(), &row["quick"], &of);
        } else {
            assert!(row["quick"].is_null(), "{of}");
        }
        if !validation_due.is_due(report.moves_total) {
            assert!(row["validation"].is_null(), "{of}");
            continue;
        }
        let name = format!("val-{:012}.json", report.moves_total);
        assert_eq!(row["validation"]["artifact"], name);
        let artifact = sample.artifacts.get(&name);
        let games = match artifact {
            _ if play_search => play_tables(hall, &block, &frozen).unwrap(),
            Some(artifact) => TableGames { search: artifact.individuals[0].rows(), direct },
            None => {
                // Nothing to judge: the margin enters the curve as recorded.
                assert_eq!(row["validation"]["touchedEntries"], tables.touched());
                margins.push(row["validation"]["pairedDeltaD3"].as_f64().unwrap());
                continue;
            }
        };
        if let Some(artifact) = artifact {
            assert_artifact(artifact, config, report.moves_total, &games, &fair);
        }
        let touched = tables.touched();
        let point = ValidationPoint::of(report.moves_total, touched, &games, &fair, &margins, rule)
            .unwrap();
        assert_fields(&point, &row["validation"], &of);
        compared += 1;
        margins.push(point.margin);
        if point.plateau.is_some_and(|reading| reading.stop) {
            reason = "plateau";
        }
        points.push(point);
    }
    assert!(compared >= sample.artifacts.len());
    assert_stop(sample, &trainer, reason, &points, &margins);
}

fn assert_artifact(
    artifact: &Artifact,
    config: &RunConfig,
    moves: u64,
    games: &TableGames,
    fair: &[GameRow],
) {
    let about = &artifact.config;
    assert_eq!(about.experiment, config.experiment);
    assert!(about.validation);
    assert_eq!((about.moves_trained, about.move_cap), (moves, config.move_cap));
    assert_eq!(about.games, config.validate_games as usize);
    assert_eq!(artifact.seed_start_hex, config.validate_start_hex);
    let names: Vec<&str> = artifact.individuals.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names, ["ntuple-d3s7", "ntuple-1ply", "fair-d3s7"]);
    assert_eq!(about.arms, names);
    artifact.individuals[0].assert_equals(&games.search);
    artifact.individuals[1].assert_equals(&games.direct);
    artifact.individuals[2].assert_equals(fair);
}

fn assert_stop(
    sample: &Sample,
    trainer: &Trainer,
    reason: &str,
    points: &[ValidationPoint],
    margins: &[f64],
) {
    let Stop { plateau_window, validation_points, .. } = sample.stop;
    assert_eq!(sample.stop.reason, reason);
    let state = trainer.state();
    assert_eq!((sample.stop.moves_total, sample.stop.games_total), (state.moves, state.games));
    assert_eq!((validation_points, plateau_window), (margins.len(), sample.config.plateau_window));
    let last = points.last().and_then(|point| point.plateau);
    assert_eq!(sample.stop.recent_window_mean, last.map(|reading| reading.recent_mean));
    assert_eq!(sample.stop.previous_window_mean, last.map(|reading| reading.previous_mean));
    let highest = margins.iter().copied().reduce(f64::max);
    assert_eq!(sample.stop.best_margin, highest);
    let (moves, games) = (state.moves, state.games);
    assert_eq!(
        sample.done.trim_end(),
        format!("movesTotal {moves} gamesTotal {games} reason {reason}")
    );
    let best = points.iter().rfind(|point| point.is_best);
    let record = sample.best.as_ref();
    assert_eq!(best.is_some(), record.is_some());
    if let (Some(best), Some(record)) = (best, record) {
        assert_eq!(record.moves, best.moves);
        assert_eq!(record.artifact, format!("val-{:012}.json", best.moves));
        assert_eq!(record.paired_delta_d3, best.margin);
        assert_eq!(record.ntuple_d3_mean, best.ntuple_d3_mean);
        assert_eq!(record.fair_d3_mean, best.fair_d3_mean);
    }
}

#[test]
fn the_sample_run_is_rebuilt_from_its_seeds_and_its_recorded_searches() {
    if let Some(sample) = sample() {
        rebuild(&sample, false);
    }
}

#[test]
#[ignore = "plays every depth-3 search of the run: about a minute"]
fn the_sample_run_is_rebuilt_with_every_search_played() {
    if let Some(sample) = sample() {
        rebuild(&sample, true);
    }
}

#[test]
fn a_stop_request_leaves_no_half_played_point() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let stop = StopToken::new();
    stop.stop();
    let hall = Hall { pool: &pool, progress: &Unwatched, stop: &stop };
    let block = ValidationBlock { seeds: vec![1, 2], move_cap: 5 };
    let tables = FrozenTables::fresh("win32,phase=none".parse().unwrap(), 20.0).unwrap();
    assert_eq!(play_fair(hall, &block), None);
    assert_eq!(play_tables(hall, &block, &Arc::new(tables)), None);
}

/// Rows with these scores, in seed order.
fn rows(scores: [i64; 3]) -> Vec<GameRow> {
    let row = |(seed, score)| GameRow {
        seed,
        score,
        moves: 10,
        numbered_cleared: 0,
        covers_revealed: 0,
        max_chain_depth: 0,
        occupied_sum: 0,
        censored: false,
        illegal_decisions: 0,
        incomplete_decisions: 0,
        work: 0,
        clears: 0,
    };
    (0..).zip(scores).map(row).collect()
}

#[test]
fn an_equal_margin_is_not_a_new_best_point() {
    let games = TableGames { search: rows([30, 10, 20]), direct: rows([5, 5, 5]) };
    let fair = rows([10, 10, 10]);
    let rule = PlateauRule { window: 1, min_points: 2 };
    let point = |margins: &[f64]| ValidationPoint::of(7, 9, &games, &fair, margins, rule).unwrap();
    let first = point(&[]);
    assert_eq!((first.point, first.margin, first.is_best, first.plateau), (1, 10.0, true, None));
    assert_eq!((first.wins_d3, first.losses_d3, first.paired_d3.ties), (2, 0, 1));
    assert!(point(&[9.5]).is_best);
    assert!(!point(&[10.0]).is_best, "the earlier point keeps the file");
    assert!(!point(&[11.0, 3.0]).is_best);
    assert!(point(&[10.0]).plateau.unwrap().stop);
    assert!(ValidationPoint::of(7, 9, &games, &fair[1..], &[], rule).is_err(), "rows must pair up");
}

#[test]
fn the_best_file_holds_the_weights_of_its_point_and_is_known_by_its_plain_digest() {
    let folder = tempfile::tempdir().unwrap();
    let layout = "win32,phase=none".parse().unwrap();
    let tables = Arc::new(TrainTables::fresh(layout, 20.0).unwrap());
    let seeds = engine_core::train::SeedBlock { start: 5, count: 100 };
    let config = engine_core::train::TrainConfig::new(layout, seeds);
    let mut trainer = Trainer::new(config, Arc::clone(&tables)).unwrap();
    let mut digests = Vec::new();
    for _ in 0..2 {
        trainer.advance(200, &Unwatched, &StopToken::new());
        let frozen = tables.freeze().unwrap();
        let file = freeze(&frozen, folder.path(), "best.d7ntup.zst").unwrap();
        trainer.advance(200, &Unwatched, &StopToken::new());
        let stored = std::fs::File::open(folder.path().join("best.d7ntup.zst")).unwrap();
        let ((read, plain), packed) = engine_core::ntuple::file::decompressed(stored, |plain| {
            engine_core::ntuple::file::read_frozen(plain)
        })
        .unwrap();
        assert_eq!((hex::encode(plain.sha256), plain.bytes), (file.sha256.clone(), file.bytes));
        assert_eq!(hex::encode(packed.sha256), file.stored_sha256);
        assert_eq!(packed.bytes, file.stored_bytes);
        let mut expected = Vec::new();
        frozen.for_each_written(|index, weight| expected.push((index, weight.to_bits())));
        let mut found = Vec::new();
        read.for_each_written(|index, weight| found.push((index, weight.to_bits())));
        assert!(!found.is_empty() && found == expected);
        digests.push(file.sha256);
    }
    assert_ne!(digests[0], digests[1], "a later best point replaces the file");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left over");
}
