//! How long the game has lasted is not part of what a policy sees.

use engine_core::drop7::PublicState;

fn tired(state: &PublicState) -> u32 {
    state.moves_played()
}

fn main() {}
