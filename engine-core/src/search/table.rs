//! What a search remembers of nodes: their values, for the length of one decision.
//!
//! It is exact: a hit needs the whole key, so it cannot change a value. It changes how much logical
//! work a decision counts, which is why its size belongs to an arm's definition.

use crate::drop7::PublicState;

/// The exact identity of a node: canonical board, disc, countdown and remaining depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    words: [u64; 4],
    hash: u64,
}

/// A [`Key`] that lacks the disc: nodes of one board share the work of making it.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyOfBoard {
    words: [u64; 4],
    hash: u64,
}

impl KeyOfBoard {
    /// `state` must be canonical. Depths above 65535 are not told apart; no search gets there.
    pub(super) fn new(state: &PublicState, depth: u32) -> Self {
        let [c0, c1, c2, c3, c4, c5, c6] = state.board().columns().map(u64::from);
        let rest = (u64::from(state.moves_remaining()) << 40) | (u64::from(depth) << 48);
        let words = [c0 | (c1 << 32), c2 | (c3 << 32), c4 | (c5 << 32), c6 | rest];
        let mut hash = words[0];
        hash = mix64(hash ^ words[1].wrapping_add(0x9e37_79b9_7f4a_7c15));
        hash = mix64(hash ^ words[2].wrapping_add(0xbf58_476d_1ce4_e5b9));
        Self { words, hash }
    }

    /// The key of the board's node with this disc.
    #[inline]
    pub(super) const fn with_disc(&self, next_disc: u8) -> Key {
        let mut words = self.words;
        words[3] |= (next_disc as u64) << 32;
        let hash = mix64(self.hash ^ words[3].wrapping_add(0x94d0_49bb_1331_11eb));
        Key { words, hash }
    }
}

impl Key {
    const fn depth(&self) -> u64 {
        self.words[3] >> 48
    }
}

const fn mix64(mut v: u64) -> u64 {
    v ^= v >> 33;
    v = v.wrapping_mul(0xff51_afd7_ed55_8ccd);
    v ^= v >> 33;
    v = v.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    v ^ (v >> 33)
}

/// What is known of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Known {
    /// Its value.
    Value(f64),
    /// It is among the nodes whose leaves have not been read yet, under this number.
    Awaited(u32),
}

/// Direct-mapped values of nodes. Emptied in constant time between decisions.
#[derive(Debug)]
pub(super) struct NodeTable {
    /// Key words, bits of the value or the number, tag. Plain words, so that a fresh table is
    /// untouched memory. The tag is twice the decision's number, plus one for [`Known::Awaited`].
    slots: Vec<[u64; 6]>,
    decision: u64,
}

impl NodeTable {
    /// A table of the smallest power of two of slots that holds `capacity` (at least one).
    pub(super) fn new(capacity: usize) -> Self {
        let slots = capacity.max(1).checked_next_power_of_two().unwrap_or(capacity);
        Self { slots: vec![[0; 6]; slots], decision: 0 }
    }

    /// Forgets every value.
    pub(super) const fn clear(&mut self) {
        self.decision += 1;
    }

    fn index(&self, key: &Key) -> usize {
        (key.hash & (self.slots.len() as u64 - 1)) as usize
    }

    pub(super) fn get(&self, key: &Key) -> Option<Known> {
        let [w0, w1, w2, w3, what, tag] = self.slots[self.index(key)];
        // Word by word: a vector of words just written waits until they have reached the cache.
        let [k0, k1, k2, k3] = key.words;
        let same = (w0 ^ k0) | (w1 ^ k1) | (w2 ^ k2) | (w3 ^ k3) == 0;
        (tag >> 1 == self.decision && same).then(|| {
            if tag & 1 == 0 {
                Known::Value(f64::from_bits(what))
            } else {
                Known::Awaited(what as u32)
            }
        })
    }

    /// Stores what is known, unless the slot holds something of this decision from a greater depth.
    pub(super) fn put(&mut self, key: &Key, known: Known) {
        let tag = 2 * self.decision;
        let index = self.index(key);
        let slot = &mut self.slots[index];
        if slot[5] >> 1 != self.decision || key.depth() >= slot[3] >> 48 {
            let [w0, w1, w2, w3] = key.words;
            *slot = match known {
                Known::Value(value) => [w0, w1, w2, w3, value.to_bits(), tag],
                Known::Awaited(number) => [w0, w1, w2, w3, u64::from(number), tag + 1],
            };
        }
    }

    /// Replaces the number of an awaited node by its value, where it is still remembered.
    pub(super) fn arrived(&mut self, key: &Key, number: u32, value: f64) {
        if self.get(key) == Some(Known::Awaited(number)) {
            self.put(key, Known::Value(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drop7::Board;

    fn key(disc: u8, depth: u32) -> Key {
        let state = PublicState::new(Board::INITIAL, disc, 5).unwrap();
        KeyOfBoard::new(&state, depth).with_disc(disc)
    }

    #[test]
    fn a_hit_needs_the_whole_key_and_the_same_decision() {
        let mut table = NodeTable::new(4);
        table.clear();
        table.put(&key(1, 2), Known::Value(7.0));
        assert_eq!(table.get(&key(1, 2)), Some(Known::Value(7.0)));
        assert_eq!(table.get(&key(2, 2)), None);
        assert_eq!(table.get(&key(1, 3)), None);
        table.clear();
        assert_eq!(table.get(&key(1, 2)), None);
    }

    #[test]
    fn a_shallower_value_does_not_replace_a_deeper_one() {
        let mut table = NodeTable::new(0);
        table.clear();
        table.put(&key(1, 2), Known::Value(7.0));
        table.put(&key(2, 1), Known::Value(8.0));
        assert_eq!(table.get(&key(1, 2)), Some(Known::Value(7.0)));
        assert_eq!(table.get(&key(2, 1)), None);
        table.put(&key(3, 2), Known::Awaited(9));
        assert_eq!(table.get(&key(3, 2)), Some(Known::Awaited(9)), "equal depth replaces");
        table.clear();
        table.put(&key(2, 1), Known::Value(8.0));
        assert_eq!(table.get(&key(2, 1)), Some(Known::Value(8.0)), "a stale slot is free");
    }

    #[test]
    fn an_awaited_value_arrives_where_it_is_still_awaited() {
        let mut table = NodeTable::new(0);
        table.clear();
        table.put(&key(1, 1), Known::Awaited(3));
        table.arrived(&key(1, 1), 3, 5.0);
        assert_eq!(table.get(&key(1, 1)), Some(Known::Value(5.0)));
        table.put(&key(2, 1), Known::Awaited(4));
        table.arrived(&key(1, 1), 3, 6.0);
        table.arrived(&key(2, 1), 5, 6.0);
        assert_eq!(table.get(&key(2, 1)), Some(Known::Awaited(4)), "another node or number");
    }

    #[test]
    fn the_size_is_the_next_power_of_two() {
        for (capacity, slots) in [(0, 1), (1, 1), (3, 4), (65_536, 65_536), (65_537, 131_072)] {
            assert_eq!(NodeTable::new(capacity).slots.len(), slots);
        }
    }
}
