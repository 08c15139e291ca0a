//! Gate 5: splitting tables by fill changes no value and starts a new learning history.

use super::outcome::{CheckOutcome, Comparison};
use super::probes::{BLOCK, Probe};
use super::training::step_by_step;
use crate::ntuple::layout::Fill;
use crate::ntuple::tables::Record;
use crate::ntuple::{Features, FrozenTables, Layout, TrainTables, Weights};

/// Layout of the tables that are split.
pub const SOURCE: &str = "rows,win32,phase=cols";

const GAMES: u32 = 6;
const MOVE_CAP: u32 = 120;

/// Small trained tables to be split.
///
/// # Errors
/// When they cannot be made, in words.
pub fn source() -> Result<FrozenTables, String> {
    let layout = SOURCE.parse().map_err(|error| format!("{SOURCE}: {error}"))?;
    let (tables, _) = step_by_step(layout, BLOCK + 0x300, GAMES, MOVE_CAP)?;
    tables.freeze().map_err(|error| error.to_string())
}

/// Gate 5: `promote` turns `source` into trainable tables split by `fill`, with the same value for
/// every position, five times the entries and no history; learning separates the buckets.
///
/// `count_touched` also looks at every entry for history, instead of those of the probes only.
pub fn promotion_preserves_value(
    fill: Fill,
    source: &FrozenTables,
    probes: &[Probe],
    count_touched: bool,
    promote: impl FnOnce(&FrozenTables, Layout) -> Result<TrainTables, String>,
) -> CheckOutcome {
    let name = format!("promotion-preserves-value[{}]", fill.name());
    let plain = *source.layout();
    let text = format!("{plain},fill={}", fill.name());
    let split = match text.parse::<Layout>() {
        Ok(layout) => layout,
        Err(error) => return CheckOutcome::impossible(&name, format!("{text}: {error}")),
    };
    let promoted = match promote(source, split) {
        Ok(promoted) => promoted,
        Err(error) => return CheckOutcome::impossible(&name, error),
    };
    let mut compared = Comparison::new();
    compared.check(*promoted.layout() == split, || {
        format!("the promoted tables are {}, not {split}", promoted.layout())
    });
    compared.check(promoted.layout().entries() == 5 * plain.entries(), || {
        format!("{} entries, not 5 x {}", promoted.layout().entries(), plain.entries())
    });
    if !compared.holds() {
        return compared.outcome(&name, |_| String::new());
    }
    let (mut here, mut there) = (Features::new(), Features::new());
    for probe in probes {
        let board = probe.state.board();
        for moves_remaining in 1..=5 {
            plain.features(board, moves_remaining, &mut here);
            split.features(board, moves_remaining, &mut there);
            let (before, after) = (source.value(&here), promoted.value(&there));
            compared.check(before.to_bits() == after.to_bits(), || {
                format!("{board:?} with {moves_remaining} drops left: {before} became {after}")
            });
            let fresh =
                there.as_slice().iter().all(|&index| has_no_history(promoted.record(index)));
            compared.check(fresh, || format!("{board:?}: an entry already has a history"));
        }
    }
    if count_touched {
        let touched = promoted.touched();
        compared.check(touched == 0, || format!("{touched} entries count as touched"));
    }
    learning_separates_buckets(&mut compared, &promoted, probes);
    compared.outcome(&name, |_| {
        format!(
            "{} values of {} positions bit-equal, {} entries for {}, no touched entry among {}; one \
             update moved its own bucket only",
            5 * probes.len(),
            probes.len(),
            split.entries(),
            plain.entries(),
            if count_touched { "all" } else { "those of the positions" },
        )
    })
}

fn has_no_history(record: Record) -> bool {
    record.error == 0.0 && record.abs_error == 0.0
}

/// One update of the first probe raises it and leaves the first probe of another bucket alone.
fn learning_separates_buckets(compared: &mut Comparison, tables: &TrainTables, probes: &[Probe]) {
    let layout = *tables.layout();
    let features = |probe: &Probe| {
        let mut features = Features::new();
        layout.features(probe.state.board(), probe.state.moves_remaining(), &mut features);
        features
    };
    let Some(first) = probes.first() else { return };
    let bucket = |probe: &Probe| layout.fill_bucket(probe.state.board());
    let other = probes.iter().find(|probe| bucket(probe) != bucket(first));
    let own = features(first);
    let before = tables.value(&own);
    let other = other.map(|probe| {
        let features = features(probe);
        let before = tables.value(&features);
        (features, before)
    });
    compared.check(other.is_some(), || "all positions are in one bucket".to_owned());
    tables.update(&own, before + 5.0, 1.0, 100.0);
    let after = tables.value(&own);
    compared.check(after > before, || format!("an update towards +5 went {before} to {after}"));
    if let Some((features, before)) = other {
        let after = tables.value(&features);
        compared.check(after.to_bits() == before.to_bits(), || {
            format!("an update in one bucket moved another from {before} to {after}")
        });
    }
}
