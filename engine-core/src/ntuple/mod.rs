//! Lookup tables over patterns of the board: what is read ([`layout`], [`features`], [`lanes`]), where it is
//! held ([`tables`]), how it is stored ([`mod@file`]) and who plays from it ([`direct`], [`leaf`]).
//!
//! Promised: the same entries, the same `f32` bits and the same file bytes as the reference
//! (`tests/golden/{tuples,direct-policy,edits-small,search-leaf}.json`), indices in 64 bits
//! throughout, and memory that grows with what was touched, not with the size of the layout.
//! Refused: the visible next disc, the score and the history. A value is a function of the board
//! and of the drops left until the rise.
//!
//! Values are in units of one row rise, 17 000 points ([`RISE`]).

pub mod codec;
pub mod coverage;
pub mod direct;
pub mod edit;
pub mod features;
pub mod file;
pub mod fingerprint;
pub mod lanes;
pub mod layout;
pub mod leaf;
pub(crate) mod lines;
pub(crate) mod pages;
pub mod promote;
mod sums;
pub mod tables;

pub use features::Features;
pub use lanes::{LANES, Lanes};
pub use layout::Layout;
pub use tables::{FrozenTables, TrainTables};

use std::sync::Arc;

use crate::drop7::Board;

/// Points of one row rise: the unit of every table value.
pub const RISE: f32 = 17_000.0;

/// Read access to the entries of a layout.
///
/// Whatever holds the entries (live tables, frozen tables, a formula in a test), the value of a
/// position is their sum in feature order, each addition rounded to `f32`.
pub trait Weights {
    /// The layout the entries belong to.
    fn layout(&self) -> &Layout;

    /// Entry `index`, 0..`layout().entries()`.
    ///
    /// # Panics
    /// May panic when `index` is out of range.
    fn weight(&self, index: u64) -> f32;

    /// The value of a position, in row rises: the sequential sum over `features`.
    ///
    /// # Panics
    /// May panic when the features were extracted with another layout.
    #[inline]
    fn value(&self, features: &Features) -> f32 {
        features.as_slice().iter().fold(0.0, |sum, &index| sum + self.weight(index))
    }

    /// The values of the positions in `lanes`, in row rises: bit for bit [`Weights::value`] of each.
    /// What is written behind [`Lanes::filled`] means nothing.
    ///
    /// # Panics
    /// May panic when the lanes were filled for another layout.
    fn lane_values(&self, lanes: &Lanes, out: &mut [f32; LANES]) {
        out.fill(0.0);
        let out = &mut out[..lanes.filled()];
        for (first, offsets) in lanes.tables() {
            for (sum, &offset) in out.iter_mut().zip(offsets) {
                *sum += self.weight(first + u64::from(offset));
            }
        }
    }

    /// Replaces `out` by the values of `positions`, in row rises. They are canonical boards, each
    /// with the drops left until the rise. `lanes` is working memory.
    fn values(&self, lanes: &mut Lanes, positions: &[(Board, u8)], out: &mut Vec<f32>) {
        lanes::values(self, lanes, positions, out);
    }

    /// Copies the entries from `first` on into `out`, for writers that stream a whole table.
    ///
    /// # Panics
    /// May panic when `first + out.len()` is above `layout().entries()`.
    fn copy_weights(&self, first: u64, out: &mut [f32]) {
        for (index, slot) in (first..).zip(out) {
            *slot = self.weight(index);
        }
    }
}

macro_rules! weights_behind {
    ($($pointer:ty),*) => {$(
        impl<W: Weights + ?Sized> Weights for $pointer {
            #[inline]
            fn layout(&self) -> &Layout {
                (**self).layout()
            }

            #[inline]
            fn weight(&self, index: u64) -> f32 {
                (**self).weight(index)
            }

            #[inline]
            fn value(&self, features: &Features) -> f32 {
                (**self).value(features)
            }

            fn lane_values(&self, lanes: &Lanes, out: &mut [f32; LANES]) {
                (**self).lane_values(lanes, out);
            }

            fn values(&self, lanes: &mut Lanes, positions: &[(Board, u8)], out: &mut Vec<f32>) {
                (**self).values(lanes, positions, out);
            }

            fn copy_weights(&self, first: u64, out: &mut [f32]) {
                (**self).copy_weights(first, out);
            }
        }
    )*};
}

weights_behind!(&W, Arc<W>);
