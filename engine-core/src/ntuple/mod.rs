//! Lookup tables over patterns of the board: what is read ([`layout`], [`features`]), where it is
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
pub mod layout;
pub mod leaf;
pub(crate) mod lines;
mod pages;
pub mod promote;
pub mod tables;

pub use features::Features;
pub use layout::Layout;
pub use tables::{FrozenTables, TrainTables};

use std::sync::Arc;

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

    /// The values of many positions, in row rises: bit for bit [`Weights::value`] of each. The sums
    /// of four positions run side by side, because one sum alone waits for its own additions.
    ///
    /// # Panics
    /// When `out` is shorter than `features`, and as [`Weights::value`].
    #[inline]
    fn values(&self, features: &[Features], out: &mut [f32]) {
        let (fours, rest) = features.as_chunks::<4>();
        let active = self.layout().active();
        for (four, out) in fours.iter().zip(out.chunks_exact_mut(4)) {
            let [a, b, c, d] = four.each_ref().map(|features| &features.as_slice()[..active]);
            let mut sums = [0.0; 4];
            for k in 0..active {
                sums[0] += self.weight(a[k]);
                sums[1] += self.weight(b[k]);
                sums[2] += self.weight(c[k]);
                sums[3] += self.weight(d[k]);
            }
            out.copy_from_slice(&sums);
        }
        for (features, out) in rest.iter().zip(&mut out[4 * fours.len()..]) {
            *out = self.value(features);
        }
    }

    /// Asks for the entries of a position ahead of their use. Changes no value.
    #[inline]
    fn prefetch(&self, features: &Features) {
        let _ = features;
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

            #[inline]
            fn values(&self, features: &[Features], out: &mut [f32]) {
                (**self).values(features, out);
            }

            #[inline]
            fn prefetch(&self, features: &Features) {
                (**self).prefetch(features);
            }

            fn copy_weights(&self, first: u64, out: &mut [f32]) {
                (**self).copy_weights(first, out);
            }
        }
    )*};
}

weights_behind!(&W, Arc<W>);
