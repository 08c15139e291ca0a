//! One decision on several cores. The root is split into its samples, seven columns of seven for the
//! named arms; each is searched alone, and the sums are made in the order of the definition.
//!
//! Values and action are those of [`Searcher`], for any number of workers. Logical work is not
//! counted: it depends on what each worker remembers of its earlier tasks, which no value does.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::expectimax::Board;
use super::{SearchConfig, Searcher};
use crate::drop7::rules::{Start, start};
use crate::drop7::{CENTER_FIRST, Move, PublicState};
use crate::leaf::Leaf;

/// What a parallel search found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ParallelDecision {
    /// The column to play; `None` when the game is over or no column is legal.
    pub action: Option<usize>,
    /// Column of the position as it was given and mean over its samples in points, in search order
    /// of the canonical board.
    pub values: Vec<(usize, f64)>,
}

/// A search whose decisions use all workers of a pool.
#[derive(Debug)]
pub struct ParallelSearcher<L: Leaf> {
    config: SearchConfig,
    leaf: L,
    /// Searchers nobody uses at the moment: at most one per worker.
    idle: Mutex<Vec<Searcher<L>>>,
}

impl<L: Leaf<Scratch: Send> + Clone + Send + Sync> ParallelSearcher<L> {
    /// A search over `leaf`; a configuration out of range is clamped as by [`Searcher::new`], and
    /// its work limit is not looked at.
    pub const fn new(config: SearchConfig, leaf: L) -> Self {
        Self { config, leaf, idle: Mutex::new(Vec::new()) }
    }

    /// Chooses a column at the configured depth, as [`Searcher::decide`] does when its work limit
    /// does not bind. Ties go to the earlier of 3, 2, 4, 1, 5, 0, 6 on the canonical board.
    pub fn decide(&self, pool: &rayon::ThreadPool, state: &PublicState) -> ParallelDecision {
        let (root, mirrored) = state.canonical();
        let mut searcher = self.take();
        let (config, depth) = (*searcher.config(), searcher.config().depth);
        let node = searcher.node(&root, depth);
        let (discs, mut reveals) = (node.discs(), node.reveals());

        let mut columns = Vec::new();
        let mut samples: Vec<(i64, Option<Board>, u8)> = Vec::new();
        for column in CENTER_FIRST {
            let Some(start) = start(&root, column) else { continue };
            columns.push(if mirrored { 6 - column } else { column });
            for sample in 0..config.strata {
                let played: Move = match &start {
                    Start::Settled(played) => *played,
                    Start::Pending(pending) => pending.finish(&mut reveals.sample(sample)),
                };
                let board = searcher.board(&played, depth - 1);
                samples.push((played.delta, board, discs.disc(sample)));
            }
        }
        searcher.forget();
        self.give_back(searcher);

        let value = |(delta, board, disc): &(i64, Option<Board>, u8)| {
            let value = board.as_ref().map_or(config.terminal, |board| {
                let mut searcher = self.take();
                let value = searcher.child_value(board, *disc, depth - 1);
                self.give_back(searcher);
                value
            });
            *delta as f64 + value
        };
        let values: Vec<f64> =
            pool.install(|| samples.par_iter().with_max_len(1).map(value).collect());
        self.idle().iter_mut().for_each(Searcher::forget);

        let mut decision = ParallelDecision::default();
        let mut best = f64::NEG_INFINITY;
        for (&column, values) in columns.iter().zip(values.chunks(config.strata as usize)) {
            let mean = values.iter().fold(0.0, |sum, value| sum + value) / f64::from(config.strata);
            decision.values.push((column, mean));
            if mean > best || decision.action.is_none() {
                best = mean;
                decision.action = Some(column);
            }
        }
        decision
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Searcher<L>>> {
        // A searcher is pushed and popped whole, so a panic elsewhere leaves the list as it was.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Searcher<L> {
        let idle = self.idle().pop();
        idle.unwrap_or_else(|| Searcher::new(self.config, self.leaf.clone()))
    }

    fn give_back(&self, searcher: Searcher<L>) {
        self.idle().push(searcher);
    }
}
