//! `protocols/README.md` says what the reader does: its example parses, its defaults are the defaults,
//! and every field and word that a refusal lists is in it.

use std::collections::BTreeSet;

use heldout::domain::protocol::{MediaType, Tier, parse};
use serde_json::{Value, json};

use crate::protocol::{QUICKSTART, WITHOUT_TRAINING};

const README: &str = include_str!("../../../protocols/README.md");

fn example() -> &'static str {
    let start = README.split_once("```toml\n").unwrap().1;
    start.split_once("```").unwrap().0
}

/// Removes `path` from a tree.
fn without(document: &Value, path: &str) -> Value {
    let mut document = document.clone();
    let (parent, last) = path.rsplit_once('/').unwrap();
    document.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(last).unwrap();
    document
}

#[test]
fn the_example_is_a_protocol() {
    parse(example().as_bytes(), MediaType::Toml).unwrap();
}

#[test]
fn what_the_example_calls_a_default_is_one() {
    let protocol = parse(example().as_bytes(), MediaType::Toml).unwrap();
    let tree: toml::Table = example().parse().unwrap();
    let document = serde_json::to_value(tree).unwrap();
    let mut path: Vec<String> = Vec::new();
    let mut items = std::collections::BTreeMap::new();
    let mut removed = 0;
    for line in example().lines() {
        if let Some(header) = line.strip_prefix("[[").and_then(|line| line.split("]]").next()) {
            let index = items.entry(header).and_modify(|n| *n += 1).or_insert(0_usize);
            path = header.split('.').map(str::to_owned).collect();
            path.push(index.to_string());
        } else if let Some(header) = line.strip_prefix('[').and_then(|line| line.split(']').next())
        {
            path = header.split('.').map(str::to_owned).collect();
        }
        if line.contains("# default") {
            let key = line.split_once(" = ").unwrap().0;
            let mut tokens = vec![String::new()];
            tokens.extend(path.iter().cloned());
            tokens.push(key.to_owned());
            let pointer = tokens.join("/");
            let shorter = without(&document, &pointer).to_string();
            let resolved = parse(shorter.as_bytes(), MediaType::Json);
            assert_eq!(resolved.unwrap(), protocol, "{pointer}");
            removed += 1;
        }
    }
    assert_eq!(removed, example().matches("# default").count());
    assert!(removed >= 18);
}

/// Adds a field to every object of a document, one at a time, and collects what was allowed there.
fn allowed_fields(value: &Value, at: &str, document: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            let mut damaged = document.clone();
            let object = damaged.pointer_mut(at).unwrap().as_object_mut().unwrap();
            object.insert(String::from("zzz"), json!({}));
            if let Err(refusal) = parse(damaged.to_string().as_bytes(), MediaType::Json) {
                for error in refusal.errors.iter().filter(|e| e.pointer == format!("{at}/zzz")) {
                    if let Some((_, fields)) = error.detail.split_once("allowed are ") {
                        out.extend(fields.split(", ").map(str::to_owned));
                    }
                }
            }
            for (key, value) in map {
                allowed_fields(value, &format!("{at}/{key}"), document, out);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                allowed_fields(value, &format!("{at}/{index}"), document, out);
            }
        }
        _ => {}
    }
}

#[test]
fn every_field_is_described() {
    let mut fields = BTreeSet::new();
    for text in [QUICKSTART, WITHOUT_TRAINING, example()] {
        let tree: toml::Table = text.parse().unwrap();
        let short = serde_json::to_value(tree).unwrap();
        allowed_fields(&short, "", &short, &mut fields);
        let protocol = parse(text.as_bytes(), MediaType::Toml).unwrap();
        let resolved = serde_json::to_value(protocol).unwrap();
        allowed_fields(&resolved, "", &resolved, &mut fields);
    }
    assert!(fields.len() > 60, "{fields:?}");
    let words: BTreeSet<&str> =
        README.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')).collect();
    for field in &fields {
        assert!(words.contains(field.as_str()), "README.md does not mention {field}");
    }
}

#[test]
fn every_word_is_described() {
    let resolved: Value =
        serde_json::to_value(parse(example().as_bytes(), MediaType::Toml).unwrap()).unwrap();
    let mut found = 0;
    for place in [
        "/kind",
        "/tier",
        "/information",
        "/engine",
        "/checks",
        "/seeds/screen/role",
        "/select/rule",
        "/main/freeze",
        "/edits/0/set_untouched_to",
        "/gate/criteria/0",
        "/readings/0/verdicts",
    ] {
        let mut damaged = resolved.clone();
        *damaged.pointer_mut(place).unwrap() = json!("zzzzzzzzzzzz");
        let refusal = parse(damaged.to_string().as_bytes(), MediaType::Json).unwrap_err();
        let error = refusal.errors.iter().find(|error| error.pointer == place).unwrap();
        let words = error.detail.split_once(" is none of ").map(|(_, words)| words);
        for word in words.unwrap_or_default().split(", ").filter(|word| !word.is_empty()) {
            assert!(README.contains(&format!("`{word}`")), "README.md does not explain {word}");
            found += 1;
        }
    }
    assert!(found > 20, "{found}");
}

#[test]
fn the_fewest_games_of_a_tier_are_right() {
    let tiers = [Tier::Check, Tier::Pilot, Tier::Screen, Tier::Standard, Tier::Qualify];
    for tier in tiers {
        let word = serde_json::to_value(tier).unwrap();
        let stated = format!("`{}` {}", word.as_str().unwrap(), tier.fewest_games());
        assert!(README.contains(&stated), "{stated}");
    }
}
