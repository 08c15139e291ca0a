//! Checkpoints: what is stored comes back, a damaged set is never taken, and a run that was stopped,
//! stored and resumed ends with the bits of one that was not.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine_core::ntuple::TrainTables;
use engine_core::progress::{Progress, StopToken, Unwatched};
use engine_core::train::checkpoint::{CheckpointError, Checkpoints};
use engine_core::train::{ChunkReport, SeedBlock, TrainConfig, TrainState, Trainer};

const CHUNK: u64 = 700;
const BUDGET: u64 = 2_800;

/// Small tables, short games, random columns, and a seed block that wraps.
fn config() -> TrainConfig {
    let seeds = SeedBlock { start: 0xa527_7000, count: 40 };
    let layout = "win32,phase=none".parse().unwrap();
    TrainConfig { epsilon: 0.1, move_cap: 120, ..TrainConfig::new(layout, seeds) }
}

pub(crate) fn fresh(config: &TrainConfig) -> Arc<TrainTables> {
    Arc::new(TrainTables::fresh(config.layout, config.optimistic_rises).unwrap())
}

/// Index and bits of every entry that is not fresh.
pub(crate) type Entries = Vec<(u64, [u32; 3])>;

pub(crate) fn written(tables: &TrainTables) -> Entries {
    let mut entries = Vec::new();
    tables.for_each_written(|index, record| {
        let bits = [record.weight, record.error, record.abs_error].map(f32::to_bits);
        entries.push((index, bits));
    });
    entries
}

fn next_chunk(trainer: &Trainer) -> Option<u64> {
    let left = BUDGET.saturating_sub(trainer.state().moves);
    (left > 0 || trainer.state().open.is_some()).then(|| CHUNK.min(left))
}

fn uninterrupted(config: &TrainConfig) -> (Vec<ChunkReport>, TrainState, Arc<TrainTables>) {
    let tables = fresh(config);
    let mut trainer = Trainer::new(config.clone(), Arc::clone(&tables)).unwrap();
    let mut reports = Vec::new();
    while let Some(moves) = next_chunk(&trainer) {
        reports.push(trainer.advance(moves, &Unwatched, &StopToken::new()));
    }
    (reports, trainer.state().clone(), tables)
}

/// Pulls the stop token after a number of finished games.
struct StopAfter {
    games: std::sync::atomic::AtomicU64,
    token: StopToken,
}

impl Progress for StopAfter {
    fn advance(&self, _moves: u64) {
        if self.games.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) == 1 {
            self.token.stop();
        }
    }
}

#[test]
fn a_run_stopped_anywhere_stored_and_resumed_ends_with_the_same_bits() {
    let config = config();
    let (rows, state, tables) = uninterrupted(&config);
    assert!(state.cursor > u64::from(config.seeds.count), "the block has to wrap");
    assert_eq!(rows.last().unwrap().seed_wraps, state.cursor / u64::from(config.seeds.count));

    for games_per_sitting in [1_u64, 7, 23] {
        let folder = tempfile::tempdir().unwrap();
        let mut stored: (Vec<ChunkReport>, Arc<TrainTables>, TrainState) =
            (Vec::new(), fresh(&config), TrainState::default());
        // The first sittings go through a file; loading each of a hundred would only repeat it.
        for sitting in 0.. {
            let trainer = Trainer::new(config.clone(), Arc::clone(&stored.1)).unwrap();
            let mut trainer = trainer.resume(stored.2.clone()).unwrap();
            let Some(moves) = next_chunk(&trainer) else { break };
            let stop = StopToken::new();
            let games = games_per_sitting.into();
            let report = trainer.advance(moves, &StopAfter { games, token: stop.clone() }, &stop);
            assert_eq!(report.stopped, trainer.state().open.is_some());
            if !report.stopped {
                stored.0.push(report);
            }
            stored.2 = trainer.state().clone();
            if sitting < 4 {
                let mut checkpoints = Checkpoints::open(folder.path()).unwrap();
                checkpoints.save(&stored.1, &config, &stored.2, &stored.0).unwrap();
                let found = Checkpoints::open(folder.path()).unwrap().load(&config).unwrap();
                assert_eq!(found.rejected, []);
                let restored = found.restored.unwrap();
                stored = (restored.curve, Arc::new(restored.tables), restored.state);
            }
        }
        assert_eq!(stored.0, rows, "{games_per_sitting} games per sitting");
        assert_eq!(stored.2, state);
        assert!(written(&stored.1) == written(&tables), "entries differ");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn newest(folder: &Path, kind: &str) -> PathBuf {
    let name = names(folder).into_iter().rfind(|name| name.ends_with(kind)).unwrap();
    folder.join(name)
}

/// A folder with two sets, the curve being the number of the set.
fn two_sets(config: &TrainConfig) -> (tempfile::TempDir, Vec<Entries>) {
    let folder = tempfile::tempdir().unwrap();
    let mut checkpoints = Checkpoints::open(folder.path()).unwrap();
    let tables = fresh(config);
    let mut trainer = Trainer::new(config.clone(), Arc::clone(&tables)).unwrap();
    let mut contents = Vec::new();
    for set in 0..2_u32 {
        trainer.advance(100, &Unwatched, &StopToken::new());
        checkpoints.save(&tables, config, trainer.state(), &set).unwrap();
        contents.push(written(&tables));
    }
    (folder, contents)
}

#[test]
fn any_damage_to_the_newest_set_is_named_and_the_one_before_is_taken() {
    let config = config();
    let (folder, contents) = two_sets(&config);
    let folder = folder.path();
    let whole = Checkpoints::open(folder).unwrap().load::<u32>(&config).unwrap();
    let restored = whole.restored.unwrap();
    assert_eq!((restored.curve, whole.rejected.len()), (1, 0));
    assert!(written(&restored.tables) == contents[1]);

    for kind in ["records.zst", "state.json", "manifest.json"] {
        let path = newest(folder, kind);
        let bytes = fs::read(&path).unwrap();
        let flipped = |at: usize| {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            damaged
        };
        let damages: Vec<(&str, Option<Vec<u8>>)> = vec![
            ("missing", None),
            ("empty", Some(Vec::new())),
            ("cut", Some(bytes[..bytes.len() / 2].to_vec())),
            ("longer", Some([bytes.as_slice(), b"x"].concat())),
            ("first byte", Some(flipped(0))),
            ("middle", Some(flipped(bytes.len() / 2))),
            ("near the end", Some(flipped(bytes.len() - 3))),
        ];
        for (damage, damaged) in damages {
            match damaged {
                None => fs::remove_file(&path).unwrap(),
                Some(damaged) => fs::write(&path, damaged).unwrap(),
            }
            let found = Checkpoints::open(folder).unwrap().load::<u32>(&config).unwrap();
            let restored = found.restored.unwrap();
            assert_eq!(restored.curve, 0, "{kind} {damage}");
            assert!(written(&restored.tables) == contents[0], "{kind} {damage}");
            // Without its manifest a set was never finished: nothing was there to be rejected.
            let unfinished = kind == "manifest.json" && damage == "missing";
            assert_eq!(found.rejected.len(), usize::from(!unfinished), "{kind} {damage}");
            fs::write(&path, &bytes).unwrap();
        }
    }
}

#[test]
fn when_every_set_is_damaged_nothing_is_restored_and_all_are_named() {
    let config = config();
    let (folder, _) = two_sets(&config);
    for name in names(folder.path()).iter().filter(|name| name.ends_with("state.json")) {
        fs::write(folder.path().join(name), "{}").unwrap();
    }
    let found = Checkpoints::open(folder.path()).unwrap().load::<u32>(&config).unwrap();
    assert!(found.restored.is_none());
    let rejected: Vec<u64> = found.rejected.iter().map(|rejected| rejected.sequence).collect();
    assert_eq!(rejected, [2, 1]);
}

#[test]
fn a_save_keeps_the_last_good_set_and_removes_what_killed_saves_left() {
    let config = config();
    let (folder, contents) = two_sets(&config);
    let folder = folder.path();
    // The newest set is damaged; a later save was killed before its manifest.
    fs::write(newest(folder, "state.json"), "{}").unwrap();
    fs::write(folder.join("000000000003.records.zst"), "half").unwrap();
    fs::write(folder.join("000000000003.state.json.unfinished"), "half").unwrap();
    fs::write(folder.join("notes.txt"), "not ours").unwrap();

    let mut checkpoints = Checkpoints::open(folder).unwrap();
    let restored = checkpoints.load::<u32>(&config).unwrap().restored.unwrap();
    assert_eq!((restored.sequence, restored.curve), (1, 0));
    let saved = checkpoints.save(&restored.tables, &config, &restored.state, &9_u32).unwrap();
    assert_eq!(saved.sequence, 4);
    let kept: Vec<String> = [1, 4]
        .iter()
        .flat_map(|set| {
            ["manifest.json", "records.zst", "state.json"].map(|kind| format!("{set:012}.{kind}"))
        })
        .chain(["notes.txt".to_owned()])
        .collect();
    assert_eq!(names(folder), kept);
    let again = Checkpoints::open(folder).unwrap().load::<u32>(&config).unwrap();
    let again = again.restored.unwrap();
    assert_eq!((again.sequence, again.curve), (4, 9));
    assert!(written(&again.tables) == contents[0]);
}

#[test]
fn a_set_of_another_configuration_is_refused_with_the_field() {
    let written_by = config();
    let (folder, _) = two_sets(&written_by);
    let other_seeds = SeedBlock { start: 1, ..written_by.seeds };
    for (field, config) in [
        ("alpha", TrainConfig { alpha: 0.5, ..written_by.clone() }),
        ("epsilon", TrainConfig { epsilon: 0.0, ..written_by.clone() }),
        ("seeds", TrainConfig { seeds: other_seeds, ..written_by.clone() }),
        ("threads", TrainConfig { threads: 2, ..written_by.clone() }),
        ("layout", TrainConfig { layout: "rows".parse().unwrap(), ..written_by.clone() }),
    ] {
        match Checkpoints::open(folder.path()).unwrap().load::<u32>(&config) {
            Err(CheckpointError::Configuration { sequence: 2, field: named }) => {
                assert_eq!(named, field);
            }
            other => panic!("{field}: {other:?}"),
        }
    }
}

#[test]
fn an_empty_folder_holds_nothing_and_says_nothing_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("made/when/needed");
    let found = Checkpoints::open(&inner).unwrap().load::<u32>(&config()).unwrap();
    assert!(found.restored.is_none() && found.rejected.is_empty());
}
