//! Documents become protocols, and protocols become bytes that parse to the same protocol.

use heldout::domain::canonical;
use heldout::domain::protocol::{
    Checks, MediaType, PlayerSpec, Protocol, Verdicts, estimate, parse,
};
use heldout::domain::refusal::{Code, Refusal};
use serde_json::{Value, json};

pub(crate) const QUICKSTART: &str = include_str!("../../../protocols/quickstart.toml");

/// A study of frozen tables: warm starts aside, every field that the quickstart does not use.
pub(crate) const WITHOUT_TRAINING: &str = r#"
format = "heldout-protocol-v1"
kind = "tables"
title = "A fourth ply for frozen tables"
hypothesis = "Another ply is worth more to the tables than to the fair leaf."
theory = "TH-20260906-ntuple-leaf-fourth-ply-search-compatible-ace4fe2a"
amends = { experiment = "EX-20260905-line-tuples-535b2620", reason = "on fresh seeds" }
tier = "qualify"
budget = { threads = 4, memory = "2 GiB", wall = "1d 12h" }
seeds.screen = { role = "held-out", start = "0xa52f2580", count = 512 }
[[tables]]
name = "prior"
sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
[[edit]]
name = "zeroed"
of = "prior"
set_untouched_to = "zero"
[screen]
move_cap = 1000
arm = [
    { name = "prior-d3s7", search = { depth = 3, strata = 7 }, leaf = "prior" },
    { name = "prior-d4s7", search = { depth = 4, strata = 7 }, leaf = "prior" },
    { name = "zeroed-1ply", direct = "zeroed" },
    { name = "fair-d3s7", search = { depth = 3, strata = 7 }, leaf = "fair" },
    { name = "fair-d4s7", search = { depth = 4, strata = 7 }, leaf = "fair" },
]
[gate]
contrast = ["prior-d4s7", "prior-d3s7"]
criteria = ["bootstrap-lower-above-zero", "frozen-digests"]
[[reading]]
name = "interaction"
difference_of = [["prior-d4s7", "prior-d3s7"], ["fair-d4s7", "fair-d3s7"]]
[[reading]]
name = "persistence"
contrast = ["prior-d4s7", "fair-d4s7"]
verdicts = "pass-fail"
"#;

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
    assert_eq!(protocol.train[0].alpha.to_bits(), 1.0_f64.to_bits());
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

#[test]
fn a_study_without_training_keeps_every_field() {
    let protocol = toml(WITHOUT_TRAINING).unwrap();
    assert!(protocol.train.is_empty() && protocol.select.is_none() && protocol.main.is_none());
    assert_eq!(protocol.budget.wall_seconds, 129_600);
    assert_eq!(protocol.budget.memory_bytes, 2 << 30);
    assert_eq!(protocol.screen.move_cap, 1_000);
    assert_eq!(protocol.checks, Checks::Full);
    assert_eq!(protocol.amends.as_ref().unwrap().reason, "on fresh seeds");
    assert_eq!(protocol.edits[0].of, "prior");
    assert_eq!(protocol.readings[0].verdicts, Verdicts::LargerSmallerInconclusive);
    assert_eq!(protocol.readings[1].verdicts, Verdicts::PassFail);
    let bytes = canonical::to_bytes(&protocol).unwrap();
    assert_eq!(parse(&bytes, MediaType::Json).unwrap(), protocol);
}

#[test]
fn defaults_of_training_reach_every_arm_and_the_main_run() {
    let text = QUICKSTART
        .replace("[train]\n", "[train]\nalpha = 0.5\nthreads = 1\n")
        .replace("name = \"columns\"\n", "name = \"columns\"\nalpha = 0.25\nvalidate = { games = 16 }\n")
        .replace("validate = { every_moves = 1_000_000, games = 64, search = { depth = 2, strata = 7 } }\n", "");
    let protocol = toml(&text).unwrap();
    let [lines, columns] = &protocol.train[..] else { panic!("two arms") };
    assert_eq!([lines.alpha, columns.alpha].map(f64::to_bits), [0.5, 0.25].map(f64::to_bits));
    assert_eq!((lines.threads, columns.threads), (1, 1));
    assert_eq!((lines.validate.games, columns.validate.games), (32, 16));
    assert_eq!(lines.validate.every_moves, columns.validate.every_moves);
    let main = protocol.main.unwrap();
    assert_eq!(main.validate, lines.validate);
    assert_eq!(main.chunk_moves, lines.chunk_moves);
}

#[test]
fn lockstep_is_in_the_resolved_form_only_where_it_is_asked_for() {
    let lock_free = toml(QUICKSTART).unwrap();
    let bytes = canonical::to_bytes(&lock_free).unwrap();
    assert!(!String::from_utf8(bytes).unwrap().contains("lockstep"));

    let text =
        QUICKSTART.replace("name = \"columns\"\n", "name = \"columns\"\nlockstep_games = 16\n");
    let protocol = toml(&text).unwrap();
    let games: Vec<_> = protocol.train.iter().map(|arm| arm.lockstep_games).collect();
    assert_eq!(games, [None, Some(16)]);
    let bytes = canonical::to_bytes(&protocol).unwrap();
    assert_eq!(parse(&bytes, MediaType::Json).unwrap(), protocol);
}

#[test]
fn the_estimate_of_the_quickstart_adds_up() {
    let protocol = toml(QUICKSTART).unwrap();
    let estimate = estimate(&protocol);
    let lines = estimate.arms[0].tables.as_ref().unwrap();
    assert_eq!((lines.entries, lines.active), (140_000_000, 14));
    // Twelve bytes an entry and four for every sixteen.
    assert_eq!(lines.trainable_bytes_bound, 1_715_000_000);
    let screens = protocol.screen.arms.len() as u64;
    assert_eq!(estimate.totals.screen_games, 256 * screens);
    assert_eq!(estimate.totals.held_out_seeds, 256);
    let trained: u64 = protocol.train.iter().map(|arm| arm.moves).sum();
    assert_eq!(estimate.totals.moves, trained + protocol.main.unwrap().moves);
    assert!(estimate.peak.resident_bytes < estimate.peak.bound_bytes);
    let one_ply = estimate.arms.iter().find(|arm| arm.name == "candidate-1ply").unwrap();
    assert_eq!(one_ply.work_bound_per_decision, 49);
}
