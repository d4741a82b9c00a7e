//! Single flight: one question in the air is paid once, whoever asks, leaves or fails.

use std::time::Duration;

use futures_util::future::join_all;
use http::Method;
use serde_json::json;
use tokio::time::Instant;

use crate::support::client::Reply;
use crate::support::gate::{Gate, KEY, found, opencage, quote};
use crate::support::raw::Raw;
use crate::support::soon;
use crate::support::step::{Script, Step};
use crate::support::upstream::FakeUpstream;

const QUOTE: &str = "/v1/quote?from=Delhi&to=Jaipur";

fn fare(meters: u64) -> Step {
    Step::ok(json!({ "routes": [{ "distanceMeters": meters, "duration": "60s" }] }))
}

fn raw_get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\n\r\n")
}

/// Waits until a metric's line holds.
async fn metric_is(gate: &Gate, line: &str) {
    soon(line, async {
        while !gate.metrics().await.lines().any(|known| known == line) {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    })
    .await;
}

/// Waits until so many have come past the cache: each of them has asked the store.
async fn past_the_cache(gate: &Gate, askers: u64) {
    metric_is(gate, &format!("tollgate_store_seconds_count{{op=\"answer\"}} {askers}")).await;
}

/// Time for the gateway to see that a client has gone: nothing tells when it has, so this can only make a test too kind.
async fn noticed() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

async fn landed(gate: &Gate) {
    metric_is(gate, "tollgate_flights 0").await;
}

#[tokio::test]
async fn f_01_the_leader_hangs_up_and_the_others_are_answered() {
    let upstream = FakeUpstream::start(fare(1).gated()).await;
    let gate = quote("", "").start(&upstream).await;
    let mut leader = Raw::connect(gate.addr).await;
    leader.send(raw_get(QUOTE)).await;
    upstream.wait_for_calls(1).await;
    let (replies, ()) = tokio::join!(join_all((0..2).map(|_| gate.get(QUOTE))), async {
        past_the_cache(&gate, 3).await;
        drop(leader);
        noticed().await;
        upstream.release(1);
    });
    for reply in replies {
        assert_eq!((reply.status, reply.header("cache-status")), (200, Some("tollgate; fwd=miss; collapsed")));
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn f_01_all_leave_and_the_flight_lands() {
    let upstream = FakeUpstream::start(fare(1).gated()).await;
    let gate = quote("", "").start(&upstream).await;
    let mut askers = Vec::new();
    for _ in 0..3 {
        let mut raw = Raw::connect(gate.addr).await;
        raw.send(raw_get(QUOTE)).await;
        askers.push(raw);
    }
    past_the_cache(&gate, 3).await;
    upstream.wait_for_calls(1).await;
    drop(askers);
    noticed().await;
    upstream.release(1);
    landed(&gate).await;
    assert!(gate.get(QUOTE).await.header("cache-status").unwrap().starts_with("tollgate; hit"));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn f_01_a_stream_that_is_reset_ends_nothing() {
    let upstream = FakeUpstream::start(fare(1).gated()).await;
    let gate = quote("", "").start(&upstream).await;
    let http2 = reqwest::Client::builder().http2_prior_knowledge().no_proxy().build().unwrap();
    let ask = || http2.get(format!("http://{}{QUOTE}", gate.addr)).header("x-api-key", KEY).send();
    // Dropping the answer's future sends RST_STREAM.
    let leader = tokio::spawn(ask());
    upstream.wait_for_calls(1).await;
    let (follower, ()) = tokio::join!(ask(), async {
        past_the_cache(&gate, 2).await;
        leader.abort();
        noticed().await;
        upstream.release(1);
    });
    let follower = follower.unwrap();
    assert_eq!((follower.status().as_u16(), follower.version()), (200, http::Version::HTTP_2));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_at_once_cost_one_call_though_the_first_hangs_up() {
    let upstream = FakeUpstream::start(fare(1).delay(Duration::from_millis(400))).await;
    let gate = quote("", "").start(&upstream).await;
    let ask = raw_get(QUOTE);
    let mut first = Raw::connect(gate.addr).await;
    let began = Instant::now();
    first.send(&ask).await;
    // Connecting is part of it: a burst must not be dropped at the door.
    let answers = join_all((0..300).map(|_| async {
        let mut raw = Raw::connect(gate.addr).await;
        raw.send(&ask).await;
        (raw.response().await.unwrap(), began.elapsed())
    }));
    let (answers, ()) = tokio::join!(answers, async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(first);
    });
    for (answer, _) in &answers {
        assert_eq!((answer.status, &answer.json()["distance_meters"]), (200, &json!(1)));
    }
    let slowest = answers.iter().map(|(_, took)| *took).max().unwrap();
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    assert_eq!((answers.len(), upstream.calls(), gate.spent().await), (300, 1, 5_000));
}

#[tokio::test]
async fn f_02_whatever_the_provider_says_the_key_lives_on() {
    let raw = |headers: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{headers}\r\n");
        Step::raw([head.as_bytes(), body].concat())
    };
    let mut multibyte = "x".repeat(199);
    multibyte.push_str(&"é".repeat(200));
    let long_wait = fare(1).status(503).header("retry-after", "18446744073709551615");
    for (name, step) in [
        ("a status line that is none", Step::raw("HTTP/1.1 what\r\n\r\n")),
        ("status 999", Step::raw("HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n")),
        ("not UTF-8", raw("Content-Length: 4\r\n", b"{\"\xff\xfe")),
        ("a multibyte error", Step::ok(json!({})).status(500).body(multibyte)),
        ("1e400", raw("Content-Length: 41\r\n", br#"{"routes":[{"distanceMeters":1e400}]}    "#)),
        ("a long Retry-After", long_wait),
        ("5,000 nested arrays", Step::ok(json!({})).body("[".repeat(5_000))),
        ("a huge Content-Length", raw("Content-Length: 18446744073709551615\r\n", b"{}")),
        ("a Content-Length that overflows", raw("Content-Length: 99999999999999999999999\r\n", b"{}")),
        ("a chunk that overflows", raw("Transfer-Encoding: chunked\r\n", b"ffffffffffffffff\r\n{}")),
        ("a coding nobody undoes", fare(1).header("content-encoding", "gzip, br")),
        ("no gzip", fare(1).header("content-encoding", "gzip")),
    ] {
        let upstream = FakeUpstream::start([step.gated(), fare(7)]).await;
        let gate = quote("timeout = \"3s\"", "").start(&upstream).await;
        let (replies, ()) = tokio::join!(join_all((0..10).map(|_| gate.get(QUOTE))), async {
            past_the_cache(&gate, 10).await;
            upstream.release(1);
        });
        for reply in &replies {
            assert!((500..=504).contains(&reply.status) && !reply.body.is_empty(), "{name}: {reply:?}");
        }
        assert_eq!(upstream.calls(), 1, "{name}");
        let after = gate.get(QUOTE).await;
        assert_eq!((after.status, &after.json()["distance_meters"]), (200, &json!(7)), "{name}: {after:?}");
        assert_eq!(gate.get("/v1/quote?from=Delhi&to=Agra").await.status, 200, "{name}");
        landed(&gate).await;
        assert_eq!((upstream.calls(), gate.spent().await), (3, 15_000), "{name}");
    }
}

/// Odd bytes in what is passed on are passed on or dropped, and nothing breaks over them.
#[tokio::test]
async fn f_02_odd_bytes_in_headers_are_no_reason_to_break() {
    let step = fare(7).header("x-odd", *b"\xff\xfe").header("content-language", *b"\xff").header("retry-after", *b"\xff");
    let step = step.header("age", *b"\xff").header("cache-control", *b"max-age=\xff").header("vary", *b"\xff");
    let upstream = FakeUpstream::start(step).await;
    let gate = quote("", "").start(&upstream).await;
    let replies = join_all((0..10).map(|_| gate.get(QUOTE))).await;
    assert!(replies.iter().all(|reply| reply.status == 200), "{replies:?}");
    assert_eq!(gate.get(QUOTE).await.json()["distance_meters"], 7);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn f_03_fifty_share_one_failure_and_nobody_flies_again() {
    let upstream = FakeUpstream::start([fare(1).status(503).gated(), fare(1).status(503).header("retry-after", "30")]).await;
    let retry = "retry = { attempts = 2, base = \"1ms\", cap = \"2ms\" }";
    let gate = quote(retry, "").start(&upstream).await;
    let (replies, ()) = tokio::join!(join_all((0..50).map(|_| gate.get(QUOTE))), async {
        past_the_cache(&gate, 50).await;
        upstream.release(1);
    });
    let cause = |reply: &Reply| (reply.status, reply.json()["code"].clone(), reply.header("retry-after").map(ToOwned::to_owned));
    for reply in &replies {
        assert_eq!(cause(reply), (502, json!("upstream_failed"), Some("30".to_owned())));
    }
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn f_03_a_flight_that_times_out_is_shared_and_the_next_one_is_new() {
    let upstream = FakeUpstream::start([Step::hang(), fare(2)]).await;
    let gate = quote("timeout = \"800ms\"\nflight = \"800ms\"", "").start(&upstream).await;
    for reply in join_all((0..50).map(|_| gate.get(QUOTE))).await {
        assert_eq!((reply.status, &reply.json()["code"]), (504, &json!("upstream_timeout")));
    }
    assert_eq!(upstream.calls(), 1);
    assert_eq!(gate.get(QUOTE).await.json()["distance_meters"], 2);
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn f_04_each_joiner_gets_a_response_of_its_own() {
    let step = fare(1).gated().header("x-request-id", "u1").header("connection", "x-request-id").header("x-powered-by", "php");
    let upstream = FakeUpstream::start(step).await;
    let gate = quote("", "limits = { caller = { burst = 5, rate = \"1/s\" } }").start(&upstream).await;
    let web = gate.client.clone().with("x-request-id", "a-1").with("accept-encoding", "gzip");
    let (other, next) = (gate.other().with("x-request-id", "b-1"), gate.client.clone().with("x-request-id", "not printable\t"));
    let (a, b, c, ()) = tokio::join!(web.get(QUOTE), other.get(QUOTE), next.get(QUOTE), async {
        past_the_cache(&gate, 3).await;
        upstream.release(1);
    });
    assert_eq!((a.header("x-request-id"), b.header("x-request-id")), (Some("a-1"), Some("b-1")));
    assert!(c.header("x-request-id").is_some_and(|id| id.len() == 36));
    let left = |reply: &Reply| reply.header("ratelimit").unwrap().to_owned();
    assert!(left(&b).contains("r=4") && (left(&a).contains("r=3") || left(&c).contains("r=3")), "{a:?} {b:?} {c:?}");
    for reply in [&a, &b, &c] {
        assert_eq!(
            (reply.header("content-encoding"), reply.header("x-powered-by"), reply.header("set-cookie")),
            (None, None, None)
        );
        assert_eq!(reply.json()["distance_meters"], 1);
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

/// The cookie is the provider's with the gateway: it goes to nobody, and it is no reason to pay once for each who waits.
#[tokio::test]
async fn f_04_a_cookie_is_taken_out_and_the_rest_is_shared_by_those_on_the_flight() {
    for respect in ["respect_cache_control = true", ""] {
        let upstream = FakeUpstream::start(Script::by(|_| fare(1).gated().header("set-cookie", "s=1"))).await;
        let gate = quote(respect, "").start(&upstream).await;
        let (replies, ()) = tokio::join!(join_all((0..4).map(|_| gate.get(QUOTE))), async {
            past_the_cache(&gate, 4).await;
            upstream.release(1);
        });
        for reply in &replies {
            assert_eq!((reply.status, reply.header("set-cookie")), (200, None));
            assert!(reply.header("cache-status").unwrap().starts_with("tollgate; fwd=miss"), "{reply:?}");
        }
        assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
        // Kept for nobody: whoever comes later asks anew.
        let other = gate.other();
        let (later, ()) = tokio::join!(other.get(QUOTE), async {
            upstream.wait_for_calls(2).await;
            upstream.release(1);
        });
        assert_eq!((later.header("cache-status"), upstream.calls()), (Some("tollgate; fwd=miss"), 2));
    }
}

#[tokio::test]
async fn f_04_an_answer_for_one_goes_to_its_asker_and_the_others_fly_side_by_side() {
    let script = Script::by(|_| fare(1).gated().header("cache-control", "private"));
    let upstream = FakeUpstream::start(script).await;
    let gate = quote("respect_cache_control = true", "").start(&upstream).await;
    let (replies, ()) = tokio::join!(join_all((0..4).map(|_| gate.get(QUOTE))), async {
        past_the_cache(&gate, 4).await;
        upstream.wait_for_calls(1).await;
        assert_eq!(upstream.calls(), 1, "nobody knows yet");
        upstream.release(1);
        // All three at once: none waits for another.
        upstream.wait_for_calls(4).await;
        upstream.release(3);
    });
    for reply in &replies {
        assert_eq!((reply.status, reply.header("cache-status")), (200, Some("tollgate; fwd=miss")));
        assert_eq!(reply.header("cache-control"), Some("private, no-store"));
    }
    // Those who come while the mark lasts, too.
    let (_, ()) = tokio::join!(join_all((0..2).map(|_| gate.get(QUOTE))), async {
        upstream.wait_for_calls(6).await;
        upstream.release(2);
    });
    gate.advance(61);
    let (replies, ()) = tokio::join!(join_all((0..2).map(|_| gate.get(QUOTE))), async {
        upstream.wait_for_calls(7).await;
        upstream.release(1);
        upstream.wait_for_calls(8).await;
        upstream.release(1);
    });
    assert!(replies.iter().all(|reply| reply.status == 200));
    assert_eq!((upstream.calls(), gate.spent().await), (8, 40_000));
}

/// The mark is the flight's to set: its asker may be gone by the time it lands.
#[tokio::test]
async fn f_04_the_mark_is_set_though_the_asker_left() {
    let upstream = FakeUpstream::start(Script::by(|_| fare(1).gated().header("cache-control", "private"))).await;
    let gate = quote("respect_cache_control = true", "").start(&upstream).await;
    let mut leader = Raw::connect(gate.addr).await;
    leader.send(raw_get(QUOTE)).await;
    upstream.wait_for_calls(1).await;
    drop(leader);
    noticed().await;
    upstream.release(1);
    landed(&gate).await;
    let (replies, ()) = tokio::join!(join_all((0..3).map(|_| gate.get(QUOTE))), async {
        upstream.wait_for_calls(4).await;
        upstream.release(3);
    });
    assert!(replies.iter().all(|reply| reply.status == 200));
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn without_coalescing_everyone_pays_and_the_answer_is_kept_all_the_same() {
    let upstream = FakeUpstream::start(fare(1).gated()).await;
    let gate = quote("", "coalesce = false").start(&upstream).await;
    let (_, ()) = tokio::join!(join_all((0..3).map(|_| gate.get(QUOTE))), async {
        upstream.wait_for_calls(3).await;
        upstream.release(3);
    });
    assert!(gate.get(QUOTE).await.header("cache-status").unwrap().starts_with("tollgate; hit"));
    assert_eq!((upstream.calls(), gate.spent().await), (3, 15_000));
}

#[tokio::test]
async fn a_caller_stops_waiting_and_the_flight_goes_on() {
    let upstream = FakeUpstream::start(fare(1).gated()).await;
    let gate = quote("timeout = \"9s\"\nflight = \"9s\"", "").start(&upstream).await;
    let hasty = gate.client.clone().with("x-request-timeout", "1");
    let reply = hasty.get(QUOTE).await;
    assert_eq!((reply.status, &reply.json()["code"], reply.header("retry-after")), (504, &json!("upstream_timeout"), Some("9")));
    // A joiner's patience is its own.
    let (patient, reply) = tokio::join!(gate.get(QUOTE), async {
        let reply = hasty.get(QUOTE).await;
        upstream.release(1);
        reply
    });
    assert_eq!((reply.status, patient.status), (504, 200));
    assert!(gate.get(QUOTE).await.header("cache-status").unwrap().starts_with("tollgate; hit"));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn questions_of_two_routes_and_two_callers_apart_do_not_join() {
    let upstream = FakeUpstream::start(Step::ok(found()).gated()).await;
    let gate = opencage("", "scope = \"caller\"").start(&upstream).await;
    let (client, other) = (gate.client.clone(), gate.other());
    let path = "/geocode/v1/json?q=Lyon";
    let (a, b, c, ()) = tokio::join!(client.get(path), client.get(path), other.get(path), async {
        past_the_cache(&gate, 3).await;
        upstream.wait_for_calls(2).await;
        upstream.release(2);
    });
    assert_eq!([a.status, b.status, c.status], [200; 3]);
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
    let posted = gate.client.send(Method::POST, path, bytes::Bytes::new()).await;
    assert_eq!((posted.status, posted.header("allow")), (405, Some("GET, HEAD")));
}

#[tokio::test]
async fn what_was_sent_and_not_answered_is_paid_for_even_where_failures_are_not() {
    let upstream = FakeUpstream::start([fare(1).status(500), Step::cut(20), Step::hang()]).await;
    let gate = quote("billed = [\"answered\"]\ntimeout = \"300ms\"", "").start(&upstream).await;
    for (town, spent) in [("Agra", 0), ("Pune", 5_000), ("Goa", 10_000)] {
        assert!(gate.get(&format!("/v1/quote?from=Delhi&to={town}")).await.status >= 500);
        assert_eq!(gate.spent().await, spent, "{town}");
    }
    let gate = quote("billed = [\"answered\"]", "").start_at("http://127.0.0.1:1").await;
    assert_eq!(gate.get(QUOTE).await.status, 502);
    assert_eq!((upstream.calls(), gate.spent().await), (3, 0), "what was never sent is free");
}
