//! `heldout status`, `watch` and `leases`: reading what is on record.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::out::table;
use super::{Exit, Named, Session, out, run_id, verdict};
use crate::app::{protocol_and_status, state_name};
use crate::domain::ids::RunId;
use crate::domain::records::{Event, Lease, Origin, Run, RunState};
use crate::domain::refusal::{Code, Refusal};
use crate::exec::status::RunStatus;
use crate::store::{LeaseFilter, Page, RunFilter};

/// How often `watch` asks.
const POLL: Duration = Duration::from_millis(500);
/// Events asked for at once.
const EVENTS: u32 = 500;

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// The run, or `latest`; all runs when absent.
    #[arg(value_parser = run_id)]
    run: Option<Named>,
}

#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// The run, or `latest`; everything when absent.
    #[arg(value_parser = run_id)]
    run: Option<Named>,
    /// Show what happened so far and end.
    #[arg(long)]
    once: bool,
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn unreadable(error: serde_json::Error) -> Refusal {
    tracing::debug!(%error, "answer of the daemon");
    Refusal::new(Code::Internal, "the daemon's answer is not what this program expects")
}

pub(super) async fn status(session: &Session, arguments: &StatusArgs) -> Result<Exit, Refusal> {
    match &arguments.run {
        Some(run) => one(session, &session.resolve(run).await?).await,
        None => all(session).await,
    }
}

async fn one(session: &Session, run: &RunId) -> Result<Exit, Refusal> {
    if let Some(remote) = session.remote() {
        let answer = remote.get(&format!("/runs/{run}")).await?;
        if session.common.json {
            out::json(&answer)?;
        } else {
            show(&serde_json::from_value(answer).map_err(unreadable)?);
        }
        return Ok(Exit::Done);
    }
    let (store, _) = session.read().await?;
    let (protocol, status) = protocol_and_status(&store, run).await?;
    if session.common.json {
        out::json(&status)?;
        return Ok(Exit::Done);
    }
    show(&status);
    if let Some(result) = &status.result {
        if status.run.origin == Origin::Own {
            out::line(&verdict::report(&protocol, &status, result, "heldout")?);
        } else {
            out::line(&format!("\n{}", result.summary));
        }
    }
    Ok(Exit::Done)
}

fn show(status: &RunStatus) {
    let run = &status.run;
    out::line(&format!("{} of {}: {}", run.id, run.experiment_id, state_name(run.state)));
    if run.origin == Origin::Imported {
        out::line("  imported: its data was not made by this program");
    }
    if let Some(reason) = &run.reason {
        out::line(&format!("  {reason}"));
    }
    let rows: Vec<Vec<String>> = status
        .units
        .iter()
        .map(|unit| {
            let state = match serde_json::to_value(unit.state) {
                Ok(Value::String(state)) => state,
                _ => String::new(),
            };
            vec![
                unit.key.clone(),
                state,
                format!("{}/{}", unit.done, unit.total),
                format!("attempt {}", unit.attempt),
                unit.reason.clone().unwrap_or_default(),
            ]
        })
        .collect();
    out::line(&table(&rows));
}

async fn all(session: &Session) -> Result<Exit, Refusal> {
    let runs: Vec<Run> = if let Some(remote) = session.remote() {
        let runs = remote.list("/runs").await?;
        serde_json::from_value(Value::Array(runs)).map_err(unreadable)?
    } else {
        let (store, _) = session.read().await?;
        let page = Page { after: None, limit: crate::store::PAGE_LIMIT };
        store.runs(&RunFilter::default(), &page).await?
    };
    if session.common.json {
        out::json(&runs)?;
        return Ok(Exit::Done);
    }
    let rows: Vec<Vec<String>> = runs
        .iter()
        .map(|run| {
            let origin = if run.origin == Origin::Imported { "imported" } else { "" };
            vec![
                run.id.to_string(),
                state_name(run.state),
                run.created_at.strftime("%Y-%m-%d %H:%M").to_string(),
                run.experiment_id.to_string(),
                origin.to_owned(),
            ]
        })
        .collect();
    out::line(&table(&rows));
    Ok(Exit::Done)
}

pub(super) async fn watch(session: &Session, arguments: &WatchArgs) -> Result<Exit, Refusal> {
    let mut after = 0;
    let run = match &arguments.run {
        Some(named) => Some(session.resolve(named).await?),
        None => None,
    };
    let local = match session.remote() {
        Some(_) => None,
        None => Some(session.read().await?.0),
    };
    loop {
        let events: Vec<Event> = match (&local, session.remote()) {
            (Some(store), _) => store.events(after, EVENTS, run.as_ref()).await?,
            (None, Some(remote)) => {
                let of = run.as_ref().map_or_else(String::new, |run| format!("&run={run}"));
                let answer =
                    remote.get(&format!("/events?after={after}&limit={EVENTS}{of}")).await?;
                serde_json::from_value(answer["items"].clone()).map_err(unreadable)?
            }
            (None, None) => Vec::new(),
        };
        let is_quiet = events.is_empty();
        for event in events {
            after = event.seq;
            if session.common.json {
                let text = serde_json::to_string(&event).map_err(unreadable)?;
                out::line(&text);
            } else {
                out::line(&format!(
                    "{:>6} {} {} {}",
                    event.seq, event.at, event.kind, event.subject
                ));
            }
        }
        if !is_quiet {
            continue;
        }
        if arguments.once {
            return Ok(Exit::Done);
        }
        if let Some(run) = &run
            && is_over(session, local.as_ref(), run).await?
        {
            return Ok(Exit::Done);
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn is_over(
    session: &Session,
    local: Option<&crate::store::Store>,
    run: &RunId,
) -> Result<bool, Refusal> {
    let state = match (local, session.remote()) {
        (Some(store), _) => store.run(run).await?.state,
        (None, Some(remote)) => {
            let answer = remote.get(&format!("/runs/{run}")).await?;
            serde_json::from_value(answer["run"]["state"].clone()).map_err(unreadable)?
        }
        (None, None) => return Ok(true),
    };
    Ok(!matches!(state, RunState::Queued | RunState::Running))
}

pub(super) async fn leases(session: &Session) -> Result<Exit, Refusal> {
    let leases: Vec<Lease> = if let Some(remote) = session.remote() {
        let leases = remote.list("/leases").await?;
        serde_json::from_value(Value::Array(leases)).map_err(unreadable)?
    } else {
        let (store, _) = session.read().await?;
        let mut page = Page { after: None, limit: crate::store::PAGE_LIMIT };
        let mut all = Vec::new();
        loop {
            let found = store.leases(&LeaseFilter::default(), &page).await?;
            let Some(last) = found.last() else { break all };
            page.after = Some(last.id.to_string());
            all.extend(found);
        }
    };
    if session.common.json {
        out::json(&leases)?;
        return Ok(Exit::Done);
    }
    let mut rows = Vec::new();
    for lease in &leases {
        let word = |value: Value| value.as_str().unwrap_or_default().to_owned();
        let role = serde_json::to_value(lease.role).map_err(unreadable)?;
        let state = serde_json::to_value(lease.state).map_err(unreadable)?;
        let opened = lease.opening.as_ref().map_or_else(String::new, |opening| {
            format!("by {} at {}", opening.run_id, opening.opened_at.strftime("%Y-%m-%d %H:%M"))
        });
        rows.push(vec![
            lease.id.to_string(),
            lease.start.to_string(),
            lease.count.to_string(),
            word(role),
            word(state),
            lease.name.clone(),
            opened,
        ]);
    }
    out::line(&table(&rows));
    Ok(Exit::Done)
}
