//! The recorded runs under `protocols/published`: every contrast, reading, gate and arm summary that
//! can be computed again from their rows is, to the last bit; the runs of which only summaries were
//! recorded have to satisfy the identities between their figures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine_core::stats::pcg64::Pcg64;
use engine_core::stats::{
    Bootstrap, Cohort, Criterion, InteractionVerdict, Metric, Outcome, Paired, Played, ScreenPlan,
    Summary, Verdict, gate, quantile, reading, student,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    run_id: String,
    screen: Screen,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Screen {
    config: Config,
    seed_start_hex: String,
    arms: BTreeMap<String, Arm>,
    contrasts: BTreeMap<String, Contrast>,
    primary_contrast: String,
    gate: Gate,
    replication: Option<Gate>,
    scale: Option<Reading>,
    depth: Option<Depth>,
    fill: Option<BTreeMap<String, Reading>>,
    work_ratio_depth4_over_depth3: Option<BTreeMap<String, f64>>,
}

#[derive(Deserialize)]
struct Config {
    games: usize,
    arms: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arm {
    games: usize,
    mean: f64,
    median: f64,
    sd: f64,
    q25: f64,
    min: f64,
    max: f64,
    moves_mean: f64,
    #[serde(rename = "q25Moves")]
    q25_moves: f64,
    games_at_or_above_million: usize,
    mean_work: Option<f64>,
    censored: usize,
    illegal: u32,
    incomplete: u32,
    per_game: Option<Vec<Row>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    seed_hex: String,
    score: i64,
    moves: u32,
    censored: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Contrast {
    candidate_arm: String,
    reference_arm: String,
    score: Figures,
    moves: Option<Figures>,
    moves_mean_delta: Option<f64>,
    verdict: Option<Verdict>,
}

#[derive(Deserialize, Clone, PartialEq, Debug)]
#[serde(rename_all = "camelCase")]
struct Figures {
    n: usize,
    mean_delta: f64,
    paired_sd: f64,
    bootstrap_lower95: f64,
    bootstrap_upper95: f64,
    #[serde(rename = "studentTLower95")]
    student_t_lower95: f64,
    detection_floor: f64,
    wtl: [usize; 3],
    halves: [f64; 2],
    q25_delta: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reading {
    #[serde(flatten)]
    figures: Figures,
    contrast: Option<String>,
    verdict: String,
    all_passed: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Gate {
    checks: Vec<Check>,
    all_passed: bool,
}

#[derive(Deserialize)]
struct Check {
    criterion: String,
    passed: bool,
    observed: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Depth {
    primary: String,
    tables_step: Figures,
    fair_step: Figures,
    persistence: Gate,
    interaction: Reading,
    theory: Theory,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Theory {
    primary_falsifier_upper_bound_below_zero: bool,
    second_leg_upper_bound_below_zero: bool,
    persistence_lower_bound_at_or_below_zero: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vectors {
    seed_hex: String,
    initial_state_hex: String,
    increment_hex: String,
    replicates: u32,
    #[serde(rename = "vectors")]
    by_n: BTreeMap<String, Vector>,
    example: Example,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vector {
    #[serde(rename = "firstRowFirst16")]
    first_row: Vec<usize>,
    #[serde(rename = "secondRowFirst8")]
    second_row: Vec<usize>,
    #[serde(rename = "lastRowLast8")]
    last_row: Vec<usize>,
    sum_all_indices: u64,
    #[serde(rename = "sha256OfIndicesAsLittleEndianU32")]
    sha256: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Example {
    contrast: String,
    first_three_replicate_means: Vec<f64>,
    last_replicate_mean: f64,
    lower95: f64,
    upper95: f64,
    #[serde(rename = "sortedIndex999_1000")]
    around_lower: Vec<f64>,
}

fn published_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocols/published")
}

fn read<T: DeserializeOwned>(path: &Path) -> T {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn runs() -> Vec<Run> {
    paths().iter().map(|path| read(path)).collect()
}

fn paths() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(published_dir())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with("RUN-") && path.extension().is_some_and(|e| e == "json")
        })
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no recorded run in {}", published_dir().display());
    paths
}

fn seed(text: &str) -> u32 {
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// The complete screen of a run with rows; `None` when only summaries were recorded.
fn cohort(screen: &Screen) -> Option<Cohort> {
    let start = seed(&screen.seed_start_hex);
    let seeds = (0..screen.config.games as u32).map(|k| start + k).collect();
    let plan = ScreenPlan::whole_block(seeds, screen.config.arms.clone());
    let mut rows = Vec::new();
    for (name, arm) in &screen.arms {
        let games = arm.per_game.as_ref()?;
        let mut played: Vec<Played> = games
            .iter()
            .map(|row| Played {
                seed: seed(&row.seed_hex),
                score: row.score,
                moves: row.moves,
                illegal_decisions: 0,
                incomplete_decisions: 0,
            })
            .collect();
        // The record has these counts per arm only.
        played[0].illegal_decisions = arm.illegal;
        played[0].incomplete_decisions = arm.incomplete;
        played.reverse();
        rows.push((name.clone(), played));
    }
    Some(plan.complete(rows).unwrap())
}

fn bits(what: &str, ours: f64, published: f64) {
    assert!(ours.to_bits() == published.to_bits(), "{what}: ours {ours:?}, record {published:?}");
}

fn close(what: &str, ours: f64, published: f64) {
    let bound = 4.0 * f64::EPSILON * ours.abs().max(published.abs()).max(1.0);
    assert!((ours - published).abs() <= bound, "{what}: ours {ours:?}, record {published:?}");
}

fn figures_equal(what: &str, ours: &Paired, record: &Figures) {
    for (field, ours, record) in [
        ("meanDelta", ours.mean_delta, record.mean_delta),
        ("pairedSd", ours.paired_sd, record.paired_sd),
        ("bootstrapLower95", ours.bootstrap_lower95, record.bootstrap_lower95),
        ("bootstrapUpper95", ours.bootstrap_upper95, record.bootstrap_upper95),
        ("studentTLower95", ours.student_t_lower95, record.student_t_lower95),
        ("detectionFloor", ours.detection_floor, record.detection_floor),
        ("halves[0]", ours.first_half_mean_delta, record.halves[0]),
        ("halves[1]", ours.second_half_mean_delta, record.halves[1]),
        ("q25Delta", ours.q25_delta, record.q25_delta.unwrap_or(ours.q25_delta)),
    ] {
        bits(&format!("{what} {field}"), ours, record);
    }
    assert_eq!((ours.n, [ours.wins, ours.ties, ours.losses]), (record.n, record.wtl), "{what}");
}

const FIVE: [Criterion; 5] = [
    Criterion::NoIllegalOrIncomplete,
    Criterion::BootstrapLowerAboveZero,
    Criterion::StudentLowerAboveZero,
    Criterion::BothHalvesPositive,
    Criterion::LowerQuartileNotWorse,
];

/// What the record observes, in the form of the record.
fn observed(check: &gate::GateCheck) -> Vec<f64> {
    match &check.observed {
        gate::Observed::Decisions { illegal, incomplete, .. } => {
            vec![*illegal as f64, *incomplete as f64]
        }
        gate::Observed::LowerBound { lower95 } => vec![*lower95],
        gate::Observed::Halves { first, second } => vec![*first, *second],
        gate::Observed::Quartiles { candidate, reference } => vec![*candidate, *reference],
        gate::Observed::Digests { .. } => panic!("the records hold no digests in their gates"),
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().map(|value| value.as_f64().unwrap()).collect(),
        one => vec![one.as_f64().unwrap()],
    }
}

/// The two arms a bound criterion of a recorded gate names: "… of A minus B > 0".
fn gate_arms(record: &Gate) -> (String, String) {
    record
        .checks
        .iter()
        .find_map(|check| {
            let (candidate, rest) = check.criterion.split_once(" of ")?.1.split_once(" minus ")?;
            Some((candidate.to_owned(), rest.split(' ').next()?.to_owned()))
        })
        .expect("a gate of the record names its contrast")
}

fn gate_equal(what: &str, cohort: &Cohort, record: &Gate) {
    let (candidate, reference) = gate_arms(record);
    let ours = gate::evaluate(cohort, &candidate, &reference, &FIVE, &[]).unwrap();
    assert_eq!(ours.checks.len(), record.checks.len(), "{what}: number of checks");
    for (ours, record) in ours.checks.iter().zip(&record.checks) {
        assert_eq!(ours.passed, record.passed, "{what}: {}", record.criterion);
        for (k, (ours, record)) in
            observed(ours).into_iter().zip(numbers(&record.observed)).enumerate()
        {
            bits(&format!("{what} observed[{k}]"), ours, record);
        }
    }
    assert_eq!(ours.outcome, Outcome::of(record.all_passed), "{what}: outcome");
}

#[test]
fn every_recorded_contrast_is_computed_again_from_the_rows() {
    let mut compared = 0;
    for run in runs() {
        let Some(cohort) = cohort(&run.screen) else { continue };
        for (name, record) in &run.screen.contrasts {
            let what = format!("{} {name}", run.run_id);
            let of = |metric| {
                cohort.contrast(&record.candidate_arm, &record.reference_arm, metric).unwrap()
            };
            let (score, moves) = (of(Metric::Score), of(Metric::Moves));
            figures_equal(&format!("{what} score"), &score, &record.score);
            if let Some(record) = &record.moves {
                figures_equal(&format!("{what} moves"), &moves, record);
            }
            if let Some(record) = record.moves_mean_delta {
                bits(&format!("{what} movesMeanDelta"), moves.mean_delta, record);
            }
            if let Some(verdict) = record.verdict {
                assert_eq!(Verdict::of(&score), verdict, "{what}");
            }
            compared += 1;
        }
    }
    assert!(compared > 0, "no recorded run has rows");
}

#[test]
fn recorded_gates_and_readings_follow_from_the_rows() {
    let mut gates = 0;
    for run in runs() {
        let Some(cohort) = cohort(&run.screen) else { continue };
        let what = |reading: &str| format!("{} {reading}", run.run_id);
        let screen = &run.screen;
        gate_equal(&what("gate"), &cohort, &screen.gate);
        gates += 1;
        if let Some(replication) = &screen.replication {
            gate_equal(&what("replication"), &cohort, replication);
        }
        let Some(depth) = &screen.depth else { continue };
        gate_equal(&what("persistence"), &cohort, &depth.persistence);
        let (deeper, shallower) = gate_arms(&screen.gate);
        let (_, fair) = gate_arms(&depth.persistence);
        let fair_step = screen
            .contrasts
            .values()
            .find(|contrast| contrast.candidate_arm == fair && contrast.score == depth.fair_step)
            .expect("the fair step is one of the contrasts");
        let ours =
            cohort.interaction((&deeper, &shallower), (&fair, &fair_step.reference_arm)).unwrap();
        figures_equal(&what("interaction"), &ours, &depth.interaction.figures);
        assert_eq!(InteractionVerdict::of(&ours).word(), depth.interaction.verdict);
        let primary = cohort.contrast(&deeper, &shallower, Metric::Score).unwrap();
        figures_equal(&what("tables step"), &primary, &depth.tables_step);
        assert_eq!(depth.primary, screen.primary_contrast);
        let persistence = cohort.contrast(&deeper, &fair, Metric::Score).unwrap();
        assert_eq!(
            [
                reading::upper_bound_below_zero(&primary),
                reading::upper_bound_below_zero(&ours),
                reading::lower_bound_at_or_below_zero(&persistence),
            ],
            [
                depth.theory.primary_falsifier_upper_bound_below_zero,
                depth.theory.second_leg_upper_bound_below_zero,
                depth.theory.persistence_lower_bound_at_or_below_zero,
            ],
            "theory flags"
        );
    }
    assert!(gates > 0, "no recorded run has rows");
}

#[test]
fn recorded_arms_are_summarised_again_from_the_rows() {
    let mut compared = 0;
    for run in runs() {
        for (name, arm) in &run.screen.arms {
            let what = format!("{} {name}", run.run_id);
            let Some(rows) = &arm.per_game else { continue };
            let scores: Vec<f64> = rows.iter().map(|row| row.score as f64).collect();
            let moves: Vec<f64> = rows.iter().map(|row| f64::from(row.moves)).collect();
            let score = Summary::of(&scores).unwrap();
            let played = Summary::of(&moves).unwrap();
            for (field, ours, record) in [
                ("mean", score.mean, arm.mean),
                ("median", score.median, arm.median),
                ("sd", score.sd, arm.sd),
                ("q25", score.q25, arm.q25),
                ("min", score.min, arm.min),
                ("max", score.max, arm.max),
                ("movesMean", played.mean, arm.moves_mean),
                ("q25Moves", played.q25, arm.q25_moves),
            ] {
                bits(&format!("{what} {field}"), ours, record);
            }
            let millions = scores.iter().filter(|&&score| score >= 1e6).count();
            assert_eq!(millions, arm.games_at_or_above_million, "{what}");
            let censored = rows.iter().filter(|row| row.censored).count();
            assert_eq!((rows.len(), censored), (arm.games, arm.censored), "{what}");
            compared += 1;
        }
    }
    assert!(compared > 0, "no recorded run has rows");
}

#[test]
fn recorded_summaries_satisfy_the_identities() {
    let mut compared = 0;
    for run in runs() {
        let arms = &run.screen.arms;
        assert_eq!(arms.len(), run.screen.config.arms.len(), "{} arms", run.run_id);
        for (name, contrast) in &run.screen.contrasts {
            let what = format!("{} {name}", run.run_id);
            let (candidate, reference) =
                (&arms[&contrast.candidate_arm], &arms[&contrast.reference_arm]);
            let moves = contrast.moves.as_ref();
            let score = &contrast.score;
            for figures in std::iter::once(score).chain(moves) {
                figures_agree(&what, figures);
            }
            close(&what, candidate.mean - reference.mean, score.mean_delta);
            close(&what, candidate.q25 - reference.q25, score.q25_delta.unwrap());
            let moves_delta = moves.map_or(contrast.moves_mean_delta, |m| Some(m.mean_delta));
            close(&what, candidate.moves_mean - reference.moves_mean, moves_delta.unwrap());
            if let Some(verdict) = contrast.verdict {
                assert_eq!(verdict_of(score), verdict.word(), "{what}");
            }
            compared += 1;
        }
        let of_gate = |record: &Gate| {
            let (candidate, reference) = gate_arms(record);
            let figures = run
                .screen
                .contrasts
                .values()
                .find(|c| c.candidate_arm == candidate && c.reference_arm == reference)
                .unwrap();
            gate_agrees(&run.run_id, arms, figures, record);
        };
        of_gate(&run.screen.gate);
        run.screen.replication.iter().for_each(of_gate);
        run.screen.depth.iter().for_each(|depth| of_gate(&depth.persistence));
        let readings = run.screen.fill.iter().flatten().map(|(_, reading)| reading);
        for reading in readings.chain(&run.screen.scale) {
            assert_eq!(verdict_of(&reading.figures), reading.verdict, "{} reading", run.run_id);
            figures_agree(&run.run_id, &reading.figures);
            if let Some(name) = &reading.contrast {
                let contrast = &run.screen.contrasts[name];
                assert_eq!(contrast.score, reading.figures, "{} {name}", run.run_id);
                if let Some(all) = reading.all_passed {
                    let arm = |name: &String| &arms[name];
                    let (candidate, reference) =
                        (arm(&contrast.candidate_arm), arm(&contrast.reference_arm));
                    assert_eq!(four(&reading.figures, candidate, reference), all, "{name}");
                }
            }
        }
        for (arm, ratio) in run.screen.work_ratio_depth4_over_depth3.iter().flatten() {
            let (deeper, shallower) = gate_arms(&run.screen.gate);
            let step = if arm == "fair" {
                let (_, fair) = gate_arms(&run.screen.depth.as_ref().unwrap().persistence);
                let shallow = gate_arms(run.screen.replication.as_ref().unwrap()).1;
                (fair, shallow)
            } else {
                (deeper, shallower)
            };
            let work = |arm: &str| arms[arm].mean_work.unwrap();
            bits("work ratio", work(&step.0) / work(&step.1), *ratio);
        }
    }
    assert!(compared > 0);
}

/// The identities that hold within the figures of one contrast.
fn figures_agree(what: &str, figures: &Figures) {
    let n = figures.n as f64;
    close(what, 1.645 * figures.paired_sd / n.sqrt(), figures.detection_floor);
    let t = student::quantile95(figures.n - 1);
    close(what, figures.mean_delta - t * figures.paired_sd / n.sqrt(), figures.student_t_lower95);
    let first = (figures.n / 2) as f64;
    let halves = first * figures.halves[0] + (n - first) * figures.halves[1];
    close(what, halves / n, figures.mean_delta);
    assert_eq!(figures.wtl.iter().sum::<usize>(), figures.n, "{what}: wins, ties and losses");
    assert!(figures.bootstrap_lower95 < figures.mean_delta, "{what}: lower bound");
    assert!(figures.bootstrap_upper95 > figures.mean_delta, "{what}: upper bound");
}

/// The verdict word by its definition, from recorded figures.
fn verdict_of(figures: &Figures) -> &'static str {
    let paired = Paired {
        n: figures.n,
        mean_delta: figures.mean_delta,
        paired_sd: figures.paired_sd,
        bootstrap_lower95: figures.bootstrap_lower95,
        bootstrap_upper95: figures.bootstrap_upper95,
        student_t_lower95: figures.student_t_lower95,
        student_t_quantile: student::quantile95(figures.n - 1),
        detection_floor: figures.detection_floor,
        wins: figures.wtl[0],
        ties: figures.wtl[1],
        losses: figures.wtl[2],
        first_half_mean_delta: figures.halves[0],
        second_half_mean_delta: figures.halves[1],
        candidate_q25: figures.q25_delta.unwrap_or(0.0),
        reference_q25: 0.0,
        q25_delta: figures.q25_delta.unwrap_or(0.0),
        largest_swings: Vec::new(),
        bootstrap_seed: Bootstrap::default().seed,
        resamples: Bootstrap::default().resamples,
    };
    Verdict::of(&paired).word()
}

fn four(figures: &Figures, candidate: &Arm, reference: &Arm) -> bool {
    figures.bootstrap_lower95 > 0.0
        && figures.student_t_lower95 > 0.0
        && figures.halves.iter().all(|&half| half > 0.0)
        && candidate.q25 >= reference.q25
}

/// A recorded gate follows from the recorded summaries.
fn gate_agrees(what: &str, arms: &BTreeMap<String, Arm>, contrast: &Contrast, record: &Gate) {
    let figures = &contrast.score;
    let (candidate, reference) = (&arms[&contrast.candidate_arm], &arms[&contrast.reference_arm]);
    let decisions = |of: fn(&Arm) -> u32| f64::from(arms.values().map(of).sum::<u32>());
    let expected = [
        vec![decisions(|arm| arm.illegal), decisions(|arm| arm.incomplete)],
        vec![figures.bootstrap_lower95],
        vec![figures.student_t_lower95],
        figures.halves.to_vec(),
        vec![candidate.q25, reference.q25],
    ];
    let passed = [
        expected[0].iter().all(|&count| count == 0.0),
        figures.bootstrap_lower95 > 0.0,
        figures.student_t_lower95 > 0.0,
        figures.halves.iter().all(|&half| half > 0.0),
        candidate.q25 >= reference.q25,
    ];
    for (k, check) in record.checks.iter().enumerate() {
        assert_eq!(numbers(&check.observed), expected[k], "{what}: {}", check.criterion);
        assert_eq!(check.passed, passed[k], "{what}: {}", check.criterion);
    }
    assert_eq!(record.checks.len(), expected.len(), "{what}");
    assert_eq!(record.all_passed, passed.iter().all(|&passed| passed), "{what}");
}

/// Every object of a record that holds a curve, with the place it was found at.
fn curves<'a>(place: &str, value: &'a Value, found: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Object(fields) => {
            if fields.get("validations").and_then(Value::as_array).is_some_and(|v| !v.is_empty()) {
                found.push((place.to_owned(), value));
            }
            for (name, field) in fields {
                curves(&format!("{place}/{name}"), field, found);
            }
        }
        Value::Array(values) => {
            for (k, value) in values.iter().enumerate() {
                curves(&format!("{place}/{k}"), value, found);
            }
        }
        _ => {}
    }
}

#[test]
fn recorded_validation_points_satisfy_the_identities() {
    let mut compared = 0;
    for path in paths() {
        let record: Value = read(&path);
        let mut found = Vec::new();
        curves(&path.file_stem().unwrap().to_string_lossy(), &record, &mut found);
        for (place, curve) in found {
            let mut margins = Vec::new();
            for point in curve["validations"].as_array().unwrap() {
                point_agrees(&place, point);
                margins.push(point["pairedDeltaD3"].as_f64().unwrap());
                compared += 1;
            }
            let best = margins.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let last = margins.last().copied().unwrap();
            // A curve that was recorded in whole points may keep these two exactly.
            let slack = if margins.iter().all(|margin| margin.fract() == 0.0) { 1.0 } else { 0.0 };
            for (name, ours) in [("bestMargin", best), ("finalMargin", last)] {
                if let Some(margin) = curve[name].as_f64() {
                    assert!((margin - ours).abs() <= slack, "{place} {name}: {ours}, {margin}");
                }
            }
            if let Some(any) = curve["anyPositiveMargin"].as_bool() {
                assert_eq!(any, best > 0.0, "{place} anyPositiveMargin");
            }
        }
    }
    assert!(compared > 0, "no record holds a curve");
}

/// The identities of one validation point. Records that hold rounded figures are off by one point.
fn point_agrees(place: &str, point: &Value) {
    let figure = |name: &str| point[name].as_f64();
    let needed = |name: &str| figure(name).unwrap_or_else(|| panic!("{place}: no {name}"));
    let margin = needed("pairedDeltaD3");
    let what = format!("{place} at {} moves", needed("movesTrained"));
    let rounded = !point["pairedDeltaD3"].is_f64();
    let near = |ours: f64, record: f64| {
        if rounded {
            assert!((ours - record).abs() <= 1.0, "{what}: {ours} against {record}");
        } else {
            close(&what, ours, record);
        }
    };
    near(needed("ntupleD3Mean") - needed("fairD3Mean"), margin);
    if let Some(direct) = figure("pairedDeltaDirect") {
        near(needed("directMean") - needed("fairD3Mean"), direct);
    }
    assert!(needed("bootstrapLower95") < margin, "{what}: lower bound");
    if let Some(upper) = figure("bootstrapUpper95") {
        assert!(upper > margin, "{what}: upper bound");
    }
    let (Some(floor), Some(bound)) = (figure("detectionFloor"), figure("studentTLower95")) else {
        return;
    };
    let counts: f64 = numbers(&point["wtl"]).iter().sum();
    let halves = numbers(&point["halves"]);
    let first = (counts / 2.0).floor();
    close(&what, (first * halves[0] + (counts - first) * halves[1]) / counts, margin);
    let t = student::quantile95(counts as usize - 1);
    let expected = margin - t * (floor / 1.645);
    assert!((expected - bound).abs() <= 1e-9 * margin.abs().max(bound.abs()), "{what}: {bound}");
    if let Some(sd) = figure("pairedSd") {
        close(&what, 1.645 * sd / counts.sqrt(), floor);
    }
}

#[test]
fn bootstrap_vectors_are_drawn_again() {
    let vectors: Vectors = read(&published_dir().join("bootstrap-vectors.json"));
    let bootstrap = Bootstrap { seed: seed(&vectors.seed_hex), resamples: vectors.replicates };
    let generator = Pcg64::new(bootstrap.seed);
    assert_eq!(format!("{:#034x}", generator.state()), vectors.initial_state_hex);
    assert_eq!(format!("{:#034x}", generator.increment()), vectors.increment_hex);
    assert!(!vectors.by_n.is_empty());
    for (n, vector) in &vectors.by_n {
        let n: usize = n.parse().unwrap();
        let mut indices = bootstrap.indices(n).unwrap();
        let matrix: Vec<usize> =
            (0..n * bootstrap.resamples as usize).map(|_| indices.draw()).collect();
        assert_eq!(matrix[..vector.first_row.len()], vector.first_row, "n = {n}");
        assert_eq!(matrix[n..][..vector.second_row.len()], vector.second_row, "n = {n}");
        assert_eq!(matrix[matrix.len() - vector.last_row.len()..], vector.last_row, "n = {n}");
        assert_eq!(matrix.iter().sum::<usize>() as u64, vector.sum_all_indices, "n = {n}");
        let bytes: Vec<u8> = matrix.iter().flat_map(|&i| (i as u32).to_le_bytes()).collect();
        assert_eq!(hex::encode(Sha256::digest(&bytes)), vector.sha256, "n = {n}");
    }
    example_equal(bootstrap, &vectors.example);
}

fn example_equal(bootstrap: Bootstrap, example: &Example) {
    let (run_id, arms) = example.contrast.split_once(' ').unwrap();
    let (candidate, reference) = arms.split_once(" minus ").unwrap();
    let run = runs().into_iter().find(|run| run.run_id == run_id).unwrap();
    let cohort = cohort(&run.screen).unwrap();
    let series = |arm| cohort.series(arm, Metric::Score).unwrap();
    let deltas: Vec<f64> =
        series(candidate).iter().zip(series(reference)).map(|(a, b)| a - b).collect();
    let mut means = bootstrap.means(&deltas).unwrap();
    let first = &example.first_three_replicate_means;
    assert_eq!(&means[..first.len()], first.as_slice());
    assert_eq!(means.last(), Some(&example.last_replicate_mean));
    means.sort_by(f64::total_cmp);
    assert_eq!(means[999..999 + example.around_lower.len()], example.around_lower);
    bits("lower95", quantile(&means, 0.05).unwrap(), example.lower95);
    bits("upper95", quantile(&means, 0.95).unwrap(), example.upper95);
}
