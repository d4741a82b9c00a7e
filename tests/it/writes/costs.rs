//! What a write asks of the store.

use serde_json::json;

use super::{PRICE, hello, send};
use crate::support::gate::Gate;
use crate::support::routes::{message, sms};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const OPS: [&str; 11] = ["claim", "reserve", "sending", "settle", "finish", "prolong", "answer", "enter", "land", "keep", "take"];

/// Store calls so far, by operation.
async fn calls(gate: &Gate) -> Vec<(&'static str, u64)> {
    gate.settled().await;
    let mut calls = Vec::new();
    for op in OPS {
        let count = gate.metric("tollgate_store_seconds_count", &format!("op=\"{op}\"")).await;
        calls.extend((count > 0).then_some((op, count)));
    }
    calls
}

/// The numbers of `docs/ARCHITECTURE.md`.
#[tokio::test]
async fn a_write_costs_five_store_calls_and_its_replay_one() {
    let upstream = FakeUpstream::start(Step::ok(message(7)).status(201)).await;
    let limits = "limits = { caller = { burst = 100, rate = \"1/s\" } }";
    let gate = sms("quota = { burst = 9, rate = \"1/s\" }", limits).start(&upstream).await;
    assert_eq!(send(&gate.client, "k-1", hello()).await.status, 201);
    let write = [("claim", 1), ("reserve", 1), ("sending", 1), ("settle", 1), ("finish", 1)];
    assert_eq!(calls(&gate).await, write);
    for (key, body, status) in [("k-1", hello(), 201), ("k-1", json!({ "to": "+491701234567", "body": "x" }), 422)] {
        assert_eq!(send(&gate.client, key, body).await.status, status);
    }
    assert_eq!(calls(&gate).await, [[("claim", 3)].as_slice(), &write[1..]].concat());
    assert_eq!(gate.client.post("/v1/sms", hello()).await.code(), "idempotency_key_missing");
    assert_eq!(calls(&gate).await, [[("claim", 3)].as_slice(), &write[1..]].concat(), "refused before the store is asked");
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
}

#[tokio::test]
async fn a_write_without_a_key_is_in_no_record() {
    let upstream = FakeUpstream::start(Step::ok(message(7)).status(201)).await;
    let gate = sms("", "writes = { key = \"optional\" }").start(&upstream).await;
    assert_eq!(gate.client.post("/v1/sms", hello()).await.status, 201);
    assert_eq!(calls(&gate).await, [("reserve", 1), ("settle", 1)]);
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
}
