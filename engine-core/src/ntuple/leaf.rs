//! Tables as the leaf of a search.

use super::{Features, Lanes, RISE, Weights};
use crate::drop7::{Board, PublicState};
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

/// Working memory of a [`TableLeaf`].
#[derive(Debug, Default)]
pub struct Workspace {
    lanes: Box<Lanes>,
    positions: Vec<(Board, u8)>,
    values: Vec<f32>,
}

impl<W: Weights> Leaf for TableLeaf<W> {
    const READS_NEXT_DISC: bool = false;
    type Scratch = Workspace;

    fn value(&self, state: &PublicState) -> f64 {
        let mut features = Features::new();
        self.0.layout().features(state.board(), state.moves_remaining(), &mut features);
        in_points(self.0.value(&features))
    }

    fn board_parts(
        &self,
        states: &[PublicState],
        workspace: &mut Workspace,
        parts: &mut Vec<BoardPart>,
    ) {
        let Workspace { lanes, positions, values } = workspace;
        positions.clear();
        positions.extend(states.iter().map(|state| (*state.board(), state.moves_remaining())));
        self.0.values(lanes, positions, values);
        let part = |&value: &f32| BoardPart { value: in_points(value), by_disc: 0 };
        parts.extend(values.iter().map(part));
    }

    fn finish(&self, part: BoardPart, _next_disc: u8) -> f64 {
        part.value
    }
}

/// Points of a value in row rises.
fn in_points(rises: f32) -> f64 {
    f64::from(RISE) * f64::from(rises)
}
