//! What exactly is trained: an arm of the protocol, or the long run with the settings of the chosen
//! arm.

use engine_core::ntuple::Layout;
use engine_core::train::{Parallel, SeedBlock, TrainConfig};

use crate::domain::protocol::{Freeze, StopRule, TrainArm, Validate};
use crate::domain::records::Lease;
use crate::exec::plan::{MAIN_KEY, train_key};
use crate::exec::select::Selection;
use crate::exec::unit::{Ending, UnitContext};

/// Which point's tables go into the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// The one with the largest margin, the earlier one of a tie.
    Best,
    /// The newest.
    Last,
    /// None: a long run follows from fresh tables.
    Nothing,
}

/// One training job.
#[derive(Debug)]
pub(super) struct Job<'a> {
    /// Name in rows: the arm, or `main`.
    pub(super) name: String,
    /// Where the settings come from.
    pub(super) arm: &'a TrainArm,
    /// Budget, over all sessions.
    pub(super) moves: u64,
    /// Moves per chunk.
    pub(super) chunk_moves: u64,
    /// Validation points.
    pub(super) validate: &'a Validate,
    /// Early stops.
    pub(super) stop: StopRule,
    /// What is kept.
    pub(super) keep: Keep,
}

impl<'a> Job<'a> {
    pub(super) fn of(context: &'a UnitContext) -> Result<Self, Ending> {
        let protocol = &context.protocol;
        let arm_named = |name: &str| protocol.train.iter().find(|arm| arm.name == name);
        if context.key == MAIN_KEY
            && let Some(main) = &protocol.main
        {
            let selection: Selection = context.output("select")?;
            let arm = arm_named(&selection.arm).ok_or_else(|| {
                Ending::Failed(format!("the chosen arm {:?} is not in the protocol", selection.arm))
            })?;
            return Ok(Self {
                name: String::from("main"),
                arm,
                moves: main.moves,
                chunk_moves: main.chunk_moves,
                validate: &main.validate,
                stop: main.stop,
                keep: match main.freeze {
                    Freeze::LargestMargin => Keep::Best,
                    Freeze::Final => Keep::Last,
                },
            });
        }
        let arm =
            protocol.train.iter().find(|arm| train_key(&arm.name) == context.key).ok_or_else(
                || Ending::Failed(format!("the protocol has no unit {}", context.key)),
            )?;
        Ok(Self {
            name: arm.name.clone(),
            arm,
            moves: arm.moves,
            chunk_moves: arm.chunk_moves,
            validate: &arm.validate,
            stop: arm.stop,
            keep: if protocol.main.is_some() { Keep::Nothing } else { Keep::Best },
        })
    }

    pub(super) fn layout(&self) -> Result<Layout, Ending> {
        self.arm
            .layout
            .parse()
            .map_err(|error| Ending::Failed(format!("layout {:?}: {error}", self.arm.layout)))
    }

    pub(super) fn config(&self, context: &UnitContext) -> Result<TrainConfig, Ending> {
        Ok(TrainConfig {
            layout: self.layout()?,
            alpha: self.arm.alpha as f32,
            epsilon: self.arm.epsilon,
            optimistic_rises: self.arm.optimistic_rises as f32,
            clamp: self.arm.clamp_rises as f32,
            move_cap: self.arm.move_cap,
            train_seed: self.arm.train_seed.0,
            seeds: seed_block(context.lease(&self.arm.seeds)?),
            threads: self.arm.threads,
            parallel: self
                .arm
                .lockstep_games
                .map_or(Parallel::LockFree, |games| Parallel::Lockstep { games }),
        })
    }
}

/// The seeds of a lease, as training reads them.
pub fn seed_block(lease: &Lease) -> SeedBlock {
    SeedBlock { start: lease.start.0, count: lease.count }
}
