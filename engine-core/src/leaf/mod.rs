//! Leaves: what a search asks at its horizon.

use crate::drop7::PublicState;

pub mod fair;
mod planes;
mod readiness;

pub use fair::FairLeaf;

/// An evaluation of positions that are not over, in points.
pub trait Leaf {
    /// Whether the value depends on the visible next disc. When it does not, a search may evaluate
    /// one board once for all samples that differ in the next disc only; the value is the same.
    const READS_NEXT_DISC: bool;

    /// The value of `state` in points. `state` is never over; its board need not be canonical.
    fn value(&self, state: &PublicState) -> f64;

    /// Everything about `state` that does not depend on its visible next disc, for
    /// [`Leaf::finish`]. A search keeps it for all samples that differ in the next disc only.
    ///
    /// The two defaults fit every leaf; a leaf of which only a small part reads the disc overrides
    /// both.
    fn board_part(&self, state: &PublicState) -> BoardPart {
        if Self::READS_NEXT_DISC {
            BoardPart::default()
        } else {
            BoardPart { value: self.value(state), by_disc: 0 }
        }
    }

    /// The bits of [`Leaf::value`] of `state`, from the part of any position that differs from it
    /// in the next disc at most.
    fn finish(&self, part: BoardPart, state: &PublicState) -> f64 {
        if Self::READS_NEXT_DISC { self.value(state) } else { part.value }
    }
}

/// What [`Leaf::board_part`] knows. Only the leaf that made it reads it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BoardPart {
    /// Points, or a partial sum of them.
    pub value: f64,
    /// Eight nibbles to be selected by the disc, as the leaf likes.
    pub by_disc: u32,
}

impl<L: Leaf + ?Sized> Leaf for &L {
    const READS_NEXT_DISC: bool = L::READS_NEXT_DISC;

    fn value(&self, state: &PublicState) -> f64 {
        (**self).value(state)
    }

    fn board_part(&self, state: &PublicState) -> BoardPart {
        (**self).board_part(state)
    }

    fn finish(&self, part: BoardPart, state: &PublicState) -> f64 {
        (**self).finish(part, state)
    }
}
