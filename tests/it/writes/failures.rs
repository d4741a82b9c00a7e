//! Which failures are final, which free the key, and of which nobody knows what they did.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::{PRICE, answers, hello, send, sent};
use crate::support::client::Reply;
use crate::support::gate::Gate;
use crate::support::port::HeldPort;
use crate::support::routes::sms;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

async fn gate(upstream: &FakeUpstream) -> Gate {
    sms("timeout = \"300ms\"\nbreaker = { failures = 100 }", "").start(upstream).await
}

fn failed(status: u16) -> Step {
    Step::ok(json!({ "error": "odd" })).status(status)
}

fn said(reply: &Reply) -> (u16, String, Option<String>) {
    (reply.status, reply.code(), reply.header("idempotent-replayed").map(ToOwned::to_owned))
}

#[tokio::test]
async fn b_03_what_may_have_been_sent_is_never_sent_again() {
    let redirect = |status| failed(status).header("location", "http://127.0.0.1:1/");
    let late = sent(1).delay(Duration::from_secs(1));
    let html = Step::ok(json!({})).body("<html>").header("content-type", "text/html");
    let garbage = Step::raw("HTTP/9 nonsense\r\n\r\n");
    let cases = [
        (Step::close(), 502),
        (Step::reset(), 502),
        (Step::cut(10), 502),
        (failed(500), 502),
        (failed(502), 502),
        (failed(503).header("retry-after", "1"), 502),
        (failed(504), 502),
        (redirect(302), 502),
        (redirect(307), 502),
        (redirect(308), 502),
        (html, 502),
        (garbage, 502),
        (Step::hang(), 504),
        (late, 504),
    ];
    for (number, (step, status)) in cases.into_iter().enumerate() {
        let upstream = FakeUpstream::start([step, sent(2)]).await;
        let gate = gate(&upstream).await;
        let first = send(&gate.client, "k", hello()).await;
        assert_eq!(said(&first), (status, "outcome_unknown".into(), None), "{number}: {first:?}");
        assert_eq!(first.header("location"), None);
        for _ in 0..2 {
            assert_eq!(said(&send(&gate.client, "k", hello()).await), (409, "outcome_unknown".into(), None), "{number}");
        }
        // Money stays spent. Time alone settles nothing, and another key is another matter.
        assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE), "{number}");
        gate.advance(10 * 365 * 86_400);
        assert_eq!(send(&gate.client, "k", hello()).await.status, 409, "{number}");
        assert_eq!(send(&gate.client, "other", hello()).await.status, 201, "{number}");
    }
}

#[tokio::test]
async fn b_03_what_was_provably_not_sent_is_tried_again() {
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let refuses = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    // Takes the connection and ends it before the handshake does.
    let rude = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let no_tls = format!("https://{}", rude.local_addr().unwrap());
    let connects = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = connects.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = rude.accept().await {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            drop(stream);
        }
    });
    for url in [refuses, no_tls] {
        let gate = sms("retry = { attempts = 2, base = \"1ms\" }", "").start_at(&url).await;
        for _ in 0..2 {
            let refused = send(&gate.client, "k", hello()).await;
            assert_eq!((refused.status, refused.code().as_str()), (502, "upstream_failed"), "{url}");
        }
        assert_eq!(gate.metric("tollgate_upstream_calls_total", "billed=\"no\"").await, 4, "{url}: two attempts each");
        assert_eq!(gate.spent().await, 0);
    }
    assert_eq!(connects.load(std::sync::atomic::Ordering::Relaxed), 4);
}

/// Nobody listened, and somebody does now: the key is as free as it was.
#[tokio::test]
async fn i_04_a_refused_connection_frees_the_key() {
    let mut port = HeldPort::free();
    let gate = sms("retry = { attempts = 1 }", "").start_at(&format!("http://{}", port.addr())).await;
    assert_eq!(send(&gate.client, "k", hello()).await.code(), "upstream_failed");
    let received = answers(port.listen());
    for replayed in [None, Some("true")] {
        let reply = send(&gate.client, "k", hello()).await;
        assert_eq!((reply.status, reply.header("idempotent-replayed")), (201, replayed));
    }
    assert_eq!((received.load(Ordering::Relaxed), gate.spent().await), (1, PRICE));
}

#[tokio::test]
async fn i_04_what_the_provider_refuses_is_final() {
    for status in [400, 404, 409, 410, 422] {
        let upstream = FakeUpstream::start([failed(status), sent(2)]).await;
        let gate = gate(&upstream).await;
        let first = send(&gate.client, "k", hello()).await;
        let again = send(&gate.client, "k", hello()).await;
        assert_eq!((first.status, again.status), (status, status));
        assert_eq!((first.header("idempotent-replayed"), again.header("idempotent-replayed")), (None, Some("true")));
        let (first, mut again): (Value, Value) = (first.json(), again.json());
        if !again["request_id"].is_null() {
            again["request_id"] = first["request_id"].clone();
        }
        assert_eq!(first, again);
        assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE), "{status}: billed, as the provider says it is");
    }
}

/// Refused for being vague, it is still what was sent once.
#[tokio::test]
async fn a_weak_answer_that_is_refused_says_that_it_is_a_replay() {
    let upstream = FakeUpstream::start([sent(1), sent(2)]).await;
    let vague = "on_weak = \"refuse\"\noutcomes = [{ at = \"$.status\", in = [\"queued\"], outcome = \"weak\" }]";
    let gate = sms("", vague).start(&upstream).await;
    for replayed in [None, Some("true")] {
        let refused = send(&gate.client, "k", hello()).await;
        assert_eq!((refused.status, refused.code().as_str()), (422, "weak_answer"));
        assert_eq!(refused.header("idempotent-replayed"), replayed);
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
}

/// A locked caller is told "not found" whatever it asks, so that nothing may show what of it was looked at.
#[tokio::test]
async fn where_callers_are_locked_out_not_found_looks_the_same_replayed() {
    let upstream = FakeUpstream::start(failed(404)).await;
    let rules = "lockout = { misses = 2 }\noutcomes = [{ status = \"404\", outcome = \"not_found\" }]";
    let gate = sms("", rules).start(&upstream).await;
    let mut seen = Vec::new();
    for key in ["k", "k", "k", "another"] {
        let reply = send(&gate.client, key, hello()).await;
        assert_eq!(reply.status, 404, "{reply:?}");
        let names = reply.headers.keys().map(ToString::to_string);
        seen.push((names.filter(|name| name != "date").collect::<std::collections::BTreeSet<_>>(), reply.text()));
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:#?}");
    assert_eq!(upstream.calls(), 1, "the second is a replay, the last two are locked out");
}

#[tokio::test]
async fn i_04_what_had_no_effect_frees_the_key() {
    // Busy, and our credential refused: nothing was done.
    for (step, code) in [(failed(429), "upstream_busy"), (failed(401), "upstream_denied"), (failed(403), "upstream_denied")] {
        let upstream = FakeUpstream::start([step, sent(2)]).await;
        let gate = sms("retry = { attempts = 1 }", "").start(&upstream).await;
        assert_eq!(send(&gate.client, "k", hello()).await.code(), code);
        let reply = send(&gate.client, "k", hello()).await;
        assert_eq!((reply.status, reply.header("idempotent-replayed")), (201, None));
        assert_eq!((upstream.calls(), gate.spent().await), (2, PRICE));
    }
}

#[tokio::test]
async fn a_busy_provider_is_asked_again() {
    let upstream = FakeUpstream::start([failed(429), failed(429), sent(3)]).await;
    let gate = sms("retry = { attempts = 3, base = \"1ms\" }", "").start(&upstream).await;
    assert_eq!(send(&gate.client, "k", hello()).await.status, 201);
    assert_eq!((upstream.calls(), gate.spent().await), (3, PRICE));
}

/// Busy, and then nobody knows: what came last counts.
#[tokio::test]
async fn a_retry_of_which_nobody_knows_is_the_last() {
    let upstream = FakeUpstream::start([failed(429), Step::close(), sent(3)]).await;
    let gate = sms("retry = { attempts = 3, base = \"1ms\" }", "").start(&upstream).await;
    assert_eq!(send(&gate.client, "k", hello()).await.code(), "outcome_unknown");
    assert_eq!(send(&gate.client, "k", hello()).await.status, 409);
    assert_eq!((upstream.calls(), gate.spent().await), (2, PRICE));
}

#[tokio::test]
async fn i_04_refusals_of_our_own_free_the_key() {
    let upstream = FakeUpstream::start(sent(1)).await;
    let route = "limits = { caller = { burst = 1, rate = \"1/10s\" } }";
    let gate = sms("", route).start(&upstream).await;
    send(&gate.client, "first", hello()).await;
    assert_eq!(send(&gate.client, "k", hello()).await.code(), "slow_down");
    gate.advance(10);
    assert_eq!(send(&gate.client, "k", hello()).await.status, 201);
    assert_eq!((upstream.calls(), gate.spent().await), (2, 2 * PRICE));

    let mut setup = sms("quota = { burst = 1, rate = \"1/10s\" }", "");
    setup.body = setup.body.replace("budget = \"none\"", "budget = { day = \"0.016 USD\" }");
    let upstream = FakeUpstream::start(sent(1)).await;
    let gate = setup.start(&upstream).await;
    send(&gate.client, "first", hello()).await;
    assert_eq!(send(&gate.client, "k", hello()).await.code(), "busy", "the provider's quota");
    gate.advance(10);
    gate.switch("sms", "off").await;
    assert_eq!(send(&gate.client, "k", hello()).await.code(), "switched_off");
    gate.switch("sms", "on").await;
    assert_eq!(send(&gate.client, "k", hello()).await.status, 201);
    gate.advance(10);
    assert_eq!(send(&gate.client, "k-2", hello()).await.code(), "budget_exhausted");
    gate.advance(86_400);
    assert_eq!(send(&gate.client, "k-2", hello()).await.status, 201);
    assert_eq!((upstream.calls(), gate.spent().await), (3, 3 * PRICE));
}

#[tokio::test]
async fn i_04_a_callers_own_cap_frees_the_key() {
    let upstream = FakeUpstream::start(sent(1)).await;
    let mut setup = sms("", "");
    setup.body = setup.body.replace("budget = \"none\"", "budget = { day = \"1 USD\", caller_day = \"0.008 USD\" }");
    let gate = setup.start(&upstream).await;
    send(&gate.client, "first", hello()).await;
    for _ in 0..2 {
        let refused = send(&gate.client, "k", hello()).await;
        assert_eq!((refused.status, refused.code().as_str()), (429, "budget_exhausted"));
    }
    assert_eq!(send(&gate.other(), "k", hello()).await.status, 201, "another has money left");
    gate.advance(86_400);
    let reply = send(&gate.client, "k", hello()).await;
    assert_eq!((reply.status, reply.header("idempotent-replayed")), (201, None));
    assert_eq!((upstream.calls(), gate.spent().await), (3, 3 * PRICE));
}

#[tokio::test]
async fn i_04_an_open_breaker_frees_the_key() {
    let upstream = FakeUpstream::start([failed(500), sent(2)]).await;
    let gate = sms("breaker = { failures = 1, cooldown = \"30s\" }", "").start(&upstream).await;
    assert_eq!(send(&gate.client, "first", hello()).await.code(), "outcome_unknown");
    assert_eq!(send(&gate.client, "k", hello()).await.code(), "circuit_open");
    gate.advance(30);
    assert_eq!(send(&gate.client, "k", hello()).await.status, 201);
    assert_eq!((upstream.calls(), gate.spent().await), (2, 2 * PRICE));
}

/// Without a key there is no record, and still nothing is sent twice.
#[tokio::test]
async fn what_comes_without_a_key_is_not_sent_again_either() {
    let upstream = FakeUpstream::start([Step::close(), sent(2)]).await;
    let gate = sms("", "writes = { key = \"optional\" }").start(&upstream).await;
    let reply = gate.client.post("/v1/sms", hello()).await;
    assert_eq!((reply.status, reply.code().as_str()), (502, "outcome_unknown"));
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
}

/// Sent without a key, or to somebody else, it is not known where a key would go now: there it would be done once more.
#[tokio::test]
async fn what_was_sent_elsewhere_is_not_sent_again() {
    let keyed = "idempotency = { header = \"Idempotency-Key\", replayed = \"Idempotent-Replayed\" }";
    let other = "idempotency = { header = \"X-Key\", replayed = \"Idempotent-Replayed\" }";
    for (before, after) in [("", keyed), (keyed, other)] {
        let upstream = FakeUpstream::start([Step::close(), sent(2)]).await;
        let setup = |provider: &str| sms(&format!("{provider}\nretry = {{ attempts = 1 }}"), "");
        let gate = setup(before).start(&upstream).await;
        assert_eq!(send(&gate.client, "k", hello()).await.code(), "outcome_unknown");
        std::fs::write(gate.config_path(), setup(after).render(gate.dir.path(), &upstream.url())).unwrap();
        assert_eq!(gate.admin.post("/v1/reload", json!({})).await.status, 200);
        assert_eq!(said(&send(&gate.client, "k", hello()).await), (409, "outcome_unknown".into(), None), "{after}");
        assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
    }
}
