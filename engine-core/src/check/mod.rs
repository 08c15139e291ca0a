//! Gates that have to hold before a held-out seed is opened: one function each, which is given what
//! it checks. The library passes its own parts; a test passes a broken one and sees the gate fail.
//!
//! Promised: every gate says what it compared and how much of it; numbers that are a function of the
//! program alone (probe positions, bucket counts, scores and work of the determinism games, the
//! training fingerprint) are in the evidence, so that they can be compared with published logs.
//! A gate that compared nothing has not passed, and neither has a sheet with a missing gate.
//!
//! | room | gates |
//! | --- | --- |
//! | [`patterns`] | 1 `codec-vs-horner`, 2 `row-words-vs-accessor`, 3 `features-vs-reference`, 4 `fill-bucket-vs-reference` |
//! | [`promotion`] | 5 `promotion-preserves-value` |
//! | [`values`] | 6 `information-boundary`, 7 `reflection`, 8 `direct-policy-legality`, 13 `finite-and-profile` |
//! | [`playing`] | 9 `leaf-in-search-determinism`, 10 `leaf-in-d4-search-determinism` |
//! | [`training`] | 12 `serial-training-determinism` |
//! | [`identity`] | no gate: the hash that binds a run to its engine |

pub mod identity;
mod outcome;
pub mod patterns;
pub mod playing;
pub mod probes;
pub mod promotion;
mod reference;
mod scattered;
pub mod training;
pub mod values;

pub use identity::{EngineIdentity, IdentityError};
pub use outcome::CheckOutcome;
pub use probes::{Probe, probes};
pub use scattered::Scattered;

use std::cell::OnceCell;

use serde::{Deserialize, Serialize};

use crate::leaf::Leaf;
use crate::ntuple::direct::DirectPolicy;
use crate::ntuple::layout::Fill;
use crate::ntuple::leaf::TableLeaf;
use crate::ntuple::promote::warm_start;
use crate::ntuple::tables::STUDY_START;
use crate::ntuple::{Features, FrozenTables, Layout, Weights, codec};
use crate::progress::{Progress, StopToken};

use playing::{Trial, leaf_in_search};

/// How much the gates compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// Seconds: every gate, with fewer words and shorter games.
    Quick,
    /// Everything, as before a held-out block is opened.
    Full,
}

/// What the gates are run on.
#[derive(Debug, Clone, Copy)]
pub struct GateRun<'a> {
    /// Layouts of the run; the fixed ones of [`patterns::LAYOUTS`] are always checked.
    pub layouts: &'a [Layout],
    /// Trained tables; without them the games are played on fresh tables of the studies' layout.
    pub tables: Option<&'a FrozenTables>,
    /// How much is compared.
    pub effort: Effort,
}

/// The answers of a run of gates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateSheet {
    /// How much was compared.
    pub effort: Effort,
    /// Gates that should have been run.
    pub planned: usize,
    /// One answer per gate that was run, in order.
    pub outcomes: Vec<CheckOutcome>,
}

impl GateSheet {
    /// Whether every planned gate was run and passed.
    pub fn passed(&self) -> bool {
        self.outcomes.len() == self.planned && self.outcomes.iter().all(|outcome| outcome.passed)
    }
}

type Gate<'a> = Box<dyn FnOnce() -> CheckOutcome + 'a>;

/// Layout of fresh tables: the one a trainer starts from when it is told nothing.
const STUDY_LAYOUT: &str = "rows,cols,win23,win32,phase=cols";

/// Runs all gates. `progress` advances by one per gate; `stop` is looked at between gates.
pub fn run_all(run: &GateRun<'_>, progress: &dyn Progress, stop: &StopToken) -> GateSheet {
    let probes = probes();
    let source = OnceCell::new();
    let mut gates = program_gates(run, &probes, &source);
    match run.tables {
        Some(tables) => gates.extend(value_gates(tables, &probes)),
        // Fresh tables would hide a wrong index from these gates: all their entries are equal.
        None => match STUDY_LAYOUT.parse() {
            Ok(layout) => gates.extend(value_gates(Scattered::new(layout), &probes)),
            Err(error) => gates.push(impossible("information-boundary", &error)),
        },
    }
    gates.extend(game_gates(run.tables, run.effort, &probes));
    gates.push(Box::new(training::serial_training));
    carry_out(gates, run.effort, progress, stop)
}

/// Runs the gates that depend on tables (6 to 10 and 13) on `tables`: what is due again for every
/// file that was frozen after [`run_all`].
pub fn run_tables(
    tables: &FrozenTables,
    effort: Effort,
    progress: &dyn Progress,
    stop: &StopToken,
) -> GateSheet {
    let probes = probes();
    let mut gates = value_gates(tables, &probes);
    gates.extend(game_gates(Some(tables), effort, &probes));
    carry_out(gates, effort, progress, stop)
}

fn carry_out(
    gates: Vec<Gate<'_>>,
    effort: Effort,
    progress: &dyn Progress,
    stop: &StopToken,
) -> GateSheet {
    let planned = gates.len();
    let mut outcomes = Vec::with_capacity(planned);
    for gate in gates {
        if stop.is_stopped() {
            break;
        }
        outcomes.push(gate());
        progress.advance(1);
    }
    GateSheet { effort, planned, outcomes }
}

fn impossible<'a>(name: &str, error: &dyn std::fmt::Display) -> Gate<'a> {
    let outcome = CheckOutcome::impossible(name, error);
    Box::new(move || outcome)
}

/// Gates 1 to 5: they depend on the program and the layouts only.
fn program_gates<'a>(
    run: &GateRun<'a>,
    probes: &'a [Probe],
    source: &'a OnceCell<Result<FrozenTables, String>>,
) -> Vec<Gate<'a>> {
    let (words, every_entry) = match run.effort {
        Effort::Quick => (patterns::CODEC_WORDS / 10, false),
        Effort::Full => (patterns::CODEC_WORDS, true),
    };
    let mut gates: Vec<Gate<'a>> = vec![
        Box::new(move || patterns::codec_vs_horner(words, |word| u64::from(codec::line(word)))),
        Box::new(|| patterns::row_words_vs_accessor(probes, codec::row_words)),
    ];
    let fixed = patterns::LAYOUTS.into_iter().map(str::to_owned);
    let given = run.layouts.iter().chain(run.tables.map(FrozenTables::layout));
    let mut texts: Vec<String> = Vec::new();
    for text in fixed.chain(given.map(Layout::to_string)) {
        let name = "features-vs-reference";
        match text.parse::<Layout>() {
            // Given layouts are often among the fixed ones: one line each.
            Ok(layout) if !texts.contains(&layout.to_string()) => {
                texts.push(layout.to_string());
                gates.push(Box::new(move || {
                    patterns::features_vs_reference(&layout, probes, |board, moves_remaining| {
                        let mut features = Features::new();
                        layout.features(board, moves_remaining, &mut features);
                        features.as_slice().to_vec()
                    })
                }));
            }
            Ok(_) => {}
            Err(error) => gates.push(impossible(&format!("{name}[{text}]"), &error)),
        }
    }
    for fill in [Fill::Occ5, Fill::Hgt5] {
        let text = format!("rows,fill={}", fill.name());
        match text.parse::<Layout>() {
            Ok(layout) => gates.push(Box::new(move || {
                patterns::fill_bucket_vs_reference(fill, probes, |board| layout.fill_bucket(board))
            })),
            Err(error) => gates.push(impossible("fill-bucket-vs-reference", &error)),
        }
    }
    for fill in [Fill::Occ5, Fill::Hgt5] {
        gates.push(Box::new(move || match source.get_or_init(promotion::source) {
            Ok(source) => promotion::promotion_preserves_value(
                fill,
                source,
                probes,
                every_entry,
                |source, layout| {
                    warm_start(source, layout, STUDY_START).map_err(|error| error.to_string())
                },
            ),
            Err(error) => CheckOutcome::impossible("promotion-preserves-value", error),
        }));
    }
    gates
}

/// Gates 6, 7 and 8 on one set of weights.
fn value_gates<'a, W: Weights + Copy + 'a>(weights: W, probes: &'a [Probe]) -> Vec<Gate<'a>> {
    let value = move |probe: &Probe| TableLeaf::new(weights).value(&probe.state);
    let decide = move || {
        let mut policy = DirectPolicy::new(weights);
        move |probe: &Probe| policy.decide(&probe.state).action
    };
    vec![
        Box::new(move || values::information_boundary(probes, value, decide())),
        Box::new(move || values::reflection(probes, value, decide())),
        Box::new(move || values::direct_policy_legality(probes, decide())),
    ]
}

/// Gates 9, 10 and 13 on `tables`, or on fresh ones.
fn game_gates<'a>(
    tables: Option<&'a FrozenTables>,
    effort: Effort,
    probes: &'a [Probe],
) -> Vec<Gate<'a>> {
    let (shallow, deep) = match effort {
        Effort::Quick => (Trial::depth3().shortened(2, 20), Trial::depth4().shortened(1, 3)),
        Effort::Full => (Trial::depth3(), Trial::depth4()),
    };
    vec![
        on_tables("leaf-in-search-determinism", tables, move |name, tables| {
            leaf_in_search(name, &shallow, TableLeaf::new(tables))
        }),
        on_tables("leaf-in-d4-search-determinism", tables, move |name, tables| {
            leaf_in_search(name, &deep, TableLeaf::new(tables))
        }),
        on_tables("finite-and-profile", tables, |_, tables| {
            values::finite_and_profile(probes, tables)
        }),
    ]
}

/// A gate on `tables`, or on fresh tables that exist only while it runs.
fn on_tables<'a>(
    name: &'static str,
    tables: Option<&'a FrozenTables>,
    gate: impl FnOnce(&str, &FrozenTables) -> CheckOutcome + 'a,
) -> Gate<'a> {
    Box::new(move || match tables {
        Some(tables) => gate(name, tables),
        None => match fresh(STUDY_LAYOUT) {
            Ok(tables) => gate(name, &tables),
            Err(error) => CheckOutcome::impossible(name, error),
        },
    })
}

fn fresh(layout: &str) -> Result<FrozenTables, String> {
    let layout = layout.parse().map_err(|error| format!("{layout}: {error}"))?;
    FrozenTables::fresh(layout, STUDY_START).map_err(|error| error.to_string())
}
