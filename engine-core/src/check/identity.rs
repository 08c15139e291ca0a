//! What this build computes, as one hash: rules, leaf, search, features, one-ply policy, learning
//! and statistics on fixed inputs. Two builds with the same identity play the same games and come to
//! the same verdict; a run is bound to it.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::probes::{self, Probe};
use crate::drop7::{CENTER_FIRST, Game};
use crate::leaf::{FairLeaf, Leaf};
use crate::ntuple::direct::DirectPolicy;
use crate::ntuple::tables::{STUDY_START, TablesError};
use crate::ntuple::{Features, Layout, TrainTables, Weights};
use crate::search::{SearchConfig, Searcher};
use crate::stats::{Paired, StatsError};

/// The rules this library plays: five-move Hardcore Drop7.
pub const RULES: &str = "drop7-1";

const GAMES: u32 = 32;
/// Every so many probes get a searched decision.
const SEARCHED: usize = 16;

/// The identity of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EngineIdentity {
    /// Name of the rules, [`RULES`].
    pub rules: String,
    /// SHA-256 of the golden trace, 64 lower-case hex digits.
    pub golden_trace: String,
}

/// A trace that could not be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The address space for a small set of tables is not there.
    #[error(transparent)]
    Tables(#[from] TablesError),
    /// The statistics of the trace were refused.
    #[error(transparent)]
    Stats(#[from] StatsError),
    /// Something fixed in the code is malformed.
    #[error("the trace of this build is malformed: {0}")]
    Malformed(String),
}

impl EngineIdentity {
    /// Computes the identity of this build: less than a second, the same on every platform.
    ///
    /// # Errors
    /// [`IdentityError`].
    pub fn compute() -> Result<Self, IdentityError> {
        Ok(Self { rules: RULES.to_owned(), golden_trace: golden_trace(FairLeaf)? })
    }
}

/// The hash of everything the library computes from fixed inputs, with `leaf` in place of the fair
/// leaf.
///
/// # Errors
/// [`IdentityError`].
pub fn golden_trace<L: Leaf + Copy>(leaf: L) -> Result<String, IdentityError> {
    let mut trace = Trace(Sha256::new());
    let scores = trace.games(leaf);
    let probes = probes::probes();
    trace.searches(&probes, leaf)?;
    trace.tables(&probes)?;
    trace.statistics(&scores)?;
    let digits = trace.0.finalize().into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
    Ok(digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect())
}

struct Trace(Sha256);

impl Trace {
    fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    /// Whole games of the center-first player: every wave, board and leaf value. Returns the scores.
    fn games(&mut self, leaf: impl Leaf) -> Vec<f64> {
        let mut scores = Vec::new();
        for seed in (probes::BLOCK..).take(GAMES as usize) {
            let mut game = Game::new(seed);
            while !game.public().is_over() {
                self.number(leaf.value(game.public()).to_bits());
                let board = game.public().board();
                let column = CENTER_FIRST.into_iter().find(|&column| board.is_legal(column));
                let played = column.and_then(|column| {
                    game.play_observed(column, |wave| {
                        self.number(u64::from(wave.depth) << 32 | u64::from(wave.popped));
                        self.number(u64::from(wave.revealed));
                        self.number(wave.points as u64);
                    })
                });
                let Some(played) = played else { break };
                self.number(played.delta as u64);
                for word in game.public().board().columns() {
                    self.number(u64::from(word));
                }
                let state = game.public();
                self.number(u64::from(state.next_disc()) << 8 | u64::from(state.moves_remaining()));
            }
            self.number(game.score() as u64);
            scores.push(game.score() as f64);
        }
        scores
    }

    /// Decisions of a depth-2 search with all their counts.
    fn searches(&mut self, probes: &[Probe], leaf: impl Leaf) -> Result<(), IdentityError> {
        let config = SearchConfig::bounded(2, 7)
            .map_err(|error| IdentityError::Malformed(error.to_string()))?;
        let mut searcher = Searcher::new(config, leaf);
        for probe in probes.iter().step_by(SEARCHED) {
            let decision = searcher.decide(&probe.state);
            self.number(decision.action.map_or(u64::MAX, |column| column as u64));
            for count in [decision.work, decision.nodes, decision.leaf_calls, decision.move_calls] {
                self.number(count);
            }
        }
        Ok(())
    }

    /// Entries of all families, one-ply decisions and updates of small tables.
    fn tables(&mut self, probes: &[Probe]) -> Result<(), IdentityError> {
        let layout = |text: &str| -> Result<Layout, IdentityError> {
            text.parse().map_err(|error| IdentityError::Malformed(format!("{text}: {error}")))
        };
        let mut features = Features::new();
        for text in [
            "rows,cols,win23,win32,win24,win42,phase=all",
            "rows,cols,win23,win32,phase=cols,fill=occ5",
            "rows,cols,win23,win32,phase=none,fill=hgt5",
        ] {
            let layout = layout(text)?;
            for probe in probes {
                let state = &probe.state;
                layout.features(state.board(), state.moves_remaining(), &mut features);
                features.as_slice().iter().for_each(|&index| self.number(index));
            }
        }
        let small = layout("win23,phase=none")?;
        let tables = TrainTables::fresh(small, STUDY_START)?;
        let mut policy = DirectPolicy::new(&tables);
        for probe in probes {
            let decision = policy.decide(&probe.state);
            self.number(decision.action.map_or(u64::MAX, |column| column as u64));
            self.number(decision.simulations);
            let state = &probe.state;
            small.features(state.board(), state.moves_remaining(), &mut features);
            let target = probe.score as f32 / 17_000.0;
            let report = tables.update(&features, target, 1.0, 30.0);
            for bits in [report.prediction.to_bits(), report.delta.to_bits()] {
                self.number(u64::from(bits));
            }
            self.number(report.beta_sum.to_bits());
            self.number(u64::from(tables.value(&features).to_bits()));
        }
        Ok(())
    }

    /// A contrast of the two halves of the games.
    fn statistics(&mut self, scores: &[f64]) -> Result<(), IdentityError> {
        let (first, second) = scores.split_at(scores.len() / 2);
        let paired = Paired::of(first, second)?;
        for figure in [
            paired.mean_delta,
            paired.paired_sd,
            paired.bootstrap_lower95,
            paired.bootstrap_upper95,
            paired.student_t_lower95,
            paired.q25_delta,
        ] {
            self.number(figure.to_bits());
        }
        Ok(())
    }
}
