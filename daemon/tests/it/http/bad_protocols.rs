//! Every bad protocol over HTTP: its own refusal, and a database as before.

use heldout::domain::protocol::{MediaType, Role, parse};
use heldout::domain::refusal::Code;

use super::{SMALL, TestApp};
use crate::bad_protocols::all;
use crate::lab::{block, held_out, protocol};

#[tokio::test]
async fn every_bad_protocol_is_refused_with_a_pointer_and_changes_nothing() {
    let app = TestApp::start().await;
    app.frozen(SMALL).await;
    let before = app.dump().await;
    let mut refused = 0;
    for document in all().into_iter().filter(|document| document.needs.is_none()) {
        let media = match document.media {
            MediaType::Toml => "application/toml",
            MediaType::Json => "application/json",
        };
        let bytes = document.bytes.clone();
        let answer = app.post_bytes("/api/v1/experiments", media, bytes).await;
        let name = document.name;
        assert!(answer.status.is_client_error(), "{name}: {}", answer.text());
        let problem = answer.problem();
        let known = parse(&document.bytes, document.media).unwrap_err();
        assert_eq!(problem.code, known.code, "{name}");
        if problem.code == Code::TooLarge {
            assert_eq!(problem.errors[0].pointer, "", "{name}");
        } else {
            assert!(!problem.errors.is_empty(), "{name} has no pointer");
            assert_eq!(problem.errors, known.errors, "{name}");
            assert_eq!((problem.detail, problem.hint), (known.detail, known.hint), "{name}");
        }
        assert_eq!(app.dump().await, before, "{name} changed the database");
        refused += 1;
    }
    assert!(refused >= 30, "only {refused} documents");
}

/// Documents that are good as such and are refused by what is on record.
#[tokio::test]
async fn what_is_on_record_refuses_the_rest_and_stays_as_it_is() {
    let app = TestApp::start().await;
    let mut training = protocol("training seeds", 4);
    let seeds = block(Role::Training, Some(0xa530_0000), 16);
    training.seeds.insert("training".into(), seeds);
    app.lab.freeze(training).await;
    let mut opened = protocol("an opened block", 4);
    opened.seeds.insert("screen".into(), block(Role::HeldOut, Some(0xa52f_2140), 256));
    let frozen = app.lab.freeze(opened).await;
    let run = app.lab.running(&frozen).await;
    let lease = held_out(&frozen);
    app.lab.store.open_lease(&lease.id, &run.id, &run.protocol_sha256, &[]).await.unwrap();

    let before = app.dump().await;
    let mut refused = Vec::new();
    for document in all().into_iter().filter(|document| document.needs.is_some()) {
        assert_eq!(document.media, MediaType::Toml);
        let path = "/api/v1/experiments";
        let answer = app.post_bytes(path, "application/toml", document.bytes).await;
        let (code, pointers) = answer.refused();
        let needs = document.needs.unwrap();
        assert!(needs.contains(&code.name()), "{needs}: {}", answer.text());
        assert!(!pointers.is_empty(), "{} has no pointer: {}", document.name, answer.text());
        assert_eq!(app.dump().await, before, "{} changed the database", document.name);
        refused.push(code);
    }
    for code in [Code::NotFound, Code::LeaseOverlap, Code::MissingTable] {
        assert!(refused.contains(&code), "no {code:?} in {refused:?}");
    }
}
