//! The rules a second time, cell by cell and as slowly as they are told, and the packed ones
//! compared with them on boards that games never reach.

use engine_core::drop7::chance::{Chance, Mulberry32};
use engine_core::drop7::rules::resolve_observed;
use engine_core::drop7::{Board, Move, PublicState};
use proptest::prelude::*;

use crate::rules::row;

const SIDE: usize = 7;

/// Cells by row from the top and column from the left: 0 empty, 8 solid, 9 cracked.
type Grid = [[u8; SIDE]; SIDE];

/// A wave: depth, popped, revealed, points.
type Wave = (u32, u32, u32, i64);

/// What a move did, in the words of the rules.
#[derive(Debug, PartialEq, Eq)]
struct Played {
    grid: Grid,
    moves_remaining: u8,
    over: bool,
    delta: i64,
    rose: bool,
    cleared: bool,
    waves: Vec<Wave>,
}

fn grid_of(board: &Board) -> Grid {
    let mut grid = [[0; SIDE]; SIDE];
    for (r, cells) in grid.iter_mut().enumerate() {
        for (c, cell) in cells.iter_mut().enumerate() {
            *cell = board.cell(r, c);
        }
    }
    grid
}

fn board_of(grid: &Grid) -> Board {
    let text: String = grid.iter().flatten().map(|cell| (b'0' + cell) as char).collect();
    Board::from_text(&text).expect("a packed board")
}

fn at(grid: &Grid, r: i32, c: i32) -> u8 {
    if (0..7).contains(&r) && (0..7).contains(&c) { grid[r as usize][c as usize] } else { 0 }
}

/// Occupied cells in a line through a cell, walking both ways from it.
fn run_length(grid: &Grid, r: i32, c: i32, step: (i32, i32)) -> u8 {
    let mut length = 1;
    for sign in [-1, 1] {
        let mut n = 1;
        while at(grid, r + sign * n * step.0, c + sign * n * step.1) != 0 {
            length += 1;
            n += 1;
        }
    }
    length
}

fn is_popper(grid: &Grid, r: i32, c: i32) -> bool {
    let cell = at(grid, r, c);
    (1..=7).contains(&cell)
        && (run_length(grid, r, c, (0, 1)) == cell || run_length(grid, r, c, (1, 0)) == cell)
}

/// floor(7 * depth^2.5): the largest whole number whose square is not above 49 * depth^5.
fn points(depth: u32) -> i64 {
    let square = 49 * i64::from(depth) * i64::from(depth).pow(4);
    (0..=square).take_while(|n| n * n <= square).last().expect("zero is one")
}

/// What happened to the gray discs of a move: how often each kind of hit was seen.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Hits {
    /// Solid, one popping neighbour.
    pub(crate) cracked: u32,
    /// Solid, two or more at once.
    pub(crate) opened_at_once: u32,
    /// Cracked, one or more.
    pub(crate) opened: u32,
}

fn cascade(
    grid: &mut Grid,
    chance: &mut impl Chance,
    waves: &mut Vec<Wave>,
    seen: &mut Hits,
) -> i64 {
    let mut total = 0;
    loop {
        let before = *grid;
        let mut popped = 0;
        let mut revealed = 0;
        for r in 0..7 {
            for c in 0..7 {
                let (row, column) = (r as usize, c as usize);
                if is_popper(&before, r, c) {
                    popped += 1;
                    grid[row][column] = 0;
                    continue;
                }
                let around = [(r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)];
                let hits = around.iter().filter(|&&(r, c)| is_popper(&before, r, c)).count();
                match (before[row][column], hits) {
                    (8, 1) => {
                        grid[row][column] = 9;
                        seen.cracked += 1;
                    }
                    (gray, hits @ 1..) if gray >= 8 => {
                        seen.opened_at_once += u32::from(gray == 8 && hits >= 2);
                        seen.opened += u32::from(gray == 9);
                        grid[row][column] = chance.draw();
                        revealed += 1;
                    }
                    _ => {}
                }
            }
        }
        if popped == 0 {
            return total;
        }
        for c in 0..SIDE {
            let column: Vec<u8> = (0..SIDE).map(|r| grid[r][c]).filter(|&cell| cell != 0).collect();
            for (r, cells) in grid.iter_mut().enumerate() {
                let gap = SIDE - column.len();
                cells[c] = if r < gap { 0 } else { column[r - gap] };
            }
        }
        let depth = waves.last().map_or(1, |wave| wave.0 + 1);
        let gained = i64::from(popped) * points(depth);
        waves.push((depth, popped, revealed, gained));
        total += gained;
    }
}

fn is_empty(grid: &Grid) -> bool {
    grid.iter().flatten().all(|&cell| cell == 0)
}

fn play(state: &PublicState, column: usize, chance: &mut impl Chance) -> Option<Played> {
    play_seeing(state, column, chance, &mut Hits::default())
}

/// [`play`], counting the hits on gray discs.
fn play_seeing(
    state: &PublicState,
    column: usize,
    chance: &mut impl Chance,
    seen: &mut Hits,
) -> Option<Played> {
    let mut grid = grid_of(state.board());
    if state.is_over() || column >= SIDE || grid[0][column] != 0 {
        return None;
    }
    let row = (0..SIDE).rev().find(|&r| grid[r][column] == 0).expect("the top cell is empty");
    grid[row][column] = state.next_disc();
    let mut waves = Vec::new();
    let mut delta = cascade(&mut grid, chance, &mut waves, seen);
    let (mut cleared, mut rose, mut over) = (false, false, false);
    if is_empty(&grid) {
        delta += 70_000;
        cleared = true;
    }
    let mut moves_remaining = state.moves_remaining() - 1;
    if moves_remaining == 0 {
        if grid[0].iter().any(|&cell| cell != 0) {
            over = true;
        } else {
            rose = true;
            moves_remaining = 5;
            delta += 17_000;
            grid.rotate_left(1);
            grid[6] = [8; SIDE];
            delta += cascade(&mut grid, chance, &mut waves, seen);
            if is_empty(&grid) {
                delta += 70_000;
                cleared = true;
            }
        }
    }
    if grid[0].iter().all(|&cell| cell != 0) {
        over = true;
    }
    Some(Played { grid, moves_remaining, over, delta, rose, cleared, waves })
}

/// The hits on gray discs of a move that the recorded tests play too.
pub(crate) fn hits(state: &PublicState, column: usize, chance: &mut impl Chance) -> Hits {
    let mut seen = Hits::default();
    play_seeing(state, column, chance, &mut seen);
    seen
}

/// The packed rules, in the same words; also checks what a [`Move`] says twice.
fn play_packed(state: &PublicState, column: usize, chance: &mut impl Chance) -> Option<Played> {
    let mut waves = Vec::new();
    let played = resolve_observed(state, column, chance, |wave| waves.push(row(wave)))?;
    let Move { after, delta, rose, cleared, popped, revealed, chain_depth } = played;
    assert_eq!(popped, waves.iter().map(|wave| wave.1).sum::<u32>());
    assert_eq!(revealed, waves.iter().map(|wave| wave.2).sum::<u32>());
    assert_eq!(chain_depth, waves.last().map_or(0, |wave| wave.0));
    assert_eq!(after.next_disc(), state.next_disc());
    Some(Played {
        grid: grid_of(after.board()),
        moves_remaining: after.moves_remaining(),
        over: after.is_over(),
        delta,
        rose,
        cleared,
        waves,
    })
}

/// Always the same disc: mirror images then draw alike, whatever the order of the reveals.
struct Same(u8);

impl Chance for Same {
    fn draw(&mut self) -> u8 {
        self.0
    }
}

/// Packed boards of every density: columns of any height, cells from one of several mixes.
fn any_board() -> impl Strategy<Value = Board> {
    let cell = prop_oneof![
        Just((1_u8..=9).boxed()),
        Just((1_u8..=7).boxed()),
        Just((1_u8..=3).boxed()),
        Just((8_u8..=9).boxed()),
        Just(prop_oneof![3 => 6_u8..=9, 1 => 1_u8..=5].boxed()),
    ];
    let tallest = prop_oneof![Just(0..=7_usize), Just(5..=7), Just(6..=6), Just(0..=3)];
    (cell, tallest).prop_flat_map(|(cell, tallest)| {
        let column = prop::collection::vec(cell, tallest);
        prop::collection::vec(column, SIDE).prop_map(|columns| {
            let words: Vec<u32> = columns
                .iter()
                .map(|cells| {
                    cells.iter().rev().fold(0, |word, &cell| (word << 4) | u32::from(cell))
                })
                .collect();
            Board::from_columns(words.try_into().expect("seven columns")).expect("packed")
        })
    })
}

/// Unfinished positions on [`any_board`].
pub(crate) fn any_state() -> impl Strategy<Value = PublicState> {
    (any_board(), 1_u8..=7, 1_u8..=5)
        .prop_map(|(board, disc, left)| PublicState::new(board, disc, left).expect("in range"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_packed_rules_are_the_slow_ones(state in any_state(), column in 0_usize..8, seed: u32) {
        let (mut packed, mut slow) = (Mulberry32::new(seed), Mulberry32::new(seed));
        let found = play_packed(&state, column, &mut packed);
        prop_assert_eq!(found, play(&state, column, &mut slow));
        prop_assert_eq!(packed, slow, "the same number of draws");
    }

    #[test]
    fn a_mirrored_position_plays_mirrored(
        state in any_state(), column in 0_usize..7, disc in 1_u8..=7
    ) {
        let (board, next) = (state.board().mirror(), state.next_disc());
        let mirror = PublicState::new(board, next, state.moves_remaining()).expect("in range");
        let left = play_packed(&state, column, &mut Same(disc));
        let right = play_packed(&mirror, 6 - column, &mut Same(disc));
        prop_assert_eq!(left.is_some(), right.is_some());
        if let (Some(left), Some(mut right)) = (left, right) {
            right.grid.iter_mut().for_each(|row| row.reverse());
            prop_assert_eq!(left, right);
        }
    }

    /// Many moves in a row: boards that only play reaches, with every countdown.
    #[test]
    fn whole_random_games_play_alike(seed: u32) {
        let mut state = PublicState::new(Board::INITIAL, 1, 5).expect("in range");
        let mut choices = Mulberry32::new(seed);
        for step in 0..60_u32 {
            state = state.with_next_disc(choices.draw());
            let column = usize::from(choices.draw()) - 1;
            let seed = seed ^ step;
            let found = play_packed(&state, column, &mut Mulberry32::new(seed));
            let slow = play(&state, column, &mut Mulberry32::new(seed));
            prop_assert_eq!(&found, &slow);
            let Some(slow) = slow else { continue };
            if slow.over {
                break;
            }
            state = PublicState::new(board_of(&slow.grid), 1, slow.moves_remaining)
                .expect("in range");
        }
    }

    #[test]
    fn canonical_is_the_smaller_text(board in any_board()) {
        let (text, mirror) = (board.to_string(), board.mirror().to_string());
        let (canonical, mirrored) = board.canonical();
        prop_assert_eq!(mirrored, mirror < text);
        prop_assert_eq!(canonical.to_string(), text.clone().min(mirror.clone()));
        let reversed: String = text
            .as_bytes()
            .chunks(SIDE)
            .flat_map(|row| row.iter().rev().map(|&byte| byte as char))
            .collect();
        prop_assert_eq!(mirror, reversed);
        prop_assert_eq!(Board::from_text(&text), Ok(board));
        prop_assert_eq!(board.occupied(), text.bytes().filter(|&b| b != b'0').count() as u32);
        prop_assert_eq!(board.is_full(), !text[..SIDE].contains('0'));
        prop_assert_eq!(board.touches_top(), text[..SIDE] != *"0000000");
    }
}

#[test]
fn the_slow_points_are_those_of_the_rules() {
    for (depth, points_of) in [(1, 7), (2, 39), (3, 109), (4, 224), (9, 1701), (16, 7168)] {
        assert_eq!(points(depth), points_of);
    }
}
