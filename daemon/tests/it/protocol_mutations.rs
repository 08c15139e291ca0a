//! Random damage to good documents: nothing panics, every refusal has a place, and whatever is still
//! accepted keeps every promise of a protocol.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use engine_core::ntuple::Layout;
use heldout::domain::canonical::to_bytes;
use heldout::domain::protocol::{
    FORMAT, MediaType, PlayerSpec, Protocol, RULES, ReadingOf, Role, SeedBlock, Validate, estimate,
    parse,
};
use heldout::domain::seed_range::RESERVED;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::protocol::{QUICKSTART, WITHOUT_TRAINING};

/// Good documents in every spelling: short from TOML, and resolved.
static GOOD_DOCUMENTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let mut documents = Vec::new();
    for text in [QUICKSTART, WITHOUT_TRAINING] {
        let tree: toml::Table = text.parse().unwrap();
        documents.push(serde_json::to_value(tree).unwrap());
        let protocol = parse(text.as_bytes(), MediaType::Toml).unwrap();
        documents.push(serde_json::to_value(protocol).unwrap());
    }
    documents
});

/// All field names and all values of the good documents.
static PIECES: LazyLock<(Vec<String>, Vec<Value>)> = LazyLock::new(|| {
    let mut keys = BTreeSet::new();
    let mut values = Vec::new();
    for document in GOOD_DOCUMENTS.iter() {
        all_keys(document, &mut keys);
        let mut all = Vec::new();
        places(document, "", &mut all);
        values.extend(all.into_iter().filter_map(|place| document.pointer(&place).cloned()));
    }
    (keys.into_iter().collect(), values)
});

/// The places of all values inside a value.
fn places(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{index}"), out);
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{at}/{key}"), out);
            }
        }
        _ => {}
    }
}

fn all_keys(value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| all_keys(item, out)),
        Value::Object(map) => {
            out.extend(map.keys().cloned());
            map.values().for_each(|value| all_keys(value, out));
        }
        _ => {}
    }
}

#[derive(Debug, Clone)]
enum Damage {
    Remove,
    Put(Value),
    CopyFrom(prop::sample::Index),
    Rename(prop::sample::Index),
    Repeat,
    Wrap,
}

fn damage() -> impl Strategy<Value = Damage> {
    let values = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!([])),
        Just(json!({})),
        any::<i64>().prop_map(|n| json!(n % (1 << 53))),
        (0_u32..6).prop_map(|n| json!(n)),
        (-2.0..2.0_f64).prop_map(|x| json!(x)),
        "[a-z0-9-]{0,8}".prop_map(Value::from),
        prop::sample::select(vec![
            "candidate",
            "fair",
            "screen",
            "training",
            "validation",
            "held-out",
            "rows,cols",
            "0xa5300000",
            "0xa5277000",
            "4 GiB",
            "1 MiB",
            "1h",
            "pass-fail",
            "qualify",
            "main",
        ])
        .prop_map(Value::from),
    ];
    prop_oneof![
        2 => Just(Damage::Remove),
        4 => values.prop_map(Damage::Put),
        3 => any::<prop::sample::Index>().prop_map(Damage::CopyFrom),
        2 => any::<prop::sample::Index>().prop_map(Damage::Rename),
        1 => Just(Damage::Repeat),
        1 => Just(Damage::Wrap),
    ]
}

fn inflict(document: &mut Value, place: prop::sample::Index, damage: Damage) {
    let mut all = Vec::new();
    places(document, "", &mut all);
    let place = all[place.index(all.len())].clone();
    let copied = match &damage {
        Damage::CopyFrom(index) => document.pointer(&all[index.index(all.len())]).cloned(),
        _ => None,
    };
    let (parent, last) = place.rsplit_once('/').unwrap_or_default();
    match damage {
        Damage::Put(value) => *document.pointer_mut(&place).unwrap() = value,
        Damage::CopyFrom(_) => *document.pointer_mut(&place).unwrap() = copied.unwrap(),
        Damage::Wrap => {
            let value = document.pointer_mut(&place).unwrap();
            *value = json!([value.take()]);
        }
        Damage::Remove | Damage::Rename(_) | Damage::Repeat if place.is_empty() => {}
        Damage::Remove => match document.pointer_mut(parent).unwrap() {
            Value::Array(items) => drop(items.remove(last.parse().unwrap())),
            Value::Object(map) => drop(map.remove(last)),
            _ => unreachable!(),
        },
        Damage::Rename(to) => {
            if let Value::Object(map) = document.pointer_mut(parent).unwrap()
                && let Some(value) = map.remove(last)
            {
                map.insert(to.get(&PIECES.0).clone(), value);
            }
        }
        Damage::Repeat => {
            if let Value::Array(items) = document.pointer_mut(parent).unwrap() {
                let again = items[last.parse::<usize>().unwrap()].clone();
                items.push(again);
            }
        }
    }
}

fn unique<'n>(names: impl IntoIterator<Item = &'n str>) -> bool {
    let mut seen = BTreeSet::new();
    names.into_iter().all(|name| !name.is_empty() && seen.insert(name.to_owned()))
}

fn has_role(protocol: &Protocol, block: &str, role: Role) -> bool {
    protocol.seeds.get(block).is_some_and(|block| block.role == role)
}

fn assert_validation(protocol: &Protocol, validate: &Validate, moves: u64, chunk: u64) {
    assert!(has_role(protocol, &validate.seeds, Role::Validation));
    assert!((2..=protocol.seeds[&validate.seeds].count).contains(&validate.games));
    assert!(1 <= validate.every_moves && validate.every_moves <= moves);
    assert!(1 <= chunk && chunk <= validate.every_moves);
    assert!((1..=4).contains(&validate.search.depth));
    assert!((1..=7).contains(&validate.search.strata));
}

/// The promises of a protocol, written down a second time.
fn assert_promises(protocol: &Protocol) {
    assert_eq!(protocol.format, FORMAT);
    assert_eq!(protocol.engine, RULES);
    let ranges: Vec<_> = protocol.seeds.values().filter_map(SeedBlock::range).collect();
    for (index, range) in ranges.iter().enumerate() {
        assert!(ranges[..index].iter().all(|other| !range.overlaps(other)));
        assert!(RESERVED.iter().all(|(_, reserved)| !range.overlaps(reserved)));
    }
    for block in protocol.seeds.values() {
        assert!(block.count > 0 && block.start.is_some() == block.range().is_some());
    }

    let candidate = !protocol.train.is_empty();
    assert_eq!(candidate, protocol.select.is_some());
    assert!(protocol.main.is_none() || candidate);
    assert!(unique(protocol.train.iter().map(|arm| arm.name.as_str())));
    for arm in &protocol.train {
        assert_eq!(arm.layout.parse::<Layout>().unwrap().to_string(), arm.layout);
        assert!(arm.alpha > 0.0 && arm.alpha.is_finite() && arm.clamp_rises > 0.0);
        assert!((0.0..=1.0).contains(&arm.epsilon) && arm.optimistic_rises >= 0.0);
        assert!(arm.clamp_rises.is_finite() && arm.optimistic_rises.is_finite());
        assert!((1..=protocol.budget.threads).contains(&arm.threads));
        assert!(arm.lockstep_games.is_none_or(|games| (1..=1024).contains(&games)));
        assert!(arm.move_cap > 0);
        assert!(has_role(protocol, &arm.seeds, Role::Training));
        assert_validation(protocol, &arm.validate, arm.moves, arm.chunk_moves);
        if let Some(init) = &arm.init_from {
            assert!(protocol.tables.iter().any(|table| table.name == *init));
        }
    }
    if let Some(main) = &protocol.main {
        assert_validation(protocol, &main.validate, main.moves, main.chunk_moves);
    }

    let tables: Vec<&str> = protocol.tables.iter().map(|table| table.name.as_str()).collect();
    let edits = protocol.edits.iter().map(|edit| edit.name.as_str());
    let mut names: Vec<&str> = tables.iter().copied().chain(edits).chain(["fair"]).collect();
    assert!(!names.contains(&"candidate"));
    names.extend(candidate.then_some("candidate"));
    assert!(unique(names.iter().copied()));
    for edit in &protocol.edits {
        assert!(tables.contains(&edit.of.as_str()) || (candidate && edit.of == "candidate"));
    }
    assert!(protocol.tables.iter().all(|table| table.sha256.len() == 64));

    assert!(has_role(protocol, &protocol.screen.seeds, Role::HeldOut));
    let games = protocol.seeds[&protocol.screen.seeds].count;
    assert!(games >= protocol.tier.fewest_games() && games >= 4);
    let arms: Vec<&str> = protocol.screen.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert!(arms.len() >= 2 && unique(arms.iter().copied()));
    for arm in &protocol.screen.arms {
        match &arm.player {
            PlayerSpec::Search { search, leaf } => {
                assert!((1..=4).contains(&search.depth) && (1..=7).contains(&search.strata));
                assert!(names.contains(&leaf.as_str()));
            }
            PlayerSpec::Direct { table } => {
                assert!(names.contains(&table.as_str()) && table != "fair");
            }
        }
    }
    let contrast = |pair: &[String; 2]| {
        assert!(pair[0] != pair[1]);
        assert!(pair.iter().all(|arm| arms.contains(&arm.as_str())));
    };
    contrast(&protocol.gate.contrast);
    assert!(!protocol.gate.criteria.is_empty());
    assert!(unique(protocol.readings.iter().map(|reading| reading.name.as_str())));
    for reading in &protocol.readings {
        match &reading.of {
            ReadingOf::Contrast(pair) => contrast(pair),
            ReadingOf::DifferenceOf(pairs) => {
                pairs.iter().for_each(contrast);
                assert_ne!(pairs[0], pairs[1]);
            }
        }
    }
    assert!(estimate(protocol).peak.resident_bytes <= protocol.budget.memory_bytes);
}

fn assert_judged(document: &Value) -> bool {
    match parse(document.to_string().as_bytes(), MediaType::Json) {
        Ok(protocol) => {
            assert_promises(&protocol);
            let bytes = to_bytes(&protocol).unwrap();
            let again = parse(&bytes, MediaType::Json).unwrap();
            assert_eq!(again, protocol);
            assert_eq!(to_bytes(&again).unwrap(), bytes);
            true
        }
        Err(refusal) => {
            assert!(!refusal.errors.is_empty(), "{refusal}");
            for error in &refusal.errors {
                assert!(error.pointer.is_empty() || error.pointer.starts_with('/'));
                assert!(!error.detail.is_empty() && error.detail.len() < 2_000);
            }
            false
        }
    }
}

#[test]
fn good_documents_are_accepted() {
    for document in GOOD_DOCUMENTS.iter() {
        assert!(assert_judged(document), "{document}");
    }
}

/// Every value of the good documents in turn, replaced by each of the simplest values or left out.
#[test]
fn no_single_damage_slips_through() {
    for good in GOOD_DOCUMENTS.iter() {
        let mut all = Vec::new();
        places(good, "", &mut all);
        for place in &all {
            let values = [json!(null), json!({}), json!([]), json!(""), json!(0), json!(-1.5)];
            for value in values {
                let mut document = good.clone();
                *document.pointer_mut(place).unwrap() = value;
                assert_judged(&document);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn damaged_documents_are_refused_or_still_keep_every_promise(
        which in any::<prop::sample::Index>(),
        damages in prop::collection::vec((any::<prop::sample::Index>(), damage()), 1..4),
    ) {
        let mut document = which.get(&GOOD_DOCUMENTS).clone();
        for (place, damage) in damages {
            inflict(&mut document, place, damage);
        }
        assert_judged(&document);
    }

    #[test]
    fn no_object_of_known_fields_makes_it_panic(
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..12),
    ) {
        let (keys, values) = &*PIECES;
        let mut map = Map::new();
        for (key, value) in picks {
            map.insert(key.get(keys).clone(), value.get(values).clone());
        }
        assert_judged(&Value::Object(map));
    }

    #[test]
    fn damaged_toml_does_not_make_it_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..12, "[\\[\\]={}\"',.#a-z0-9\n]{0,4}"), 1..6),
    ) {
        let mut text = QUICKSTART.to_owned();
        for (at, cut, put) in edits {
            let from = at.index(text.len());
            let to = (from + cut).min(text.len());
            text.replace_range(from..to, &put);
        }
        match parse(text.as_bytes(), MediaType::Toml) {
            Ok(protocol) => assert_promises(&protocol),
            Err(refusal) => prop_assert!(!refusal.errors.is_empty(), "{}", refusal),
        }
    }
}
