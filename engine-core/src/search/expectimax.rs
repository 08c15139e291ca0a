//! Deepening, the root, and the walk for passes that no work limit can stop.
//!
//! That walk leaves out what cannot change a bit: a move is played once up to its first reveal, and a
//! leaf reads each board once. It adds the same numbers in the same order.

use super::frontier::{Discs, Frontier};
use super::stepwise::LimitReached;
use super::table::{Key, KeyOfBoard, Known, NodeTable};
use super::{Decision, SearchConfig, pass_bound};
use crate::drop7::chance::{DISC, NodeReveals, board_hash, event_seed, scenario_seed_of};
use crate::drop7::rules::{Start, start};
use crate::drop7::{CENTER_FIRST, Move, PublicState, resolve};
use crate::leaf::Leaf;

/// A search with its memory. One per worker; decisions do not influence each other.
#[derive(Debug)]
pub struct Searcher<L: Leaf> {
    pub(super) config: SearchConfig,
    pub(super) leaf: L,
    pub(super) counts: Counts,
    table: NodeTable,
    /// Smallest remaining depth that uses the table.
    table_from: u32,
    frontier: Frontier<L>,
    /// Samples of the node of two plies in progress.
    children: Vec<Child>,
    /// Nodes of the batch that are to be remembered, with their numbers.
    awaited: Vec<(Key, u32)>,
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

    const fn add(&mut self, other: Self) {
        self.nodes += other.nodes;
        self.leaves += other.leaves;
        self.moves += other.moves;
        self.hits += other.hits;
    }
}

/// A max node whose moves are being sampled.
pub(super) struct Node<'a> {
    /// Canonical.
    pub(super) state: &'a PublicState,
    /// The scenario seed: all columns see the same samples.
    seed: u32,
    pub(super) strata: u32,
}

impl Node<'_> {
    /// The move under sample `sample`.
    #[inline]
    pub(super) fn play(&self, column: usize, sample: u32) -> Option<Move> {
        resolve(self.state, column, &mut self.reveals().sample(sample))
    }

    /// The reveals of all samples.
    #[inline]
    pub(super) const fn reveals(&self) -> NodeReveals {
        NodeReveals::new(self.seed, self.strata)
    }

    /// The next discs, the same for every column.
    #[inline]
    pub(super) const fn discs(&self) -> Discs {
        Discs { event: event_seed(self.seed, DISC, 0), strata: self.strata }
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

/// One sample of a move: the child it leads to and what is known of it.
#[derive(Debug, Clone, Copy)]
struct Child {
    delta: f64,
    known: Known,
}

/// A canonical, unfinished board between a move and the next disc, with what all its nodes share.
pub(super) struct Board {
    state: PublicState,
    hash: u32,
    key: Option<KeyOfBoard>,
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
            frontier: Frontier::new(),
            children: Vec::new(),
            awaited: Vec::new(),
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
        self.node_of(state, board_hash(state.board()), depth)
    }

    fn node_of<'a>(&self, state: &'a PublicState, board_hash: u32, depth: u32) -> Node<'a> {
        let (disc, moves) = (state.next_disc(), state.moves_remaining());
        let policy = self.config.policy_seed;
        let seed = scenario_seed_of(board_hash, disc, moves, policy, depth);
        Node { state, seed, strata: self.config.strata }
    }

    /// What all nodes of the board behind `played` share at remaining depth `depth`; `None` when
    /// the move ended the game.
    pub(super) fn board(&self, played: &Move, depth: u32) -> Option<Board> {
        if played.after.is_over() {
            return None;
        }
        let (state, _) = played.after.canonical();
        Some(Board { state, hash: board_hash(state.board()), key: self.key(&state, depth) })
    }

    /// The key under which the nodes of a board are remembered; `None` when this depth is not.
    pub(super) fn key(&self, state: &PublicState, depth: u32) -> Option<KeyOfBoard> {
        (depth >= self.table_from).then(|| KeyOfBoard::new(state, depth))
    }

    /// What is remembered of a node. A hit is counted.
    pub(super) fn recall(&mut self, key: Option<&Key>) -> Option<Known> {
        let known = self.table.get(key?)?;
        self.counts.hits += 1;
        Some(known)
    }

    /// Remembers the best column value of a node; a node without one is as good as lost.
    pub(super) fn keep(&mut self, key: Option<&Key>, best: f64) -> f64 {
        let value = if best.is_finite() { best } else { self.config.terminal };
        if let Some(key) = key {
            self.table.put(key, Known::Value(value));
        }
        value
    }

    /// The mean over all samples of dropping into `column`, which is legal.
    fn action_value(&mut self, node: &Node<'_>, column: usize, depth: u32) -> f64 {
        let mut value = f64::NAN;
        match depth {
            1 => {
                self.frontier.clear();
                let (number, counts) = self.frontier.expand(node, &[column]);
                self.counts.add(counts);
                self.frontier.read(&self.leaf);
                let terminal = self.config.terminal;
                self.frontier.values(&self.leaf, terminal, number, |mean| value = mean);
            }
            2 => {
                self.two_plies(node, &[column], |mean| value = mean);
            }
            _ => value = self.deep_action_value(node, column, depth),
        }
        value
    }

    /// [`Searcher::action_value`] with more than two plies to go.
    fn deep_action_value(&mut self, node: &Node<'_>, column: usize, depth: u32) -> f64 {
        let Some(start) = start(node.state, column) else { return self.config.terminal };
        let samples = self.config.strata;
        let (discs, mut reveals) = (node.discs(), node.reveals());
        let settled = match &start {
            Start::Settled(played) => Some((played.delta, self.board(played, depth - 1))),
            Start::Pending(_) => None,
        };
        let mut sum = 0.0;
        for sample in 0..samples {
            let finished = match &start {
                Start::Settled(_) => None,
                Start::Pending(pending) => {
                    let played = pending.finish(&mut reveals.sample(sample));
                    Some((played.delta, self.board(&played, depth - 1)))
                }
            };
            let value = match finished.as_ref().or(settled.as_ref()) {
                None => self.config.terminal,
                Some((delta, board)) => {
                    let value = match board {
                        None => self.config.terminal,
                        Some(board) => self.node_value(board, discs.disc(sample), depth - 1),
                    };
                    *delta as f64 + value
                }
            };
            sum += value;
        }
        self.counts.moves += u64::from(samples);
        sum / f64::from(samples)
    }

    /// Forgets all nodes: what follows is another decision.
    pub(super) const fn forget(&mut self) {
        self.table.clear();
    }

    /// The value of `board` with this disc and any number of plies to go.
    pub(super) fn child_value(&mut self, board: &Board, disc: u8, depth: u32) -> f64 {
        let state = board.state.with_next_disc(disc);
        match depth {
            0 => self.leaf.value(&state),
            1 => {
                self.frontier.clear();
                let node = self.node_of(&state, board.hash, 1);
                let (number, _) = self.frontier.expand(&node, &CENTER_FIRST);
                self.frontier.read(&self.leaf);
                self.awaited_value(number)
            }
            _ => self.node_value(board, disc, depth),
        }
    }

    /// The value of the node of `board` with this disc and `depth` >= 2 plies to go.
    fn node_value(&mut self, board: &Board, disc: u8, depth: u32) -> f64 {
        self.counts.nodes += 1;
        let key = board.key.map(|key| key.with_disc(disc));
        match self.recall(key.as_ref()) {
            Some(Known::Value(value)) => return value,
            // Awaited nodes have one ply to go.
            Some(Known::Awaited(_)) | None => {}
        }
        let state = board.state.with_next_disc(disc);
        let node = self.node_of(&state, board.hash, depth);
        let mut best = f64::NEG_INFINITY;
        let mut better = |value: f64| {
            if value > best {
                best = value;
            }
        };
        if depth == 2 {
            self.two_plies(&node, &CENTER_FIRST, better);
        } else {
            for column in CENTER_FIRST {
                if state.board().is_legal(column) {
                    better(self.deep_action_value(&node, column, depth));
                }
            }
        }
        self.keep(key.as_ref(), best)
    }

    /// Gives the value of each of `columns` that is legal, in order, to `take`, with two plies to go.
    fn two_plies(&mut self, node: &Node<'_>, columns: &[usize], mut take: impl FnMut(f64)) {
        let strata = self.config.strata;
        let (discs, mut reveals) = (node.discs(), node.reveals());
        self.frontier.clear();
        self.children.clear();
        self.awaited.clear();
        for &column in columns {
            match start(node.state, column) {
                None => continue,
                Some(Start::Settled(played)) => {
                    let board = self.board(&played, 1);
                    for sample in 0..strata {
                        self.child(&played, board.as_ref(), discs.disc(sample));
                    }
                }
                Some(Start::Pending(pending)) => {
                    for sample in 0..strata {
                        let played = pending.finish(&mut reveals.sample(sample));
                        let board = self.board(&played, 1);
                        self.child(&played, board.as_ref(), discs.disc(sample));
                    }
                }
            }
            self.counts.moves += u64::from(strata);
        }
        self.frontier.read(&self.leaf);
        for (key, number) in &self.awaited {
            let value = self.awaited_value(*number);
            self.table.arrived(key, *number, value);
        }
        for samples in self.children.chunks(strata as usize) {
            let mut sum = 0.0;
            for Child { delta, known } in samples {
                sum += delta
                    + match known {
                        Known::Value(value) => *value,
                        Known::Awaited(number) => self.awaited_value(*number),
                    };
            }
            take(sum / f64::from(strata));
        }
    }

    /// Notes one sample of a node of two plies, and plays out the node it leads to when nothing is
    /// known of that yet.
    fn child(&mut self, played: &Move, board: Option<&Board>, disc: u8) {
        let known = match board {
            None => Known::Value(self.config.terminal),
            Some(board) => {
                self.counts.nodes += 1;
                let key = board.key.map(|key| key.with_disc(disc));
                self.recall(key.as_ref()).unwrap_or_else(|| {
                    let state = board.state.with_next_disc(disc);
                    let node = self.node_of(&state, board.hash, 1);
                    let (number, counts) = self.frontier.expand(&node, &CENTER_FIRST);
                    self.counts.add(counts);
                    if let Some(key) = key {
                        self.table.put(&key, Known::Awaited(number));
                        self.awaited.push((key, number));
                    }
                    Known::Awaited(number)
                })
            }
        };
        self.children.push(Child { delta: played.delta as f64, known });
    }

    /// The best column value of a node of the batch, whose leaves have been read.
    fn awaited_value(&self, number: u32) -> f64 {
        let mut best = f64::NEG_INFINITY;
        self.frontier.values(&self.leaf, self.config.terminal, number, |value| {
            if value > best {
                best = value;
            }
        });
        if best.is_finite() { best } else { self.config.terminal }
    }
}
