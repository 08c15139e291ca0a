//! The seed, and with it the future, is not part of what a policy sees.

use engine_core::drop7::PublicState;
use engine_core::drop7::chance::headless_disc;

fn clairvoyant(state: &PublicState) -> u8 {
    headless_disc(state.seed(), 1)
}

fn main() {}
