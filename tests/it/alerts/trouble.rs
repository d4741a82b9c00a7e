//! Providers and stores in trouble.

use serde_json::json;

use super::{alerts, ask, done, receiver, start, told_to};
use crate::support::gate::fare;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const FREE: &str = "budget = \"none\"";

#[tokio::test]
async fn a_breaker_that_opens_is_told_once_an_hour() {
    let (upstream, receiver) = (FakeUpstream::start(Step::ok(json!({})).status(500)).await, receiver().await);
    let breaker = "breaker = { failures = 2, cooldown = \"30s\" }";
    let gate = start(told_to(&receiver, breaker, FREE), &upstream).await;
    assert_eq!((ask(&gate, "Town0").await, ask(&gate, "Town1").await, ask(&gate, "Town2").await), (502, 502, 503));
    receiver.wait_for_calls(1).await;
    let alert = alerts(&receiver).remove(0);
    assert_eq!((&alert["kind"], &alert["subject"]), (&json!("breaker_open"), &json!("provider:google-routes")));
    gate.advance(31);
    assert_eq!(ask(&gate, "Town3").await, 502, "a probe, and it opens again");
    gate.advance(3600);
    assert_eq!(ask(&gate, "Town4").await, 502);
    done(&gate, "sent", 2).await;
    assert_eq!((receiver.calls(), upstream.calls()), (2, 4));
}

#[tokio::test]
async fn a_credential_that_is_refused_and_a_long_pause_are_told() {
    let denied = Step::ok(json!({ "error": { "status": "PERMISSION_DENIED" } })).status(403);
    let busy = |wait: &str| Step::ok(json!({})).status(429).header("retry-after", wait);
    let (upstream, receiver) = (FakeUpstream::start([denied, busy("60"), busy("61")]).await, receiver().await);
    let gate = start(told_to(&receiver, "", FREE), &upstream).await;
    assert_eq!(ask(&gate, "Town0").await, 502);
    receiver.wait_for_calls(1).await;
    assert_eq!(alerts(&receiver)[0]["kind"], "upstream_denied");
    assert_eq!(ask(&gate, "Town1").await, 503);
    gate.advance(60);
    assert_eq!(ask(&gate, "Town2").await, 503);
    receiver.wait_for_calls(2).await;
    let pause = alerts(&receiver).remove(0);
    assert_eq!((&pause["kind"], &pause["subject"]), (&json!("provider_pause"), &json!("provider:google-routes")));
    assert!(pause["message"].as_str().unwrap().contains("61 seconds"), "{pause}");
    assert_eq!((receiver.calls(), upstream.calls()), (2, 3));
}

#[tokio::test]
async fn a_store_that_is_lost_and_back_is_told() {
    let (upstream, receiver) = (FakeUpstream::start(Step::ok(fare())).await, receiver().await);
    let setup = told_to(&receiver, "", FREE).store("url = \"sqlite:{dir}/t.db\"\ntimeout = \"200ms\"\npatience = \"400ms\"");
    let gate = start(setup, &upstream).await;
    let db = rusqlite::Connection::open(gate.dir.path().join("t.db")).unwrap();
    // Somebody holds the file: nothing can be written.
    db.execute_batch("BEGIN EXCLUSIVE").unwrap();
    for town in 0..3 {
        ask(&gate, &format!("Town{town}")).await;
    }
    receiver.wait_for_calls(1).await;
    assert_eq!((&alerts(&receiver)[0]["kind"], &alerts(&receiver)[0]["subject"]), (&json!("store_lost"), &json!("store")));
    assert_eq!(receiver.calls(), 1, "that it reads well is no comfort");
    db.execute_batch("ROLLBACK").unwrap();
    for town in 3..6 {
        ask(&gate, &format!("Town{town}")).await;
    }
    receiver.wait_for_calls(2).await;
    assert_eq!(alerts(&receiver)[0]["kind"], "store_back");
}

#[tokio::test]
async fn without_a_webhook_an_alert_is_a_line_of_the_log_and_a_reload_may_name_one() {
    let (upstream, receiver) = (FakeUpstream::start(Step::ok(fare())).await, receiver().await);
    let mut setup = told_to(&receiver, "", "budget = { day = \"0.010 USD\", alert = [50, 100] }");
    let with = setup.body.clone();
    setup.body = with.split("[alerts]").next().unwrap().to_owned();
    let gate = start(setup, &upstream).await;
    assert_eq!(ask(&gate, "Town0").await, 200);
    let mut setup = told_to(&receiver, "", "");
    setup.body = with;
    std::fs::write(gate.config_path(), setup.render(gate.dir.path(), &upstream.url())).unwrap();
    assert_eq!(gate.admin.post("/v1/reload", json!({})).await.status, 200);
    assert_eq!(ask(&gate, "Town1").await, 200);
    receiver.wait_for_calls(1).await;
    assert_eq!((alerts(&receiver)[0]["percent"].clone(), receiver.calls(), upstream.calls()), (json!(100), 1, 2));
}
