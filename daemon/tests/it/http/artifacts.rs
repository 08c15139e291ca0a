//! `/api/v1/artifacts`.

use heldout::domain::refusal::Code;
use reqwest::header::{HeaderMap, IF_NONE_MATCH};
use reqwest::{Method, StatusCode};
use sha2::{Digest as _, Sha256};

use super::{TestApp, snapshot};

#[tokio::test]
async fn an_artefact_is_served_with_its_digests() {
    let app = TestApp::start().await;
    let screening = app.lab.screening().await;
    let plain = vec![7_u8; 300_000];
    let run = Some(&screening.run.id);
    let artifact =
        app.app.archive().publish("table", "candidate", run, |to| to.write_all(&plain)).unwrap();
    app.lab.store.add_artifact(&artifact).await.unwrap();
    let digest = hex::encode(Sha256::digest(&plain));
    let path = format!("/api/v1/artifacts/{digest}");
    let metadata = app.get(&path).await;
    snapshot("artifact", &metadata);
    assert_eq!(metadata.json()["bytes"], plain.len());
    let known = HeaderMap::from_iter([(IF_NONE_MATCH, metadata.headers["etag"].clone())]);
    let again = app.send(Method::GET, &path, known, None).await;
    assert_eq!(again.status, StatusCode::NOT_MODIFIED);

    let content = app.get(&format!("{path}/content")).await;
    assert_eq!(content.body, plain);
    assert_eq!(content.header("etag"), format!("\"{digest}\""));
    assert_eq!(content.header("content-length"), plain.len().to_string());

    let list = app.get(&format!("/api/v1/runs/{}/artifacts", screening.run.id)).await;
    assert_eq!(list.json(), serde_json::json!([metadata.json()]));
}

#[tokio::test]
async fn an_unknown_artefact_is_refused() {
    let app = TestApp::start().await;
    let unknown = format!("/api/v1/artifacts/{}", "0".repeat(64));
    assert_eq!(app.get(&unknown).await.refused().0, Code::NotFound);
    assert_eq!(app.get(&format!("{unknown}/content")).await.refused().0, Code::NotFound);
    for digest in ["0", "../../etc/passwd", &"g".repeat(64), &"A".repeat(64)] {
        let digest = digest.replace('/', "%2F");
        let answer = app.get(&format!("/api/v1/artifacts/{digest}")).await;
        assert_eq!(answer.refused(), (Code::InvalidRequest, vec!["/path/sha256".into()]));
    }
    let nobody = app.get(&format!("/api/v1/runs/{}/artifacts", super::NO_RUN)).await;
    assert_eq!(nobody.refused().0, Code::NotFound);
}
