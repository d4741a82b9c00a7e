//! Paid writes: one send for each intention.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::client::{Client, Reply};
use crate::support::gate::KEY;
use crate::support::routes::{message, sms};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

mod costs;
mod crashes;
mod edge;
mod failures;
mod flights;
mod keys;
mod presets;
mod settling;
mod trouble;

const PRICE: u64 = 8_000;

fn hello() -> Value {
    json!({ "to": "+491701234567", "body": "Your table is ready" })
}

fn sent(id: u32) -> Step {
    Step::ok(message(id)).status(201)
}

async fn send(client: &Client, key: &str, body: Value) -> Reply {
    client.clone().with("idempotency-key", key).post("/v1/sms", body).await
}

/// A provider that takes whatever comes; how often it did.
fn answers(listener: TcpListener) -> Arc<AtomicUsize> {
    let received = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            if stream.read(&mut request).await.is_ok_and(|bytes| bytes > 0) {
                counted.fetch_add(1, Ordering::Relaxed);
                let answer = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    });
    received
}

/// As it goes over the wire.
fn raw_send(key: &str) -> String {
    let body = hello().to_string();
    format!(
        "POST /v1/sms HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\nIdempotency-Key: {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn a_message_is_sent_once_and_its_answer_replayed() {
    let upstream = FakeUpstream::start(sent(7).header("location", "/messages/7").header("etag", "\"7\"")).await;
    let gate = sms("", "").start(&upstream).await;
    let first = send(&gate.client, "k-1", hello()).await;
    assert_eq!((first.status, first.json()["id"].as_u64()), (201, Some(7)), "{first:?}");
    assert_eq!((first.header("idempotent-replayed"), first.header("cache-status")), (None, Some("tollgate; fwd=method")));
    assert_eq!(upstream.last().header("content-length"), Some(upstream.last().body.len().to_string().as_str()));

    let again = send(&gate.client, "\"k-1\"", json!({ "body": "Your table is ready", "to": "00491701234567" })).await;
    assert_eq!((again.status, &again.body), (201, &first.body));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.header("cache-status"), Some("tollgate; hit; detail=replay"));
    for name in ["location", "etag", "content-type"] {
        assert_eq!(first.header(name), again.header(name), "{name}");
    }
    assert_eq!(first.header("location"), Some("/messages/7"));
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
    assert_eq!(gate.metric("tollgate_saved_micros_total", "cause=\"replay\"").await, PRICE);
}

#[tokio::test]
async fn an_answer_is_replayed_for_as_long_as_it_is_kept() {
    let upstream = FakeUpstream::start([sent(1), sent(2)]).await;
    let gate = sms("", "writes = { keep = \"1h\" }").start(&upstream).await;
    let first = send(&gate.client, "k", hello()).await;
    gate.advance(3_599);
    assert_eq!(send(&gate.client, "k", hello()).await.body, first.body);
    gate.advance(1);
    let second = send(&gate.client, "k", hello()).await;
    assert_eq!((second.json()["id"].as_u64(), second.header("idempotent-replayed")), (Some(2), None));
    assert_eq!((upstream.calls(), gate.spent().await), (2, 2 * PRICE));
}

/// The switch in position `cached` lets nothing be paid; what was answered is still said.
#[tokio::test]
async fn who_wants_no_more_than_what_is_stored_sends_nothing() {
    let upstream = FakeUpstream::start(sent(1)).await;
    let gate = sms("", "").start(&upstream).await;
    let modest = gate.client.clone().with("cache-control", "only-if-cached");
    assert_eq!(send(&modest, "k", hello()).await.code(), "not_cached");
    send(&gate.client, "k", hello()).await;
    assert_eq!(send(&modest, "k", hello()).await.header("idempotent-replayed"), Some("true"));
    gate.switch("sms", "cached").await;
    assert_eq!(send(&gate.client, "k", hello()).await.header("idempotent-replayed"), Some("true"));
    let refused = send(&gate.client, "other", hello()).await;
    assert_eq!((refused.status, refused.code().as_str()), (504, "not_cached"));
    gate.switch("sms", "off").await;
    assert_eq!(send(&gate.client, "k", hello()).await.code(), "switched_off");
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
}
