//! Leaves: what a search asks at its horizon.

use crate::drop7::PublicState;

/// An evaluation of positions that are not over, in points.
pub trait Leaf {
    /// Whether the value depends on the visible next disc. When it does not, a search may evaluate
    /// one board once for all samples that differ in the next disc only; the value is the same.
    const READS_NEXT_DISC: bool;

    /// The value of `state` in points. `state` is never over; its board need not be canonical.
    fn value(&self, state: &PublicState) -> f64;
}

impl<L: Leaf + ?Sized> Leaf for &L {
    const READS_NEXT_DISC: bool = L::READS_NEXT_DISC;

    fn value(&self, state: &PublicState) -> f64 {
        (**self).value(state)
    }
}
