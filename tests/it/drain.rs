//! The end of the process: what was paid for is brought home, what is idle holds nothing up.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::support::gate::{KEY, quote};
use crate::support::raw::Raw;
use crate::support::soon;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const QUOTE: &str = "/v1/quote?from=Delhi&to=Jaipur";
const SQLITE: &str = "url = \"sqlite:{dir}/tollgate.db\"";

fn fare(meters: u64) -> Step {
    Step::ok(json!({ "routes": [{ "distanceMeters": meters, "duration": "60s" }] }))
}

fn raw_get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\n\r\n")
}

#[tokio::test]
async fn o_02_a_flight_whose_client_is_gone_lands_before_the_process_ends() {
    let upstream = FakeUpstream::start([fare(1), fare(2).gated()]).await;
    let dir = tempfile::tempdir().unwrap();
    let setup = quote("", "").server("drain = \"15s\"").store(SQLITE);
    let served = setup.serve(dir.path(), &upstream).await;
    let mut idle = Raw::connect(served.addr).await;
    idle.send(raw_get(QUOTE)).await;
    assert_eq!(idle.response().await.unwrap().status, 200);
    let mut idle_admin = Raw::connect(served.admin_addr).await;
    idle_admin.send("GET /healthz HTTP/1.1\r\nHost: gate\r\n\r\n").await;
    idle_admin.response().await.unwrap();
    let mut gone = Raw::connect(served.addr).await;
    gone.send(raw_get("/v1/quote?from=Delhi&to=Agra")).await;
    upstream.wait_for_calls(2).await;
    drop(gone);
    served.signal("TERM");
    // Readiness first: 503 at once, while the process is alive and still answers.
    served.admin.until("/readyz", 503).await;
    let admin = served.admin.fresh();
    assert_eq!((admin.get("/readyz").await.text(), admin.fresh().get("/healthz").await.status), ("draining\n".into(), 200));
    idle.closed().await;
    let refused = served.client.fresh().get(QUOTE).await;
    assert_eq!(
        (refused.status, &refused.json()["code"], refused.header("retry-after")),
        (503, &json!("shutting_down"), Some("1"))
    );
    assert_eq!(refused.header("connection"), Some("close"));
    let began = Instant::now();
    upstream.release(1);
    let (status, log) = served.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    // It was paid, so it was kept.
    let served = setup.serve(dir.path(), &upstream).await;
    let hit = served.client.get("/v1/quote?from=Agra&to=Delhi").await;
    assert_eq!((&hit.json()["distance_meters"], upstream.calls(), served.spent().await), (&json!(2), 2, 0));
}

#[tokio::test]
async fn o_02_a_request_in_flight_is_answered_and_a_refresh_lands() {
    let upstream = FakeUpstream::start([fare(1), fare(2).gated(), fare(3).gated()]).await;
    let dir = tempfile::tempdir().unwrap();
    let route = "cache = { found = \"1s\", stale_while_revalidate = \"1h\" }";
    let setup = quote("", route).store(SQLITE);
    let served = setup.serve(dir.path(), &upstream).await;
    served.client.get(QUOTE).await;
    soon("a stale hit", async {
        while !served.client.get(QUOTE).await.header("cache-status").unwrap().contains("stale") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    upstream.wait_for_calls(2).await;
    let asked = async { served.client.get("/v1/quote?from=Delhi&to=Agra").await };
    let (reply, ()) = tokio::join!(asked, async {
        upstream.wait_for_calls(3).await;
        served.signal("INT");
        served.admin.until("/readyz", 503).await;
        upstream.release(2);
    });
    assert_eq!((reply.status, &reply.json()["distance_meters"], reply.header("connection")), (200, &json!(3), Some("close")));
    assert_eq!(served.ended().await.0.code(), Some(0));
    let served = setup.serve(dir.path(), &upstream).await;
    let cached = served.client.clone().with("cache-control", "only-if-cached");
    assert_eq!(cached.get(QUOTE).await.json()["distance_meters"], 2);
    assert_eq!((upstream.calls(), served.spent().await), (3, 0));
}

#[tokio::test]
async fn o_02_the_drain_limit_is_one_limit() {
    let upstream = FakeUpstream::start(Step::hang()).await;
    let dir = tempfile::tempdir().unwrap();
    let setup = quote("timeout = \"60s\"\nflight = \"60s\"", "deadline = \"60s\"").server("drain = \"1s\"").store(SQLITE);
    let served = setup.serve(dir.path(), &upstream).await;
    let mut waiting = Raw::connect(served.addr).await;
    waiting.send(raw_get(QUOTE)).await;
    let mut slow = Raw::connect(served.addr).await;
    slow.send("GET / HTTP/1.1\r\nHo").await;
    upstream.wait_for_calls(1).await;
    let began = Instant::now();
    served.signal("TERM");
    let (status, log) = served.ended().await;
    let took = began.elapsed();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(took >= Duration::from_millis(900) && took < Duration::from_millis(2_500), "{took:?}");
    assert!(log.contains("in flight"), "what was left is said: {log}");
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test]
async fn o_02_a_second_signal_ends_at_once() {
    let upstream = FakeUpstream::start([fare(1), Step::hang()]).await;
    let dir = tempfile::tempdir().unwrap();
    let setup = quote("timeout = \"60s\"\nflight = \"60s\"", "").store(SQLITE);
    let served = setup.serve(dir.path(), &upstream).await;
    served.client.get(QUOTE).await;
    let mut waiting = Raw::connect(served.addr).await;
    waiting.send(raw_get("/v1/quote?from=Delhi&to=Agra")).await;
    upstream.wait_for_calls(2).await;
    served.signal("TERM");
    served.admin.until("/readyz", 503).await;
    let began = Instant::now();
    served.signal("TERM");
    let (status, log) = served.ended().await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(status.code(), Some(1), "{log}");
    // The same records: what was answered for is there.
    let served = setup.serve(dir.path(), &upstream).await;
    assert!(served.client.get(QUOTE).await.header("cache-status").unwrap().contains("hit"));
    assert_eq!((upstream.calls(), served.spent().await), (2, 0));
}

#[tokio::test]
async fn o_02_nothing_in_flight_ends_at_once() {
    let upstream = FakeUpstream::start(fare(1)).await;
    let dir = tempfile::tempdir().unwrap();
    let served = quote("", "").store(SQLITE).serve(dir.path(), &upstream).await;
    let mut idle = Vec::new();
    for _ in 0..20 {
        let mut raw = Raw::connect(served.addr).await;
        raw.send(raw_get(QUOTE)).await;
        raw.response().await.unwrap();
        idle.push(raw);
    }
    let spent = served.spent().await;
    let began = Instant::now();
    served.signal("TERM");
    assert_eq!(served.ended().await.0.code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!((upstream.calls(), spent), (1, 5_000));
}
