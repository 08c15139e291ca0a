//! The random stream of every bootstrap: the generator that numpy's `default_rng(seed)` gives, from
//! the seeding hash to unbiased indices. Integers only; the same on every platform.

const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// Spreads one 32-bit seed over four 64-bit words.
pub fn seed_words(seed: u32) -> [u64; 4] {
    const POOL: usize = 4;
    let mut constant = 0x43b0_d7e5_u32;
    let mut hash = |mut value: u32| {
        value ^= constant;
        constant = constant.wrapping_mul(0x931e_8875);
        value = value.wrapping_mul(constant);
        value ^ (value >> 16)
    };
    let mut pool = [0; POOL];
    for (slot, word) in pool.iter_mut().zip([seed, 0, 0, 0]) {
        *slot = hash(word);
    }
    for from in 0..POOL {
        for to in (0..POOL).filter(|&to| to != from) {
            let mixed = pool[to]
                .wrapping_mul(0xca01_f9dd)
                .wrapping_sub(hash(pool[from]).wrapping_mul(0x4973_f715));
            pool[to] = mixed ^ (mixed >> 16);
        }
    }
    let mut constant = 0x8b51_f9dd_u32;
    let mut next = |word: usize| {
        let mut value = pool[word % POOL] ^ constant;
        constant = constant.wrapping_mul(0x58f3_8ded);
        value = value.wrapping_mul(constant);
        u64::from(value ^ (value >> 16))
    };
    let mut words = [0; 4];
    for (k, word) in words.iter_mut().enumerate() {
        let low = next(2 * k);
        *word = low | (next(2 * k + 1) << 32);
    }
    words
}

/// A permuted congruential generator with 128 bits of state and 64-bit output (XSL-RR).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pcg64 {
    state: u128,
    increment: u128,
    /// The high half of the last output, when only its low half was drawn.
    high: Option<u32>,
}

impl Pcg64 {
    /// The generator of `seed`.
    pub fn new(seed: u32) -> Self {
        let [q0, q1, q2, q3] = seed_words(seed);
        let wide = |high: u64, low: u64| (u128::from(high) << 64) | u128::from(low);
        let mut generator = Self { state: 0, increment: (wide(q2, q3) << 1) | 1, high: None };
        generator.step();
        generator.state = generator.state.wrapping_add(wide(q0, q1));
        generator.step();
        generator
    }

    /// The 128-bit state.
    pub const fn state(&self) -> u128 {
        self.state
    }

    /// The 128-bit increment, odd.
    pub const fn increment(&self) -> u128 {
        self.increment
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.step();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    /// The next 32 bits: the low half of a 64-bit output, then its high half.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        if let Some(high) = self.high.take() {
            return high;
        }
        let bits = self.next_u64();
        self.high = Some((bits >> 32) as u32);
        bits as u32
    }

    /// An index in `0..bound`, without bias. A bound of 1 draws nothing; `bound` must not be 0.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        debug_assert_ne!(bound, 0, "an empty range has no index");
        if bound <= 1 {
            return 0;
        }
        let mut product = u64::from(self.next_u32()) * u64::from(bound);
        if (product as u32) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u32) < threshold {
                product = u64::from(self.next_u32()) * u64::from(bound);
            }
        }
        (product >> 32) as u32
    }
}
