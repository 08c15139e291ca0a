//! There is no way from what a policy sees back to the game.

use engine_core::drop7::{Game, PublicState};

fn sneaky(state: &PublicState) -> &Game {
    state.game()
}

fn main() {}
