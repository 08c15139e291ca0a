//! A whole screen: every planned game of every planned arm, each exactly once. Contrasts and gates
//! start from a [`Cohort`], and a screen with a missing, doubled or unplanned game never becomes one.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::interaction::interaction;
use super::{Paired, StatsError};

/// What a verdict needs to know of one game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Played {
    /// Seed of the game.
    pub seed: u32,
    /// Points.
    pub score: i64,
    /// Moves.
    pub moves: u32,
    /// Decisions that named no legal column.
    pub illegal_decisions: u32,
    /// Decisions that did not reach the depth of the arm.
    pub incomplete_decisions: u32,
}

/// An arm as the protocol plans it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedArm {
    /// Name of the arm.
    pub name: String,
    /// The arm plays the first `games` seeds of the block.
    pub games: usize,
}

/// The games a protocol plans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenPlan {
    /// Seeds of the block, in order.
    pub seeds: Vec<u32>,
    /// Arms, in order.
    pub arms: Vec<PlannedArm>,
}

/// Which figure of a game is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Points of the game.
    Score,
    /// Moves of the game.
    Moves,
}

/// Decisions of one arm that void a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmIntegrity {
    /// Name of the arm.
    pub arm: String,
    /// Decisions that named no legal column.
    pub illegal: u64,
    /// Decisions that did not reach the depth of the arm.
    pub incomplete: u64,
}

/// Why played games are not the planned ones.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CohortError {
    /// A plan without arms, or an arm without games.
    #[error("the plan holds no game for {0}")]
    EmptyPlan(String),
    /// An arm plans more games than the block has seeds.
    #[error("arm `{arm}` plans {games} games on a block of {seeds} seeds")]
    BeyondBlock {
        /// Name of the arm.
        arm: String,
        /// Games planned.
        games: usize,
        /// Seeds of the block.
        seeds: usize,
    },
    /// Two planned arms of one name.
    #[error("arm `{0}` is planned twice")]
    DoublePlannedArm(String),
    /// A seed occurs twice in the block.
    #[error("seed {0:#010x} occurs twice in the block")]
    DoubleSeed(u32),
    /// A planned arm without rows.
    #[error("arm `{0}` is planned and has no rows")]
    MissingArm(String),
    /// Rows of an arm that is not planned.
    #[error("arm `{0}` is not planned")]
    UnplannedArm(String),
    /// Rows of one arm were given in two parts.
    #[error("the rows of arm `{0}` are given twice")]
    DoubleArm(String),
    /// A planned game without a row.
    #[error(
        "arm `{arm}` holds {held} of {planned} planned games; the first missing one has seed {seed:#010x}"
    )]
    MissingGames {
        /// Name of the arm.
        arm: String,
        /// Planned games that have a row.
        held: usize,
        /// Planned games.
        planned: usize,
        /// The first planned seed without a row.
        seed: u32,
    },
    /// A game has two rows.
    #[error("arm `{arm}` holds seed {seed:#010x} more than once")]
    DoubleGame {
        /// Name of the arm.
        arm: String,
        /// The seed.
        seed: u32,
    },
    /// A row whose seed is not planned for the arm.
    #[error("arm `{arm}` holds seed {seed:#010x}, which is not planned for it")]
    UnplannedGame {
        /// Name of the arm.
        arm: String,
        /// The seed.
        seed: u32,
    },
    /// A contrast names an arm that is not planned.
    #[error("the contrast names arm `{0}`, which is not in the screen")]
    UnknownArm(String),
    /// The statistic itself was refused.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

/// The complete games of a screen, per arm in seed order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cohort {
    arms: Vec<(String, Vec<Played>)>,
}

impl ScreenPlan {
    /// A plan in which every arm plays the whole block.
    pub fn whole_block<S: Into<String>>(
        seeds: Vec<u32>,
        arms: impl IntoIterator<Item = S>,
    ) -> Self {
        let games = seeds.len();
        let arms = arms.into_iter().map(|name| PlannedArm { name: name.into(), games }).collect();
        Self { seeds, arms }
    }

    /// Puts the rows of every arm into seed order, given that they are exactly the planned games.
    /// The order of arms and of rows does not matter.
    ///
    /// # Errors
    /// Names the first arm or game that is missing, doubled or not planned, and what is wrong with
    /// a plan that cannot be played.
    pub fn complete(
        &self,
        rows: impl IntoIterator<Item = (String, Vec<Played>)>,
    ) -> Result<Cohort, CohortError> {
        self.check()?;
        let mut held: HashMap<String, Vec<Played>> = HashMap::new();
        for (name, games) in rows {
            if !self.arms.iter().any(|arm| arm.name == name) {
                return Err(CohortError::UnplannedArm(name));
            }
            if held.insert(name.clone(), games).is_some() {
                return Err(CohortError::DoubleArm(name));
            }
        }
        let mut arms = Vec::with_capacity(self.arms.len());
        for planned in &self.arms {
            let rows = held
                .remove(&planned.name)
                .ok_or_else(|| CohortError::MissingArm(planned.name.clone()))?;
            arms.push((planned.name.clone(), in_seed_order(planned, &self.seeds, &rows)?));
        }
        Ok(Cohort { arms })
    }

    fn check(&self) -> Result<(), CohortError> {
        if self.arms.is_empty() {
            return Err(CohortError::EmptyPlan("any arm".to_owned()));
        }
        let mut seen = HashSet::new();
        if let Some(&seed) = self.seeds.iter().find(|&&seed| !seen.insert(seed)) {
            return Err(CohortError::DoubleSeed(seed));
        }
        let mut names = HashSet::new();
        for arm in &self.arms {
            if !names.insert(&arm.name) {
                return Err(CohortError::DoublePlannedArm(arm.name.clone()));
            }
            if arm.games == 0 {
                return Err(CohortError::EmptyPlan(format!("arm `{}`", arm.name)));
            }
            if arm.games > self.seeds.len() {
                return Err(CohortError::BeyondBlock {
                    arm: arm.name.clone(),
                    games: arm.games,
                    seeds: self.seeds.len(),
                });
            }
        }
        Ok(())
    }
}

fn in_seed_order(
    planned: &PlannedArm,
    seeds: &[u32],
    rows: &[Played],
) -> Result<Vec<Played>, CohortError> {
    let arm = || planned.name.clone();
    let seeds = &seeds[..planned.games];
    let mut by_seed = HashMap::with_capacity(rows.len());
    for row in rows {
        if by_seed.insert(row.seed, *row).is_some() {
            return Err(CohortError::DoubleGame { arm: arm(), seed: row.seed });
        }
    }
    let mut ordered = Vec::with_capacity(seeds.len());
    let mut missing = None;
    for &seed in seeds {
        match by_seed.remove(&seed) {
            Some(row) => ordered.push(row),
            None => missing = missing.or(Some(seed)),
        }
    }
    if let Some(&seed) = by_seed.keys().min() {
        return Err(CohortError::UnplannedGame { arm: arm(), seed });
    }
    match missing {
        None => Ok(ordered),
        Some(seed) => Err(CohortError::MissingGames {
            arm: arm(),
            held: ordered.len(),
            planned: seeds.len(),
            seed,
        }),
    }
}

impl Cohort {
    /// Arm names and their games in seed order, in the order of the plan.
    pub fn arms(&self) -> impl Iterator<Item = (&str, &[Played])> {
        self.arms.iter().map(|(name, games)| (name.as_str(), games.as_slice()))
    }

    /// The games of one arm in seed order.
    ///
    /// # Errors
    /// When the screen has no such arm.
    pub fn games(&self, arm: &str) -> Result<&[Played], CohortError> {
        self.arms()
            .find_map(|(name, games)| (name == arm).then_some(games))
            .ok_or_else(|| CohortError::UnknownArm(arm.to_owned()))
    }

    /// One figure of every game of an arm, in seed order.
    ///
    /// # Errors
    /// When the screen has no such arm.
    pub fn series(&self, arm: &str, metric: Metric) -> Result<Vec<f64>, CohortError> {
        Ok(self
            .games(arm)?
            .iter()
            .map(|game| match metric {
                Metric::Score => game.score as f64,
                Metric::Moves => f64::from(game.moves),
            })
            .collect())
    }

    /// `candidate - reference`, game by game; arms of different size are compared on the seeds
    /// both have played.
    ///
    /// # Errors
    /// When an arm is unknown or the statistic is refused.
    pub fn contrast(
        &self,
        candidate: &str,
        reference: &str,
        metric: Metric,
    ) -> Result<Paired, CohortError> {
        let candidate = self.series(candidate, metric)?;
        let reference = self.series(reference, metric)?;
        let both = candidate.len().min(reference.len());
        Ok(Paired::of(&candidate[..both], &reference[..both])?)
    }

    /// `(first.0 - first.1) - (second.0 - second.1)` of the scores, on the seeds all four arms have
    /// played.
    ///
    /// # Errors
    /// As [`Cohort::contrast`].
    pub fn interaction(
        &self,
        first: (&str, &str),
        second: (&str, &str),
    ) -> Result<Paired, CohortError> {
        let score = |arm| self.series(arm, Metric::Score);
        let series = [score(first.0)?, score(first.1)?, score(second.0)?, score(second.1)?];
        let all = series.iter().map(Vec::len).min().unwrap_or(0);
        let [a, b, c, d] = series.each_ref().map(|series| &series[..all]);
        Ok(interaction((a, b), (c, d))?)
    }

    /// Illegal and incomplete decisions per arm, in the order of the plan.
    pub fn integrity(&self) -> Vec<ArmIntegrity> {
        let sum = |games: &[Played], of: fn(&Played) -> u32| {
            games.iter().map(|game| u64::from(of(game))).sum()
        };
        self.arms()
            .map(|(arm, games)| ArmIntegrity {
                arm: arm.to_owned(),
                illegal: sum(games, |game| game.illegal_decisions),
                incomplete: sum(games, |game| game.incomplete_decisions),
            })
            .collect()
    }
}
