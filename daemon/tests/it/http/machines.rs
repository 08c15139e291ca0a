//! `/api/v1/machines`.

use heldout::domain::refusal::Code;
use serde_json::json;

use super::{TestApp, snapshot};

#[tokio::test]
async fn a_machine_profile_is_served_as_it_was_taken() {
    let app = TestApp::start().await;
    let profile = json!({"cpu": {"model": null, "logical": 2}, "memory": {"total_bytes": 1024}});
    let machine = app.lab.store.add_machine(profile.clone()).await.unwrap();
    let path = format!("/api/v1/machines/{}", machine.id);
    let read = app.get(&path).await;
    snapshot("machine", &read);
    assert_eq!(read.json()["profile"], profile);
    let list = app.get("/api/v1/machines").await.json();
    assert!(list["items"].as_array().unwrap().contains(&read.json()));
}

#[tokio::test]
async fn an_unknown_machine_is_refused() {
    let app = TestApp::start().await;
    let unknown = app.get("/api/v1/machines/MACH-20200101T000000Z-00000000").await;
    assert_eq!(unknown.refused().0, Code::NotFound);
    let unreadable = app.get("/api/v1/machines/here").await;
    assert_eq!(unreadable.refused(), (Code::InvalidRequest, vec!["/path/id".into()]));
    assert_eq!(app.get("/api/v1/machines?after=1").await.refused().0, Code::InvalidRequest);
}
