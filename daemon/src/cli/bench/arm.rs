//! Arms: one kind of work each, timed in slices that take turns.
//!
//! A shared machine drifts more between minutes than arms differ, so every round runs one slice of
//! every arm, and a figure is the median over the rounds.

use std::time::Duration;

use indicatif::ProgressBar;
use serde::Serialize;

use super::clock::{FULL, Stopwatch, Taken};

/// What a figure says about the amount of work in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Per {
    /// Amount in a second; more is better.
    Second(&'static str),
    /// Nanoseconds of one; less is better.
    Nanoseconds(&'static str),
    /// Milliseconds of one; less is better.
    Milliseconds(&'static str),
}

impl Per {
    fn unit(self) -> String {
        match self {
            Self::Second(what) => format!("{what}/s"),
            Self::Nanoseconds(what) => format!("ns/{what}"),
            Self::Milliseconds(what) => format!("ms/{what}"),
        }
    }

    fn figure(self, amount: f64, seconds: f64) -> f64 {
        match self {
            Self::Second(_) => amount / seconds,
            Self::Nanoseconds(_) => 1e9 * seconds / amount,
            Self::Milliseconds(_) => 1e3 * seconds / amount,
        }
    }

    fn more_is_better(self) -> bool {
        matches!(self, Self::Second(_))
    }
}

/// One kind of work.
pub(super) struct Arm<'a> {
    name: String,
    per: Per,
    threads: usize,
    note: String,
    /// Does some of it and says how much.
    work: Box<dyn FnMut() -> u64 + 'a>,
    slices: Vec<Slice>,
}

#[derive(Debug, Clone, Copy)]
struct Slice {
    amount: f64,
    taken: Taken,
}

/// How often and how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    /// Slices of every arm, at least 1.
    pub(super) runs: usize,
    /// The least a slice takes.
    pub(super) slice: Duration,
}

/// One line of the output.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    /// What was measured, as a path.
    pub(super) name: String,
    /// Unit of the figures.
    pub(super) unit: String,
    /// Number of slices; one for what is counted.
    pub(super) runs: usize,
    /// The middle slice.
    pub(super) median: f64,
    /// The best slice.
    pub(super) fastest: f64,
    /// The worst slice.
    pub(super) slowest: f64,
    /// The share of a processor in the middle slice; absent for what is counted.
    pub(super) utilisation: Option<f64>,
    /// What else there is to say.
    pub(super) note: String,
}

impl Row {
    /// A figure that was counted or computed, not timed.
    pub(super) fn counted(name: String, unit: &str, figure: f64, note: String) -> Self {
        Self {
            name,
            unit: unit.to_owned(),
            runs: 1,
            median: figure,
            fastest: figure,
            slowest: figure,
            utilisation: None,
            note,
        }
    }
}

impl<'a> Arm<'a> {
    /// Work of one thread. `work` does some and says how much.
    pub(super) fn new(name: String, per: Per, work: impl FnMut() -> u64 + 'a) -> Self {
        let work = Box::new(work);
        Self { name, per, threads: 1, note: String::new(), work, slices: Vec::new() }
    }

    /// The same work is done by `threads` threads. A figure is then what they would do if each had a
    /// processor for itself; the note has what the wall clock says.
    pub(super) fn on(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Adds a remark.
    pub(super) fn noting(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    fn slice(&mut self, schedule: Schedule) {
        let stopwatch = Stopwatch::start(self.threads);
        let mut amount = 0;
        loop {
            amount += (self.work)();
            let taken = stopwatch.taken();
            if taken.wall >= schedule.slice.as_secs_f64() {
                self.slices.push(Slice { amount: amount as f64, taken });
                return;
            }
        }
    }

    fn row(self) -> Row {
        let figures = sorted(&self.slices, |s| self.per.figure(s.amount, s.taken.cpu));
        let utilisations = sorted(&self.slices, |slice| slice.taken.utilisation());
        let (first, last) = (figures[0], figures[figures.len() - 1]);
        let (fastest, slowest) =
            if self.per.more_is_better() { (last, first) } else { (first, last) };
        let mut notes = Vec::new();
        if self.threads > 1 {
            let walls = sorted(&self.slices, |s| self.per.figure(s.amount, s.taken.wall));
            notes.push(format!("wall clock {:.0} {}", middle(&walls), self.per.unit()));
        }
        let short = utilisations.iter().filter(|&&share| share < FULL).count();
        if short > 0 {
            notes.push(format!("{short} of {} below {FULL} of a processor", figures.len()));
        }
        notes.extend(Some(self.note).filter(|note| !note.is_empty()));
        Row {
            name: self.name,
            unit: self.per.unit(),
            runs: figures.len(),
            median: middle(&figures),
            fastest,
            slowest,
            utilisation: Some(middle(&utilisations)),
            note: notes.join("; "),
        }
    }
}

fn sorted(slices: &[Slice], figure: impl Fn(&Slice) -> f64) -> Vec<f64> {
    let mut figures: Vec<f64> = slices.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures
}

fn middle(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

/// Measures all arms, in turns; rows in the order of the arms.
pub(super) fn measure(mut arms: Vec<Arm<'_>>, schedule: Schedule, bar: &ProgressBar) -> Vec<Row> {
    for _ in 0..schedule.runs {
        for arm in &mut arms {
            bar.set_message(arm.name.clone());
            arm.slice(schedule);
        }
    }
    arms.into_iter().map(Arm::row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_slice_is_the_largest_rate_or_the_smallest_time() {
        let schedule = Schedule { runs: 3, slice: Duration::ZERO };
        let work = |mut amount: u64| {
            move || {
                amount *= 3;
                std::hint::black_box((0..20_000_u64).map(std::hint::black_box).sum::<u64>());
                amount
            }
        };
        let arms = vec![
            Arm::new(String::from("rate"), Per::Second("things"), work(1)),
            Arm::new(String::from("time"), Per::Nanoseconds("thing"), work(1)).on(2).noting("so"),
        ];
        let rows = measure(arms, schedule, &ProgressBar::hidden());
        assert!(rows[0].fastest >= rows[0].median && rows[0].median >= rows[0].slowest);
        assert!(rows[1].fastest <= rows[1].median && rows[1].median <= rows[1].slowest);
        assert_eq!((rows[0].unit.as_str(), rows[1].unit.as_str()), ("things/s", "ns/thing"));
        assert!(rows[1].note.starts_with("wall clock ") && rows[1].note.ends_with("so"));
    }
}
