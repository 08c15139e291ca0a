//! Tables as the leaf of a search.

use super::{Features, Weights};
use crate::drop7::PublicState;
use crate::leaf::Leaf;

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

    fn value(&self, state: &PublicState) -> f64 {
        let mut features = Features::new();
        self.0.layout().features(state.board(), state.moves_remaining(), &mut features);
        17_000.0 * f64::from(self.0.value(&features))
    }
}
