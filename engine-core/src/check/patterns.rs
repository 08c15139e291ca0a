//! Gates 1 to 4: codes, row words, entry numbers and fill buckets against their definitions.

use std::collections::HashSet;

use super::outcome::{CheckOutcome, Comparison};
use super::probes::Probe;
use super::reference;
use crate::drop7::Board;
use crate::drop7::chance::Mulberry32;
use crate::ntuple::Layout;
use crate::ntuple::layout::Fill;

/// Words that gate 1 compares at full effort.
pub const CODEC_WORDS: u32 = 2_000_000;

/// The layouts of gate 3, in the order of its lines.
pub const LAYOUTS: [&str; 14] = [
    "rows",
    "cols",
    "win23",
    "win32",
    "win24",
    "win42",
    "rows,cols,win23,win32,phase=none",
    "rows,cols,win23,win32,phase=cols",
    "rows,cols,win23,win32,phase=all",
    "rows,cols,win23,win32,win24,win42,phase=all",
    "cols,fill=occ5",
    "rows,win23,phase=none,fill=hgt5",
    "rows,cols,win23,win32,phase=all,fill=occ5",
    "rows,cols,win23,win32,phase=all,fill=hgt5",
];

/// Gate 1: `code` of random words of seven digits is their base-10 number.
pub fn codec_vs_horner(words: u32, code: impl Fn(u32) -> u64) -> CheckOutcome {
    let mut compared = Comparison::new();
    let mut random = Mulberry32::new(0x0c0d_ec01);
    for _ in 0..words {
        let word = (0..7).fold(0, |word, nibble| word | (random.next_bits() % 10) << (4 * nibble));
        let expected = reference::line_code(word);
        let ours = code(word);
        compared.check(ours == expected, || format!("{word:#09x} has code {ours}, not {expected}"));
    }
    let largest = code(0x0999_9999);
    compared.check(largest == 9_999_999, || format!("0x9999999 has code {largest}, not 9999999"));
    compared.outcome("codec-vs-horner", |n| {
        format!("{} random words of seven digits and 0x9999999 have their base-10 code", n - 1)
    })
}

/// Gate 2: `rows` gathers the row words of a board, the cell of column c in nibble c.
pub fn row_words_vs_accessor(probes: &[Probe], rows: impl Fn(&Board) -> [u32; 7]) -> CheckOutcome {
    let mut compared = Comparison::new();
    for probe in probes {
        let board = probe.state.board();
        let expected: [u32; 7] = std::array::from_fn(|row| {
            (0..7).fold(0, |word, column| word | u32::from(board.cell(row, column)) << (4 * column))
        });
        let ours = rows(board);
        compared.check(ours == expected, || format!("{board:?} has rows {ours:x?}"));
    }
    compared.outcome("row-words-vs-accessor", |n| {
        format!("the 7 row words of {n} positions equal their cells")
    })
}

/// Gate 3: `extract` gives the entries of a layout, for every probe at all five phases.
pub fn features_vs_reference(
    layout: &Layout,
    probes: &[Probe],
    extract: impl Fn(&Board, u8) -> Vec<u64>,
) -> CheckOutcome {
    let mut compared = Comparison::new();
    let mut total = 0;
    for probe in probes {
        let board = probe.state.board();
        for moves_remaining in 1..=5 {
            let (expected, entries) = reference::entries(layout, board, moves_remaining);
            total = entries;
            let ours = extract(board, moves_remaining);
            let distinct: HashSet<_> = ours.iter().collect();
            compared.check(
                ours == expected
                    && distinct.len() == ours.len()
                    && ours.len() == layout.active()
                    && ours.iter().all(|&index| index < layout.entries()),
                || {
                    let at = ours.iter().zip(&expected).position(|(a, b)| a != b);
                    format!(
                        "{board:?} with {moves_remaining} drops left: {} indices, {} distinct, \
                         first difference at {at:?}",
                        ours.len(),
                        distinct.len(),
                    )
                },
            );
        }
    }
    compared.check(total == layout.entries() || probes.is_empty(), || {
        format!("the layout says {} entries, its tables hold {total}", layout.entries())
    });
    compared.outcome(&format!("features-vs-reference[{layout}]"), |_| {
        format!(
            "{} positions x 5 phases: {} distinct indices each, equal to the cell-by-cell ones, \
             below {total}",
            probes.len(),
            layout.active(),
        )
    })
}

/// Gate 4: `bucket` is the bucket of a board and of its mirror image, and all five are reached.
pub fn fill_bucket_vs_reference(
    fill: Fill,
    probes: &[Probe],
    bucket: impl Fn(&Board) -> u64,
) -> CheckOutcome {
    let mut compared = Comparison::new();
    let mut counts = [0_u64; 5];
    for probe in probes {
        let board = probe.state.board();
        let expected = reference::bucket(fill, board);
        let (ours, mirrored) = (bucket(board), bucket(&board.mirror()));
        compared.check(ours == expected && mirrored == expected, || {
            format!("{board:?} is in bucket {ours}, its mirror image in {mirrored}, not {expected}")
        });
        if let Some(count) = counts.get_mut(ours as usize) {
            *count += 1;
        }
    }
    compared.check(!counts.contains(&0), || format!("buckets {counts:?}: one was not reached"));
    compared.outcome(&format!("fill-bucket-vs-reference[{}]", fill.name()), |n| {
        format!("{} positions and their mirror images, buckets {counts:?}", n - 1)
    })
}
