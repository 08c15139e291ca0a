//! Training an arm, or the long run: chunks, validation points, checkpoints, the best point.
//!
//! Promised: the budget is a total over all sessions; a stop leaves a whole checkpoint at a game
//! boundary (in lockstep: of every game in flight), and a kill costs at most the work since the last
//! one; a point is in the checkpoint before it is in the database, so a stored point is never played
//! again. With one thread, or in lockstep, a resumed arm ends with the bits of an undisturbed one.

mod curve;
mod job;
mod point;

pub use curve::{FrozenPoint, StopReason, TrainOutput, curve};
pub use job::seed_block;
pub use point::{FairControl, PointFigures, Series};

use std::sync::Arc;
use std::time::Instant;

use engine_core::ntuple::TrainTables;
use engine_core::ntuple::promote::warm_start;
use engine_core::train::checkpoint::{Checkpoints, Found};
use engine_core::train::plateau;
use engine_core::train::schedule::Every;
use engine_core::train::{ChunkReport, Trainer};
use serde_json::{Map, Value, json};

use self::curve::Curve;
use self::job::{Job, Keep};
use super::unit::{Ending, Report, UnitContext, UnitResult, output, seconds};
use crate::domain::protocol::Validate;
use crate::domain::records::{Chunk, Point};

/// One training unit at work.
struct Session<'a> {
    context: &'a UnitContext,
    job: Job<'a>,
    trainer: Trainer,
    checkpoints: Checkpoints,
    curve: Curve,
    started: Instant,
    /// Wall seconds of earlier sessions.
    before: f64,
}

/// Trains the arm of this unit to its end, or to a stop.
pub(super) fn run(context: &UnitContext) -> UnitResult {
    Session::open(context)?.work()
}

impl<'a> Session<'a> {
    fn open(context: &'a UnitContext) -> Result<Self, Ending> {
        let job = Job::of(context)?;
        let config = job.config(context)?;
        let folder = context.work.join(context.key.replace('/', "-"));
        let mut checkpoints = Checkpoints::open(folder).map_err(failed("checkpoint folder"))?;
        let Found { restored, rejected } =
            checkpoints.load::<Curve>(&config).map_err(failed("checkpoint"))?;
        for set in &rejected {
            tracing::warn!(run = %context.run, unit = context.key, set.sequence, set.reason,
                "a checkpoint does not verify");
        }
        let (tables, state, curve) = match restored {
            Some(set) => (set.tables, set.state, set.curve),
            None if rejected.is_empty() => {
                let schedule = Every::after(0, job.validate.every_moves);
                (
                    job.fresh_tables(context)?,
                    engine_core::train::TrainState::default(),
                    Curve::new(schedule),
                )
            }
            None => {
                return Err(Ending::Failed(format!(
                    "every checkpoint of {} is damaged; starting over would train twice under one \
                     budget",
                    context.key
                )));
            }
        };
        context.counter.set(state.moves);
        context.counter.at_boundary(state.moves);
        let trainer = Trainer::new(config, Arc::new(tables))
            .and_then(|trainer| trainer.resume(state))
            .map_err(failed("trainer"))?;
        let before = curve.wall_seconds;
        Ok(Self { context, job, trainer, checkpoints, curve, started: Instant::now(), before })
    }

    fn work(mut self) -> UnitResult {
        self.report_points()?;
        loop {
            if self.is_point_due() {
                self.make_point()?;
            }
            if self.curve.plateau.is_some_and(|reading| reading.stop) {
                return self.end(StopReason::Plateau);
            }
            let moves = self.trainer.state().moves;
            if moves >= self.job.moves && self.trainer.state().open.is_none() {
                return self.end(StopReason::Moves);
            }
            if self.context.stop.is_requested() {
                return self.pause();
            }
            let wanted = self.job.chunk_moves.min(self.job.moves.saturating_sub(moves));
            let begun = Instant::now();
            let report =
                self.trainer.advance(wanted, &*self.context.counter, self.context.stop.token());
            if report.stopped {
                return self.pause();
            }
            self.context.counter.set(report.moves_total);
            self.context.counter.at_boundary(report.moves_total);
            self.report_chunk(&report, seconds(begun.elapsed()))?;
        }
    }

    fn wall(&self) -> f64 {
        self.before + seconds(self.started.elapsed())
    }

    fn is_point_due(&self) -> bool {
        let state = self.trainer.state();
        let last = self.curve.points.last().map_or(0, |point| point.moves);
        if state.open.is_some() || state.moves <= last {
            return false;
        }
        let mut schedule = self.curve.schedule;
        let is_last_chance = state.moves >= self.job.moves && self.curve.points.is_empty();
        schedule.is_due(state.moves) || is_last_chance || self.context.counter.take_request()
    }

    /// Plays a point, freezes the tables when it is the one to keep, writes the checkpoint, and only
    /// then reports.
    fn make_point(&mut self) -> Result<(), Ending> {
        let moves = self.trainer.state().moves;
        let frozen =
            Arc::new(self.trainer.tables().freeze().map_err(failed("copying the tables"))?);
        let touched = self.trainer.tables().touched();
        let validate: &'a Validate = self.job.validate;
        let begun = Instant::now();
        let Some(mut figures) = point::play(self.context, &self.job, &frozen, touched)? else {
            return Err(self.pause().err().unwrap_or(Ending::Stopped));
        };
        figures.wall_seconds = seconds(begun.elapsed());
        let margin = figures.margin();
        let number = self.curve.points.len() as u32 + 1;
        let is_best = self.curve.best.is_none_or(|best| margin > best);
        let is_kept = match self.job.keep {
            Keep::Best => is_best,
            Keep::Last => true,
            Keep::Nothing => false,
        };
        if is_kept {
            let name = format!("{}@{moves}", self.job.name);
            let artifact =
                self.context.archive.publish("table", &name, Some(&self.context.run), |out| {
                    engine_core::ntuple::file::write_weights(&*frozen, out).map(|_| ())
                })?;
            self.curve.kept =
                Some(FrozenPoint { point: number, moves, margin, sha256: artifact.sha256.clone() });
            self.context.report(Report::Artifact(self.context.token.clone(), artifact))?;
        }
        if is_best {
            self.curve.best = Some(margin);
        }
        let mut margins: Vec<f64> = self.curve.points.iter().map(|point| point.margin).collect();
        margins.push(margin);
        if let Some(rule) = self.job.stop.plateau {
            self.curve.plateau =
                plateau::evaluate(&margins, rule.window as usize, rule.min_points as usize);
            figures.plateau = self.curve.plateau;
        }
        let _ = self.curve.schedule.is_due(moves);
        let lease = self.context.lease(&validate.seeds)?.clone();
        self.curve.points.push(Point {
            run_id: self.context.run.clone(),
            arm: self.job.name.clone(),
            attempt: self.context.token.attempt,
            point: number,
            moves,
            margin,
            is_best,
            figures: output(&figures)?,
        });
        let ends =
            moves >= self.job.moves || self.curve.plateau.is_some_and(|reading| reading.stop);
        if !ends {
            self.save()?;
        }
        self.context.report(Report::Reading {
            token: self.context.token.clone(),
            lease,
            cursor: u64::from(validate.games),
            wraps: u64::from(number) - 1,
        })?;
        self.report_points()
    }

    /// Hands over the points that are not stored yet: the newest, or one whose checkpoint was
    /// written just before a kill.
    fn report_points(&mut self) -> Result<(), Ending> {
        let stored = |point: &Point| {
            self.context.status.points.iter().any(|known| {
                known.arm == point.arm && known.point == point.point && known.moves == point.moves
            })
        };
        for point in self.curve.points.iter().skip(self.curve.reported) {
            if !stored(point) {
                let mut point = point.clone();
                point.attempt = self.context.token.attempt;
                self.context.report(Report::Point(self.context.token.clone(), point))?;
            }
        }
        self.curve.reported = self.curve.points.len();
        Ok(())
    }

    fn report_chunk(&self, report: &ChunkReport, chunk_seconds: f64) -> Result<(), Ending> {
        let mut figures = Map::new();
        for (name, text) in report.figures() {
            let number = serde_json::from_str::<Value>(&text).unwrap_or(Value::String(text));
            figures.insert(name.to_owned(), number);
        }
        figures.insert("wallSeconds".into(), json!(self.wall()));
        figures.insert("chunkSeconds".into(), json!(chunk_seconds));
        let rate =
            if chunk_seconds > 0.0 { report.tally.moves as f64 / chunk_seconds } else { 0.0 };
        figures.insert("movesPerSecond".into(), json!(rate));
        figures.insert("workers".into(), json!(report.workers));
        if let Some(games) = self.job.arm.lockstep_games {
            figures.insert("lockstepGames".into(), json!(games));
        }
        self.context.report(Report::Chunk(
            self.context.token.clone(),
            Chunk {
                run_id: self.context.run.clone(),
                arm: self.job.name.clone(),
                attempt: self.context.token.attempt,
                chunk: u32::try_from(report.chunk).unwrap_or(u32::MAX),
                moves_total: report.moves_total,
                figures: Value::Object(figures),
            },
        ))?;
        self.context.report(Report::Reading {
            token: self.context.token.clone(),
            lease: self.context.lease(&self.job.arm.seeds)?.clone(),
            cursor: report.seed_cursor,
            wraps: report.seed_wraps,
        })
    }

    fn save(&mut self) -> Result<(), Ending> {
        self.curve.wall_seconds = self.wall();
        self.checkpoints
            .save(self.trainer.tables(), self.trainer.config(), self.trainer.state(), &self.curve)
            .map(|_| ())
            .map_err(failed("checkpoint"))
    }

    fn pause(&mut self) -> UnitResult {
        self.save()?;
        Err(Ending::Stopped)
    }

    fn end(self, stop: StopReason) -> UnitResult {
        let state = self.trainer.state();
        let config = self.trainer.config();
        output(&TrainOutput {
            arm: self.job.arm.name.clone(),
            layout: config.layout.to_string(),
            entries: config.layout.entries(),
            touched: self.trainer.tables().touched(),
            moves: state.moves,
            games: state.games,
            seed_wraps: state.cursor / u64::from(config.seeds.count),
            points: self.curve.points.len() as u32,
            stop,
            plateau: self.curve.plateau,
            table: self.curve.kept.clone(),
            threads: config.threads,
            parallel: config.parallel,
            wall_seconds: self.wall(),
        })
    }
}

impl Job<'_> {
    fn fresh_tables(&self, context: &UnitContext) -> Result<TrainTables, Ending> {
        let layout = self.layout()?;
        let optimistic = self.arm.optimistic_rises as f32;
        let Some(name) = &self.arm.init_from else {
            return TrainTables::fresh(layout, optimistic).map_err(failed("tables"));
        };
        let prior = context
            .protocol
            .tables
            .iter()
            .find(|table| table.name == *name)
            .ok_or_else(|| Ending::Failed(format!("no table {name:?} to start from")))?;
        let source = context.tables.get(&prior.sha256)?;
        warm_start(&source, layout, optimistic).map_err(failed("warm start"))
    }
}

fn failed<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> Ending {
    move |error| Ending::Failed(format!("{what}: {error}"))
}
