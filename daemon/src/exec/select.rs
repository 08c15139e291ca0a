//! The choice of one training arm, from stored points only.

use serde::{Deserialize, Serialize};

use super::train::{TrainOutput, curve};
use super::unit::{Ending, UnitContext, UnitResult, output};
use crate::domain::protocol::{Protocol, SelectRule};
use crate::domain::records::Point;

/// Which arm was chosen, and from which numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// The chosen arm.
    pub arm: String,
    /// Its margin under the rule.
    pub margin: f64,
    /// The rule.
    pub rule: SelectRule,
    /// Every arm, best first.
    pub ranking: Vec<Ranked>,
}

/// One arm of the ranking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// The arm.
    pub arm: String,
    /// Margin at its last point.
    pub final_margin: f64,
    /// Its largest margin.
    pub best_margin: f64,
    /// Entries of its layout: fewer wins a tie.
    pub entries: u64,
}

/// Ranks the arms of `protocol` by their stored points. Ties go to fewer entries, then to the earlier
/// arm of the document.
///
/// # Errors
/// When an arm has no point.
pub fn select(protocol: &Protocol, points: &[Point]) -> Result<Selection, Ending> {
    let rule = protocol.select.map_or(SelectRule::LargestFinalMargin, |select| select.rule);
    let mut ranking = Vec::new();
    for arm in &protocol.train {
        let curve = curve(points, &arm.name);
        let Some(last) = curve.last() else {
            return Err(Ending::Failed(format!(
                "training arm {:?} has no validation point, so nothing can be selected by margin",
                arm.name
            )));
        };
        let layout: engine_core::ntuple::Layout = arm
            .layout
            .parse()
            .map_err(|error| Ending::Failed(format!("layout of {:?}: {error}", arm.name)))?;
        ranking.push(Ranked {
            arm: arm.name.clone(),
            final_margin: last.margin,
            best_margin: curve.iter().map(|point| point.margin).fold(f64::NEG_INFINITY, f64::max),
            entries: layout.entries(),
        });
    }
    let margin = |ranked: &Ranked| match rule {
        SelectRule::LargestFinalMargin => ranked.final_margin,
        SelectRule::LargestBestMargin => ranked.best_margin,
    };
    // The sort is stable, so arms that tie in everything keep the order of the document.
    ranking.sort_by(|a, b| margin(b).total_cmp(&margin(a)).then(a.entries.cmp(&b.entries)));
    let best = ranking
        .first()
        .ok_or_else(|| Ending::Failed(String::from("the protocol trains no arm")))?;
    Ok(Selection { arm: best.arm.clone(), margin: margin(best), rule, ranking })
}

/// The unit: selects, and checks that the chosen arm has ended as it should.
pub(super) fn run(context: &UnitContext) -> UnitResult {
    let selection = select(&context.protocol, &context.status.points)?;
    let _: TrainOutput = context.output(&super::plan::train_key(&selection.arm))?;
    context.counter.set(1);
    output(&selection)
}
