//! Taking published runs over: theory, experiment, leases, games, points and result, all marked as
//! imported.
//!
//! Promised: ids, seeds, scores, moves and figures are those of the publication; held-out blocks count
//! as opened by their own run and can never be leased again. What the publication does not hold is
//! absent or says so: the frozen text of the protocol is not published, so the stored one holds the
//! screen, the tables by digest and the gate, and says that it was put together from the record.
//! Refused: a verdict on games that were not published. Such a result is stored as partial, with the
//! published words beside it.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use engine_core::stats::Criterion;
use fs_err as fs;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::App;
use crate::domain::canonical;
use crate::domain::ids::{ExperimentId, LeaseId, MachineId, ResultId, RunId, TheoryId};
use crate::domain::protocol::{
    Budget, Checks, FORMAT, Gate, Information, Kind, PlayerSpec, PriorTable, Protocol, Role,
    Screen, ScreenArm, SearchSpec, SeedBlock, TheoryRef, Tier,
};
use crate::domain::records::{
    Experiment, GameRecord, Lease, LeaseState, Machine, Opening, Origin, Outcome, Point,
    ResultRecord, Run, RunState, TableDigest, Theory, Validity,
};
use crate::domain::refusal::{Code, Refusal};
use crate::domain::seed_range::Seed;
use crate::exec::wording::thousands;
use crate::store::RunImport;

/// Format word of the files this can read.
const TRANSCRIPTION: &str = "transcription-of-public-record-v1";
/// The engine of imported runs: not ours, so nothing here can continue them.
const ENGINE: &str = "drop7-bench";
/// The machine of the published runs.
const MACHINE: &str = "MACH-20260905T000000Z-00000000";

/// What became of one published run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Imported {
    /// The run.
    pub run_id: RunId,
    /// Title of its experiment.
    pub title: String,
    /// Games that were published with it.
    pub games: u64,
    /// False when it was on record already.
    pub created: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Published {
    format: String,
    origin: String,
    run_id: RunId,
    experiment_id: ExperimentId,
    theory_id: TheoryId,
    result_id: ResultId,
    leases: BTreeMap<String, String>,
    screen: PublishedScreen,
    #[serde(default)]
    freeze: BTreeMap<String, String>,
    pilot: Option<PublishedArms>,
    main: Option<PublishedCurve>,
    #[serde(default)]
    rusage: Vec<Usage>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishedScreen {
    config: ScreenConfig,
    seed_start_hex: Seed,
    arms: BTreeMap<String, PublishedArm>,
    contrasts: BTreeMap<String, PublishedContrast>,
    primary_contrast: String,
    gate: PublishedGate,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScreenConfig {
    games: u32,
    move_cap: u32,
    arms: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishedArm {
    per_game: Option<Vec<PublishedGame>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishedGame {
    seed_hex: Seed,
    score: i64,
    moves: u32,
    censored: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishedContrast {
    candidate_arm: String,
    reference_arm: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishedGate {
    all_passed: bool,
}

#[derive(Debug, Deserialize)]
struct PublishedArms {
    arms: BTreeMap<String, PublishedCurve>,
}

#[derive(Debug, Deserialize)]
struct PublishedCurve {
    #[serde(default)]
    validations: Vec<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    started_at: Timestamp,
    ended_at: Timestamp,
}

impl App {
    /// Takes over every published run of a folder (`RUN-*.json`). Runs that are on record already are
    /// left alone.
    ///
    /// # Errors
    /// When the folder cannot be read, a file is not a published run, or its seeds are leased here.
    pub async fn import_published(&self, folder: &Path) -> Result<Vec<Imported>, Refusal> {
        self.refuse_when_stopping()?;
        let unreadable = |error: std::io::Error| {
            Refusal::new(Code::NotFound, format!("published runs cannot be read: {error}"))
        };
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with("RUN-") && path.extension().is_some_and(|ending| ending == "json") {
                files.push(path);
            }
        }
        files.sort();
        let mut imported = Vec::new();
        for file in files {
            let bytes = fs::read(&file).map_err(unreadable)?;
            let malformed = |error: &dyn std::fmt::Display| {
                Refusal::new(
                    Code::MalformedDocument,
                    format!("{} is not a published run: {error}", file.display()),
                )
            };
            let value: Value = serde_json::from_slice(&bytes).map_err(|error| malformed(&error))?;
            let published = Published::deserialize(&value).map_err(|error| malformed(&error))?;
            if published.format != TRANSCRIPTION {
                return Err(malformed(&format!("its format is {:?}", published.format)));
            }
            let import = published.records(value, self.config().clock.now())?;
            let created = self.store().import_run(&import).await?;
            imported.push(Imported {
                run_id: import.run.id,
                title: import.experiment.title,
                games: import.games.len() as u64,
                created,
            });
        }
        if imported.is_empty() {
            return Err(Refusal::new(
                Code::NotFound,
                format!("{} holds no file called RUN-….json", folder.display()),
            ));
        }
        Ok(imported)
    }
}

fn contradiction(detail: impl Into<String>) -> Refusal {
    Refusal::new(Code::MalformedDocument, detail)
}

fn fixed<T: FromStr<Err = crate::domain::ids::IdError>>(id: &str) -> Result<T, Refusal> {
    id.parse().map_err(|error| contradiction(format!("{error}")))
}

/// The words of an id's slug, as a title.
fn words(id: &str) -> String {
    let mut parts: Vec<&str> = id.split('-').skip(2).collect();
    parts.pop();
    let mut title = parts.join(" ");
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    title
}

impl Published {
    fn records(&self, whole: Value, now: Timestamp) -> Result<RunImport, Refusal> {
        let started = self.rusage.iter().map(|usage| usage.started_at).min();
        let ended = self.rusage.iter().map(|usage| usage.ended_at).max();
        let (Some(started), Some(ended)) = (started, ended) else {
            return Err(contradiction(format!("{} does not say when it ran", self.run_id)));
        };
        let protocol = self.protocol()?;
        let bytes = canonical::to_bytes(&protocol)?;
        let sha256 = canonical::sha256_hex(&bytes);
        let games = self.games()?;
        let is_complete = !games.is_empty();
        let title = protocol.title.clone();
        let machine = fixed::<MachineId>(MACHINE)?;
        let validity = if is_complete { Validity::Valid } else { Validity::Partial };
        Ok(RunImport {
            theory: Theory {
                id: self.theory_id.clone(),
                title: words(self.theory_id.as_str()),
                claim: format!("Not transcribed; see the record {} of the origin.", self.theory_id),
                mechanism: String::from("Not transcribed."),
                falsification_criteria: Vec::new(),
                origin: Origin::Imported,
                created_at: now,
            },
            experiment: Experiment {
                id: self.experiment_id.clone(),
                theory_id: self.theory_id.clone(),
                title,
                kind: String::from("tables"),
                tier: String::from("screen"),
                protocol_sha256: sha256.clone(),
                predecessor: None,
                predecessor_reason: None,
                predecessor_was_open: None,
                engine: ENGINE.to_owned(),
                origin: Origin::Imported,
                frozen_at: started,
                withdrawn_at: None,
                withdrawn_reason: None,
            },
            protocol: bytes,
            leases: self.leases(&sha256, started)?,
            machine: machine_profile(machine.clone(), now),
            run: Run {
                id: self.run_id.clone(),
                experiment_id: self.experiment_id.clone(),
                protocol_sha256: sha256.clone(),
                state: RunState::Completed,
                validity,
                reason: Some(if is_complete {
                    format!("imported from {}", self.origin)
                } else {
                    format!("imported from {}; its games are not published", self.origin)
                }),
                engine: ENGINE.to_owned(),
                build: String::from("not transcribed"),
                machine_id: machine.clone(),
                origin: Origin::Imported,
                created_at: started,
                started_at: Some(started),
                ended_at: Some(ended),
            },
            screen: (String::from("screen"), self.arms(is_complete)),
            points: self.points()?,
            chunks: Vec::new(),
            result: Some(self.result(whole, sha256, machine, ended, is_complete)?),
            games,
        })
    }

    fn primary(&self) -> Result<&PublishedContrast, Refusal> {
        self.screen.contrasts.get(&self.screen.primary_contrast).ok_or_else(|| {
            contradiction(format!("the contrast {} is not published", self.screen.primary_contrast))
        })
    }

    /// Arms whose games are here; without games there is nothing to plan.
    fn arms(&self, is_complete: bool) -> Vec<(String, u32)> {
        let arms = self.screen.config.arms.iter();
        let planned = arms.map(|arm| (arm.clone(), self.screen.config.games));
        if is_complete { planned.collect() } else { Vec::new() }
    }

    fn tables(&self) -> Vec<TableDigest> {
        self.freeze
            .iter()
            .filter_map(|(name, sha256)| {
                let name = name.strip_suffix("Sha256")?.to_owned();
                Some(TableDigest { name, sha256: sha256.clone() })
            })
            .collect()
    }

    /// The part of the protocol that the record shows.
    fn protocol(&self) -> Result<Protocol, Refusal> {
        let primary = self.primary()?;
        let mut seeds = BTreeMap::new();
        for lease in self.leases("", Timestamp::UNIX_EPOCH)? {
            let block =
                SeedBlock { role: lease.role, start: Some(lease.start), count: lease.count };
            seeds.insert(lease.name, block);
        }
        let arms = &self.screen.config.arms;
        Ok(Protocol {
            format: FORMAT.to_owned(),
            kind: Kind::Tables,
            title: words(self.experiment_id.as_str()),
            hypothesis: String::from(
                "Put together from the published record: screen, tables by digest, gate. The frozen \
                 text of the origin is not published with it.",
            ),
            theory: TheoryRef::Known(self.theory_id.clone()),
            amends: None,
            tier: Tier::Screen,
            information: Information::PublicPolicy,
            engine: ENGINE.to_owned(),
            budget: Budget { threads: 32, memory_bytes: 32 << 30, wall_seconds: 43_200 },
            seeds,
            checks: Checks::Full,
            train: Vec::new(),
            select: None,
            main: None,
            tables: self
                .tables()
                .into_iter()
                .map(|table| PriorTable { name: table.name, sha256: table.sha256 })
                .collect(),
            edits: Vec::new(),
            screen: Screen {
                seeds: String::from("screen"),
                move_cap: self.screen.config.move_cap,
                arms: arms.iter().map(|name| arm(name)).collect::<Result<Vec<_>, _>>()?,
            },
            gate: Gate {
                contrast: [primary.candidate_arm.clone(), primary.reference_arm.clone()],
                criteria: vec![
                    Criterion::NoIllegalOrIncomplete,
                    Criterion::BootstrapLowerAboveZero,
                    Criterion::StudentLowerAboveZero,
                    Criterion::BothHalvesPositive,
                    Criterion::LowerQuartileNotWorse,
                ],
            },
            readings: Vec::new(),
        })
    }

    /// `SL-… [0xa5300000,0xa54f0000)` per role.
    fn leases(&self, protocol_sha256: &str, at: Timestamp) -> Result<Vec<Lease>, Refusal> {
        let mut leases = Vec::new();
        for (name, text) in &self.leases {
            let malformed =
                || contradiction(format!("lease {name}: {text:?} is not an id and a range"));
            let (id, range) = text.split_once(' ').ok_or_else(malformed)?;
            let (start, end) = range
                .strip_prefix('[')
                .and_then(|range| range.strip_suffix(')'))
                .and_then(|range| range.split_once(','))
                .ok_or_else(malformed)?;
            let start: Seed = start.trim().parse().map_err(|_| malformed())?;
            let end: Seed = end.trim().parse().map_err(|_| malformed())?;
            let role = match name.as_str() {
                "training" => Role::Training,
                "validation" => Role::Validation,
                "screen" => Role::HeldOut,
                _ => return Err(contradiction(format!("lease {name} has no known role"))),
            };
            let opening = (role == Role::HeldOut).then(|| Opening {
                run_id: self.run_id.clone(),
                protocol_sha256: protocol_sha256.to_owned(),
                tables: self.tables(),
                opened_at: at,
            });
            leases.push(Lease {
                id: fixed::<LeaseId>(id)?,
                experiment_id: self.experiment_id.clone(),
                name: name.clone(),
                space: String::from("drop7-headless-u32"),
                domain: String::from("environment"),
                role,
                start,
                count: end
                    .0
                    .checked_sub(start.0)
                    .filter(|&count| count > 0)
                    .ok_or_else(malformed)?,
                state: LeaseState::Opened,
                reserved_at: at,
                opening,
            });
        }
        Ok(leases)
    }

    fn games(&self) -> Result<Vec<GameRecord>, Refusal> {
        let start = self.screen.seed_start_hex.0;
        let mut games = Vec::new();
        for name in &self.screen.config.arms {
            let arm = self.screen.arms.get(name).ok_or_else(|| {
                contradiction(format!("arm {name} is announced and not published"))
            })?;
            for (ordinal, game) in (0_u32..).zip(arm.per_game.iter().flatten()) {
                if start.checked_add(ordinal) != Some(game.seed_hex.0) {
                    return Err(contradiction(format!(
                        "game {ordinal} of {name} has seed {}, the block begins at {}",
                        game.seed_hex, self.screen.seed_start_hex
                    )));
                }
                games.push(GameRecord {
                    arm: name.clone(),
                    ordinal,
                    seed_hex: game.seed_hex,
                    score: game.score,
                    moves: game.moves,
                    numbered_cleared: None,
                    covers_revealed: None,
                    max_chain_depth: None,
                    occupied_sum: None,
                    mean_occupied_cells: None,
                    clears: None,
                    censored: game.censored,
                    illegal_decisions: 0,
                    incomplete_decisions: 0,
                    work: None,
                    wall_seconds: None,
                });
            }
        }
        Ok(games)
    }

    fn points(&self) -> Result<Vec<Point>, Refusal> {
        let pilots = self.pilot.iter().flat_map(|pilot| &pilot.arms);
        let curves = pilots
            .map(|(name, curve)| (name.as_str(), curve))
            .chain(self.main.iter().map(|main| ("main", main)));
        let mut points = Vec::new();
        for (arm, curve) in curves {
            let mut best = f64::NEG_INFINITY;
            for (number, figures) in (1_u32..).zip(&curve.validations) {
                let field = |name: &str| {
                    figures.get(name).cloned().ok_or_else(|| {
                        contradiction(format!("point {number} of {arm} does not say {name}"))
                    })
                };
                let margin = field("pairedDeltaD3")?.as_f64().unwrap_or(f64::NAN);
                let is_best = margin > best;
                best = best.max(margin);
                points.push(Point {
                    run_id: self.run_id.clone(),
                    arm: arm.to_owned(),
                    attempt: 0,
                    point: number,
                    moves: field("movesTrained")?.as_u64().unwrap_or_default(),
                    margin,
                    is_best,
                    figures: Value::Object(figures.clone()),
                });
            }
        }
        Ok(points)
    }

    fn result(
        &self,
        whole: Value,
        protocol_sha256: String,
        machine_id: MachineId,
        recorded_at: Timestamp,
        is_complete: bool,
    ) -> Result<ResultRecord, Refusal> {
        let passed = self.screen.gate.all_passed;
        let primary = self.primary()?;
        let figure = |path: &str| {
            let pointer =
                format!("/screen/contrasts/{}/score/{path}", self.screen.primary_contrast);
            whole.pointer(&pointer).and_then(Value::as_f64).unwrap_or(f64::NAN)
        };
        let word = if passed { "passed" } else { "failed" };
        let summary = format!(
            "Imported: {} scored {} points more per game than {} over {} games (published 95 % lower \
             bounds {} and {}), and the published gate {word}{}.",
            primary.candidate_arm,
            thousands(figure("meanDelta")),
            primary.reference_arm,
            self.screen.config.games,
            thousands(figure("bootstrapLower95")),
            thousands(figure("studentTLower95")),
            if is_complete {
                ""
            } else {
                "; its games are not published, so nothing is judged here"
            },
        );
        let mut limitations = vec![
            String::from("Taken over from a published record; nothing of it was computed here."),
            String::from(
                "The tables are not stored here, so only arms without tables can be replayed.",
            ),
        ];
        if !is_complete {
            limitations.push(format!(
                "Published as valid and {word}. Without its games it is partial here, whatever it was there."
            ));
        }
        let outcome = match (is_complete, passed) {
            (false, _) => Outcome::NotApplicable,
            (true, true) => Outcome::Pass,
            (true, false) => Outcome::Fail,
        };
        Ok(ResultRecord {
            id: self.result_id.clone(),
            run_id: self.run_id.clone(),
            experiment_id: self.experiment_id.clone(),
            protocol_sha256,
            validity: if is_complete { Validity::Valid } else { Validity::Partial },
            outcome,
            tier: String::from("screen"),
            analysis: without_games(whole),
            summary,
            limitations,
            machine_id,
            origin: Origin::Imported,
            recorded_at,
        })
    }
}

/// The published document without its rows, which are rows here.
fn without_games(mut whole: Value) -> Value {
    if let Some(arms) = whole.pointer_mut("/screen/arms").and_then(Value::as_object_mut) {
        for arm in arms.values_mut().filter_map(Value::as_object_mut) {
            arm.remove("perGame");
        }
    }
    whole
}

/// `prior-d3s7`, `prior-1ply`, `fair-d4s7`.
fn arm(name: &str) -> Result<ScreenArm, Refusal> {
    let unknown = || contradiction(format!("arm {name:?} does not say who plays"));
    let (table, player) = name.rsplit_once('-').ok_or_else(unknown)?;
    let player = match player {
        "1ply" => PlayerSpec::Direct { table: table.to_owned() },
        search => {
            let (depth, strata) = search
                .strip_prefix('d')
                .and_then(|search| search.split_once('s'))
                .ok_or_else(unknown)?;
            let number = |text: &str| text.parse::<u32>().map_err(|_| unknown());
            let search = SearchSpec { depth: number(depth)?, strata: number(strata)? };
            PlayerSpec::Search { search, leaf: table.to_owned() }
        }
    };
    Ok(ScreenArm { name: name.to_owned(), player })
}

fn machine_profile(id: MachineId, captured_at: Timestamp) -> Machine {
    Machine {
        id,
        profile: json!({
            "cpu": { "model": "Ryzen AI MAX+ 395", "physicalCores": 16, "logicalCpus": 32, "governor": "powersave" },
            "memory": { "totalBytes": 134_000_000_000_u64, "swapTotalBytes": 0 },
            "notes": ["the workstation of the published runs, as their records describe it; not captured here"],
        }),
        captured_at,
    }
}
