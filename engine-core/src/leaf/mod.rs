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

    /// The values of `state` with each of `discs` (1..=7) as its visible next disc, written to the
    /// first `discs.len()` places of `out`: the same bits as [`Leaf::value`] one by one. Leaves of
    /// which only a part depends on the disc override it to compute the rest once.
    fn values(&self, state: &PublicState, discs: &[u8], out: &mut [f64]) {
        if Self::READS_NEXT_DISC {
            for (value, &disc) in out.iter_mut().zip(discs) {
                *value = self.value(&state.with_next_disc(disc));
            }
        } else {
            let value = self.value(state);
            for out in out.iter_mut().take(discs.len()) {
                *out = value;
            }
        }
    }
}

impl<L: Leaf + ?Sized> Leaf for &L {
    const READS_NEXT_DISC: bool = L::READS_NEXT_DISC;

    fn value(&self, state: &PublicState) -> f64 {
        (**self).value(state)
    }

    fn values(&self, state: &PublicState, discs: &[u8], out: &mut [f64]) {
        (**self).values(state, discs, out);
    }
}
