//! The words of a verdict: one sentence that says no more than was tested, and what limits it.

use std::collections::BTreeSet;

use engine_core::stats::Outcome as GateOutcome;

use super::analyse::{Analysis, Contrast};
use crate::domain::protocol::{Protocol, Tier};
use crate::domain::records::{Outcome, Validity};

/// `1234567.8` as `1,234,568`.
pub fn thousands(value: f64) -> String {
    let rounded = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (position, digit) in rounded.chars().enumerate() {
        if position > 0 && (rounded.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 && rounded != "0" { format!("-{text}") } else { text }
}

/// The name of a tier in documents.
pub const fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Check => "check",
        Tier::Pilot => "pilot",
        Tier::Screen => "screen",
        Tier::Standard => "standard",
        Tier::Qualify => "qualify",
    }
}

/// One sentence for the reader who reads only one.
pub fn sentence(analysis: &Analysis) -> String {
    let Some(contrast) = analysis.gate_contrast() else {
        return String::from("The gate's contrast is missing from the analysis.");
    };
    let games = analysis.block.games;
    if analysis.validity() != Validity::Valid {
        return format!(
            "{} illegal or incomplete decisions void this run of {games} games per arm: its scores \
             are on record and judge nothing.",
            analysis.void_decisions()
        );
    }
    let (candidate, reference) = (&contrast.candidate, &contrast.reference);
    let direction = if contrast.score.mean_delta >= 0.0 { "more" } else { "fewer" };
    let delta = thousands(contrast.score.mean_delta.abs());
    let bounds = format!(
        "95 % lower bounds {} (bootstrap) and {} (Student)",
        thousands(contrast.score.bootstrap_lower95),
        thousands(contrast.score.student_t_lower95),
    );
    let found = format!(
        "On {games} held-out games that nobody had played before, {candidate} scored {delta} points \
         {direction} per game than {reference} ({bounds})"
    );
    match analysis.outcome() {
        Outcome::Pass => format!(
            "{found}, and every criterion of the gate holds: the hypothesis is supported as tested, \
             for these tables, this search and this block, and for nothing beyond them."
        ),
        _ => format!(
            "{found}, and {}: the hypothesis is not supported as tested{}.",
            missed(analysis),
            unseen(contrast)
        ),
    }
}

fn missed(analysis: &Analysis) -> String {
    let failed: Vec<&str> = analysis
        .gate
        .checks
        .iter()
        .filter(|check| !check.passed)
        .map(|check| check.criterion.name())
        .collect();
    match failed.as_slice() {
        [one] => format!("the criterion {one} does not hold"),
        many => format!("{} criteria do not hold ({})", many.len(), many.join(", ")),
    }
}

/// What the block could not have seen, when it found nothing either way.
fn unseen(contrast: &Contrast) -> String {
    if contrast.score.bootstrap_upper95 < 0.0 {
        String::from(", and the difference is below zero beyond chance")
    } else {
        format!(
            ", which is no proof of the opposite: a difference below {} points could not be told \
             from chance here",
            thousands(contrast.score.detection_floor)
        )
    }
}

/// What a reader must keep in mind.
pub fn limitations(protocol: &Protocol, analysis: &Analysis) -> Vec<String> {
    let mut limits = vec![format!(
        "{} games per arm on one block of seeds; evidence of tier {}, never a confirmation.",
        analysis.block.games,
        tier_name(protocol.tier)
    )];
    if let Some(contrast) = analysis.gate_contrast() {
        limits.push(format!(
            "The detection floor of the gate's contrast is {} points: smaller differences are \
             invisible at this size.",
            thousands(contrast.score.detection_floor)
        ));
    }
    if protocol.train.iter().any(|arm| arm.threads > 1 && arm.lockstep_games.is_none()) {
        limits.push(String::from(
            "Training ran lock-free on several threads: repeating it gives other tables. The frozen \
             file is identified by its digest.",
        ));
    }
    // One game in flight is serial training.
    let in_flight = protocol.train.iter().filter_map(|arm| arm.lockstep_games);
    let in_flight: BTreeSet<u32> = in_flight.filter(|&games| games > 1).collect();
    if !in_flight.is_empty() {
        let games: Vec<String> = in_flight.iter().map(u32::to_string).collect();
        limits.push(format!(
            "Training ran in lockstep with {} games in flight: a move does not know what the others \
             of its round taught. Another number of games gives other tables; with this one they can \
             be recomputed bit for bit, with any number of threads.",
            games.join(" or ")
        ));
    }
    if !protocol.train.is_empty() {
        limits.push(String::from(
            "The validation block chose the point (and the arm, where there were several); margins \
             on it are biased upwards and confirm nothing.",
        ));
    }
    let censored: u32 = analysis.arms.iter().map(|arm| arm.censored).sum();
    if censored > 0 {
        limits.push(format!(
            "{censored} games reached the cap of {} moves; their scores stand as they were then.",
            protocol.screen.move_cap
        ));
    }
    limits.push(String::from(
        "Wall times were measured beside whatever else the machine did; logical work is the cost.",
    ));
    limits
}

/// The words of an outcome.
pub const fn outcome_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => GateOutcome::Pass.wording(),
        Outcome::Fail => GateOutcome::Fail.wording(),
        Outcome::Inconclusive => "inconclusive",
        Outcome::NotApplicable => "not-applicable",
    }
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn groups_of_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-0.4, "0"),
            (999.4, "999"),
            (1000.0, "1,000"),
            (-1234567.8, "-1,234,568"),
            (123456.0, "123,456"),
        ] {
            assert_eq!(thousands(value), text);
        }
    }
}
