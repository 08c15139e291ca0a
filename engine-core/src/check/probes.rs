//! The positions all gates look at: what random play reaches from 64 fixed seeds, finished games
//! included. The seeds belong to no lease.

use crate::drop7::chance::Mulberry32;
use crate::drop7::{Game, PublicState};

/// First seed of the probe block. Gates use `BLOCK .. BLOCK + 0x400`.
pub const BLOCK: u32 = 0xa527_7000;

const GAMES: u32 = 64;
const MAX_MOVES: u32 = 400;
const MAX_KEPT: usize = 40;

/// A position with what a policy must not see of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// What a policy may see.
    pub state: PublicState,
    /// Points so far.
    pub score: i64,
    /// Level, from 1.
    pub level: u32,
    /// Moves played so far.
    pub moves_played: u32,
}

impl Probe {
    /// The probe with its board mirrored.
    #[must_use]
    pub fn mirror(self) -> Self {
        Self { state: PublicState { board: self.state.board.mirror(), ..self.state }, ..self }
    }
}

/// All probes, in the order in which they are reached.
pub fn probes() -> Vec<Probe> {
    let mut probes = Vec::new();
    for seed in BLOCK..BLOCK + GAMES {
        let mut game = Game::new(seed);
        let mut random = Mulberry32::new(seed ^ 0x5151_5151);
        let mut kept = 0;
        while !game.public().is_over() && game.moves_played() < MAX_MOVES && kept < MAX_KEPT {
            let board = game.public().board();
            let legal: Vec<usize> = (0..7).filter(|&column| board.is_legal(column)).collect();
            let column = legal[random.next_bits() as usize % legal.len()];
            if game.play(column).is_none() {
                break;
            }
            if random.next_bits().is_multiple_of(3) {
                kept += 1;
                probes.push(Probe {
                    state: *game.public(),
                    score: game.score(),
                    level: game.level(),
                    moves_played: game.moves_played(),
                });
            }
        }
    }
    probes
}
