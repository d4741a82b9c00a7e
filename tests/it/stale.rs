//! Stale answers: while one refresh flies, and while the provider is in trouble.

use std::time::Duration;

use serde_json::json;

use crate::support::gate::{Gate, found, nothing, opencage, quote};
use crate::support::soon;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const QUOTE: &str = "/v1/quote?from=Delhi&to=Jaipur";
const ON_ERROR: &str = "cache = { found = \"60s\", not_found = \"10s\", rejected = \"10s\", stale_if_error = \"10m\" }";
const BOTH: &str = "cache = { found = \"60s\", stale_if_error = \"10m\", stale_while_revalidate = \"30s\" }";

fn fare(meters: u64) -> Step {
    Step::ok(json!({ "routes": [{ "distanceMeters": meters, "duration": "60s" }] }))
}

/// A gateway whose answer of 1 metre has just become stale, `over` seconds ago.
async fn stale(upstream: &FakeUpstream, provider: &str, cache: &str, over: u64) -> Gate {
    let gate = quote(provider, cache).start(upstream).await;
    assert_eq!(gate.get(QUOTE).await.json()["distance_meters"], 1);
    gate.advance(60 + over);
    gate
}

/// Waits until no flight is in the air.
async fn landed(gate: &Gate) {
    soon("every flight to land", async {
        while !gate.metrics().await.contains("tollgate_flights 0\n") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn c_03_trouble_is_bridged_and_a_4xx_is_not() {
    for step in [
        fare(2).status(500),
        fare(2).status(502),
        fare(2).status(503),
        fare(2).status(504),
        fare(2).status(429),
        Step::close(),
        Step::hang(),
        Step::cut(10),
        Step::ok(json!(null)).body("<html>"),
    ] {
        let what = format!("{step:?}");
        let upstream = FakeUpstream::start([fare(1), step]).await;
        let gate = stale(&upstream, "timeout = \"300ms\"\nflight = \"1s\"", ON_ERROR, 5).await;
        let reply = gate.get(QUOTE).await;
        assert_eq!((reply.status, &reply.json()["distance_meters"]), (200, &json!(1)), "{what}");
        assert_eq!(
            (reply.header("cache-status"), reply.header("age")),
            (Some("tollgate; hit; detail=stale; ttl=-5"), Some("65"))
        );
        assert_eq!(upstream.calls(), 2, "{what}");
        gate.advance(600);
        let past = gate.get(QUOTE).await;
        assert!(past.status >= 500 && past.header("cache-status").is_none(), "past its window: {what}: {past:?}");
    }
    for (status, expected, code) in
        [(404, 404, None), (410, 410, None), (400, 400, Some("upstream_rejected")), (403, 502, Some("upstream_denied"))]
    {
        let upstream = FakeUpstream::start([fare(1), Step::ok(json!({ "error": "gone" })).status(status)]).await;
        let gate = stale(&upstream, "", ON_ERROR, 5).await;
        let reply = gate.get(QUOTE).await;
        assert_eq!((reply.status, reply.json()["code"].as_str()), (expected, code), "{reply:?}");
        assert_eq!(upstream.calls(), 2);
        if status != 403 {
            let again = gate.get(QUOTE).await;
            assert_eq!((again.status, upstream.calls()), (expected, 2), "a no of the provider's is kept for its own time");
        }
    }
}

#[tokio::test]
async fn c_03_a_provider_that_is_not_there_is_bridged() {
    let upstream = FakeUpstream::start(fare(1)).await;
    let gate = stale(&upstream, "", ON_ERROR, 0).await;
    let calls = upstream.calls();
    drop(upstream);
    let reply = gate.get(QUOTE).await;
    assert_eq!((reply.status, reply.header("cache-status")), (200, Some("tollgate; hit; detail=stale; ttl=0")));
    // What was never sent costs nothing.
    assert_eq!((calls, gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn c_03_an_open_breaker_is_bridged() {
    let upstream = FakeUpstream::start([fare(1), fare(1).status(503)]).await;
    let gate = stale(&upstream, "breaker = { failures = 1, cooldown = \"30s\" }", ON_ERROR, 0).await;
    for _ in 0..3 {
        let reply = gate.get(QUOTE).await;
        assert_eq!((reply.status, reply.header("cache-status")), (200, Some("tollgate; hit; detail=stale; ttl=0")));
    }
    let refused = gate.get("/v1/quote?from=Delhi&to=Agra").await;
    assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("circuit_open")));
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn c_03_what_must_be_revalidated_is_never_stale() {
    for directive in ["must-revalidate", "proxy-revalidate", "no-cache"] {
        let first = fare(1).header("cache-control", directive);
        let upstream = FakeUpstream::start([first, fare(2).status(503)]).await;
        let gate = stale(&upstream, "respect_cache_control = true", BOTH, 1).await;
        let reply = gate.get(QUOTE).await;
        assert_eq!((reply.status, &reply.json()["code"]), (502, &json!("upstream_failed")), "{directive}");
        assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
    }
}

#[tokio::test]
async fn f_06_one_refresh_flies_for_any_number_of_stale_hits() {
    let upstream = FakeUpstream::start([fare(1), fare(2).gated(), fare(3)]).await;
    let gate = stale(&upstream, "", BOTH, 1).await;
    let asks = (0..30).map(|_| async { gate.get(QUOTE).await });
    for reply in futures_util::future::join_all(asks).await {
        assert_eq!((&reply.json()["distance_meters"], reply.status), (&json!(1), 200));
        assert_eq!(
            (reply.header("cache-status"), reply.header("age")),
            (Some("tollgate; hit; detail=stale; ttl=-1"), Some("61"))
        );
    }
    upstream.wait_for_calls(2).await;
    upstream.release(1);
    landed(&gate).await;
    let fresh = gate.get(QUOTE).await;
    assert_eq!((&fresh.json()["distance_meters"], fresh.header("cache-status")), (&json!(2), Some("tollgate; hit; ttl=60")));
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn f_06_a_refresh_that_fails_backs_off_and_extends_nothing() {
    let upstream = FakeUpstream::start([fare(1), fare(2).status(503), fare(3).status(503), fare(4)]).await;
    let gate = stale(&upstream, "", "cache = { found = \"60s\", stale_while_revalidate = \"30s\" }", 0).await;
    for (second, calls) in [(0, 2), (0, 2), (1, 3), (0, 3), (1, 3)] {
        gate.advance(second);
        let reply = gate.get(QUOTE).await;
        assert!(reply.header("cache-status").unwrap().contains("detail=stale"), "{reply:?}");
        upstream.wait_for_calls(calls).await;
        landed(&gate).await;
        assert_eq!(upstream.calls(), calls);
    }
    // Past the window the asker waits for the answer itself.
    gate.advance(28);
    assert_eq!(gate.get(QUOTE).await.json()["distance_meters"], 4);
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn f_06_a_refresh_that_hangs_ends_with_its_flight() {
    let upstream = FakeUpstream::start([fare(1), Step::hang(), fare(3)]).await;
    let gate = stale(&upstream, "timeout = \"200ms\"\nflight = \"200ms\"", BOTH, 0).await;
    gate.get(QUOTE).await;
    upstream.wait_for_calls(2).await;
    landed(&gate).await;
    gate.advance(1);
    assert!(gate.get(QUOTE).await.header("cache-status").unwrap().contains("stale"));
    upstream.wait_for_calls(3).await;
    landed(&gate).await;
    assert_eq!(gate.get(QUOTE).await.json()["distance_meters"], 3);
    assert_eq!((upstream.calls(), gate.spent().await), (3, 15_000));
}

/// An answer that may not be kept says nothing against the next refresh, but it does not invite one with every hit either.
#[tokio::test]
async fn f_06_a_refresh_that_brings_nothing_to_keep_backs_off() {
    let upstream = FakeUpstream::start([fare(1), fare(2).header("set-cookie", "a=b")]).await;
    let gate = stale(&upstream, "", "cache = { found = \"60s\", stale_while_revalidate = \"1h\" }", 0).await;
    for _ in 0..60 {
        let reply = gate.get(QUOTE).await;
        assert_eq!(reply.json()["distance_meters"], 1);
        landed(&gate).await;
        gate.advance(10);
    }
    let calls = upstream.calls();
    assert!((3..=16).contains(&calls), "{calls} refreshes in ten minutes");
    assert_eq!(gate.spent().await, 5_000 * calls as u64);
}

#[tokio::test]
async fn a_callers_directives_do_not_ride_on_a_background_refresh() {
    let upstream = FakeUpstream::start([fare(1), fare(2)]).await;
    let gate = stale(&upstream, "", BOTH, 1).await;
    let picky = gate.client.clone().with("cache-control", "max-age=3600");
    assert!(picky.get(QUOTE).await.header("cache-status").unwrap().contains("stale"));
    upstream.wait_for_calls(2).await;
    landed(&gate).await;
    assert_eq!(gate.get(QUOTE).await.json()["distance_meters"], 2);
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn a_stale_answer_stands_in_for_a_caller_who_stops_waiting() {
    let upstream = FakeUpstream::start([fare(1), fare(2).gated()]).await;
    let gate = stale(&upstream, "", ON_ERROR, 1).await;
    let hasty = gate.client.clone().with("x-request-timeout", "1");
    let reply = hasty.get(QUOTE).await;
    assert_eq!((reply.status, reply.header("cache-status")), (200, Some("tollgate; hit; detail=stale; ttl=-1")));
    upstream.release(1);
    landed(&gate).await;
    assert_eq!(gate.get(QUOTE).await.json()["distance_meters"], 2);
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn c_05_stated_lifetimes_take_no_stale_window_from_the_preset() {
    let upstream = FakeUpstream::start([Step::ok(nothing()), Step::ok(found()), Step::ok(nothing()).status(404)]).await;
    let gate = opencage("", "cache = { found = \"60s\", not_found = \"2s\" }").start(&upstream).await;
    let ask = async || gate.get("/geocode/v1/json?q=Lyon").await;
    assert_eq!(ask().await.json(), nothing());
    gate.advance(1);
    assert_eq!((ask().await.json(), upstream.calls()), (nothing(), 1));
    gate.advance(2);
    assert_eq!((ask().await.json(), upstream.calls()), (found(), 2), "the wrong no is over");
    gate.advance(61);
    assert_eq!((ask().await.status, upstream.calls()), (404, 3), "no stale answer where none was asked for");
    assert_eq!(gate.spent().await, 15_000);
}

/// A refresh that waits to try again pays for nothing after *off*.
#[tokio::test]
async fn a_refresh_in_back_off_pays_for_nothing_after_off() {
    let busy = fare(2).status(429).header("retry-after", "1");
    let upstream = FakeUpstream::start([fare(1), busy, fare(3)]).await;
    let retry = "retry = { attempts = 3, base = \"1ms\", cap = \"2s\" }";
    let gate = stale(&upstream, retry, BOTH, 1).await;
    assert!(gate.get(QUOTE).await.header("cache-status").unwrap().contains("detail=stale"));
    upstream.wait_for_calls(2).await;
    gate.switch("quote", "off").await;
    landed(&gate).await;
    assert_eq!((upstream.calls(), gate.spent().await), (2, 5_000));
}

/// Without budget what is stale is served, and no refresh is paid for.
#[tokio::test]
async fn f_06_without_budget_a_stale_answer_is_not_refreshed() {
    let upstream = FakeUpstream::start(fare(1)).await;
    let mut setup = quote("", BOTH);
    setup.body = setup.body.replace("budget = \"none\"", "budget = { day = \"0.005 USD\" }");
    let gate = setup.start(&upstream).await;
    gate.get(QUOTE).await;
    for second in [61, 1, 2] {
        gate.advance(second);
        assert!(gate.get(QUOTE).await.header("cache-status").unwrap().contains("detail=stale"));
        landed(&gate).await;
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}
