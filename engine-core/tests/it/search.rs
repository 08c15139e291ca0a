//! The search over the frozen fair leaf against the recorded one (`search.json`): column values bit
//! for bit, actions, and every count of logical work.

use engine_core::drop7::chance::{Mulberry32, POLICY_SEED};
use engine_core::drop7::{Board, CENTER_FIRST, PublicState, resolve};
use engine_core::leaf::{FairLeaf, Leaf};
use engine_core::search::{Decision, ParallelSearcher, SearchConfig, Searcher, completion_bound};
use proptest::prelude::*;
use serde::Deserialize;
use std::collections::BTreeMap;

use crate::golden_dir::golden;
use crate::naive::any_state;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    work_bound: BTreeMap<String, u64>,
    roots: Vec<Root>,
    work_limited: Vec<Limited>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Root {
    tag: String,
    board: [u32; 7],
    cells: String,
    next_disc: u8,
    moves_remaining: u8,
    mirrored_canonical: bool,
    canonical_cells: String,
    results: Vec<Results>,
}

impl Root {
    fn state(&self) -> PublicState {
        let board = Board::from_columns(self.board).expect("a board");
        assert_eq!(board.to_string(), self.cells);
        let (canonical, mirrored) = board.canonical();
        assert_eq!(mirrored, self.mirrored_canonical, "{}", self.tag);
        assert_eq!(canonical.to_string(), self.canonical_cells, "{}", self.tag);
        PublicState::new(board, self.next_disc, self.moves_remaining).expect("a state")
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Results {
    depth: u32,
    strata: u32,
    columns: Vec<Column>,
    chosen: usize,
    fixed_depth_no_table_work: u64,
    deepening_no_table: Metrics,
    deepening_table: WithTable,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Column {
    canonical_col: usize,
    col: usize,
    bits: String,
    value: f64,
    work: u64,
    nodes: u64,
    leaf_calls: u64,
    move_calls: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WithTable {
    capacity: usize,
    from_depth: u32,
    metrics: Metrics,
}

#[derive(Deserialize, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Metrics {
    action: i64,
    completed_depth: u32,
    work: u64,
    nodes: u64,
    leaf_calls: u64,
    move_calls: u64,
    cache_hits: u64,
}

impl From<Decision> for Metrics {
    fn from(decision: Decision) -> Self {
        Self {
            action: decision.action.map_or(-1, |column| column as i64),
            completed_depth: decision.completed_depth,
            work: decision.work,
            nodes: decision.nodes,
            leaf_calls: decision.leaf_calls,
            move_calls: decision.move_calls,
            cache_hits: decision.cache_hits,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Limited {
    tag: String,
    depth: u32,
    strata: u32,
    maximum_work: u64,
    capacity: usize,
    action: i64,
    completed_depth: u32,
    work: u64,
    nodes: u64,
    leaf_calls: u64,
    move_calls: u64,
}

fn check_columns(root: &Root, results: &Results) {
    let state = root.state();
    let Results { depth, strata, .. } = *results;
    let at = format!("{} d{depth}s{strata}", root.tag);
    let config = SearchConfig::bounded(depth, strata).expect("searchable");
    let found = Searcher::new(config, FairLeaf).column_values(&state, depth);
    assert_eq!(found.len(), results.columns.len(), "{at}: columns");
    let mut best: Option<(f64, usize)> = None;
    for (found, recorded) in found.iter().zip(&results.columns) {
        let at = format!("{at} column {}", recorded.col);
        assert_eq!(found.column, recorded.col, "{at}");
        assert_eq!(found.canonical_column, recorded.canonical_col, "{at}");
        assert_eq!(format!("{:016x}", found.value.to_bits()), recorded.bits, "{at}");
        assert_eq!(found.value.to_bits(), recorded.value.to_bits(), "{at}");
        assert_eq!(found.work, recorded.work, "{at}: work");
        assert_eq!(found.nodes, recorded.nodes, "{at}: nodes");
        assert_eq!(found.leaf_calls, recorded.leaf_calls, "{at}: leaf calls");
        assert_eq!(found.move_calls, recorded.move_calls, "{at}: move calls");
        if best.is_none_or(|(value, _)| found.value > value) {
            best = Some((found.value, found.column));
        }
    }
    assert_eq!(best.map(|(_, column)| column), Some(results.chosen), "{at}: chosen");
    let work: u64 = found.iter().map(|column| column.work).sum();
    assert_eq!(work, results.fixed_depth_no_table_work, "{at}: work");
}

fn check_decisions(root: &Root, results: &Results) {
    let state = root.state();
    let Results { depth, strata, .. } = *results;
    let at = format!("{} d{depth}s{strata}", root.tag);
    let bounded = SearchConfig::bounded(depth, strata).expect("searchable");

    let no_table = SearchConfig { table_from_depth: u32::MAX, ..bounded };
    let found = Metrics::from(Searcher::new(no_table, FairLeaf).decide(&state));
    assert_eq!(found, results.deepening_no_table, "{at}: no table");

    let WithTable { capacity, from_depth, metrics } = &results.deepening_table;
    let table = SearchConfig { table_slots: *capacity, table_from_depth: *from_depth, ..bounded };
    let mut searcher = Searcher::new(table, FairLeaf);
    assert_eq!(Metrics::from(searcher.decide(&state)), *metrics, "{at}: table of {capacity}");
    if depth <= 2 {
        let again = Metrics::from(searcher.decide(&state));
        assert_eq!(again, *metrics, "{at}: a second decision of the same searcher");
    }
}

fn each_result(wanted: impl Fn(u32, u32) -> bool, check: impl Fn(&Root, &Results)) {
    let Some(file) = golden::<File>("search.json") else { return };
    let mut checked = 0;
    for root in &file.roots {
        for results in root.results.iter().filter(|r| wanted(r.depth, r.strata)) {
            check(root, results);
            checked += 1;
        }
    }
    assert!(checked > 0, "the file must hold such a search");
}

/// Leaves and moves of the largest pass: what a search costs here.
fn is_small(depth: u32, strata: u32) -> bool {
    completion_bound(depth, strata).is_some_and(|work| work < 1_000_000)
}

#[test]
fn column_values_and_counts_equal_the_recorded_ones() {
    each_result(is_small, check_columns);
}

#[test]
fn decisions_and_their_counts_equal_the_recorded_ones() {
    each_result(is_small, check_decisions);
}

#[test]
#[ignore = "the depth-4 searches take minutes"]
fn large_column_values_and_counts_equal_the_recorded_ones() {
    each_result(|depth, strata| !is_small(depth, strata), check_columns);
}

#[test]
#[ignore = "the depth-4 searches take minutes"]
fn large_decisions_and_their_counts_equal_the_recorded_ones() {
    each_result(|depth, strata| !is_small(depth, strata), check_decisions);
}

#[test]
fn decisions_under_a_work_limit_stop_where_the_recorded_ones_do() {
    let Some(file) = golden::<File>("search.json") else { return };
    assert!(!file.work_limited.is_empty(), "the file must hold limited decisions");
    for case in &file.work_limited {
        let root = file.roots.iter().find(|root| root.tag == case.tag).expect("a root of the file");
        let config = SearchConfig {
            work_limit: case.maximum_work,
            table_slots: case.capacity,
            ..SearchConfig::bounded(case.depth, case.strata).expect("searchable")
        };
        let at = format!("{} limit {}", case.tag, case.maximum_work);
        let found = Searcher::new(config, FairLeaf).decide(&root.state());
        assert_eq!(found.action.map_or(-1, |column| column as i64), case.action, "{at}: action");
        assert_eq!(found.completed_depth, case.completed_depth, "{at}: completed depth");
        assert_eq!(found.work, case.work, "{at}: work");
        assert_eq!(found.nodes, case.nodes, "{at}: nodes");
        assert_eq!(found.leaf_calls, case.leaf_calls, "{at}: leaf calls");
        assert_eq!(found.move_calls, case.move_calls, "{at}: move calls");
    }
}

#[test]
fn the_completion_bound_equals_the_recorded_one() {
    let Some(file) = golden::<File>("search.json") else { return };
    assert!(!file.work_bound.is_empty(), "the file must hold bounds");
    for (name, bound) in &file.work_bound {
        let numbers = name.strip_prefix('d').and_then(|rest| rest.split_once('s'));
        let (depth, strata) = numbers.expect("a name like d3s7");
        let (depth, strata) = (depth.parse().expect("depth"), strata.parse().expect("strata"));
        assert_eq!(completion_bound(depth, strata), Some(*bound), "{name}");
        let config = SearchConfig::bounded(depth, strata).expect("searchable");
        assert_eq!(config.work_limit, bound + 1, "{name}");
        assert_eq!(config.policy_seed, POLICY_SEED, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// A limit that could bind takes the walk that looks before every step; where it does not
    /// bind, nothing may differ, and where it does, the last whole pass decides.
    #[test]
    fn a_work_limit_changes_where_a_decision_stops_and_nothing_else(
        state in any_state(), strata in 1_u32..=8, slots in 1_usize..300, share in 0.0_f64..1.0
    ) {
        let free = SearchConfig {
            table_slots: slots,
            ..SearchConfig::bounded(2, strata).expect("searchable")
        };
        let whole = Searcher::new(free, FairLeaf).decide(&state);
        prop_assert_eq!(whole.work, whole.leaf_calls + whole.move_calls);

        let just_enough = SearchConfig { work_limit: whole.work + 1, ..free };
        prop_assert_eq!(Searcher::new(just_enough, FairLeaf).decide(&state), whole);

        let limit = (whole.work as f64 * share) as u64;
        let limited = SearchConfig { work_limit: limit, ..free };
        let found = Searcher::new(limited, FairLeaf).decide(&state);
        prop_assert!(found.work <= limit);
        if found.completed_depth == 0 {
            let legal = |column: &usize| state.board().is_legal(*column);
            let order = if state.canonical().1 { [3, 4, 2, 5, 1, 6, 0] } else { CENTER_FIRST };
            prop_assert_eq!(found.action, order.into_iter().find(legal));
        } else {
            let shallow = SearchConfig { depth: found.completed_depth, ..free };
            let shallow = Searcher::new(shallow, FairLeaf).decide(&state);
            prop_assert_eq!(found.action, shallow.action);
            prop_assert!(found.work >= shallow.work);
        }
    }

    /// The table and what earlier decisions left behind change counts at most, never a value.
    #[test]
    fn an_action_is_the_best_column_whatever_was_searched_before(
        before in any_state(), state in any_state(), strata in 1_u32..=7, slots in 1_usize..5000
    ) {
        let config = SearchConfig {
            table_slots: slots,
            ..SearchConfig::bounded(2, strata).expect("searchable")
        };
        let mut used = Searcher::new(config, FairLeaf);
        used.decide(&before);
        let decision = used.decide(&state);
        prop_assert_eq!(decision, Searcher::new(config, FairLeaf).decide(&state));
        let mut best: Option<(f64, usize)> = None;
        for column in used.column_values(&state, 2) {
            if best.is_none_or(|(value, _)| column.value > value) {
                best = Some((column.value, column.column));
            }
        }
        prop_assert_eq!(decision.action, best.map(|(_, column)| column));
        prop_assert_eq!(decision.completed_depth, if best.is_some() { 2 } else { 0 });
    }
}

#[test]
fn a_position_without_a_legal_column_and_a_finished_game_have_no_action() {
    let full = Board::from_text(&"8".repeat(49)).expect("full");
    let stuck = PublicState::new(full, 1, 5).expect("in range");
    let config = SearchConfig::bounded(2, 7).expect("searchable");
    let mut searcher = Searcher::new(config, FairLeaf);
    assert_eq!(searcher.decide(&stuck), Decision::default());
    assert!(searcher.column_values(&stuck, 2).is_empty());

    let last = Board::from_text(&format!("8888880{}", "8".repeat(42)));
    let last = PublicState::new(last.expect("one gap"), 1, 5).expect("in range");
    let over = resolve(&last, 6, &mut Mulberry32::new(1)).expect("legal").after;
    assert!(over.is_over());
    assert_eq!(searcher.decide(&over), Decision::default());
    assert!(searcher.column_values(&over, 2).is_empty());
    assert_eq!(FairLeaf.value(&over).to_bits(), (-2_500_000.0_f64).to_bits());
}

#[test]
fn a_decision_on_several_cores_has_the_same_values() {
    let Some(file) = golden::<File>("search.json") else { return };
    for workers in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build().unwrap();
        for depth in 1..=3 {
            let config = SearchConfig::bounded(depth, 7).unwrap();
            let parallel = ParallelSearcher::new(config, FairLeaf);
            let mut serial = Searcher::new(config, FairLeaf);
            for root in file.roots.iter().take(if depth == 3 { 6 } else { 40 }) {
                let state = root.state();
                let found = parallel.decide(&pool, &state);
                assert_eq!(found.action, serial.decide(&state).action);
                let values: Vec<(usize, u64)> =
                    found.values.iter().map(|&(column, value)| (column, value.to_bits())).collect();
                let expected: Vec<(usize, u64)> = serial
                    .column_values(&state, depth)
                    .iter()
                    .map(|column| (column.column, column.value.to_bits()))
                    .collect();
                assert_eq!(values, expected, "depth {depth}, {workers} workers");
            }
        }
    }
}
