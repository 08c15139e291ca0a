//! Which patterns a set of tables reads, and where each pattern's entry lies.
//!
//! A layout is written as a comma-separated list, `rows,cols,win23,win32,phase=all`, in any order;
//! it is always printed in the canonical order, which is what files and records hold. Entry order
//! is family, table, fill bucket, phase, pattern; all of it follows from the text alone.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Number of families.
pub(crate) const FAMILIES: usize = 6;
/// Buckets of a filled layout.
pub const FILL_BUCKETS: u64 = 5;
/// Phases of a phase-keyed family: drops left until the rise, 1..=5.
pub const PHASES: u64 = 5;

/// A family of patterns: one table per placement, placements fixed on the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Whole rows, top to bottom.
    Rows,
    /// Whole columns, left to right.
    Cols,
    /// Windows 2 wide and 3 tall.
    Win23,
    /// Windows 3 wide and 2 tall.
    Win32,
    /// Windows 2 wide and 4 tall.
    Win24,
    /// Windows 4 wide and 2 tall.
    Win42,
}

impl Family {
    /// All families, in the order of memory and of feature lists.
    pub const ALL: [Self; FAMILIES] =
        [Self::Rows, Self::Cols, Self::Win23, Self::Win32, Self::Win24, Self::Win42];

    /// The word used in layout strings.
    pub const fn name(self) -> &'static str {
        ["rows", "cols", "win23", "win32", "win24", "win42"][self as usize]
    }

    /// Columns and rows of one pattern.
    pub const fn window(self) -> (usize, usize) {
        [(7, 1), (1, 7), (2, 3), (3, 2), (2, 4), (4, 2)][self as usize]
    }

    /// Number of tables: 7, 7, 30, 30, 24, 24.
    pub const fn tables(self) -> u64 {
        [7, 7, 30, 30, 24, 24][self as usize]
    }

    /// Cells of one pattern: 7, 7, 6, 6, 8, 8.
    pub const fn cells(self) -> u32 {
        [7, 7, 6, 6, 8, 8][self as usize]
    }

    /// Patterns of one table: ten to the power of its cells.
    pub const fn patterns(self) -> u64 {
        10_u64.pow(self.cells())
    }
}

/// Which families have one slab per number of drops left until the rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// None.
    None,
    /// The columns only.
    Cols,
    /// Rows, columns and six-cell windows; never the eight-cell windows.
    All,
}

impl Phase {
    /// The word used after `phase=`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Cols => "cols",
            Self::All => "all",
        }
    }

    const fn applies(self, family: Family) -> bool {
        match self {
            Self::None => false,
            Self::Cols => matches!(family, Family::Cols),
            Self::All => !matches!(family, Family::Win24 | Family::Win42),
        }
    }
}

/// How full the board is, as five buckets that every table of the layout is split by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fill {
    /// Not split.
    None,
    /// By discs on the board: 0-13, 14-20, 21-27, 28-34, 35-49.
    Occ5,
    /// By the tallest column: 0-3, 4, 5, 6, 7.
    Hgt5,
}

impl Fill {
    /// The word used after `fill=`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Occ5 => "occ5",
            Self::Hgt5 => "hgt5",
        }
    }
}

/// Why a text is not a layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A word that means nothing.
    #[error(
        "layout item {item:?} is not known; allowed are rows, cols, win23, win32, win24, win42, \
         phase=none|cols|all and fill=none|occ5|hgt5"
    )]
    UnknownItem {
        /// The item, without the blanks around it.
        item: String,
    },
    /// Nothing to read.
    #[error(
        "layout {text:?} names no family; at least one of rows, cols, win23, win32, win24, win42 \
         is needed"
    )]
    NoFamily {
        /// The whole text.
        text: String,
    },
    /// Tables too large to be split five ways.
    #[error(
        "fill={fill} cannot be combined with {family}: only rows, cols, win23 and win32 can be split by fill"
    )]
    FillWithWide {
        /// The fill word.
        fill: &'static str,
        /// The eight-cell family.
        family: &'static str,
    },
}

/// A parsed layout with the position of every family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Layout {
    /// First entry of each family, [`ABSENT`] for those that are not read.
    first: [u64; FAMILIES],
    entries: u64,
    active: u8,
    phase: Phase,
    fill: Fill,
}

const ABSENT: u64 = u64::MAX;

/// Where a family lies: `first + table * stride + (bucket * phases + phase) * patterns + pattern`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Index of the family's first entry.
    pub first: u64,
    /// Entries of one table: buckets x phases x patterns.
    pub stride: u64,
    /// Slabs per bucket: 5 when phase-keyed, else 1.
    pub phases: u64,
}

/// What an entry stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The family.
    pub family: Family,
    /// The table of the family, 0..`family.tables()`.
    pub table: u64,
    /// The fill bucket, 0..5; 0 when the layout is not split by fill.
    pub bucket: u64,
    /// Drops left until the rise minus one, 0..5; 0 when the family is not phase-keyed.
    pub phase: u64,
    /// The cells as a base-10 number, 0..`family.patterns()`.
    pub pattern: u64,
}

impl Location {
    /// Occupied cells of the pattern: its non-zero digits.
    pub fn occupied(&self) -> usize {
        super::codec::occupied(self.pattern)
    }
}

impl Layout {
    fn new(families: [bool; FAMILIES], phase: Phase, fill: Fill) -> Self {
        let mut layout = Self { first: [ABSENT; FAMILIES], entries: 0, active: 0, phase, fill };
        for family in Family::ALL.into_iter().filter(|&family| families[family as usize]) {
            layout.first[family as usize] = layout.entries;
            layout.entries += family.tables() * layout.stride(family);
            layout.active += family.tables() as u8;
        }
        layout
    }

    const fn phases(&self, family: Family) -> u64 {
        if self.phase.applies(family) { PHASES } else { 1 }
    }

    const fn stride(&self, family: Family) -> u64 {
        self.buckets() * self.phases(family) * family.patterns()
    }

    /// Number of entries, at least 30 million.
    pub const fn entries(&self) -> u64 {
        self.entries
    }

    /// Entries read per position: one in each table, 7..=122.
    pub const fn active(&self) -> usize {
        self.active as usize
    }

    /// The families of the layout, in memory order.
    pub fn families(&self) -> impl Iterator<Item = Family> {
        Family::ALL.into_iter().filter(|&family| self.place(family).is_some())
    }

    /// Where a family lies; `None` when the layout does not read it.
    pub const fn place(&self, family: Family) -> Option<Place> {
        match self.first[family as usize] {
            ABSENT => None,
            first => {
                let (stride, phases) = (self.stride(family), self.phases(family));
                Some(Place { first, stride, phases })
            }
        }
    }

    /// What entry `index` stands for; `None` when it is not below [`Layout::entries`].
    pub fn locate(&self, index: u64) -> Option<Location> {
        let family =
            self.families().filter(|&family| self.first[family as usize] <= index).last()?;
        let Place { first, stride, phases } = self.place(family)?;
        let within = index - first;
        let slab = within % stride / family.patterns();
        (index < self.entries).then(|| Location {
            family,
            table: within / stride,
            bucket: slab / phases,
            phase: slab % phases,
            pattern: within % family.patterns(),
        })
    }

    /// The entry at `location`: the inverse of [`Layout::locate`]. `None` when the layout has no
    /// such family, table, bucket, phase or pattern.
    pub fn index(&self, location: &Location) -> Option<u64> {
        let Location { family, table, bucket, phase, pattern } = *location;
        let Place { first, stride, phases } = self.place(family)?;
        let inside = table < family.tables()
            && bucket < self.buckets()
            && phase < phases
            && pattern < family.patterns();
        inside.then(|| {
            first + table * stride + (bucket * phases + phase) * family.patterns() + pattern
        })
    }

    /// Which families are phase-keyed.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// How tables are split by fill.
    pub const fn fill(&self) -> Fill {
        self.fill
    }

    /// Whether tables are split by fill.
    pub const fn is_filled(&self) -> bool {
        !matches!(self.fill, Fill::None)
    }

    /// Buckets of every table: 5 when split by fill, else 1.
    pub const fn buckets(&self) -> u64 {
        if self.is_filled() { FILL_BUCKETS } else { 1 }
    }

    /// The same layout, not split by fill.
    #[must_use]
    pub fn without_fill(&self) -> Self {
        Self::new(self.first.map(|first| first != ABSENT), self.phase, Fill::None)
    }

    /// The start value of every entry when an unseen board is to be worth `total` row rises:
    /// `total / active`, rounded once.
    pub fn start_value(&self, total: f32) -> f32 {
        total / f32::from(self.active)
    }
}

impl FromStr for Layout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let mut families = [false; FAMILIES];
        let mut phase = Phase::None;
        let mut fill = Fill::None;
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            match item {
                "phase=none" => phase = Phase::None,
                "phase=cols" => phase = Phase::Cols,
                "phase=all" => phase = Phase::All,
                "fill=none" => fill = Fill::None,
                "fill=occ5" => fill = Fill::Occ5,
                "fill=hgt5" => fill = Fill::Hgt5,
                _ => match Family::ALL.into_iter().find(|family| family.name() == item) {
                    Some(family) => families[family as usize] = true,
                    None => return Err(LayoutError::UnknownItem { item: item.to_owned() }),
                },
            }
        }
        if !families.contains(&true) {
            return Err(LayoutError::NoFamily { text: text.to_owned() });
        }
        if fill != Fill::None {
            for family in [Family::Win24, Family::Win42] {
                if families[family as usize] {
                    return Err(LayoutError::FillWithWide {
                        fill: fill.name(),
                        family: family.name(),
                    });
                }
            }
        }
        Ok(Self::new(families, phase, fill))
    }
}

/// The canonical spelling: families in memory order, always the phase, the fill only when there is one.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for family in self.families() {
            write!(f, "{},", family.name())?;
        }
        write!(f, "phase={}", self.phase.name())?;
        if self.is_filled() {
            write!(f, ",fill={}", self.fill.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layout({self})")
    }
}

impl TryFrom<String> for Layout {
    type Error = LayoutError;

    fn try_from(text: String) -> Result<Self, LayoutError> {
        text.parse()
    }
}

impl From<Layout> for String {
    fn from(layout: Layout) -> Self {
        layout.to_string()
    }
}
