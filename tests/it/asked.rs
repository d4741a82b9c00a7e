//! What a caller may ask of the cache, what an admin may take out of it, and what changes the key space.

use http::Method;
use serde_json::{Value, json};

use crate::support::gate::{Gate, Setup, encode, found, opencage, quote};
use crate::support::raw::exchange;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const QUOTE: &str = "/v1/quote?from=Delhi&to=Jaipur";
const CACHE: &str = "cache = { found = \"60s\", stale_if_error = \"60s\" }";

fn fare(meters: u64) -> Step {
    Step::ok(json!({ "routes": [{ "distanceMeters": meters, "duration": "60s" }] }))
}

/// Every fare is one metre longer than the one before.
fn fares() -> Vec<Step> {
    (1..20).map(fare).collect()
}

async fn asked(gate: &Gate, cache_control: &str) -> (u16, Value) {
    let reply = gate.client.clone().with("cache-control", cache_control).get(QUOTE).await;
    (reply.status, reply.json()["distance_meters"].clone())
}

async fn purge(gate: &Gate, route: &str, body: Value) -> Value {
    let reply = gate.admin.post(&format!("/v1/answers/{route}/purge"), body).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

#[tokio::test]
async fn a_fresh_answer_is_had_as_often_as_the_route_grants_it() {
    let upstream = FakeUpstream::start(fares()).await;
    let gate = quote("", &format!("refresh = {{ burst = 1, rate = \"1/m\" }}\n{CACHE}")).start(&upstream).await;
    assert_eq!(asked(&gate, "").await, (200, json!(1)));
    assert_eq!(asked(&gate, "no-cache").await, (200, json!(2)));
    for directive in ["no-cache", "max-age=0", "Max-Age=\"0\"", "no-cache, no-store"] {
        assert_eq!(asked(&gate, directive).await, (200, json!(2)), "{directive}");
    }
    // Another caller has a bucket of its own.
    let other = gate.other().with("cache-control", "no-cache").get(QUOTE).await;
    assert_eq!(other.json()["distance_meters"], 3);
    gate.advance(59);
    assert_eq!(asked(&gate, "no-cache").await, (200, json!(3)));
    gate.advance(1);
    // Stale by then: the wish is heard all the same.
    assert_eq!(asked(&gate, "no-cache").await, (200, json!(4)));
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn nobody_forces_a_call_where_the_route_grants_none() {
    let upstream = FakeUpstream::start(fares()).await;
    let gate = quote("", CACHE).start(&upstream).await;
    assert_eq!(asked(&gate, "no-cache").await, (200, json!(1)), "a miss is a miss");
    gate.advance(30);
    for directive in ["no-cache", "max-age=0", "max-age=29", "max-age=1, no-cache"] {
        assert_eq!(asked(&gate, directive).await, (200, json!(1)), "{directive}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_refresh_in_vain_gives_the_hit() {
    let upstream = FakeUpstream::start([fare(1), fare(2).status(503)]).await;
    let gate = quote("", &format!("refresh = {{ burst = 1, rate = \"1/m\" }}\n{CACHE}")).start(&upstream).await;
    asked(&gate, "").await;
    let reply = gate.client.clone().with("cache-control", "no-cache").get(QUOTE).await;
    assert_eq!((&reply.json()["distance_meters"], reply.header("cache-status")), (&json!(1), Some("tollgate; hit; ttl=60")));
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn max_age_takes_nothing_older_where_refreshes_are_granted() {
    let upstream = FakeUpstream::start(fares()).await;
    let gate = quote("", &format!("refresh = {{ burst = 9, rate = \"1/m\" }}\n{CACHE}")).start(&upstream).await;
    asked(&gate, "").await;
    gate.advance(30);
    assert_eq!(asked(&gate, "max-age=30").await, (200, json!(1)));
    assert_eq!(asked(&gate, "max-age=29").await, (200, json!(2)));
    assert_eq!(asked(&gate, "max-age=29").await, (200, json!(2)));
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn only_if_cached_never_pays() {
    let upstream = FakeUpstream::start(fares()).await;
    let gate = quote("", CACHE).start(&upstream).await;
    let client = gate.client.clone().with("cache-control", "only-if-cached");
    let refused = client.get(QUOTE).await;
    assert_eq!((refused.status, &refused.json()["code"], refused.header("cache-status")), (504, &json!("not_cached"), None));
    assert_eq!(upstream.calls(), 0);
    gate.get(QUOTE).await;
    gate.advance(59);
    assert_eq!(client.get(QUOTE).await.header("cache-status"), Some("tollgate; hit; ttl=1"));
    assert_eq!(asked(&gate, "only-if-cached, max-age=58").await.0, 504);
    gate.advance(2);
    assert_eq!(client.get(QUOTE).await.header("cache-status"), Some("tollgate; hit; detail=stale; ttl=-1"));
    gate.advance(60);
    assert_eq!(client.get(QUOTE).await.status, 504);
    gate.switch("quote", "cached").await;
    assert_eq!(gate.get(QUOTE).await.json()["code"], "not_cached");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn c_06_head_never_pays_and_never_feeds_a_get() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = opencage("", "").start(&upstream).await;
    let addr = gate.addr;
    let head = |q: &str| format!("HEAD /geocode/v1/json?q={q} HTTP/1.1\r\nHost: {addr}\r\nX-Api-Key: caller-key\r\n\r\n");
    let miss = crate::support::raw::Raw::connect(addr).await.send(head("Lyon")).await.try_response("HEAD").await;
    let miss = miss.unwrap().unwrap();
    assert_eq!((miss.status, miss.header("proxy-status")), (429, Some("tollgate; details=\"not_cached\"")), "trouble's row");
    let got = gate.get("/geocode/v1/json?q=Lyon").await;
    assert_eq!((got.json(), upstream.calls()), (found(), 1));
    let hit = gate.client.send(Method::HEAD, "/geocode/v1/json?q=lyon", bytes()).await;
    assert_eq!((hit.status, hit.body.len()), (200, 0));
    assert_eq!(hit.header("content-length"), Some(&*got.body.len().to_string()));
    assert_eq!((hit.header("content-type"), hit.header("age")), (got.header("content-type"), Some("0")));
    // On the wire, too: the next answer of the connection begins where HEAD's ends.
    let pipelined = format!(
        "{}GET /geocode/v1/json?q=Lyon HTTP/1.1\r\nHost: {addr}\r\nX-Api-Key: caller-key\r\nConnection: close\r\n\r\n",
        head("Lyon")
    );
    let mut raw = crate::support::raw::Raw::connect(addr).await;
    raw.send(pipelined).await;
    assert_eq!(raw.try_response("HEAD").await.unwrap().unwrap().body.len(), 0);
    assert_eq!(raw.response().await.unwrap().json(), found());
    assert_eq!(gate.client.send(Method::HEAD, "/geocode/v1/json?q=Paris", bytes()).await.status, 429);
    assert_eq!(gate.get("/geocode/v1/json?q=Paris").await.json(), found());
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

fn bytes() -> bytes::Bytes {
    bytes::Bytes::new()
}

#[tokio::test]
async fn c_06_head_on_a_miss_is_504_on_a_route_of_ones_own() {
    let upstream = FakeUpstream::start(fares()).await;
    let gate = quote("", CACHE).start(&upstream).await;
    assert_eq!(gate.client.send(Method::HEAD, QUOTE, bytes()).await.status, 504);
    gate.get(QUOTE).await;
    assert_eq!(gate.client.send(Method::HEAD, QUOTE, bytes()).await.status, 200);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn one_answer_is_purged_by_its_question_however_it_is_spelt() {
    let upstream = FakeUpstream::start(fares()).await;
    let gate = quote("", CACHE).start(&upstream).await;
    gate.get(QUOTE).await;
    gate.get("/v1/quote?from=Delhi&to=Agra").await;
    let purged = purge(&gate, "quote", json!({ "question": { "from": "ＪＡＩＰＵＲ ", "to": "delhi" } })).await;
    assert_eq!(purged["purged"], "one");
    assert_eq!(asked(&gate, "").await, (200, json!(3)));
    gate.get("/v1/quote?from=Delhi&to=Agra").await;
    let unknown = gate.admin.post("/v1/answers/quote/purge", json!({ "question": { "form": "x" } })).await;
    assert_eq!((unknown.status, &unknown.json()["code"]), (400, &json!("unknown_field")));
    assert_eq!(gate.admin.post("/v1/answers/none/purge", json!({})).await.status, 404);
    assert_eq!((upstream.calls(), gate.spent().await), (3, 15_000));
}

#[tokio::test]
async fn a_purge_of_all_reaches_every_answer_and_every_flight_of_before() {
    let upstream = FakeUpstream::start([fare(1), fare(2).gated(), fare(3)]).await;
    let gate = quote("", CACHE).start(&upstream).await;
    gate.get("/v1/quote?from=Delhi&to=Agra").await;
    let (before, ()) = tokio::join!(asked(&gate, ""), async {
        upstream.wait_for_calls(2).await;
        purge(&gate, "quote", json!({})).await;
        // It does not join the flight of before, nor does that one's answer come into its way.
        assert_eq!(asked(&gate, "").await, (200, json!(3)));
        upstream.release(1);
    });
    assert_eq!(before, (200, json!(2)));
    assert_eq!(asked(&gate, "").await, (200, json!(3)));
    gate.get("/v1/quote?from=Delhi&to=Agra").await;
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

/// An answer that was asked for before the purge must not come back through it.
#[tokio::test]
async fn a_purge_of_one_reaches_its_flight_of_before() {
    let upstream = FakeUpstream::start([fare(1).gated(), fare(2)]).await;
    let gate = quote("", CACHE).start(&upstream).await;
    let (before, ()) = tokio::join!(asked(&gate, ""), async {
        upstream.wait_for_calls(1).await;
        purge(&gate, "quote", json!({ "question": { "from": "Delhi", "to": "Jaipur" } })).await;
        assert_eq!(asked(&gate, "").await, (200, json!(2)), "nobody joins it either");
        upstream.release(1);
    });
    assert_eq!(before, (200, json!(1)));
    assert_eq!(asked(&gate, "").await, (200, json!(2)));
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

/// Changes the file and reloads.
async fn rewrite(gate: &Gate, from: &str, to: &str) {
    let path = gate.config_path();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from}: {text}");
    std::fs::write(&path, text.replace(from, to)).unwrap();
    let reply = gate.admin.post("/v1/reload", json!({})).await;
    assert_eq!(reply.status, 200, "{reply:?}");
}

#[tokio::test]
async fn version_and_pinned_values_are_part_of_the_key_and_the_credential_is_not() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate =
        opencage("", "version = 1\n[routes.geo.pinned]\nno_record = { in = \"query\", value = \"1\" }").start(&upstream).await;
    let path = "/geocode/v1/json?q=Lyon";
    for (from, to, calls) in [
        ("version = 1", "version = 2", 2),
        ("value = \"1\"", "value = \"0\"", 3),
        ("version = 2", "version = 1", 4),
        ("value = \"0\"", "value = \"1\"", 4),
    ] {
        gate.get(path).await;
        rewrite(&gate, from, to).await;
        gate.get(path).await;
        assert_eq!(upstream.calls(), calls, "{from} -> {to}");
    }
    std::fs::write(gate.dir.path().join("secret"), "another-key").unwrap();
    rewrite(&gate, "version = 1", "version = 1").await;
    gate.get(path).await;
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
    gate.get("/geocode/v1/json?q=Nice").await;
    assert!(upstream.last().target.contains("key=another-key"));
}

#[tokio::test]
async fn two_field_masks_two_providers_two_languages_are_each_a_question_of_their_own() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let one = "[providers.X]\npreset = \"opencage\"\nbase_url = \"{upstream}\"\nkey = \"{secret}\"\nprice = \"0.005 USD\"\n\
               [routes.X]\nprovider = \"X\"\noperation = \"geocode\"\nbudget = \"none\"\nexpose = \"GET /X\"\n";
    let gate = Setup::new(format!("{}{}", one.replace('X', "a"), one.replace('X', "b"))).start(&upstream).await;
    for path in ["/a?q=x1", "/b?q=x1", "/a?q=x1&language=fr", "/a?q=x1&language=de", "/a?q=x1", "/b?q=x1&language="] {
        gate.get(path).await;
    }
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn a_request_that_is_refused_before_it_is_a_question_costs_nothing() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = opencage("", "").start(&upstream).await;
    for bad in [format!("?q={}", encode("\u{200b}")), "?q=%ff".into(), "?q=a1&q=b1".into(), "?q=a1&what=1".into(), String::new()]
    {
        assert!((400..500).contains(&gate.get(&format!("/geocode/v1/json{bad}")).await.status), "{bad}");
    }
    let closed = exchange(gate.addr, "GET /geocode/v1/json?q=Lyon HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert_eq!(closed.len(), 1);
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}
