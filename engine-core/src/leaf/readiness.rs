//! How near a numbered disc is to popping: by discs that are still missing from its row, and by
//! numbered discs of its run that may pop away.

use crate::drop7::board::SIDE;

/// No number of missing discs: [`HALVES`] has a zero there.
const IMPOSSIBLE: u8 = 63;

/// `HALVES[k]` is 2^(1-k) for k >= 1: how near a disc is when k discs are missing. 0 for k = 0 and for
/// [`IMPOSSIBLE`]. A row lacks at most 42 discs.
pub(super) static HALVES: [f64; 64] = {
    let mut table = [0.0; 64];
    table[1] = 1.0;
    let mut k = 2;
    while k < IMPOSSIBLE as usize {
        table[k] = table[k - 1] * 0.5;
        k += 1;
    }
    table
};

/// The numbered discs of one run, by their readiness; sorted when somebody asks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Supporters {
    items: [f64; SIDE],
    len: usize,
    sorted: bool,
}

impl Supporters {
    /// No disc yet. What an earlier run left behind is out of reach.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.sorted = false;
    }

    #[inline(always)]
    pub(super) fn push(&mut self, item: f64) {
        if let Some(slot) = self.items.get_mut(self.len) {
            *slot = item;
            self.len += 1;
        }
    }

    /// The largest first.
    #[inline(always)]
    pub(super) fn descending(&mut self) -> &[f64] {
        let items = &mut self.items[..self.len];
        if !self.sorted {
            self.sorted = true;
            for end in 1..items.len() {
                let mut at = end;
                while at > 0 && items[at - 1] < items[at] {
                    items.swap(at - 1, at);
                    at -= 1;
                }
            }
        }
        items
    }

    /// How likely a run of `length` discs shrinks to `value` through its other numbered discs, when
    /// these items are the readiness of all of them and `own` that of the disc itself.
    #[inline(always)]
    pub(super) fn release(&mut self, length: u32, value: u32, own: f64) -> f64 {
        let surplus = length.wrapping_sub(value) as i32;
        if surplus <= 0 || surplus as usize >= self.len {
            return 0.0;
        }
        let surplus = surplus as usize;
        let items = self.descending();
        // The surplus-th largest of the others: skip `own` when it is among the larger ones.
        let item = items[surplus - 1];
        let weakest = if item > own { item } else { items[surplus] };
        weakest * HALVES[surplus]
    }
}

/// The row of one cell: who stands in it and how many discs each column lacks to reach it.
pub(super) struct Row {
    occupied: u32,
    /// Byte `n`: discs missing in the first n columns, 0..=42.
    missing: u64,
}

impl Row {
    /// Row `row` (0 = top), with the column heights one per byte.
    #[inline(always)]
    pub(super) const fn new(planes_occupied: u64, heights: u64, row: usize) -> Self {
        const ONES: u64 = 0x0001_0101_0101_0101;
        const HIGH: u64 = ONES << 7;
        let elevation = (SIDE - row) as u64 * ONES;
        let difference = (elevation | HIGH) - heights;
        let positive = ((difference & HIGH) >> 7) * 0xff;
        let missing = difference & !HIGH & positive;
        Self {
            occupied: ((planes_occupied >> (8 * row)) & 0x7f) as u32,
            missing: missing.wrapping_mul(ONES) << 8,
        }
    }

    /// First and last column of the run through `column`.
    #[inline(always)]
    pub(super) const fn run(&self, column: u32) -> (u32, u32) {
        let last = column + (self.occupied >> column).trailing_ones() - 1;
        let first = column + 1 - (self.occupied << (31 - column)).leading_ones();
        (first, last)
    }

    /// How near the disc `value` in `column` is to popping in this row: the fewest discs that make a
    /// run of exactly `value` around it. A run that is long enough already is not near at all.
    #[inline(always)]
    pub(super) fn readiness(&self, column: u32, value: u32) -> f64 {
        // One bit per first column of a window of `value` columns that holds `column` and touches no
        // disc: a run that fits into it ends inside it.
        let free = !self.occupied;
        let untouched = ((free << 1) | 1) & (((free & 0x7f) | 0x80) >> value);
        let around = ((2 << column) - 1) & !((1 << (column + 1).saturating_sub(value)) - 1);
        let windows = untouched & around & 0x7f;
        // A byte per window: the discs it lacks. Those that would leave the board are not asked.
        let lacks = (self.missing >> (8 * value)).wrapping_sub(self.missing);
        let lacks = (lacks | !EVERY_BIT_A_BYTE[windows as usize]).to_le_bytes();
        let fewest = lacks[..SIDE].iter().fold(u8::MAX, |least, &lack| least.min(lack));
        HALVES[usize::from(fewest & IMPOSSIBLE)]
    }
}

/// Bit `n` of the index becomes byte `n`.
static EVERY_BIT_A_BYTE: [u64; 1 << SIDE] = {
    let mut table = [0; 1 << SIDE];
    let mut bits = 0;
    while bits < table.len() {
        let mut n = 0;
        while n < SIDE {
            table[bits] |= ((bits as u64 >> n) & 1) * (0xff << (8 * n));
            n += 1;
        }
        bits += 1;
    }
    table
};
