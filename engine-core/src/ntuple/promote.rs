//! Starting from somebody else's weights: the same layout, or the same layout split by fill.
//!
//! Promised: every board is worth the same bits as before, and nothing counts as learned. Refused:
//! any other pair of layouts.

use super::layout::Location;
use super::tables::{Record, TablesError};
use super::{FrozenTables, Layout, TrainTables, Weights};

/// Why weights cannot be the start of another training.
#[derive(Debug, thiserror::Error)]
pub enum WarmStartError {
    /// The layouts have nothing to do with each other.
    #[error(
        "tables of {source_layout} cannot start a training of {wanted}: the layouts must be equal, \
         or differ only in that the new one is split by fill"
    )]
    Layouts {
        /// The layout of the weights.
        source_layout: String,
        /// The layout to train.
        wanted: String,
    },
    /// No memory for the new tables.
    #[error(transparent)]
    Tables(#[from] TablesError),
}

/// Trainable tables of `layout` that hold the weights of `source`, with no error history. When
/// `layout` is split by fill and `source` is not, every bucket starts as a copy. Entries equal to
/// the start value of `optimistic_rises` take no memory.
///
/// # Errors
/// [`WarmStartError`].
pub fn warm_start(
    source: &FrozenTables,
    layout: Layout,
    optimistic_rises: f32,
) -> Result<TrainTables, WarmStartError> {
    let source_layout = *source.layout();
    if source_layout != layout && source_layout != layout.without_fill() {
        return Err(WarmStartError::Layouts {
            source_layout: source_layout.to_string(),
            wanted: layout.to_string(),
        });
    }
    let tables = TrainTables::fresh(layout, optimistic_rises)?;
    let copy = |index, weight| {
        let record = Record { weight, error: 0.0, abs_error: 0.0 };
        let Some(location) = source_layout.locate(index) else { return };
        for bucket in 0..layout.buckets() {
            let bucket = if layout == source_layout { location.bucket } else { bucket };
            if let Some(index) = layout.index(&Location { bucket, ..location }) {
                tables.set_record(index, record);
            }
        }
    };
    if source.start_value().to_bits() == tables.start_value().to_bits() {
        source.for_each_written(copy);
    } else {
        (0..source_layout.entries()).for_each(|index| copy(index, source.weight(index)));
    }
    Ok(tables)
}
