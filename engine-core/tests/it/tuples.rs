//! Layouts and features against `tuples.json` and against cells read one by one.

use std::collections::{BTreeMap, HashSet};

use engine_core::drop7::Board;
use engine_core::drop7::board::BoardError;
use engine_core::ntuple::layout::{Family, LayoutError};
use engine_core::ntuple::{Features, Layout, codec};
use proptest::prelude::*;
use serde::Deserialize;

use crate::golden_dir::golden;

#[derive(Deserialize)]
struct Golden {
    layouts: Vec<GoldenLayout>,
    boards: Vec<GoldenBoard>,
}

#[derive(Deserialize)]
struct GoldenLayout {
    spec: String,
    entries: u64,
    active: usize,
    families: Vec<GoldenFamily>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoldenFamily {
    family: String,
    tables: u64,
    entries_per_table: u64,
    first_entry: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoldenBoard {
    id: String,
    board: String,
    moves_remaining: u8,
    mirrored_is_smaller: bool,
    canonical: String,
    occupied: u32,
    tallest_column_count: u32,
    occ5: u64,
    hgt5: u64,
    features: BTreeMap<String, Vec<u64>>,
    #[serde(default)]
    phase_all_by_moves_remaining: BTreeMap<String, Vec<u64>>,
}

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn features(layout: &Layout, board: &Board, moves_remaining: u8) -> Features {
    let mut features = Features::new();
    layout.features(board, moves_remaining, &mut features);
    features
}

#[test]
fn layouts_are_the_golden_layouts() {
    let Some(golden) = golden::<Golden>("tuples.json") else { return };
    for expected in &golden.layouts {
        let parsed = layout(&expected.spec);
        assert_eq!(parsed.to_string(), expected.spec);
        assert_eq!(parsed.entries(), expected.entries, "{}", expected.spec);
        assert_eq!(parsed.active(), expected.active, "{}", expected.spec);
        let families: Vec<_> = parsed.families().collect();
        assert_eq!(families.len(), expected.families.len(), "{}", expected.spec);
        for (family, expected) in families.into_iter().zip(&expected.families) {
            let place = parsed.place(family).unwrap();
            assert_eq!(family.name(), expected.family);
            assert_eq!(family.tables(), expected.tables);
            assert_eq!(place.stride, expected.entries_per_table);
            assert_eq!(place.first, expected.first_entry);
        }
    }
}

#[test]
fn features_are_the_golden_features() {
    let Some(golden) = golden::<Golden>("tuples.json") else { return };
    let mut packed = 0;
    let keyed = golden
        .layouts
        .iter()
        .map(|layout| &layout.spec)
        .find(|spec| spec.contains("phase=all") && !spec.contains("win24"))
        .expect("the file describes such a layout");
    for expected in &golden.boards {
        let id = &expected.id;
        let cells = columns(&expected.board);
        let mut found = Features::new();
        for (spec, indices) in &expected.features {
            layout(spec).features_of_cells(&cells, expected.moves_remaining, &mut found).unwrap();
            assert_eq!(found.as_slice(), indices, "{id} {spec}");
        }
        // This map does not name its layout: it is the narrow one in which every family is keyed.
        for (moves_remaining, indices) in &expected.phase_all_by_moves_remaining {
            layout(keyed)
                .features_of_cells(&cells, moves_remaining.parse().unwrap(), &mut found)
                .unwrap();
            assert_eq!(found.as_slice(), indices, "{id} with {moves_remaining} drops left");
        }
        // A board of a game is packed; the file also has arrangements that no game reaches.
        let Ok(board) = Board::from_text(&expected.board) else { continue };
        packed += 1;
        let (canonical, mirrored) = board.canonical();
        assert_eq!(mirrored, expected.mirrored_is_smaller, "{id}");
        assert_eq!(canonical.to_string(), expected.canonical, "{id}");
        assert_eq!(board.occupied(), expected.occupied, "{id}");
        let tallest = (0..7).map(|c| board.height(c)).max();
        assert_eq!(tallest, Some(expected.tallest_column_count), "{id}");
        assert_eq!(layout("rows,fill=occ5").fill_bucket(&board), expected.occ5, "{id}");
        assert_eq!(layout("rows,fill=hgt5").fill_bucket(&board), expected.hgt5, "{id}");
        for (spec, indices) in &expected.features {
            let layout = layout(spec);
            let mut found = Features::new();
            layout.features(&board, expected.moves_remaining, &mut found);
            assert_eq!(found.as_slice(), indices, "{id} {spec}");
            assert_eq!(found, features(&layout, &board.mirror(), expected.moves_remaining));
        }
    }
    assert!(packed > 0, "no board of the file is packed");
}

fn columns(text: &str) -> [u32; 7] {
    let mut words = [0; 7];
    for (i, digit) in text.bytes().enumerate() {
        words[i % 7] |= u32::from(digit - b'0') << (4 * (6 - i / 7));
    }
    words
}

#[test]
fn cells_that_no_board_has_are_refused_with_the_column() {
    let mut found = Features::new();
    for word in [0xa000, 0x1000_0000] {
        let cells = [0, 0, word, 0, 0, 0, 0];
        let error = layout("rows").features_of_cells(&cells, 5, &mut found).unwrap_err();
        assert_eq!(error, BoardError::Cell { column: 2, word });
        assert_eq!(found, Features::new());
    }
}

/// The same indices from cells and sums, sharing no code with the library but the parser.
fn reference(layout: &Layout, board: &Board, moves_remaining: u8) -> Vec<u64> {
    let mut cells: Vec<Vec<u64>> =
        (0..7).map(|r| (0..7).map(|c| u64::from(board.cell(r, c))).collect()).collect();
    let mirror: Vec<Vec<u64>> =
        cells.iter().map(|row| row.iter().rev().copied().collect()).collect();
    if mirror < cells {
        cells = mirror;
    }
    let phase = match moves_remaining {
        0 | 1 => 0,
        2..=5 => u64::from(moves_remaining) - 1,
        _ => 4,
    };
    let heights: Vec<u64> =
        (0..7).map(|c| (0..7).filter(|&r| cells[r][c] != 0).count() as u64).collect();
    let spec = layout.to_string();
    let occupied: u64 = heights.iter().sum();
    let bucket = if spec.contains("occ5") {
        [13, 20, 27, 34].iter().filter(|&&limit| occupied > limit).count() as u64
    } else if spec.contains("hgt5") {
        heights.iter().max().unwrap().saturating_sub(3)
    } else {
        0
    };
    let buckets = if spec.contains("fill=") { 5 } else { 1 };
    let window = |wide: usize, tall: usize, t: usize, c: usize| -> u64 {
        (0..wide)
            .rev()
            .fold(0, |code, dc| (0..tall).fold(code, |code, dr| code * 10 + cells[t + dr][c + dc]))
    };
    let mut tables: Vec<(&str, u64, u64)> = Vec::new();
    for row in &cells {
        tables.push(("rows", 10_000_000, row.iter().rev().fold(0, |code, cell| code * 10 + cell)));
    }
    for c in 0..7 {
        tables.push(("cols", 10_000_000, cells.iter().fold(0, |code, row| code * 10 + row[c])));
    }
    for (name, wide, tall) in [("win23", 2, 3), ("win32", 3, 2), ("win24", 2, 4), ("win42", 4, 2)] {
        let patterns = 10_u64.pow((wide * tall) as u32);
        for c in 0..=7 - wide {
            for t in 0..=7 - tall {
                tables.push((name, patterns, window(wide, tall, t, c)));
            }
        }
    }
    let mut first = 0;
    let mut indices = Vec::new();
    for (name, patterns, code) in tables {
        if !spec.split(',').any(|item| item == name) {
            continue;
        }
        let wide = ["win24", "win42"].contains(&name);
        let keyed =
            spec.contains("phase=all") && !wide || spec.contains("phase=cols") && name == "cols";
        let (phases, phase) = if keyed { (5, phase) } else { (1, 0) };
        indices.push(first + (bucket * phases + phase) * patterns + code);
        first += buckets * phases * patterns;
    }
    assert_eq!(first, layout.entries());
    indices
}

fn any_board() -> impl Strategy<Value = Board> {
    prop::collection::vec(prop::collection::vec(1_u32..=9, 0..=7), 7).prop_map(|columns| {
        let words: Vec<u32> = columns
            .iter()
            .map(|cells| cells.iter().rev().fold(0, |word, cell| word << 4 | cell))
            .collect();
        Board::from_columns(words.try_into().unwrap()).unwrap()
    })
}

pub(crate) fn any_layout() -> impl Strategy<Value = Layout> {
    (1_usize..64, 0..3_usize, 0..3_usize).prop_map(|(families, phase, fill)| {
        let mut items: Vec<&str> = Family::ALL
            .iter()
            .filter(|family| families >> **family as usize & 1 == 1)
            .map(|family| family.name())
            .collect();
        items.push(["phase=none", "phase=cols", "phase=all"][phase]);
        if families < 16 {
            items.push(["fill=none", "fill=occ5", "fill=hgt5"][fill]);
        }
        layout(&items.join(","))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn features_are_what_the_cells_say(
        board in any_board(),
        layout in any_layout(),
        moves_remaining in 0_u8..=7,
    ) {
        let found = features(&layout, &board, moves_remaining);
        prop_assert_eq!(found.as_slice(), reference(&layout, &board, moves_remaining));
        prop_assert_eq!(found.as_slice().len(), layout.active());
        let distinct: HashSet<_> = found.as_slice().iter().collect();
        prop_assert_eq!(distinct.len(), layout.active());
        prop_assert!(found.as_slice().iter().all(|&index| index < layout.entries()));
        prop_assert_eq!(found, features(&layout, &board.mirror(), moves_remaining));
    }

    #[test]
    fn a_line_is_its_digits(digits in prop::collection::vec(0_u32..=9, 7)) {
        let word = digits.iter().rev().fold(0, |word, digit| word << 4 | digit);
        let code = digits.iter().rev().fold(0, |code, digit| code * 10 + digit);
        prop_assert_eq!(codec::line(word), code);
        prop_assert_eq!(codec::quad(word), code % 10_000);
        prop_assert_eq!(codec::triple(word), code % 1_000);
    }

    #[test]
    fn row_words_hold_the_cells(board in any_board()) {
        for (r, word) in codec::row_words(&board).into_iter().enumerate() {
            for c in 0..7 {
                prop_assert_eq!((word >> (4 * c)) & 15, u32::from(board.cell(r, c)));
            }
            prop_assert_eq!(word >> 28, 0);
        }
    }

    #[test]
    fn printing_and_parsing_are_inverse(layout in any_layout()) {
        prop_assert_eq!(layout.to_string().parse::<Layout>().unwrap(), layout);
        let json = serde_json::to_string(&layout).unwrap();
        prop_assert_eq!(json.as_str(), format!("\"{layout}\""));
        prop_assert_eq!(serde_json::from_str::<Layout>(&json).unwrap(), layout);
        prop_assert!(!layout.without_fill().is_filled());
        prop_assert_eq!(layout.without_fill().entries() * layout.buckets(), layout.entries());
    }
}

#[test]
fn a_layout_may_be_written_in_any_order() {
    for (text, canonical) in [
        (" win32 , cols,,rows, phase=all,", "rows,cols,win32,phase=all"),
        ("rows", "rows,phase=none"),
        ("phase=all,rows,phase=cols", "rows,phase=cols"),
        ("fill=hgt5,win23,fill=occ5", "win23,phase=none,fill=occ5"),
        ("win23,fill=occ5,fill=none", "win23,phase=none"),
        ("rows,rows", "rows,phase=none"),
    ] {
        assert_eq!(layout(text).to_string(), canonical);
        assert_eq!(layout(text), layout(canonical));
    }
}

#[test]
fn a_bad_layout_names_the_item_and_what_is_allowed() {
    let unknown = "rows,phase=some".parse::<Layout>().unwrap_err();
    assert_eq!(unknown, LayoutError::UnknownItem { item: "phase=some".to_owned() });
    let text = unknown.to_string();
    assert!(text.contains("phase=some") && text.contains("phase=none|cols|all"), "{text}");

    for text in ["", " , ", "phase=all", "fill=occ5"] {
        let error = text.parse::<Layout>().unwrap_err();
        assert_eq!(error, LayoutError::NoFamily { text: text.to_owned() });
    }

    let wide = "win42,rows,fill=hgt5".parse::<Layout>().unwrap_err();
    assert_eq!(wide, LayoutError::FillWithWide { fill: "hgt5", family: "win42" });
    assert!(wide.to_string().contains("fill=hgt5") && wide.to_string().contains("win42"));

    assert!("Rows".parse::<Layout>().is_err());
    assert!(serde_json::from_str::<Layout>("\"cols,win99\"").is_err());
}
