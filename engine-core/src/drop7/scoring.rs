//! Points. Integers only: the reference evaluates `floor(7 * depth^2.5)` in floating point, which
//! sits exactly on an integer whenever the depth is a square; `isqrt(49 * depth^5)` is the same
//! number for every depth a game can reach, without a rounding to argue about.

/// Bonus for every rise that is not blocked.
pub const LEVEL_BONUS: i64 = 17_000;
/// Bonus for emptying the board.
pub const CLEAR_BONUS: i64 = 70_000;
/// Drops from one rise to the next.
pub const MOVES_PER_LEVEL: u8 = 5;

/// The deepest wave the table knows. A 49-cell board cannot chain further: every wave removes a
/// disc, and a move sees at most two boards' worth of discs (before and after the rise).
pub const MAX_DEPTH: usize = 128;

const fn wave_points() -> [i64; MAX_DEPTH + 1] {
    let mut table = [0; MAX_DEPTH + 1];
    let mut depth = 1;
    while depth <= MAX_DEPTH {
        table[depth] = (49 * (depth as u64).pow(5)).isqrt() as i64;
        depth += 1;
    }
    table
}

static WAVE_POINTS: [i64; MAX_DEPTH + 1] = wave_points();

/// Points of one disc that pops in the wave at chain depth `depth` (first wave = 1).
///
/// # Panics
/// When `depth` is above [`MAX_DEPTH`].
#[inline]
pub fn points_per_disc(depth: u32) -> i64 {
    WAVE_POINTS[depth as usize]
}
