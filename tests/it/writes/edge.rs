//! The wire: two lengths, a connection that closes as it is used, methods that are none.

use http::Method;
use serde_json::json;

use super::{PRICE, hello, send, sent};
use crate::support::gate::KEY;
use crate::support::raw::Raw;
use crate::support::routes::sms;
use crate::support::step::{Script, Step};
use crate::support::upstream::FakeUpstream;

#[tokio::test]
async fn h_02_of_two_lengths_none_is_believed() {
    let upstream = FakeUpstream::start(sent(1)).await;
    let gate = sms("", "").start(&upstream).await;
    let body = hello().to_string();
    let head = |key: &str| {
        format!(
            "POST /v1/sms HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\nIdempotency-Key: {key}\r\nContent-Type: application/json\r\n"
        )
    };
    let n = body.len();
    let smuggled = format!("{}Content-Length: {n}\r\n\r\n{body}", head("smuggled"));
    let chunks = format!("{n:x}\r\n{body}\r\n0\r\n\r\n");
    let framings = [
        (format!("Content-Length: {n}\r\nTransfer-Encoding: chunked\r\n"), chunks.clone()),
        (format!("Transfer-Encoding: chunked\r\nContent-Length: {n}\r\n"), chunks.clone()),
        (format!("Content-Length: {n}\r\nContent-Length: 5\r\n"), body.clone()),
        ("Transfer-Encoding: identity, chunked\r\n".to_owned(), chunks.clone()),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n".to_owned(), chunks.clone()),
        (format!("Content-Length: +{n}\r\n"), body.clone()),
        (format!("Content-Length: 5, {n}\r\n"), body.clone()),
        (format!("Content-Length: {n}, {n}\r\n"), body.clone()),
        (format!("Content-Length: {n}\nX-Other: 1\r\n"), body.clone()),
        (format!("Content-Length : {n}\r\n"), body.clone()),
        ("Transfer-Encoding: chunked\r\n".to_owned(), format!("0x{n:x}\r\n{body}\r\n0\r\n\r\n")),
        ("Transfer-Encoding: chunked\r\n".to_owned(), format!("{n:017x}\r\n{body}\r\n0\r\n\r\n")),
        ("Transfer-Encoding: chunked\r\n".to_owned(), format!("{n:x};a=b\r\n{body}\r\n0\r\n\r\n")),
        ("Transfer-Encoding: chunked\r\n".to_owned(), format!("{n:x}\n{body}\r\n0\r\n\r\n")),
    ];
    for (number, (framing, body)) in framings.into_iter().enumerate() {
        let (what, before) = (format!("{framing:?} {:?}", body.lines().next()), upstream.calls());
        let mut raw = Raw::connect(gate.addr).await;
        // A key of its own for each: a replay would hide that it was sent.
        raw.send(format!("{}{framing}\r\n{body}{smuggled}", head(&format!("outer-{number}")))).await;
        let first = raw.response().await.map(|response| response.status);
        let rest = String::from_utf8_lossy(&raw.rest().await).into_owned();
        assert!(matches!(first, Some(400 | 201)), "{what}: {first:?}");
        assert_eq!(rest, "", "{what}: the smuggled request was answered");
        assert_eq!(upstream.calls() - before, usize::from(first == Some(201)), "{what}");
    }
    let framed = upstream.requests().iter().all(|request| {
        request.header("transfer-encoding").is_none() && request.header("content-length") == Some(&request.body.len().to_string())
    });
    assert!(framed);
    assert_eq!(gate.spent().await, PRICE * upstream.calls() as u64);
    assert_eq!(send(&gate.client, "smuggled", hello()).await.header("idempotent-replayed"), None, "it was never known");
}

/// The provider answers the first request of each connection and closes on the second: whether it was read, nobody knows.
#[tokio::test]
async fn h_03_a_send_on_a_closing_connection_is_unknown_not_repeated() {
    let script = Script::by(|request| if request.nth_on_connection == 1 { sent(1) } else { Step::close() });
    let upstream = FakeUpstream::start(script).await;
    let gate = sms("breaker = { failures = 100 }", "").start(&upstream).await;
    let mut known = 0;
    for n in 0..10 {
        let reply = send(&gate.client, &format!("k-{n}"), hello()).await;
        assert!(reply.status == 201 || reply.code() == "outcome_unknown", "{reply:?}");
        known += usize::from(reply.status == 201);
    }
    // Each request that left was received once, and is paid for.
    assert_eq!((upstream.calls(), gate.spent().await), (10, 10 * PRICE));
    assert!(known >= 5, "{known}");
}

#[tokio::test]
async fn a_write_has_one_method() {
    let upstream = FakeUpstream::start(sent(1)).await;
    let gate = sms("", "").start(&upstream).await;
    for method in [Method::HEAD, Method::GET, Method::PUT, Method::DELETE, Method::OPTIONS] {
        let client = gate.client.clone().with("idempotency-key", "k");
        let reply = client.send(method.clone(), "/v1/sms", "".into()).await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")), "{method}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

#[tokio::test]
async fn what_is_no_question_claims_nothing() {
    let upstream = FakeUpstream::start(sent(1)).await;
    let gate = sms("", "").start(&upstream).await;
    for body in [json!({}), json!({ "to": "junk", "body": "x" }), json!({ "to": "+491701234567", "body": "x", "more": 1 })] {
        assert_eq!(send(&gate.client, "k", body).await.status, 400);
    }
    assert_eq!(send(&gate.client, "k", hello()).await.status, 201);
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
}
