//! Readers of single values: each says what is allowed when it refuses.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde_json::Value;

use super::fields::{Faults, Found, Place, Quoted, did_you_mean};
use crate::domain::seed_range::Seed;

/// Longest name of anything, in characters.
pub(super) const MAX_NAME: usize = 64;

fn string<'v>(value: &'v Value, place: &Place, what: &str, faults: &mut Faults) -> Option<&'v str> {
    let Value::String(text) = value else {
        faults.add(place, format!("expected {what}, got {}", Found(value)));
        return None;
    };
    Some(text)
}

/// Prose that is not blank, of at most `most` characters; `lines` says whether it may have several.
pub(super) fn prose(
    most: usize,
    lines: bool,
) -> impl Fn(&Value, &Place, &mut Faults) -> Option<String> {
    move |value, place, faults| {
        let text = string(value, place, "a string", faults)?;
        let length = text.chars().count();
        if text.trim().is_empty() {
            faults.add(place, "is blank; say it in words");
        } else if length > most {
            faults.add(place, format!("has {length} characters; at most {most} are kept"));
        } else if text
            .chars()
            .any(|c| c.is_control() && !(lines && matches!(c, '\n' | '\t' | '\r')))
        {
            let detail = if lines {
                "holds control characters other than line breaks and tabs"
            } else {
                "holds line breaks or other control characters; write one line"
            };
            faults.add(place, detail);
        } else {
            return Some(text.to_owned());
        }
        None
    }
}

/// Whether a text can be a name: letters, digits, `-`, `_` and `.`, the first a letter or digit.
fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// The name of a block, an arm, a table or a reading.
pub(super) fn name(value: &Value, place: &Place, faults: &mut Faults) -> Option<String> {
    let text = string(value, place, "a name", faults)?;
    check_name(text, place, faults).then(|| text.to_owned())
}

/// Adds a fault when a text cannot be a name.
pub(super) fn check_name(text: &str, place: &Place, faults: &mut Faults) -> bool {
    let good = is_name(text);
    if !good {
        faults.add(
            place,
            format!(
                "{} is not a name; a name has 1 to {MAX_NAME} of the letters a-z and A-Z, digits, \
                 '-', '_' and '.', the first a letter or digit",
                Quoted(text)
            ),
        );
    }
    good
}

/// Any text; whoever asks checks what it names.
pub(super) fn text(value: &Value, place: &Place, faults: &mut Faults) -> Option<String> {
    let text = value.as_str().map(str::to_owned);
    if text.is_none() {
        faults.add(place, format!("expected a name, got {}", Found(value)));
    }
    text
}

/// A whole number of a range. `5.0` is the same JSON number as `5`.
pub(super) fn whole(
    range: RangeInclusive<u64>,
) -> impl Fn(&Value, &Place, &mut Faults) -> Option<u64> {
    move |value, place, faults| {
        let whole = match value {
            Value::Number(number) => number.as_u64().or_else(|| {
                let float = number.as_f64()?;
                let fits = (0.0..=9007199254740992.0).contains(&float) && float.fract() == 0.0;
                fits.then_some(float as u64)
            }),
            _ => None,
        };
        let whole = whole.filter(|whole| range.contains(whole));
        if whole.is_none() {
            let (least, most) = (range.start(), range.end());
            faults.add(
                place,
                format!("expected a whole number from {least} to {most}, got {}", Found(value)),
            );
        }
        whole
    }
}

/// As [`whole`], for fields of 32 bits.
pub(super) fn whole32(
    range: RangeInclusive<u32>,
) -> impl Fn(&Value, &Place, &mut Faults) -> Option<u32> {
    let wide = whole(u64::from(*range.start())..=u64::from(*range.end()));
    move |value, place, faults| wide(value, place, faults).and_then(|whole| whole.try_into().ok())
}

/// A number of a range. Minus zero reads as zero.
pub(super) fn number(
    range: RangeInclusive<f64>,
) -> impl Fn(&Value, &Place, &mut Faults) -> Option<f64> {
    move |value, place, faults| {
        let number = value.as_f64().filter(|number| range.contains(number));
        if number.is_none() {
            let (least, most) = (range.start(), range.end());
            faults.add(
                place,
                format!("expected a number from {least} to {most}, got {}", Found(value)),
            );
        }
        number.map(|number| number + 0.0)
    }
}

/// A seed. A number is refused with the string it should have been.
pub(super) fn seed(value: &Value, place: &Place, faults: &mut Faults) -> Option<Seed> {
    let text = match value {
        Value::String(text) => text,
        Value::Number(number) => {
            let instead = number
                .as_u64()
                .and_then(|seed| u32::try_from(seed).ok())
                .map(|seed| format!(": write \"{}\"", Seed(seed)))
                .unwrap_or_default();
            faults.add(place, format!("a seed is a hex string, never a number{instead}"));
            return None;
        }
        _ => {
            faults.add(place, format!("expected a seed like \"0xa52f2140\", got {}", Found(value)));
            return None;
        }
    };
    parsed(text, place, faults)
}

/// Anything that is written as a string and explains itself when it cannot be read.
fn parsed<T: FromStr<Err: Display>>(text: &str, place: &Place, faults: &mut Faults) -> Option<T> {
    match text.parse() {
        Ok(parsed) => Some(parsed),
        Err(error) => {
            faults.add(place, error.to_string().chars().take(400).collect::<String>());
            None
        }
    }
}

/// As [`parsed`], from a value; `what` completes "expected ".
pub(super) fn parse<T: FromStr<Err: Display>>(
    what: &'static str,
) -> impl Fn(&Value, &Place, &mut Faults) -> Option<T> {
    move |value, place, faults| parsed(string(value, place, what, faults)?, place, faults)
}

/// One of a closed list of words.
pub(super) fn word<T: Copy>(
    words: &'static [(&'static str, T)],
) -> impl Fn(&Value, &Place, &mut Faults) -> Option<T> {
    move |value, place, faults| {
        let list = || words.iter().map(|(word, _)| *word);
        let allowed = list().collect::<Vec<_>>().join(", ");
        let text = string(value, place, &format!("one of {allowed}"), faults)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let detail = if let [(only, _)] = words {
                format!("{} is not {only:?}, the only word here", Quoted(text))
            } else {
                let guess = did_you_mean(text, list());
                format!("{} is none of {allowed}{guess}", Quoted(text))
            };
            faults.add(place, detail);
        }
        found
    }
}

/// A SHA-256 as 64 lower-case hex digits.
pub(super) fn sha256(value: &Value, place: &Place, faults: &mut Faults) -> Option<String> {
    let text = string(value, place, "a SHA-256 as 64 hex digits", faults)?;
    if text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Some(text.to_owned());
    }
    let length = text.chars().count();
    faults.add(
        place,
        format!("expected a SHA-256 as 64 lower-case hex digits, got {length} characters"),
    );
    None
}

const BYTE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// An amount of memory like `16 GiB`.
pub(super) fn bytes(
    range: RangeInclusive<u64>,
) -> impl Fn(&Value, &Place, &mut Faults) -> Option<u64> {
    move |value, place, faults| {
        let units = BYTE_UNITS.iter().map(|(unit, _)| *unit).collect::<Vec<_>>().join(", ");
        let what = format!("an amount of memory like \"16 GiB\" (units {units})");
        let text = string(value, place, &what, faults)?;
        let amount = quantity(text, BYTE_UNITS);
        let Some(amount) = amount else {
            faults.add(place, format!("{} is not {what}", Quoted(text)));
            return None;
        };
        in_range(amount, &range, "bytes", place, faults)
    }
}

const TIME_UNITS: &[(&str, u64)] = &[("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];

/// A length of time like `3h` or `1h 30m`, in whole seconds.
pub(super) fn duration(
    range: RangeInclusive<u64>,
) -> impl Fn(&Value, &Place, &mut Faults) -> Option<u64> {
    move |value, place, faults| {
        let what = "a time like \"3h\" or \"1h 30m\" (units d, h, m, s)";
        let text = string(value, place, what, faults)?;
        let mut parts = text.split_whitespace();
        let total = parts.try_fold((u64::MAX, 0_u64), |(last, sum), part| {
            let unit = TIME_UNITS.iter().find(|(unit, _)| part.ends_with(unit))?.1;
            let seconds = quantity(part, TIME_UNITS)?;
            (unit < last).then_some((unit, sum.checked_add(seconds)?))
        });
        let Some((_, seconds)) = total.filter(|(last, _)| *last != u64::MAX) else {
            faults.add(place, format!("{} is not {what}, largest unit first", Quoted(text)));
            return None;
        };
        in_range(seconds, &range, "seconds", place, faults)
    }
}

/// Digits, optionally a fraction, and a unit; the amount must be whole in the smallest unit.
fn quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (digits, unit) = text.split_at(split);
    let unit = units.iter().find(|(name, _)| *name == unit.trim())?.1;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    if fraction.is_empty() || fraction.len() > 6 {
        return None;
    }
    let parts = (0..fraction.len()).fold(1_u64, |parts, _| parts * 10);
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let part = fraction.parse::<u64>().ok()?.checked_mul(unit)?;
    if part % parts == 0 { whole.checked_add(part / parts) } else { None }
}

fn in_range(
    amount: u64,
    range: &RangeInclusive<u64>,
    unit: &str,
    place: &Place,
    faults: &mut Faults,
) -> Option<u64> {
    if !range.contains(&amount) {
        let (least, most) = (range.start(), range.end());
        faults.add(place, format!("{amount} {unit} are not {least} to {most} {unit}"));
        return None;
    }
    Some(amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_whole_in_the_smallest_unit() {
        assert_eq!(quantity("16 GiB", BYTE_UNITS), Some(16 << 30));
        assert_eq!(quantity("1.5GiB", BYTE_UNITS), Some(3 << 29));
        assert_eq!(quantity("0.3 B", BYTE_UNITS), None);
        assert_eq!(quantity("2 gb", BYTE_UNITS), None);
        assert_eq!(quantity("GiB", BYTE_UNITS), None);
        assert_eq!(quantity("1..5 GiB", BYTE_UNITS), None);
        assert_eq!(quantity("99999999999 TiB", BYTE_UNITS), None);
        assert_eq!(quantity("16", BYTE_UNITS), None);
    }

    fn seconds(text: &str) -> Option<u64> {
        let value = Value::from(text);
        duration(1..=1_000_000)(&value, &Place::default(), &mut Faults::default())
    }

    #[test]
    fn times_add_up_from_the_largest_unit() {
        assert_eq!(seconds("3h"), Some(10_800));
        assert_eq!(seconds("1h 30m"), Some(5_400));
        assert_eq!(seconds("1.5h"), Some(5_400));
        assert_eq!(seconds("30m 1h"), None);
        assert_eq!(seconds("1h 1h"), None);
        assert_eq!(seconds(""), None);
        assert_eq!(seconds("3 h"), None);
        assert_eq!(seconds("0s"), None);
    }
}
