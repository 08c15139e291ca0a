//! `heldout bench` as a program.

use std::process::{Command, Output};

use serde_json::Value;

const LAYOUT: &str = "rows,cols,phase=none";

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heldout"))
        .env_remove("HELDOUT_DATA")
        .env_remove("HELDOUT_URL")
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .arg("bench")
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Every row of a quick run, in order; `L` is the layout.
const ROWS: &str = "
    engine/centre-first moves/s
    engine/simulated-move ns/board
    leaf/fair ns/board
    search/fair-d3s7 ms/decision
    search/fair-d3s7/leaves-evaluated per decision
    search/fair-d3s7/logical-work per decision
    search/fair-d4s7 ms/decision
    search/fair-d4s7/leaves-evaluated per decision
    search/fair-d4s7/logical-work per decision
    search/fair-d4s7/threads=2 ms/decision
    search/tables-d3s7 ms/decision
    search/tables-d3s7/leaves-evaluated per decision
    search/tables-d3s7/logical-work per decision
    search/tables-d4s7 ms/decision
    search/tables-d4s7/leaves-evaluated per decision
    search/tables-d4s7/logical-work per decision
    features/L ns/board
    value/L ns/board
    direct/L decisions/s
    training/L/threads=1 moves/s
    training/L/threads=2 moves/s
    training/L/threads=2,lockstep moves/s
    traffic/L/look-ups per move
    traffic/L/lines per move
    traffic/L/updates per move
    limit/L/look-ups moves/s
    limit/L/lines moves/s
    memory/read/1MB/2MB-pages lines/s
    memory/read/30MB/2MB-pages lines/s
    memory/read/250MB/2MB-pages lines/s
    memory/update/1MB/2MB-pages records/s
    memory/update/30MB/2MB-pages records/s
    memory/update/250MB/2MB-pages records/s
    memory/read/1MB/4KB-pages lines/s
    memory/read/30MB/4KB-pages lines/s
    memory/read/250MB/4KB-pages lines/s
    memory/update/1MB/4KB-pages records/s
    memory/update/30MB/4KB-pages records/s
    memory/update/250MB/4KB-pages records/s
";

/// What is known only where the system tells the sizes of its caches.
fn needs_caches(name: &str) -> bool {
    name.contains("lines-beyond-") || name.ends_with("/caches")
}

#[test]
fn a_quick_run_has_every_row_with_a_figure() {
    let answer = bench(&["--quick", "--json", "--layout", LAYOUT]);
    assert!(answer.status.success(), "{}", text(&answer.stderr));
    let report: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let name = |row: &Value| row["name"].as_str().unwrap().to_owned();
    let names: Vec<String> = rows
        .iter()
        .filter(|row| !needs_caches(&name(row)))
        .map(|row| format!("{} {}", name(row), row["unit"].as_str().unwrap()))
        .collect();
    let expected = ROWS.replace("/L", &format!("/{LAYOUT}"));
    let expected: Vec<&str> = expected.trim().lines().map(str::trim).collect();
    assert_eq!(names, expected, "{names:#?}");
    for row in rows {
        for figure in ["median", "fastest", "slowest"] {
            // A cache may hold everything there is; all other figures are of something.
            let least = if needs_caches(&name(row)) { 0.0 } else { f64::MIN_POSITIVE };
            assert!(row[figure].as_f64().is_some_and(|f| f >= least), "{row}");
        }
        let timed = row["runs"].as_u64().unwrap() > 1;
        assert_eq!(row["utilisation"].as_f64().is_some_and(|share| share > 0.0), timed, "{row}");
    }
    assert_eq!(report["command"], format!("heldout bench --quick --json --layout {LAYOUT}"));
    for part in ["model", "logicalCpus", "caches", "instructionSet", "instructionSets"] {
        assert!(report["machine"].get(part).is_some(), "{part}");
    }
    assert!(report["build"].as_str().unwrap().starts_with(env!("CARGO_PKG_VERSION")));
    let skipped = report["skipped"].as_array().unwrap();
    assert_eq!(skipped.len(), 1, "{skipped:?}");
    assert_eq!(skipped[0]["name"], "memory/*/4GB");
}

#[test]
fn a_selection_is_a_table_of_those_rows() {
    let shown = text(&bench(&["--quick", "--only", "leaf/", "--only", "memory/read/1MB"]).stdout);
    let names: Vec<&str> =
        shown.lines().skip(3).map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(
        names,
        ["leaf/fair", "memory/read/1MB/2MB-pages", "memory/read/1MB/4KB-pages", "not"],
        "{shown}"
    );
    assert!(shown.contains("instructions: "), "{shown}");
}

#[test]
fn what_cannot_be_measured_is_refused_with_one_error() {
    let refused = |answer: &Output, code: i32| {
        assert_eq!(answer.status.code(), Some(code));
        assert!(answer.stdout.is_empty());
        text(&answer.stderr)
    };
    let words = refused(&bench(&["--layout", "rows,cols,windows"]), 3);
    assert!(words.starts_with("refused: ") && words.contains("windows"), "{words}");
    assert_eq!(words.matches("is not a layout").count(), 1, "{words}");

    let forced = Command::new(env!("CARGO_BIN_EXE_heldout"))
        .env("HELDOUT_INSTRUCTIONS", "avx9")
        .args(["bench", "--quick"])
        .output()
        .unwrap();
    let words = refused(&forced, 2);
    assert_eq!(words.lines().count(), 1, "{words}");
    assert!(words.contains("avx9") && words.contains("portable"), "{words}");
}

#[test]
fn a_curve_is_a_line_per_point_and_a_figure() {
    let folder = tempfile::tempdir().unwrap();
    let figure = folder.path().join("training.svg");
    let arguments = ["--curve", "training", "--layout", LAYOUT, "--moves", "3000", "--svg"];
    let answer = bench(&[arguments.as_slice(), &[figure.to_str().unwrap()]].concat());
    assert!(answer.status.success(), "{}", text(&answer.stderr));
    let lines = text(&answer.stdout);
    let point: Value = serde_json::from_str(lines.trim()).unwrap();
    assert_eq!(point["layout"], LAYOUT);
    assert!(point["moves"].as_u64().is_some_and(|moves| moves >= 3000), "{point}");
    for field in ["movesPerSecond", "movesPerSecondOfTheWall", "lines", "residentBytes"] {
        assert!(point[field].as_f64().is_some_and(|figure| figure > 0.0), "{field}: {point}");
    }
    let svg = std::fs::read_to_string(figure).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("moves per second"), "{svg}");
}
