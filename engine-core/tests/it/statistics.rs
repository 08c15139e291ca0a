//! `statistics.json`: quantiles, paired contrasts, random stream and readings, to the last bit.

use std::collections::BTreeMap;

use engine_core::stats::pcg64::{Pcg64, seed_words};
use engine_core::stats::{
    Bootstrap, Cohort, Criterion, InteractionVerdict, Metric, Outcome, Paired, Played, ScreenPlan,
    Summary, Verdict, gate, student,
};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::golden_dir::golden;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statistics {
    bootstrap_seed_hex: String,
    resamples: u32,
    samples: Vec<Sample>,
    interaction: Interaction,
    t_quantiles: BTreeMap<String, f64>,
    rng: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sample {
    name: String,
    candidate_scores: Vec<f64>,
    reference_scores: Vec<f64>,
    candidate_moves: Vec<f64>,
    reference_moves: Vec<f64>,
    paired: PairedFigures,
    paired_moves: PairedFigures,
    candidate_summary: ArmFigures,
    reference_summary: ArmFigures,
    verdict: Verdict,
    gate: GateFigures,
    index_stream: IndexStream,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Interaction {
    #[serde(rename = "tablesD4")]
    tables_d4: Vec<f64>,
    #[serde(rename = "tablesD3")]
    tables_d3: Vec<f64>,
    #[serde(rename = "fairD4")]
    fair_d4: Vec<f64>,
    #[serde(rename = "fairD3")]
    fair_d3: Vec<f64>,
    paired: PairedFigures,
    verdict: InteractionVerdict,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GateFigures {
    integrity: bool,
    bootstrap_lower_above_zero: bool,
    #[serde(rename = "studentTLowerAboveZero")]
    student_t_lower_above_zero: bool,
    both_halves_positive: bool,
    q25_not_below: bool,
    #[serde(rename = "candidateQ25")]
    candidate_q25: f64,
    #[serde(rename = "referenceQ25")]
    reference_q25: f64,
    passed: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PairedFigures {
    n: usize,
    mean_delta: f64,
    paired_sd: f64,
    bootstrap_lower95: f64,
    bootstrap_upper95: f64,
    #[serde(rename = "studentTLower95")]
    student_t_lower95: f64,
    #[serde(rename = "studentTQuantile")]
    student_t_quantile: f64,
    detection_floor: f64,
    wins: usize,
    ties: usize,
    losses: usize,
    first_half_mean_delta: f64,
    second_half_mean_delta: f64,
    q25_delta: f64,
    largest_swings: Vec<f64>,
    bootstrap_seed_hex: String,
    resamples: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ArmFigures {
    games: usize,
    score: ScoreFigures,
    moves: MovesFigures,
    games_at_or_above_million: usize,
    incomplete_decisions: u32,
    illegal_decisions: u32,
}

#[derive(Deserialize)]
struct ScoreFigures {
    mean: f64,
    median: f64,
    sd: f64,
    q25: f64,
    min: f64,
    max: f64,
}

#[derive(Deserialize)]
struct MovesFigures {
    mean: f64,
    q25: f64,
}

#[derive(Deserialize)]
struct IndexStream {
    n: usize,
    first32: Vec<usize>,
    last4: Vec<usize>,
    #[serde(rename = "sha256Int64LE")]
    sha256: String,
}

fn bits(what: &str, ours: f64, golden: f64) {
    assert!(ours.to_bits() == golden.to_bits(), "{what}: ours {ours:?}, golden {golden:?}");
}

fn seed(text: &str) -> u32 {
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

fn bootstrap(seed_hex: &str, resamples: u32) -> Bootstrap {
    Bootstrap { seed: seed(seed_hex), resamples }
}

fn paired_equal(what: &str, candidate: &[f64], reference: &[f64], golden: &PairedFigures) {
    let drawn = bootstrap(&golden.bootstrap_seed_hex, golden.resamples);
    let ours = Paired::with_bootstrap(candidate, reference, drawn).unwrap();
    if drawn == Bootstrap::default() {
        assert_eq!(ours, Paired::of(candidate, reference).unwrap(), "{what}: default bootstrap");
    }
    for (field, ours, golden) in [
        ("meanDelta", ours.mean_delta, golden.mean_delta),
        ("pairedSd", ours.paired_sd, golden.paired_sd),
        ("bootstrapLower95", ours.bootstrap_lower95, golden.bootstrap_lower95),
        ("bootstrapUpper95", ours.bootstrap_upper95, golden.bootstrap_upper95),
        ("studentTLower95", ours.student_t_lower95, golden.student_t_lower95),
        ("studentTQuantile", ours.student_t_quantile, golden.student_t_quantile),
        ("detectionFloor", ours.detection_floor, golden.detection_floor),
        ("firstHalfMeanDelta", ours.first_half_mean_delta, golden.first_half_mean_delta),
        ("secondHalfMeanDelta", ours.second_half_mean_delta, golden.second_half_mean_delta),
        ("q25Delta", ours.q25_delta, golden.q25_delta),
    ] {
        bits(&format!("{what} {field}"), ours, golden);
    }
    assert_eq!(ours.largest_swings, golden.largest_swings, "{what} largestSwings");
    assert_eq!(
        (ours.n, ours.wins, ours.ties, ours.losses),
        (golden.n, golden.wins, golden.ties, golden.losses),
        "{what} n, wins, ties, losses"
    );
}

fn arm_equal(what: &str, scores: &[f64], moves: &[f64], golden: &ArmFigures) {
    let score = Summary::of(scores).unwrap();
    let played = Summary::of(moves).unwrap();
    for (field, ours, golden) in [
        ("score.mean", score.mean, golden.score.mean),
        ("score.median", score.median, golden.score.median),
        ("score.sd", score.sd, golden.score.sd),
        ("score.q25", score.q25, golden.score.q25),
        ("score.min", score.min, golden.score.min),
        ("score.max", score.max, golden.score.max),
        ("moves.mean", played.mean, golden.moves.mean),
        ("moves.q25", played.q25, golden.moves.q25),
    ] {
        bits(&format!("{what} {field}"), ours, golden);
    }
    assert_eq!(score.n, golden.games, "{what} games");
    let millions = scores.iter().filter(|&&score| score >= 1_000_000.0).count();
    assert_eq!(millions, golden.games_at_or_above_million, "{what} gamesAtOrAboveMillion");
}

/// The sample as a complete screen of two arms; the counts of an arm stand in its first game.
fn cohort(sample: &Sample) -> Cohort {
    let arm = |scores: &[f64], moves: &[f64], figures: &ArmFigures| -> Vec<Played> {
        let first = |seed: u32, count: u32| if seed == 0 { count } else { 0 };
        (0..)
            .zip(scores.iter().zip(moves))
            .map(|(seed, (&score, &moves))| Played {
                seed,
                score: score as i64,
                moves: moves as u32,
                illegal_decisions: first(seed, figures.illegal_decisions),
                incomplete_decisions: first(seed, figures.incomplete_decisions),
            })
            .collect()
    };
    let seeds = (0..sample.candidate_scores.len() as u32).collect();
    let candidate =
        arm(&sample.candidate_scores, &sample.candidate_moves, &sample.candidate_summary);
    let reference =
        arm(&sample.reference_scores, &sample.reference_moves, &sample.reference_summary);
    ScreenPlan::whole_block(seeds, ["candidate", "reference"])
        .complete([("reference".to_owned(), reference), ("candidate".to_owned(), candidate)])
        .unwrap()
}

fn gate_equal(sample: &Sample) {
    let name = &sample.name;
    let golden = &sample.gate;
    let expected = [
        (Criterion::NoIllegalOrIncomplete, golden.integrity),
        (Criterion::BootstrapLowerAboveZero, golden.bootstrap_lower_above_zero),
        (Criterion::StudentLowerAboveZero, golden.student_t_lower_above_zero),
        (Criterion::BothHalvesPositive, golden.both_halves_positive),
        (Criterion::LowerQuartileNotWorse, golden.q25_not_below),
    ];
    let cohort = cohort(sample);
    let criteria = expected.map(|(criterion, _)| criterion);
    let ours = gate::evaluate(&cohort, "candidate", "reference", &criteria, &[]).unwrap();
    let decided: Vec<(Criterion, bool)> =
        ours.checks.iter().map(|check| (check.criterion, check.passed)).collect();
    assert_eq!(decided, expected, "{name} gate");
    assert_eq!(ours.outcome, Outcome::of(golden.passed), "{name} gate");
    bits(&format!("{name} candidateQ25"), ours.paired.candidate_q25, golden.candidate_q25);
    bits(&format!("{name} referenceQ25"), ours.paired.reference_q25, golden.reference_q25);
    assert_eq!(Verdict::of(&ours.paired), sample.verdict, "{name} verdict");
    let score = cohort.contrast("candidate", "reference", Metric::Score).unwrap();
    assert_eq!(ours.paired, score, "{name} contrast");
}

/// SHA-256 of the index matrix as little-endian 64-bit integers, and its first and last entries.
fn matrix(bootstrap: Bootstrap, n: usize) -> (String, Vec<usize>, Vec<usize>) {
    let mut indices = bootstrap.indices(n).unwrap();
    let drawn: Vec<usize> = (0..bootstrap.resamples as usize * n).map(|_| indices.draw()).collect();
    let mut hash = Sha256::new();
    for row in drawn.chunks(n) {
        let bytes: Vec<u8> = row.iter().flat_map(|&i| (i as i64).to_le_bytes()).collect();
        hash.update(&bytes);
    }
    let first = drawn[..drawn.len().min(64)].to_vec();
    let last = drawn[drawn.len() - drawn.len().min(64)..].to_vec();
    (hex::encode(hash.finalize()), first, last)
}

#[test]
fn every_sample_has_the_golden_bits() {
    let Some(golden) = golden::<Statistics>("statistics.json") else { return };
    assert!(!golden.samples.is_empty());
    for sample in &golden.samples {
        let name = &sample.name;
        paired_equal(name, &sample.candidate_scores, &sample.reference_scores, &sample.paired);
        let what = format!("{name} moves");
        paired_equal(&what, &sample.candidate_moves, &sample.reference_moves, &sample.paired_moves);
        for (arm, scores, moves, figures) in [
            (
                "candidate",
                &sample.candidate_scores,
                &sample.candidate_moves,
                &sample.candidate_summary,
            ),
            (
                "reference",
                &sample.reference_scores,
                &sample.reference_moves,
                &sample.reference_summary,
            ),
        ] {
            arm_equal(&format!("{name} {arm}"), scores, moves, figures);
        }
        gate_equal(sample);
    }
}

#[test]
fn the_interaction_is_a_contrast_of_differences_against_zero() {
    let Some(golden) = golden::<Statistics>("statistics.json") else { return };
    let it = &golden.interaction;
    let deltas: Vec<f64> = (0..it.tables_d4.len())
        .map(|k| (it.tables_d4[k] - it.tables_d3[k]) - (it.fair_d4[k] - it.fair_d3[k]))
        .collect();
    paired_equal("interaction", &deltas, &vec![0.0; deltas.len()], &it.paired);
    let ours =
        engine_core::stats::interaction((&it.tables_d4, &it.tables_d3), (&it.fair_d4, &it.fair_d3))
            .unwrap();
    assert_eq!(ours, Paired::of(&deltas, &vec![0.0; deltas.len()]).unwrap());
    assert_eq!(InteractionVerdict::of(&ours), it.verdict);
}

#[test]
fn index_matrices_have_the_golden_fingerprints() {
    let Some(golden) = golden::<Statistics>("statistics.json") else { return };
    let published = bootstrap(&golden.bootstrap_seed_hex, golden.resamples);
    for sample in &golden.samples {
        let stream = &sample.index_stream;
        let (sha256, first, last) = matrix(published, stream.n);
        assert_eq!(first[..stream.first32.len()], stream.first32, "{} first indices", sample.name);
        let tail = last.len() - stream.last4.len();
        assert_eq!(last[tail..], stream.last4, "{} last indices", sample.name);
        assert_eq!(sha256, stream.sha256, "{} fingerprint", sample.name);
    }
}

#[test]
fn the_generator_has_the_golden_states_and_draws() {
    let Some(golden) = golden::<Statistics>("statistics.json") else { return };
    let published = bootstrap(&golden.bootstrap_seed_hex, golden.resamples);
    let mut generator = Pcg64::new(published.seed);
    let hex64 = |word: u64| Value::String(format!("0x{word:016x}"));
    let mut compared = 0;
    for (key, value) in &golden.rng {
        let ours = match key.as_str() {
            "seedSequenceStateU64" => seed_words(published.seed).map(hex64).to_vec().into(),
            "pcg64InitialState" => Value::String(Pcg64::new(published.seed).state().to_string()),
            "pcg64Inc" => Value::String(Pcg64::new(published.seed).increment().to_string()),
            "firstU64" => {
                let count = value.as_array().unwrap().len();
                (0..count).map(|_| hex64(generator.next_u64())).collect()
            }
            other => {
                let rest = other.strip_prefix("integers_n").unwrap_or_else(|| {
                    panic!("rng.{other} is a kind of figure this test does not compare")
                });
                let n: usize = rest.split('_').next().unwrap().parse().unwrap();
                let (sha256, first, _) = matrix(published, n);
                if other.ends_with("sha256Int64LE") {
                    sha256.into()
                } else {
                    first[..value.as_array().unwrap().len()].to_vec().into()
                }
            }
        };
        assert_eq!(&ours, value, "rng.{key}");
        compared += 1;
    }
    assert!(compared > 0);
}

#[test]
fn student_quantiles_have_the_golden_bits() {
    let Some(golden) = golden::<Statistics>("statistics.json") else { return };
    assert!(!golden.t_quantiles.is_empty());
    for (degrees, quantile) in &golden.t_quantiles {
        let ours = student::quantile95(degrees.parse().unwrap());
        bits(&format!("t quantile at {degrees}"), ours, *quantile);
    }
}
