//! The weights the golden files describe by a formula, and its zero sibling.

use engine_core::drop7::chance::mix32;
use engine_core::ntuple::{Layout, Weights};

/// A formula in place of tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Synthetic {
    layout: Layout,
    zero: bool,
}

impl Synthetic {
    /// Entry `i` is the top 24 bits of `mix32(i)` as a fraction, minus a half.
    pub(crate) fn new(layout: &str) -> Self {
        Self { layout: layout.parse().unwrap(), zero: false }
    }

    /// Every entry is zero.
    pub(crate) fn zero(layout: &str) -> Self {
        Self { layout: layout.parse().unwrap(), zero: true }
    }
}

impl Weights for Synthetic {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn weight(&self, index: u64) -> f32 {
        assert!(index < self.layout.entries());
        if self.zero {
            return 0.0;
        }
        (mix32(index as u32) >> 8) as f32 / 16_777_216.0 - 0.5
    }
}
