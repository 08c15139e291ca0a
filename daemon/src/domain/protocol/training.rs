//! Training: its arms with their defaults, how one is chosen, and the long run of that one.

use std::collections::BTreeSet;

use engine_core::ntuple::Layout;
use engine_core::train::TrainConfig;
use serde_json::Value;

use super::fields::{Faults, Fields, Found, Place, Quoted, did_you_mean, named_list};
use super::seeds::Blocks;
use super::tables::{Tables, edit_sources};
use super::validation::{chunk_moves, stop_rule, validate};
use super::values::{number, parse, seed, text, whole, whole32, word};
use super::{CANDIDATE, Freeze, MainRun, Role, Select, SelectRule, StopRule, TrainArm};
use crate::domain::seed_range::Seed;

/// Most moves of one training arm.
pub(super) const MOST_MOVES: u64 = 1_000_000_000_000_000;
/// Seed of the exploration streams when nothing is said.
const TRAIN_SEED: Seed = Seed(0x7d0c_5eed);
/// Longest game when nothing is said.
pub(super) const MOVE_CAP: u32 = 2_000;
/// Longest game that can be asked for.
pub(super) const MOST_MOVE_CAP: u32 = 1_000_000;
/// Arm names that mean something else.
const ARM_WORDS: [&str; 2] = ["main", "selected"];

/// The training of a document.
#[derive(Debug, Default)]
pub(super) struct Training {
    pub(super) train: Vec<Option<TrainArm>>,
    pub(super) select: Option<Select>,
    pub(super) main: Option<MainRun>,
    /// Whether training ends in a table called `candidate`.
    pub(super) has_candidate: bool,
}

/// Reads `[train]`, `[select]` and `[main]`, and checks the sources of edits.
pub(super) fn training(
    fields: &mut Fields<'_>,
    blocks: &mut Blocks,
    tables: &Tables,
    budget_threads: Option<u32>,
    faults: &mut Faults,
) -> Training {
    let mut training = Training::default();
    let mut defaults = None;
    let mut list = None;
    match fields.get("train") {
        Some((value @ Value::Array(_), place)) => list = Some((value, place)),
        Some((value, place)) => {
            if let Some(mut table) = Fields::of(value, place, "training defaults and arms", faults)
            {
                list = table.get("arm");
                if list.is_none() {
                    faults.add(&table.place().key("arm"), "missing: at least one [[train.arm]]");
                }
                defaults = Some(table);
            }
        }
        None => {}
    }
    let context = Context { tables, budget_threads };
    if let Some(defaults) = &mut defaults {
        context.defaults(defaults, faults);
    }
    if let Some((value, place)) = &list {
        if value.as_array().is_some_and(Vec::is_empty) && defaults.is_some() {
            faults.add(place, "is empty; write at least one [[train.arm]] or leave [train] out");
        }
        let mut taken = BTreeSet::new();
        (training.train, _) = named_list(
            value,
            place,
            "training arms",
            &ARM_WORDS,
            &mut taken,
            faults,
            |own, name, faults| {
                own.stack(defaults.as_ref(), None);
                context.arm(own, name, blocks, faults)
            },
        );
    }
    let trains = !training.train.is_empty();
    training.has_candidate = trains || defaults.is_some();
    training.select = select(fields, trains, faults);
    training.main = main(fields, trains, defaults.as_ref(), blocks, faults);
    if let Some(defaults) = defaults {
        defaults.finish(faults);
    }
    edit_sources(fields, tables, training.has_candidate, faults);
    training
}

fn select(fields: &mut Fields<'_>, trains: bool, faults: &mut Faults) -> Option<Select> {
    let Some((value, place)) = fields.get("select") else {
        if trains && !fields.has("main") {
            let place = fields.place().key("select");
            faults
                .add(&place, "missing: a rule that says which training arm becomes the candidate");
        }
        return None;
    };
    if !trains {
        faults.add(&place, "there are no training arms to select from");
    }
    let mut select = Fields::of(value, place, "a selection", faults)?;
    let rules = &[
        ("largest-final-margin", SelectRule::LargestFinalMargin),
        ("largest-best-margin", SelectRule::LargestBestMargin),
    ];
    let rule =
        select.required("rule", "largest-final-margin or largest-best-margin", faults, word(rules));
    select.finish(faults);
    Some(Select { rule: rule? })
}

fn main<'v>(
    fields: &mut Fields<'v>,
    trains: bool,
    defaults: Option<&Fields<'v>>,
    blocks: &mut Blocks,
    faults: &mut Faults,
) -> Option<MainRun> {
    let selects = fields.has("select");
    let (value, place) = fields.get("main")?;
    if !trains {
        faults.add(&place, "the main run trains the selected arm, but there are no training arms");
    } else if !selects {
        faults.add(&place, "the main run trains the selected arm, but nothing selects one");
    }
    let mut main = Fields::of(value, place, "a main run", faults)?;
    main.optional("of", faults, word(&[("selected", ())]));
    let moves = main.required("moves", "moves to train", faults, whole(1..=MOST_MOVES));
    let rules = &[("largest-margin", Freeze::LargestMargin), ("final", Freeze::Final)];
    let freeze = main.optional("freeze", faults, word(rules)).unwrap_or(Freeze::LargestMargin);
    let stop = main.optional("stop", faults, stop_rule).unwrap_or_default();
    main.stack(defaults, Some(&["chunk_moves", "validate"]));
    let validate = validate(&mut main, moves, blocks, faults);
    let chunk_moves = chunk_moves(&mut main, moves, validate.as_ref(), faults);
    main.finish(faults);
    Some(MainRun { moves: moves?, chunk_moves: chunk_moves?, validate: validate?, stop, freeze })
}

/// What an arm's fields are checked against.
struct Context<'c> {
    tables: &'c Tables,
    budget_threads: Option<u32>,
}

/// The parts of an arm that can be defaults, each as far as it is there and right.
struct Parts {
    layout: Option<Layout>,
    moves: Option<u64>,
    threads: Option<u32>,
    lockstep_games: Option<u32>,
    alpha: Option<f64>,
    epsilon: Option<f64>,
    optimistic_rises: Option<f64>,
    clamp_rises: Option<f64>,
    move_cap: Option<u32>,
    train_seed: Option<Seed>,
    stop: Option<StopRule>,
    init_from: Option<String>,
}

impl Context<'_> {
    /// Looks at every default, so that a wrong one is found also when each arm overrides it.
    fn defaults(&self, defaults: &mut Fields<'_>, faults: &mut Faults) {
        self.parts(defaults, faults);
        defaults.optional("chunk_moves", faults, whole(1..=MOST_MOVES));
        defaults.get("seeds");
        defaults.get("validate");
    }

    fn parts(&self, fields: &mut Fields<'_>, faults: &mut Faults) -> Parts {
        Parts {
            layout: fields.optional(
                "layout",
                faults,
                parse("a layout like \"rows,cols,phase=all\""),
            ),
            moves: fields.optional("moves", faults, whole(1..=MOST_MOVES)),
            threads: fields.optional("threads", faults, |value, place, faults| {
                let threads = whole32(1..=1024)(value, place, faults)?;
                if let Some(most) = self.budget_threads.filter(|most| threads > *most) {
                    faults
                        .add(place, format!("{threads} threads are more than the budget's {most}"));
                    return None;
                }
                Some(threads)
            }),
            lockstep_games: fields.optional(
                "lockstep_games",
                faults,
                whole32(1..=TrainConfig::MAX_GAMES),
            ),
            alpha: fields.optional("alpha", faults, |value, place, faults| {
                positive(10.0, value, place, faults)
            }),
            epsilon: fields.optional("epsilon", faults, number(0.0..=1.0)),
            optimistic_rises: fields.optional("optimistic_rises", faults, number(0.0..=10_000.0)),
            clamp_rises: fields.optional("clamp_rises", faults, |value, place, faults| {
                positive(1_000_000.0, value, place, faults)
            }),
            move_cap: fields.optional("move_cap", faults, whole32(1..=MOST_MOVE_CAP)),
            train_seed: fields.optional("train_seed", faults, seed),
            stop: fields.optional("stop", faults, stop_rule),
            init_from: fields.optional("init_from", faults, |value, place, faults| {
                self.init_from(value, place, faults)
            }),
        }
    }

    fn init_from(&self, value: &Value, place: &Place, faults: &mut Faults) -> Option<String> {
        let table = text(value, place, faults)?;
        if self.tables.prior_names.contains(&table) {
            return Some(table);
        }
        if table == CANDIDATE {
            faults.add(place, "the candidate is what training ends in; nothing can start from it");
            return None;
        }
        let names = || self.tables.prior_names.iter().map(String::as_str);
        let guess = did_you_mean(&table, names());
        let all = names().collect::<Vec<_>>().join(", ");
        let all = if all.is_empty() { "none is declared under [[tables]]" } else { &all };
        faults.add(
            place,
            format!("no table is called {}{guess}; tables to start from: {all}", Quoted(&table)),
        );
        None
    }

    fn arm(
        &self,
        fields: &mut Fields<'_>,
        name: Option<&str>,
        blocks: &mut Blocks,
        faults: &mut Faults,
    ) -> Option<TrainArm> {
        fields.require("layout", "a layout like \"rows,cols,phase=all\"", faults);
        fields.require("moves", "moves to train", faults);
        let parts = self.parts(fields, faults);
        let seeds = blocks.pick(fields, "seeds", Role::Training, faults);
        let validate = validate(fields, parts.moves, blocks, faults);
        let chunk_moves = chunk_moves(fields, parts.moves, validate.as_ref(), faults);
        Some(TrainArm {
            name: name?.to_owned(),
            layout: parts.layout?.to_string(),
            moves: parts.moves?,
            chunk_moves: chunk_moves?,
            threads: parts.threads.or(self.budget_threads)?,
            lockstep_games: parts.lockstep_games,
            alpha: parts.alpha.unwrap_or(1.0),
            epsilon: parts.epsilon.unwrap_or(0.0),
            optimistic_rises: parts.optimistic_rises.unwrap_or(20.0),
            clamp_rises: parts.clamp_rises.unwrap_or(30.0),
            move_cap: parts.move_cap.unwrap_or(MOVE_CAP),
            train_seed: parts.train_seed.unwrap_or(TRAIN_SEED),
            seeds: seeds?.0,
            validate: validate?,
            stop: parts.stop.unwrap_or_default(),
            init_from: parts.init_from,
        })
    }
}

/// A number above 0 that 32 bits can hold, up to `most`.
fn positive(most: f64, value: &Value, place: &Place, faults: &mut Faults) -> Option<f64> {
    let positive = value.as_f64().filter(|number| (1e-6..=most).contains(number));
    if positive.is_none() {
        faults.add(
            place,
            format!("expected a number above 0, from 0.000001 to {most}, got {}", Found(value)),
        );
    }
    positive
}
