//! The plateau rule against the reference vectors and against every published plateau record.

use std::path::Path;

use engine_core::train::plateau::evaluate;
use serde::Deserialize;
use serde_json::Value;

use crate::golden_dir::golden;

#[derive(Deserialize)]
struct Statistics {
    plateau: Vectors,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vectors {
    replication_margins: Vec<f64>,
    window4min8: Vec<Option<(f64, f64, bool)>>,
    window3min6: Vec<Option<(f64, f64, bool)>>,
}

#[test]
fn readings_equal_the_reference_at_every_point() {
    let Some(Statistics { plateau }) = golden::<Statistics>("statistics.json") else { return };
    for (window, min_points, expected) in
        [(4, 8, &plateau.window4min8), (3, 6, &plateau.window3min6)]
    {
        assert_eq!(expected.len(), plateau.replication_margins.len());
        for (index, expected) in expected.iter().enumerate() {
            let points = index + 1;
            let read = evaluate(&plateau.replication_margins[..points], window, min_points);
            let numbers = read.map(|r| (r.recent_mean, r.previous_mean, r.stop));
            assert_eq!(numbers, *expected, "window {window}, point {points}");
            assert_eq!(read.map(|r| (r.points, r.window)), expected.map(|_| (points, window)));
        }
    }
}

/// The validation curves of a published run: every array of points that carry a plateau field.
fn curves(value: &Value, path: &str, found: &mut Vec<(String, Vec<Value>)>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                curves(field, &format!("{path}/{name}"), found);
            }
        }
        Value::Array(items) => {
            if items.iter().any(|item| item.get("plateau").is_some()) {
                found.push((path.to_owned(), items.clone()));
            } else {
                for (index, item) in items.iter().enumerate() {
                    curves(item, &format!("{path}/{index}"), found);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_published_plateau_record_is_recomputed_from_its_margins() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocols/published");
    let mut records = 0;
    // The minimum number of points each run declared.
    for (run, min_points) in
        [("RUN-20260906T013222Z-ba0ee34f.json", 8), ("RUN-20260906T201104Z-a96ea6c8.json", 6)]
    {
        let text = std::fs::read_to_string(folder.join(run)).unwrap();
        let mut found = Vec::new();
        curves(&serde_json::from_str(&text).unwrap(), "", &mut found);
        assert!(!found.is_empty(), "{run} has no curve");
        for (path, points) in found {
            let margins: Vec<f64> =
                points.iter().map(|point| point["pairedDeltaD3"].as_f64().unwrap()).collect();
            // A curve published in whole points was rounded twice: each margin, and the means.
            let rounded = margins.iter().all(|margin| margin.fract() == 0.0);
            let tolerance = if rounded { 1.0 } else { 0.0 };
            let window = points
                .iter()
                .find_map(|point| point["plateau"]["window"].as_u64())
                .unwrap_or_else(|| panic!("{run}{path}: the rule was never read"));
            for (index, point) in points.iter().enumerate() {
                let place = format!("{run}{path}/{index}");
                let record = &point["plateau"];
                let read = evaluate(&margins[..=index], window as usize, min_points);
                assert_eq!(read.is_none(), record.is_null(), "{place}");
                let Some(read) = read else { continue };
                records += 1;
                assert_eq!(Some(read.window as u64), record["window"].as_u64(), "{place}");
                if let Some(points) = record["points"].as_u64() {
                    assert_eq!(read.points as u64, points, "{place}");
                }
                let recent = record["recentMean"].as_f64().unwrap();
                let previous = record["previousMean"].as_f64().unwrap();
                assert!((read.recent_mean - recent).abs() <= tolerance, "{place}: {read:?}");
                assert!((read.previous_mean - previous).abs() <= tolerance, "{place}: {read:?}");
                assert_eq!(Some(read.stop), record["stop"].as_bool(), "{place}: {read:?}");
            }
        }
    }
    assert!(records > 0, "nothing was compared");
}
