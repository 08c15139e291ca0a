//! The last ply, many nodes at a time: their moves are played out first, then all leaves are read
//! together, then the sums are made in the order of the definition.
//!
//! A board is read once however many samples, discs and nodes end on it. A move that reveals nothing
//! is played once, one that does up to its first reveal once.

use super::expectimax::{Counts, Node};
use crate::drop7::chance::disc_of_event;
#[cfg(target_arch = "x86_64")]
use crate::drop7::gravity::Bmi2;
use crate::drop7::gravity::{Gravity, Shifts};
use crate::drop7::rules::{Start, finish_with, start_with};
use crate::drop7::{Move, PublicState};
use crate::instructions::{InstructionSet, per_instruction_set};
use crate::leaf::{BoardPart, Leaf};

/// Nodes of the last ply that wait for their leaves.
#[derive(Debug)]
pub(super) struct Frontier<L: Leaf> {
    nodes: Vec<LastNode>,
    columns: Vec<LastColumn>,
    samples: Vec<LastSample>,
    /// Leaves by number; those of `unread` are not known yet.
    parts: Vec<BoardPart>,
    unread: Vec<PublicState>,
    /// Number and slot of each unread leaf.
    unread_places: Vec<(u32, u32)>,
    read: Vec<BoardPart>,
    seen: Vec<Seen>,
    /// Number of the current batch.
    batch: u32,
    scratch: L::Scratch,
}

/// Its columns end where those of the next node begin.
#[derive(Debug, Clone, Copy)]
struct LastNode {
    first_column: u32,
    /// What its next discs are drawn from.
    discs: Discs,
}

/// The event of the next discs of a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Discs {
    pub(super) event: u32,
    pub(super) strata: u32,
}

/// One move; its samples end where those of the next column begin. A single one counts for all.
#[derive(Debug, Clone, Copy)]
struct LastColumn {
    first_sample: u32,
}

#[derive(Debug, Clone, Copy)]
struct LastSample {
    delta: f64,
    /// Number of the leaf, or [`LOST`].
    leaf: u32,
}

/// The move ended the game.
const LOST: u32 = u32::MAX;

/// A board that was looked at, in this batch or an earlier one. A leaf is a function of the position,
/// so what was read stays true from one decision to the next.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Seen {
    /// The planes, the countdown in the free byte of the last.
    words: [u64; 4],
    part: BoardPart,
    /// The batch in which `leaf` is its number; 0 when there is none.
    batch: u32,
    leaf: u32,
}

/// Slots of [`Frontier::seen`], a cache line each: a decision of three plies reads some ten thousand
/// boards, and the level-two cache holds these.
const SEEN: usize = 1 << 12;

impl<L: Leaf> Frontier<L> {
    pub(super) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            columns: Vec::new(),
            samples: Vec::new(),
            parts: Vec::new(),
            unread: Vec::new(),
            unread_places: Vec::new(),
            read: Vec::new(),
            seen: vec![Seen::default(); SEEN],
            batch: 0,
            scratch: L::Scratch::default(),
        }
    }

    /// Begins another batch.
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.columns.clear();
        self.samples.clear();
        self.parts.clear();
        debug_assert!(self.unread.is_empty(), "what is asked for is read");
        self.batch = self.batch.checked_add(1).unwrap_or_else(|| {
            self.seen.fill(Seen::default());
            1
        });
    }

    /// Plays out those of `columns` that are legal at a node of one ply. Returns the node's number
    /// in this batch, and what its moves count.
    pub(super) fn expand(&mut self, node: &Node<'_>, columns: &[usize]) -> (u32, Counts) {
        let number = self.nodes.len() as u32;
        let first_column = self.columns.len() as u32;
        self.nodes.push(LastNode { first_column, discs: node.discs() });
        (number, expand_on(InstructionSet::active(), self, node, columns))
    }

    /// Notes one sample; returns whether the game goes on.
    #[inline(always)]
    fn note(&mut self, played: &Move) -> bool {
        let delta = played.delta as f64;
        let goes_on = !played.after.is_over();
        let leaf = if goes_on { self.number(&played.after) } else { LOST };
        self.samples.push(LastSample { delta, leaf });
        goes_on
    }

    /// The number of the leaf of an unfinished position.
    #[inline(always)]
    fn number(&mut self, after: &PublicState) -> u32 {
        let (state, _) = after.canonical();
        let mut words = *state.board().planes();
        words[3] |= u64::from(state.moves_remaining()) << 56;
        let [w0, w1, w2, w3] = words;
        let hash = (w0 ^ w1.rotate_left(17)).wrapping_mul(0xff51_afd7_ed55_8ccd)
            ^ (w2.rotate_left(29) ^ w3).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = (hash >> (64 - SEEN.ilog2())) as usize;
        let seen = &mut self.seen[slot];
        // Word by word: the four have just been written, and reading them back as one vector waits
        // until they have reached the cache.
        let [s0, s1, s2, s3] = seen.words;
        let known = (s0 ^ w0) | (s1 ^ w1) | (s2 ^ w2) | (s3 ^ w3) == 0;
        if !known || seen.batch != self.batch {
            // A position that is not over has a countdown, so no words are all zero: a fresh slot
            // is nobody's.
            let leaf = self.parts.len() as u32;
            if !known {
                *seen = Seen { words, ..Seen::default() };
                self.unread.push(state);
                self.unread_places.push((leaf, slot as u32));
            }
            (seen.batch, seen.leaf) = (self.batch, leaf);
            self.parts.push(seen.part);
        }
        seen.leaf
    }

    /// Reads all leaves that were noted since the last call.
    pub(super) fn read(&mut self, leaf: &L) {
        self.read.clear();
        leaf.board_parts(&self.unread, &mut self.scratch, &mut self.read);
        for (&(leaf, slot), &part) in self.unread_places.iter().zip(&self.read) {
            self.parts[leaf as usize] = part;
            let seen = &mut self.seen[slot as usize];
            // Another board of the batch may have taken the slot since.
            if seen.batch == self.batch && seen.leaf == leaf {
                seen.part = part;
            }
        }
        self.unread.clear();
        self.unread_places.clear();
    }

    /// Gives the value of every column that was played out at node `number` to `take`: the mean over
    /// its samples. All leaves must have been read.
    #[inline]
    pub(super) fn values(&self, leaf: &L, terminal: f64, number: u32, mut take: impl FnMut(f64)) {
        let number = number as usize;
        let LastNode { first_column, discs } = self.nodes[number];
        let end =
            self.nodes.get(number + 1).map_or(self.columns.len(), |n| n.first_column as usize);
        for column in first_column as usize..end {
            let first = self.columns[column].first_sample as usize;
            let next = self.columns.get(column + 1);
            let end = next.map_or(self.samples.len(), |column| column.first_sample as usize);
            let samples = &self.samples[first..end];
            let value = |sample: &LastSample, at: u32| {
                sample.delta
                    + match self.parts.get(sample.leaf as usize) {
                        None => terminal,
                        Some(&part) if L::READS_NEXT_DISC => leaf.finish(part, discs.disc(at)),
                        Some(&part) => leaf.finish(part, 1),
                    }
            };
            let mut sum = 0.0;
            match samples {
                [one] if L::READS_NEXT_DISC => {
                    (0..discs.strata).for_each(|at| sum += value(one, at));
                }
                [one] => {
                    let value = value(one, 0);
                    (0..discs.strata).for_each(|_| sum += value);
                }
                _ => (0..).zip(samples).for_each(|(at, sample)| sum += value(sample, at)),
            }
            take(sum / f64::from(discs.strata));
        }
    }
}

impl Discs {
    /// The next disc of sample `at`.
    #[inline]
    pub(super) fn disc(self, at: u32) -> u8 {
        disc_of_event(self.event, at, self.strata)
    }
}

per_instruction_set! {
    /// [`Frontier::expand`] with the instructions of `set`.
    fn expand_on[L: Leaf](
        frontier: &mut Frontier<L>,
        node: &Node<'_>,
        columns: &[usize],
    ) -> Counts = expand_with, Shifts, Bmi2::here();
}

#[inline(always)]
fn expand_with<L: Leaf>(
    gravity: impl Gravity,
    frontier: &mut Frontier<L>,
    node: &Node<'_>,
    columns: &[usize],
) -> Counts {
    let mut counts = Counts::default();
    let mut reveals = node.reveals();
    for &column in columns {
        let Some(start) = start_with(gravity, node.state, column) else { continue };
        let first_sample = frontier.samples.len() as u32;
        frontier.columns.push(LastColumn { first_sample });
        counts.moves += u64::from(node.strata);
        match start {
            Start::Settled(played) => {
                counts.leaves += u64::from(node.strata) * u64::from(frontier.note(&played));
            }
            Start::Pending(pending) => {
                for sample in 0..node.strata {
                    let played = finish_with(gravity, &pending, &mut reveals.sample(sample));
                    counts.leaves += u64::from(frontier.note(&played));
                }
            }
        }
    }
    // Every leaf is a node of its own.
    counts.nodes = counts.leaves;
    counts
}
