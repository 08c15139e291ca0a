//! A whole screen of seven arms against the recorded one (`screen-sample.json`).
//!
//! The file names its tables but does not hold them. They come from the recorded serial training run
//! (`train-run-sample`), at budgets the file does not give: the one-ply arms say at which. Tables
//! whose one-ply games are the recorded ones, row for row, must then play the searching arms too.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine_core::ntuple::{FrozenTables, TrainTables};
use engine_core::progress::{StopToken, Unwatched};
use engine_core::screen::{GameRow, Player, SearchLeaf, play_block};
use engine_core::search::SearchConfig;
use engine_core::train::Trainer;
use serde::Deserialize;

use crate::golden_dir::golden;
use crate::train_config::{RunConfig, seed};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    config: Config,
    seed_start_hex: String,
    individuals: Vec<Arm>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    games: usize,
    games_depth4: Option<usize>,
    move_cap: u32,
    arms: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arm {
    name: String,
    games: Vec<Game>,
    numbered_clears_per_move: f64,
    cover_reveals_per_move: f64,
    censored_games: usize,
    incomplete_decisions: u32,
    illegal_decisions: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Game {
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
}

impl Game {
    /// Every recorded figure of a row, the mean as it is written.
    fn is(&self, row: &GameRow) -> bool {
        self.score == row.score
            && self.moves == row.moves
            && self.numbered_cleared == row.numbered_cleared
            && self.covers_revealed == row.covers_revealed
            && self.max_chain_depth == row.max_chain_depth
            && self.mean_occupied_cells == row.mean_occupied()
            && self.censored == row.censored
            && self.illegal_decisions == row.illegal_decisions
            && self.incomplete_decisions == row.incomplete_decisions
            && self.work == row.work
            && seed(&self.seed_hex) == row.seed
    }
}

impl File {
    fn rows(&self, player: &Player, games: usize) -> Vec<GameRow> {
        let start = seed(&self.seed_start_hex);
        let seeds: Vec<u32> = (0..games as u32).map(|k| start.wrapping_add(k)).collect();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let cap = self.config.move_cap;
        play_block(&pool, player, &seeds, cap, &Unwatched, &StopToken::new(), &|_, _| {})
            .into_iter()
            .map(Option::unwrap)
            .collect()
    }

    /// Plays an arm and compares every game and every figure of the arm.
    fn check(&self, arm: &Arm, player: &Player) {
        let name = &arm.name;
        let deep = name.ends_with("-d4s7");
        let games = if deep { self.config.games_depth4 } else { None }.unwrap_or(self.config.games);
        assert_eq!(arm.games.len(), games, "{name}");
        let rows = self.rows(player, games);
        for (game, row) in arm.games.iter().zip(&rows) {
            assert!(game.is(row), "{name}, game {}: {row:?}", game.seed_hex);
        }
        let sum = |of: &dyn Fn(&GameRow) -> u64| rows.iter().map(of).sum::<u64>() as f64;
        let moves = sum(&|row| u64::from(row.moves)).max(1.0);
        assert_eq!(
            sum(&|row| row.numbered_cleared) / moves,
            arm.numbered_clears_per_move,
            "{name}"
        );
        assert_eq!(sum(&|row| row.covers_revealed) / moves, arm.cover_reveals_per_move, "{name}");
        assert_eq!(rows.iter().filter(|row| row.censored).count(), arm.censored_games, "{name}");
        let incomplete: u32 = rows.iter().map(|row| row.incomplete_decisions).sum();
        let illegal: u32 = rows.iter().map(|row| row.illegal_decisions).sum();
        assert_eq!((incomplete, illegal), (arm.incomplete_decisions, arm.illegal_decisions));
    }

    /// The tables of every one-ply arm, by its name without `-1ply`: the budgets of the recorded run
    /// are tried chunk by chunk.
    fn tables(&self) -> BTreeMap<String, Arc<FrozenTables>> {
        let Some(run) = golden::<RunConfig>("train-run-sample/config.json") else {
            return BTreeMap::new();
        };
        let config = run.train();
        let live = Arc::new(TrainTables::fresh(config.layout, config.optimistic_rises).unwrap());
        let mut trainer = Trainer::new(config, Arc::clone(&live)).unwrap();
        let mut wanted: Vec<(&str, &Arm)> = self
            .individuals
            .iter()
            .filter_map(|arm| arm.name.strip_suffix("-1ply").map(|name| (name, arm)))
            .collect();
        let mut found = BTreeMap::new();
        for budget in (1..).map(|chunks| chunks * run.chunk_moves) {
            if wanted.is_empty() || budget > run.moves {
                break;
            }
            let moves = budget.saturating_sub(trainer.state().moves);
            trainer.advance(moves, &Unwatched, &StopToken::new());
            let frozen = Arc::new(live.freeze().unwrap());
            let rows = self.rows(&Player::Direct(Arc::clone(&frozen)), self.config.games);
            wanted.retain(|(name, arm)| {
                let same = arm.games.iter().zip(&rows).all(|(game, row)| game.is(row));
                if same {
                    found.insert((*name).to_owned(), Arc::clone(&frozen));
                }
                !same
            });
        }
        let missing: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
        assert!(missing.is_empty(), "no budget of the recorded run plays like {missing:?}");
        found
    }
}

fn search(depth: u32, leaf: SearchLeaf) -> Player {
    Player::Search { config: SearchConfig::bounded(depth, 7).unwrap(), leaf }
}

/// Plays the arms of the sample whose depth is wanted.
fn check_arms(wanted: impl Fn(&str) -> bool) {
    let Some(file) = golden::<File>("screen-sample.json") else { return };
    let names: Vec<&String> = file.individuals.iter().map(|arm| &arm.name).collect();
    assert_eq!(names, file.config.arms.iter().collect::<Vec<_>>());
    let tables = file.tables();
    let mut checked = 0;
    for arm in file.individuals.iter().filter(|arm| wanted(&arm.name)) {
        let (of, kind) = arm.name.rsplit_once('-').expect("an arm is named player-kind");
        let leaf = match (of, tables.get(of)) {
            ("fair", _) => SearchLeaf::Fair,
            (_, Some(tables)) => SearchLeaf::Tables(Arc::clone(tables)),
            // Only where the training record is missing and may be.
            (_, None) => continue,
        };
        let player = match (kind, leaf) {
            ("1ply", SearchLeaf::Tables(tables)) => Player::Direct(tables),
            ("d3s7", leaf) => search(3, leaf),
            ("d4s7", leaf) => search(4, leaf),
            _ => panic!("{}: no such player", arm.name),
        };
        file.check(arm, &player);
        checked += 1;
    }
    assert!(checked > 0, "the sample must hold such an arm");
}

#[test]
fn one_ply_and_depth_3_arms_play_the_recorded_screen() {
    check_arms(|name| !name.ends_with("-d4s7"));
}

#[test]
#[ignore = "a depth-4 decision takes a second"]
fn depth_4_arms_play_the_recorded_screen() {
    check_arms(|name| name.ends_with("-d4s7"));
}
