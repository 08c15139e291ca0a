//! Tables as the leaf of a search.

use super::{Features, Weights};
use crate::drop7::PublicState;
use crate::leaf::{BoardPart, Leaf};

/// A leaf that is worth what the tables say, in points.
#[derive(Debug, Clone, Copy)]
pub struct TableLeaf<W>(W);

impl<W: Weights> TableLeaf<W> {
    /// A leaf over `weights`.
    pub const fn new(weights: W) -> Self {
        Self(weights)
    }

    /// The tables it reads.
    pub const fn weights(&self) -> &W {
        &self.0
    }
}

impl<W: Weights> Leaf for TableLeaf<W> {
    const READS_NEXT_DISC: bool = false;
    type Scratch = Features;

    fn value(&self, state: &PublicState) -> f64 {
        let mut features = Features::new();
        self.0.layout().features(state.board(), state.moves_remaining(), &mut features);
        in_points(self.0.value(&features))
    }

    fn board_parts(
        &self,
        states: &[PublicState],
        features: &mut Features,
        parts: &mut Vec<BoardPart>,
    ) {
        parts.extend(states.iter().map(|state| {
            self.0.layout().features(state.board(), state.moves_remaining(), features);
            BoardPart { value: in_points(self.0.value(features)), by_disc: 0 }
        }));
    }

    fn finish(&self, part: BoardPart, _next_disc: u8) -> f64 {
        part.value
    }
}

fn in_points(rises: f32) -> f64 {
    17_000.0 * f64::from(rises)
}
