//! `/problems`.

use heldout::domain::refusal::Code;
use heldout::http::problem::CODES;

use super::{TestApp, snapshot};

#[tokio::test]
async fn the_type_of_every_problem_leads_to_its_explanation() {
    let app = TestApp::start().await;
    for code in CODES {
        let path = heldout::http::problem::type_uri(code);
        let page = app.get(&path).await.json();
        assert_eq!(page["type"], path.as_str());
        assert_eq!(page["status"], heldout::http::problem::status(code).as_u16());
        let html = app.get_as(&path, "text/html,application/xhtml+xml,*/*;q=0.8").await.text();
        assert!(html.contains(page["title"].as_str().unwrap()), "{html}");
        assert!(html.contains(page["remedy"].as_str().unwrap()), "{html}");
    }
    snapshot("problem_page", &app.get_as("/problems/lease-overlap", "text/html").await);
    assert_eq!(app.get("/problems").await.json().as_array().unwrap().len(), CODES.len());
}

#[tokio::test]
async fn an_unknown_code_is_a_problem() {
    let app = TestApp::start().await;
    assert_eq!(app.get("/problems/laziness").await.refused().0, Code::NotFound);
    assert_eq!(app.get("/problems/%ff").await.refused().0, Code::InvalidRequest);
}
