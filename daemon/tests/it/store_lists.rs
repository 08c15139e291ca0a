//! What is listed and told: pages, the history, and reading beside the writer.

use heldout::domain::protocol::TheoryRef;
use heldout::domain::refusal::Code;
use heldout::store::{LeaseFilter, Page, RunFilter, Store};
use sha2::{Digest as _, Sha256};

use crate::lab::{Lab, protocol};

#[tokio::test]
async fn lists_are_newest_first_and_pages_miss_none() {
    let lab = Lab::new().await;
    let mut made = Vec::new();
    for day in 1..=5 {
        lab.clock.set(format!("2026-12-0{day}T00:00:00Z").parse().unwrap());
        let mut protocol = protocol(&format!("day {day}"), 4);
        if let TheoryRef::New(draft) = &mut protocol.theory {
            draft.title = format!("theory {day}");
        }
        let frozen = lab.freeze(protocol).await;
        lab.running(&frozen).await;
        made.push(frozen.experiment.id);
    }
    made.reverse();
    let store = &lab.store;
    let all: Vec<_> =
        store.experiments(&Page::default()).await.unwrap().into_iter().map(|e| e.id).collect();
    assert_eq!(all, made);
    let mut page = Page { after: None, limit: 2 };
    let mut paged = Vec::new();
    loop {
        let part = store.experiments(&page).await.unwrap();
        let Some(last) = part.last() else { break };
        page.after = Some(last.id.to_string());
        paged.extend(part.into_iter().map(|e| e.id));
    }
    assert_eq!(paged, made);
    assert_eq!(
        store.runs(&RunFilter::default(), &Page { after: None, limit: 3 }).await.unwrap().len(),
        3
    );
    let of_one = RunFilter { experiment: Some(made[0].clone()), ..RunFilter::default() };
    assert_eq!(store.runs(&of_one, &Page::default()).await.unwrap().len(), 1);
    assert_eq!(store.theories(&Page::default()).await.unwrap().len(), 5);
    assert_eq!(store.machines(&Page { after: None, limit: 0 }).await.unwrap().len(), 1);
    let nobody = Page { after: Some("EX-20261201-nobody-00000000".into()), limit: 2 };
    let refusals = [
        store.experiments(&nobody).await.unwrap_err(),
        store.theories(&nobody).await.unwrap_err(),
        store.runs(&RunFilter::default(), &nobody).await.unwrap_err(),
        store.leases(&LeaseFilter::default(), &nobody).await.unwrap_err(),
        store.results(&nobody).await.unwrap_err(),
        store.machines(&nobody).await.unwrap_err(),
        store.datasets(&nobody).await.unwrap_err(),
        store.contributions(&nobody).await.unwrap_err(),
    ];
    assert!(refusals.iter().all(|refusal| refusal.code == Code::InvalidRequest), "{refusals:?}");
    let theory = &store.theories(&Page::default()).await.unwrap()[4];
    assert_eq!(store.theory(&theory.id).await.unwrap().title, "theory 1");
}

#[tokio::test]
async fn a_clock_that_goes_back_does_not_reorder_the_history() {
    let lab = Lab::new().await;
    lab.freeze(protocol("now", 4)).await;
    lab.clock.set("2020-01-01T00:00:00Z".parse().unwrap());
    lab.freeze(protocol("then", 4)).await;
    let events = lab.store.events(0, 1000, None).await.unwrap();
    assert!(events.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq));
    assert!(events.last().unwrap().at < events[0].at);
    assert_eq!(lab.store.verify_event_chain().await.unwrap(), events.len() as u64);
    let tail = lab.store.events(2, 2, None).await.unwrap();
    assert_eq!(tail, events[2..4]);
}

/// The hash that a client computes from nothing but the served events.
#[tokio::test]
async fn the_chain_can_be_recomputed_from_what_is_served() {
    let lab = Lab::new().await;
    lab.judged().await;
    let mut previous = "0".repeat(64);
    for event in lab.store.events(0, 1000, None).await.unwrap() {
        let mut served = serde_json::to_value(&event).unwrap();
        let hash = served.as_object_mut().unwrap().remove("hash").unwrap();
        let canonical = serde_json_canonicalizer::to_string(&served).unwrap();
        let expected = hex::encode(Sha256::digest(format!("{previous}{canonical}")));
        assert_eq!(hash, expected, "event {}", event.seq);
        previous = expected;
    }
}

#[tokio::test]
async fn a_store_open_for_reading_reads_beside_the_writer_and_writes_nothing() {
    let lab = Lab::new().await;
    let frozen = lab.freeze(protocol("reading", 4)).await;
    let reader = Store::open_read_only(&lab.path(), lab.clock.clone()).await.unwrap();
    assert_eq!(reader.experiment(&frozen.experiment.id).await.unwrap(), frozen.experiment);
    let run = lab.running(&frozen).await;
    assert_eq!(reader.run(&run.id).await.unwrap(), run);
    reader.ping().await.unwrap();
    lab.store.ping().await.unwrap();
    let refusal = reader.cancel_lease(&frozen.leases[0].id, "x").await.unwrap_err();
    assert_eq!(refusal.code, Code::Locked);
    let nowhere = lab.path().with_file_name("nothing.sqlite");
    assert_eq!(
        Store::open_read_only(&nowhere, lab.clock.clone()).await.unwrap_err().code,
        Code::NotFound
    );
    assert!(!nowhere.exists());
    std::fs::write(&nowhere, b"this is no database at all, though it is a file").unwrap();
    for refusal in [
        Store::open(&nowhere, lab.clock.clone()).await.unwrap_err(),
        Store::open_read_only(&nowhere, lab.clock.clone()).await.unwrap_err(),
    ] {
        assert_eq!(refusal.code, Code::Corrupt, "{refusal}");
    }
}
