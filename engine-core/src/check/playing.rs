//! Gates 9 and 10: whole games under a search are the same for any number of workers.

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

use super::outcome::{CheckOutcome, Comparison};
use super::probes::BLOCK;
use crate::leaf::Leaf;
use crate::screen::{GameRow, play_policy};
use crate::search::{SearchConfig, Searcher};

/// Games that are played several times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// Plies of the search, over 7 samples.
    pub depth: u32,
    /// Seeds of the games.
    pub seeds: Vec<u32>,
    /// Moves after which a game is cut.
    pub move_cap: u32,
    /// Workers of each repetition; one row of games is compared with the next.
    pub workers: Vec<usize>,
}

impl Trial {
    /// Gate 9 in full.
    pub fn depth3() -> Self {
        let seeds = (BLOCK + 0x100..BLOCK + 0x104).collect();
        Self { depth: 3, seeds, move_cap: 80, workers: vec![1, 4, 4] }
    }

    /// Gate 10 in full.
    pub fn depth4() -> Self {
        let seeds = (BLOCK + 0x100..BLOCK + 0x102).collect();
        Self { depth: 4, seeds, move_cap: 40, workers: vec![1, 2, 2] }
    }

    /// The same trial cut to its first `games` games of `moves` moves, played with the first and
    /// the last number of workers.
    #[must_use]
    pub fn shortened(mut self, games: usize, moves: u32) -> Self {
        self.seeds.truncate(games);
        self.move_cap = self.move_cap.min(moves);
        if let [first, .., last] = self.workers[..] {
            self.workers = vec![first, last];
        }
        self
    }

    /// Plays the games once, on a pool of `workers` threads; rows in seed order.
    ///
    /// # Errors
    /// When the search cannot be configured or the pool cannot be started, in words.
    pub fn play<L: Leaf + Copy + Sync>(
        &self,
        leaf: L,
        workers: usize,
    ) -> Result<Vec<GameRow>, String> {
        self.play_at(self.depth, leaf, workers)
    }

    fn play_at<L: Leaf + Copy + Sync>(
        &self,
        depth: u32,
        leaf: L,
        workers: usize,
    ) -> Result<Vec<GameRow>, String> {
        let config = SearchConfig::bounded(depth, 7).map_err(|error| error.to_string())?;
        let pool = ThreadPoolBuilder::new()
            .num_threads(workers)
            .build()
            .map_err(|error| format!("{workers} workers: {error}"))?;
        let play = |&seed: &u32| {
            play_policy(&mut Searcher::new(config, leaf), seed, self.move_cap, |_| {})
        };
        Ok(pool.install(|| self.seeds.par_iter().with_max_len(1).map(play).collect()))
    }
}

/// Gates 9 and 10: `play` gives the same rows for every number of workers, without an illegal or
/// incomplete decision. A deeper search, when `shallower` rows are given, does more work than they
/// did in every game.
pub fn search_determinism(
    name: &str,
    trial: &Trial,
    shallower: Option<&[GameRow]>,
    mut play: impl FnMut(usize) -> Result<Vec<GameRow>, String>,
) -> CheckOutcome {
    let mut compared = Comparison::new();
    let mut first: Option<Vec<GameRow>> = None;
    for &workers in &trial.workers {
        let rows = match play(workers) {
            Ok(rows) => rows,
            Err(error) => return CheckOutcome::impossible(name, error),
        };
        compared.check(rows.len() == trial.seeds.len(), || {
            format!("{} games were played, not {}", rows.len(), trial.seeds.len())
        });
        for (row, &seed) in rows.iter().zip(&trial.seeds) {
            compared.check(row.seed == seed, || format!("{row:?} is not the game {seed:#010x}"));
            compared.check(row.illegal_decisions == 0 && row.incomplete_decisions == 0, || {
                format!("illegal or incomplete decisions: {row:?}")
            });
        }
        match &first {
            None => first = Some(rows),
            Some(first) => {
                for (a, b) in first.iter().zip(&rows) {
                    compared.check(a == b, || {
                        format!("with {workers} workers {b:?}, with {} {a:?}", trial.workers[0])
                    });
                }
            }
        }
    }
    let rows = first.unwrap_or_default();
    for (row, shallow) in rows.iter().zip(shallower.unwrap_or_default()) {
        compared.check(row.work > shallow.work, || {
            format!("game {:#010x}: work {} against {}", row.seed, row.work, shallow.work)
        });
    }
    let work = |rows: &[GameRow]| rows.iter().map(|row| row.work).sum::<u64>();
    compared.outcome(name, |_| {
        let mean = rows.iter().map(|row| row.score as f64).sum::<f64>() / rows.len() as f64;
        let against = shallower.map_or(String::new(), |rows| format!(" vs {}", work(rows)));
        format!(
            "{} games of at most {} moves identical with {:?} workers: mean {mean:.0}, work {}{against}",
            rows.len(),
            trial.move_cap,
            trial.workers,
            work(&rows),
        )
    })
}

/// Gate 9 or 10 on the library's own search with `leaf`. Depth 4 and more is also compared with the
/// work of one ply less.
pub fn leaf_in_search<L: Leaf + Copy + Sync>(name: &str, trial: &Trial, leaf: L) -> CheckOutcome {
    let shallower = match trial.depth {
        0..=3 => None,
        depth => match trial.play_at(depth - 1, leaf, 1) {
            Ok(rows) => Some(rows),
            Err(error) => return CheckOutcome::impossible(name, error),
        },
    };
    search_determinism(name, trial, shallower.as_deref(), |workers| trial.play(leaf, workers))
}
