//! How near a numbered disc is to popping: by discs that are still missing from its row, and by
//! numbered discs of its run that may pop away.

use crate::drop7::board::SIDE;

/// `HALVES[k]` is 2^(1-k) for k >= 1: how near a disc is when k discs are missing. 0 for k = 0.
/// A row lacks at most 42 discs.
pub(super) const HALVES: [f64; 64] = {
    let mut table = [0.0; 64];
    table[1] = 1.0;
    let mut k = 2;
    while k < 64 {
        table[k] = table[k - 1] * 0.5;
        k += 1;
    }
    table
};

/// Up to seven numbers, the largest first.
#[derive(Clone, Copy, Default)]
pub(super) struct Descending {
    pub(super) items: [f64; SIDE + 1],
    len: usize,
}

impl Descending {
    #[inline]
    pub(super) fn insert(&mut self, item: f64) {
        let mut at = self.len;
        while at > 0 && self.items[at - 1] < item {
            self.items[at] = self.items[at - 1];
            at -= 1;
        }
        self.items[at] = item;
        self.len += 1;
    }

    pub(super) fn as_slice(&self) -> &[f64] {
        &self.items[..self.len]
    }

    /// How likely a run of `length` discs shrinks to `value` through its other numbered discs, when
    /// these items are the readiness of all of them and `own` that of the disc itself.
    #[inline]
    pub(super) fn release(&self, length: u32, value: u32, own: f64) -> f64 {
        if length <= value {
            return 0.0;
        }
        let surplus = (length - value) as usize;
        if surplus >= self.len {
            return 0.0;
        }
        // The surplus-th largest of the others: skip `own` when it is among the larger ones.
        let item = self.items[surplus - 1];
        let weakest = if item > own { item } else { self.items[surplus] };
        weakest * HALVES[surplus]
    }
}

/// The row of one cell: who stands in it and how many discs each column lacks to reach it.
pub(super) struct Row {
    occupied: u32,
    /// Byte `n`: discs missing in columns 0..=n, 0..=42.
    missing: [u8; 8],
}

impl Row {
    /// Row `row` (0 = top), with the column heights one per byte.
    #[inline]
    pub(super) fn new(planes_occupied: u64, heights: u64, row: usize) -> Self {
        const ONES: u64 = 0x0001_0101_0101_0101;
        const HIGH: u64 = ONES << 7;
        let elevation = (SIDE - row) as u64 * ONES;
        let difference = (elevation | HIGH) - heights;
        let positive = ((difference & HIGH) >> 7) * 0xff;
        let missing = difference & !HIGH & positive;
        Self {
            occupied: ((planes_occupied >> (8 * row)) & 0x7f) as u32,
            missing: missing.wrapping_mul(ONES).to_le_bytes(),
        }
    }

    /// First and last column of the run through `column`.
    #[inline]
    pub(super) const fn run(&self, column: u32) -> (u32, u32) {
        let last = column + (self.occupied >> column).trailing_ones() - 1;
        let first = column + 1 - (self.occupied << (31 - column)).leading_ones();
        (first, last)
    }

    /// How near the disc `value` in `column` is to popping in this row: the fewest discs that make a
    /// run of exactly `value` around it.
    #[inline]
    pub(super) fn readiness(&self, column: u32, value: u32) -> f64 {
        let (first, last) = self.run(column);
        if value <= last + 1 - first {
            return 0.0;
        }
        let bounded = self.occupied << 1;
        let mut fewest = 0;
        for start in (last + 1).saturating_sub(value)..=first.min(7 - value) {
            let end = start + value - 1;
            let touches = ((bounded >> start) | (self.occupied >> (end + 1))) & 1;
            if touches != 0 {
                continue;
            }
            let before = if start == 0 { 0 } else { self.missing[start as usize - 1] };
            let cost = usize::from(self.missing[end as usize] - before);
            if cost != 0 && (fewest == 0 || cost < fewest) {
                fewest = cost;
            }
        }
        HALVES[fewest]
    }
}
