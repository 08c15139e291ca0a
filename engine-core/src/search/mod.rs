//! Fair expectimax: a fixed number of plies over stratified samples of what is not known.
//!
//! Promised: values, actions and all counts of logical work equal the reference bit for bit
//! (`tests/golden/search.json`). A decision is a function of the [`PublicState`] alone; nothing that
//! could change a value survives it.
//! Refused: pruning, and any look at real reveals or future discs.
//!
//! Logical work is what the *definition* does: every sampled move and every leaf counts one, also
//! when this implementation did not have to repeat it. So counts can be compared between machines
//! and implementations, and a work limit stops everywhere at the same place.
//!
//! | room | holds |
//! | --- | --- |
//! | `expectimax` | [`Searcher`]: deepening, root, and the fast walk |
//! | `parallel` | [`ParallelSearcher`]: one decision on several cores |
//! | `stepwise` | the walk that looks at the work limit before every step |
//! | `frontier` | the last ply: moves first, then all leaves together |
//! | `table` | the transposition table |

mod expectimax;
mod frontier;
mod parallel;
mod stepwise;
mod table;

pub use expectimax::{ColumnValue, Searcher};
pub use parallel::{ParallelDecision, ParallelSearcher};

use crate::drop7::chance::POLICY_SEED;

#[cfg(doc)]
use crate::drop7::PublicState;

/// What defines a search, apart from its leaf.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchConfig {
    /// Plies, 1..=8. Deepening goes through all smaller depths first.
    pub depth: u32,
    /// Samples per move, 1..=64.
    pub strata: u32,
    /// Value of a lost game in points; the points of the last move are added.
    pub terminal: f64,
    /// Logical work after which a decision stops with the last depth it completed.
    pub work_limit: u64,
    /// Entries of the transposition table, rounded up to a power of two, at most 2^28.
    pub table_slots: usize,
    /// Smallest remaining depth that uses the table; above `depth` there is no table.
    pub table_from_depth: u32,
    /// Seed of all samples.
    pub policy_seed: u32,
}

/// A search configuration outside of what can be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// The depth is not 1..=8.
    #[error("search depth {0} is not 1..=8")]
    Depth(u32),
    /// The number of strata is not 1..=64.
    #[error("{0} strata are not 1..=64")]
    Strata(u32),
    /// The table is too large.
    #[error("{0} table slots are more than 2^28")]
    TableSlots(usize),
}

impl SearchConfig {
    /// The value of a lost game in the named arms.
    pub const TERMINAL: f64 = -1_000_000.0;

    /// The configuration of the named arms: a limit that cannot bind, 65 536 table slots up to
    /// depth 3 and 1 048 576 from depth 4.
    ///
    /// # Errors
    /// As [`SearchConfig::validate`].
    pub fn bounded(depth: u32, strata: u32) -> Result<Self, SearchError> {
        let config = Self {
            depth,
            strata,
            terminal: Self::TERMINAL,
            work_limit: completion_bound(depth, strata).map_or(u64::MAX, |work| work + 1),
            table_slots: if depth >= 4 { 1 << 20 } else { 1 << 16 },
            table_from_depth: 1,
            policy_seed: POLICY_SEED,
        };
        config.validate()?;
        Ok(config)
    }

    /// Refuses what [`Searcher`] would have to clamp.
    ///
    /// # Errors
    /// A depth outside 1..=8, strata outside 1..=64, or more than 2^28 table slots.
    pub const fn validate(&self) -> Result<(), SearchError> {
        if self.depth == 0 || self.depth > 8 {
            return Err(SearchError::Depth(self.depth));
        }
        if self.strata == 0 || self.strata > 64 {
            return Err(SearchError::Strata(self.strata));
        }
        if self.table_slots > 1 << 28 {
            return Err(SearchError::TableSlots(self.table_slots));
        }
        Ok(())
    }
}

/// Logical work of a decision of this depth in which all columns are always legal, no game ends and
/// no table helps: the most a decision can take. `None` when it does not fit.
pub fn completion_bound(depth: u32, strata: u32) -> Option<u64> {
    (1..=depth).try_fold(0_u64, |sum, pass| sum.checked_add(pass_bound(pass, strata)?))
}

/// The share of one deepening pass in [`completion_bound`]: its leaves and its moves.
fn pass_bound(depth: u32, strata: u32) -> Option<u64> {
    let branching = 7_u64.checked_mul(u64::from(strata))?;
    let mut level = 1_u64;
    let mut moves = 0_u64;
    for _ in 0..depth {
        level = level.checked_mul(branching)?;
        moves = moves.checked_add(level)?;
    }
    moves.checked_add(level)
}

/// What a search decided and what it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decision {
    /// The column to play; `None` when the game is over or no column is legal.
    pub action: Option<usize>,
    /// The deepest pass that was completed; 0 when the limit stopped the first one.
    pub completed_depth: u32,
    /// Simulated moves plus leaf evaluations, over all passes.
    pub work: u64,
    /// Nodes entered below the root.
    pub nodes: u64,
    /// Leaf evaluations.
    pub leaf_calls: u64,
    /// Simulated moves.
    pub move_calls: u64,
    /// Nodes whose value was in the table.
    pub cache_hits: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_configurations_are_refused() {
        assert_eq!(SearchConfig::bounded(0, 7), Err(SearchError::Depth(0)));
        assert_eq!(SearchConfig::bounded(9, 7), Err(SearchError::Depth(9)));
        assert_eq!(SearchConfig::bounded(3, 0), Err(SearchError::Strata(0)));
        assert_eq!(SearchConfig::bounded(3, 65), Err(SearchError::Strata(65)));
        let huge = SearchConfig { table_slots: usize::MAX, ..SearchConfig::bounded(3, 7).unwrap() };
        assert_eq!(huge.validate(), Err(SearchError::TableSlots(usize::MAX)));
    }

    #[test]
    fn a_bound_that_does_not_fit_is_none() {
        assert_eq!(completion_bound(8, u32::MAX), None);
        assert_eq!(completion_bound(u32::MAX, 1), None);
        assert_eq!(completion_bound(0, 7), Some(0));
    }
}
