//! The held-out comparison, what decides, and what is read beside it.

use std::collections::BTreeSet;

use engine_core::stats::gate::Criterion;
use serde_json::Value;

use super::fields::{
    Faults, Fields, Found, MOST_ITEMS, Place, Quoted, did_you_mean, items, named_list,
};
use super::seeds::Blocks;
use super::tables::Tables;
use super::training::{MOST_MOVE_CAP, MOVE_CAP, Training};
use super::validation::search_spec;
use super::values::{whole32, word};
use super::{
    CANDIDATE, FAIR, Gate, PlayerSpec, Reading, ReadingOf, Role, Screen, ScreenArm, Tier, Verdicts,
};

const CRITERIA: &[(&str, Criterion)] = &[
    ("no-illegal-or-incomplete", Criterion::NoIllegalOrIncomplete),
    ("bootstrap-lower-above-zero", Criterion::BootstrapLowerAboveZero),
    ("student-lower-above-zero", Criterion::StudentLowerAboveZero),
    ("both-halves-positive", Criterion::BothHalvesPositive),
    ("lower-quartile-not-worse", Criterion::LowerQuartileNotWorse),
    ("frozen-digests", Criterion::FrozenDigests),
];
const VERDICTS: &[(&str, Verdicts)] = &[
    ("supported-refuted-inconclusive", Verdicts::SupportedRefutedInconclusive),
    ("larger-smaller-inconclusive", Verdicts::LargerSmallerInconclusive),
    ("pass-fail", Verdicts::PassFail),
];

impl Tier {
    /// Fewest games of an arm: two in each half of the block, or what the tier promises.
    pub const fn fewest_games(self) -> u32 {
        match self {
            Self::Check | Self::Pilot => 4,
            Self::Screen => 32,
            Self::Standard => 64,
            Self::Qualify => 256,
        }
    }
}

/// The tables that an arm may play.
pub(super) struct Players(Vec<String>);

impl Players {
    pub(super) fn new(tables: &Tables, training: &Training) -> Self {
        let candidate = training.has_candidate.then(|| CANDIDATE.to_owned());
        let prior = tables.prior_names.iter().cloned();
        Self(candidate.into_iter().chain(prior).chain(tables.edit_names.iter().cloned()).collect())
    }

    /// The name of a table, or `fair` where a leaf is asked for.
    fn pick(
        &self,
        value: &Value,
        place: &Place,
        leaf: bool,
        faults: &mut Faults,
    ) -> Option<String> {
        let Some(name) = value.as_str() else {
            faults.add(place, format!("expected the name of a table, got {}", Found(value)));
            return None;
        };
        if self.0.iter().any(|known| known == name) || (leaf && name == FAIR) {
            return Some(name.to_owned());
        }
        let detail = if name == FAIR {
            String::from("the fair leaf is no table and has no one-ply policy; give it a search")
        } else if name == CANDIDATE {
            String::from("there is no candidate: the document trains nothing")
        } else {
            let names =
                || leaf.then_some(FAIR).into_iter().chain(self.0.iter().map(String::as_str));
            let guess = did_you_mean(name, names());
            let all = names().collect::<Vec<_>>().join(", ");
            format!("no table is called {}{guess}; allowed are: {all}", Quoted(name))
        };
        faults.add(place, detail);
        None
    }
}

/// A screen as far as it could be read.
#[derive(Debug, Default)]
pub(super) struct ReadScreen {
    pub(super) resolved: Option<Screen>,
    /// Names of the arms, also of those with a fault.
    pub(super) names: Vec<String>,
}

/// Reads `[screen]`.
pub(super) fn screen(
    fields: &mut Fields<'_>,
    blocks: &mut Blocks,
    players: &Players,
    tier: Option<Tier>,
    faults: &mut Faults,
) -> ReadScreen {
    let mut read = ReadScreen::default();
    fields.require("screen", "the held-out comparison", faults);
    let Some(mut screen) = fields.nested("screen", "a screen", faults) else { return read };
    let seeds = blocks.pick(&mut screen, "seeds", Role::HeldOut, faults);
    if let (Some((name, block)), Some(tier)) = (&seeds, tier) {
        let least = tier.fewest_games();
        if block.count < least {
            faults.add(
                &Place::default().key("seeds").key(name).key("count"),
                format!("{} games are fewer than the {least} this tier promises", block.count),
            );
        }
    }
    let move_cap = screen.optional("move_cap", faults, whole32(1..=MOST_MOVE_CAP));
    let spelling = screen.spelled("arm", "arms", faults);
    screen.require(spelling, "at least two [[screen.arm]]", faults);
    let mut arms = Vec::new();
    if let Some((value, place)) = screen.get(spelling) {
        let mut taken = BTreeSet::new();
        (arms, read.names) = named_list(
            value,
            &place,
            "screen arms",
            &[],
            &mut taken,
            faults,
            |arm, name, faults| {
                let player = player(arm, players, faults);
                Some(ScreenArm { name: name?.to_owned(), player: player? })
            },
        );
        if value.is_array() && arms.len() < 2 {
            faults
                .add(&place, format!("{} arms cannot be compared; write at least two", arms.len()));
        }
    }
    screen.finish(faults);
    read.resolved = seeds.map(|(name, _)| name).and_then(|seeds| {
        let arms = arms.into_iter().collect::<Option<_>>()?;
        Some(Screen { seeds, move_cap: move_cap.unwrap_or(MOVE_CAP), arms })
    });
    read
}

/// Who plays: `search` with `leaf`, or `direct`; the resolved form has them inside `player`.
fn player(arm: &mut Fields<'_>, players: &Players, faults: &mut Faults) -> Option<PlayerSpec> {
    let short = ["search", "leaf", "direct"].map(|name| arm.has(name));
    if !arm.has("player") {
        return match short {
            [false, false, false] => {
                let what = "missing: a search with a leaf, or direct with the name of a table";
                faults.add(&arm.place(), what);
                None
            }
            [_, _, true] => {
                for name in ["search", "leaf"] {
                    if let Some((_, place)) = arm.get(name) {
                        faults.add(
                            &place,
                            "a direct arm plays one ply over its table; it has no search",
                        );
                    }
                }
                let table = arm.optional("direct", faults, |value, place, faults| {
                    players.pick(value, place, false, faults)
                });
                Some(PlayerSpec::Direct { table: table? })
            }
            _ => search(arm, players, faults),
        };
    }
    for name in ["search", "leaf", "direct"] {
        if let Some((_, place)) = arm.get(name) {
            faults.add(&place, "player says who plays already; write one of the two");
        }
    }
    let mut player = arm.nested("player", "a player", faults)?;
    let spec = if let Some(mut spec) = player.nested("search", "a search player", faults) {
        if let Some((_, place)) = player.get("direct") {
            faults.add(&place, "search says who plays already; write one of the two");
        }
        let resolved = search(&mut spec, players, faults);
        spec.finish(faults);
        resolved
    } else if let Some(mut spec) = player.nested("direct", "a direct player", faults) {
        let table =
            spec.required("table", "the name of a table", faults, |value, place, faults| {
                players.pick(value, place, false, faults)
            });
        spec.finish(faults);
        table.map(|table| PlayerSpec::Direct { table })
    } else {
        if !player.has("search") && !player.has("direct") {
            faults.add(&player.place(), "missing: search or direct");
        }
        None
    };
    player.finish(faults);
    spec
}

fn search(fields: &mut Fields<'_>, players: &Players, faults: &mut Faults) -> Option<PlayerSpec> {
    let search =
        fields.required("search", "a search like { depth = 3, strata = 7 }", faults, search_spec);
    let leaf =
        fields.required("leaf", "fair, or the name of a table", faults, |value, place, faults| {
            players.pick(value, place, true, faults)
        });
    Some(PlayerSpec::Search { search: search?, leaf: leaf? })
}

/// Reads `[gate]`.
pub(super) fn gate(fields: &mut Fields<'_>, arms: &[String], faults: &mut Faults) -> Option<Gate> {
    fields.require("gate", "the contrast that decides", faults);
    let mut gate = fields.nested("gate", "a gate", faults)?;
    let what = "the candidate arm and the reference arm";
    let contrast = gate.required("contrast", what, faults, |value, place, faults| {
        contrast(value, place, arms, faults)
    });
    let criteria = match gate.get("criteria") {
        Some((value, place)) => criteria(value, &place, faults),
        None => Some(CRITERIA.iter().map(|(_, criterion)| *criterion).collect()),
    };
    gate.finish(faults);
    Some(Gate { contrast: contrast?, criteria: criteria? })
}

fn criteria(value: &Value, place: &Place, faults: &mut Faults) -> Option<Vec<Criterion>> {
    let items = items(value, place, "criteria", MOST_ITEMS, faults)?;
    if items.is_empty() {
        faults.add(place, "is empty; a gate without criteria would always pass");
        return None;
    }
    let mut criteria = Vec::new();
    for (item, place) in items {
        let criterion = word(CRITERIA)(item, &place, faults)?;
        if criteria.contains(&criterion) {
            faults.add(&place, "is listed twice");
        }
        criteria.push(criterion);
    }
    Some(criteria)
}

/// Two different arms, first minus second.
fn contrast(
    value: &Value,
    place: &Place,
    arms: &[String],
    faults: &mut Faults,
) -> Option<[String; 2]> {
    let pair = pair(value, place, "arm names", faults)?;
    if arms.is_empty() {
        return None;
    }
    let names = pair.map(|(value, place)| {
        let name = value.as_str().unwrap_or_default();
        if arms.iter().any(|arm| arm == name) {
            return Some(name.to_owned());
        }
        if value.is_string() {
            let guess = did_you_mean(name, arms.iter().map(String::as_str));
            let all = arms.join(", ");
            faults.add(
                &place,
                format!("no screen arm is called {}{guess}; arms: {all}", Quoted(name)),
            );
        } else {
            faults.add(&place, format!("expected the name of a screen arm, got {}", Found(value)));
        }
        None
    });
    let [Some(first), Some(second)] = names else { return None };
    if first == second {
        faults.add(place, format!("compares {first:?} with itself; the difference is always 0"));
        return None;
    }
    Some([first, second])
}

fn pair<'v>(
    value: &'v Value,
    place: &Place,
    what: &str,
    faults: &mut Faults,
) -> Option<[(&'v Value, Place); 2]> {
    let items = items(value, place, what, MOST_ITEMS, faults)?;
    let found = items.len();
    let pair = <[_; 2]>::try_from(items).ok();
    if pair.is_none() {
        faults.add(place, format!("expected two {what}, got {found}"));
    }
    pair
}

/// Reads `[[reading]]`.
pub(super) fn readings(
    fields: &mut Fields<'_>,
    arms: &[String],
    faults: &mut Faults,
) -> Vec<Option<Reading>> {
    let spelling = fields.spelled("reading", "readings", faults);
    let Some((value, place)) = fields.get(spelling) else { return Vec::new() };
    let mut taken = BTreeSet::new();
    let (readings, _) =
        named_list(value, &place, "readings", &[], &mut taken, faults, |reading, name, faults| {
            let of = if reading.has("of") {
                for name in ["contrast", "difference_of"] {
                    if let Some((_, place)) = reading.get(name) {
                        faults
                            .add(&place, "of says what is compared already; write one of the two");
                    }
                }
                let mut of = reading.nested("of", "what is compared", faults)?;
                let compared = compared(&mut of, "difference-of", arms, faults);
                of.finish(faults);
                compared
            } else {
                compared(reading, "difference_of", arms, faults)
            };
            let verdicts = reading.optional("verdicts", faults, word(VERDICTS));
            let wrong = reading.has("verdicts") && verdicts.is_none();
            let of = of?;
            let usual = match of {
                ReadingOf::Contrast(_) => Verdicts::SupportedRefutedInconclusive,
                ReadingOf::DifferenceOf(_) => Verdicts::LargerSmallerInconclusive,
            };
            if let (ReadingOf::DifferenceOf(_), Some(Verdicts::PassFail)) = (&of, verdicts) {
                let place = reading.place().key("verdicts");
                faults.add(&place, "the gate's criteria do not apply to a difference of contrasts");
            }
            let verdicts = verdicts.unwrap_or(usual);
            (!wrong).then_some(Reading { name: name?.to_owned(), of, verdicts })
        });
    readings
}

fn compared(
    fields: &mut Fields<'_>,
    difference: &'static str,
    arms: &[String],
    faults: &mut Faults,
) -> Option<ReadingOf> {
    let both = fields.has("contrast");
    match fields.get(difference) {
        Some((_, place)) if both => {
            faults.add(&place, "contrast says what is compared already; write one of the two");
            None
        }
        Some((value, place)) => {
            let [first, second] = pair(value, &place, "contrasts", faults)?;
            let first = contrast(first.0, &first.1, arms, faults);
            let second = contrast(second.0, &second.1, arms, faults);
            let (first, second) = (first?, second?);
            if first == second {
                faults.add(&place, "compares a contrast with itself; the difference is always 0");
                return None;
            }
            Some(ReadingOf::DifferenceOf([first, second]))
        }
        None if both => {
            let read = |value: &Value, place: &Place, faults: &mut Faults| {
                contrast(value, place, arms, faults)
            };
            fields.optional("contrast", faults, read).map(ReadingOf::Contrast)
        }
        None => {
            let place = fields.place();
            faults.add(&place, format!("missing: contrast or {difference}"));
            None
        }
    }
}
