//! The frozen fair leaf a second time, one cell after the other with lists and sorting, and the
//! fast one compared with it on boards no game reaches.

use engine_core::drop7::{Board, PublicState};
use engine_core::leaf::{FairLeaf, Leaf, fair};
use proptest::prelude::*;

use crate::naive::any_state;

/// 2^(1-k) for k >= 1, else 0.
fn nearness(missing: i32) -> f64 {
    if missing < 1 {
        return 0.0;
    }
    (1..missing).fold(1.0, |half, _| half / 2.0)
}

fn either(a: f64, b: f64) -> f64 {
    1.0 - (1.0 - a) * (1.0 - b)
}

/// What is known of a numbered disc.
#[derive(Clone, Copy, Default)]
struct Disc {
    by_row: f64,
    by_column: f64,
    direct: f64,
    row_release: f64,
    column_release: f64,
    release: f64,
}

struct Slow<'a> {
    board: &'a Board,
    discs: [[Disc; 7]; 7],
}

impl Slow<'_> {
    fn cell(&self, r: i32, c: i32) -> u8 {
        if (0..7).contains(&r) && (0..7).contains(&c) {
            self.board.cell(r as usize, c as usize)
        } else {
            0
        }
    }

    fn value(&self, r: i32, c: i32) -> Option<i32> {
        let cell = i32::from(self.cell(r, c));
        (1..=7).contains(&cell).then_some(cell)
    }

    fn disc(&self, r: i32, c: i32) -> Disc {
        self.discs[r as usize][c as usize]
    }

    fn height(&self, c: i32) -> i32 {
        (0..7).filter(|&r| self.cell(r, c) != 0).count() as i32
    }

    /// The cells of the run through a cell along a step, in order.
    fn run(&self, r: i32, c: i32, (dr, dc): (i32, i32)) -> Vec<(i32, i32)> {
        let (mut r, mut c) = (r, c);
        while self.cell(r - dr, c - dc) != 0 {
            (r, c) = (r - dr, c - dc);
        }
        let mut cells = Vec::new();
        while self.cell(r, c) != 0 {
            cells.push((r, c));
            (r, c) = (r + dr, c + dc);
        }
        cells
    }

    fn row_nearness(&self, r: i32, c: i32, value: i32) -> f64 {
        let run = self.run(r, c, (0, 1));
        if value <= run.len() as i32 {
            return 0.0;
        }
        let elevation = 7 - r;
        let (first, last) = (run[0].1, run[run.len() - 1].1);
        let cost =
            |w: i32| (w..w + value).map(|j| (elevation - self.height(j)).max(0)).sum::<i32>();
        (0..=7 - value)
            .filter(|&w| w <= first && w + value > last)
            .filter(|&w| w == 0 || self.height(w - 1) < elevation)
            .filter(|&w| w + value == 7 || self.height(w + value) < elevation)
            .map(cost)
            .filter(|&cost| cost > 0)
            .min()
            .map_or(0.0, nearness)
    }

    fn release(&self, r: i32, c: i32, step: (i32, i32)) -> f64 {
        let run = self.run(r, c, step);
        let surplus = run.len() as i32 - self.value(r, c).unwrap();
        let mut others: Vec<f64> = run
            .iter()
            .filter(|&&(y, x)| (y, x) != (r, c) && self.value(y, x).is_some())
            .map(|&(y, x)| self.disc(y, x).direct)
            .collect();
        others.sort_by(|a, b| b.total_cmp(a));
        if surplus <= 0 || others.len() < surplus as usize {
            return 0.0;
        }
        others[surplus as usize - 1] * nearness(surplus)
    }
}

fn cells() -> impl Iterator<Item = (i32, i32)> {
    (0..49).map(|i| (i / 7, i % 7))
}

fn slow_terms(state: &PublicState) -> [f64; 18] {
    let mut slow = Slow { board: state.board(), discs: Default::default() };
    let mut t = [0.0_f64; 18];
    let mut tallest = 0;
    for c in 0..7 {
        let height = slow.height(c);
        tallest = tallest.max(height);
        t[0] += f64::from(u8::from(slow.cell(0, c) == 0));
        t[16] += f64::from(height * height * height) / f64::from(state.moves_remaining());
        t[17] += f64::from(u8::from(height < 7 && height + 1 == i32::from(state.next_disc())));
    }
    let danger = f64::from((tallest - 4).max(0));
    t[15] = danger * danger;

    for (r, c) in cells().filter(|&(r, c)| state.board().cell(r as usize, c as usize) != 0) {
        let elevation = 7 - r;
        let square = f64::from(elevation * elevation);
        let edge = if c == 0 || c == 6 { 1.65 } else { 1.0 };
        t[1] += square;
        match (slow.cell(r, c), slow.value(r, c)) {
            (8, _) => {
                t[2] += 1.0;
                t[13] += square * edge;
            }
            (_, None) => {
                t[3] += 1.0;
                t[13] += square * edge * 0.72;
            }
            (_, Some(value)) => {
                t[4] += 1.0;
                if value <= 2 {
                    let above = f64::from((elevation - 2).max(0));
                    t[14] += above * above;
                    t[5] += f64::from(u8::from(elevation >= 5));
                }
                let by_row = slow.row_nearness(r, c, value);
                let by_column = nearness(value - slow.height(c));
                let direct = either(by_row, by_column);
                t[6] += direct;
                slow.discs[r as usize][c as usize] =
                    Disc { by_row, by_column, direct, ..Disc::default() };
            }
        }
    }

    let numbered: Vec<(i32, i32)> = cells().filter(|&(r, c)| slow.value(r, c).is_some()).collect();
    for &(r, c) in &numbered {
        let row_release = slow.release(r, c, (0, 1));
        let column_release = slow.release(r, c, (1, 0));
        let release = either(row_release, column_release);
        t[7] += release;
        let value = slow.value(r, c).unwrap();
        let long = |step| slow.run(r, c, step).len() as i32 > value;
        if value <= 2 && long((0, 1)) && long((1, 0)) {
            t[12] += 1.0 - either(slow.disc(r, c).direct, release);
        }
        let disc = &mut slow.discs[r as usize][c as usize];
        (disc.row_release, disc.column_release, disc.release) =
            (row_release, column_release, release);
    }
    let along_column = |r, c| {
        let disc = slow.disc(r, c);
        either(disc.by_column, disc.column_release)
    };
    let along_row = |r, c| {
        let disc = slow.disc(r, c);
        either(disc.by_row, disc.row_release)
    };

    for &(r, c) in numbered.iter().filter(|&&(r, c)| slow.cell(r, c) == 1) {
        if slow.cell(r, c + 1) == 1 {
            t[10] += 1.0 - along_column(r, c).max(along_column(r, c + 1));
        }
        if slow.cell(r + 1, c) == 1 {
            t[10] += 1.0 - along_row(r, c).max(along_row(r + 1, c));
        }
    }

    for (rows_first, escape) in
        [(true, &along_column as &dyn Fn(i32, i32) -> f64), (false, &along_row)]
    {
        for line in 0..7 {
            let place = |n: i32| if rows_first { (line, n) } else { (n, line) };
            let mut n = 0;
            while n < 7 {
                let is_two = |n: i32| slow.cell(place(n).0, place(n).1) == 2 && n < 7;
                let length = (n..7).take_while(|&n| is_two(n)).count() as i32;
                if length > 2 {
                    let best = (n..n + length)
                        .map(|n| escape(place(n).0, place(n).1))
                        .fold(0.0_f64, f64::max);
                    t[11] += f64::from((length - 2) * (length - 2)) * (1.0 - best);
                }
                n += length.max(1);
            }
        }
    }

    for (r, c) in cells().filter(|&(r, c)| slow.cell(r, c) >= 8) {
        let mut around: Vec<f64> = [(r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)]
            .into_iter()
            .filter(|&(y, x)| slow.value(y, x).is_some())
            .map(|(y, x)| either(slow.disc(y, x).direct, slow.disc(y, x).release))
            .collect();
        around.sort_by(|a, b| b.total_cmp(a));
        if slow.cell(r, c) == 9 {
            t[8] += 1.0 - around.iter().fold(1.0, |missed, hit| missed * (1.0 - hit));
        } else {
            let nth = |n: usize| around.get(n).copied().unwrap_or(0.0);
            t[9] += nth(0) * 0.35 + nth(1) * 0.65;
        }
    }
    t
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_fast_leaf_is_the_slow_one(state in any_state()) {
        let slow = slow_terms(&state);
        let fast = fair::terms(&state);
        for (k, name) in fair::TERM_NAMES.iter().enumerate() {
            prop_assert_eq!(fast[k].to_bits(), slow[k].to_bits(), "{}", name);
        }
        let value = slow.iter().zip(fair::WEIGHTS).fold(0.0, |sum, (term, w)| sum + w * term);
        prop_assert_eq!(FairLeaf.value(&state).to_bits(), value.to_bits());
    }
}
