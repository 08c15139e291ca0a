//! A store in a folder of its own, and a small protocol to freeze in it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use heldout::clock::Clock;
use heldout::domain::ids::{MachineId, RunId};
use heldout::domain::protocol::{
    Budget, Checks, FORMAT, Gate, Information, Kind, PlayerSpec, Protocol, Role, Screen, ScreenArm,
    SearchSpec, SeedBlock, TheoryDraft, TheoryRef, Tier,
};
use heldout::domain::records::{
    Artifact, Chunk, GameRecord, Lease, Origin, Outcome, Point, ResultRecord, Run, RunState,
    Validity, WorkState,
};
use heldout::domain::seed_range::Seed;
use heldout::store::{
    Ask, AttemptToken, Contribution, ContributionRole, Dataset, Frozen, NewExperiment, Page,
    PlannedUnit, Store,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

/// Engine id of every experiment here.
pub(crate) const ENGINE: &str = "drop7-1+0123456789abcdef";

/// A store, its folder, and a second way into its file.
pub(crate) struct Lab {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    folder: tempfile::TempDir,
}

impl Lab {
    /// A new store; its clock stands at 2026-12-01T00:00:00Z.
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = clock();
        let store =
            Store::open(&folder.path().join("heldout.sqlite"), clock.clone()).await.unwrap();
        Self { store, clock, folder }
    }

    /// A store that is open already, in its folder.
    pub(crate) fn over(store: Store, clock: Clock, folder: tempfile::TempDir) -> Self {
        Self { store, clock, folder }
    }

    /// Moves the clock one second on.
    pub(crate) fn tick(&self) {
        self.clock.set(self.clock.now() + SignedDuration::from_secs(1));
    }

    /// The database file.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("heldout.sqlite")
    }

    /// A connection as any other program makes it, with or without the pragma that lets REPLACE fire
    /// delete triggers.
    pub(crate) async fn raw(&self, recursive_triggers: bool) -> SqliteConnection {
        let options = SqliteConnectOptions::new()
            .filename(self.path())
            .foreign_keys(recursive_triggers)
            .pragma("recursive_triggers", if recursive_triggers { "ON" } else { "OFF" });
        SqliteConnection::connect_with(&options).await.unwrap()
    }

    /// Freezes `protocol`.
    pub(crate) async fn freeze(&self, protocol: Protocol) -> Frozen {
        self.store.create_experiment(new_experiment(protocol)).await.unwrap()
    }

    /// A machine profile.
    pub(crate) async fn machine(&self) -> MachineId {
        self.store.add_machine(json!({"cpu": {"logicalCpus": 2}})).await.unwrap().id
    }

    /// A run of a frozen experiment, running.
    pub(crate) async fn running(&self, frozen: &Frozen) -> Run {
        let machine = self.machine().await;
        let run = self
            .store
            .create_run(&frozen.experiment.id, ENGINE, "0.1.0+test", &machine)
            .await
            .unwrap();
        self.store
            .set_run_state(&run.id, &[RunState::Queued], RunState::Running, None)
            .await
            .unwrap()
    }

    /// Plans one unit and begins an attempt at it.
    pub(crate) async fn attempt(
        &self,
        run: &RunId,
        stage: &str,
        key: &str,
        total: u64,
    ) -> AttemptToken {
        let unit = PlannedUnit { stage: stage.into(), key: key.into(), total };
        self.store.plan_units(run, &[unit]).await.unwrap();
        self.store.start_attempt(run, key).await.unwrap()
    }

    /// An experiment with an open held-out lease, and the attempts that screen its two arms.
    pub(crate) async fn screening(&self) -> Screening {
        let frozen = self.freeze(protocol("screening", 4)).await;
        let run = self.running(&frozen).await;
        let lease = held_out(&frozen).clone();
        self.store.open_lease(&lease.id, &run.id, &run.protocol_sha256, &[]).await.unwrap();
        let shallow = self.attempt(&run.id, "screen", "screen/shallow", 4).await;
        let deep = self.attempt(&run.id, "screen", "screen/deep", 4).await;
        Screening { frozen, run, lease, shallow, deep }
    }

    /// Rows in the tables that a screen leaves empty: a curve, a reading, a dataset, a contribution.
    pub(crate) async fn fill_the_rest(&self, screening: &Screening) {
        let experiment = &screening.frozen.experiment.id;
        let lease =
            self.store.reserve(experiment, "games", Role::Training, Ask::Count(256)).await.unwrap();
        let successor = NewExperiment {
            predecessor: Some((experiment.clone(), "more games".into())),
            ..new_experiment(Protocol {
                seeds: BTreeMap::from([
                    ("screen".into(), block(Role::HeldOut, None, 4)),
                    ("games".into(), block(Role::Training, Some(lease.start.0), 256)),
                ]),
                ..protocol("successor", 4)
            })
        };
        let frozen = self.store.create_experiment(successor).await.unwrap();
        let run = self.running(&frozen).await.id;
        self.store.record_reading(&lease.id, &run, "train/C", 5, 0).await.unwrap();
        let token = self.attempt(&run, "train", "train/C", 100).await;
        let chunk = Chunk {
            run_id: run.clone(),
            arm: "C".into(),
            attempt: 0,
            chunk: 1,
            moves_total: 50,
            figures: json!({"movesPerSecond": 1.5}),
        };
        self.store.add_chunk(&token, &chunk).await.unwrap();
        let point = Point {
            run_id: run.clone(),
            arm: "C".into(),
            attempt: 0,
            point: 1,
            moves: 50,
            margin: 0.5,
            is_best: true,
            figures: json!({"games": 4}),
        };
        assert!(self.store.add_point(&token, &point).await.unwrap());
        let at = self.clock.now();
        let dataset = Dataset {
            id: "DS-20261201-roots-0a1b2c3d".parse().unwrap(),
            title: "roots".into(),
            data_role: "training".into(),
            information_class: "public-only".into(),
            origin_unit: "game".into(),
            origin_count: 1,
            row_count: 2,
            whole_origin_split: true,
            leases: vec![lease.id.clone()],
            parents: Vec::new(),
            fields: vec!["board".into()],
            privileged_fields: Vec::new(),
            notes: vec!["two rows".into()],
            artifact_sha256: "a".repeat(64),
            created_at: at,
        };
        self.store.add_dataset(&dataset).await.unwrap();
        assert_eq!(self.store.dataset(&dataset.id).await.unwrap(), dataset);
        assert_eq!(self.store.datasets(&Page::default()).await.unwrap(), [dataset]);
        let contribution = Contribution {
            id: "CT-20261201T000000Z-0a1b2c3d".parse().unwrap(),
            actor_kind: "human".into(),
            actor: "somebody".into(),
            level: "L1".into(),
            roles: vec![ContributionRole { role: "review".into(), degree: "lead".into() }],
            summary: "looked at it".into(),
            subjects: vec![run.to_string(), experiment.to_string()],
            commits: Vec::new(),
            limitations: Vec::new(),
            notes: Vec::new(),
            self_reported: true,
            recorded_at: at,
        };
        self.store.add_contribution(&contribution).await.unwrap();
        assert_eq!(self.store.contribution(&contribution.id).await.unwrap(), contribution);
        assert_eq!(self.store.contributions(&Page::default()).await.unwrap(), [contribution]);
    }

    /// A run with `games` games of the arm `deep` on record.
    pub(crate) async fn many_games(&self, games: u32) -> RunId {
        let frozen = self.freeze(protocol("many games", games)).await;
        let run = self.running(&frozen).await;
        let lease = held_out(&frozen).clone();
        self.store.open_lease(&lease.id, &run.id, &run.protocol_sha256, &[]).await.unwrap();
        let deep = self.attempt(&run.id, "screen", "screen/deep", u64::from(games)).await;
        let id = run.id.clone();
        let screening = Screening { frozen, run, lease, shallow: deep.clone(), deep: deep.clone() };
        let rows: Vec<_> = (0..games).map(|ordinal| screening.game("deep", ordinal)).collect();
        self.store.add_games(&deep, &screening.lease.id, &rows).await.unwrap();
        id
    }

    /// A run that is training its arm `main`: two chunks and a point of a first attempt, then the second
    /// chunk and a second point of another.
    pub(crate) async fn curves(&self) -> RunId {
        let frozen = self.freeze(protocol("curves", 4)).await;
        let run = self.running(&frozen).await;
        let first = self.attempt(&run.id, "main", "train/main", 4000).await;
        for chunk in [1, 2] {
            self.store.add_chunk(&first, &curve_chunk(&run.id, chunk)).await.unwrap();
        }
        self.store.add_point(&first, &curve_point(&run.id, 1)).await.unwrap();
        let reason = Some("stopped on request");
        self.store.finish_attempt(&first, WorkState::Stopped, reason, None).await.unwrap();
        let second = self.store.start_attempt(&run.id, "train/main").await.unwrap();
        self.store.add_chunk(&second, &curve_chunk(&run.id, 2)).await.unwrap();
        self.store.add_point(&second, &curve_point(&run.id, 2)).await.unwrap();
        run.id
    }

    /// Everything of [`Lab::screening`], played and judged.
    pub(crate) async fn judged(&self) -> (Screening, ResultRecord) {
        let screening = self.screening().await;
        for (token, arm) in [(&screening.shallow, "shallow"), (&screening.deep, "deep")] {
            let games: Vec<_> = (0..4).map(|ordinal| screening.game(arm, ordinal)).collect();
            self.store.add_games(token, &screening.lease.id, &games).await.unwrap();
            let output = json!({"games": 4});
            self.store
                .finish_attempt(token, WorkState::Succeeded, None, Some(&output))
                .await
                .unwrap();
        }
        let result = screening.result(self.clock.now());
        self.store.add_result(&result).await.unwrap();
        self.store
            .set_run_state(&screening.run.id, &[RunState::Running], RunState::Completed, None)
            .await
            .unwrap();
        (screening, result)
    }
}

/// A clock that stands at 2026-12-01T00:00:00Z.
pub(crate) fn clock() -> Clock {
    Clock::held("2026-12-01T00:00:00Z".parse::<Timestamp>().unwrap())
}

/// A run whose held-out lease is open.
pub(crate) struct Screening {
    pub(crate) frozen: Frozen,
    pub(crate) run: Run,
    pub(crate) lease: Lease,
    pub(crate) shallow: AttemptToken,
    pub(crate) deep: AttemptToken,
}

impl Screening {
    /// A game of an arm, with figures that depend on both.
    pub(crate) fn game(&self, arm: &str, ordinal: u32) -> GameRecord {
        GameRecord {
            arm: arm.into(),
            ordinal,
            seed_hex: Seed(self.lease.start.0 + ordinal),
            score: i64::from(ordinal) * 1000 + arm.len() as i64,
            moves: 40 + ordinal,
            numbered_cleared: Some(100),
            covers_revealed: Some(50),
            max_chain_depth: Some(6),
            occupied_sum: Some(900),
            mean_occupied_cells: Some(22.5),
            clears: Some(0),
            censored: false,
            illegal_decisions: 0,
            incomplete_decisions: 0,
            work: Some(123_456),
            wall_seconds: Some(0.25),
        }
    }

    /// A passing result.
    pub(crate) fn result(&self, at: Timestamp) -> ResultRecord {
        ResultRecord {
            id: "RS-20261201T000000Z-0000beef".parse().unwrap(),
            run_id: self.run.id.clone(),
            experiment_id: self.run.experiment_id.clone(),
            protocol_sha256: self.run.protocol_sha256.clone(),
            validity: Validity::Valid,
            outcome: Outcome::Pass,
            tier: "pilot".into(),
            analysis: json!({"gate": {"passed": true}}),
            summary: "deep is better than shallow on four games".into(),
            limitations: vec!["four games".into()],
            machine_id: self.run.machine_id.clone(),
            origin: Origin::Own,
            recorded_at: at,
        }
    }
}

fn curve_chunk(run: &RunId, chunk: u32) -> Chunk {
    Chunk {
        run_id: run.clone(),
        arm: "main".into(),
        attempt: 0,
        chunk,
        moves_total: u64::from(chunk) * 1000,
        figures: json!({"games_total": chunk * 20, "mean_abs_delta": 0.5}),
    }
}

fn curve_point(run: &RunId, point: u32) -> Point {
    Point {
        run_id: run.clone(),
        arm: "main".into(),
        attempt: 0,
        point,
        moves: u64::from(point) * 1000,
        margin: f64::from(point) * 10.5,
        is_best: true,
        figures: json!({"games": 4}),
    }
}

/// The lease of the block `screen`.
pub(crate) fn held_out(frozen: &Frozen) -> &Lease {
    frozen.leases.iter().find(|lease| lease.name == "screen").unwrap()
}

/// A protocol with two fair arms on a drawn block of `games` seeds, named `screen`.
pub(crate) fn protocol(title: &str, games: u32) -> Protocol {
    let arm = |name: &str, depth| ScreenArm {
        name: name.into(),
        player: PlayerSpec::Search { search: SearchSpec { depth, strata: 1 }, leaf: "fair".into() },
    };
    Protocol {
        format: FORMAT.into(),
        kind: Kind::Tables,
        title: title.into(),
        hypothesis: "Two plies see more than one.".into(),
        theory: TheoryRef::New(TheoryDraft {
            title: "depth".into(),
            claim: "deeper is better".into(),
            mechanism: "it sees more".into(),
            falsification_criteria: vec!["it is not".into()],
        }),
        amends: None,
        tier: Tier::Pilot,
        information: Information::PublicPolicy,
        engine: "drop7-1".into(),
        budget: Budget { threads: 1, memory_bytes: 1 << 30, wall_seconds: 600 },
        seeds: BTreeMap::from([("screen".into(), block(Role::HeldOut, None, games))]),
        checks: Checks::Quick,
        train: Vec::new(),
        select: None,
        main: None,
        tables: Vec::new(),
        edits: Vec::new(),
        screen: Screen {
            seeds: "screen".into(),
            move_cap: 50,
            arms: vec![arm("shallow", 1), arm("deep", 2)],
        },
        gate: Gate { contrast: ["deep".into(), "shallow".into()], criteria: Vec::new() },
        readings: Vec::new(),
    }
}

/// A block of seeds, pinned or not.
pub(crate) fn block(role: Role, start: Option<u32>, count: u32) -> SeedBlock {
    SeedBlock { role, start: start.map(Seed), count }
}

/// A protocol as the application hands it to the store.
pub(crate) fn new_experiment(protocol: Protocol) -> NewExperiment {
    let canonical = serde_json_canonicalizer::to_vec(&protocol).unwrap();
    NewExperiment {
        sha256: hex::encode(Sha256::digest(&canonical)),
        canonical,
        protocol,
        engine: ENGINE.into(),
        predecessor: None,
        origin: Origin::Own,
        id: None,
    }
}

/// A table as the archive would describe it.
pub(crate) fn table(digit: char, run: Option<&RunId>) -> Artifact {
    Artifact {
        sha256: String::from(digit).repeat(64),
        bytes: 10,
        stored_sha256: "e".repeat(64),
        stored_bytes: 5,
        kind: "table".into(),
        run_id: run.cloned(),
        name: "candidate".into(),
        created_at: "2026-12-01T00:00:00Z".parse().unwrap(),
    }
}

/// The kinds of all events, in order.
pub(crate) async fn kinds(store: &Store) -> Vec<String> {
    let events = store.events(0, 1000, None).await.unwrap();
    events.into_iter().map(|event| event.kind).collect()
}
