//! What a protocol will cost, before anything is opened.
//!
//! Promised: figures that follow from the document alone, each either exact (entries, bytes bounds,
//! games, the work bound of a decision) or named as expected, with the assumption behind it in
//! [`Estimate::assumptions`]. Refused: promises about wall time, which depends on the machine.

use engine_core::ntuple::Layout;
use engine_core::search::completion_bound;
use serde::Serialize;
use utoipa::ToSchema;

use super::growth::{PROGRAM, Trained, frozen_bound, trainable_bound};
use super::{CANDIDATE, FAIR, PlayerSpec, Protocol, SearchSpec, Validate};

/// Bytes of one slot of a search's transposition table, as an upper bound.
const SLOT: u64 = 64;

/// Cost of a protocol.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Estimate {
    /// Training arms, the main run, then screen arms.
    pub arms: Vec<ArmEstimate>,
    /// Sums over the arms.
    pub totals: Totals,
    /// The largest resident memory of any stage, in bytes, and where it is reached.
    pub peak: Peak,
    /// What the expected figures rest on.
    pub assumptions: Vec<String>,
}

/// The stage of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArmStage {
    /// A training arm.
    Train,
    /// The long run of the selected arm; its figures are the largest over all arms.
    Main,
    /// A screen arm.
    Screen,
}

/// Cost of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ArmEstimate {
    /// Where it runs.
    pub stage: ArmStage,
    /// Name of the arm, `main` for the long run.
    pub name: String,
    /// Its tables; absent for the fair leaf and for tables whose layout is in their file.
    pub tables: Option<TableEstimate>,
    /// Moves to train; at most, when a stop rule can end it earlier. 0 for a screen arm.
    pub moves: u64,
    /// Validation points of training.
    pub points: u64,
    /// Games played: at all validation points and once for the fair control, or the screen's.
    pub games: u64,
    /// Most logical work that one decision of these games can take.
    pub work_bound_per_decision: u64,
    /// Expected logical work of all these games together.
    pub expected_work: u64,
    /// Expected resident bytes while it runs.
    pub resident_bytes: u64,
}

/// Size of the tables of an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TableEstimate {
    /// Canonical layout.
    pub layout: String,
    /// Entries.
    pub entries: u64,
    /// Entries read per position.
    pub active: u32,
    /// Most bytes while training: 12.25 per entry. 0 for a screen arm.
    pub trainable_bytes_bound: u64,
    /// Most bytes when frozen: 4.25 per entry.
    pub frozen_bytes_bound: u64,
}

/// Sums over all arms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Totals {
    /// Moves to train.
    pub moves: u64,
    /// Games at validation points and of the fair control.
    pub validation_games: u64,
    /// Held-out games, over all screen arms.
    pub screen_games: u64,
    /// Held-out seeds that are used up.
    pub held_out_seeds: u64,
    /// Expected logical work of all validation and screen games.
    pub expected_work: u64,
}

/// The largest resident memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Peak {
    /// `train/NAME`, `train/main` or `screen`.
    pub at: String,
    /// Expected resident bytes.
    pub resident_bytes: u64,
    /// Bytes if every line of the tables were touched.
    pub bound_bytes: u64,
}

/// The cost of `protocol`.
pub fn estimate(protocol: &Protocol) -> Estimate {
    let mut arms = Vec::new();
    let mut peak = Peak { at: String::from("screen"), resident_bytes: 0, bound_bytes: 0 };
    let trained = |moves: Option<u64>| {
        protocol.train.iter().filter_map(move |arm| {
            let layout = arm.layout.parse().ok()?;
            Some((arm, Trained::new(layout, moves.unwrap_or(arm.moves), arm.init_from.is_some())))
        })
    };
    for (arm, tables) in trained(None) {
        let resident = tables.while_training() + search_memory(arm.validate.search, arm.threads);
        raise(&mut peak, format!("train/{}", arm.name), resident, tables.bound());
        arms.push(training_arm(ArmStage::Train, &arm.name, &tables, &arm.validate, resident));
    }
    // Which arm is selected is not known yet: the one that takes most is assumed.
    let moves = protocol.main.as_ref().map(|main| main.moves);
    let candidate = trained(moves).map(|(_, tables)| tables).max_by_key(Trained::while_training);
    if let (Some(main), Some(tables)) = (&protocol.main, &candidate) {
        let threads = protocol.budget.threads;
        let resident = tables.while_training() + search_memory(main.validate.search, threads);
        raise(&mut peak, String::from("train/main"), resident, tables.bound());
        arms.push(training_arm(ArmStage::Main, "main", tables, &main.validate, resident));
    }
    let screen = Screening { protocol, candidate: candidate.as_ref() };
    let (resident, bound) = screen.memory();
    raise(&mut peak, String::from("screen"), resident, bound);
    arms.extend(screen.arms(resident));
    let totals = totals(protocol, &arms);
    Estimate { arms, totals, peak, assumptions: assumptions(protocol) }
}

impl Estimate {
    /// Why the plan does not fit `budget` bytes, if it does not.
    pub(super) fn over_memory(&self, budget: u64) -> Option<String> {
        let Peak { at, resident_bytes, bound_bytes } = &self.peak;
        if *resident_bytes <= budget {
            return None;
        }
        Some(format!(
            "{at} is expected to hold {} in memory ({} if every line of its tables were touched), \
             which is more than the budget of {}",
            amount(*resident_bytes),
            amount(*bound_bytes),
            amount(budget)
        ))
    }
}

/// Bytes for a reader: `5.4 GiB (5,798,205,849 bytes)`.
fn amount(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] =
        [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => format!("{:.1} {unit} ({bytes} bytes)", bytes as f64 / size as f64),
        None => format!("{bytes} bytes"),
    }
}

fn raise(peak: &mut Peak, at: String, resident_bytes: u64, bound_bytes: u64) {
    if resident_bytes > peak.resident_bytes {
        *peak = Peak { at, resident_bytes, bound_bytes };
    }
}

/// Transposition tables of all workers.
fn search_memory(search: SearchSpec, threads: u32) -> u64 {
    let slots = if search.depth >= 4 { 1 << 20 } else { 1 << 16 };
    u64::from(threads) * slots * SLOT
}

fn training_arm(
    stage: ArmStage,
    name: &str,
    trained: &Trained,
    validate: &Validate,
    resident_bytes: u64,
) -> ArmEstimate {
    let points = trained.moves / validate.every_moves.max(1);
    let at_points = points.saturating_mul(u64::from(validate.games));
    let control = u64::from(validate.games);
    let expected_work = expected_work(validate.search, true, at_points)
        .saturating_add(expected_work(validate.search, false, control));
    ArmEstimate {
        stage,
        name: name.to_owned(),
        tables: Some(table(&trained.layout, true)),
        moves: trained.moves,
        points,
        games: at_points.saturating_add(control),
        work_bound_per_decision: bound(validate.search),
        expected_work,
        resident_bytes,
    }
}

fn table(layout: &Layout, trainable: bool) -> TableEstimate {
    let entries = layout.entries();
    TableEstimate {
        layout: layout.to_string(),
        entries,
        active: layout.active() as u32,
        trainable_bytes_bound: if trainable { trainable_bound(layout) } else { 0 },
        frozen_bytes_bound: frozen_bound(layout),
    }
}

/// The screen of a protocol and the tables that training is expected to leave.
struct Screening<'p> {
    protocol: &'p Protocol,
    candidate: Option<&'p Trained>,
}

impl Screening<'_> {
    /// The layout behind the name of a table, as far as the document tells it.
    fn layout(&self, name: &str) -> Option<&Layout> {
        let edited = self.protocol.edits.iter().find(|edit| edit.name == name);
        let source = edited.map_or(name, |edit| &edit.of);
        self.candidate.filter(|_| source == CANDIDATE).map(|trained| &trained.layout)
    }

    /// Expected and largest bytes of all tables that play, with the program and the searches. An
    /// edited table has no untouched lines.
    fn memory(&self) -> (u64, u64) {
        let mut played: Vec<&str> = Vec::new();
        let mut searches = 0;
        for arm in &self.protocol.screen.arms {
            let name = match &arm.player {
                PlayerSpec::Search { search, leaf } => {
                    searches = searches.max(search_memory(*search, self.protocol.budget.threads));
                    leaf
                }
                PlayerSpec::Direct { table } => table,
            };
            if name != FAIR && !played.contains(&name.as_str()) {
                played.push(name);
            }
        }
        let (mut resident, mut bound) = (PROGRAM + searches, PROGRAM + searches);
        for name in played {
            let Some(layout) = self.layout(name) else { continue };
            let all = frozen_bound(layout);
            let touched = self.candidate.map_or(all, |trained| trained.frozen);
            resident += if name == CANDIDATE { touched } else { all };
            bound += all;
        }
        (resident, bound)
    }

    fn arms(&self, resident_bytes: u64) -> impl Iterator<Item = ArmEstimate> {
        let block = self.protocol.seeds.get(&self.protocol.screen.seeds);
        let games = block.map_or(0, |block| u64::from(block.count));
        self.protocol.screen.arms.iter().map(move |arm| {
            let (name, bound, work) = match &arm.player {
                PlayerSpec::Search { search, leaf } => {
                    (leaf, bound(*search), expected_work(*search, leaf != FAIR, games))
                }
                PlayerSpec::Direct { table } => (table, 49, games.saturating_mul(90 * 17)),
            };
            ArmEstimate {
                stage: ArmStage::Screen,
                name: arm.name.clone(),
                tables: self.layout(name).map(|layout| table(layout, false)),
                moves: 0,
                points: 0,
                games,
                work_bound_per_decision: bound,
                expected_work: work,
                resident_bytes,
            }
        })
    }
}

fn bound(search: SearchSpec) -> u64 {
    completion_bound(search.depth, search.strata).unwrap_or(u64::MAX)
}

/// Expected logical work of `games` games: moves per game times a share of the bound per decision.
fn expected_work(search: SearchSpec, tables: bool, games: u64) -> u64 {
    let (moves, thousandths) = match (search.depth, tables) {
        (0 | 1, false) => (54, 963),
        (0 | 1, true) => (90, 963),
        (2, false) => (80, 847),
        (2, true) => (115, 847),
        (3, false) => (97, 680),
        (3, true) => (140, 680),
        (_, false) => (112, 450),
        (_, true) => (148, 450),
    };
    let per_game = u128::from(bound(search)) * moves * thousandths / 1000;
    u64::try_from(per_game * u128::from(games)).unwrap_or(u64::MAX)
}

fn totals(protocol: &Protocol, arms: &[ArmEstimate]) -> Totals {
    let sum = |keep: &dyn Fn(&ArmEstimate) -> bool, figure: &dyn Fn(&ArmEstimate) -> u64| {
        arms.iter().filter(|arm| keep(arm)).fold(0_u64, |sum, arm| sum.saturating_add(figure(arm)))
    };
    let screens = |arm: &ArmEstimate| arm.stage == ArmStage::Screen;
    Totals {
        moves: sum(&|_| true, &|arm| arm.moves),
        validation_games: sum(&|arm| !screens(arm), &|arm| arm.games),
        screen_games: sum(&screens, &|arm| arm.games),
        held_out_seeds: protocol
            .seeds
            .get(&protocol.screen.seeds)
            .map_or(0, |block| u64::from(block.count)),
        expected_work: sum(&|_| true, &|arm| arm.expected_work),
    }
}

fn assumptions(protocol: &Protocol) -> Vec<String> {
    let mut assumptions = vec![
        String::from(
            "Work per decision: 96, 85, 68 and 45 percent of the bound at depth 1, 2, 3 and 4, as \
             measured for the fair leaf and, at depth 3 and 4, as published for tables.",
        ),
        String::from(
            "Moves per game: 54, 80, 97 and 112 with the fair leaf at depth 1 to 4; 90 for tables \
             without search and 140 and 148 at depth 3 and 4, as published after billions of moves; \
             90 and 115 assumed for tables at depth 1 and 2.",
        ),
    ];
    if !protocol.train.is_empty() {
        assumptions.push(String::from(
            "Training memory: the touched lines of sixteen entries as measured up to 32 million moves, \
             extrapolated beyond, plus 15 percent and a copy of the best point; arms train one after \
             the other.",
        ));
    }
    if protocol.train.iter().any(|arm| arm.init_from.is_some()) {
        assumptions.push(String::from("Warm starts: every line of the tables is touched."));
    }
    if !protocol.tables.is_empty() {
        assumptions.push(String::from(
            "Tables of earlier runs are not counted: their size is in their files.",
        ));
    }
    assumptions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_for_readers() {
        assert_eq!(amount(1023), "1023 bytes");
        assert_eq!(amount(3 << 29), "1.5 GiB (1610612736 bytes)");
    }
}
