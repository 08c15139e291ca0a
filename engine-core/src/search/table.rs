//! What a search remembers: node values for the length of one decision, and leaf values.
//!
//! Both are exact: a hit needs the whole key, so neither can change a value. The node table changes
//! how much logical work a decision counts, which is why its size belongs to an arm's definition.

use crate::drop7::PublicState;
use crate::leaf::BoardPart;

/// A board with the countdown, packed; the fourth word has room above bit 40.
fn board_words(state: &PublicState) -> [u64; 4] {
    let [c0, c1, c2, c3, c4, c5, c6] = state.board().columns().map(u64::from);
    [
        c0 | (c1 << 32),
        c2 | (c3 << 32),
        c4 | (c5 << 32),
        c6 | (u64::from(state.moves_remaining()) << 40),
    ]
}

/// The exact identity of a node: canonical board, disc, countdown and remaining depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    words: [u64; 4],
}

impl Key {
    /// `state` must be canonical. Depths above 65535 are not told apart; no search gets there.
    pub(super) fn new(state: &PublicState, depth: u32) -> Self {
        let mut words = board_words(state);
        words[3] |= (u64::from(state.next_disc()) << 32) | (u64::from(depth) << 48);
        Self { words }
    }

    const fn depth(&self) -> u64 {
        self.words[3] >> 48
    }

    const fn hash(&self) -> u64 {
        let [w0, w1, w2, w3] = self.words;
        let mut hash = w0;
        hash = mix64(hash ^ w1.wrapping_add(0x9e37_79b9_7f4a_7c15));
        hash = mix64(hash ^ w2.wrapping_add(0xbf58_476d_1ce4_e5b9));
        mix64(hash ^ w3.wrapping_add(0x94d0_49bb_1331_11eb))
    }
}

const fn mix64(mut v: u64) -> u64 {
    v ^= v >> 33;
    v = v.wrapping_mul(0xff51_afd7_ed55_8ccd);
    v ^= v >> 33;
    v = v.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    v ^ (v >> 33)
}

/// Direct-mapped values of nodes. Emptied in constant time between decisions.
#[derive(Debug)]
pub(super) struct NodeTable {
    /// Key words, bits of the value, epoch. Plain words, so that a fresh table is untouched memory.
    slots: Vec<[u64; 6]>,
    epoch: u64,
}

impl NodeTable {
    /// A table of the smallest power of two of slots that holds `capacity` (at least one).
    pub(super) fn new(capacity: usize) -> Self {
        let slots = capacity.max(1).checked_next_power_of_two().unwrap_or(capacity);
        Self { slots: vec![[0; 6]; slots], epoch: 0 }
    }

    /// Forgets every value.
    pub(super) const fn clear(&mut self) {
        self.epoch += 1;
    }

    fn index(&self, key: &Key) -> usize {
        (key.hash() & (self.slots.len() as u64 - 1)) as usize
    }

    pub(super) fn get(&self, key: &Key) -> Option<f64> {
        let [w0, w1, w2, w3, value, epoch] = self.slots[self.index(key)];
        (epoch == self.epoch && [w0, w1, w2, w3] == key.words).then(|| f64::from_bits(value))
    }

    /// Stores a value, unless the slot holds one of this decision from a greater depth.
    pub(super) fn put(&mut self, key: &Key, value: f64) {
        let index = self.index(key);
        let slot = &mut self.slots[index];
        if slot[5] != self.epoch || key.depth() >= slot[3] >> 48 {
            let [w0, w1, w2, w3] = key.words;
            *slot = [w0, w1, w2, w3, value.to_bits(), self.epoch];
        }
    }
}

/// Leaf values by board and countdown. A leaf is a function of the position, so these stay true
/// from one decision to the next; nothing is counted here.
#[derive(Debug)]
pub(super) struct LeafMemo {
    slots: Vec<[u64; 6]>,
}

impl LeafMemo {
    const SLOTS: usize = 1 << 13;

    pub(super) fn new() -> Self {
        Self { slots: vec![[0; 6]; Self::SLOTS] }
    }

    /// The board part of `state`, made by `make` when it is not there. `state` must not be over:
    /// a countdown of zero marks an empty slot.
    #[inline]
    pub(super) fn get_or(
        &mut self,
        state: &PublicState,
        make: impl FnOnce(&PublicState) -> BoardPart,
    ) -> BoardPart {
        let words = board_words(state);
        let [w0, w1, w2, w3] = words;
        let hash = (w0 ^ w1.rotate_left(17)).wrapping_mul(0xff51_afd7_ed55_8ccd)
            ^ (w2.rotate_left(29) ^ w3).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = &mut self.slots[(hash >> (64 - Self::SLOTS.ilog2())) as usize];
        let [s0, s1, s2, s3, value, by_disc] = *slot;
        if [s0, s1, s2, s3] == words {
            return BoardPart { value: f64::from_bits(value), by_disc: by_disc as u32 };
        }
        let part = make(state);
        *slot = [w0, w1, w2, w3, part.value.to_bits(), u64::from(part.by_disc)];
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drop7::Board;

    fn key(disc: u8, depth: u32) -> Key {
        Key::new(&PublicState::new(Board::INITIAL, disc, 5).unwrap(), depth)
    }

    #[test]
    fn a_hit_needs_the_whole_key_and_the_same_decision() {
        let mut table = NodeTable::new(4);
        table.clear();
        table.put(&key(1, 2), 7.0);
        assert_eq!(table.get(&key(1, 2)), Some(7.0));
        assert_eq!(table.get(&key(2, 2)), None);
        assert_eq!(table.get(&key(1, 3)), None);
        table.clear();
        assert_eq!(table.get(&key(1, 2)), None);
    }

    #[test]
    fn a_shallower_value_does_not_replace_a_deeper_one() {
        let mut table = NodeTable::new(0);
        table.clear();
        table.put(&key(1, 2), 7.0);
        table.put(&key(2, 1), 8.0);
        assert_eq!(table.get(&key(1, 2)), Some(7.0));
        assert_eq!(table.get(&key(2, 1)), None);
        table.put(&key(3, 2), 9.0);
        assert_eq!(table.get(&key(3, 2)), Some(9.0), "equal depth replaces");
        table.clear();
        table.put(&key(2, 1), 8.0);
        assert_eq!(table.get(&key(2, 1)), Some(8.0), "a stale slot is free");
    }

    #[test]
    fn the_size_is_the_next_power_of_two() {
        for (capacity, slots) in [(0, 1), (1, 1), (3, 4), (65_536, 65_536), (65_537, 131_072)] {
            assert_eq!(NodeTable::new(capacity).slots.len(), slots);
        }
    }
}
