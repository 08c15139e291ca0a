//! When training is looked at, and when it ends early.

use serde_json::Value;

use super::fields::{Faults, Fields, Place};
use super::seeds::Blocks;
use super::training::MOST_MOVES;
use super::values::{whole, whole32};
use super::{Plateau, Role, SearchSpec, StopRule, Validate};

/// Moves between two rows of a curve when nothing is said.
const CHUNK_MOVES: u64 = 5_000_000;

/// Reads `chunk_moves`: never longer than the way to the next validation point.
pub(super) fn chunk_moves(
    fields: &mut Fields<'_>,
    moves: Option<u64>,
    validate: Option<&Validate>,
    faults: &mut Faults,
) -> Option<u64> {
    let longest = validate.map(|validate| validate.every_moves);
    let given = fields.optional("chunk_moves", faults, |value, place, faults| {
        let chunk = whole(1..=MOST_MOVES)(value, place, faults)?;
        if let Some(every) = longest.filter(|every| chunk > *every) {
            faults.add(
                place,
                format!(
                    "a chunk of {chunk} moves skips validation points, which come every {every}"
                ),
            );
        }
        Some(chunk)
    });
    Some(given.unwrap_or(CHUNK_MOVES.min(longest?)).min(moves?))
}

/// Reads `validate`, with the same field of the defaults behind it.
pub(super) fn validate(
    fields: &mut Fields<'_>,
    moves: Option<u64>,
    blocks: &mut Blocks,
    faults: &mut Faults,
) -> Option<Validate> {
    let what = "validation points like { every_moves = 50_000_000 }";
    fields.require("validate", what, faults);
    let mut fields = fields.nested("validate", "validation points", faults)?;
    let seeds = blocks.pick(&mut fields, "seeds", Role::Validation, faults);
    let every =
        fields.required("every_moves", "moves between points", faults, |value, place, faults| {
            let every = whole(1..=MOST_MOVES)(value, place, faults)?;
            if let Some(moves) = moves.filter(|moves| every > *moves) {
                faults.add(
                    place,
                    format!("the arm ends after {moves} moves, before its first point"),
                );
            }
            Some(every)
        });
    let games = fields.optional("games", faults, |value, place, faults| {
        let games = whole32(2..=u32::MAX)(value, place, faults)?;
        if let Some((name, block)) = seeds.as_ref().filter(|(_, block)| games > block.count) {
            faults.add(
                place,
                format!("{games} games are more than the {} seeds of block {name:?}", block.count),
            );
        }
        Some(games)
    });
    let search = fields.optional("search", faults, search_spec);
    let wrong_search = fields.get("search").is_some() && search.is_none();
    fields.finish(faults);
    let (name, block) = seeds?;
    if games.is_none() && block.count < 2 {
        faults.add(
            &Place::default().key("seeds").key(&name).key("count"),
            "a validation point compares at least 2 games",
        );
    }
    if wrong_search {
        return None;
    }
    Some(Validate {
        seeds: name,
        every_moves: every?,
        games: games.unwrap_or(block.count),
        search: search.unwrap_or(SearchSpec { depth: 3, strata: 7 }),
    })
}

/// Reads `{ depth, strata }`.
pub(super) fn search_spec(value: &Value, place: &Place, faults: &mut Faults) -> Option<SearchSpec> {
    let mut fields =
        Fields::of(value, place.clone(), "a search like { depth = 3, strata = 7 }", faults)?;
    let depth = fields.required("depth", "plies, 1 to 4", faults, whole32(1..=4));
    let strata = fields.required("strata", "samples per move, 1 to 7", faults, whole32(1..=7));
    fields.finish(faults);
    Some(SearchSpec { depth: depth?, strata: strata? })
}

/// Reads `stop`.
pub(super) fn stop_rule(value: &Value, place: &Place, faults: &mut Faults) -> Option<StopRule> {
    let mut fields = Fields::of(value, place.clone(), "a stop rule", faults)?;
    let plateau = fields.optional("plateau", faults, plateau);
    fields.finish(faults);
    Some(StopRule { plateau })
}

fn plateau(value: &Value, place: &Place, faults: &mut Faults) -> Option<Plateau> {
    let mut fields = Fields::of(value, place.clone(), "a plateau rule", faults)?;
    let window = fields.required("window", "points per window", faults, whole32(1..=10_000));
    let least = fields.required(
        "min_points",
        "points before it is looked at",
        faults,
        |value, place, faults| {
            let least = whole32(2..=100_000)(value, place, faults)?;
            if let Some(window) = window.filter(|window| least < 2 * window) {
                faults.add(
                    place,
                    format!(
                        "two windows of {window} points need {} points; got {least}",
                        2 * window
                    ),
                );
            }
            Some(least)
        },
    );
    fields.finish(faults);
    Some(Plateau { window: window?, min_points: least? })
}
