//! Tables in which every entry differs from its neighbours and nothing is stored: what the gates
//! look at when there is no trained table yet. Fresh tables would hide a wrong index, because all
//! their entries are equal.

use crate::drop7::chance::mix32;
use crate::ntuple::{Layout, Weights};

/// A formula for every entry of a layout: around the start value of the studies, half of it either
/// way.
#[derive(Debug, Clone, Copy)]
pub struct Scattered {
    layout: Layout,
    start: f32,
}

impl Scattered {
    /// Scattered weights over `layout`, a board being worth about 20 row rises.
    pub fn new(layout: Layout) -> Self {
        Self { layout, start: layout.start_value(crate::ntuple::tables::STUDY_START) }
    }
}

impl Weights for Scattered {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn weight(&self, index: u64) -> f32 {
        let bits = mix32(mix32(index as u32) ^ (index >> 32) as u32);
        let unit = (bits >> 8) as f32 / 16_777_216.0;
        self.start * (0.5 + unit)
    }
}
