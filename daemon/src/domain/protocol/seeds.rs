//! Blocks of seeds: disjoint, inside the seed space, away from what is reserved, and read only for
//! what their role allows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::fields::{Faults, Fields, MOST_ITEMS, Place, Quoted, did_you_mean};
use super::values::{check_name, seed, whole32, word};
use super::{Role, SeedBlock};
use crate::domain::seed_range::{POOL, POOL_ALIGNMENT, RESERVED, SeedRange};

const ROLES: &[(&str, Role)] =
    &[("training", Role::Training), ("validation", Role::Validation), ("held-out", Role::HeldOut)];

impl Role {
    /// The word of a document.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Validation => "validation",
            Self::HeldOut => "held-out",
        }
    }
}

/// The blocks of a document; a block with a fault is known by its name only.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    known: BTreeMap<String, Option<SeedBlock>>,
    read: BTreeSet<String>,
}

/// Reads `[seeds.NAME]`.
pub(super) fn blocks(fields: &mut Fields<'_>, faults: &mut Faults) -> Blocks {
    let mut blocks = Blocks::default();
    let place = fields.place().key("seeds");
    fields.required(
        "seeds",
        "at least one block, like [seeds.screen]",
        faults,
        |value, place, faults| {
            let Value::Object(map) = value else {
                faults.add(place, "expected a table of blocks by name");
                return None;
            };
            if map.is_empty() {
                faults.add(place, "is empty; a protocol reads at least one block of seeds");
            }
            if map.len() > MOST_ITEMS {
                let count = map.len();
                faults.add(place, format!("{count} blocks are more than the {MOST_ITEMS} allowed"));
                return None;
            }
            for (name, value) in map {
                let place = place.key(name);
                let named = check_name(name, &place, faults);
                let block = block(value, &place, faults).filter(|_| named);
                blocks.known.insert(name.clone(), block);
            }
            Some(())
        },
    );
    blocks.refuse_overlaps(&place, faults);
    blocks.refuse_a_dry_pool(&place, faults);
    blocks
}

fn block(value: &Value, place: &Place, faults: &mut Faults) -> Option<SeedBlock> {
    let mut fields = Fields::of(value, place.clone(), "a block of seeds", faults)?;
    let role = fields.required("role", "training, validation or held-out", faults, word(ROLES));
    let given = fields.get("start").is_some();
    let start = fields.optional("start", faults, seed);
    let count = fields.required("count", "how many seeds", faults, whole32(1..=u32::MAX));
    fields.finish(faults);
    if let (Some(start), Some(count)) = (start, count) {
        match SeedRange::new(start, u64::from(count)) {
            Err(error) => {
                faults.add(&place.key("count"), error.to_string());
                return None;
            }
            Ok(range) => {
                for (what, reserved) in RESERVED {
                    if range.overlaps(&reserved) {
                        faults.add(
                            &place.key("start"),
                            format!("{range} overlaps {reserved}, {what}, which is never leased"),
                        );
                    }
                }
            }
        }
    }
    if given && start.is_none() {
        return None;
    }
    Some(SeedBlock { role: role?, start, count: count? })
}

impl SeedBlock {
    /// The range of a block whose start is pinned.
    pub fn range(&self) -> Option<SeedRange> {
        SeedRange::new(self.start?, u64::from(self.count)).ok()
    }
}

impl Blocks {
    fn refuse_overlaps(&self, place: &Place, faults: &mut Faults) {
        let pinned: Vec<_> = self
            .known
            .iter()
            .filter_map(|(name, block)| Some((name, block.as_ref()?.range()?)))
            .collect();
        for (index, (name, range)) in pinned.iter().enumerate() {
            for (earlier, other) in &pinned[..index] {
                if range.overlaps(other) {
                    faults.add(
                        &place.key(name).key("start"),
                        format!("{range} overlaps {other} of block {earlier:?}"),
                    );
                }
            }
        }
    }

    fn refuse_a_dry_pool(&self, place: &Place, faults: &mut Faults) {
        let mut left = u64::from(POOL.count());
        for (name, block) in &self.known {
            let Some(block) = block.filter(|block| block.start.is_none()) else { continue };
            let wanted = u64::from(block.count).next_multiple_of(u64::from(POOL_ALIGNMENT));
            if wanted > left {
                faults.add(
                    &place.key(name).key("count"),
                    format!(
                        "{} seeds cannot be drawn: the pool {POOL} has {left} left for this block",
                        block.count
                    ),
                );
            }
            left = left.saturating_sub(wanted);
        }
    }

    /// The block that `name` in `fields` refers to, or the only one with the role when it is absent.
    pub(super) fn pick(
        &mut self,
        fields: &mut Fields<'_>,
        name: &'static str,
        role: Role,
        faults: &mut Faults,
    ) -> Option<(String, SeedBlock)> {
        let picked = match fields.get(name) {
            Some((value, place)) => self.named(value, &place, role, faults),
            None => self.only(&fields.place().key(name), role, faults),
        }?;
        self.read.insert(picked.clone());
        let block = (*self.known.get(&picked)?)?;
        Some((picked, block))
    }

    fn named(
        &self,
        value: &Value,
        place: &Place,
        role: Role,
        faults: &mut Faults,
    ) -> Option<String> {
        let Some(name) = value.as_str() else {
            faults.add(place, "expected the name of a block of seeds");
            return None;
        };
        if self.known.is_empty() {
            return None;
        }
        let Some(block) = self.known.get(name) else {
            let names = || self.known.keys().map(String::as_str);
            let guess = did_you_mean(name, names());
            let all = names().collect::<Vec<_>>().join(", ");
            faults.add(
                place,
                format!("no block is called {}{guess}; there are: {all}", Quoted(name)),
            );
            return None;
        };
        if let Some(found) = block.map(|block| block.role).filter(|found| *found != role) {
            faults.add(
                place,
                format!(
                    "block {name:?} is {}, but only a {} block may be read here",
                    found.word(),
                    role.word()
                ),
            );
            return None;
        }
        Some(name.to_owned())
    }

    fn only(&self, place: &Place, role: Role, faults: &mut Faults) -> Option<String> {
        let mut fitting = self
            .known
            .iter()
            .filter(|(_, block)| block.is_some_and(|block| block.role == role))
            .map(|(name, _)| name);
        let (first, second) = (fitting.next(), fitting.next());
        let word = role.word();
        match (first, second) {
            (Some(name), None) => return Some(name.clone()),
            (Some(a), Some(b)) => faults.add(
                place,
                format!("missing: name the {word} block to read; {a:?} and {b:?} both are"),
            ),
            _ if self.known.is_empty() || self.known.values().any(Option::is_none) => {}
            _ => faults.add(place, format!("missing: the document has no {word} block")),
        }
        None
    }

    /// Every block must be read by something: a lease that nothing reads is a slip of the pen.
    pub(super) fn refuse_unread(&self, faults: &mut Faults) {
        for name in self.known.keys().filter(|name| !self.read.contains(*name)) {
            faults.add(
                &Place::default().key("seeds").key(name),
                "nothing reads this block; leave it out or name it where it is to be read",
            );
        }
    }

    /// All blocks, when none has a fault.
    pub(super) fn resolved(self) -> Option<BTreeMap<String, SeedBlock>> {
        self.known.into_iter().map(|(name, block)| Some((name, block?))).collect()
    }
}
