//! Leaves: what a search asks at its horizon.

use crate::drop7::PublicState;

pub mod fair;
mod planes;
mod readiness;

pub use fair::FairLeaf;

/// An evaluation of positions that are not over, in points.
///
/// A search asks in two steps: what of a position does not depend on the visible next disc, for many
/// positions at once ([`Leaf::board_parts`]), and then the value under each disc ([`Leaf::finish`]).
pub trait Leaf {
    /// Whether the value depends on the visible next disc.
    const READS_NEXT_DISC: bool;

    /// Working memory of [`Leaf::board_parts`]; kept by the search from call to call.
    type Scratch: Default + std::fmt::Debug;

    /// The value of `state` in points. `state` is never over; its board need not be canonical.
    fn value(&self, state: &PublicState) -> f64;

    /// Appends, for every state, everything that does not depend on its visible next disc. All
    /// states are unfinished, and their boards canonical.
    fn board_parts(
        &self,
        states: &[PublicState],
        scratch: &mut Self::Scratch,
        parts: &mut Vec<BoardPart>,
    );

    /// The bits of [`Leaf::value`] of a position with this part and this visible disc, 1..=7.
    fn finish(&self, part: BoardPart, next_disc: u8) -> f64;
}

/// What [`Leaf::board_parts`] knows of a position. Only the leaf that made it reads it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BoardPart {
    /// Points, or a partial sum of them.
    pub value: f64,
    /// Eight nibbles to be selected by the disc, as the leaf likes.
    pub by_disc: u32,
}

impl<L: Leaf + ?Sized> Leaf for &L {
    const READS_NEXT_DISC: bool = L::READS_NEXT_DISC;
    type Scratch = L::Scratch;

    fn value(&self, state: &PublicState) -> f64 {
        (**self).value(state)
    }

    fn board_parts(
        &self,
        states: &[PublicState],
        scratch: &mut Self::Scratch,
        parts: &mut Vec<BoardPart>,
    ) {
        (**self).board_parts(states, scratch, parts);
    }

    fn finish(&self, part: BoardPart, next_disc: u8) -> f64 {
        (**self).finish(part, next_disc)
    }
}
