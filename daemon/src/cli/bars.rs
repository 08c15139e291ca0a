//! What a long run shows while it works: bars on a terminal, plain lines elsewhere. Nothing that
//! ends within two seconds shows a bar.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::out;
use crate::app::UnitProgress;
use crate::domain::records::{Unit, WorkState};
use crate::exec::wording::thousands;

/// Shorter work shows nothing.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a plain line is written for work that goes on.
const LINE_EVERY: Duration = Duration::from_secs(15);

/// The display of one run.
#[derive(Debug)]
pub(super) struct Display {
    bars: Option<MultiProgress>,
    units: HashMap<String, Shown>,
    ended: HashMap<String, u32>,
}

#[derive(Debug)]
struct Shown {
    since: Instant,
    bar: Option<ProgressBar>,
    line_at: Instant,
    first: u64,
}

/// What a unit counts.
pub(super) fn measure(key: &str) -> &'static str {
    if key.starts_with("train/") {
        "moves"
    } else if key.starts_with("screen/") {
        "games"
    } else if key == "gates" {
        "checks"
    } else {
        "steps"
    }
}

impl Display {
    pub(super) fn new() -> Self {
        let bars = io::stderr()
            .is_terminal()
            .then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(8)));
        Self { bars, units: HashMap::new(), ended: HashMap::new() }
    }

    /// Writes a line above the bars.
    pub(super) fn line(&self, text: &str) {
        match &self.bars {
            Some(bars) => bars.suspend(|| out::note(text)),
            None => out::note(text),
        }
    }

    /// Shows how far the units at work are.
    pub(super) fn update(&mut self, progress: &[UnitProgress]) {
        for unit in progress {
            let now = Instant::now();
            let shown = self.units.entry(unit.key.clone()).or_insert_with(|| Shown {
                since: now,
                bar: None,
                line_at: now,
                first: unit.done,
            });
            let is_long = now.duration_since(shown.since) >= PATIENCE;
            if let Some(bars) = &self.bars {
                if is_long && shown.bar.is_none() {
                    let bar = bars.add(ProgressBar::new(unit.total).with_style(style(unit)));
                    bar.set_message(unit.key.clone());
                    bar.set_position(shown.first);
                    bar.reset_eta();
                    shown.bar = Some(bar);
                }
                if let Some(bar) = &shown.bar {
                    bar.set_position(unit.done);
                }
            } else if is_long && now.duration_since(shown.line_at) >= LINE_EVERY {
                shown.line_at = now;
                let of = if unit.total > 1 {
                    format!(" of {}", thousands(unit.total as f64))
                } else {
                    String::new()
                };
                let done = thousands(unit.done as f64);
                out::note(&format!("  {:<28} {done}{of} {}", unit.key, measure(&unit.key)));
            }
        }
    }

    /// Says what has ended since the last time.
    pub(super) fn ended(&mut self, units: &[Unit], describe: impl Fn(&Unit) -> String) {
        for unit in units {
            if matches!(unit.state, WorkState::Pending | WorkState::Running)
                || self.ended.get(&unit.key) == Some(&unit.attempt)
            {
                continue;
            }
            self.ended.insert(unit.key.clone(), unit.attempt);
            if let Some(shown) = self.units.remove(&unit.key)
                && let Some(bar) = shown.bar
            {
                bar.finish_and_clear();
            }
            self.line(&describe(unit));
        }
    }

    /// Notes units that ended before this display began, without a word.
    pub(super) fn skip(&mut self, units: &[Unit]) {
        for unit in units.iter().filter(|unit| unit.state == WorkState::Succeeded) {
            self.ended.insert(unit.key.clone(), unit.attempt);
        }
    }

    /// Removes every bar.
    pub(super) fn clear(&self) {
        if let Some(bars) = &self.bars {
            let _ = bars.clear();
        }
    }
}

fn style(unit: &UnitProgress) -> ProgressStyle {
    let measure = measure(&unit.key);
    let template = if unit.total > 1 {
        format!(
            "  {{msg:28}} [{{bar:30}}] {{human_pos}}/{{human_len}} {measure} {{per_sec}} eta {{eta}}"
        )
    } else {
        format!("  {{msg:28}} {{spinner}} {{human_pos}} {measure} in {{elapsed}}")
    };
    ProgressStyle::with_template(&template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}
