//! The score is not part of what a policy sees.

use engine_core::drop7::PublicState;

fn greedy(state: &PublicState) -> i64 {
    state.score()
}

fn main() {}
