//! Who plays a screen.

use std::sync::Arc;

use crate::drop7::{CENTER_FIRST, PublicState};
use crate::leaf::{FairLeaf, Leaf};
use crate::ntuple::direct::DirectPolicy;
use crate::ntuple::leaf::TableLeaf;
use crate::ntuple::{FrozenTables, Weights};
use crate::search::{Decision, SearchConfig, Searcher};

/// A player of a screen: cheap to share between workers, the same for every game.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Player {
    /// Expectimax over a leaf.
    Search {
        /// Depth, samples, limit and table.
        config: SearchConfig,
        /// What is asked at the horizon.
        leaf: SearchLeaf,
    },
    /// The one-ply policy over tables. Its work is the number of simulated moves.
    Direct(Arc<FrozenTables>),
    /// The first legal column of 3, 2, 4, 1, 5, 0, 6. Its work is 0.
    CenterFirst,
}

/// The leaf of a searching player.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SearchLeaf {
    /// The frozen fair leaf.
    Fair,
    /// Tables.
    Tables(Arc<FrozenTables>),
}

/// What a policy chose for one move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The column, or `None` when the policy found none.
    pub action: Option<usize>,
    /// Logical work of the decision.
    pub work: u64,
    /// Whether the decision went as deep as the player's definition says.
    pub complete: bool,
    /// The counts of the search, when there was one.
    pub search: Option<Decision>,
}

/// A player during one game. It is asked for every move and sees nothing but the public state.
pub trait Policy {
    /// Chooses a column for `state`, which is not over.
    fn choose(&mut self, state: &PublicState) -> Choice;
}

impl Player {
    /// This player for one game: nothing carries over from another.
    pub fn policy(&self) -> Box<dyn Policy + '_> {
        match self {
            Self::Search { config, leaf: SearchLeaf::Fair } => {
                Box::new(Searcher::new(*config, FairLeaf))
            }
            Self::Search { config, leaf: SearchLeaf::Tables(tables) } => {
                Box::new(Searcher::new(*config, TableLeaf::new(&**tables)))
            }
            Self::Direct(tables) => Box::new(DirectPolicy::new(&**tables)),
            Self::CenterFirst => Box::new(CenterFirst),
        }
    }
}

impl<L: Leaf> Policy for Searcher<L> {
    fn choose(&mut self, state: &PublicState) -> Choice {
        let decision = self.decide(state);
        Choice {
            action: decision.action,
            work: decision.work,
            complete: decision.completed_depth >= self.config().depth,
            search: Some(decision),
        }
    }
}

impl<W: Weights> Policy for DirectPolicy<W> {
    fn choose(&mut self, state: &PublicState) -> Choice {
        let decision = self.decide(state);
        Choice { action: decision.action, work: decision.simulations, complete: true, search: None }
    }
}

struct CenterFirst;

impl Policy for CenterFirst {
    fn choose(&mut self, state: &PublicState) -> Choice {
        let action = CENTER_FIRST.into_iter().find(|&column| state.board().is_legal(column));
        Choice { action, work: 0, complete: true, search: None }
    }
}
