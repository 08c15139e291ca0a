//! What work asks of memory and of leaves, counted and not timed.

use std::cell::{Cell, RefCell};

use crate::drop7::PublicState;
use crate::leaf::{BoardPart, FairLeaf, Leaf};
use crate::ntuple::direct::DirectPolicy;
use crate::ntuple::leaf::TableLeaf;
use crate::ntuple::{Features, FrozenTables, Layout, Weights};
use crate::screen::SearchLeaf;
use crate::search::{SearchConfig, Searcher};

/// Entries of a cache line of weights.
const LINE: u64 = 16;

/// What training asks of memory for its moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Moves.
    pub moves: u64,
    /// Entries looked up.
    pub look_ups: u64,
    /// Different cache lines of weights, per move, summed over the moves.
    pub lines: u64,
    /// Lines, of weights and of history, that the first cache did not hold but the second did.
    pub near: u64,
    /// Lines of weights that neither held.
    pub far_weights: u64,
    /// Lines of history that neither held.
    pub far_history: u64,
}

/// What playing and learning on `states` asks of memory: the states of games in their order, caches of
/// so many bytes, smaller first. The first half of the states only warms the caches up.
pub fn of_moves(tables: &FrozenTables, states: &[PublicState], caches: [u64; 2]) -> Traffic {
    let asked = RefCell::default();
    let mut policy = DirectPolicy::new(Asking { tables, asked: &asked });
    let mut caches = caches.map(Cache::new);
    let mut learned = Features::new();
    let mut traffic = Traffic::default();
    for (at, state) in states.iter().enumerate() {
        if at == states.len() / 2 {
            traffic = Traffic::default();
        }
        policy.decide(state);
        let mut asked = asked.borrow_mut();
        traffic.moves += 1;
        traffic.look_ups += asked.len() as u64;
        asked.iter_mut().for_each(|index| *index /= LINE);
        asked.sort_unstable();
        asked.dedup();
        traffic.lines += asked.len() as u64;
        for line in asked.drain(..) {
            match Cache::ask(&mut caches, line) {
                Found::First => {}
                Found::Second => traffic.near += 1,
                Found::Nowhere => traffic.far_weights += 1,
            }
        }
        // E and A of an entry are eight bytes of another line; its weight was read for the decision.
        let canonical = state.canonical().0;
        tables.layout().features(canonical.board(), canonical.moves_remaining(), &mut learned);
        for index in learned.as_slice() {
            match Cache::ask(&mut caches, HISTORY | (index / (LINE / 2))) {
                Found::First => {}
                Found::Second => traffic.near += 1,
                Found::Nowhere => traffic.far_history += 1,
            }
        }
    }
    traffic
}

/// Tells lines of history from lines of weights.
const HISTORY: u64 = 1 << 63;
/// Lines of a set of a cache.
const WAYS: usize = 16;

/// Where a line was.
enum Found {
    First,
    Second,
    Nowhere,
}

/// A cache that forgets what was not asked for the longest, in sets of [`WAYS`] lines.
struct Cache {
    /// The line asked for last is the first of its set.
    sets: Vec<[u64; WAYS]>,
}

impl Cache {
    fn new(bytes: u64) -> Self {
        Self { sets: vec![[u64::MAX; WAYS]; (bytes as usize / 64 / WAYS).max(1)] }
    }

    /// Whether the line was there. It is afterwards.
    fn holds(&mut self, line: u64) -> bool {
        let hash = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let number = (hash * self.sets.len() as u64) >> 32;
        let set = &mut self.sets[number as usize];
        let place = set.iter().position(|&known| known == line);
        set[..=place.unwrap_or(WAYS - 1)].rotate_right(1);
        set[0] = line;
        place.is_some()
    }

    fn ask([first, second]: &mut [Self; 2], line: u64) -> Found {
        if first.holds(line) {
            Found::First
        } else if second.holds(line) {
            Found::Second
        } else {
            Found::Nowhere
        }
    }
}

/// Tables that note what they are asked for, entry by entry.
struct Asking<'a> {
    tables: &'a FrozenTables,
    asked: &'a RefCell<Vec<u64>>,
}

impl Weights for Asking<'_> {
    fn layout(&self) -> &Layout {
        self.tables.layout()
    }

    fn weight(&self, index: u64) -> f32 {
        self.asked.borrow_mut().push(index);
        self.tables.weight(index)
    }
}

/// Positions that a search really evaluates for decisions on `states`: fewer than the leaves that its
/// definition counts.
pub fn leaves_read(config: SearchConfig, leaf: &SearchLeaf, states: &[PublicState]) -> u64 {
    match leaf {
        SearchLeaf::Fair => count(config, FairLeaf, states),
        SearchLeaf::Tables(tables) => count(config, TableLeaf::new(&**tables), states),
    }
}

fn count<L: Leaf>(config: SearchConfig, leaf: L, states: &[PublicState]) -> u64 {
    let counting = Counting { leaf, read: Cell::new(0) };
    let mut searcher = Searcher::new(config, &counting);
    for state in states {
        searcher.decide(state);
    }
    counting.read.get()
}

#[derive(Debug)]
struct Counting<L> {
    leaf: L,
    read: Cell<u64>,
}

impl<L: Leaf> Leaf for Counting<L> {
    const READS_NEXT_DISC: bool = L::READS_NEXT_DISC;
    type Scratch = L::Scratch;

    fn value(&self, state: &PublicState) -> f64 {
        self.read.set(self.read.get() + 1);
        self.leaf.value(state)
    }

    fn board_parts(
        &self,
        states: &[PublicState],
        scratch: &mut Self::Scratch,
        parts: &mut Vec<BoardPart>,
    ) {
        self.read.set(self.read.get() + states.len() as u64);
        self.leaf.board_parts(states, scratch, parts);
    }

    fn finish(&self, part: BoardPart, next_disc: u8) -> f64 {
        self.leaf.finish(part, next_disc)
    }
}

#[cfg(test)]
mod tests {
    use super::super::positions;
    use super::*;

    #[test]
    fn a_search_reads_fewer_leaves_than_it_counts_and_a_decision_fewer_lines_than_entries() {
        let roots = &positions::roots().unwrap()[..2];
        let config = SearchConfig::bounded(2, 7).unwrap();
        let mut searcher = Searcher::new(config, FairLeaf);
        let counted: u64 = roots.iter().map(|root| searcher.decide(root).leaf_calls).sum();
        let read = leaves_read(config, &SearchLeaf::Fair, roots);
        assert!((1..counted).contains(&read), "{read} of {counted}");

        let layout: Layout = "rows,cols,phase=none".parse().unwrap();
        let tables = FrozenTables::fresh(layout, 20.0).unwrap();
        let traffic = of_moves(&tables, roots, [1 << 12, 1 << 16]);
        assert_eq!(traffic.moves, 1);
        assert!(traffic.look_ups.is_multiple_of(14), "{traffic:?}");
        assert!((1..traffic.look_ups).contains(&traffic.lines), "{traffic:?}");
        assert!(traffic.near + traffic.far_weights <= traffic.lines + 14, "{traffic:?}");
    }

    #[test]
    fn a_cache_forgets_what_was_not_asked_for_the_longest() {
        let mut cache = Cache::new(64 * WAYS as u64);
        let lines = 0..WAYS as u64;
        assert!(!lines.clone().any(|line| cache.holds(line)));
        assert!(lines.clone().all(|line| cache.holds(line)));
        assert!(cache.holds(0) && !cache.holds(99));
        assert!(cache.holds(0) && !cache.holds(1));
    }
}
