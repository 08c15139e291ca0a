//! Reading fields so that one pass reports every fault of a document, each with its pointer.
//!
//! A reader returns `None` for a value that is absent or wrong; whatever is wrong has been added to
//! [`Faults`] by then. So the callers go on with what is there and look at the faults once, at the end.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use super::document::Lines;
use super::values::name;
use crate::domain::canonical::{MAX_FAULTS, pointer};
use crate::domain::refusal::FieldError;

/// Most blocks, training arms, screen arms, tables, edits or readings of one protocol.
pub(super) const MOST_ITEMS: usize = 64;

/// Where a value is in its document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place(Vec<String>);

impl Place {
    pub(super) fn key(&self, key: &str) -> Self {
        self.child(key.to_owned())
    }

    pub(super) fn index(&self, index: usize) -> Self {
        self.child(index.to_string())
    }

    fn child(&self, token: String) -> Self {
        let mut path = self.0.clone();
        path.push(token);
        Self(path)
    }
}

/// Faults found so far, each once.
#[derive(Debug, Default)]
pub(super) struct Faults {
    found: Vec<FieldError>,
    /// Faults of numbers and dates as they are written; a fault of the field itself says more.
    written: Vec<FieldError>,
}

impl Faults {
    /// Starts with faults of values as they are written.
    pub(super) fn new(written: Vec<FieldError>) -> Self {
        Self { found: Vec::new(), written }
    }

    pub(super) fn add(&mut self, place: &Place, detail: impl Into<String>) {
        let fault = FieldError { pointer: pointer(&place.0), detail: detail.into() };
        if self.found.len() < MAX_FAULTS && !self.found.contains(&fault) {
            self.found.push(fault);
        }
    }

    /// Whether this very place is at fault already.
    fn any_at(&self, place: &Place) -> bool {
        let pointer = pointer(&place.0);
        self.found.iter().chain(&self.written).any(|fault| fault.pointer == pointer)
    }

    /// Whether further faults would be left out anyway.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() == MAX_FAULTS
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty() && self.written.is_empty()
    }

    /// The faults, with the line of each when the document is written in lines.
    pub(super) fn into_errors(self, lines: &Lines<'_>) -> Vec<FieldError> {
        let Self { found: mut errors, mut written } = self;
        written.retain(|fault| errors.iter().all(|error| error.pointer != fault.pointer));
        written.truncate(MAX_FAULTS - errors.len());
        errors.append(&mut written);
        for error in &mut errors {
            if let Some(line) = lines.line_of(&error.pointer) {
                error.detail = format!("{} (line {line})", error.detail);
            }
        }
        errors
    }
}

/// The fields of an object, and behind it the objects that hold its defaults, nearest first.
///
/// `null` counts as absent, because the resolved form writes it for what is not there.
#[derive(Debug)]
pub(super) struct Fields<'v> {
    layers: Vec<Layer<'v>>,
    /// How many of the layers are looked through for unknown fields.
    own: usize,
    known: Vec<&'static str>,
}

#[derive(Debug, Clone)]
struct Layer<'v> {
    map: &'v Map<String, Value>,
    place: Place,
    /// The fields that are taken from this layer; all of them when absent.
    only: Option<&'static [&'static str]>,
}

impl<'v> Layer<'v> {
    fn get(&self, name: &str) -> Option<(&'v Value, Place)> {
        if self.only.is_some_and(|only| !only.contains(&name)) {
            return None;
        }
        let value = self.map.get(name).filter(|value| !value.is_null())?;
        Some((value, self.place.key(name)))
    }
}

impl<'v> Fields<'v> {
    /// The fields of `value`, or a fault that says what it should have been.
    pub(super) fn of(
        value: &'v Value,
        place: Place,
        what: &str,
        faults: &mut Faults,
    ) -> Option<Self> {
        let Value::Object(map) = value else {
            faults.add(&place, format!("expected {what} as a table, got {}", Found(value)));
            return None;
        };
        Some(Self { layers: vec![Layer { map, place, only: None }], own: 1, known: Vec::new() })
    }

    /// Where the object itself is.
    pub(super) fn place(&self) -> Place {
        self.layers.first().map(|layer| layer.place.clone()).unwrap_or_default()
    }

    /// Puts defaults behind these fields: all of them, or the named ones.
    pub(super) fn stack(&mut self, defaults: Option<&Self>, only: Option<&'static [&'static str]>) {
        for layer in defaults.into_iter().flat_map(|defaults| &defaults.layers) {
            self.layers.push(Layer { only, ..layer.clone() });
        }
    }

    /// The nearest value of a field, and where it is. The field counts as known from now on.
    pub(super) fn get(&mut self, name: &'static str) -> Option<(&'v Value, Place)> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        self.layers.iter().find_map(|layer| layer.get(name))
    }

    /// Whether a field is there.
    pub(super) fn has(&mut self, name: &'static str) -> bool {
        self.get(name).is_some()
    }

    /// Adds a fault when a field is absent; `what` completes "missing: ".
    pub(super) fn require(&mut self, name: &'static str, what: &str, faults: &mut Faults) {
        let place = self.place().key(name);
        if !self.has(name) && !faults.any_at(&place) {
            faults.add(&place, format!("missing: {what}"));
        }
    }

    /// Reads a field that may be absent.
    pub(super) fn optional<T>(
        &mut self,
        name: &'static str,
        faults: &mut Faults,
        read: impl FnOnce(&'v Value, &Place, &mut Faults) -> Option<T>,
    ) -> Option<T> {
        let (value, place) = self.get(name)?;
        read(value, &place, faults)
    }

    /// Reads a field that must be there; `what` completes "missing: ".
    pub(super) fn required<T>(
        &mut self,
        name: &'static str,
        what: &str,
        faults: &mut Faults,
        read: impl FnOnce(&'v Value, &Place, &mut Faults) -> Option<T>,
    ) -> Option<T> {
        self.require(name, what, faults);
        self.optional(name, faults, read)
    }

    /// A field that is an object, with the same field of the defaults behind it.
    pub(super) fn nested(
        &mut self,
        name: &'static str,
        what: &str,
        faults: &mut Faults,
    ) -> Option<Self> {
        self.get(name)?;
        let layers: Vec<_> = self
            .layers
            .iter()
            .filter_map(|layer| layer.get(name))
            .filter_map(|(value, place)| Self::of(value, place, what, faults))
            .flat_map(|fields| fields.layers)
            .collect();
        let own = layers.len();
        (own > 0).then(|| Self { layers, own, known: Vec::new() })
    }

    /// Which of two spellings of a field is used; both at once are a fault.
    pub(super) fn spelled(
        &mut self,
        short: &'static str,
        resolved: &'static str,
        faults: &mut Faults,
    ) -> &'static str {
        let Some((_, place)) = self.get(resolved) else {
            self.get(short);
            return short;
        };
        if self.has(short) {
            faults.add(&place, format!("{short} says the same; write one of the two"));
        }
        resolved
    }

    /// Every field that nobody asked for is a fault.
    pub(super) fn finish(self, faults: &mut Faults) {
        for Layer { map, place, .. } in &self.layers[..self.own] {
            for name in map.keys().filter(|name| !self.known.contains(&name.as_str())) {
                if faults.is_full() {
                    return;
                }
                let guess = did_you_mean(name, self.known.iter().copied());
                let allowed = self.known.join(", ");
                faults
                    .add(&place.key(name), format!("unknown field{guess}; allowed are {allowed}"));
            }
        }
    }
}

/// The items of a list with their places.
pub(super) fn items<'v>(
    value: &'v Value,
    place: &Place,
    what: &str,
    most: usize,
    faults: &mut Faults,
) -> Option<Vec<(&'v Value, Place)>> {
    let Value::Array(items) = value else {
        faults.add(place, format!("expected a list of {what}, got {}", Found(value)));
        return None;
    };
    if items.len() > most {
        faults.add(place, format!("{} {what} are more than the {most} allowed", items.len()));
        return None;
    }
    Some(items.iter().enumerate().map(|(index, item)| (item, place.index(index))).collect())
}

/// Reads a list of things with unique names; `forbidden` are names that mean something else.
pub(super) fn named_list<'v, T>(
    value: &'v Value,
    place: &Place,
    what: &'static str,
    forbidden: &[&str],
    taken: &mut BTreeSet<String>,
    faults: &mut Faults,
    mut read: impl FnMut(&mut Fields<'v>, Option<&str>, &mut Faults) -> Option<T>,
) -> (Vec<Option<T>>, Vec<String>) {
    let mut names = Vec::new();
    let mut things = Vec::new();
    for (value, place) in items(value, place, what, MOST_ITEMS, faults).unwrap_or_default() {
        let Some(mut fields) = Fields::of(value, place, what, faults) else {
            things.push(None);
            continue;
        };
        let at = fields.place().key("name");
        let own = fields.required("name", "a name", faults, name);
        let mut good = own.is_some();
        if let Some(own) = &own {
            if forbidden.contains(&own.as_str()) {
                faults.add(&at, format!("{own:?} means something else here; choose another name"));
                good = false;
            } else if !taken.insert(own.clone()) {
                faults.add(&at, format!("the name {own:?} is used twice"));
                good = false;
            }
        }
        let thing = read(&mut fields, own.as_deref(), faults);
        fields.finish(faults);
        names.extend(own);
        things.push(thing.filter(|_| good));
    }
    (things, names)
}

/// A value in words, cut to a length that fits a message.
pub(super) struct Found<'v>(pub(super) &'v Value);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(value) => write!(f, "the number {value}"),
            Value::String(text) => write!(f, "the string {}", Quoted(text)),
            Value::Array(_) => f.write_str("a list"),
            Value::Object(_) => f.write_str("a table"),
        }
    }
}

/// A text in quotes, cut after 60 characters.
pub(super) struct Quoted<'t>(pub(super) &'t str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(60) {
            Some((cut, _)) => write!(f, "{:?}…", &self.0[..cut]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

/// ` (did you mean "x"?)` when one of the words is close to `written`, else nothing.
pub(super) fn did_you_mean<'w>(written: &str, words: impl IntoIterator<Item = &'w str>) -> String {
    let far = 1 + written.chars().count().min(64) / 4;
    words
        .into_iter()
        .map(|word| (distance(written, word), word))
        .filter(|&(distance, word)| distance <= far && distance < word.chars().count())
        .min()
        .map(|(_, word)| format!(" (did you mean {word:?}?)"))
        .unwrap_or_default()
}

/// Edits between two words: insertions, deletions, changed and swapped letters. Words over 64 letters
/// are far from everything.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.to_lowercase().replace('_', "-").chars().collect();
    let right: Vec<char> = right.to_lowercase().replace('_', "-").chars().collect();
    if left.len() > 64 || right.len() > 64 {
        return usize::MAX;
    }
    let mut rows = vec![(0..=right.len()).collect::<Vec<_>>()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let mut best =
                (rows[i][j] + usize::from(a != b)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_named_and_far_ones_are_not() {
        assert_eq!(did_you_mean("strat", ["start", "count"]), " (did you mean \"start\"?)");
        assert_eq!(
            did_you_mean("held_out", ["training", "held-out"]),
            " (did you mean \"held-out\"?)"
        );
        assert_eq!(did_you_mean("colour", ["start", "count"]), "");
        assert_eq!(did_you_mean("x", ["y"]), "");
        assert_eq!(did_you_mean(&"a".repeat(100), ["a"]), "");
    }
}
