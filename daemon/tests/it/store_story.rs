//! One experiment from the freeze to the verdict, through the store alone.

use heldout::domain::records::{LeaseState, RunState, Validity};

use crate::lab::Lab;

#[tokio::test]
async fn a_screen_goes_from_freeze_to_verdict_and_everything_is_an_event() {
    let lab = Lab::new().await;
    let mut wake = lab.store.subscribe();
    let (screening, result) = lab.judged().await;

    let run = lab.store.run(&screening.run.id).await.unwrap();
    assert_eq!((run.state, run.validity), (RunState::Completed, Validity::Valid));
    assert_eq!(lab.store.result_of(&run.id).await.unwrap(), Some(result.clone()));
    assert_eq!(lab.store.result(&result.id).await.unwrap(), result);
    let lease = lab.store.lease(&screening.lease.id).await.unwrap();
    assert_eq!(lease.state, LeaseState::Opened);
    assert_eq!(lease.opening.unwrap().run_id, run.id);
    let games = lab.store.all_games(&run.id).await.unwrap();
    let shallow: Vec<_> = (0..4).map(|o| screening.game("shallow", o)).collect();
    let deep: Vec<_> = (0..4).map(|o| screening.game("deep", o)).collect();
    assert_eq!(games, [shallow, deep].concat());

    let events = lab.store.events(0, 1000, None).await.unwrap();
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>());
    assert_eq!(lab.store.verify_event_chain().await.unwrap(), events.len() as u64);
    assert!(wake.has_changed().unwrap());
    assert_eq!(*wake.borrow_and_update(), events.len() as u64);
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    for kind in [
        "theory-recorded",
        "experiment-frozen",
        "lease-reserved",
        "machine-recorded",
        "run-created",
        "run-running",
        "lease-opened",
        "units-planned",
        "unit-started",
        "games-stored",
        "unit-succeeded",
        "run-validity",
        "result-recorded",
        "run-completed",
    ] {
        assert!(kinds.contains(&kind), "no {kind} in {kinds:?}");
    }
    let of_run = lab.store.events(0, 1000, Some(&run.id)).await.unwrap();
    assert!(of_run.len() < events.len());
    assert!(of_run.iter().all(|event| event.run_id.as_ref() == Some(&run.id)));
}
