//! Lockstep training (batch-synchronous updates): the same tables for any number of threads.
//!
//! A configured number of games is in flight, one per slot. A round has two halves. First the
//! tables are frozen: every game plays one real move and works out the error of the position
//! that learns from it. Then all updates of the round are applied, slot by slot: each thread owns
//! some tables of the layout and applies the share of every update that falls into them, so no entry
//! is written by two threads, and every entry sees the updates in slot order with its history as it
//! then is. Games that ended are counted, and their slots take the next seeds, in slot order too.
//!
//! Promised: everything but the number of workers is a function of the configuration and the number
//! of games in flight, down to the rounding of the sums. One game in flight is serial training. A
//! stop is looked at after every round and keeps the games in flight as their seeds and columns, so
//! that a resumed run ends with the bits of one that was never stopped.
//! Refused: waiting at full load. A thread spins for some microseconds, then sleeps.
//!
//! What it costs: a move is chosen with weights that do not know of the other games' moves of the
//! same round, and when many games are in flight, fresh tables learn more slowly for it.

use std::hint;
use std::ops::{Range, RangeInclusive};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use super::report::Tally;
use super::trainer::{InFlight, OpenChunk, Sitting, TrainConfig};
use super::worker::step;
use crate::drop7::chance::Mulberry32;
use crate::drop7::{Board, Game};
use crate::ntuple::direct::DirectPolicy;
use crate::ntuple::{Features, TrainTables};
use crate::progress::{Progress, StopToken};

/// Plays `sitting` on to the end of its chunk, or until a stop request.
pub(super) fn play(
    config: &TrainConfig,
    tables: &TrainTables,
    sitting: Sitting,
    progress: &dyn Progress,
    stop: &StopToken,
) -> Sitting {
    let Sitting { moves, cursor, open, .. } = sitting;
    let rounds = Rounds::new(config, tables, &open);
    let mut leader = Leader {
        rounds: &rounds,
        end: open.end,
        moves,
        cursor,
        tally: open.tally,
        learned: Vec::with_capacity(rounds.slots.len()),
        progress,
        stop,
    };
    leader.fill();

    let start = OnceLock::new();
    let wanted = (config.threads as usize).min(rounds.slots.len());
    thread::scope(|scope| {
        let mut members = 1;
        for _ in 1..wanted {
            let (rounds, start, member) = (&rounds, &start, members);
            let spawned = thread::Builder::new()
                .name(format!("train-{member}"))
                .spawn_scoped(scope, move || rounds.run(OnceLock::wait(start), member, None));
            members += usize::from(spawned.is_ok());
        }
        rounds.run(
            start.get_or_init(|| Team::new(members, rounds.slots.len())),
            0,
            Some(&mut leader),
        );
    });

    let workers = start.get().map_or(0, |team| team.claims.len() as u32);
    let Leader { moves, cursor, tally, .. } = leader;
    let (explorers, in_flight) = rounds.suspend();
    let full = moves >= open.end && in_flight.is_empty();
    Sitting {
        moves,
        cursor,
        open: OpenChunk { end: open.end, tally, explorers, in_flight },
        workers,
        full,
    }
}

/// One place for a game in flight.
struct Slot {
    explorer: Mulberry32,
    game: Option<Game>,
    /// The columns played in it.
    columns: String,
    /// The position that learns from the next move.
    position: Features,
    next: Features,
    /// The clamped error of this round, when there was a move.
    error: Option<f32>,
    ended: bool,
}

/// An update of one position, as the threads that apply it see it.
#[derive(Default)]
struct Update {
    is_due: AtomicBool,
    step: AtomicU32,
    error: AtomicU32,
}

/// What the members of a team share. Between the halves of a round there is a barrier, which is what
/// orders the relaxed accesses.
struct Rounds<'a> {
    config: &'a TrainConfig,
    tables: &'a TrainTables,
    active: usize,
    /// Held by whoever plays the slot's move, then by the leader: nobody ever waits.
    slots: Vec<Mutex<Slot>>,
    /// By slot.
    updates: Vec<Update>,
    /// By slot and table: the entries that learn.
    entries: Vec<AtomicU64>,
    /// By slot and table: the step sizes they learned with.
    betas: Vec<AtomicU32>,
    /// No round follows.
    is_done: AtomicBool,
}

impl<'a> Rounds<'a> {
    fn new(config: &'a TrainConfig, tables: &'a TrainTables, open: &OpenChunk) -> Self {
        let active = tables.layout().active();
        let mut slots: Vec<Slot> = open
            .explorers
            .iter()
            .map(|&state| Slot {
                explorer: Mulberry32::new(state),
                game: None,
                columns: String::new(),
                position: Features::new(),
                next: Features::new(),
                error: None,
                ended: false,
            })
            .collect();
        for suspended in &open.in_flight {
            if let Some(slot) = slots.get_mut(suspended.slot as usize)
                && let Some(game) = suspended.replay(config.move_cap)
            {
                let (board, moves_remaining) =
                    (game.public().board(), game.public().moves_remaining());
                tables.layout().features(board, moves_remaining, &mut slot.position);
                slot.columns.clone_from(&suspended.columns);
                slot.game = Some(game);
            }
        }
        Self {
            config,
            tables,
            active,
            updates: slots.iter().map(|_| Update::default()).collect(),
            entries: (0..slots.len() * active).map(|_| AtomicU64::new(0)).collect(),
            betas: (0..slots.len() * active).map(|_| AtomicU32::new(0)).collect(),
            slots: slots.into_iter().map(Mutex::new).collect(),
            is_done: AtomicBool::new(false),
        }
    }

    /// The part of one member in all rounds. Member 0 brings the leader.
    fn run(&self, team: &Team, member: usize, mut leader: Option<&mut Leader<'_>>) {
        let _abandons = Abandons(&team.barrier);
        let members = team.claims.len();
        let own = self.active * member / members..self.active * (member + 1) / members;
        let mut policy = DirectPolicy::new(self.tables);
        while !self.is_done.load(Relaxed) {
            if let Some(leader) = &mut leader {
                leader.add_betas();
            }
            for claims in team.claims[member..].iter().chain(&team.claims[..member]) {
                while let Some(at) = claims.take() {
                    self.decide(at, &mut policy);
                }
            }
            if !team.barrier.wait() {
                return;
            }
            if let Some(leader) = &mut leader {
                leader.settle();
            }
            team.claims[member].reset();
            self.apply(&own);
            if !team.barrier.wait() {
                return;
            }
        }
        if let Some(leader) = &mut leader {
            leader.add_betas();
        }
    }

    /// Plays the next real move of a slot and says what its position learns from it.
    fn decide(&self, at: usize, policy: &mut DirectPolicy<&TrainTables>) {
        let TrainConfig { alpha, clamp, move_cap, .. } = *self.config;
        let mut slot = self.slot(at);
        let Slot { explorer, game, columns, position, next, error, ended } = &mut *slot;
        *error = None;
        if let Some(game) = game {
            *ended = true;
            if let Some(played) = step(self.config, policy, explorer, game, next) {
                let (delta, step) = self.tables.error(position, played.target, alpha, clamp);
                for (entry, &index) in
                    self.entries[at * self.active..].iter().zip(position.as_slice())
                {
                    entry.store(index, Relaxed);
                }
                self.updates[at].step.store(step.to_bits(), Relaxed);
                self.updates[at].error.store(delta.to_bits(), Relaxed);
                *error = Some(delta);
                columns.push(digit(played.column));
                *ended = played.over || game.moves_played() >= move_cap;
                std::mem::swap(position, next);
            }
        }
        self.updates[at].is_due.store(error.is_some(), Relaxed);
    }

    /// Applies the round's updates to the entries of the tables `own`.
    fn apply(&self, own: &Range<usize>) {
        for (at, update) in self.updates.iter().enumerate() {
            if !update.is_due.load(Relaxed) {
                continue;
            }
            let step = f32::from_bits(update.step.load(Relaxed));
            let error = f32::from_bits(update.error.load(Relaxed));
            let cells = at * self.active + own.start..at * self.active + own.end;
            self.tables.learn(&self.entries[cells.clone()], step, error, &self.betas[cells]);
        }
    }

    fn slot(&self, at: usize) -> MutexGuard<'_, Slot> {
        self.slots[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The streams of random columns, and the games that are still in flight.
    fn suspend(self) -> (Vec<u32>, Vec<InFlight>) {
        let slots = self.slots.into_iter();
        let slots = slots.map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
        let (mut explorers, mut in_flight) = (Vec::new(), Vec::new());
        for (number, slot) in (0..).zip(slots) {
            explorers.push(slot.explorer.state());
            if let Some(game) = slot.game {
                let (seed, columns) = (game.seed(), slot.columns);
                in_flight.push(InFlight { slot: number, seed, columns });
            }
        }
        (explorers, in_flight)
    }
}

/// What one thread does for all: the counters, the sums and the seeds.
struct Leader<'a> {
    rounds: &'a Rounds<'a>,
    end: u64,
    moves: u64,
    cursor: u64,
    tally: Tally,
    /// The slots whose step sizes are not in the tally yet.
    learned: Vec<usize>,
    progress: &'a dyn Progress,
    stop: &'a StopToken,
}

impl Leader<'_> {
    /// Counts what the round played, and decides whether and with which games another follows. Runs
    /// beside the second half, which does not look at slots.
    fn settle(&mut self) {
        for at in 0..self.rounds.slots.len() {
            let slot = &mut *self.rounds.slot(at);
            if let Some(error) = slot.error {
                self.tally.count_update(error, self.rounds.active as u64);
                self.learned.push(at);
            }
            if slot.ended
                && let Some(game) = slot.game.take()
            {
                let moves = u64::from(game.moves_played());
                self.tally.count_game(&game);
                self.moves += moves;
                self.progress.advance(moves);
            }
        }
        self.fill();
    }

    /// Gives seeds to the empty slots as long as the chunk is not full.
    fn fill(&mut self) {
        let is_stopped = self.stop.is_stopped();
        let mut in_flight = false;
        for at in 0..self.rounds.slots.len() {
            let slot = &mut *self.rounds.slot(at);
            if slot.game.is_none() && self.moves < self.end && !is_stopped {
                slot.game = Some(Game::new(self.rounds.config.seeds.at(self.cursor)));
                self.cursor += 1;
                slot.columns.clear();
                self.rounds.tables.layout().features(&Board::INITIAL, 5, &mut slot.position);
            }
            in_flight |= slot.game.is_some();
        }
        self.rounds.is_done.store(is_stopped || !in_flight, Relaxed);
    }

    /// Adds the step sizes of the last round, by slot and then by table, whoever applied them.
    fn add_betas(&mut self) {
        let active = self.rounds.active;
        for at in self.learned.drain(..) {
            for beta in &self.rounds.betas[at * active..(at + 1) * active] {
                self.tally.beta_sum += f64::from(f32::from_bits(beta.load(Relaxed)));
            }
        }
    }
}

const fn digit(column: usize) -> char {
    (b'0' + column as u8) as char
}

/// The threads of one call.
struct Team {
    barrier: Barrier,
    /// By member: the slots it plays first. Neighbouring positions of a game read the same entries,
    /// so a slot stays with its thread unless another has nothing left to do.
    claims: Vec<Claims>,
}

impl Team {
    fn new(members: usize, slots: usize) -> Self {
        let claims = (0..members)
            .map(|member| {
                let first = slots * member / members;
                Claims { first, end: slots * (member + 1) / members, next: AtomicUsize::new(first) }
            })
            .collect();
        Self { barrier: Barrier::new(members as u32), claims }
    }
}

/// Slots that are handed out one by one. A cache line of its own.
#[repr(align(64))]
struct Claims {
    first: usize,
    end: usize,
    next: AtomicUsize,
}

impl Claims {
    fn take(&self) -> Option<usize> {
        let at = self.next.fetch_add(1, Relaxed);
        (at < self.end).then_some(at)
    }

    fn reset(&self) {
        self.next.store(self.first, Relaxed);
    }
}

/// Fewest and most looks at a barrier before a thread sleeps. The most takes about as long as two
/// moves, the fewest as long as going to sleep.
const SPINS: RangeInclusive<u32> = 32..=2_048;

/// Where threads wait for each other, some ten thousand times a second. What a member wrote before
/// it, every member sees behind it.
struct Barrier {
    members: u32,
    arrived: AtomicU32,
    /// Counts the times all were there.
    passed: AtomicU32,
    /// A member panicked, nobody needs to wait for it.
    is_abandoned: AtomicBool,
    /// How many looks are worth it: fewer after every wait that ended asleep. On a processor that is
    /// shared with others, whoever is waited for often does not run at all.
    spins: AtomicU32,
    /// Members that are about to sleep, or do.
    sleepers: Mutex<u32>,
    wake: Condvar,
}

impl Barrier {
    fn new(members: u32) -> Self {
        Self {
            members,
            arrived: AtomicU32::new(0),
            passed: AtomicU32::new(0),
            is_abandoned: AtomicBool::new(false),
            spins: AtomicU32::new(*SPINS.end()),
            sleepers: Mutex::new(0),
            wake: Condvar::new(),
        }
    }

    /// Returns when all members are here; `false` when one will never come.
    fn wait(&self) -> bool {
        let passed = self.passed.load(Relaxed);
        if self.arrived.fetch_add(1, AcqRel) + 1 == self.members {
            self.arrived.store(0, Relaxed);
            self.release(|| self.passed.store(passed.wrapping_add(1), Release));
            return !self.is_abandoned.load(Relaxed);
        }
        let is_over = || self.passed.load(Acquire) != passed || self.is_abandoned.load(Acquire);
        let spins = self.spins.load(Relaxed);
        for _ in 0..spins {
            if is_over() {
                let more = spins + (SPINS.end() - spins).div_ceil(8);
                self.spins.store(more, Relaxed);
                return !self.is_abandoned.load(Relaxed);
            }
            hint::spin_loop();
        }
        self.spins.store((spins / 2).max(*SPINS.start()), Relaxed);
        let mut sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        *sleepers += 1;
        while !is_over() {
            sleepers = self.wake.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
        }
        *sleepers -= 1;
        !self.is_abandoned.load(Relaxed)
    }

    /// Lets go of those who wait. The change is made under the lock, so that nobody falls asleep
    /// after it; a system call is made only when somebody sleeps.
    fn release(&self, change: impl FnOnce()) {
        let sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        change();
        if *sleepers > 0 {
            self.wake.notify_all();
        }
    }
}

/// Held by a member while it works: if it panics, the others leave and the panic is seen.
struct Abandons<'a>(&'a Barrier);

impl Drop for Abandons<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.release(|| self.0.is_abandoned.store(true, Release));
        }
    }
}
