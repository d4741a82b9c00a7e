//! Stops by their makers: who may end which, what ends by itself, and `tollgate switch`.

mod budgets;
mod command;

use http::Method;
use serde_json::{Value as Json, json};

use crate::support::client::Reply;
use crate::support::gate::{Gate, Setup, fare, quote};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

/// Noon on the day that `Gate`'s clock begins at, in seconds; and the midnight after it.
const NOON: u64 = 1_796_040_000;
const MIDNIGHT: u64 = NOON + 12 * 3600;

/// The route `quote`, with a budget and without an answer that is kept.
fn capped(provider: &str, budget: &str) -> Setup {
    let mut setup = quote(provider, "");
    setup.body = setup.body.replace("budget = \"none\"", budget);
    setup
}

async fn ask(gate: &Gate, town: &str) -> (u16, String) {
    let reply = gate.get(&format!("/v1/quote?from=Delhi&to={town}")).await;
    (reply.status, reply.code())
}

fn ok() -> (u16, String) {
    (200, String::new())
}

async fn put(gate: &Gate, name: &str, body: Json) -> Reply {
    gate.admin.send(Method::PUT, &format!("/v1/switches/{name}"), body.to_string().into()).await
}

async fn holds(gate: &Gate, name: &str) -> Json {
    gate.admin.get(&format!("/v1/switches/{name}")).await.json()
}

/// Makers of the stops that stand, with their position.
fn makers(holds: &Json) -> Vec<(&str, &str, &str)> {
    let text = |stop: &'_ Json, key: &str| stop[key].as_str().unwrap().to_owned().leak() as &str;
    holds["stops"].as_array().unwrap().iter().map(|stop| (text(stop, "of"), text(stop, "maker"), text(stop, "state"))).collect()
}

#[tokio::test]
async fn a_switch_shows_every_stop_that_stands_and_the_strictest_holds() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = quote("", "").start(&upstream).await;
    assert_eq!(holds(&gate, "quote").await, json!({ "state": "on", "reason": "", "since": 0, "stops": [] }));
    put(&gate, "all", json!({ "state": "cached", "reason": "careful" })).await;
    let set = put(&gate, "quote", json!({ "state": "off", "reason": "broken" })).await.json();
    let stop = |of: &str, state: &str, reason: &str| json!({ "of": of, "maker": "admin", "state": state, "reason": reason, "since": NOON });
    assert_eq!(
        set,
        json!({ "state": "off", "reason": "broken", "since": NOON, "stops": [stop("quote", "off", "broken"), stop("all", "cached", "careful")] })
    );
    assert_eq!(set, holds(&gate, "quote").await);
    assert_eq!(makers(&holds(&gate, "all").await), [("all", "admin", "cached")]);
    let set = put(&gate, "quote", json!({ "state": "on", "reason": "mended" })).await.json();
    assert_eq!((&set["state"], &set["reason"]), (&json!("cached"), &json!("careful")), "what still stands is said");
    gate.advance(40 * 86_400);
    assert_eq!(holds(&gate, "quote").await["state"], "cached", "nothing that an admin said ends by itself");
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

#[tokio::test]
async fn an_admin_makes_no_stop_of_another_maker_and_ends_none_that_does_not_stand() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = quote("", "").start(&upstream).await;
    let told = put(&gate, "quote", json!({ "state": "off", "maker": "budget" })).await;
    assert_eq!((told.status, told.code()), (400, "bad_request".into()));
    let told = put(&gate, "quote", json!({ "state": "on", "maker": "bugdet" })).await;
    assert_eq!((told.status, told.code()), (404, "not_found".into()));
    assert_eq!(put(&gate, "quote", json!({ "state": "off", "until": 5 })).await.status, 400);
    assert_eq!(put(&gate, "quote", json!({ "state": "on", "maker": "admin" })).await.status, 200);
    assert_eq!(ask(&gate, "Agra").await, ok());
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn records_of_before_there_were_makers_are_read_on() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = quote("", "").store("url = \"sqlite:{dir}/t.db\"").start(&upstream).await;
    let clock = gate.clock.clone();
    let dir = gate.stop().await;
    let db = rusqlite::Connection::open(dir.path().join("t.db")).unwrap();
    let old = r#"{"state":"off","reason":"long ago","since":7}"#;
    db.execute("INSERT INTO switch (name, switch) VALUES ('quote', ?1)", [old]).unwrap();
    drop(db);
    let gate = Gate::from(dir, clock).await;
    assert_eq!(ask(&gate, "Agra").await, (503, "switched_off".into()));
    let holds = holds(&gate, "quote").await;
    assert_eq!(holds["stops"], json!([{ "of": "quote", "maker": "admin", "state": "off", "reason": "long ago", "since": 7 }]));
    put(&gate, "quote", json!({ "state": "on" })).await;
    assert_eq!(ask(&gate, "Agra").await, ok());
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}
