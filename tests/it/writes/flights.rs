//! A send is a flight of its own: it lands whoever leaves, and before the process ends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use super::{PRICE, answers, hello, raw_send, send, sent};
use crate::support::raw::Raw;
use crate::support::routes::sms;
use crate::support::soon;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const SQLITE: &str = "url = \"sqlite:{dir}/tollgate.db\"";

#[tokio::test]
async fn a_send_whose_client_has_gone_is_recorded() {
    let upstream = FakeUpstream::start(sent(7).gated()).await;
    let gate = sms("", "").start(&upstream).await;
    let mut gone = Raw::connect(gate.addr).await;
    gone.send(raw_send("k")).await;
    upstream.wait_for_calls(1).await;
    drop(gone);
    upstream.release(1);
    soon("the send to land", async {
        while gate.metric_of("tollgate_flights").await > 0 {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    })
    .await;
    let again = send(&gate.client, "k", hello()).await;
    assert_eq!((again.json()["id"].as_u64(), again.header("idempotent-replayed")), (Some(7), Some("true")));
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
}

#[tokio::test]
async fn whoever_stops_waiting_may_ask_what_came_of_it() {
    let upstream = FakeUpstream::start(sent(7).gated()).await;
    let gate = sms("", "").start(&upstream).await;
    let hasty = gate.client.clone().with("x-request-timeout", "1");
    let timed_out = send(&hasty, "k", hello()).await;
    assert_eq!((timed_out.status, timed_out.code().as_str()), (504, "upstream_timeout"));
    assert!(timed_out.header("retry-after").is_some());
    assert_eq!(send(&gate.client, "k", hello()).await.code(), "idempotency_in_progress");
    upstream.release(1);
    soon("a replay", async {
        while send(&gate.client, "k", hello()).await.header("idempotent-replayed") != Some("true") {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    })
    .await;
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
}

#[tokio::test]
async fn o_02_a_send_in_flight_is_answered_and_recorded() {
    let upstream = FakeUpstream::start(sent(7).gated()).await;
    let dir = tempfile::tempdir().unwrap();
    let setup = sms("", "").server("drain = \"15s\"").store(SQLITE);
    let served = setup.serve(dir.path(), &upstream).await;
    let (reply, ()) = tokio::join!(send(&served.client, "k", hello()), async {
        upstream.wait_for_calls(1).await;
        served.signal("TERM");
        served.admin.until("/readyz", 503).await;
        assert_eq!(send(&served.client.fresh(), "late", hello()).await.code(), "shutting_down");
        upstream.release(1);
    });
    assert_eq!((reply.status, reply.json()["id"].as_u64()), (201, Some(7)));
    assert_eq!(served.ended().await.0.code(), Some(0));
    let served = setup.serve(dir.path(), &upstream).await;
    let again = send(&served.client, "k", hello()).await;
    assert_eq!((again.body, again.headers["idempotent-replayed"].as_bytes()), (reply.body, &b"true"[..]));
    assert_eq!((upstream.calls(), served.spent().await), (1, 0));
}

/// Nobody waits for it any more, and it is paid for: the process does not end before it is written down.
#[tokio::test]
async fn o_02_a_send_whose_client_has_gone_is_brought_home() {
    let upstream = FakeUpstream::start(sent(7).gated()).await;
    let dir = tempfile::tempdir().unwrap();
    let setup = sms("", "").server("drain = \"15s\"").store(SQLITE);
    let served = setup.serve(dir.path(), &upstream).await;
    let mut gone = Raw::connect(served.addr).await;
    gone.send(raw_send("k")).await;
    upstream.wait_for_calls(1).await;
    drop(gone);
    served.signal("TERM");
    served.admin.until("/readyz", 503).await;
    upstream.release(1);
    let (status, log) = served.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
    let served = setup.serve(dir.path(), &upstream).await;
    let again = send(&served.client, "k", hello()).await;
    assert_eq!((again.json()["id"].as_u64(), again.header("idempotent-replayed")), (Some(7), Some("true")));
    assert_eq!((upstream.calls(), served.spent().await), (1, 0));
}

/// At the drain's limit, at a second signal, and when it is killed: what may have been sent is unknown, and its money stays spent.
#[tokio::test]
async fn o_02_a_send_that_does_not_end_is_unknown() {
    for (ending, code) in [(&["TERM"][..], Some(0)), (&["TERM", "TERM"], Some(1)), (&["KILL"], None)] {
        let upstream = FakeUpstream::start([Step::hang(), sent(2)]).await;
        let dir = tempfile::tempdir().unwrap();
        let provider = "timeout = \"60s\"\nflight = \"60s\"\nretry = { attempts = 1 }";
        let drain = if ending.len() == 1 { "drain = \"1s\"" } else { "drain = \"60s\"" };
        let setup = sms(provider, "deadline = \"60s\"").server(drain).store(SQLITE);
        let served = setup.serve(dir.path(), &upstream).await;
        let mut waiting = Raw::connect(served.addr).await;
        waiting.send(raw_send("k")).await;
        upstream.wait_for_calls(1).await;
        for (number, signal) in ending.iter().enumerate() {
            if number > 0 {
                served.admin.until("/readyz", 503).await;
            }
            served.signal(signal);
        }
        let (status, log) = served.ended().await;
        assert_eq!(status.code(), code, "{ending:?}: {log}");
        let served = setup.serve(dir.path(), &upstream).await;
        let again = send(&served.client, "k", hello()).await;
        assert_eq!((again.status, again.code().as_str()), (409, "outcome_unknown"), "{ending:?}: {again:?}");
        let ledger = served.admin.get("/v1/spend?since=1970-01-01&until=9999-12-31&by=").await.json();
        assert_eq!(ledger["totals"][0]["micros"], json!(PRICE), "{ending:?}: {ledger}");
        assert_eq!(ledger["totals"][0]["unknown"]["calls"], json!(1), "{ending:?}: {ledger}");
        assert_eq!(send(&served.client, "other", hello()).await.status, 201);
        assert_eq!(upstream.calls(), 2, "{ending:?}");
    }
}

/// The provider takes no connection until the owner's lease is over: others think that this one is gone, so nothing may leave.
#[tokio::test]
async fn what_stood_still_before_it_left_does_not_leave() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = socket.local_addr().unwrap();
    let listener = socket.listen(1).unwrap();
    // Whoever comes while its queue is full is not answered, and tries again after a second.
    let mut queue = Vec::new();
    while let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_millis(100), tokio::net::TcpStream::connect(addr)).await {
        queue.push(stream);
    }
    let gate = sms("connect_timeout = \"4s\"\nretry = { attempts = 1 }", "").start_at(&format!("http://{addr}")).await;
    let client = gate.client.clone();
    let asked = tokio::spawn(async move { send(&client, "k", hello()).await });
    soon("the record to say that it is being sent", async {
        while gate.metric("tollgate_store_seconds_count", "op=\"sending\"").await == 0 {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    })
    .await;
    gate.advance(6);
    drop(queue);
    let received = answers(listener);
    let reply = asked.await.unwrap();
    assert_eq!((reply.status, reply.code().as_str()), (502, "upstream_failed"), "{reply:?}");
    assert_eq!((received.load(Ordering::Relaxed), gate.spent().await), (0, 0), "bytes have left");
    assert_eq!(send(&gate.client, "k", hello()).await.status, 201, "nothing was sent, so the key is free");
    assert_eq!((received.load(Ordering::Relaxed), gate.spent().await), (1, PRICE));
}
