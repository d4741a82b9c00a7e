//! The breaker: what opens it, what does not, and who may probe.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use crate::support::client::Reply;
use crate::support::gate::{Gate, SECRET, fare, quote};
use crate::support::raw::Raw;
use crate::support::step::{Script, Step};
use crate::support::upstream::FakeUpstream;

mod retry;

/// A provider that trips after three failures and is tried again after a second.
const TRIPS: &str = "timeout = \"400ms\"\nflight = \"800ms\"\nbreaker = { failures = 3, cooldown = \"1s\" }";

fn busy() -> Step {
    Step::ok(json!({ "error": { "code": 429 } })).status(429)
}

fn broken() -> Step {
    Step::ok(json!({ "error": { "code": 503 } })).status(503)
}

fn rejected() -> Step {
    Step::ok(json!({ "error": { "code": 400 } })).status(400)
}

async fn gate(provider: &str, script: impl Into<Script>) -> (FakeUpstream, Gate) {
    let upstream = FakeUpstream::start(script).await;
    let gate = quote(provider, "").start(&upstream).await;
    (upstream, gate)
}

/// A question nobody has asked before.
async fn ask(gate: &Gate, town: impl std::fmt::Display) -> Reply {
    gate.get(&format!("/v1/quote?from=Delhi&to=Town{town}")).await
}

async fn state(gate: &Gate) -> String {
    let status = gate.admin.get("/v1/status").await.json();
    status["breakers"]["google-routes"].as_str().unwrap_or_default().to_owned()
}

async fn trip(upstream: &FakeUpstream, gate: &Gate) {
    upstream.set_script(broken());
    for n in 0..3 {
        assert_eq!(ask(gate, format!("trip{n}")).await.code(), "upstream_failed");
    }
    assert_eq!(state(gate).await, "open");
}

fn retry_after(reply: &Reply) -> Option<u64> {
    reply.header("retry-after").map(|text| text.parse().unwrap())
}

#[tokio::test]
async fn an_open_breaker_refuses_with_a_true_wait_and_costs_nothing() {
    let (upstream, gate) = gate(TRIPS, fare_step()).await;
    trip(&upstream, &gate).await;
    upstream.set_script(fare_step());
    gate.clock.advance(Duration::from_millis(100));
    for n in 0..5 {
        let refused = ask(&gate, n).await;
        assert_eq!((refused.status, refused.code(), retry_after(&refused)), (503, "circuit_open".into(), Some(1)));
    }
    assert_eq!(upstream.calls(), 3);
    gate.clock.advance(Duration::from_secs(1));
    assert_eq!(ask(&gate, "after").await.status, 200);
    assert_eq!(state(&gate).await, "closed");
    assert_eq!(gate.metric("tollgate_saved_micros_total", "cause=\"breaker\"").await, 25_000);
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

fn fare_step() -> Step {
    Step::ok(fare())
}

/// Trips the breaker, lets `probe` be whatever it is, and expects the next request to close it.
async fn heals_after(probe: Step, hang_up: bool, calls: usize, spent: u64) {
    let (upstream, gate) = gate(TRIPS, fare_step()).await;
    trip(&upstream, &gate).await;
    gate.clock.advance(Duration::from_secs(1));
    upstream.set_script(probe.clone());
    if hang_up {
        let mut raw = Raw::connect(gate.addr).await;
        let key = crate::support::gate::KEY;
        raw.send(format!("GET /v1/quote?from=Delhi&to=Probe HTTP/1.1\r\nHost: g\r\nX-Api-Key: {key}\r\n\r\n")).await;
        upstream.wait_for_calls(4).await;
        drop(raw);
        // The probe is nobody's now; it ends at the latest with its time.
        crate::support::soon("the probe's end", async {
            while gate.metric_of("tollgate_flights").await != 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    } else {
        let reply = ask(&gate, "probe").await;
        assert_ne!(reply.status, 200, "{probe:?}");
    }
    gate.clock.advance(Duration::from_secs(1));
    upstream.set_script(fare_step());
    let reply = ask(&gate, "after").await;
    assert_eq!(reply.status, 200, "{probe:?}: {reply:?}");
    assert_eq!(state(&gate).await, "closed", "{probe:?}");
    assert_eq!((upstream.calls(), gate.spent().await), (calls, spent), "{probe:?}");
}

#[tokio::test]
async fn b_01_a_probe_whose_client_closes_makes_room() {
    heals_after(Step::hang(), true, 5, 25_000).await;
}

#[tokio::test]
async fn b_01_a_probe_that_hangs_makes_room() {
    heals_after(Step::hang(), false, 5, 25_000).await;
}

#[tokio::test]
async fn b_01_a_probe_answered_404_makes_room() {
    heals_after(Step::ok(json!({ "error": { "code": 404 } })).status(404), false, 5, 25_000).await;
}

#[tokio::test]
async fn b_01_a_probe_cut_short_makes_room() {
    heals_after(Step::cut(10), false, 5, 25_000).await;
}

#[tokio::test]
async fn b_01_a_probe_with_nonsense_makes_room() {
    for nonsense in [
        Step::raw("\u{0}\u{1}\u{2}"),
        Step::ok(json!({})).body(vec![0xff; 64]),
        Step::ok(json!({})).body("[".repeat(5_000)),
        Step::ok(json!({ "routes": "x", "geocodingResults": [[[]]] })).header("retry-after", vec![0xff]).status(500),
    ] {
        heals_after(nonsense, false, 5, 25_000).await;
    }
}

#[tokio::test]
async fn b_01_a_probe_refused_by_the_quota_gives_its_permit_back() {
    let (upstream, gate) = gate(&format!("{TRIPS}\nquota = {{ burst = 3, rate = \"1/h\" }}"), fare_step()).await;
    trip(&upstream, &gate).await;
    upstream.set_script(fare_step());
    gate.advance(1);
    assert_eq!(ask(&gate, "probe").await.code(), "busy", "after the permit, before the wire");
    gate.advance(3_600);
    assert_eq!(ask(&gate, "after").await.status, 200);
    assert_eq!(state(&gate).await, "closed");
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn b_01_a_probe_refused_by_the_switch_gives_its_permit_back() {
    let (upstream, gate) = gate(TRIPS, fare_step()).await;
    trip(&upstream, &gate).await;
    upstream.set_script(fare_step());
    gate.advance(1);
    gate.switch("quote", "off").await;
    assert_eq!(ask(&gate, "probe").await.code(), "switched_off");
    gate.switch("quote", "on").await;
    assert_eq!(ask(&gate, "after").await.status, 200);
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn one_probe_at_a_time_and_it_is_never_retried() {
    let lines = "timeout = \"400ms\"\nretry = { attempts = 3, base = \"1ms\", cap = \"2ms\" }\nbreaker = { failures = 3, cooldown = \"1s\" }";
    let (upstream, gate) = gate(lines, broken()).await;
    // Three attempts of one flight count as three.
    assert_eq!(ask(&gate, "trip").await.code(), "upstream_failed");
    assert_eq!((upstream.calls(), state(&gate).await), (3, "open".into()));
    gate.advance(1);
    upstream.set_script(broken().gated());
    let client = gate.client.clone();
    let probe = tokio::spawn(async move { client.get("/v1/quote?from=Delhi&to=Probe").await });
    upstream.wait_for_calls(4).await;
    assert_eq!(ask(&gate, "beside").await.code(), "circuit_open");
    upstream.release(100);
    assert_eq!(probe.await.unwrap().code(), "upstream_failed");
    assert_eq!(state(&gate).await, "open");
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn b_02_a_clients_400s_do_not_open_it() {
    let (upstream, gate) = gate(TRIPS, rejected()).await;
    for n in 0..50 {
        assert_eq!(ask(&gate, n).await.code(), "upstream_rejected");
    }
    upstream.set_script(fare_step());
    assert_eq!(ask(&gate, "good").await.status, 200);
    assert_eq!((upstream.calls(), gate.spent().await), (51, 255_000));
}

#[tokio::test]
async fn b_02_b_400s_between_failures_do_not_heal_it() {
    let script = Script::by(|asked| if asked.text().contains("good") { rejected() } else { broken() });
    let (upstream, gate) = gate(TRIPS, script).await;
    for n in 0..3 {
        assert_eq!(ask(&gate, format!("bad{n}")).await.code(), "upstream_failed");
        if n < 2 {
            assert_eq!(ask(&gate, format!("good{n}")).await.code(), "upstream_rejected");
        }
    }
    assert_eq!(ask(&gate, "next").await.code(), "circuit_open");
    assert_eq!((upstream.calls(), gate.spent().await), (5, 25_000));
}

#[tokio::test]
async fn b_02_c_a_400_does_not_close_it_and_the_next_request_probes() {
    let (upstream, gate) = gate(TRIPS, fare_step()).await;
    trip(&upstream, &gate).await;
    gate.advance(1);
    upstream.set_script([rejected(), broken()]);
    assert_eq!(ask(&gate, "probe").await.code(), "upstream_rejected");
    assert_eq!(state(&gate).await, "half-open");
    assert_eq!(ask(&gate, "second").await.code(), "upstream_failed");
    assert_eq!(state(&gate).await, "open");
    assert_eq!(ask(&gate, "third").await.code(), "circuit_open");
    assert_eq!((upstream.calls(), gate.spent().await), (5, 25_000));
}

#[tokio::test]
async fn b_02_d_a_429_is_back_pressure_and_no_failure() {
    let (upstream, gate) = gate(TRIPS, busy()).await;
    for n in 0..10 {
        let refused = ask(&gate, n).await;
        assert_eq!((refused.status, refused.code()), (503, "upstream_busy".into()));
    }
    assert_eq!((upstream.calls(), state(&gate).await), (10, "closed".into()));
    // The time it names is obeyed, by everyone.
    upstream.set_script(busy().header("retry-after", "5"));
    assert_eq!(retry_after(&ask(&gate, "named").await), Some(5));
    upstream.set_script(fare_step());
    gate.advance(2);
    let refused = ask(&gate, "meanwhile").await;
    assert_eq!((refused.code(), retry_after(&refused)), ("upstream_busy".into(), Some(3)));
    gate.advance(3);
    assert_eq!(ask(&gate, "after").await.status, 200);
    assert_eq!((upstream.calls(), gate.spent().await), (12, 5_000), "a 429 is not billed");
}

#[tokio::test]
async fn b_02_e_connections_that_fail_open_it_and_cost_nothing() {
    let gate = quote(TRIPS, "").start_at("http://127.0.0.1:1").await;
    for n in 0..3 {
        let refused = ask(&gate, n).await;
        assert_eq!((refused.status, refused.code()), (502, "upstream_failed".into()));
    }
    assert_eq!(ask(&gate, "next").await.code(), "circuit_open");
    assert_eq!(gate.metric("tollgate_upstream_calls_total", "billed=\"no\"").await, 3);
    assert_eq!(gate.spent().await, 0);
}

#[tokio::test]
async fn b_02_a_refused_credential_is_told_at_once_and_never_retried() {
    let lines = "retry = { attempts = 3, base = \"1ms\", cap = \"2ms\" }\nbreaker = { failures = 3 }";
    for status in [401, 403] {
        let echo = Step::ok(json!({ "error": format!("the key {SECRET} is wrong") })).status(status);
        let (upstream, gate) = gate(lines, echo).await;
        for n in 0..5 {
            let refused = ask(&gate, n).await;
            assert_eq!((refused.status, refused.code()), (502, "upstream_denied".into()));
            assert!(!refused.text().contains(SECRET));
        }
        assert_eq!((upstream.calls(), gate.spent().await), (5, 0));
    }
}
