//! What a policy does see. This one compiles.

use engine_core::drop7::PublicState;
use engine_core::screen::{Choice, Policy};

struct First;

impl Policy for First {
    fn choose(&mut self, state: &PublicState) -> Choice {
        let board = state.board();
        let _ = (state.next_disc(), state.moves_remaining(), state.is_over());
        let action = (0..7).find(|&column| board.is_legal(column));
        Choice { action, work: 1, complete: true, search: None }
    }
}

fn main() {
    let row = engine_core::screen::play_policy(&mut First, 1, 5, |_| {});
    assert_eq!(row.moves, 5);
}
