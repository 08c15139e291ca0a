//! Which seeds are free: whose the taken ones are, and where the next block is.

use sqlx::sqlite::SqliteConnection;

use super::columns::word;
use super::faults::{fault, unreadable};
use super::leases::{DOMAIN, SPACE, blocked, lease, select_leases};
use crate::domain::records::LeaseState;
use crate::domain::refusal::{Code, Refusal};
use crate::domain::seed_range::{Seed, SeedRange};

/// Where blocks without a start are drawn from: `[0x10000000, 0x70000000)`.
const POOL: std::ops::Range<u64> = 0x1000_0000..0x7000_0000;
/// Drawn blocks start at multiples of this.
const ALIGN: u64 = 256;

/// Says whose seeds these are, and what to do instead.
pub(super) async fn refuse_overlap(
    connection: &mut SqliteConnection,
    name: &str,
    range: SeedRange,
) -> Result<(), Refusal> {
    let row = sqlx::query(
        "SELECT *, end_exclusive - start AS count FROM blocked_ranges
         WHERE space = ? AND domain = ? AND start < ? AND ? < end_exclusive ORDER BY start LIMIT 1",
    )
    .bind(SPACE)
    .bind(DOMAIN)
    .bind(range.end().cast_signed())
    .bind(i64::from(range.start().0))
    .fetch_optional(&mut *connection)
    .await
    .map_err(fault)?;
    if let Some(row) = row {
        let held = blocked(&row)?;
        return Err(Refusal::new(
            Code::LeaseOverlap,
            format!(
                "block {name} {range} overlaps the blocked range {} [{}, {:#010x}): {}",
                held.name,
                held.start,
                u64::from(held.start.0) + u64::from(held.count),
                held.reason
            ),
        )
        .hint(HINT_DRAW));
    }
    let row = sqlx::query(select_leases!(
        "WHERE l.space = ? AND l.domain = ? AND l.state <> 'cancelled'
           AND l.start < ? AND ? < l.end_exclusive
         ORDER BY o.opened_at IS NULL, l.start LIMIT 1"
    ))
    .bind(SPACE)
    .bind(DOMAIN)
    .bind(range.end().cast_signed())
    .bind(i64::from(range.start().0))
    .fetch_optional(&mut *connection)
    .await
    .map_err(fault)?;
    let Some(row) = row else { return Ok(()) };
    let held = lease(&row)?;
    let theirs = SeedRange::new(held.start, u64::from(held.count))
        .map_err(|error| unreadable("lease", &error))?;
    let role = word(&held.role)?;
    let whose = format!("{role} lease {} {theirs} of {}", held.id, held.experiment_id);
    Err(match &held.opening {
        Some(opening) => Refusal::new(
            Code::AlreadyOpened,
            format!(
                "block {name} {range} overlaps {whose}, which {} opened at {}",
                opening.run_id, opening.opened_at
            ),
        )
        .hint(HINT_DRAW),
        None if held.state == LeaseState::Reserved => Refusal::new(
            Code::LeaseOverlap,
            format!("block {name} {range} overlaps {whose}, reserved at {}", held.reserved_at),
        )
        .hint(format!(
            "{HINT_DRAW} Nothing has read {0} yet: `heldout leases cancel {0}` gives it back.",
            held.id
        )),
        None => Refusal::new(
            Code::LeaseOverlap,
            format!("block {name} {range} overlaps {whose}, which has been read"),
        )
        .hint(HINT_DRAW),
    })
}

const HINT_DRAW: &str =
    "Leave out the start and the next free block is drawn, or name a start elsewhere.";

/// The lowest free block of the pool.
pub(super) async fn draw(
    connection: &mut SqliteConnection,
    name: &str,
    count: u32,
) -> Result<SeedRange, Refusal> {
    let taken: Vec<(i64, i64)> = sqlx::query_as(
        "SELECT start, end_exclusive FROM leases
         WHERE space = ?1 AND domain = ?2 AND state <> 'cancelled' AND start < ?4 AND ?3 < end_exclusive
         UNION ALL
         SELECT start, end_exclusive FROM blocked_ranges
         WHERE space = ?1 AND domain = ?2 AND start < ?4 AND ?3 < end_exclusive
         ORDER BY 1",
    )
    .bind(SPACE)
    .bind(DOMAIN)
    .bind(POOL.start.cast_signed())
    .bind(POOL.end.cast_signed())
    .fetch_all(connection)
    .await
    .map_err(fault)?;
    let taken: Vec<_> =
        taken.iter().map(|(start, end)| start.unsigned_abs()..end.unsigned_abs()).collect();
    let free = lowest_free(POOL, ALIGN, &taken, u64::from(count))
        .and_then(|start| u32::try_from(start).ok());
    match free {
        Some(start) => SeedRange::new(Seed(start), u64::from(count))
            .map_err(|error| Refusal::new(Code::InvalidRequest, format!("block {name}: {error}"))),
        None => Err(Refusal::new(
            Code::PoolExhausted,
            format!("no {count} seeds in a row are free in [{:#010x}, {:#010x})", POOL.start, POOL.end),
        )
        .at(format!("/seeds/{name}/count"), "larger than any free block")
        .hint("Ask for fewer seeds, cancel leases that nothing has read, or name a start outside the pool.")),
    }
}

/// Start of the lowest aligned block of `count` numbers inside `pool` that meets none of `taken`, which
/// is sorted by start. `None` when there is none, also for a count of 0.
pub fn lowest_free(
    pool: std::ops::Range<u64>,
    align: u64,
    taken: &[std::ops::Range<u64>],
    count: u64,
) -> Option<u64> {
    if count == 0 {
        return None;
    }
    let mut start = pool.start.checked_next_multiple_of(align)?;
    for range in taken {
        if start.checked_add(count)? <= range.start {
            break;
        }
        if range.end > start {
            start = range.end.checked_next_multiple_of(align)?;
        }
    }
    (start.checked_add(count)? <= pool.end).then_some(start)
}
