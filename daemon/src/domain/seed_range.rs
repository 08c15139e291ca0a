//! Seeds and half-open ranges of them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A game seed. Written as `0x` and eight lower-case hex digits; never as a JSON number, because
/// readers that use doubles would be free to round larger seeds one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seed(pub u32);

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

/// A text that is not a seed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a seed is a string of 0x and one to eight hex digits, like \"0xa52f2140\"; got {0:?}")]
pub struct SeedError(String);

impl FromStr for Seed {
    type Err = SeedError;

    fn from_str(text: &str) -> Result<Self, SeedError> {
        text.strip_prefix("0x")
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
            .filter(|digits| (1..=8).contains(&digits.len()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .map(Self)
            .ok_or_else(|| SeedError(text.to_owned()))
    }
}

impl Serialize for Seed {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Seed {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Generator whose seeds these are.
pub const SPACE: &str = "drop7-headless-u32";
/// Stream of the generator that a lease is about.
pub const DOMAIN: &str = "environment";

/// Where blocks without a start are drawn: `[0x10000000, 0x70000000)`, lowest free first.
pub const POOL: SeedRange = SeedRange { start: 0x1000_0000, count: 0x6000_0000 };
/// Drawn blocks start at multiples of this.
pub const POOL_ALIGNMENT: u32 = 256;

/// Ranges that no protocol can lease, with what they are kept for.
pub const RESERVED: [(&str, SeedRange); 3] = [
    ("the protected block", SeedRange { start: 0x7d00_0000, count: 0x1_0000 }),
    ("the final block", SeedRange { start: 0xd700_0000, count: 0x100 }),
    ("the probe block of the CHECK gates", SeedRange { start: 0xa527_6000, count: 0x2000 }),
];

/// A half-open range of seeds, never empty, never past 2^32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeedRange {
    start: u32,
    count: u32,
}

/// A range that is empty or runs past the last seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SeedRangeError {
    /// No seeds.
    #[error("a range holds at least one seed; count is 0")]
    Empty,
    /// The end is past 2^32.
    #[error("{start} + {count} seeds run past 0xffffffff, the last seed")]
    PastEnd {
        /// First seed.
        start: Seed,
        /// Seeds asked for.
        count: u64,
    },
}

impl SeedRange {
    /// `count` seeds from `start` on.
    ///
    /// # Errors
    /// When `count` is 0 or the range runs past 2^32.
    pub fn new(start: Seed, count: u64) -> Result<Self, SeedRangeError> {
        if count == 0 {
            return Err(SeedRangeError::Empty);
        }
        match u32::try_from(count) {
            Ok(short) if u64::from(start.0) + count <= 1 << 32 => {
                Ok(Self { start: start.0, count: short })
            }
            _ => Err(SeedRangeError::PastEnd { start, count }),
        }
    }

    /// The first seed.
    pub const fn start(&self) -> Seed {
        Seed(self.start)
    }

    /// How many seeds, at least 1.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// One past the last seed, up to 2^32.
    pub fn end(&self) -> u64 {
        u64::from(self.start) + u64::from(self.count)
    }

    /// Whether the two ranges share a seed.
    pub fn overlaps(&self, other: &Self) -> bool {
        u64::from(self.start) < other.end() && u64::from(other.start) < self.end()
    }

    /// The seeds in order.
    pub fn seeds(&self) -> impl ExactSizeIterator<Item = u32> + use<> {
        let start = self.start;
        (0..self.count).map(move |ordinal| start + ordinal)
    }
}

/// `[0xa52f2140, 0xa52f2240)`.
impl fmt::Display for SeedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {:#010x})", self.start(), self.end())
    }
}
