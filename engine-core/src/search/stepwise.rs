//! The walk under a work limit that may bind: every sample is simulated, every leaf is evaluated,
//! and the limit is looked at exactly where the definition looks at it.

use super::Searcher;
use super::expectimax::Node;
use super::table::Known;
use crate::drop7::{CENTER_FIRST, PublicState};
use crate::leaf::Leaf;

/// The work limit stopped a pass; what it had found is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LimitReached;

impl<L: Leaf> Searcher<L> {
    fn look_at_the_limit(&self) -> Result<(), LimitReached> {
        if self.counts.work() >= self.config.work_limit { Err(LimitReached) } else { Ok(()) }
    }

    /// The mean over all samples of dropping into `column`.
    pub(super) fn limited_action_value(
        &mut self,
        node: &Node<'_>,
        column: usize,
        depth: u32,
    ) -> Result<f64, LimitReached> {
        let discs = node.discs();
        let mut sum = 0.0;
        for sample in 0..self.config.strata {
            self.look_at_the_limit()?;
            self.counts.moves += 1;
            let Some(played) = node.play(column, sample) else {
                sum += self.config.terminal;
                continue;
            };
            let value = if played.after.is_over() {
                self.config.terminal
            } else {
                let (child, _) = played.after.with_next_disc(discs.disc(sample)).canonical();
                self.limited_node_value(&child, depth - 1)?
            };
            sum += played.delta as f64 + value;
        }
        Ok(sum / f64::from(self.config.strata))
    }

    fn limited_node_value(&mut self, state: &PublicState, depth: u32) -> Result<f64, LimitReached> {
        self.counts.nodes += 1;
        self.look_at_the_limit()?;
        if depth == 0 {
            self.counts.leaves += 1;
            return Ok(self.leaf.value(state));
        }
        let key = self.key(state, depth).map(|key| key.with_disc(state.next_disc()));
        if let Some(Known::Value(value)) = self.recall(key.as_ref()) {
            return Ok(value);
        }
        let node = self.node(state, depth);
        let mut best = f64::NEG_INFINITY;
        for column in CENTER_FIRST {
            if state.board().is_legal(column) {
                let value = self.limited_action_value(&node, column, depth)?;
                if value > best {
                    best = value;
                }
            }
        }
        Ok(self.keep(key.as_ref(), best))
    }
}
