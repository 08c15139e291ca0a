//! Values of lanes over tables kept in lines: the one place where entries are read unchecked.
//!
//! Adding up is bound by loads: a directory word and then a weight per entry, and both miss the
//! nearest caches on tables that have learned for long. So while the entries of some tables are added,
//! the lines of the next ones are looked up and asked for, and the directory words of those behind
//! them are asked for: more misses are under way than the processor would start by itself.
#![expect(
    unsafe_code,
    reason = "a bounds check per load is a third of the work of the hottest loop"
)]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::Layout;
use super::lanes::{LANES, Lanes};
use super::lines::{LINE, Lines};
use super::pages;
use crate::instructions::{InstructionSet, per_instruction_set};

/// Tables that are looked up together.
const AHEAD: usize = 16;

/// The sum of every lane's entries in table order, each addition rounded to `f32`, over the tables of
/// `layout`, which are kept in `lines`.
///
/// # Panics
/// When the lanes were filled for another layout.
pub(super) fn lane_values(
    layout: &Layout,
    lines: Lines<'_>,
    lanes: &Lanes,
    out: &mut [f32; LANES],
) {
    assert_eq!(lanes.layout(), Some(layout), "the lanes belong to other tables");
    assert!(lines.directory.len() as u64 * LINE as u64 >= layout.entries());
    sum_on(InstructionSet::active(), lines, lanes, out);
}

per_instruction_set! {
    /// [`lane_values`] with the instructions of `set`, unchecked.
    fn sum_on(lines: Lines<'_>, lanes: &Lanes, out: &mut [f32; LANES]) = sum;
}

#[inline(always)]
fn sum(lines: Lines<'_>, lanes: &Lanes, out: &mut [f32; LANES]) {
    match lanes.filled() {
        0..=4 => sum_of::<4>(lines, lanes, out),
        5..=8 => sum_of::<8>(lines, lanes, out),
        9..=12 => sum_of::<12>(lines, lanes, out),
        _ => sum_of::<LANES>(lines, lanes, out),
    }
}

/// The sums of the first `N` lanes.
#[inline(always)]
fn sum_of<const N: usize>(lines: Lines<'_>, lanes: &Lanes, out: &mut [f32; LANES]) {
    let (first, offsets) = lanes.entries();
    let mut chunks = first.chunks(AHEAD).zip(offsets.chunks(AHEAD));
    let mut sums = [0.0; N];
    let mut numbers = [[[0; N]; AHEAD]; 2];
    // Three chunks are on their way: asked for, looked up, added.
    let none = ([].as_slice(), [].as_slice());
    let (mut asked, mut found): (Tables<'_>, Tables<'_>) = (none, none);
    for turn in 0.. {
        let chunk = chunks.next().unwrap_or(none);
        let [even, odd] = &mut numbers;
        let (numbers, next) = if turn % 2 == 0 { (even, odd) } else { (odd, even) };
        for (&first, offsets) in chunk.0.iter().zip(chunk.1) {
            words_of::<N>(lines, first, offsets).for_each(pages::prefetch);
        }
        for ((&first, offsets), numbers) in asked.0.iter().zip(asked.1).zip(next) {
            for (number, word) in numbers.iter_mut().zip(words_of::<N>(lines, first, offsets)) {
                *number = word.load(Relaxed);
                pages::prefetch(line_of(lines, *number));
            }
        }
        add(lines, found.1, numbers, &mut sums);
        if asked.0.is_empty() && chunk.0.is_empty() {
            break;
        }
        (found, asked) = (asked, chunk);
    }
    out[..N].copy_from_slice(&sums);
}

/// First entries of some tables, and the places of all lanes in them.
type Tables<'a> = (&'a [u64], &'a [[u32; LANES]]);

/// The directory words of the entries of one table.
#[inline(always)]
fn words_of<'a, const N: usize>(
    lines: Lines<'a>,
    first: u64,
    offsets: &[u32; LANES],
) -> impl Iterator<Item = &'a AtomicU32> {
    // A table starts with a line: the patterns of every family are a multiple of sixteen.
    let directory = &lines.directory[(first / LINE as u64) as usize..];
    offsets[..N].iter().map(move |&offset| {
        let line = offset as usize / LINE;
        debug_assert!(line < directory.len());
        // SAFETY: cells of a board are digits 0..=9, so an offset stays inside its table of the
        // lanes' layout, and the directory has a word for every line of that layout.
        unsafe { directory.get_unchecked(line) }
    })
}

/// Adds the entries of tables that were looked up.
#[inline(always)]
fn add<const N: usize>(
    lines: Lines<'_>,
    offsets: &[[u32; LANES]],
    numbers: &[[u32; N]; AHEAD],
    sums: &mut [f32; N],
) {
    for (offsets, numbers) in offsets.iter().zip(numbers) {
        for lane in 0..N {
            let word = &line_of(lines, numbers[lane])[offsets[lane] as usize % LINE];
            sums[lane] += f32::from_bits(word.load(Relaxed) ^ lines.start);
        }
    }
}

/// The weights of line `number`, which must be a word of the directory.
#[inline(always)]
fn line_of(lines: Lines<'_>, number: u32) -> &[AtomicU32; LINE] {
    debug_assert!((number as usize) < lines.weights.len());
    // SAFETY: every word of a directory is below the number of lines, always; see `Lines`.
    unsafe { lines.weights.get_unchecked(number as usize) }
}
