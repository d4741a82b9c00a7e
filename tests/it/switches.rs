//! The kill switches, on the admin API and in the path.

use http::Method;
use serde_json::json;

use crate::support::gate::{Gate, fare, quote};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

async fn gate(store: &str) -> (FakeUpstream, Gate) {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let mut setup = quote("", "");
    let second = setup.body.split_once("[routes.quote]").unwrap().1.replace("routes.quote", "routes.second");
    setup.body.push_str(&format!("[routes.second]{}", second.replace("/v1/quote", "/v2/quote")));
    let gate = setup.store(store).start(&upstream).await;
    (upstream, gate)
}

async fn ask(gate: &Gate, route: &str, town: &str) -> (u16, String) {
    let reply = gate.get(&format!("/{route}/quote?from=Delhi&to={town}")).await;
    (reply.status, reply.code())
}

fn ok() -> (u16, String) {
    (200, String::new())
}

fn off() -> (u16, String) {
    (503, "switched_off".into())
}

fn not_cached() -> (u16, String) {
    (504, "not_cached".into())
}

#[tokio::test]
async fn off_and_on_for_one_route_and_for_all() {
    let (upstream, gate) = gate("url = \"memory:\"").await;
    assert_eq!(ask(&gate, "v1", "Agra").await, ok());
    gate.switch("quote", "off").await;
    assert_eq!(ask(&gate, "v1", "Agra").await, off(), "stored answers, too");
    assert_eq!(ask(&gate, "v2", "Agra").await, ok());
    gate.switch("all", "off").await;
    assert_eq!(ask(&gate, "v2", "Agra").await, off());
    gate.switch("quote", "on").await;
    assert_eq!(ask(&gate, "v1", "Agra").await, off(), "all stands over each");
    gate.switch("all", "on").await;
    assert_eq!(ask(&gate, "v1", "Agra").await, ok());
    let reply = gate.admin.get("/v1/switches/quote").await.json();
    assert_eq!((&reply["state"], &reply["reason"]), (&json!("on"), &json!("test")));
    let saved = gate.metric("tollgate_saved_micros_total", "cause=\"switched_off\"").await;
    assert_eq!(saved, 0, "what is not read may be a repeat of what is stored, as here");
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn off_needs_no_credential_and_reads_no_question() {
    let (upstream, gate) = gate("url = \"memory:\"").await;
    gate.switch("quote", "off").await;
    let reply = gate.stranger().get("/v1/quote?nonsense=%zz").await;
    assert_eq!((reply.status, reply.code(), reply.header("cache-status")), (503, "switched_off".into(), None));
    assert_eq!(reply.header("retry-after"), None, "nobody knows when it is back");
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

#[tokio::test]
async fn cached_serves_what_is_stored_and_pays_for_nothing() {
    let (upstream, gate) = gate("url = \"memory:\"").await;
    assert_eq!(ask(&gate, "v1", "Agra").await, ok());
    gate.switch("quote", "cached").await;
    assert_eq!(ask(&gate, "v1", "agra").await, ok());
    assert_eq!(ask(&gate, "v1", "Pune").await, not_cached());
    assert_eq!(gate.metric("tollgate_saved_micros_total", "cause=\"switched_off\"").await, 5_000);
    let refresh = gate.client.clone().with("cache-control", "no-cache").get("/v1/quote?from=Delhi&to=Agra").await;
    assert!(refresh.status == 200 && refresh.header("cache-status").unwrap().starts_with("tollgate; hit"));
    gate.switch("quote", "on").await;
    assert_eq!(ask(&gate, "v1", "Pune").await, ok());
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn who_wants_only_what_is_stored_flies_nowhere_from_a_route_that_keeps_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("curated.jsonl");
    std::fs::write(&path, r#"{"question":{"from":"Delhi","to":"Agra"},"answer":{"distance_meters":1}}"#).unwrap();
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = quote("", &format!("curated = {path:?} # instead of a cache")).start(&upstream).await;
    let stored = gate.client.clone().with("cache-control", "only-if-cached");
    assert_eq!(stored.get("/v1/quote?from=Delhi&to=Agra").await.json()["distance_meters"], 1);
    assert_eq!(stored.get("/v1/quote?from=Delhi&to=Pune").await.code(), "not_cached");
    assert_eq!(gate.client.send(Method::HEAD, "/v1/quote?from=Delhi&to=Pune", "".into()).await.status, 504);
    assert_eq!(gate.metric("tollgate_saved_micros_total", "switched_off").await, 0, "no switch had a part in it");
    gate.switch("all", "cached").await;
    assert_eq!(ask(&gate, "v1", "Agra").await, ok());
    assert_eq!(ask(&gate, "v1", "Pune").await, not_cached());
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

#[tokio::test]
async fn a_switch_set_while_a_flight_is_up_ends_no_flight() {
    let (upstream, gate) = gate("url = \"memory:\"").await;
    upstream.set_script(Step::ok(fare()).gated());
    let client = gate.client.clone();
    let asker = tokio::spawn(async move { client.get("/v1/quote?from=Delhi&to=Agra").await.status });
    upstream.wait_for_calls(1).await;
    gate.switch("all", "off").await;
    upstream.release(1);
    assert_eq!(asker.await.unwrap(), 200, "it is paid for");
    gate.switch("all", "on").await;
    assert_eq!(ask(&gate, "v1", "Agra").await, ok());
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_switch_survives_the_process_on_sqlite() {
    let (upstream, gate) = gate("url = \"sqlite:{dir}/t.db\"").await;
    gate.switch("quote", "off").await;
    gate.switch("second", "cached").await;
    let clock = gate.clock.clone();
    let gate = Gate::from(gate.stop().await, clock).await;
    assert_eq!(ask(&gate, "v1", "Agra").await, off());
    assert_eq!(ask(&gate, "v2", "Agra").await, not_cached());
    let reply = gate.admin.get("/v1/switches/quote").await.json();
    assert_eq!((&reply["state"], &reply["reason"]), (&json!("off"), &json!("test")));
    gate.switch("quote", "on").await;
    assert_eq!(ask(&gate, "v1", "Agra").await, ok());
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_switch_that_is_not_understood_is_not_set() {
    let (upstream, gate) = gate("url = \"memory:\"").await;
    for (route, body, want) in [
        ("nowhere", r#"{"state":"off"}"#, 404),
        ("quote", "", 400),
        ("quote", "off", 400),
        ("quote", "[\"off\", \"why\"]", 400),
        ("quote", r#"{"state":"paused"}"#, 400),
        ("quote", r#"{"state":"off","for":"1h"}"#, 400),
        ("quote", r#"{"reason":"none"}"#, 400),
    ] {
        let reply = gate.admin.send(Method::PUT, &format!("/v1/switches/{route}"), body.into()).await;
        assert_eq!(reply.status, want, "{route} {body}: {reply:?}");
        assert_eq!(reply.header("content-type"), Some("application/problem+json"));
    }
    assert_eq!(gate.admin.get("/v1/switches/nowhere").await.status, 404);
    assert_eq!(ask(&gate, "v1", "Agra").await, ok());
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}
