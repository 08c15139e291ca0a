//! `heldout verify` and `heldout import`.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::{Exit, Named, Session, out, run_id};
use crate::app::VerifyOptions;
use crate::app::verify::verify as verify_run;
use crate::domain::refusal::Refusal;
use crate::shutdown;

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// The run, or `latest`.
    #[arg(value_parser = run_id)]
    run: Named,
    /// Play games of this arm again; may be given more than once. Every arm when absent.
    #[arg(long, value_name = "ARM")]
    replay: Vec<String>,
    /// Ordinals to play again, like 0..64; a number K means the first K.
    #[arg(long, value_name = "A..B", value_parser = games, default_value = "2")]
    games: Range<u32>,
}

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Folder of published runs.
    #[arg(default_value = "protocols/published")]
    folder: PathBuf,
}

/// `0..64`, or `64` for the first 64.
fn games(text: &str) -> Result<Range<u32>, String> {
    let number = |text: &str| {
        text.trim().parse::<u32>().map_err(|_| format!("{text:?} is not a number of games"))
    };
    let range = match text.split_once("..") {
        Some((from, to)) => number(from)?..number(to)?,
        None => 0..number(text)?,
    };
    if range.start > range.end {
        return Err(format!("{text}: the range ends before it begins"));
    }
    Ok(range)
}

pub(super) async fn verify(session: &Session, arguments: &VerifyArgs) -> Result<Exit, Refusal> {
    let run = session.resolve(&arguments.run).await?;
    let (store, archive) = session.read().await?;
    let options = VerifyOptions {
        replay: (!arguments.replay.is_empty()).then(|| arguments.replay.clone()),
        first: arguments.games.start,
        games: arguments.games.end - arguments.games.start,
    };
    let spinner = indicatif::ProgressBar::new_spinner();
    spinner.enable_steady_tick(std::time::Duration::from_millis(200));
    let noting = spinner.clone();
    let note = Arc::new(move |what: &str| noting.set_message(what.to_owned()));
    let report = verify_run(&store, &archive, &session.pools, &run, &options, note).await;
    spinner.finish_and_clear();
    let report = report?;
    if session.common.json {
        out::json(&report)?;
    } else {
        for check in &report.checks {
            let word = if check.passed { "PASS" } else { "FAIL" };
            out::line(&format!("{word} {:<28} {}", check.name, check.evidence));
        }
        let failed = report.checks.iter().filter(|check| !check.passed).count();
        out::line(&if report.passed {
            format!("{} verified: {} checks passed", report.run_id, report.checks.len())
        } else {
            format!(
                "{} NOT verified: {failed} of {} checks failed",
                report.run_id,
                report.checks.len()
            )
        });
    }
    Ok(if report.passed { Exit::Done } else { Exit::Negative })
}

pub(super) async fn import(session: &Session, arguments: &ImportArgs) -> Result<Exit, Refusal> {
    let app = session.open().await?;
    let imported = app.import_published(&arguments.folder).await;
    app.shutdown(shutdown::GRACE).await;
    let imported = imported?;
    if session.common.json {
        out::json(&imported)?;
    } else {
        for run in &imported {
            let word = if run.created { "imported" } else { "was here" };
            out::line(&format!("{word} {} ({}; {} games)", run.run_id, run.title, run.games));
        }
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::games;

    #[test]
    fn ranges_of_games() {
        assert_eq!(games("0..64").unwrap(), 0..64);
        assert_eq!(games("8").unwrap(), 0..8);
        assert_eq!(games("0").unwrap(), 0..0);
        for bad in ["", "a", "4..2", "-1..3", "1..2..3"] {
            assert!(games(bad).is_err(), "{bad}");
        }
    }
}
