//! Canonical bytes: the same value gives the same bytes, whatever its document looked like.

use heldout::domain::canonical::{MAX_NESTING, read_json, sha256_hex, to_bytes};
use heldout::domain::refusal::Code;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Any JSON value whose numbers are doubles.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-(1_i64 << 53)..=1 << 53).prop_map(Value::from),
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..8)
                .prop_map(|map| Value::from(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Writes a value with its keys in another order and blanks between everything.
fn write_reordered(value: &Value, turn: usize, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push_str("[ ");
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { " ,\n" });
                write_reordered(item, turn, out);
            }
            out.push_str("\t]");
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            let by = turn % entries.len().max(1);
            entries.rotate_left(by);
            if turn % 2 == 1 {
                entries.reverse();
            }
            out.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                out.push_str(if index == 0 { "\r\n" } else { "," });
                out.push_str(&json!(key).to_string());
                out.push_str(" : ");
                write_reordered(value, turn, out);
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

fn longest_key(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(longest_key).max().unwrap_or(0),
        Value::Object(map) => {
            map.iter().map(|(key, value)| key.len().max(longest_key(value))).max().unwrap_or(0)
        }
        _ => 0,
    }
}

/// 23042372675190.0625 exactly: two numbers of seventeen digits are equally near.
#[test]
fn a_number_halfway_between_two_names_is_read_by_either() {
    for text in ["23042372675190.062", "23042372675190.063"] {
        let read = read_json(text.as_bytes()).unwrap();
        let bytes = to_bytes(&read).unwrap();
        assert_eq!(to_bytes(&read_json(&bytes).unwrap()).unwrap(), bytes);
    }
    assert!(read_json(b"23042372675190.061").is_err(), "the nearest double has another name");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn canonical_bytes_do_not_depend_on_the_order_of_keys(
        value in any_json().prop_filter("short keys", |value| longest_key(value) <= 256),
        turn in any::<usize>(),
    ) {
        let bytes = to_bytes(&value).unwrap();
        let mut text = String::new();
        write_reordered(&value, turn, &mut text);
        let read = read_json(text.as_bytes()).unwrap();
        prop_assert_eq!(&to_bytes(&read).unwrap(), &bytes, "{}", text);
        prop_assert_eq!(&to_bytes(&read_json(&bytes).unwrap()).unwrap(), &bytes);
    }

    #[test]
    fn different_values_have_different_bytes(left in any_json(), right in any_json()) {
        let same = to_bytes(&left).unwrap() == to_bytes(&right).unwrap();
        let (left, right) = (as_doubles(&left), as_doubles(&right));
        prop_assert_eq!(same, left == right);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_json(&bytes);
    }

    #[test]
    fn no_punctuation_makes_the_reader_panic(text in r#"[\[\]{},:"0-9.eE+\-\\untrlf ]{0,120}"#) {
        if let Ok(value) = read_json(text.as_bytes()) {
            let strict: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(value, strict);
        }
    }
}

/// JSON has one kind of number: 1 and 1.0 are the same value.
fn as_doubles(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().unwrap() + 0.0),
        Value::Array(items) => items.iter().map(as_doubles).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, value)| (key.clone(), as_doubles(value))).collect())
        }
        other => other.clone(),
    }
}

#[test]
fn the_bytes_are_those_of_the_standard() {
    let value: Value = serde_json::from_str(
        r#"{
            "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#,
    )
    .unwrap();
    let expected = concat!(
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
        r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#,
    );
    assert_eq!(String::from_utf8(to_bytes(&value).unwrap()).unwrap(), expected);
    // By UTF-16 units, not by code points: the last two would change places.
    let value = json!({"\u{20ac}": 1, "\r": 2, "1": 3, "\u{1f600}": 4, "\u{fb33}": 5});
    let expected = "{\"\\r\":2,\"1\":3,\"\u{20ac}\":1,\"\u{1f600}\":4,\"\u{fb33}\":5}";
    assert_eq!(String::from_utf8(to_bytes(&value).unwrap()).unwrap(), expected);
}

#[test]
fn digests_are_lower_case_hex() {
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(sha256_hex(b""), empty);
}

#[test]
fn what_has_two_readings_is_refused_where_it_is() {
    let refusal = read_json(br#"{"a":{"b~/c":1,"b~/c":2},"d":[{"e":1,"e":1}]}"#).unwrap_err();
    assert_eq!(refusal.code, Code::MalformedDocument);
    let pointers: Vec<_> = refusal.errors.iter().map(|error| error.pointer.as_str()).collect();
    assert_eq!(pointers, ["/a/b~0~1c", "/d/0/e"]);

    let refusal = read_json(br#"{"s":"1.1e5","a":[1,9007199254740993,{"b":0.1,"c":1e-999}]}"#);
    let refusal = refusal.unwrap_err();
    assert_eq!(refusal.code, Code::MalformedDocument);
    let pointers: Vec<_> = refusal.errors.iter().map(|error| error.pointer.as_str()).collect();
    assert_eq!(pointers, ["/a/1", "/a/2/c"]);
}

#[test]
fn nesting_is_read_up_to_the_limit() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(read_json(nested(MAX_NESTING).as_bytes()).is_ok());
    let refusal = read_json(nested(MAX_NESTING + 1).as_bytes()).unwrap_err();
    assert_eq!(refusal.code, Code::MalformedDocument);
}

#[test]
fn records_that_have_no_canonical_form_are_not_hashed() {
    for value in [json!(9007199254740993_u64), json!([-9007199254740993_i64])] {
        assert_eq!(to_bytes(&value).unwrap_err().code, Code::Internal, "{value}");
    }
    assert_eq!(to_bytes(&f64::NAN).unwrap_err().code, Code::Internal);
    assert_eq!(to_bytes(&u64::MAX).unwrap_err().code, Code::Internal);
    assert_eq!(to_bytes(&(1_u64 << 53)).unwrap(), b"9007199254740992");
}
