//! Buckets: a caller's, a route's, a field's, and the provider's quota.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tollgate::config::Config;

use crate::support::client::Reply;
use crate::support::gate::{Gate, Setup, fare, found, opencage, quote};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const ASK: &str = "/v1/quote?from=Delhi&to=Jaipur";

async fn gate(route: &str) -> (FakeUpstream, Gate) {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = quote("", route).start(&upstream).await;
    (upstream, gate)
}

/// Asks so often; the statuses.
async fn ask(gate: &Gate, times: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..times {
        statuses.push(gate.get(ASK).await.status);
    }
    statuses
}

fn retry_after(reply: &Reply) -> u64 {
    reply.header("retry-after").unwrap_or_else(|| panic!("no Retry-After: {reply:?}")).parse().unwrap()
}

fn passed(statuses: &[u16]) -> usize {
    statuses.iter().filter(|status| **status == 200).count()
}

#[tokio::test]
async fn l_01_an_empty_bucket_fills_by_itself_and_only_full_ones_are_forgotten() {
    let (upstream, gate) = gate("limits = { caller = { burst = 2, rate = \"1/10s\" } }").await;
    assert_eq!(ask(&gate, 3).await, [200, 200, 429]);
    gate.advance(10);
    assert_eq!(ask(&gate, 2).await, [200, 429]);
    // Years of refusals owe nothing: an hour later it is full, and no fuller.
    gate.advance(3_600);
    assert_eq!(ask(&gate, 3).await, [200, 200, 429]);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn l_03_a_poller_faster_than_the_refill_still_gets_its_tokens() {
    let (upstream, gate) = gate("limits = { caller = { burst = 1, rate = \"1/2s\" } }").await;
    let mut statuses = Vec::new();
    for _ in 0..34 {
        statuses.push(gate.get(ASK).await.status);
        gate.clock.advance(Duration::from_millis(300));
    }
    assert!((5..=7).contains(&passed(&statuses)), "{statuses:?}");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn l_04_a_refused_dear_request_is_free() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let lines = |cost: &str| format!("limits = {{ caller = {{ burst = 10, rate = \"1/h\" }}, cost = {cost} }}");
    let mut gate = quote("", &lines("7")).start(&upstream).await;
    assert_eq!(ask(&gate, 1).await, [200]);
    for (cost, want) in [("5", 429), ("3", 200), ("1", 429)] {
        gate = reload(gate, &upstream, &quote("", &lines(cost))).await;
        assert_eq!(ask(&gate, 1).await, [want], "cost {cost}");
    }
    gate.advance(10 * 3_600);
    gate = reload(gate, &upstream, &quote("", &lines("10"))).await;
    assert_eq!(ask(&gate, 2).await, [200, 429], "cost = capacity passes when full");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

async fn reload(gate: Gate, upstream: &FakeUpstream, setup: &Setup) -> Gate {
    std::fs::write(gate.config_path(), setup.render(gate.dir.path(), &upstream.url())).unwrap();
    let reply = gate.admin.post("/v1/reload", json!({})).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    gate
}

#[tokio::test]
async fn l_04_costs_that_can_never_pass_are_found_in_the_config() {
    for cost in ["11", "0", "-1", "9007199254740992", "9223372036854775807", "1.5"] {
        let dir = tempfile::tempdir().unwrap();
        let limits = format!("limits = {{ caller = {{ burst = 10, rate = \"1/s\" }}, cost = {cost} }}");
        let text = quote("", &limits).render(dir.path(), "http://127.0.0.1:1");
        let path = dir.path().join("tollgate.toml");
        std::fs::write(&path, text).unwrap();
        let faults = Config::load(&path).expect_err(cost).to_string();
        assert!(faults.contains("limits"), "{cost}: {faults}");
    }
}

#[tokio::test]
async fn l_05_who_waits_as_told_passes_in_every_phase() {
    let (upstream, gate) = gate("limits = { caller = { burst = 1, rate = \"2/3s\" } }").await;
    for phase in 0..50_u64 {
        gate.clock.advance(Duration::from_millis(1_500 + phase * 31));
        assert_eq!(ask(&gate, 1).await, [200], "phase {phase}");
        // Anywhere in the refill, down to its last 20 ms.
        let waited = if phase % 10 == 9 { 1_480 } else { (phase * 31) % 1_500 };
        gate.clock.advance(Duration::from_millis(waited));
        let refused = gate.get(ASK).await;
        let exact = (1_500 - waited).div_ceil(1_000).max(1);
        assert_eq!(retry_after(&refused), exact, "phase {phase}");
        gate.advance(retry_after(&refused));
        assert_eq!(ask(&gate, 1).await, [200], "phase {phase}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn l_06_a_refusal_by_one_bucket_takes_nothing_from_the_others() {
    // The other caller empties the route's bucket.
    let lines = "limits = { caller = { burst = 5, rate = \"1/h\" }, route = { burst = 5, rate = \"5/m\" } }";
    let (upstream, gate) = gate(lines).await;
    let other = gate.other();
    for _ in 0..5 {
        assert_eq!(other.get(ASK).await.status, 200);
    }
    for _ in 0..5 {
        let refused = gate.get(ASK).await;
        assert_eq!((refused.status, refused.code()), (429, "busy".into()));
    }
    gate.advance(60);
    assert_eq!(ask(&gate, 6).await, [200, 200, 200, 200, 200, 429], "the caller's own tokens are still there");

    // The mirror: this caller's bucket is empty, and its refusals leave the route's alone.
    gate.advance(60);
    for _ in 0..20 {
        let refused = gate.get(ASK).await;
        assert_eq!((refused.status, refused.code()), (429, "slow_down".into()));
    }
    gate.advance(3_600 * 5);
    assert_eq!(ask(&gate, 5).await, [200; 5]);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn hits_count_for_the_route_and_callers_do_not_share() {
    let (upstream, gate) =
        gate("limits = { caller = { burst = 3, rate = \"1/h\" }, route = { burst = 5, rate = \"1/h\" } }").await;
    assert_eq!(ask(&gate, 4).await, [200, 200, 200, 429]);
    let other = gate.other();
    assert_eq!(other.get(ASK).await.status, 200);
    assert_eq!(other.get(ASK).await.status, 200);
    let refused = other.get(ASK).await;
    assert_eq!((refused.status, refused.code()), (429, "busy".into()), "five requests, four of them hits");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_field_has_one_bucket_however_it_is_spelled_and_whoever_asks() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = opencage("", "limits_by = { q = { burst = 2, rate = \"1/h\" } }").start(&upstream).await;
    let geo = |q: &str| format!("/geocode/v1/json?q={q}");
    let first = gate.get(&geo("Jaipur")).await;
    assert_eq!((first.status, first.header("ratelimit")), (200, Some("\"q\";r=1;t=3600")));
    assert_eq!(first.header("ratelimit-policy"), Some("\"q\";q=2;w=7200"));
    assert_eq!(gate.other().get(&geo("%20JAIPUR&language=fr")).await.status, 200);
    let refused = gate.get(&geo("jaipur")).await;
    assert_eq!((refused.status, refused.code(), retry_after(&refused)), (429, "slow_down".into(), 3_600));
    assert_eq!(refused.header("ratelimit"), Some("\"q\";r=0;t=7200"));
    assert_eq!(gate.get(&geo("Agra")).await.status, 200);
    assert_eq!((upstream.calls(), gate.spent().await), (3, 15_000));
}

#[tokio::test]
async fn headers_say_what_is_left_on_answers_and_refusals() {
    let (upstream, gate) =
        gate("limits = { caller = { burst = 2, rate = \"1/5s\" }, route = { burst = 100, rate = \"50/s\" } }").await;
    let first = gate.get(ASK).await;
    assert_eq!(first.header("ratelimit-policy"), Some("\"caller\";q=2;w=10, \"route\";q=100;w=2"));
    assert_eq!(first.header("ratelimit"), Some("\"caller\";r=1;t=5"));
    assert_eq!(gate.get(ASK).await.header("ratelimit"), Some("\"caller\";r=0;t=10"));
    let refused = gate.get(ASK).await;
    assert_eq!((refused.status, retry_after(&refused)), (429, 5));
    assert_eq!(refused.header("ratelimit"), Some("\"caller\";r=0;t=10"));
    assert_eq!(refused.header("ratelimit-policy"), first.header("ratelimit-policy"));
    assert!(refused.header("cache-status").is_none());
    gate.clock.advance(Duration::from_millis(3_500));
    assert_eq!(retry_after(&gate.get(ASK).await), 2, "rounded up");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn what_is_refused_before_costs_no_token_and_no_money() {
    let (upstream, gate) = gate("limits = { caller = { burst = 1, rate = \"1/h\" } }").await;
    for path in ["/v1/quote?from=Delhi", "/v1/quote?from=Delhi&to=Jaipur&color=red", "/v1/quote?from=!&to=Jaipur"] {
        assert_eq!(gate.get(path).await.status, 400, "{path}");
    }
    assert_eq!(gate.stranger().get(ASK).await.status, 401);
    assert_eq!(ask(&gate, 2).await, [200, 429]);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn of_200_at_once_a_bucket_of_10_lets_10_through() {
    let (upstream, gate) = gate("limits = { caller = { burst = 10, rate = \"1/h\" } }").await;
    let replies = join_all((0..200).map(|n| {
        let client = gate.client.clone();
        async move { client.get(&format!("/v1/quote?from=Delhi&to=Town{n}")).await.status }
    }))
    .await;
    assert_eq!(passed(&replies), 10);
    assert_eq!(replies.iter().filter(|status| **status == 429).count(), 190);
    assert_eq!((upstream.calls(), gate.spent().await), (10, 50_000));
}

#[test]
fn a_field_that_may_change_places_has_no_bucket() {
    for line in ["limits_by = { to = { burst = 3, rate = \"3/h\" } }", "lockout = { subject = \"to\" }"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tollgate.toml");
        std::fs::write(&path, quote("", line).render(dir.path(), "http://127.0.0.1:1")).unwrap();
        let faults = Config::load(&path).unwrap_err().to_string();
        assert!(faults.contains("change places"), "{faults}");
    }
}

/// Two routes of one provider, whose quota is three attempts.
fn two_routes(provider: &str, cache: &str) -> Setup {
    let mut setup = opencage(&format!("quota = {{ burst = 3, rate = \"3/h\" }}\n{provider}"), cache);
    setup.body.push_str(
        "[routes.geo2]\nprovider = \"opencage\"\noperation = \"geocode\"\nexpose = \"GET /second\"\nbudget = \"none\"\n",
    );
    setup
}

#[tokio::test]
async fn the_providers_quota_is_for_attempts_over_all_its_routes() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = two_routes("", "").start(&upstream).await;
    assert_eq!(gate.get("/geocode/v1/json?q=Agra").await.status, 200);
    assert_eq!(gate.get("/second?q=Agra").await.status, 200);
    for _ in 0..20 {
        assert_eq!(gate.get("/geocode/v1/json?q=Agra").await.status, 200, "hits do not touch it");
    }
    assert_eq!(gate.get("/second?q=Pune").await.status, 200);
    let refused = gate.get("/geocode/v1/json?q=Delhi").await;
    assert_eq!((refused.status, refused.code(), retry_after(&refused)), (429, "busy".into(), 1_200));
    assert_eq!(gate.get("/geocode/v1/json?q=agra").await.status, 200, "and a used-up quota does not touch hits");
    gate.advance(1_200);
    assert_eq!(gate.get("/geocode/v1/json?q=Delhi").await.status, 200);
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn every_retry_takes_from_the_quota_and_a_refused_one_ends_the_flight() {
    let upstream = FakeUpstream::start(Step::ok(json!({})).status(503)).await;
    let retry = "retry = { attempts = 5, base = \"1ms\", cap = \"2ms\" }\nbreaker = { failures = 100 }";
    let gate = two_routes(retry, "").start(&upstream).await;
    let refused = gate.get("/geocode/v1/json?q=Agra").await;
    assert_eq!(refused.code(), "busy");
    assert_eq!(gate.metric("tollgate_saved_micros_total", "limited").await, 0, "after money was spent nothing was saved");
    assert_eq!((upstream.calls(), gate.spent().await), (3, 15_000));
}

#[tokio::test]
async fn joiners_do_not_touch_the_quota() {
    let upstream = FakeUpstream::start(Step::ok(found()).gated()).await;
    let gate = two_routes("", "").start(&upstream).await;
    let askers: Vec<_> = (0..20)
        .map(|_| {
            let client = gate.client.clone();
            tokio::spawn(async move { client.get("/geocode/v1/json?q=Agra").await.status })
        })
        .collect();
    upstream.wait_for_calls(1).await;
    upstream.release(100);
    for asker in askers {
        assert_eq!(asker.await.unwrap(), 200);
    }
    for town in ["Pune", "Delhi"] {
        assert_eq!(gate.get(&format!("/geocode/v1/json?q={town}")).await.status, 200);
    }
    assert_eq!(gate.get("/geocode/v1/json?q=Jaipur").await.status, 429);
    assert_eq!((upstream.calls(), gate.spent().await), (3, 15_000));
}

#[tokio::test]
async fn a_stale_answer_stands_in_while_the_quota_is_used_up() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = two_routes("", "cache = { found = \"1h\", stale_if_error = \"1d\", stale_while_revalidate = \"1s\" }")
        .start(&upstream)
        .await;
    assert_eq!(gate.get("/geocode/v1/json?q=Agra").await.status, 200);
    gate.advance(3_700);
    for town in ["Pune", "Delhi", "Jaipur"] {
        assert_eq!(gate.get(&format!("/geocode/v1/json?q={town}")).await.status, 200);
    }
    let stale = gate.get("/geocode/v1/json?q=Agra").await;
    assert_eq!((stale.status, stale.json()), (200, found()));
    assert!(stale.header("cache-status").unwrap().contains("detail=stale"), "{stale:?}");
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}
