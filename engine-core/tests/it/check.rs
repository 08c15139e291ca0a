//! Every gate passes on the library's own part and fails on a broken one.

use engine_core::check::identity::golden_trace;
use engine_core::check::playing::{Trial, leaf_in_search, search_determinism};
use engine_core::check::training::{self, Learned, serial_training_determinism, step_by_step};
use engine_core::check::{
    CheckOutcome, Effort, EngineIdentity, GateRun, GateSheet, Probe, Scattered, patterns, probes,
    promotion, run_all, run_tables, values,
};
use engine_core::drop7::{Board, PublicState};
use engine_core::leaf::fair::Workspace;
use engine_core::leaf::{BoardPart, FairLeaf, Leaf};
use engine_core::ntuple::direct::DirectPolicy;
use engine_core::ntuple::layout::Fill;
use engine_core::ntuple::leaf::TableLeaf;
use engine_core::ntuple::promote::warm_start;
use engine_core::ntuple::tables::{Record, STUDY_START};
use engine_core::ntuple::{Features, FrozenTables, Layout, TrainTables, Weights, codec};
use engine_core::progress::{StopToken, Unwatched};
use engine_core::screen::GameRow;

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn passes(outcome: &CheckOutcome) {
    assert!(outcome.passed, "{outcome:?}");
}

fn fails(outcome: &CheckOutcome, about: &str) {
    assert!(!outcome.passed, "{outcome:?}");
    assert!(outcome.evidence.contains(about), "{outcome:?} does not mention {about:?}");
}

fn extract(layout: &Layout, board: &Board, moves_remaining: u8) -> Vec<u64> {
    let mut features = Features::new();
    layout.features(board, moves_remaining, &mut features);
    features.as_slice().to_vec()
}

#[test]
fn probes_are_the_published_ones() {
    let probes = probes();
    let over = probes.iter().filter(|probe| probe.state.is_over()).count();
    assert_eq!((probes.len(), over), (553, 19));
}

#[test]
fn gate_codec() {
    let line = |word| u64::from(codec::line(word));
    let outcome = patterns::codec_vs_horner(patterns::CODEC_WORDS, line);
    passes(&outcome);
    assert!(outcome.evidence.starts_with("2000000 "), "{outcome:?}");
    let broken = |word: u32| line(word) + u64::from(word >> 24 == 9 && word & 0xff == 0x77);
    fails(&patterns::codec_vs_horner(patterns::CODEC_WORDS, broken), "has code");
    let truncated = |word: u32| line(word).min(9_999_998);
    fails(&patterns::codec_vs_horner(100, truncated), "9999998");
}

#[test]
fn gate_row_words() {
    let probes = probes();
    passes(&patterns::row_words_vs_accessor(&probes, codec::row_words));
    let reversed = |board: &Board| codec::row_words(&board.mirror());
    fails(&patterns::row_words_vs_accessor(&probes, reversed), "has rows");
    fails(&patterns::row_words_vs_accessor(&[], codec::row_words), "nothing was compared");
}

#[test]
fn gate_features() {
    let probes = probes();
    for text in patterns::LAYOUTS {
        let layout = layout(text);
        let real = |board: &Board, left| extract(&layout, board, left);
        passes(&patterns::features_vs_reference(&layout, &probes, real));
    }
    let text = "rows,cols,win23,win32,phase=all,fill=hgt5";
    let layout = layout(text);
    type Fault<'a> = (&'a str, Box<dyn Fn(&Board, u8) -> Vec<u64> + 'a>);
    let faults: [Fault<'_>; 4] = [
        ("the phase of the drop before", Box::new(|b, left| extract(&layout, b, left.max(2) - 1))),
        ("a table read twice", {
            Box::new(|b, left| {
                let mut indices = extract(&layout, b, left);
                indices[73] = indices[72];
                indices
            })
        }),
        ("32-bit indices", {
            Box::new(|b, left| {
                extract(&layout, b, left).into_iter().map(|i| u64::from(i as u32)).collect()
            })
        }),
        ("another layout of the same size", {
            let other = self::layout("rows,cols,win23,win32,phase=all,fill=occ5");
            Box::new(move |b, left| extract(&other, b, left))
        }),
    ];
    for (fault, broken) in faults {
        let outcome = patterns::features_vs_reference(&layout, &probes, broken);
        assert!(!outcome.passed, "{fault}: {outcome:?}");
        assert_eq!(outcome.name, format!("features-vs-reference[{text}]"));
    }
}

#[test]
fn gate_fill_buckets() {
    let probes = probes();
    for (fill, published) in
        [(Fill::Occ5, "[81, 107, 110, 147, 108]"), (Fill::Hgt5, "[127, 92, 134, 110, 90]")]
    {
        let layout = layout(&format!("rows,fill={}", fill.name()));
        let real = |board: &Board| layout.fill_bucket(board);
        let outcome = patterns::fill_bucket_vs_reference(fill, &probes, real);
        passes(&outcome);
        assert!(outcome.evidence.contains(published), "{outcome:?}");
        let shifted = |board: &Board| (real(board) + 1).min(4);
        fails(&patterns::fill_bucket_vs_reference(fill, &probes, shifted), "is in bucket");
        let few: Vec<Probe> =
            probes.iter().filter(|probe| real(probe.state.board()) > 0).copied().collect();
        fails(&patterns::fill_bucket_vs_reference(fill, &few, real), "was not reached");
    }
}

#[test]
fn gate_promotion() {
    let probes = probes();
    let source = promotion::source().unwrap();
    let promote = |source: &FrozenTables, layout| {
        warm_start(source, layout, STUDY_START).map_err(|error| error.to_string())
    };
    let gate = |promote: &dyn Fn(&FrozenTables, Layout) -> Result<TrainTables, String>| {
        promotion::promotion_preserves_value(Fill::Occ5, &source, &probes, false, promote)
    };
    passes(&gate(&promote));
    let forgets = |_: &FrozenTables, layout| Ok(TrainTables::fresh(layout, STUDY_START).unwrap());
    fails(&gate(&forgets), "became");
    let keeps_history = |source: &FrozenTables, layout: Layout| {
        let tables = promote(source, layout)?;
        let index = extract(&layout, probes[3].state.board(), 2)[0];
        let record = tables.record(index);
        tables.set_record(index, Record { error: 1.0, abs_error: 1.0, ..record });
        Ok(tables)
    };
    fails(&gate(&keeps_history), "history");
    fails(&gate(&|source, _| promote(source, *source.layout())), "promoted tables are");
    fails(&gate(&|_, _| Err("no memory".to_owned())), "no memory");
}

#[test]
#[ignore = "looks at six gigabytes of address space"]
fn gate_promotion_looks_at_every_entry() {
    let probes = probes();
    let source = promotion::source().unwrap();
    let gate = |spoil: bool| {
        promotion::promotion_preserves_value(
            Fill::Hgt5,
            &source,
            &probes,
            true,
            |source, layout| {
                let tables = warm_start(source, layout, STUDY_START).unwrap();
                if spoil {
                    let last = layout.entries() - 1;
                    let record = tables.record(last);
                    tables.set_record(last, Record { abs_error: 1.0, ..record });
                }
                Ok(tables)
            },
        )
    };
    passes(&gate(false));
    fails(&gate(true), "1 entries count as touched");
}

/// The value and the decision of scattered tables, as the gates ask for them.
fn scattered() -> Scattered {
    Scattered::new(layout("rows,cols,win23,win32,phase=cols"))
}

fn value(probe: &Probe) -> f64 {
    TableLeaf::new(scattered()).value(&probe.state)
}

fn decider() -> impl FnMut(&Probe) -> Option<usize> {
    let mut policy = DirectPolicy::new(scattered());
    move |probe| policy.decide(&probe.state).action
}

#[test]
fn gate_information_boundary() {
    let probes = probes();
    passes(&values::information_boundary(&probes, value, decider()));
    type Fault = (&'static str, fn(&Probe) -> f64);
    let faults: [Fault; 4] = [
        ("score", |probe| value(probe) + probe.score as f64),
        ("level", |probe| value(probe) + f64::from(probe.level)),
        ("moves played", |probe| value(probe) * f64::from(probe.moves_played % 2)),
        ("next disc", |probe| value(probe) + f64::from(probe.state.next_disc())),
    ];
    for (what, broken) in faults {
        let what = format!("changes with the {what}");
        fails(&values::information_boundary(&probes, broken, decider()), &what);
    }
    let mut honest = decider();
    let greedy = |probe: &Probe| {
        if probe.score > 50_000 { Some(0) } else { honest(probe) }
    };
    fails(&values::information_boundary(&probes, value, greedy), "decision");
}

#[test]
fn gate_reflection() {
    let probes = probes();
    passes(&values::reflection(&probes, value, decider()));
    let lopsided = |probe: &Probe| f64::from(probe.state.board().height(0));
    fails(&values::reflection(&probes, lopsided, decider()), "differ in value");
    let leftmost = |probe: &Probe| (0..7).find(|&c| probe.state.board().is_legal(c));
    fails(&values::reflection(&probes, value, leftmost), "on the mirror image");
}

#[test]
fn gate_legality() {
    let probes = probes();
    passes(&values::direct_policy_legality(&probes, decider()));
    fails(&values::direct_policy_legality(&probes, |_| Some(3)), "column Some(3)");
    fails(&values::direct_policy_legality(&probes, |_| None), "column None");
    let mut honest = decider();
    let undead = |probe: &Probe| honest(probe).or(Some(7));
    fails(&values::direct_policy_legality(&probes, undead), "column Some(7)");
}

#[test]
fn gate_finite() {
    let probes = probes();
    let fresh = |text| FrozenTables::fresh(layout(text), STUDY_START).unwrap();
    // The published profile sums entry numbers of the studies' layout, and values of one family of
    // thirty tables: rounding tells the number of tables apart.
    for (text, published) in [
        ("rows,cols,win23,win32,phase=cols", "checksums 53064919120400 and "),
        ("win32", " and 2211999.8"),
    ] {
        let outcome = values::finite_and_profile(&probes, &fresh(text));
        passes(&outcome);
        assert!(outcome.evidence.contains(published), "{outcome:?}");
    }
    for poison in [f32::NAN, f32::INFINITY] {
        let poisoned = FrozenTables::constant(layout("win23"), poison).unwrap();
        fails(&values::finite_and_profile(&probes, &poisoned), &format!("is worth {poison}"));
    }
}

#[test]
fn gate_search_determinism() {
    let trial = Trial::depth3().shortened(2, 12);
    let leaf = TableLeaf::new(scattered());
    let outcome = leaf_in_search("d3", &trial, leaf);
    passes(&outcome);
    let rows = trial.play(leaf, 1).unwrap();
    let total: u64 = rows.iter().map(|row| row.work).sum();
    assert!(outcome.evidence.contains(&format!("work {total}")), "{outcome:?}");
    let gate = |play: &dyn Fn(usize) -> Vec<GameRow>| {
        search_determinism("d3", &trial, None, |workers| Ok(play(workers)))
    };
    let spoiled = |change: fn(&mut GameRow)| {
        let mut rows = rows.clone();
        change(&mut rows[1]);
        rows
    };
    fails(
        &gate(&|workers| if workers == 1 { rows.clone() } else { spoiled(|row| row.work += 1) }),
        "with 4 workers",
    );
    fails(&gate(&|_| spoiled(|row| row.incomplete_decisions = 1)), "incomplete");
    fails(&gate(&|_| spoiled(|row| row.illegal_decisions = 1)), "illegal");
    fails(&gate(&|_| spoiled(|row| row.seed += 1)), "is not the game");
    fails(&gate(&|_| rows[..1].to_vec()), "1 games were played");
    let failing = search_determinism("d3", &trial, None, |_| Err("no threads".to_owned()));
    fails(&failing, "no threads");
}

#[test]
fn gate_deeper_search_does_more_work() {
    let trial = Trial::depth4().shortened(1, 2);
    let leaf = TableLeaf::new(scattered());
    let outcome = leaf_in_search("d4", &trial, leaf);
    passes(&outcome);
    assert!(outcome.evidence.contains(" vs "), "{outcome:?}");
    let rows = trial.play(leaf, 1).unwrap();
    let lazy = search_determinism("d4", &trial, Some(&rows), |_| Ok(rows.clone()));
    fails(&lazy, "work");
}

#[test]
#[ignore = "four games of 80 moves at depth 3, three times: half a minute"]
fn determinism_games_have_the_published_numbers() {
    let layout = layout("rows,cols,win23,win32,phase=cols");
    let tables = FrozenTables::fresh(layout, STUDY_START).unwrap();
    let outcome = leaf_in_search("d3", &Trial::depth3(), TableLeaf::new(&tables));
    passes(&outcome);
    assert!(outcome.evidence.contains("mean 124834,"), "{outcome:?}");
}

#[test]
#[ignore = "two games of 40 moves at depth 4: a minute"]
fn depth4_games_have_the_published_work() {
    let layout = layout("rows,cols,win23,win32,phase=cols");
    let tables = FrozenTables::fresh(layout, STUDY_START).unwrap();
    let once = Trial { workers: vec![2], ..Trial::depth4() };
    let outcome = leaf_in_search("d4", &once, TableLeaf::new(&tables));
    passes(&outcome);
    assert!(outcome.evidence.contains("work 352025645 vs 12237891"), "{outcome:?}");
}

#[test]
fn gate_serial_training() {
    let layout = layout(training::LAYOUT);
    let (tables, updates) =
        step_by_step(layout, training::FIRST_SEED, training::GAMES, training::MOVE_CAP).unwrap();
    let definition = Learned::of(&tables, updates);
    assert_eq!(
        definition,
        Learned { fingerprint: 0xb5c5_f933_5b6b_26dc, updates: 435, touched: 3177 },
        "{definition:x?}"
    );
    let fresh = TrainTables::fresh(layout, STUDY_START).unwrap();
    let initial = fresh.value(&{
        let mut features = Features::new();
        layout.features(&Board::INITIAL, 5, &mut features);
        features
    });
    let outcome = serial_training_determinism(initial, definition, || Ok(definition));
    passes(&outcome);
    assert!(outcome.evidence.contains("b5c5f9335b6b26dc, 435 updates, 3177"), "{outcome:?}");
    assert_eq!(training::by_trainer(), Ok(definition));
    let mut runs = 0;
    let drifting = || {
        runs += 1;
        Ok(Learned { touched: 3177 + runs / 2, ..definition })
    };
    fails(&serial_training_determinism(initial, definition, drifting), "the second training");
    fails(&serial_training_determinism(20.1, definition, || Ok(definition)), "20.1");
    let broken = serial_training_determinism(initial, definition, || Err("no memory".to_owned()));
    fails(&broken, "no memory");
}

fn sheet(run: &GateRun<'_>) -> GateSheet {
    run_all(run, &Unwatched, &StopToken::new())
}

#[test]
fn all_gates_pass_and_are_counted() {
    let run =
        GateRun { layouts: &[layout("win32,phase=none")], tables: None, effort: Effort::Quick };
    let sheet = sheet(&run);
    for outcome in &sheet.outcomes {
        passes(outcome);
    }
    assert!(sheet.passed());
    let features =
        sheet.outcomes.iter().filter(|o| o.name.starts_with("features-vs-reference[")).count();
    // The layout of this run spells one of the fixed ones: no second line for it.
    assert_eq!(features, patterns::LAYOUTS.len());
    let mut names: Vec<_> = sheet.outcomes.iter().map(|outcome| &outcome.name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), sheet.planned);
}

#[test]
fn a_sheet_with_a_missing_or_failed_gate_has_not_passed() {
    let tables = FrozenTables::fresh(layout("win23"), STUDY_START).unwrap();
    let stop = StopToken::new();
    stop.stop();
    let stopped = run_tables(&tables, Effort::Quick, &Unwatched, &stop);
    assert!(stopped.outcomes.is_empty() && stopped.planned > 0);
    assert!(!stopped.passed());
    let poisoned = FrozenTables::constant(layout("win23"), f32::NAN).unwrap();
    let sheet = run_tables(&poisoned, Effort::Quick, &Unwatched, &StopToken::new());
    assert_eq!(sheet.outcomes.len(), sheet.planned);
    assert!(!sheet.passed());
    let failed: Vec<_> =
        sheet.outcomes.iter().filter(|o| !o.passed).map(|o| o.name.as_str()).collect();
    assert!(failed.contains(&"finite-and-profile"), "{failed:?}");
}

#[derive(Clone, Copy)]
struct OffByOnePoint;

impl Leaf for OffByOnePoint {
    const READS_NEXT_DISC: bool = FairLeaf::READS_NEXT_DISC;
    type Scratch = Workspace;

    fn value(&self, state: &PublicState) -> f64 {
        let mut parts = Vec::new();
        self.board_parts(&[*state], &mut Workspace::default(), &mut parts);
        self.finish(parts[0], state.next_disc())
    }

    fn board_parts(
        &self,
        states: &[PublicState],
        workspace: &mut Workspace,
        parts: &mut Vec<BoardPart>,
    ) {
        FairLeaf.board_parts(states, workspace, parts);
        for (state, part) in states.iter().zip(parts.iter_mut().rev().take(states.len()).rev()) {
            part.value += f64::from(u8::from(state.board().occupied() == 33));
        }
    }

    fn finish(&self, part: BoardPart, next_disc: u8) -> f64 {
        FairLeaf.finish(part, next_disc)
    }
}

/// The identity of the engine as released. A change of this number is a change of what runs
/// compute: experiments that were frozen with another one are refused by this build.
#[test]
fn the_engine_is_the_one_that_was_released() {
    let identity = EngineIdentity::compute().unwrap();
    assert_eq!(identity.rules, "drop7-1");
    assert_eq!(
        identity.golden_trace,
        "c34404d6baad23c730b650445181e677d08aef7faafdc7afde013997c5d9ed85"
    );
}

#[test]
fn another_leaf_is_another_engine() {
    let ours = golden_trace(FairLeaf).unwrap();
    assert_eq!(ours, EngineIdentity::compute().unwrap().golden_trace);
    assert_ne!(ours, golden_trace(OffByOnePoint).unwrap());
}
