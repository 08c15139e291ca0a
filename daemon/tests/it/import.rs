//! The published runs as records beside our own.

use std::path::{Path, PathBuf};

use heldout::app::{App, VerifyOptions, VerifyReport};
use heldout::config::Config;
use heldout::domain::protocol::Role;
use heldout::domain::records::{LeaseState, Origin, Outcome, Validity};
use heldout::domain::refusal::Code;
use heldout::store::{Ask, LeaseFilter, Page};
use tempfile::TempDir;

fn published() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocols/published")
}

async fn imported() -> (TempDir, App) {
    let folder = tempfile::tempdir().unwrap();
    let app = App::open(Config::new(folder.path())).await.unwrap();
    app.import_published(&published()).await.unwrap();
    (folder, app)
}

async fn verify(app: &App, run: &str, replay: &[&str], games: u32) -> VerifyReport {
    let replay = (!replay.is_empty()).then(|| replay.iter().map(|&arm| arm.to_owned()).collect());
    let options = VerifyOptions { replay, first: 0, games };
    app.verify(&run.parse().unwrap(), options).await.unwrap()
}

#[tokio::test]
async fn four_runs_once_each_clearly_marked() {
    let (_folder, app) = imported().await;
    let again = app.import_published(&published()).await.unwrap();
    assert_eq!(again.len(), 4);
    assert!(again.iter().all(|run| !run.created), "a second import changes nothing");
    let mut seen = Vec::new();
    for run in &again {
        let status = app.status(&run.run_id).await.unwrap();
        assert_eq!(status.run.origin, Origin::Imported);
        let experiment = app.store().experiment(&status.run.experiment_id).await.unwrap();
        assert_eq!(experiment.origin, Origin::Imported);
        let result = status.result.unwrap();
        assert_eq!(result.origin, Origin::Imported);
        assert!(result.summary.starts_with("Imported"), "{}", result.summary);
        let games: u64 = status.games.values().sum();
        assert_eq!(games, run.games);
        seen.push((games, status.points.len(), result.validity, result.outcome));
        for lease in status.leases {
            assert_eq!(lease.state, LeaseState::Opened, "{}", lease.id);
        }
    }
    assert_eq!(
        seen,
        [
            (1024, 44, Validity::Valid, Outcome::Pass),
            (0, 9, Validity::Partial, Outcome::NotApplicable),
            (2048, 0, Validity::Valid, Outcome::Pass),
            (0, 24, Validity::Partial, Outcome::NotApplicable),
        ]
    );
    app.shutdown(std::time::Duration::from_secs(5)).await;
}

#[tokio::test]
async fn published_blocks_can_never_be_leased_again() {
    let (_folder, app) = imported().await;
    let leases = app.store().leases(&LeaseFilter::default(), &Page::default()).await.unwrap();
    assert_eq!(leases.len(), 10);
    for lease in leases {
        let range = heldout::domain::seed_range::SeedRange::new(lease.start, 1).unwrap();
        let refusal = app
            .store()
            .reserve(&lease.experiment_id, "again", lease.role, Ask::Range(range))
            .await
            .unwrap_err();
        let expected = match lease.role {
            Role::HeldOut => Code::AlreadyOpened,
            Role::Training | Role::Validation => Code::LeaseOverlap,
        };
        assert_eq!(refusal.code, expected, "{refusal}");
    }
    app.shutdown(std::time::Duration::from_secs(5)).await;
}

#[tokio::test]
async fn every_published_figure_is_made_again_or_obeys_its_identities() {
    let (_folder, app) = imported().await;
    for (run, checks) in [
        ("RUN-20260905T193006Z-4fbeb4e5", &["arm-summaries", "contrasts", "gate-consistency"][..]),
        ("RUN-20260906T081306Z-e62d9837", &["arm-summaries", "contrasts", "gate-consistency"]),
        ("RUN-20260906T013222Z-ba0ee34f", &["identities", "gate-consistency"]),
        ("RUN-20260906T201104Z-a96ea6c8", &["identities", "gate-consistency"]),
    ] {
        let report = verify(&app, run, &[], 0).await;
        let failed: Vec<_> = report.checks.iter().filter(|check| !check.passed).collect();
        assert!(report.passed, "{run}: {failed:?}");
        for name in checks {
            assert!(report.checks.iter().any(|check| check.name == *name), "{run}: no {name}");
        }
    }
    app.shutdown(std::time::Duration::from_secs(5)).await;
}

async fn replay_of_the_fair_arm(games: u32) {
    let (_folder, app) = imported().await;
    let report = verify(&app, "RUN-20260905T193006Z-4fbeb4e5", &["fair-d3s7"], games).await;
    let replay = report.checks.iter().find(|check| check.name == "replay[fair-d3s7]").unwrap();
    assert!(replay.passed, "{}", replay.evidence);
    assert!(replay.evidence.contains(&format!("{games} games")), "{}", replay.evidence);
    assert!(report.passed);
    app.shutdown(std::time::Duration::from_secs(5)).await;
}

#[tokio::test]
async fn published_games_of_the_fair_leaf_replay() {
    replay_of_the_fair_arm(2).await;
}

#[tokio::test]
#[ignore = "64 games at depth 3: minutes"]
async fn the_first_64_published_games_of_the_fair_leaf_replay() {
    replay_of_the_fair_arm(64).await;
}

#[tokio::test]
async fn an_arm_whose_table_is_not_here_is_refused_when_named() {
    let (_folder, app) = imported().await;
    let options =
        VerifyOptions { replay: Some(vec![String::from("candidate-d3s7")]), first: 0, games: 1 };
    let run = "RUN-20260905T193006Z-4fbeb4e5".parse().unwrap();
    let refusal = app.verify(&run, options).await.unwrap_err();
    assert_eq!(refusal.code, Code::MissingTable);
    app.shutdown(std::time::Duration::from_secs(5)).await;
}
