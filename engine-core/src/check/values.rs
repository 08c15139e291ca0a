//! Gates 6 to 8 and 13: what a value and a decision may depend on, and that both exist.

use super::outcome::{CheckOutcome, Comparison};
use super::probes::Probe;
use crate::ntuple::{Features, Weights};

/// Gate 6: a value does not change with the score, the level, the number of moves or the next disc;
/// a decision does not change with the first three.
///
/// The library's own leaves and policies are handed a [`crate::drop7::PublicState`] only, so the
/// first three cannot reach them; the gate is for whatever is put in their place.
pub fn information_boundary(
    probes: &[Probe],
    value: impl Fn(&Probe) -> f64,
    mut decide: impl FnMut(&Probe) -> Option<usize>,
) -> CheckOutcome {
    let mut compared = Comparison::new();
    for probe in probes {
        let hidden = [
            ("score", Probe { score: probe.score + 123_456, ..*probe }),
            ("level", Probe { level: probe.level + 7, ..*probe }),
            ("moves played", Probe { moves_played: probe.moves_played + 99, ..*probe }),
        ];
        let disc = probe.state.next_disc() % 7 + 1;
        let public = ("next disc", Probe { state: probe.state.with_next_disc(disc), ..*probe });
        let bits = value(probe).to_bits();
        for (what, changed) in hidden.iter().chain([&public]) {
            compared.check(value(changed).to_bits() == bits, || {
                format!("the value of {:?} changes with the {what}", probe.state.board())
            });
        }
        let action = decide(probe);
        for (what, changed) in &hidden {
            compared.check(decide(changed) == action, || {
                format!("the decision on {:?} changes with the {what}", probe.state.board())
            });
        }
    }
    compared.outcome("information-boundary", |n| {
        format!(
            "{n} perturbations of {} positions: no value follows score, level, moves or next disc, \
             no decision follows score, level or moves",
            probes.len()
        )
    })
}

/// Gate 7: a board and its mirror image have the same value bits, and decisions on positions that
/// are not over are mirrored.
pub fn reflection(
    probes: &[Probe],
    value: impl Fn(&Probe) -> f64,
    mut decide: impl FnMut(&Probe) -> Option<usize>,
) -> CheckOutcome {
    let mut compared = Comparison::new();
    let mut live = 0;
    let mut symmetric = 0;
    for probe in probes {
        let board = probe.state.board();
        let mirror = probe.mirror();
        compared.check(value(probe).to_bits() == value(&mirror).to_bits(), || {
            format!("{board:?} and its mirror image differ in value")
        });
        if probe.state.is_over() {
            continue;
        }
        live += 1;
        let (here, there) = (decide(probe), decide(&mirror));
        // One board has one decision: on a symmetric board it is its own mirror image.
        let own = mirror.state.board() == board;
        symmetric += u32::from(own);
        let expected = if own { here } else { here.map(|column| 6 - column) };
        compared.check(there == expected, || {
            format!("{board:?}: column {here:?}, but {there:?} on the mirror image")
        });
    }
    compared.outcome("reflection", |_| {
        format!(
            "{} values equal on the mirror image, {live} decisions mirrored ({symmetric} boards \
             are symmetric)",
            probes.len()
        )
    })
}

/// Gate 8: the policy names a legal column exactly when the game is not over.
pub fn direct_policy_legality(
    probes: &[Probe],
    mut decide: impl FnMut(&Probe) -> Option<usize>,
) -> CheckOutcome {
    let mut compared = Comparison::new();
    let mut over = 0;
    for probe in probes {
        let action = decide(probe);
        let right = if probe.state.is_over() {
            over += 1;
            action.is_none()
        } else {
            action.is_some_and(|column| probe.state.board().is_legal(column))
        };
        compared.check(right, || format!("{:?}: column {action:?}", probe.state));
    }
    compared.outcome("direct-policy-legality", |n| {
        format!("a legal column on {} live positions, none on {over} finished ones", n - over)
    })
}

/// Rounds over the probes that the checksums of gate 13 are taken over.
const ROUNDS: u64 = 200;

/// Gate 13: every value of `weights` on the probes is a finite number. The evidence also has two
/// checksums that are functions of the program and the weights: the sum of the last entry numbers,
/// and the sum of the values in row rises, each over 200 rounds.
pub fn finite_and_profile<W: Weights + ?Sized>(probes: &[Probe], weights: &W) -> CheckOutcome {
    let mut compared = Comparison::new();
    let mut features = Features::new();
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut values = Vec::with_capacity(probes.len());
    let mut last_indices = 0;
    for probe in probes {
        let board = probe.state.board();
        weights.layout().features(board, probe.state.moves_remaining(), &mut features);
        last_indices += features.as_slice().last().copied().unwrap_or(0);
        let value = f64::from(weights.value(&features));
        compared.check(value.is_finite(), || format!("{board:?} is worth {value}"));
        (least, most) = (least.min(value), most.max(value));
        values.push(value);
    }
    let mut sum = 0.0;
    for _ in 0..ROUNDS {
        for value in &values {
            sum += value;
        }
    }
    compared.outcome("finite-and-profile", |n| {
        format!(
            "{n} values are finite, from {least:.4} to {most:.4} row rises; checksums {} and {sum:.1}",
            ROUNDS * last_indices
        )
    })
}
