//! The level is not part of what a policy sees.

use engine_core::drop7::PublicState;

fn careful(state: &PublicState) -> u32 {
    state.level()
}

fn main() {}
