//! From a document to a [`Protocol`].
//!
//! One pass reads the document in the order in which its parts refer to each other (blocks, tables,
//! training, screen, gate, readings) and collects every fault. The short spellings of people and the
//! resolved spellings of [`Protocol`] itself are read by the same code, so a protocol that was read
//! back from the daemon parses to an equal one.

use serde_json::Value;

use super::document::{Lines, read_toml};
use super::fields::{Faults, Fields, Found, MOST_ITEMS, Place, items};
use super::screening::{Players, gate, readings, screen};
use super::seeds::blocks;
use super::tables::tables_and_edits;
use super::training::{Training, training};
use super::values::{bytes, duration, parse as parse_word, prose, whole, whole32, word};
use super::{
    Amendment, Budget, Checks, FORMAT, Information, Kind, Protocol, RULES, TheoryDraft, TheoryRef,
    Tier, estimate,
};
use crate::domain::canonical::{MAX_FAULTS, read_json_leniently};
use crate::domain::refusal::{Code, Refusal};

/// How a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaType {
    /// TOML, for people.
    Toml,
    /// JSON, for agents.
    Json,
}

/// Largest memory budget: 64 TiB.
const MOST_MEMORY: u64 = 64 << 40;
/// Longest wall budget: 365 days.
const MOST_WALL: u64 = 365 * 86_400;

const TIERS: &[(&str, Tier)] = &[
    ("check", Tier::Check),
    ("pilot", Tier::Pilot),
    ("screen", Tier::Screen),
    ("standard", Tier::Standard),
    ("qualify", Tier::Qualify),
];
const INFORMATION: &[(&str, Information)] = &[("public-policy", Information::PublicPolicy)];
const CHECKS: &[(&str, Checks)] = &[("quick", Checks::Quick), ("full", Checks::Full)];

/// Parses and resolves a document.
///
/// # Errors
/// [`Code::TooLarge`] or [`Code::MalformedDocument`] when it cannot be read at all;
/// [`Code::InvalidProtocol`] with every field error; [`Code::OverBudget`] when everything is right
/// except that the plan does not fit the declared memory.
pub fn parse(bytes: &[u8], media: MediaType) -> Result<Protocol, Refusal> {
    let (value, mut faults, lines) = written(bytes, media)?;
    let protocol = read(&value, &mut faults);
    let protocol = faultless(protocol, faults, &lines, Code::InvalidProtocol, "protocol")?;
    fits_memory(&protocol, &value, &lines)?;
    Ok(protocol)
}

/// Parses a theory that is to be recorded before any experiment tests it.
///
/// # Errors
/// [`Code::TooLarge`] or [`Code::MalformedDocument`] when it cannot be read at all;
/// [`Code::InvalidRequest`] with every field error.
pub fn parse_theory(bytes: &[u8], media: MediaType) -> Result<TheoryDraft, Refusal> {
    let (value, mut faults, lines) = written(bytes, media)?;
    let draft = theory_draft(&value, Place::default(), &mut faults);
    faultless(draft, faults, &lines, Code::InvalidRequest, "theory")
}

/// The values of a document, with the faults and the places of how they are written.
fn written(bytes: &[u8], media: MediaType) -> Result<(Value, Faults, Lines<'_>), Refusal> {
    let (value, faults, lines) = match media {
        MediaType::Toml => read_toml(bytes)?,
        MediaType::Json => {
            let (value, faults) = read_json_leniently(bytes)?;
            (value, faults, Lines::default())
        }
    };
    Ok((value, Faults::new(faults), lines))
}

/// What was read, if nothing is wrong with it.
fn faultless<T>(
    read: Option<T>,
    faults: Faults,
    lines: &Lines<'_>,
    code: Code,
    what: &str,
) -> Result<T, Refusal> {
    if !faults.is_empty() {
        let errors = faults.into_errors(lines);
        let fields = match errors.len() {
            1 => String::from("one field is wrong"),
            MAX_FAULTS => format!("{MAX_FAULTS} fields or more are wrong"),
            several => format!("{several} fields are wrong"),
        };
        let detail = format!("the {what} is refused: {fields}");
        return Err(Refusal { errors, ..Refusal::new(code, detail) }
            .hint("protocols/README.md describes every field"));
    }
    read.ok_or_else(|| {
        Refusal::new(Code::Internal, "the document was not read, and no fault was found in it")
    })
}

fn fits_memory(protocol: &Protocol, value: &Value, lines: &Lines<'_>) -> Result<(), Refusal> {
    let Some(reason) = estimate(protocol).over_memory(protocol.budget.memory_bytes) else {
        return Ok(());
    };
    let budget = value.get("budget");
    let resolved = budget.is_some_and(|budget| budget.get("memory_bytes").is_some());
    let mut faults = Faults::default();
    let field = if resolved { "memory_bytes" } else { "memory" };
    faults.add(&Place::default().key("budget").key(field), reason);
    let detail = "the protocol is refused: it does not fit the memory it declares";
    Err(Refusal { errors: faults.into_errors(lines), ..Refusal::new(Code::OverBudget, detail) }
        .hint("raise the budget, train fewer moves or choose a smaller layout"))
}

fn read(value: &Value, faults: &mut Faults) -> Option<Protocol> {
    let mut fields = Fields::of(value, Place::default(), "a protocol", faults)?;
    let format = fields.required("format", FORMAT, faults, word(&[(FORMAT, FORMAT)]));
    let kind = fields.required("kind", "\"tables\"", faults, kind)?;
    let title = fields.required("title", "one line", faults, prose(200, false));
    let hypothesis =
        fields.required("hypothesis", "what is claimed, in prose", faults, prose(20_000, true));
    let theory = fields.required(
        "theory",
        "a TH- id, or a table with the text of a new theory",
        faults,
        theory,
    );
    let amends = fields.get("amends").map(|(value, place)| amends(value, place, faults));
    let allowed = "one of check, pilot, screen, standard, qualify";
    let tier = fields.required("tier", allowed, faults, word(TIERS));
    let information = fields
        .optional("information", faults, word(INFORMATION))
        .unwrap_or(Information::PublicPolicy);
    fields.optional("engine", faults, word(&[(RULES, ())]));
    let budget = fields.required("budget", "threads, memory and wall", faults, budget);
    let checks = fields.optional("checks", faults, word(CHECKS)).unwrap_or(Checks::Full);

    let mut blocks = blocks(&mut fields, faults);
    let tables = tables_and_edits(&mut fields, faults);
    let threads = budget.map(|budget| budget.threads);
    let training = training(&mut fields, &mut blocks, &tables, threads, faults);
    let players = Players::new(&tables, &training);
    let screen = screen(&mut fields, &mut blocks, &players, tier, faults);
    let gate = gate(&mut fields, &screen.names, faults);
    let readings = readings(&mut fields, &screen.names, faults);
    fields.finish(faults);
    if faults.is_empty() {
        blocks.refuse_unread(faults);
    }
    let Training { train, select, main, .. } = training;
    Some(Protocol {
        format: format?.to_owned(),
        kind,
        title: title?,
        hypothesis: hypothesis?,
        theory: theory?,
        amends: match amends {
            Some(amends) => Some(amends?),
            None => None,
        },
        tier: tier?,
        information,
        engine: RULES.to_owned(),
        budget: budget?,
        seeds: blocks.resolved()?,
        checks,
        train: train.into_iter().collect::<Option<_>>()?,
        select,
        main,
        tables: tables.prior.into_iter().collect::<Option<_>>()?,
        edits: tables.edits.into_iter().collect::<Option<_>>()?,
        screen: screen.resolved?,
        gate: gate?,
        readings: readings.into_iter().collect::<Option<_>>()?,
    })
}

/// The kind; the rest of a document of another kind is not looked at, as it has other fields.
fn kind(value: &Value, place: &Place, faults: &mut Faults) -> Option<Kind> {
    match value.as_str() {
        Some(word @ ("calibration" | "match")) => {
            faults.add(
                place,
                format!(
                    "this version runs studies of kind \"tables\" only; {word:?} is not run yet"
                ),
            );
            None
        }
        _ => word(&[("tables", Kind::Tables)])(value, place, faults),
    }
}

fn theory(value: &Value, place: &Place, faults: &mut Faults) -> Option<TheoryRef> {
    if value.is_string() {
        return parse_word("a TH- id")(value, place, faults).map(TheoryRef::Known);
    }
    if !value.is_object() {
        faults.add(
            place,
            format!("expected a TH- id or a table with a new theory, got {}", Found(value)),
        );
        return None;
    }
    theory_draft(value, place.clone(), faults).map(TheoryRef::New)
}

fn theory_draft(value: &Value, place: Place, faults: &mut Faults) -> Option<TheoryDraft> {
    let mut fields = Fields::of(value, place, "a theory", faults)?;
    let title = fields.required("title", "one line", faults, prose(200, false));
    let claim = fields.required("claim", "what is claimed", faults, prose(20_000, true));
    let mechanism =
        fields.required("mechanism", "why it should be so", faults, prose(20_000, true));
    let criteria = fields.required(
        "falsification_criteria",
        "a list of what would prove it wrong, at least one",
        faults,
        criteria,
    );
    fields.finish(faults);
    Some(TheoryDraft {
        title: title?,
        claim: claim?,
        mechanism: mechanism?,
        falsification_criteria: criteria?,
    })
}

fn criteria(value: &Value, place: &Place, faults: &mut Faults) -> Option<Vec<String>> {
    let items = items(value, place, "criteria", MOST_ITEMS, faults)?;
    if items.is_empty() {
        faults.add(place, "is empty; name at least one thing that would prove the theory wrong");
    }
    items.into_iter().map(|(item, place)| prose(4_000, true)(item, &place, faults)).collect()
}

fn amends(value: &Value, place: Place, faults: &mut Faults) -> Option<Amendment> {
    let mut fields = Fields::of(value, place, "an amendment", faults)?;
    let experiment =
        fields.required("experiment", "the EX- id it amends", faults, parse_word("an EX- id"));
    let reason = fields.required("reason", "why", faults, prose(4_000, true));
    fields.finish(faults);
    Some(Amendment { experiment: experiment?, reason: reason? })
}

fn budget(value: &Value, place: &Place, faults: &mut Faults) -> Option<Budget> {
    let mut fields = Fields::of(value, place.clone(), "a budget", faults)?;
    let threads = fields.required("threads", "worker threads", faults, whole32(1..=1024));
    let memory = match fields.spelled("memory", "memory_bytes", faults) {
        "memory" => {
            fields.required("memory", "like \"16 GiB\"", faults, bytes(1 << 20..=MOST_MEMORY))
        }
        resolved => fields.required(resolved, "bytes", faults, whole(1 << 20..=MOST_MEMORY)),
    };
    let wall = match fields.spelled("wall", "wall_seconds", faults) {
        "wall" => fields.required("wall", "like \"3h\"", faults, duration(1..=MOST_WALL)),
        resolved => fields.required(resolved, "seconds", faults, whole(1..=MOST_WALL)),
    };
    fields.finish(faults);
    Some(Budget { threads: threads?, memory_bytes: memory?, wall_seconds: wall? })
}
