//! The table of codes, on routes of one's own shape.

use bytes::Bytes;
use http::Method;
use serde_json::json;

use super::{ID, refused, shown, with_id};
use crate::support::client::{Client, Reply};
use crate::support::gate::{Gate, OTHER_KEY, quote};
use crate::support::routes::{own, routes_found};
use crate::support::soon;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const QUOTE: &str = "/v1/quote?from=Delhi&to=Jaipur";

async fn upstream() -> FakeUpstream {
    FakeUpstream::start(Step::ok(routes_found())).await
}

/// The two numbers.
async fn bill(upstream: &FakeUpstream, gate: &Gate) -> (usize, u64) {
    (upstream.calls(), gate.spent().await)
}

fn client(gate: &Gate) -> Client {
    with_id(&gate.client)
}

#[tokio::test]
async fn not_found() {
    let upstream = upstream().await;
    let gate = quote("", "callers = [\"other\"]").start(&upstream).await;
    let nowhere = client(&gate).get("/nowhere").await;
    refused(&nowhere, 404, "not_found", None);
    insta::assert_snapshot!("not_found", shown(&nowhere));
    // Who is not listed sees no difference.
    let unlisted = client(&gate).get(QUOTE).await;
    assert_eq!((unlisted.status, unlisted.body), (nowhere.status, nowhere.body));
    for path in ["/", "/v1", "/v1/quote/", "/v1/quote/x", "/V1/quote", "/v1//quote"] {
        refused(&client(&gate).get(path).await, 404, "not_found", None);
    }
    assert_eq!(bill(&upstream, &gate).await, (0, 0));
}

#[tokio::test]
async fn bad_request() {
    let upstream = upstream().await;
    let gate = quote("", "").start(&upstream).await;
    let reply = client(&gate).get("/v1/%FF").await;
    refused(&reply, 400, "bad_request", None);
    insta::assert_snapshot!("bad_request", shown(&reply));
    assert_eq!(bill(&upstream, &gate).await, (0, 0));
}

#[tokio::test]
async fn method_not_allowed() {
    let upstream = upstream().await;
    let gate = quote("", "").start(&upstream).await;
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS, Method::PATCH] {
        let reply = client(&gate).send(method.clone(), QUOTE, Bytes::new()).await;
        refused(&reply, 405, "method_not_allowed", None);
        assert_eq!(reply.header("allow"), Some("GET, HEAD"), "{method}");
        insta::assert_snapshot!("method_not_allowed", shown(&reply));
    }
    assert_eq!(bill(&upstream, &gate).await, (0, 0));
}

#[tokio::test]
async fn switched_off() {
    let upstream = upstream().await;
    let gate = quote("", "").start(&upstream).await;
    for switch in ["quote", "all"] {
        gate.switch(switch, "off").await;
        let reply = client(&gate).get(QUOTE).await;
        refused(&reply, 503, "switched_off", None);
        insta::assert_snapshot!("switched_off", shown(&reply));
        gate.switch(switch, "on").await;
    }
    assert_eq!(bill(&upstream, &gate).await, (0, 0));
}

#[tokio::test]
async fn unauthenticated() {
    let upstream = upstream().await;
    let gate = quote("", "").start(&upstream).await;
    let reply = with_id(&gate.stranger()).get(QUOTE).await;
    refused(&reply, 401, "unauthenticated", None);
    assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    insta::assert_snapshot!("unauthenticated", shown(&reply));
    for (header, value) in
        [("x-api-key", "wrong"), ("x-api-key", ""), ("authorization", "Bearer wrong"), ("authorization", "Basic !")]
    {
        let reply = with_id(&gate.stranger()).with(header, value).get(QUOTE).await;
        refused(&reply, 401, "unauthenticated", None);
    }
    assert_eq!(bill(&upstream, &gate).await, (0, 0));
}

#[tokio::test]
async fn invalid_question_unknown_field_duplicate_field() {
    let upstream = upstream().await;
    let gate = quote("", "").start(&upstream).await;
    for (query, code) in [
        ("?from=Delhi&to=!", "invalid_question"),
        ("?from=Delhi&to=Jaipur&via=Agra", "unknown_field"),
        ("?from=A1&from=B1&to=C1", "duplicate_field"),
    ] {
        let reply = client(&gate).get(&format!("/v1/quote{query}")).await;
        refused(&reply, 400, code, None);
        let body = reply.json();
        assert!(body["field"].is_string() && body["reason"].is_string(), "{body}");
        insta::assert_snapshot!(code, shown(&reply));
    }
    let reply = client(&gate).with("x-request-timeout", "soon").get(QUOTE).await;
    refused(&reply, 400, "invalid_question", None);
    assert_eq!(bill(&upstream, &gate).await, (0, 0));
}

#[tokio::test]
async fn body_too_large_and_unsupported_media_type() {
    let upstream = upstream().await;
    let question = "q = { in = \"json\", type = \"text\", required = true }";
    let gate = own("POST /own", "max_body = \"16B\"", question).start(&upstream).await;
    let reply = client(&gate).post("/own", json!({ "q": "Hello, you there" })).await;
    refused(&reply, 413, "body_too_large", None);
    insta::assert_snapshot!("body_too_large", shown(&reply));
    let reply = client(&gate).with("content-type", "text/plain").send(Method::POST, "/own", "hello".into()).await;
    refused(&reply, 415, "unsupported_media_type", None);
    insta::assert_snapshot!("unsupported_media_type", shown(&reply));
    assert_eq!(bill(&upstream, &gate).await, (0, 0));
}

#[tokio::test]
async fn slow_down_and_busy() {
    let upstream = upstream().await;
    let limits = "limits = { caller = { burst = 1, rate = \"1/7s\" }, route = { burst = 2, rate = \"1/11s\" } }";
    let gate = quote("", limits).start(&upstream).await;
    assert_eq!(client(&gate).get(QUOTE).await.status, 200);
    let reply = client(&gate).get(QUOTE).await;
    refused(&reply, 429, "slow_down", Some(7));
    insta::assert_snapshot!("slow_down", shown(&reply));
    // A refusal was free: the route has one left for the other.
    let other = with_id(&gate.other());
    assert_eq!(other.get(QUOTE).await.status, 200);
    gate.advance(7);
    let reply = client(&gate).get(QUOTE).await;
    refused(&reply, 429, "busy", Some(4));
    insta::assert_snapshot!("busy", shown(&reply));
    gate.advance(4);
    assert_eq!(client(&gate).get(QUOTE).await.status, 200);
    assert_eq!(bill(&upstream, &gate).await, (1, 5_000));
}

#[tokio::test]
async fn slow_down_by_a_field_and_busy_by_the_providers_quota() {
    let upstream = upstream().await;
    let question = "q = { in = \"query\", type = \"text\", required = true }";
    let gate = own("GET /own", "limits_by = { q = { burst = 2, rate = \"1/m\" } }", question).start(&upstream).await;
    assert_eq!(client(&gate).get("/own?q=Agra").await.status, 200);
    assert_eq!(client(&gate).get("/own?q=AGRA").await.status, 200, "a hit counts, in every spelling");
    refused(&client(&gate).get("/own?q=agra").await, 429, "slow_down", Some(60));
    assert_eq!(bill(&upstream, &gate).await, (1, 5_000));

    let upstream = self::upstream().await;
    let gate = quote("quota = { burst = 1, rate = \"1/30s\" }", "").start(&upstream).await;
    assert_eq!(client(&gate).get(QUOTE).await.status, 200);
    refused(&client(&gate).get("/v1/quote?from=Agra&to=Surat").await, 429, "busy", Some(30));
    assert_eq!(client(&gate).get(QUOTE).await.status, 200, "a hit needs none of the quota");
    assert_eq!(bill(&upstream, &gate).await, (1, 5_000));
}

#[tokio::test]
async fn not_cached() {
    let upstream = upstream().await;
    let gate = quote("", "").start(&upstream).await;
    let reply = client(&gate).with("cache-control", "only-if-cached").get(QUOTE).await;
    refused(&reply, 504, "not_cached", None);
    insta::assert_snapshot!("not_cached", shown(&reply));
    super::plain(&client(&gate).send(Method::HEAD, QUOTE, Bytes::new()).await, 504, None);
    gate.switch("quote", "cached").await;
    refused(&client(&gate).get(QUOTE).await, 504, "not_cached", None);
    assert_eq!(bill(&upstream, &gate).await, (0, 0));
    gate.switch("quote", "on").await;
    assert_eq!(client(&gate).get(QUOTE).await.status, 200);
    gate.switch("quote", "cached").await;
    assert_eq!(client(&gate).get(QUOTE).await.status, 200);
    assert_eq!(bill(&upstream, &gate).await, (1, 5_000));
}

#[tokio::test]
async fn store_unavailable() {
    let upstream = upstream().await;
    let setup = |route: &str| quote("", route).store("url = \"sqlite:{dir}/t.db\"");
    let cache = "cache = { found = \"1d\" }";
    for (route, status) in [
        (format!("{cache}\non_store_error = {{ cache = \"refuse\" }}"), 503),
        (format!("{cache}\nlockout = {{ misses = 5 }}"), 503),
        // By policy the cache is passed, and so is the lockout where the route says so.
        (format!("{cache}\nlockout = {{ misses = 5 }}\non_store_error = {{ lockout = \"pass\" }}"), 200),
    ] {
        let gate = setup(&route).start(&upstream).await;
        let clock = gate.clock.clone();
        let dir = gate.stop().await;
        // Whoever looks for answers or guesses finds an error.
        let file = rusqlite::Connection::open(dir.path().join("t.db")).unwrap();
        file.execute_batch("DROP TABLE body; DROP TABLE lockout").unwrap();
        drop(file);
        let gate = Gate::from(dir, clock).await;
        let (calls, reply) = (upstream.calls(), client(&gate).get(QUOTE).await);
        if status == 200 {
            assert_eq!((reply.status, upstream.calls(), gate.spent().await), (200, calls + 1, 5_000), "{route} {reply:?}");
        } else {
            refused(&reply, 503, "store_unavailable", Some(1));
            assert!(!reply.text().contains("no such table"), "{reply:?}");
            assert_eq!((upstream.calls(), gate.spent().await), (calls, 0), "{route}");
        }
    }
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test]
async fn circuit_open_and_upstream_failed() {
    let upstream = FakeUpstream::start(Step::ok(json!({})).status(500)).await;
    let gate = quote("breaker = { failures = 1, cooldown = \"30s\" }", "").start(&upstream).await;
    let reply = client(&gate).get(QUOTE).await;
    refused(&reply, 502, "upstream_failed", None);
    insta::assert_snapshot!("upstream_failed", shown(&reply));
    gate.advance(10);
    let reply = client(&gate).get(QUOTE).await;
    refused(&reply, 503, "circuit_open", Some(20));
    insta::assert_snapshot!("circuit_open", shown(&reply));
    assert_eq!(bill(&upstream, &gate).await, (1, 5_000));
}

#[tokio::test]
async fn upstream_failed_is_whatever_is_no_answer() {
    let steps = [
        Step::ok(json!({})).status(503),
        Step::ok(json!({})).status(302).header("Location", "http://127.0.0.1:9/"),
        Step::ok(json!({})).header("Content-Type", "text/html").body("<html>hello</html>"),
        Step::ok(json!({})).header("Content-Encoding", "br").body("what"),
        Step::cut(10),
        Step::close(),
        Step::raw("nonsense\r\n\r\n"),
    ];
    let count = steps.len();
    let upstream = FakeUpstream::start(steps).await;
    let gate = quote("breaker = { failures = 100, cooldown = \"30s\" }", "").start(&upstream).await;
    for step in 0..count {
        let reply = client(&gate).get(QUOTE).await;
        assert_eq!(reply.status, 502, "step {step}: {reply:?}");
        refused(&reply, 502, "upstream_failed", None);
    }
    assert_eq!(bill(&upstream, &gate).await, (count, 5_000 * count as u64));
}

#[tokio::test]
async fn weak_answer() {
    let weak = json!({ "routes": [{ "distanceMeters": 1 }], "geocodingResults": { "origin": { "partialMatch": true } } });
    let upstream = FakeUpstream::start(Step::ok(weak)).await;
    let gate = quote("", "").start(&upstream).await;
    for _ in 0..2 {
        let reply = client(&gate).get(QUOTE).await;
        refused(&reply, 422, "weak_answer", None);
        insta::assert_snapshot!("weak_answer", shown(&reply));
    }
    assert_eq!(bill(&upstream, &gate).await, (1, 5_000));
}

#[tokio::test]
async fn upstream_rejected_has_the_providers_status() {
    let upstream = FakeUpstream::start(Step::ok(json!({ "error": "no" })).status(422)).await;
    let gate = quote("", "").start(&upstream).await;
    for _ in 0..2 {
        let reply = client(&gate).get(QUOTE).await;
        refused(&reply, 422, "upstream_rejected", None);
        insta::assert_snapshot!("upstream_rejected", shown(&reply));
    }
    assert_eq!(bill(&upstream, &gate).await, (1, 5_000));
}

#[tokio::test]
async fn upstream_rejected_is_never_a_success() {
    // Google says 200 to a question it rejects.
    let upstream = FakeUpstream::start(Step::ok(json!({ "status": "INVALID_REQUEST", "results": [] }))).await;
    let body = "[providers.google-geocoding]\npreset = \"google-geocoding\"\nbase_url = \"{upstream}\"\nkey = \"{secret}\"\n\
                price = \"0.005 USD\"\nretry = { attempts = 1 }\n\
                [routes.town]\nprovider = \"google-geocoding\"\nexpose = \"GET /town\"\nbudget = \"none\"\n\
                [routes.town.question]\nname = { in = \"query\", type = \"text\", required = true }\n\
                [routes.town.send]\npath = \"/maps/api/geocode/json\"\nquery = { address = \"{name}\" }\n\
                [routes.town.reply]\nstatus = \"$.status\"\n";
    let gate = crate::support::gate::Setup::new(body).start(&upstream).await;
    let reply = client(&gate).get("/town?name=Bonn").await;
    refused(&reply, 400, "upstream_rejected", None);
    assert_eq!(bill(&upstream, &gate).await, (1, 5_000));
}

#[tokio::test]
async fn upstream_denied_is_no_reason_to_wait() {
    let upstream = FakeUpstream::start(Step::ok(json!({ "error": "bad key" })).status(403).header("Retry-After", "9")).await;
    let gate = quote("", "").start(&upstream).await;
    let reply = client(&gate).get(QUOTE).await;
    refused(&reply, 502, "upstream_denied", None);
    insta::assert_snapshot!("upstream_denied", shown(&reply));
    // The provider does not bill what it denies.
    assert_eq!(bill(&upstream, &gate).await, (1, 0));
}

#[tokio::test]
async fn upstream_busy_says_when_to_come_back() {
    let upstream =
        FakeUpstream::start([Step::ok(json!({})).status(429).header("Retry-After", "17"), Step::ok(json!({})).status(429)]).await;
    let gate = quote("", "").start(&upstream).await;
    let reply = client(&gate).get(QUOTE).await;
    refused(&reply, 503, "upstream_busy", Some(17));
    insta::assert_snapshot!("upstream_busy", shown(&reply));
    gate.advance(10);
    refused(&client(&gate).get(QUOTE).await, 503, "upstream_busy", Some(7));
    gate.advance(7);
    // A provider that names no time is still worth asking again.
    refused(&client(&gate).get(QUOTE).await, 503, "upstream_busy", Some(1));
    assert_eq!(bill(&upstream, &gate).await, (2, 0));
}

#[tokio::test]
async fn upstream_timeout_by_the_provider_and_by_the_callers_patience() {
    let upstream = FakeUpstream::start([Step::hang(), Step::ok(routes_found()).gated()]).await;
    let gate = quote("timeout = \"300ms\"\nflight = \"40s\"", "deadline = \"10s\"").start(&upstream).await;
    let reply = client(&gate).get(QUOTE).await;
    refused(&reply, 504, "upstream_timeout", None);
    insta::assert_snapshot!("upstream_timeout", shown(&reply));
    assert_eq!(upstream.calls(), 1);
    drop(gate);
    let gate = quote("timeout = \"10s\"\nflight = \"40s\"", "deadline = \"50ms\"").start(&upstream).await;
    refused(&client(&gate).get(QUOTE).await, 504, "upstream_timeout", Some(40));
    upstream.wait_for_calls(2).await;
    upstream.release(1);
    // The call went on, and its answer is kept.
    soon("the answer in the cache", async {
        while client(&gate).with("cache-control", "only-if-cached").get(QUOTE).await.status != 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(bill(&upstream, &gate).await, (2, 5_000));
}

#[tokio::test]
async fn shutting_down() {
    let upstream = FakeUpstream::start(Step::ok(routes_found()).gated()).await;
    let mut gate = quote("", "").start(&upstream).await;
    let (asker, late) = (client(&gate), client(&gate));
    let first = tokio::spawn(async move { asker.get(QUOTE).await });
    upstream.wait_for_calls(1).await;
    let stop = tokio::spawn(gate.running.take().unwrap().stop());
    gate.admin.until("/readyz", 503).await;
    let reply: Reply = late.fresh().get("/v1/quote?from=Agra&to=Goa").await;
    refused(&reply, 503, "shutting_down", Some(1));
    assert_eq!(reply.header("connection"), Some("close"));
    insta::assert_snapshot!("shutting_down", shown(&reply));
    upstream.release(1);
    assert_eq!(first.await.unwrap().status, 200, "what was in flight ends");
    soon("the end", stop).await.unwrap();
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test]
async fn ids_are_taken_over_only_if_they_are_short_and_printable() {
    let upstream = upstream().await;
    let gate = quote("", "").start(&upstream).await;
    for wrong in ["", "has space", "é", &"x".repeat(65)] {
        let Ok(value) = http::HeaderValue::from_bytes(wrong.as_bytes()) else { continue };
        let reply = gate.stranger().with("x-api-key", OTHER_KEY).with("x-request-id", "a").get("/nowhere").await;
        assert_eq!(reply.header("x-request-id"), Some("a"));
        let mut odd = gate.stranger();
        odd = odd.with_value("x-request-id", value);
        let reply = odd.get("/nowhere").await;
        let id = reply.header("x-request-id").unwrap().to_owned();
        assert!(id.len() == 36 && id != ID, "{id}");
        assert_eq!(reply.json()["request_id"], id.as_str());
    }
    assert_eq!(bill(&upstream, &gate).await, (0, 0));
}
