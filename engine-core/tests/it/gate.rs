//! What the statistics refuse, and that every criterion can fail.

use engine_core::stats::gate::{self, Observed, TableDigests};
use engine_core::stats::{
    Bootstrap, Cohort, CohortError, Criterion, GateError, GateReport, InteractionVerdict, Metric,
    Outcome, Paired, PlannedArm, Played, ScreenPlan, StatsError, Summary, Verdict, interaction,
    quantile,
};
use proptest::prelude::*;

const START: u32 = 0xa530_0000;

/// Games with the given scores on consecutive seeds.
fn games(scores: &[i64]) -> Vec<Played> {
    (START..)
        .zip(scores)
        .map(|(seed, &score)| Played {
            seed,
            score,
            moves: 50,
            illegal_decisions: 0,
            incomplete_decisions: 0,
        })
        .collect()
}

fn plan(games: u32) -> ScreenPlan {
    ScreenPlan::whole_block((START..START + games).collect(), ["candidate", "reference"])
}

fn complete(candidate: Vec<Played>, reference: Vec<Played>) -> Result<Cohort, CohortError> {
    let rows = [("candidate".to_owned(), candidate), ("reference".to_owned(), reference)];
    plan(4).complete(rows)
}

fn better() -> Cohort {
    complete(games(&[130, 120, 140, 150]), games(&[100, 100, 110, 120])).unwrap()
}

fn digests(frozen: &str, played: &str) -> Vec<TableDigests> {
    let digest = |digit: &str| digit.repeat(64);
    vec![TableDigests {
        table: "candidate".to_owned(),
        frozen: digest(frozen),
        played: digest(played),
    }]
}

fn decide(cohort: &Cohort, tables: &[TableDigests]) -> GateReport {
    gate::evaluate(cohort, "candidate", "reference", &Criterion::ALL, tables).unwrap()
}

fn failed(report: &GateReport) -> Vec<Criterion> {
    report.checks.iter().filter(|check| !check.passed).map(|check| check.criterion).collect()
}

#[test]
fn a_clear_candidate_passes_every_criterion() {
    let report = decide(&better(), &digests("a", "a"));
    assert_eq!(failed(&report), []);
    assert_eq!(report.outcome, Outcome::Pass);
    assert_eq!(report.outcome.wording(), "supported-as-tested");
}

#[test]
fn illegal_and_incomplete_decisions_of_any_arm_fail_the_gate() {
    for spoil in [(|game: &mut Played| game.illegal_decisions = 1) as fn(&mut Played), |game| {
        game.incomplete_decisions = 3;
    }] {
        let mut reference = games(&[100, 100, 110, 120]);
        spoil(&mut reference[2]);
        let report =
            decide(&complete(games(&[130, 120, 140, 150]), reference).unwrap(), &digests("a", "a"));
        assert_eq!(failed(&report), [Criterion::NoIllegalOrIncomplete]);
        assert_eq!(report.outcome, Outcome::Fail);
        let Observed::Decisions { illegal, incomplete, arms } = &report.checks[0].observed else {
            panic!("{:?}", report.checks[0])
        };
        assert_eq!(illegal + incomplete, arms[1].illegal + arms[1].incomplete);
        assert_eq!((arms[0].illegal, arms[0].incomplete), (0, 0));
    }
}

#[test]
fn one_bad_half_fails_although_the_mean_is_above_zero() {
    let cohort = complete(games(&[99, 100, 500, 500]), games(&[100, 100, 110, 120])).unwrap();
    let report = decide(&cohort, &digests("a", "a"));
    assert!(failed(&report).contains(&Criterion::BothHalvesPositive));
    assert!(report.paired.mean_delta > 0.0);
}

#[test]
fn a_worse_lower_quartile_fails_although_the_mean_is_above_zero() {
    let cohort = complete(games(&[10, 300, 20, 400]), games(&[100, 100, 110, 120])).unwrap();
    let report = decide(&cohort, &digests("a", "a"));
    assert!(failed(&report).contains(&Criterion::LowerQuartileNotWorse));
    assert!(failed(&report).contains(&Criterion::BootstrapLowerAboveZero));
    assert!(failed(&report).contains(&Criterion::StudentLowerAboveZero));
}

#[test]
fn equal_arms_fail_all_strict_criteria_and_pass_the_quartile() {
    let same = games(&[100, 90, 110, 120]);
    let report = decide(&complete(same.clone(), same).unwrap(), &digests("a", "a"));
    assert_eq!(
        failed(&report),
        [
            Criterion::BootstrapLowerAboveZero,
            Criterion::StudentLowerAboveZero,
            Criterion::BothHalvesPositive
        ]
    );
    assert_eq!(Verdict::of(&report.paired), Verdict::Inconclusive);
}

#[test]
fn a_table_that_is_not_the_frozen_one_fails_the_gate() {
    let report = decide(&better(), &digests("a", "b"));
    assert_eq!(failed(&report), [Criterion::FrozenDigests]);
    let evaluate = |tables: &[TableDigests]| {
        let criteria = [Criterion::FrozenDigests];
        gate::evaluate(&better(), "candidate", "reference", &criteria, tables)
    };
    assert_eq!(evaluate(&[]), Err(GateError::NoTables));
    assert!(matches!(evaluate(&digests("A", "A")), Err(GateError::Digest { .. })));
}

#[test]
fn gates_without_or_with_double_criteria_are_refused() {
    let evaluate =
        |criteria: &[Criterion]| gate::evaluate(&better(), "candidate", "reference", criteria, &[]);
    assert_eq!(evaluate(&[]), Err(GateError::NoCriteria));
    let twice = Criterion::BothHalvesPositive;
    assert_eq!(evaluate(&[twice, twice]), Err(GateError::DoubleCriterion(twice)));
    assert_eq!(
        gate::evaluate(&better(), "candidate", "nobody", &[twice], &[]),
        Err(GateError::Cohort(CohortError::UnknownArm("nobody".to_owned())))
    );
}

#[test]
fn a_screen_is_complete_or_names_what_is_wrong() {
    let four = || games(&[1, 2, 3, 4]);
    let arm = || "candidate".to_owned();
    assert_eq!(
        complete(games(&[1, 2, 3]), four()),
        Err(CohortError::MissingGames { arm: arm(), held: 3, planned: 4, seed: START + 3 })
    );
    let mut double = four();
    double.push(double[1]);
    assert_eq!(
        complete(double, four()),
        Err(CohortError::DoubleGame { arm: arm(), seed: START + 1 })
    );
    assert_eq!(
        complete(games(&[1, 2, 3, 4, 5]), four()),
        Err(CohortError::UnplannedGame { arm: arm(), seed: START + 4 })
    );
    let rows = |names: &[&str]| -> Vec<(String, Vec<Played>)> {
        names.iter().map(|&name| (name.to_owned(), four())).collect()
    };
    assert_eq!(
        plan(4).complete(rows(&["candidate"])),
        Err(CohortError::MissingArm("reference".to_owned()))
    );
    assert_eq!(
        plan(4).complete(rows(&["candidate", "reference", "other"])),
        Err(CohortError::UnplannedArm("other".to_owned()))
    );
    assert_eq!(
        plan(4).complete(rows(&["candidate", "candidate", "reference"])),
        Err(CohortError::DoubleArm(arm()))
    );
}

#[test]
fn plans_that_cannot_be_played_are_refused() {
    let of = |seeds: &[u32], arms: &[(&str, usize)]| {
        let arms =
            arms.iter().map(|&(name, games)| PlannedArm { name: name.to_owned(), games }).collect();
        ScreenPlan { seeds: seeds.to_vec(), arms }.complete([]).unwrap_err()
    };
    assert!(matches!(of(&[1], &[]), CohortError::EmptyPlan(_)));
    assert!(matches!(of(&[1], &[("a", 0)]), CohortError::EmptyPlan(_)));
    assert_eq!(of(&[1, 2, 1], &[("a", 3)]), CohortError::DoubleSeed(1));
    assert_eq!(of(&[1], &[("a", 1), ("a", 1)]), CohortError::DoublePlannedArm("a".to_owned()));
    assert!(matches!(of(&[1], &[("a", 2)]), CohortError::BeyondBlock { games: 2, seeds: 1, .. }));
}

#[test]
fn arms_of_different_size_are_compared_on_the_seeds_both_played() {
    let plan = ScreenPlan {
        seeds: (START..START + 4).collect(),
        arms: vec![
            PlannedArm { name: "deep".to_owned(), games: 3 },
            PlannedArm { name: "shallow".to_owned(), games: 4 },
        ],
    };
    let rows = [("deep", games(&[5, 7, 9])), ("shallow", games(&[1, 2, 3, 1000]))];
    let cohort = plan.complete(rows.map(|(name, rows)| (name.to_owned(), rows))).unwrap();
    let ours = cohort.contrast("deep", "shallow", Metric::Score).unwrap();
    assert_eq!(ours, Paired::of(&[5.0, 7.0, 9.0], &[1.0, 2.0, 3.0]).unwrap());
    let steps = cohort.interaction(("deep", "shallow"), ("shallow", "deep")).unwrap();
    assert_eq!(steps.n, 3);
    assert_eq!(InteractionVerdict::of(&steps), InteractionVerdict::Larger);
    assert_eq!(cohort.contrast("deep", "shallow", Metric::Moves).unwrap().ties, 3);
}

#[test]
fn what_is_not_finite_is_refused_with_its_place() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let bad = [1.0, value, 2.0];
        let good = [1.0, 2.0, 3.0];
        let refused = |error: StatsError| {
            assert!(matches!(error, StatsError::NotFinite { index: 1, .. }), "{error}");
        };
        refused(Paired::of(&bad, &good).unwrap_err());
        refused(Paired::of(&good, &bad).unwrap_err());
        refused(Summary::of(&bad).unwrap_err());
        refused(quantile(&bad, 0.5).unwrap_err());
        refused(Bootstrap::default().means(&bad).unwrap_err());
        refused(interaction((&good, &good), (&bad, &good)).unwrap_err());
        assert!(matches!(quantile(&good, value), Err(StatsError::Probability(_))));
    }
    let huge = [f64::MAX, -f64::MAX];
    assert!(matches!(Paired::of(&huge, &[0.0, 0.0]), Err(StatsError::Overflow { .. })));
    assert!(matches!(Paired::of(&huge, &[-1e308, 0.0]), Err(StatsError::Overflow { .. })));
}

#[test]
fn too_few_or_unpaired_values_are_refused() {
    assert_eq!(Paired::of(&[1.0], &[0.0]), Err(StatsError::TooFew { got: 1, needed: 2 }));
    assert_eq!(Paired::of(&[1.0, 2.0], &[0.0]), Err(StatsError::Unpaired { left: 2, right: 1 }));
    assert_eq!(Summary::of(&[]), Err(StatsError::TooFew { got: 0, needed: 1 }));
    assert!(matches!(quantile(&[], 0.5), Err(StatsError::TooFew { .. })));
    assert!(matches!(quantile(&[1.0], 1.5), Err(StatsError::Probability(_))));
    let none = Bootstrap { resamples: 0, ..Bootstrap::default() };
    assert_eq!(none.means(&[1.0]), Err(StatsError::NoResamples));
    assert!(matches!(
        Bootstrap::default().indices(u32::MAX as usize + 1),
        Err(StatsError::TooMany { .. })
    ));
}

#[test]
fn gate_reports_survive_json() {
    let report = decide(&better(), &digests("a", "b"));
    let text = serde_json::to_string(&report).unwrap();
    assert!(text.contains(r#""criterion":"no-illegal-or-incomplete""#), "{text}");
    assert!(text.contains(r#""bootstrap_seed":"0xb0071eaf""#), "{text}");
    assert_eq!(serde_json::from_str::<GateReport>(&text).unwrap(), report);
    assert_eq!(serde_json::to_string(&Criterion::ALL).unwrap(), {
        let names: Vec<_> = Criterion::ALL.iter().map(|c| format!("\"{c}\"")).collect();
        format!("[{}]", names.join(","))
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Scaling and shifting by integers that keep everything exact moves every figure alike.
    #[test]
    fn bounds_follow_a_shift_of_the_candidate(
        scores in prop::collection::vec(0_i32..1_000_000, 2..40),
        shift in -100_000_i32..100_000,
    ) {
        let candidate: Vec<f64> = scores.iter().map(|&score| f64::from(score)).collect();
        let zeros = vec![0.0; candidate.len()];
        let shifted: Vec<f64> = candidate.iter().map(|score| score + f64::from(shift)).collect();
        let few = Bootstrap { resamples: 200, ..Bootstrap::default() };
        let plain = Paired::with_bootstrap(&candidate, &zeros, few).unwrap();
        let moved = Paired::with_bootstrap(&shifted, &zeros, few).unwrap();
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-6;
        prop_assert!(close(moved.mean_delta, plain.mean_delta + f64::from(shift)));
        prop_assert!(close(moved.bootstrap_lower95, plain.bootstrap_lower95 + f64::from(shift)));
        prop_assert!(close(moved.bootstrap_upper95, plain.bootstrap_upper95 + f64::from(shift)));
        prop_assert!(close(moved.paired_sd, plain.paired_sd));
        prop_assert_eq!(moved.wins + moved.ties + moved.losses, moved.n);
        prop_assert!(plain.bootstrap_lower95 <= plain.bootstrap_upper95);
    }

    /// The exact integer path and the pairwise floating path give the same bits on integers.
    #[test]
    fn integer_and_floating_resamples_agree(scores in prop::collection::vec(-1_000_i32..1_000, 1..300)) {
        let values: Vec<f64> = scores.iter().map(|&score| f64::from(score)).collect();
        // A power of two keeps every sum exact while the values stop being integers.
        let scaled: Vec<f64> = values.iter().map(|value| value / 4096.0).collect();
        let few = Bootstrap { resamples: 50, ..Bootstrap::default() };
        let means = few.means(&values).unwrap();
        let smaller = few.means(&scaled).unwrap();
        for (mean, small) in means.iter().zip(smaller) {
            prop_assert_eq!(mean / 4096.0, small);
        }
    }
}
