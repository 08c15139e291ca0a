//! From bytes to JSON and back, with one reading only.
//!
//! Promised: what [`read_json`] accepts means the same to every JSON reader, and [`to_bytes`] writes
//! equal values as equal bytes (RFC 8785), whatever order their fields were in.
//! Refused, each with the place: bytes that are not UTF-8, bodies over [`MAX_BYTES`], nesting deeper
//! than [`MAX_NESTING`], keys written twice, keys over [`MAX_KEY_BYTES`], and numbers that a reader
//! with doubles would have to round.

use std::cell::RefCell;
use std::fmt;

use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

use super::refusal::{Code, FieldError, Refusal};

/// Largest document, in bytes: 1 MiB.
pub const MAX_BYTES: usize = 1 << 20;
/// Deepest nesting of tables and lists, the outermost one counting 1.
pub const MAX_NESTING: usize = 64;
/// Longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 256;
/// Faults after which a document is not looked at any further.
pub(crate) const MAX_FAULTS: usize = 100;

/// The text of a document.
///
/// # Errors
/// [`Code::TooLarge`] over [`MAX_BYTES`]; [`Code::MalformedDocument`] when the bytes are not UTF-8
/// (with the offset of the first bad one), begin with a byte order mark, or hold nothing.
pub fn text(bytes: &[u8]) -> Result<&str, Refusal> {
    if bytes.len() > MAX_BYTES {
        return Err(Refusal::new(
            Code::TooLarge,
            format!("the document has {} bytes; at most {MAX_BYTES} are read", bytes.len()),
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let offset = error.valid_up_to();
        malformed("the document is not UTF-8")
            .at("", format!("byte {:#04x} at offset {offset} is not UTF-8", bytes[offset]))
    })?;
    if text.starts_with('\u{feff}') {
        return Err(malformed("the document begins with a byte order mark")
            .at("", "the first three bytes are a byte order mark; save the file without it"));
    }
    if text.trim().is_empty() {
        return Err(malformed("the document is empty").at("", "there is nothing to read"));
    }
    Ok(text)
}

/// Reads one JSON value.
///
/// # Errors
/// As [`text`], and [`Code::MalformedDocument`] with every repeated key and every inexact number.
pub fn read_json(bytes: &[u8]) -> Result<Value, Refusal> {
    let (value, inexact) = read_json_leniently(bytes)?;
    if inexact.is_empty() {
        return Ok(value);
    }
    Err(Refusal {
        errors: inexact,
        ..malformed("the document holds numbers that would be rounded when it is read")
    })
}

/// As [`read_json`], but inexact numbers come beside the value, so that a reader of fields can
/// report them together with its own faults.
pub(crate) fn read_json_leniently(bytes: &[u8]) -> Result<(Value, Vec<FieldError>), Refusal> {
    let text = text(bytes)?;
    let state = RefCell::new(State { numbers: number_tokens(text), ..State::default() });
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = Strict { state: &state, nesting: 0 }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    let state = state.into_inner();
    if !state.repeated.is_empty() {
        return Err(Refusal {
            errors: state.repeated,
            ..malformed("the document writes a key twice, so it has two readings")
        });
    }
    match read {
        Ok(value) => Ok((value, state.inexact)),
        Err(error) => Err(malformed("the document is not JSON that can be read")
            .at(pointer(&state.path), error.to_string())),
    }
}

fn malformed(detail: &str) -> Refusal {
    Refusal::new(Code::MalformedDocument, detail)
}

/// The RFC 8785 bytes of a value: the only form that is hashed.
///
/// # Errors
/// [`Code::Internal`] when the value holds a number that is not finite or an integer that is not a
/// double; no type of this program does.
pub fn to_bytes<T: Serialize>(value: &T) -> Result<Vec<u8>, Refusal> {
    let not_canonical = |reason: &str| {
        Refusal::new(Code::Internal, format!("a record has no canonical form: {reason}"))
    };
    let bytes = serde_json_canonicalizer::to_vec(value)
        .map_err(|error| not_canonical(&error.to_string()))?;
    let plain = serde_json::to_value(value).map_err(|error| not_canonical(&error.to_string()))?;
    if holds_rounded_integer(&plain) {
        return Err(not_canonical("it holds an integer that a double would round"));
    }
    Ok(bytes)
}

fn holds_rounded_integer(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            let nearest = number.as_f64().unwrap_or(f64::NAN);
            !number.is_f64() && !is_exact(&number.to_string(), nearest)
        }
        Value::Array(items) => items.iter().any(holds_rounded_integer),
        Value::Object(fields) => fields.values().any(holds_rounded_integer),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// SHA-256 as 64 lower-case hex digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// RFC 6901 pointer of a path.
pub(crate) fn pointer<S: AsRef<str>>(path: &[S]) -> String {
    let mut pointer = String::new();
    for token in path {
        pointer.push('/');
        pointer.push_str(&token.as_ref().replace('~', "~0").replace('/', "~1"));
    }
    pointer
}

/// Why a number that is not exactly a double is refused.
pub(crate) fn inexact_detail(text: &str, nearest: f64) -> String {
    let shown: String = text.chars().take(40).collect();
    let cut = if shown.len() < text.len() { "…" } else { "" };
    format!(
        "the number {shown}{cut} does not round-trip: as a double it becomes {nearest:?}; \
         write a number that is kept exactly, at most 2^53 = 9007199254740992 when it is whole"
    )
}

/// Whether `nearest`, printed with the fewest digits that name it, has exactly the value of the
/// decimal `text`: the text survives being read as a double and written again.
///
/// Halfway between two such numbers both name the double, and printers differ in which they choose;
/// what the canonical form would write is as good as what this library would.
pub(crate) fn is_exact(text: &str, nearest: f64) -> bool {
    let Some(written) = Decimal::of(text) else { return false };
    let is = |printed: &str| Decimal::of(printed).is_some_and(|printed| printed == written);
    is(&format!("{nearest:e}"))
        || serde_json_canonicalizer::to_string(&nearest).is_ok_and(|printed| is(&printed))
}

/// A decimal number without leading and trailing zeros: digits times a power of ten. Signs are left
/// out, as both sides of a comparison have the same one.
#[derive(PartialEq)]
struct Decimal {
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn of(text: &str) -> Option<Self> {
        let text = text.trim_start_matches(['-', '+']);
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let significant = digits.trim_end_matches('0');
        let trailing = (digits.len() - significant.len()) as i64;
        let significant = significant.trim_start_matches('0');
        if significant.is_empty() {
            return Some(Self { digits: String::new(), exponent: 0 });
        }
        let exponent: i64 = exponent.parse().ok()?;
        let exponent = exponent.checked_sub(fraction.len() as i64)?.checked_add(trailing)?;
        Some(Self { digits: significant.to_owned(), exponent })
    }
}

/// The number tokens of a JSON text in order. Up to the first syntax error they are the numbers that
/// a JSON reader meets, in the same order.
fn number_tokens(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        at += 1;
        match bytes[start] {
            b'"' => {
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                while at < bytes.len()
                    && matches!(bytes[at], b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')
                {
                    at += 1;
                }
                tokens.push(&text[start..at]);
            }
            _ => {}
        }
    }
    tokens
}

#[derive(Default)]
struct State<'t> {
    path: Vec<String>,
    numbers: Vec<&'t str>,
    next_number: usize,
    repeated: Vec<FieldError>,
    inexact: Vec<FieldError>,
}

impl State<'_> {
    fn number(&mut self, nearest: f64) {
        let text = self.numbers.get(self.next_number).copied().unwrap_or("");
        self.next_number += 1;
        if !is_exact(text, nearest) && self.inexact.len() < MAX_FAULTS {
            let detail = inexact_detail(text, nearest);
            self.inexact.push(FieldError { pointer: pointer(&self.path), detail });
        }
    }
}

/// Reads a value into [`Value`], keeping track of where it is.
#[derive(Clone, Copy)]
struct Strict<'s, 't> {
    state: &'s RefCell<State<'t>>,
    nesting: usize,
}

impl Strict<'_, '_> {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.nesting == MAX_NESTING {
            return Err(E::custom(format_args!("nests deeper than {MAX_NESTING} levels")));
        }
        Ok(Self { nesting: self.nesting + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        self.state.borrow_mut().number(value as f64);
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        self.state.borrow_mut().number(value as f64);
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.state.borrow_mut().number(value);
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut list = Vec::new();
        loop {
            self.state.borrow_mut().path.push(list.len().to_string());
            let Some(item) = items.next_element_seed(inner)? else { break };
            self.state.borrow_mut().path.pop();
            list.push(item);
        }
        self.state.borrow_mut().path.pop();
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if key.len() > MAX_KEY_BYTES {
                return Err(A::Error::custom(format_args!(
                    "a key has {} bytes; at most {MAX_KEY_BYTES} are read",
                    key.len()
                )));
            }
            self.state.borrow_mut().path.push(key.clone());
            let value = entries.next_value_seed(inner)?;
            let mut state = self.state.borrow_mut();
            if map.contains_key(&key) && state.repeated.len() < MAX_FAULTS {
                let pointer = pointer(&state.path);
                let detail = format!("the key {key:?} is written twice in one object");
                state.repeated.push(FieldError { pointer, detail });
            }
            state.path.pop();
            drop(state);
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_only_when_nothing_is_lost() {
        for (text, exact) in [
            ("0", true),
            ("-0.0", true),
            ("0e99999999999999999999", true),
            ("1.50", true),
            ("1E3", true),
            ("0.1", true),
            ("100", true),
            ("9007199254740992", true),
            ("9007199254740993", false),
            ("9007199254740994", true),
            ("0.1000000000000000055511151231257827", false),
            ("1e-400", false),
            ("1e23", true),
            ("123456789.123456789123", false),
        ] {
            assert_eq!(is_exact(text, text.parse().unwrap()), exact, "{text}");
        }
    }

    #[test]
    fn number_tokens_skip_strings() {
        let text = r#"{"1":[-1.5e+3,"2\"3",4],"5\\":6}"#;
        assert_eq!(number_tokens(text), ["-1.5e+3", "4", "6"]);
        assert_eq!(number_tokens(r#"["\"#), Vec::<&str>::new());
    }
}
