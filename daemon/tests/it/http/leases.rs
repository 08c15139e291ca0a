//! `/api/v1/leases`.

use heldout::domain::refusal::Code;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{NO_EXPERIMENT, SMALL, TestApp, snapshot};
use crate::lab::table;

async fn with_experiment() -> (TestApp, Value) {
    let app = TestApp::start().await;
    let frozen = app.frozen(SMALL).await;
    (app, frozen)
}

#[tokio::test]
async fn a_lease_is_reserved_listed_and_cancelled() {
    let (app, frozen) = with_experiment().await;
    let experiment = &frozen["experiment"]["id"];
    let drawn =
        json!({"experiment": experiment, "name": "spare", "role": "training", "count": 100});
    let drawn = app.post("/api/v1/leases", &drawn).await;
    snapshot("reserved_lease", &drawn);
    let pinned = json!({
        "experiment": experiment, "name": "pinned", "role": "validation",
        "start": "0x01000000", "count": 16,
    });
    let pinned = app.post("/api/v1/leases", &pinned).await;
    assert_eq!(pinned.status, StatusCode::CREATED, "{}", pinned.text());
    assert_eq!(pinned.json()["start"], "0x01000000");
    assert_eq!(app.get(pinned.header("location")).await.json(), pinned.json());

    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap();
        items.iter().map(|lease| lease["name"].as_str().unwrap().to_owned()).collect()
    };
    let list = app.get("/api/v1/leases").await.json();
    assert_eq!(names(&list), ["pinned", "screen", "spare"], "by their seeds");
    let role = app.get("/api/v1/leases?role=held-out&state=reserved").await.json();
    assert_eq!(names(&role), ["screen"]);
    let of = format!("/api/v1/leases?experiment={}&limit=2", experiment.as_str().unwrap());
    let page = app.get(&of).await.json();
    assert_eq!(names(&page), ["pinned", "screen"]);
    let rest = app.get(&format!("{of}&after={}", page["next"].as_str().unwrap())).await.json();
    assert_eq!(names(&rest), ["spare"]);
    assert_eq!(rest["next"], Value::Null);

    let cancel = format!("{}/cancel", pinned.header("location"));
    let cancelled = app.post(&cancel, &json!({"reason": "not needed"})).await;
    snapshot("cancelled_lease", &cancelled);
    let again = app.post(&cancel, &json!({"reason": "not needed"})).await;
    assert_eq!(again.refused().0, Code::WrongState);
    assert_eq!(names(&app.get("/api/v1/leases?state=cancelled").await.json()), ["pinned"]);
}

#[tokio::test]
async fn every_reading_of_a_lease_is_told() {
    let (app, frozen) = with_experiment().await;
    let experiment = &frozen["experiment"]["id"];
    let request =
        json!({"experiment": experiment, "name": "games", "role": "training", "count": 16});
    let lease = app.post("/api/v1/leases", &request).await;
    let path = format!("{}/readings", lease.header("location"));
    assert_eq!(app.get(&path).await.json(), json!([]));
    let twice = app.post("/api/v1/leases", &request).await;
    assert_eq!(twice.status, StatusCode::CONFLICT, "a retry reserves nothing: {}", twice.text());
    let screening = app.lab.screening().await;
    app.lab.store.add_artifact(&table('a', None)).await.unwrap();
    app.lab.fill_the_rest(&screening).await;
    let read = app.get("/api/v1/leases?role=training&state=opened").await.json();
    let read = read["items"][0]["id"].as_str().unwrap();
    snapshot("readings", &app.get(&format!("/api/v1/leases/{read}/readings")).await);
    let nobody = app.get("/api/v1/leases/SL-20200101T000000Z-00000000/readings").await;
    assert_eq!(nobody.refused().0, Code::NotFound);
}

#[tokio::test]
async fn seeds_are_leased_once() {
    let (app, frozen) = with_experiment().await;
    let experiment = &frozen["experiment"]["id"];
    let held = &frozen["leases"][0];
    let request = json!({
        "experiment": experiment, "name": "other", "role": "training", "start": held["start"], "count": 1,
    });
    let refused = app.post("/api/v1/leases", &request).await;
    assert_eq!(refused.refused().0, Code::LeaseOverlap);
    assert!(refused.text().contains(held["id"].as_str().unwrap()), "{}", refused.text());
    for start in ["0x7d000000", "0xd70000ff", "0xa5277fff"] {
        let request = json!({
            "experiment": experiment, "name": "other", "role": "held-out", "start": start, "count": 1,
        });
        let refused = app.post("/api/v1/leases", &request).await;
        assert_eq!(refused.refused().0, Code::LeaseOverlap, "{start}");
    }
    snapshot("blocked_ranges", &app.get("/api/v1/blocked-ranges").await);

    let before = app.dump().await.len();
    let requests: Vec<_> = (0..6)
        .map(|number| {
            json!({
                "experiment": experiment, "name": format!("race-{number}"), "role": "held-out",
                "start": "0x02000000", "count": 64,
            })
        })
        .collect();
    let answers =
        futures::future::join_all(requests.iter().map(|r| app.post("/api/v1/leases", r))).await;
    let won = answers.iter().filter(|a| a.status == StatusCode::CREATED).count();
    let lost = answers.iter().filter(|a| a.status == StatusCode::CONFLICT).count();
    assert_eq!((won, lost), (1, 5));
    assert!(app.dump().await.len() > before);
}

#[tokio::test]
async fn a_request_for_a_lease_is_refused_when_it_makes_no_sense() {
    let (app, frozen) = with_experiment().await;
    let before = app.dump().await;
    let good = json!({
        "experiment": frozen["experiment"]["id"], "name": "spare", "role": "training",
        "start": "0x01000000", "count": 16,
    });
    for (field, value, code, pointer) in [
        ("count", json!(0), Code::InvalidRequest, "/count"),
        ("count", json!(-1), Code::InvalidRequest, "/count"),
        ("count", json!(0x1_0000_0000_u64), Code::InvalidRequest, "/count"),
        ("count", json!(0xffff_ffff_u32), Code::InvalidRequest, "/count"),
        ("start", json!(5), Code::InvalidRequest, "/start"),
        ("start", json!("0x1_0000"), Code::InvalidRequest, "/start"),
        ("role", json!("secret"), Code::InvalidRequest, "/role"),
        ("name", json!("Two Words"), Code::InvalidRequest, "/name"),
        ("name", json!(""), Code::InvalidRequest, "/name"),
        ("experiment", json!("EX-1"), Code::InvalidRequest, "/experiment"),
        ("state", json!("opened"), Code::InvalidRequest, "/state"),
    ] {
        let mut request = good.clone();
        request[field] = value.clone();
        let answer = app.post("/api/v1/leases", &request).await;
        assert_eq!(answer.refused(), (code, vec![pointer.to_owned()]), "{field} {value}");
    }
    let mut request = good.clone();
    request["experiment"] = json!(NO_EXPERIMENT);
    assert_eq!(app.post("/api/v1/leases", &request).await.refused().0, Code::NotFound);
    let twice = good.to_string().replacen('{', "{\"count\":1,", 1);
    let twice = app.post_bytes("/api/v1/leases", "application/json", twice).await;
    assert_eq!(twice.refused().0, Code::InvalidRequest);
    let broken =
        app.post_bytes("/api/v1/leases", "application/json", &b"{\"name\":\"\xff\"}"[..]).await;
    assert_eq!(broken.refused().0, Code::MalformedDocument);
    let toml = app.post_bytes("/api/v1/leases", "application/toml", "count = 1").await;
    assert_eq!(toml.refused().0, Code::UnsupportedMediaType);
    for query in ["state=open", "role=secret", "experiment=EX-1"] {
        let (code, pointers) = app.get(&format!("/api/v1/leases?{query}")).await.refused();
        let name = query.split('=').next().unwrap();
        assert_eq!((code, pointers), (Code::InvalidRequest, vec![format!("/query/{name}")]));
    }
    let missing = "/api/v1/leases/SL-20200101T000000Z-00000000";
    assert_eq!(app.get(missing).await.refused().0, Code::NotFound);
    let cancel = app.post(&format!("{missing}/cancel"), &json!({"reason": "x"})).await;
    assert_eq!(cancel.refused().0, Code::NotFound);
    assert_eq!(app.dump().await, before);
}
