//! Deepening, the root, and the walk for passes that no work limit can stop.
//!
//! That walk leaves out what cannot change a bit: a move that reveals nothing is played once for
//! all samples, and a leaf reads each board once. It adds the same numbers in the same order.

use super::stepwise::LimitReached;
use super::table::{Key, LeafMemo, NodeTable};
use super::{Decision, SearchConfig, pass_bound};
use crate::drop7::chance::{DISC, StratifiedReveals, disc_of_event, event_seed, scenario_seed};
use crate::drop7::{CENTER_FIRST, Move, PublicState, resolve};
use crate::leaf::{BoardPart, Leaf};

/// A search with its memory. One per worker; decisions do not influence each other.
#[derive(Debug)]
pub struct Searcher<L> {
    pub(super) config: SearchConfig,
    pub(super) leaf: L,
    pub(super) counts: Counts,
    table: NodeTable,
    /// Smallest remaining depth that uses the table.
    table_from: u32,
    memo: LeafMemo,
}

/// Logical counts of the decision in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) nodes: u64,
    pub(super) leaves: u64,
    pub(super) moves: u64,
    pub(super) hits: u64,
}

impl Counts {
    pub(super) const fn work(&self) -> u64 {
        self.moves + self.leaves
    }
}

/// A max node whose moves are being sampled.
pub(super) struct Node<'a> {
    /// Canonical.
    pub(super) state: &'a PublicState,
    /// The scenario seed: all columns see the same samples.
    seed: u32,
    /// The event of the next discs.
    next: u32,
    strata: u32,
}

impl Node<'_> {
    /// The move under sample `sample`.
    #[inline]
    pub(super) fn play(&self, column: usize, sample: u32) -> Option<Move> {
        resolve(self.state, column, &mut StratifiedReveals::new(self.seed, sample, self.strata))
    }

    /// The next disc of sample `sample`.
    #[inline]
    pub(super) fn next_disc(&self, sample: u32) -> u8 {
        disc_of_event(self.next, sample, self.strata)
    }
}

/// The value of one root column at a fixed depth, and what it took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnValue {
    /// The column of the position as it was given.
    pub column: usize,
    /// The column on the canonical board, where ties are decided.
    pub canonical_column: usize,
    /// Mean over the samples, in points.
    pub value: f64,
    /// Simulated moves plus leaf evaluations.
    pub work: u64,
    /// Nodes entered below the root.
    pub nodes: u64,
    /// Leaf evaluations.
    pub leaf_calls: u64,
    /// Simulated moves.
    pub move_calls: u64,
}

/// One simulated move. When it drew nothing, it is the same for all samples.
struct Outcome {
    /// The canonical position after it, next disc not yet set; `None` when it ended the game.
    child: Option<PublicState>,
    /// At the last ply: the leaf of `child` as far as it does not depend on the next disc.
    part: BoardPart,
    delta: f64,
    drew: bool,
}

impl<L: Leaf> Searcher<L> {
    /// A search over `leaf`. A configuration that [`SearchConfig::validate`] refuses is clamped
    /// into its ranges.
    pub fn new(config: SearchConfig, leaf: L) -> Self {
        let config = SearchConfig {
            depth: config.depth.clamp(1, 8),
            strata: config.strata.clamp(1, 64),
            table_slots: config.table_slots.min(1 << 28),
            ..config
        };
        let has_table = config.table_from_depth < config.depth;
        Self {
            config,
            leaf,
            counts: Counts::default(),
            table: NodeTable::new(if has_table { config.table_slots } else { 1 }),
            table_from: if has_table { config.table_from_depth } else { u32::MAX },
            memo: LeafMemo::new(),
        }
    }

    /// The configuration in use.
    pub const fn config(&self) -> &SearchConfig {
        &self.config
    }

    /// Chooses a column: passes of depth 1, 2, ... up to the configured depth, the action of the
    /// last completed one. Ties go to the earlier of 3, 2, 4, 1, 5, 0, 6 on the canonical board.
    pub fn decide(&mut self, state: &PublicState) -> Decision {
        self.counts = Counts::default();
        self.table.clear();
        let (root, mirrored) = state.canonical();
        let mut action =
            CENTER_FIRST.into_iter().find(|&c| !root.is_over() && root.board().is_legal(c));
        let mut completed_depth = 0;
        if action.is_some() {
            for depth in 1..=self.config.depth {
                let Ok(best) = self.pass(&root, depth) else { break };
                if best.is_some() {
                    action = best;
                    completed_depth = depth;
                }
            }
        }
        Decision {
            action: action.map(|column| if mirrored { 6 - column } else { column }),
            completed_depth,
            work: self.counts.work(),
            nodes: self.counts.nodes,
            leaf_calls: self.counts.leaves,
            move_calls: self.counts.moves,
            cache_hits: self.counts.hits,
        }
    }

    /// The value of every legal column at exactly `depth` plies (at least 1), without table,
    /// deepening or limit, in search order of the canonical board. Empty when the game is over.
    pub fn column_values(&mut self, state: &PublicState, depth: u32) -> Vec<ColumnValue> {
        let (root, mirrored) = state.canonical();
        if root.is_over() {
            return Vec::new();
        }
        let table_from = std::mem::replace(&mut self.table_from, u32::MAX);
        let depth = depth.clamp(1, 8);
        let node = self.node(&root, depth);
        let legal = CENTER_FIRST.into_iter().filter(|&column| root.board().is_legal(column));
        let values = legal
            .map(|canonical_column| {
                self.counts = Counts::default();
                let value = self.action_value(&node, canonical_column, depth);
                ColumnValue {
                    column: if mirrored { 6 - canonical_column } else { canonical_column },
                    canonical_column,
                    value,
                    work: self.counts.work(),
                    nodes: self.counts.nodes,
                    leaf_calls: self.counts.leaves,
                    move_calls: self.counts.moves,
                }
            })
            .collect();
        self.table_from = table_from;
        values
    }

    /// One root pass: the best column of the canonical `root` at `depth`.
    fn pass(&mut self, root: &PublicState, depth: u32) -> Result<Option<usize>, LimitReached> {
        // When the most this pass can take fits below the limit, no step of it needs to look.
        let unlimited = pass_bound(depth, self.config.strata)
            .and_then(|work| work.checked_add(self.counts.work()))
            .is_some_and(|work| work <= self.config.work_limit);
        let node = self.node(root, depth);
        let mut best = f64::NEG_INFINITY;
        let mut action = None;
        for column in CENTER_FIRST {
            if !root.board().is_legal(column) {
                continue;
            }
            let value = if unlimited {
                self.action_value(&node, column, depth)
            } else {
                self.limited_action_value(&node, column, depth)?
            };
            if value > best {
                best = value;
                action = Some(column);
            }
        }
        Ok(action)
    }

    /// The node of the canonical `state` at remaining depth `depth`.
    pub(super) fn node<'a>(&self, state: &'a PublicState, depth: u32) -> Node<'a> {
        let (board, disc) = (state.board(), state.next_disc());
        let policy = self.config.policy_seed;
        let seed = scenario_seed(board, disc, state.moves_remaining(), policy, depth);
        Node { state, seed, next: event_seed(seed, DISC, 0), strata: self.config.strata }
    }

    /// The key under which a node is remembered; `None` when this depth is not.
    pub(super) fn key(&self, state: &PublicState, depth: u32) -> Option<Key> {
        (depth >= self.table_from).then(|| Key::new(state, depth))
    }

    /// The remembered value of a node. A hit is counted.
    pub(super) fn recall(&mut self, key: Option<&Key>) -> Option<f64> {
        let value = self.table.get(key?)?;
        self.counts.hits += 1;
        Some(value)
    }

    /// Remembers the best column value of a node; a node without one is as good as lost.
    pub(super) fn keep(&mut self, key: Option<&Key>, best: f64) -> f64 {
        let value = if best.is_finite() { best } else { self.config.terminal };
        if let Some(key) = key {
            self.table.put(key, value);
        }
        value
    }

    /// The value of the canonical, unfinished `state` with `depth` >= 1 plies to go.
    fn node_value(&mut self, state: &PublicState, depth: u32) -> f64 {
        self.counts.nodes += 1;
        let key = self.key(state, depth);
        if let Some(value) = self.recall(key.as_ref()) {
            return value;
        }
        let node = self.node(state, depth);
        let mut best = f64::NEG_INFINITY;
        for column in CENTER_FIRST {
            if state.board().is_legal(column) {
                let value = self.action_value(&node, column, depth);
                if value > best {
                    best = value;
                }
            }
        }
        self.keep(key.as_ref(), best)
    }

    /// The mean over all samples of dropping into `column`, which is legal.
    fn action_value(&mut self, node: &Node<'_>, column: usize, depth: u32) -> f64 {
        let samples = self.config.strata;
        let mut outcome = self.outcome(node, column, 0, depth);
        let mut sum = 0.0;
        for sample in 0..samples {
            if outcome.drew && sample > 0 {
                outcome = self.outcome(node, column, sample, depth);
            }
            let value = match outcome.child {
                None => self.config.terminal,
                Some(child) => {
                    let child = child.with_next_disc(node.next_disc(sample));
                    if depth == 1 {
                        self.counts.nodes += 1;
                        self.counts.leaves += 1;
                        self.leaf.finish(outcome.part, &child)
                    } else {
                        self.node_value(&child, depth - 1)
                    }
                }
            };
            sum += outcome.delta + value;
        }
        self.counts.moves += u64::from(samples);
        sum / f64::from(samples)
    }

    /// What the move does under sample `sample`.
    #[inline]
    fn outcome(&mut self, node: &Node<'_>, column: usize, sample: u32, depth: u32) -> Outcome {
        let mut outcome =
            Outcome { child: None, part: BoardPart::default(), delta: 0.0, drew: false };
        let Some(played) = node.play(column, sample) else { return outcome };
        outcome.delta = played.delta as f64;
        outcome.drew = played.revealed > 0;
        if !played.after.is_over() {
            let (child, _) = played.after.canonical();
            outcome.child = Some(child);
            if depth == 1 {
                outcome.part = self.board_part(&child);
            }
        }
        outcome
    }

    fn board_part(&mut self, state: &PublicState) -> BoardPart {
        let leaf = &self.leaf;
        self.memo.get_or(state, |state| leaf.board_part(state))
    }
}
