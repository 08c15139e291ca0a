//! Documents become protocols, and protocols become bytes that parse to the same protocol.

use heldout::domain::canonical;
use heldout::domain::protocol::{MediaType, PlayerSpec, Protocol, parse};
use heldout::domain::refusal::{Code, Refusal};
use serde_json::{Value, json};

pub(crate) const QUICKSTART: &str = include_str!("../../../protocols/quickstart.toml");

fn toml(text: &str) -> Result<Protocol, Refusal> {
    parse(text.as_bytes(), MediaType::Toml)
}

fn json(value: &Value) -> Result<Protocol, Refusal> {
    parse(value.to_string().as_bytes(), MediaType::Json)
}

fn pointers(refusal: &Refusal) -> Vec<&str> {
    refusal.errors.iter().map(|error| error.pointer.as_str()).collect()
}

#[test]
fn the_quickstart_is_complete_and_its_canonical_form_parses_to_itself() {
    let protocol = toml(QUICKSTART).unwrap();
    assert_eq!(protocol.train.len(), 2);
    assert_eq!(protocol.train[0].alpha, 1.0);
    assert_eq!(protocol.train[0].seeds, "training");
    assert!(protocol.seeds.values().all(|block| block.start.is_none()));
    assert!(
        matches!(&protocol.screen.arms[1].player, PlayerSpec::Direct { table } if table == "candidate")
    );

    let bytes = canonical::to_bytes(&protocol).unwrap();
    let again = parse(&bytes, MediaType::Json).unwrap();
    assert_eq!(again, protocol);
    assert_eq!(canonical::to_bytes(&again).unwrap(), bytes);
    let derived: Protocol = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(derived, protocol);
}

#[test]
fn the_same_document_in_json_has_the_same_digest() {
    let tree: toml::Table = QUICKSTART.parse().unwrap();
    let from_json = json(&serde_json::to_value(tree).unwrap()).unwrap();
    let digest = |protocol| canonical::sha256_hex(&canonical::to_bytes(protocol).unwrap());
    assert_eq!(digest(&from_json), digest(&toml(QUICKSTART).unwrap()));
}

#[test]
fn every_fault_of_a_document_is_reported_at_once() {
    let text = QUICKSTART
        .replace("tier = \"screen\"", "tier = \"scren\"")
        .replace("count = 65_536", "count = 0")
        .replace("rows,cols,phase=none", "rows,colums")
        .replace(
            "contrast = [\"candidate-d2s7\", \"fair-d2s7\"]",
            "contrast = [\"candidate-d2s7\", \"fair-d3s7\"]",
        );
    let refusal = toml(&text).unwrap_err();
    assert_eq!(refusal.code, Code::InvalidProtocol);
    assert_eq!(
        pointers(&refusal),
        ["/tier", "/seeds/training/count", "/train/arm/0/layout", "/gate/contrast/1"]
    );
    assert!(refusal.errors[0].detail.contains("(did you mean \"screen\"?) (line 11)"), "{refusal}");
}

#[test]
fn a_repeated_key_is_refused_where_it_is() {
    let text = QUICKSTART.replace("count = 64\n", "count = 64\ncount = 65\n");
    let refusal = toml(&text).unwrap_err();
    assert_eq!(refusal.code, Code::MalformedDocument);
    assert_eq!(pointers(&refusal), ["/seeds/validation/count"]);

    let refusal = parse(br#"{"seeds":{"a":{"count":1,"count":1}}}"#, MediaType::Json).unwrap_err();
    assert_eq!(refusal.code, Code::MalformedDocument);
    assert_eq!(pointers(&refusal), ["/seeds/a/count"]);
}

#[test]
fn a_body_that_is_not_an_object_is_refused() {
    for value in [json!(null), json!([]), json!("x"), json!(1)] {
        assert_eq!(pointers(&json(&value).unwrap_err()), [""], "{value}");
    }
}
