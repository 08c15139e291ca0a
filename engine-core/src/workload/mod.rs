//! Work to be timed: the hot paths in loops, on positions and seeds that never change, for
//! `heldout bench` and for the instruction counts.
//!
//! The loops are here, and not where the clock is, because generic code is compiled where it is used:
//! timed from another crate they would be that crate's code. Promised: every workload does the same
//! every time, and says how much it did. Refused: clocks.
//!
//! | room | holds |
//! | --- | --- |
//! | [`positions`] | roots, probes, positions from play |
//! | [`memory`] | random reads and record updates over arrays of any size |
//! | [`traffic`] | what a decision reads, and how many leaves a search reads |

pub mod memory;
pub mod positions;
pub mod traffic;

use std::hint::black_box;

use crate::drop7::chance::NodeReveals;
use crate::drop7::rules::{Start, start};
use crate::drop7::{Board, CENTER_FIRST, Game, PublicState};
use crate::leaf::fair::Workspace;
use crate::leaf::{BoardPart, FairLeaf, Leaf as _};
use crate::ntuple::direct::SAMPLES;
use crate::ntuple::{FrozenTables, LANES, Lanes, Layout, Weights as _};
use crate::search::{ParallelSearcher, SearchConfig};

/// The first seed that workloads play: in the probe block, which is never leased.
pub const FIRST_SEED: u32 = crate::check::probes::BLOCK;

/// Plays the games of `seeds` seeds from [`FIRST_SEED`] on, always in the legal column nearest the
/// centre. Returns the number of moves.
pub fn centre_first(seeds: u32) -> u64 {
    let mut moves = 0;
    for seed in FIRST_SEED..FIRST_SEED + seeds {
        let mut game = Game::new(seed);
        while let Some(column) =
            CENTER_FIRST.into_iter().find(|&column| game.public().board().is_legal(column))
        {
            if game.play(column).is_none() {
                break;
            }
        }
        moves += u64::from(game.moves_played());
        black_box(&game);
    }
    moves
}

/// Plays out every legal column of every position as a search does: once up to its first reveal, and
/// from there for every one of seven samples. Returns the number of boards that came out.
pub fn simulate(states: &[PublicState]) -> u64 {
    let mut boards = 0;
    for (seed, state) in (0..).zip(states) {
        let mut reveals = NodeReveals::new(seed, SAMPLES);
        for column in CENTER_FIRST {
            match start(state, column) {
                None => {}
                Some(Start::Settled(played)) => {
                    black_box(&played);
                    boards += 1;
                }
                Some(Start::Pending(pending)) => {
                    for sample in 0..SAMPLES {
                        black_box(&pending.finish(&mut reveals.sample(sample)));
                        boards += 1;
                    }
                }
            }
        }
    }
    boards
}

/// Decides over the fair leaf with all threads of `pool` for every position. Returns how many.
pub fn decide_on_several_cores(
    pool: &rayon::ThreadPool,
    config: SearchConfig,
    states: &[PublicState],
) -> u64 {
    let searcher = ParallelSearcher::new(config, FairLeaf);
    for state in states {
        black_box(searcher.decide(pool, state));
    }
    states.len() as u64
}

/// Reads the fair leaf of many positions at once.
#[derive(Debug, Default)]
pub struct FairReader {
    workspace: Workspace,
    parts: Vec<BoardPart>,
}

impl FairReader {
    /// The sum of the values of canonical, unfinished positions, each under its visible disc.
    pub fn read(&mut self, states: &[PublicState]) -> f64 {
        self.parts.clear();
        FairLeaf.board_parts(states, &mut self.workspace, &mut self.parts);
        self.parts
            .iter()
            .zip(states)
            .fold(0.0, |sum, (&part, state)| sum + FairLeaf.finish(part, state.next_disc()))
    }
}

/// Finds the entries of all positions, sixteen at a time.
pub fn features(layout: &Layout, positions: &[(Board, u8)], lanes: &mut Lanes) {
    for positions in positions.chunks(LANES) {
        layout.lanes(black_box(positions), lanes);
        black_box(&*lanes);
    }
}

/// Finds and adds up the entries of all positions.
pub fn values(
    tables: &FrozenTables,
    positions: &[(Board, u8)],
    lanes: &mut Lanes,
    values: &mut Vec<f32>,
) {
    tables.values(lanes, black_box(positions), values);
    black_box(&*values);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_do_the_same_every_time() {
        assert_eq!(centre_first(20), centre_first(20));
        let states = positions::probes();
        assert_eq!(simulate(&states), simulate(&states));
        let mut reader = FairReader::default();
        let sum: f64 = states.iter().fold(0.0, |sum, state| sum + FairLeaf.value(state));
        assert_eq!(reader.read(&states).to_bits(), sum.to_bits());
        assert_eq!(reader.read(&states).to_bits(), sum.to_bits());
    }
}
