//! Leases: disjoint whoever asks and however many ask at once, opened once, refused with names.

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::Command;
use std::sync::Arc;

use heldout::clock::Clock;
use heldout::domain::ids::ExperimentId;
use heldout::domain::protocol::{Amendment, Protocol, Role};
use heldout::domain::records::{LeaseState, RunState, TableDigest};
use heldout::domain::refusal::{Code, Refusal};
use heldout::domain::seed_range::{Seed, SeedRange};
use heldout::store::{Ask, LeaseFilter, NewExperiment, Page, RunFilter, Store, lowest_free};
use proptest::prelude::*;
use tokio::sync::Barrier;

use crate::lab::{Lab, block, held_out, new_experiment, protocol, table};

fn range(start: u32, count: u64) -> Ask {
    Ask::Range(SeedRange::new(Seed(start), count).unwrap())
}

/// Two stores on one file, each with its own connections: of 64 that ask for the same seeds at once,
/// one gets them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_64_requests_through_two_stores_exactly_one_wins() {
    let lab = Lab::new().await;
    let frozen = lab.freeze(protocol("race", 4)).await;
    let second = Store::open(&lab.path(), lab.clock.clone()).await.unwrap();
    let barrier = Arc::new(Barrier::new(64));
    let mut tasks = Vec::new();
    for number in 0..64_u32 {
        let store = if number % 2 == 0 { lab.store.clone() } else { second.clone() };
        let (barrier, experiment) = (Arc::clone(&barrier), frozen.experiment.id.clone());
        tasks.push(tokio::spawn(async move {
            barrier.wait().await;
            // Every request shares seed 0x20000100 with every other.
            let ask = range(0x2000_0100 - number, u64::from(number) + 1);
            store.reserve(&experiment, &format!("race-{number}"), Role::Training, ask).await
        }));
    }
    let mut won = Vec::new();
    let mut refused = Vec::new();
    for task in tasks {
        match task.await.unwrap() {
            Ok(lease) => won.push(lease),
            Err(refusal) => refused.push(refusal),
        }
    }
    assert_eq!((won.len(), refused.len()), (1, 63));
    for refusal in refused {
        assert_eq!(refusal.code, Code::LeaseOverlap);
        assert!(refusal.detail.contains(won[0].id.as_str()), "{refusal}");
    }
    assert!(lab.store.verify_everything().await.unwrap().iter().all(|check| check.passed));
}

/// Not a test of its own: opens a lease and dies as if the power had failed.
#[tokio::test]
#[ignore = "run by a_crash_keeps_a_lease_open in a child process"]
async fn child_that_opens_and_dies() {
    let Ok(file) = std::env::var(CHILD_FILE) else { return };
    let store = Store::open(std::path::Path::new(&file), Clock::system()).await.unwrap();
    let run = store.runs(&RunFilter::default(), &Page::default()).await.unwrap().remove(0);
    let lease = store.leases_of(&run.experiment_id).await.unwrap().remove(0);
    store.open_lease(&lease.id, &run.id, &run.protocol_sha256, &[]).await.unwrap();
    std::process::abort();
}

#[tokio::test]
async fn a_crash_keeps_a_lease_open() {
    let lab = Lab::new().await;
    let frozen = lab.freeze(protocol("crash", 4)).await;
    let run = lab.running(&frozen).await;
    lab.store.close().await;
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "leases::child_that_opens_and_dies", "--ignored"])
        .env(CHILD_FILE, lab.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success(), "the child was meant to die");
    let store = Store::open(&lab.path(), lab.clock.clone()).await.unwrap();
    let lease = store.lease(&held_out(&frozen).id).await.unwrap();
    assert_eq!(lease.state, LeaseState::Opened);
    assert_eq!(lease.opening.as_ref().unwrap().run_id, run.id);
    assert_eq!(store.interrupt_all_running("boot-2").await.unwrap(), std::slice::from_ref(&run.id));
    store
        .set_run_state(&run.id, &[RunState::Interrupted], RunState::Failed, Some("given up"))
        .await
        .unwrap();
    let second =
        store.create_run(&run.experiment_id, &run.engine, "b", &run.machine_id).await.unwrap();
    store.set_run_state(&second.id, &[RunState::Queued], RunState::Running, None).await.unwrap();
    let refusal =
        store.open_lease(&lease.id, &second.id, &run.protocol_sha256, &[]).await.unwrap_err();
    assert!(
        refusal.code == Code::AlreadyOpened && refusal.detail.contains(run.id.as_str()),
        "{refusal}"
    );
    assert!(store.verify_everything().await.unwrap().iter().all(|check| check.passed));
}

/// Drawn blocks of concurrent requests never meet either, and all of them get one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_draws_all_get_blocks_of_their_own() {
    let lab = Lab::new().await;
    let frozen = lab.freeze(protocol("draws", 4)).await;
    let second = Store::open(&lab.path(), lab.clock.clone()).await.unwrap();
    let mut tasks = Vec::new();
    for number in 0..32_u32 {
        let store = if number % 2 == 0 { lab.store.clone() } else { second.clone() };
        let experiment = frozen.experiment.id.clone();
        tasks.push(tokio::spawn(async move {
            store
                .reserve(
                    &experiment,
                    &format!("draw-{number}"),
                    Role::HeldOut,
                    Ask::Count(100 + number * 17),
                )
                .await
        }));
    }
    let mut leases = frozen.leases.clone();
    for task in tasks {
        leases.push(task.await.unwrap().unwrap());
    }
    let mut blocks = Vec::new();
    for lease in leases {
        assert_eq!(lease.start.0 % 256, 0);
        blocks.push(u64::from(lease.start.0)..u64::from(lease.start.0) + u64::from(lease.count));
    }
    blocks.sort_by_key(|block| block.start);
    assert!(blocks.windows(2).all(|pair| pair[0].end <= pair[1].start), "{blocks:?}");
    assert!(blocks[0].start == 0x1000_0000);
}

const CHILD_FILE: &str = "HELDOUT_TEST_DATABASE";

/// Not a test of its own: one of the processes of the next test.
#[tokio::test]
#[ignore = "run by of_two_processes_exactly_one_wins in child processes"]
async fn child_that_reserves() {
    let Ok(file) = std::env::var(CHILD_FILE) else { return };
    let experiment: ExperimentId =
        std::env::var("HELDOUT_TEST_EXPERIMENT").unwrap().parse().unwrap();
    let store = Store::open(std::path::Path::new(&file), Clock::system()).await.unwrap();
    let mut won = 0;
    for number in 0..50_u32 {
        let name = format!("{}-{number}", std::process::id());
        match store
            .reserve(&experiment, &name, Role::Training, range(0x3000_0000 + number * 10, 10))
            .await
        {
            Ok(_) => won += 1,
            Err(Refusal { code: Code::LeaseOverlap, .. }) => {}
            Err(refusal) => panic!("{refusal}"),
        }
    }
    store.close().await;
    println!("won={won}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_processes_exactly_one_wins_each_block() {
    let lab = Lab::new().await;
    let frozen = lab.freeze(protocol("processes", 4)).await;
    let children: Vec<_> = (0..2)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "leases::child_that_reserves", "--ignored", "--nocapture"])
                .env(CHILD_FILE, lab.path())
                .env("HELDOUT_TEST_EXPERIMENT", frozen.experiment.id.as_str())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut won = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        let count = text.split("won=").nth(1).unwrap().split_whitespace().next().unwrap();
        won += count.parse::<u32>().unwrap();
    }
    assert_eq!(won, 50, "every block has exactly one holder");
    let filter = LeaseFilter { role: Some(Role::Training), ..LeaseFilter::default() };
    assert_eq!(lab.store.leases(&filter, &Page::default()).await.unwrap().len(), 50);
    assert!(lab.store.verify_everything().await.unwrap().iter().all(|check| check.passed));
}

#[tokio::test]
async fn a_refusal_names_the_lease_its_range_and_its_experiment() {
    let lab = Lab::new().await;
    let first = Protocol {
        seeds: BTreeMap::from([
            ("games".into(), block(Role::Training, Some(0xa530_0000), 1000)),
            ("screen".into(), block(Role::HeldOut, Some(0xa52f_2140), 256)),
        ]),
        ..protocol("first", 256)
    };
    let first = lab.freeze(first).await;
    let second = Protocol {
        seeds: BTreeMap::from([
            ("again".into(), block(Role::Validation, Some(0xa530_03e7), 10)),
            ("blocked".into(), block(Role::Training, Some(0xa527_7fff), 2)),
            ("fine".into(), block(Role::Training, None, 256)),
            ("screen".into(), block(Role::HeldOut, Some(0xa52f_2100), 65)),
        ]),
        ..protocol("second", 65)
    };
    let refusal = lab.store.create_experiment(new_experiment(second.clone())).await.unwrap_err();
    assert_eq!(refusal.code, Code::LeaseOverlap);
    let pointers: Vec<&str> = refusal.errors.iter().map(|error| error.pointer.as_str()).collect();
    assert_eq!(pointers, ["/seeds/again", "/seeds/blocked", "/seeds/screen"]);
    let games = first.leases.iter().find(|lease| lease.name == "games").unwrap();
    for part in
        [games.id.as_str(), "[0xa5300000, 0xa53003e8)", first.experiment.id.as_str(), "training"]
    {
        assert!(refusal.errors[0].detail.contains(part), "{part} in {refusal}");
    }
    for part in ["probe", "[0xa5276000, 0xa5278000)"] {
        assert!(refusal.errors[1].detail.contains(part), "{part} in {refusal}");
    }
    assert!(refusal.errors[2].detail.contains(held_out(&first).id.as_str()));
    assert!(refusal.hint.unwrap().contains("next free block is drawn"));
    // Nothing of it was kept: not even the theory's event or the block that was fine.
    assert_eq!(
        lab.store.experiments(&Page::default()).await.unwrap(),
        std::slice::from_ref(&first.experiment)
    );
    assert_eq!(lab.store.leases(&LeaseFilter::default(), &Page::default()).await.unwrap().len(), 2);
    // Half-open: the block that begins where the other ends is fine.
    let next =
        lab.store.reserve(&first.experiment.id, "next", Role::HeldOut, range(0xa52f_2240, 1)).await;
    assert!(next.is_ok());
    let before = lab
        .store
        .reserve(&first.experiment.id, "before", Role::HeldOut, range(0xa52f_213f, 1))
        .await;
    assert!(before.is_ok());
}

#[tokio::test]
async fn a_second_opening_is_refused_with_who_and_when() {
    let lab = Lab::new().await;
    let screening = lab.screening().await;
    let opened_at = lab.clock.now();
    let store = &lab.store;
    let (run, lease) = (&screening.run, &screening.lease);

    // The same run goes on after an interruption, with the same tables only.
    store.interrupt_all_running("boot-2").await.unwrap();
    let resumed = [RunState::Interrupted];
    store.set_run_state(&run.id, &resumed, RunState::Running, None).await.unwrap();
    lab.clock.set("2026-12-02T00:00:00Z".parse().unwrap());
    let again = store.open_lease(&lease.id, &run.id, &run.protocol_sha256, &[]).await.unwrap();
    assert_eq!(again.opened_at, opened_at);
    let other_tables = [TableDigest { name: "t".into(), sha256: "a".repeat(64) }];
    let refusal = store
        .open_lease(&lease.id, &run.id, &run.protocol_sha256, &other_tables)
        .await
        .unwrap_err();
    assert_eq!(refusal.code, Code::AlreadyOpened);

    store.set_run_state(&run.id, &[RunState::Running], RunState::Failed, Some("x")).await.unwrap();
    let second = lab.running(&screening.frozen).await;
    let refusal =
        store.open_lease(&lease.id, &second.id, &second.protocol_sha256, &[]).await.unwrap_err();
    assert_eq!(refusal.code, Code::AlreadyOpened);
    assert!(refusal.detail.contains(run.id.as_str()), "{refusal}");
    assert!(refusal.detail.contains("2026-12-01T00:00:00Z"), "{refusal}");
    assert!(refusal.hint.unwrap().contains("repeat the experiment"));
    let refusal = store.cancel_lease(&lease.id, "x").await.unwrap_err();
    assert_eq!(refusal.code, Code::WrongState);
    assert!(refusal.detail.contains(run.id.as_str()), "{refusal}");

    // A protocol that pins the opened block is told the same.
    let pinned = Protocol {
        seeds: BTreeMap::from([("screen".into(), block(Role::HeldOut, Some(lease.start.0), 4))]),
        ..protocol("pinned", 4)
    };
    let refusal = store.create_experiment(new_experiment(pinned)).await.unwrap_err();
    assert_eq!(refusal.code, Code::AlreadyOpened);
    for part in [run.id.as_str(), "2026-12-01T00:00:00Z"] {
        assert!(refusal.errors[0].detail.contains(part), "{part} in {refusal}");
    }
}

#[tokio::test]
async fn of_many_openings_at_once_one_run_wins() {
    let lab = Lab::new().await;
    let frozen = lab.freeze(protocol("openings", 4)).await;
    let lease = held_out(&frozen).id.clone();
    // Two running runs of one experiment: the store makes only one at a time, so the second is raw.
    let first = lab.running(&frozen).await;
    let second = "RUN-20261201T000000Z-00000002";
    let mut raw = lab.raw(true).await;
    sqlx::query("INSERT INTO runs (id, experiment_id, protocol_sha256, engine, build, machine_id, origin, state, validity, created_at)
                 SELECT ?, experiment_id, protocol_sha256, engine, build, machine_id, origin, 'queued', 'pending', created_at FROM runs")
        .bind(second)
        .execute(&mut raw)
        .await
        .unwrap();
    sqlx::query("UPDATE runs SET state = 'running', started_at = 0 WHERE id = ?")
        .bind(second)
        .execute(&mut raw)
        .await
        .unwrap();
    let other = Store::open(&lab.path(), lab.clock.clone()).await.unwrap();
    let mut tasks = Vec::new();
    for number in 0..32 {
        let store = if number % 2 == 0 { lab.store.clone() } else { other.clone() };
        let run = if number % 4 < 2 { first.id.clone() } else { second.parse().unwrap() };
        let (lease, sha256) = (lease.clone(), first.protocol_sha256.clone());
        tasks.push(tokio::spawn(async move { store.open_lease(&lease, &run, &sha256, &[]).await }));
    }
    let mut winners = Vec::new();
    for task in tasks {
        match task.await.unwrap() {
            Ok(opening) => winners.push(opening.run_id),
            Err(refusal) => assert_eq!(refusal.code, Code::AlreadyOpened),
        }
    }
    winners.dedup();
    assert_eq!(winners.len(), 1, "one run, though it may have asked often");
}

#[tokio::test]
async fn an_opening_waits_for_earlier_stages_and_stored_tables() {
    let lab = Lab::new().await;
    let frozen = lab.freeze(protocol("early", 4)).await;
    let run = lab.running(&frozen).await;
    let lease = held_out(&frozen).id.clone();
    let token = lab.attempt(&run.id, "gates", "gates", 1).await;
    let open = async |tables: &[TableDigest]| {
        lab.store.open_lease(&lease, &run.id, &run.protocol_sha256, tables).await
    };
    let refusal = open(&[]).await.unwrap_err();
    assert_eq!(refusal.code, Code::WrongState);
    assert!(refusal.detail.contains("unit gates"), "{refusal}");
    let output = serde_json::json!({"passed": 1});
    lab.store
        .finish_attempt(&token, heldout::domain::records::WorkState::Succeeded, None, Some(&output))
        .await
        .unwrap();
    let tables = [TableDigest { name: "candidate".into(), sha256: "a".repeat(64) }];
    let refusal = open(&tables).await.unwrap_err();
    assert_eq!(refusal.code, Code::MissingTable);
    assert!(refusal.detail.contains(&"a".repeat(64)), "{refusal}");
    assert_eq!(lab.store.lease(&lease).await.unwrap().state, LeaseState::Reserved);
    lab.store.add_artifact(&table('a', Some(&run.id))).await.unwrap();
    let opening = open(&tables).await.unwrap();
    assert_eq!(opening.tables, tables);
    assert_eq!(lab.store.lease(&lease).await.unwrap().opening, Some(opening));
}

#[tokio::test]
async fn a_repeat_reads_pinned_training_again_and_draws_the_rest_anew() {
    let lab = Lab::new().await;
    let base = Protocol {
        seeds: BTreeMap::from([
            ("games".into(), block(Role::Training, Some(0x2000_0000), 512)),
            ("screen".into(), block(Role::HeldOut, None, 4)),
            ("judge".into(), block(Role::Validation, None, 8)),
        ]),
        ..protocol("base", 4)
    };
    let first = lab.freeze(base.clone()).await;
    let again = lab.freeze(base.clone()).await;
    assert!(first.created && !again.created);
    assert_eq!((&again.experiment, &again.leases), (&first.experiment, &first.leases));

    let repeat = NewExperiment {
        predecessor: Some((first.experiment.id.clone(), "repeat on fresh seeds".into())),
        ..new_experiment(base.clone())
    };
    let tried = lab.store.try_experiment(repeat.clone()).await.unwrap();
    assert_eq!(
        lab.store.experiments(&Page::default()).await.unwrap().len(),
        1,
        "a try keeps nothing"
    );
    let second = lab.store.create_experiment(repeat.clone()).await.unwrap();
    let third = NewExperiment {
        predecessor: Some((second.experiment.id.clone(), "once more".into())),
        ..repeat
    };
    let third = lab.store.create_experiment(third).await.unwrap();
    let by_name = |frozen: &heldout::store::Frozen, name: &str| {
        frozen.leases.iter().find(|lease| lease.name == name).unwrap().clone()
    };
    for later in [&tried, &second, &third] {
        assert_eq!(later.experiment.predecessor_was_open, Some(false));
        assert_eq!(by_name(later, "games").id, by_name(&first, "games").id);
        assert_ne!(by_name(later, "screen").start, by_name(&first, "screen").start);
        assert_ne!(by_name(later, "judge").start, by_name(&first, "judge").start);
    }
    assert_ne!(by_name(&second, "screen").start, by_name(&third, "screen").start);
    assert_eq!(lab.store.leases_of(&third.experiment.id).await.unwrap(), third.leases);
    let latest = lab.store.experiment_by_digest(&first.experiment.protocol_sha256).await.unwrap();
    assert!(latest.is_some());

    // Somebody else who pins the same training seeds is refused: no predecessor, no sharing.
    let stranger = Protocol { title: "stranger".into(), ..base.clone() };
    let refusal = lab.store.create_experiment(new_experiment(stranger.clone())).await.unwrap_err();
    assert_eq!(refusal.code, Code::LeaseOverlap);
    // An amendment says whom it follows, so it may.
    let amends =
        Some(Amendment { experiment: third.experiment.id.clone(), reason: "title".into() });
    let amended = lab.freeze(Protocol { amends, ..stranger }).await;
    assert_eq!(by_name(&amended, "games").id, by_name(&first, "games").id);
    assert_eq!(amended.experiment.predecessor, Some(third.experiment.id.clone()));
    // The shared lease cannot be given back by one of its readers.
    let refusal = lab.store.cancel_lease(&by_name(&first, "games").id, "x").await.unwrap_err();
    assert_eq!(refusal.code, Code::WrongState);
}

#[tokio::test]
async fn readings_open_a_lease_and_never_go_back() {
    let lab = Lab::new().await;
    let base = Protocol {
        seeds: BTreeMap::from([
            ("games".into(), block(Role::Training, None, 512)),
            ("screen".into(), block(Role::HeldOut, None, 4)),
        ]),
        ..protocol("reading", 4)
    };
    let frozen = lab.freeze(base).await;
    let run = lab.running(&frozen).await;
    let games = frozen.leases.iter().find(|lease| lease.name == "games").unwrap();
    let store = &lab.store;
    for (cursor, wraps) in [(10, 0), (5, 0), (3, 1), (500, 0)] {
        store.record_reading(&games.id, &run.id, "train/C", cursor, wraps).await.unwrap();
    }
    let readings = store.readings(&games.id).await.unwrap();
    assert_eq!(readings.len(), 1);
    assert_eq!((readings[0].cursor, readings[0].wraps), (3, 1));
    assert_eq!(store.lease(&games.id).await.unwrap().state, LeaseState::Opened);
    assert_eq!(store.cancel_lease(&games.id, "x").await.unwrap_err().code, Code::WrongState);
    let screen = &held_out(&frozen).id;
    let refusal = store.record_reading(screen, &run.id, "train/C", 1, 0).await.unwrap_err();
    assert_eq!(refusal.code, Code::WrongState);
    let refusal =
        store.open_lease(&games.id, &run.id, &run.protocol_sha256, &[]).await.unwrap_err();
    assert_eq!(refusal.code, Code::WrongState);
}

#[tokio::test]
async fn withdrawing_gives_unread_seeds_back() {
    let lab = Lab::new().await;
    let frozen = lab.freeze(protocol("withdrawn", 4)).await;
    let id = &frozen.experiment.id;
    let run = lab.running(&frozen).await;
    assert_eq!(lab.store.withdraw_experiment(id, "x").await.unwrap_err().code, Code::WrongState);
    assert_eq!(
        lab.store.cancel_lease(&frozen.leases[0].id, "x").await.unwrap_err().code,
        Code::WrongState
    );
    lab.store
        .set_run_state(&run.id, &[RunState::Running], RunState::Failed, Some("x"))
        .await
        .unwrap();
    let withdrawn = lab.store.withdraw_experiment(id, "a typo").await.unwrap();
    assert_eq!(withdrawn.withdrawn_reason.as_deref(), Some("a typo"));
    assert_eq!(lab.store.lease(&frozen.leases[0].id).await.unwrap().state, LeaseState::Cancelled);
    assert_eq!(lab.store.withdraw_experiment(id, "x").await.unwrap_err().code, Code::WrongState);
    let machine = lab.machine().await;
    let refusal = lab.store.create_run(id, crate::lab::ENGINE, "b", &machine).await.unwrap_err();
    assert_eq!(refusal.code, Code::WrongState);
    let refusal = lab.store.reserve(id, "more", Role::Training, Ask::Count(1)).await.unwrap_err();
    assert_eq!(refusal.code, Code::WrongState);
    // The same protocol may be frozen again, on the seeds that came back.
    let again = lab.freeze(protocol("withdrawn", 4)).await;
    assert!(again.created);
    assert_eq!(again.leases[0].start, frozen.leases[0].start);
    assert!(lab.store.verify_everything().await.unwrap().iter().all(|check| check.passed));
}

#[tokio::test]
async fn an_exhausted_pool_says_so() {
    let lab = Lab::new().await;
    let frozen = lab.freeze(protocol("pool", 4)).await;
    let id = &frozen.experiment.id;
    // The pool is [0x10000000, 0x70000000); the first block of it is the screen's.
    let refusal =
        lab.store.reserve(id, "all", Role::Training, Ask::Count(0x6000_0000)).await.unwrap_err();
    assert_eq!(refusal.code, Code::PoolExhausted);
    let most =
        lab.store.reserve(id, "most", Role::Training, Ask::Count(0x5fff_ff00)).await.unwrap();
    assert_eq!(most.start, Seed(0x1000_0100));
    let refusal = lab.store.reserve(id, "one", Role::Training, Ask::Count(1)).await.unwrap_err();
    assert_eq!(refusal.code, Code::PoolExhausted);
    assert_eq!(
        lab.store.reserve(id, "none", Role::Training, Ask::Count(0)).await.unwrap_err().code,
        Code::PoolExhausted
    );
}

#[tokio::test]
async fn pages_of_leases_follow_the_seeds_and_miss_none() {
    let lab = Lab::new().await;
    let frozen = lab.freeze(protocol("pages", 4)).await;
    for number in (0..9_u32).rev() {
        let ask = range(0x2000_0000 + number * 100, 50);
        lab.store
            .reserve(&frozen.experiment.id, &format!("b{number}"), Role::Training, ask)
            .await
            .unwrap();
    }
    let all = lab.store.leases(&LeaseFilter::default(), &Page::default()).await.unwrap();
    assert_eq!(all.len(), 10);
    assert!(all.is_sorted_by_key(|lease| lease.start));
    let mut paged = Vec::new();
    let mut page = Page { after: None, limit: 3 };
    loop {
        let part = lab.store.leases(&LeaseFilter::default(), &page).await.unwrap();
        let Some(last) = part.last() else { break };
        page.after = Some(last.id.to_string());
        paged.extend(part);
    }
    assert_eq!(paged, all);
    let cancelled = LeaseFilter { state: Some(LeaseState::Cancelled), ..LeaseFilter::default() };
    assert!(lab.store.leases(&cancelled, &Page::default()).await.unwrap().is_empty());
    assert_eq!(lab.store.blocked_ranges().await.unwrap().len(), 3);
}

/// Disjoint, sorted ranges in a small pool.
fn taken() -> impl Strategy<Value = Vec<Range<u64>>> {
    proptest::collection::vec((0_u64..40, 1_u64..40), 0..12).prop_map(|gaps| {
        let mut at = 0;
        gaps.into_iter()
            .map(|(gap, len)| {
                let range = at + gap..at + gap + len;
                at = range.end;
                range
            })
            .collect()
    })
}

proptest! {
    /// The drawn block is free, aligned, inside the pool, and no lower one is: by trying them all.
    #[test]
    fn the_drawn_block_is_the_lowest_free_one(taken in taken(), count in 0_u64..60, align in 1_u64..20, from in 0_u64..50) {
        let pool = from..400;
        let free = |start: u64| {
            start >= pool.start && start + count <= pool.end
                && taken.iter().all(|range| start + count <= range.start || range.end <= start)
        };
        let expected = (0..400).filter(|start| start % align == 0).find(|start| count > 0 && free(*start));
        prop_assert_eq!(lowest_free(pool.clone(), align, &taken, count), expected);
    }

    /// Overlap is what sharing a seed means, and does not care for the order.
    #[test]
    fn overlap_is_sharing_a_seed(a in 0_u32..50, b in 0_u32..50, n in 1_u64..20, m in 1_u64..20) {
        let (x, y) = (SeedRange::new(Seed(a), n).unwrap(), SeedRange::new(Seed(b), m).unwrap());
        let share = x.seeds().any(|seed| y.seeds().any(|other| other == seed));
        prop_assert_eq!(x.overlaps(&y), share);
        prop_assert_eq!(y.overlaps(&x), share);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Whatever is asked for in whatever order, the store grants exactly what shares no seed with what
    /// it granted before, and gives back what is cancelled.
    #[test]
    fn the_store_grants_what_the_model_grants(asks in proptest::collection::vec((0_u32..60, 1_u64..20, any::<bool>()), 1..20)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let lab = Lab::new().await;
            let frozen = lab.freeze(protocol("model", 4)).await;
            let mut held: Vec<(SeedRange, heldout::domain::ids::LeaseId)> = Vec::new();
            for (number, (start, count, cancel)) in asks.into_iter().enumerate() {
                let wanted = SeedRange::new(Seed(0x2000_0000 + start), count).unwrap();
                let name = format!("block-{number}");
                let outcome = lab.store.reserve(&frozen.experiment.id, &name, Role::Training, Ask::Range(wanted)).await;
                let collides = held.iter().any(|(range, _)| range.overlaps(&wanted));
                match outcome {
                    Ok(lease) => {
                        assert!(!collides);
                        held.push((wanted, lease.id));
                    }
                    Err(refusal) => {
                        assert!(collides);
                        assert_eq!(refusal.code, Code::LeaseOverlap);
                        assert!(held.iter().any(|(range, id)| range.overlaps(&wanted) && refusal.detail.contains(id.as_str())));
                    }
                }
                if cancel && let Some((_, id)) = held.pop() {
                    lab.store.cancel_lease(&id, "model").await.unwrap();
                }
            }
        });
    }
}
