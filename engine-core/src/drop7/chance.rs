//! Every random number of the game and of the search, as pure functions of 32-bit words.
//!
//! Three sources exist: [`Mulberry32`] (a stream), the headless disc of a seeded game
//! ([`headless_disc`], [`reveal_stream`]), and the stratified samples of a search
//! ([`StratifiedReveals`], [`sampled_next_disc`]). Nothing here holds hidden state, so a game can be
//! replayed from its seed and its columns alone.

use super::Board;

/// Domain word of next discs of a headless game ("NEXT").
pub const NEXT: u32 = 0x4e45_5854;
/// Domain word of reveals, real and sampled ("REVL").
pub const REVL: u32 = 0x5245_564c;
/// Domain word of sampled next discs ("DISC").
pub const DISC: u32 = 0x4449_5343;
/// Multiplier of move and sample counters.
pub const A: u32 = 0x9e37_79b9;
/// Multiplier of reveal, event and depth counters.
pub const B: u32 = 0x85eb_ca6b;
/// The seed every policy of the four studies uses.
pub const POLICY_SEED: u32 = 0xd707_5eed;

/// Where the move function gets its discs from: one operation, "draw a disc 1..=7".
pub trait Chance {
    /// The next disc, 1..=7.
    fn draw(&mut self) -> u8;
}

/// 32-bit finaliser: a bijection on `u32`.
#[inline]
pub const fn mix32(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

/// A disc 1..=7 from 32 random bits, by the high word of a 64-bit product.
#[inline]
pub const fn disc_from_bits(bits: u32) -> u8 {
    ((bits as u64 * 7) >> 32) as u8 + 1
}

/// The Mulberry32 generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mulberry32 {
    state: u32,
}

impl Mulberry32 {
    /// A stream that starts at `seed`.
    pub const fn new(seed: u32) -> Self {
        Self { state: seed }
    }

    /// The state, to be stored in a checkpoint and given to [`Mulberry32::new`] again.
    pub const fn state(&self) -> u32 {
        self.state
    }

    /// The next 32 random bits.
    #[inline]
    pub const fn next_bits(&mut self) -> u32 {
        self.state = self.state.wrapping_add(0x6d2b_79f5);
        let t = self.state;
        let t = (t ^ (t >> 15)).wrapping_mul(t | 1);
        let t = t ^ t.wrapping_add((t ^ (t >> 7)).wrapping_mul(t | 0x3d));
        t ^ (t >> 14)
    }

    /// `next_bits / 2^32`, in `[0, 1)`.
    pub fn next_unit(&mut self) -> f64 {
        f64::from(self.next_bits()) / 4_294_967_296.0
    }
}

impl Chance for Mulberry32 {
    #[inline]
    fn draw(&mut self) -> u8 {
        disc_from_bits(self.next_bits())
    }
}

/// Random bits behind disc number `moves_played` of the headless game `seed`.
pub const fn headless_bits(seed: u32, moves_played: u32) -> u32 {
    mix32(seed ^ moves_played.wrapping_add(1).wrapping_mul(A) ^ NEXT)
}

/// The disc that is visible after `moves_played` moves of the headless game `seed`, 1..=7.
pub const fn headless_disc(seed: u32, moves_played: u32) -> u8 {
    disc_from_bits(headless_bits(seed, moves_played))
}

/// The reveals of move number `moves_played` (0 for the first) of the headless game `seed`.
pub const fn reveal_stream(seed: u32, moves_played: u32) -> Mulberry32 {
    Mulberry32::new(mix32(seed ^ moves_played.wrapping_add(1).wrapping_mul(B) ^ REVL))
}

/// Hash of what a policy sees at a node: it seeds all samples of that node, the same for every
/// column (common random numbers). `depth` is the remaining depth of the node; the direct policy
/// uses 0. `board` must be the canonical board.
pub fn scenario_seed(
    board: &Board,
    next_disc: u8,
    moves_remaining: u8,
    policy_seed: u32,
    depth: u32,
) -> u32 {
    scenario_seed_of(board_hash(board), next_disc, moves_remaining, policy_seed, depth)
}

const FNV_PRIME: u32 = 0x0100_0193;

/// The part of a [`scenario_seed`] that only the board decides: for [`scenario_seed_of`].
pub fn board_hash(board: &Board) -> u32 {
    let columns = board.columns();
    let mut hash = 0x811c_9dc5_u32;
    let mut shift = 28;
    while shift > 0 {
        shift -= 4;
        for word in columns {
            hash = (hash ^ (((word >> shift) & 15) + 1)).wrapping_mul(FNV_PRIME);
        }
    }
    hash
}

/// The [`scenario_seed`] of a board with this [`board_hash`].
#[inline]
pub const fn scenario_seed_of(
    board_hash: u32,
    next_disc: u8,
    moves_remaining: u8,
    policy_seed: u32,
    depth: u32,
) -> u32 {
    let mut hash = (board_hash ^ next_disc as u32).wrapping_mul(FNV_PRIME);
    // The last step has no multiplication in the reference.
    hash ^= moves_remaining as u32;
    mix32(hash ^ policy_seed ^ depth.wrapping_add(1).wrapping_mul(B))
}

/// Hash of one chance event under a scenario seed: it rotates and jitters the strata of all samples.
#[inline]
pub const fn event_seed(seed: u32, domain: u32, event: u32) -> u32 {
    mix32(seed ^ domain ^ event.wrapping_add(1).wrapping_mul(B))
}

/// Point of the unit interval for `sample` of `count` strata, in `[0, 1)`: the strata are rotated
/// by the event's hash and jittered inside.
pub fn stratified_unit(seed: u32, sample: u32, count: u32, domain: u32, event: u32) -> f64 {
    unit_of_event(event_seed(seed, domain, event), sample, count)
}

fn unit_of_event(event_seed: u32, sample: u32, count: u32) -> f64 {
    let stratum = (sample + event_seed % count) % count;
    let bits = mix32(event_seed ^ sample.wrapping_add(1).wrapping_mul(A));
    let jitter = f64::from(bits) / 4_294_967_296.0;
    (f64::from(stratum) + jitter) / f64::from(count)
}

/// The disc of [`stratified_unit`], 1..=7.
#[inline]
pub fn stratified_disc(seed: u32, sample: u32, count: u32, domain: u32, event: u32) -> u8 {
    disc_of_event(event_seed(seed, domain, event), sample, count)
}

/// The disc, 1..=7, of sample `sample` (0..count) of the event with this [`event_seed`].
#[inline]
pub fn disc_of_event(event_seed: u32, sample: u32, count: u32) -> u8 {
    if count == 7 {
        // Seven strata over seven discs: the stratum is the disc, whatever the jitter.
        return ((sample + event_seed % 7) % 7) as u8 + 1;
    }
    (unit_of_event(event_seed, sample, count) * 7.0) as u8 + 1
}

/// The sampled next disc after a move: the same for every column of a node.
#[inline]
pub fn sampled_next_disc(seed: u32, sample: u32, count: u32) -> u8 {
    stratified_disc(seed, sample, count, DISC, 0)
}

/// Reveals of one simulated move: sample `sample` of `count` strata under a scenario seed.
#[derive(Debug, Clone)]
pub struct StratifiedReveals {
    seed: u32,
    sample: u32,
    count: u32,
    event: u32,
}

impl StratifiedReveals {
    /// The reveals of sample `sample` (0..count) of `count` strata.
    pub const fn new(seed: u32, sample: u32, count: u32) -> Self {
        Self { seed, sample, count, event: 0 }
    }
}

impl Chance for StratifiedReveals {
    #[inline]
    fn draw(&mut self) -> u8 {
        let disc = stratified_disc(self.seed, self.sample, self.count, REVL, self.event);
        self.event += 1;
        disc
    }
}

/// The reveals of all samples of one node. The samples share the hash of every event, which is made
/// once: sample `s` draws what [`StratifiedReveals`] of the same seed draws.
#[derive(Debug, Clone)]
pub struct NodeReveals {
    seed: u32,
    count: u32,
    /// Hashes of the first events, as far as they were asked for; reduced modulo 7 when there are
    /// seven samples.
    events: [u32; EVENTS_KEPT],
    known: usize,
}

/// More reveals than this are rare in one move.
const EVENTS_KEPT: usize = 8;

impl NodeReveals {
    /// The reveals of `count` strata under the scenario seed `seed`.
    #[inline]
    pub const fn new(seed: u32, count: u32) -> Self {
        Self { seed, count, events: [0; EVENTS_KEPT], known: 0 }
    }

    /// The reveals of sample `sample`, 0..count, from the first event on.
    #[inline]
    pub const fn sample(&mut self, sample: u32) -> SampleReveals<'_> {
        SampleReveals { node: self, sample, event: 0 }
    }

    #[inline]
    fn event(&mut self, event: u32) -> u32 {
        let at = event as usize;
        while self.known <= at && self.known < EVENTS_KEPT {
            self.events[self.known] = self.hash(self.known as u32);
            self.known += 1;
        }
        match self.events.get(at) {
            Some(&hash) => hash,
            None => self.hash(event),
        }
    }

    #[inline]
    const fn hash(&self, event: u32) -> u32 {
        let hash = event_seed(self.seed, REVL, event);
        if self.count == 7 { hash % 7 } else { hash }
    }
}

/// One sample of a [`NodeReveals`].
#[derive(Debug)]
pub struct SampleReveals<'a> {
    node: &'a mut NodeReveals,
    sample: u32,
    event: u32,
}

impl Chance for SampleReveals<'_> {
    #[inline]
    fn draw(&mut self) -> u8 {
        let event = self.node.event(self.event);
        self.event += 1;
        if self.node.count == 7 {
            let disc = self.sample + event;
            return if disc < 7 { disc } else { disc - 7 } as u8 + 1;
        }
        disc_of_event(event, self.sample, self.node.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_events_give_the_reveals_of_each_sample_alone() {
        for (seed, count) in [(1, 7), (0xdead_beef, 7), (7, 1), (8, 5), (9, 64)] {
            let mut node = NodeReveals::new(seed, count);
            for sample in (0..count).chain((0..count).rev()) {
                let mut alone = StratifiedReveals::new(seed, sample, count);
                let mut shared = node.sample(sample);
                for draw in 0..2 * EVENTS_KEPT + 3 {
                    assert_eq!(shared.draw(), alone.draw(), "{seed} {count} {sample} {draw}");
                }
            }
        }
    }
}
