//! Who asks: keys, headers of trusted proxies, addresses; and, in a file of their own, tokens.

use serde_json::{Value as Json, json};

use crate::support::client::{Client, Reply};
use crate::support::gate::{Gate, KEY, OTHER_KEY, Setup, fare, found, opencage, quote, sha256};
use crate::support::raw::{Raw, exchange};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

mod tokens;

const ASK: &str = "/v1/quote?from=Delhi&to=Jaipur";
const LIMITED: &str = "limits = { caller = { burst = 1, rate = \"1/h\" } }";

/// A client that shows nothing but this header.
fn showing(gate: &Gate, name: &'static str, value: &str) -> Client {
    gate.client.bare().with(name, value)
}

fn basic(text: &str) -> String {
    use base64::Engine as _;
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(text))
}

fn refused(reply: &Reply) {
    assert_eq!((reply.status, reply.code()), (401, "unauthenticated".into()), "{reply:?}");
    assert!(reply.header("www-authenticate").is_some() && reply.header("cache-status").is_none(), "{reply:?}");
}

#[tokio::test]
async fn a_key_is_read_wherever_a_client_library_puts_it() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = quote("", "").start(&upstream).await;
    for (name, value) in [
        ("authorization", format!("Bearer {KEY}")),
        ("authorization", format!("bearer  {KEY}")),
        ("authorization", basic(&format!("anyone:{KEY}"))),
        ("authorization", basic(&format!("{KEY}:"))),
        ("authorization", basic(KEY)),
        ("x-api-key", KEY.to_owned()),
        ("x-goog-api-key", KEY.to_owned()),
    ] {
        assert_eq!(showing(&gate, name, &value).get(ASK).await.status, 200, "{name}: {value}");
    }
    assert_eq!(gate.stranger().get(&format!("{ASK}&key={KEY}")).await.status, 200);
    refused(&gate.stranger().get(ASK).await);
    refused(&gate.stranger().get(&format!("{ASK}&key={KEY}&key={OTHER_KEY}")).await);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
    let sent = upstream.last();
    assert!(sent.headers.iter().all(|(_, value)| !value.contains(KEY)) && !sent.target.contains(KEY), "{sent:?}");
}

#[tokio::test]
async fn only_the_places_named_are_read_and_the_rest_is_no_key() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = quote("", "").callers("read_key_from = [\"header:x-token\", \"query:token\"]").start(&upstream).await;
    assert_eq!(showing(&gate, "x-token", KEY).get(ASK).await.status, 200);
    assert_eq!(gate.stranger().get(&format!("{ASK}&token={KEY}")).await.status, 200);
    refused(&showing(&gate, "x-api-key", KEY).get(ASK).await);
    refused(&showing(&gate, "authorization", &format!("Bearer {KEY}")).get(ASK).await);
    // `key` is not consumed here, so it is a field like any other, and unknown.
    let reply = showing(&gate, "x-token", KEY).get(&format!("{ASK}&key={KEY}")).await;
    assert_eq!((reply.status, reply.code()), (400, "unknown_field".into()));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn while_a_key_is_rotated_both_are_the_same_caller() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let turning = format!("[callers.keys.turning]\nsha256 = [\"{}\", \"{}\"]", sha256("old"), sha256("new"));
    let gate = quote("", LIMITED).callers(&turning).start(&upstream).await;
    assert_eq!(showing(&gate, "x-api-key", "old").get(ASK).await.status, 200);
    assert_eq!(showing(&gate, "x-api-key", "new").get(ASK).await.code(), "slow_down");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_wrong_key_is_refused_and_never_an_address() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = quote("", LIMITED).callers("anonymous = \"by-ip\"").start(&upstream).await;
    for n in 0..50 {
        refused(&showing(&gate, "x-api-key", &format!("wrong{n}")).get(ASK).await);
    }
    refused(&showing(&gate, "authorization", "Bearer ").get(ASK).await);
    refused(&showing(&gate, "authorization", "Basic !!!").get(ASK).await);
    assert_eq!(gate.stranger().get(ASK).await.status, 200, "without a key there is the address, and its bucket is full");
    let metrics = gate.metrics().await;
    assert!(!metrics.contains("wrong"), "{metrics}");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn whom_a_route_does_not_list_it_is_not_there_for() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = quote("", "callers = [\"other\"]").start(&upstream).await;
    let reply = gate.get(ASK).await;
    assert_eq!((reply.status, reply.code()), (404, "not_found".into()));
    assert_eq!(gate.other().get(ASK).await.status, 200);
    refused(&gate.stranger().get(ASK).await);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_native_route_says_it_in_the_providers_shape() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = opencage("", "").start(&upstream).await;
    let reply = gate.stranger().get("/geocode/v1/json?q=Agra&key=wrong").await;
    assert_eq!((reply.status, reply.code()), (403, "unauthenticated".into()));
    assert_eq!(reply.json()["status"]["code"], 403);
    assert_eq!(gate.stranger().get(&format!("/geocode/v1/json?q=Agra&key={KEY}")).await.status, 200);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

// === addresses and trusted proxies ===

async fn behind_a_proxy(callers: &str) -> (FakeUpstream, Gate) {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let setup = quote("", LIMITED).callers(callers);
    let gate = setup.server("trusted_proxies = [\"127.0.0.1/32\", \"10.0.0.0/8\"]").start(&upstream).await;
    (upstream, gate)
}

/// Each is another caller, so each has a token of its own; asked again, none is left.
async fn callers_are(gate: &Gate, name: &'static str, same: &[&str], other: &[&str]) {
    for (index, value) in same.iter().enumerate() {
        let want = if index == 0 { 200 } else { 429 };
        assert_eq!(showing(gate, name, value).get(ASK).await.status, want, "{value}");
    }
    for value in other {
        assert_eq!(showing(gate, name, value).get(ASK).await.status, 200, "{value}");
    }
}

#[tokio::test]
async fn the_client_is_the_rightmost_hop_that_is_not_ours() {
    let (upstream, gate) = behind_a_proxy("anonymous = \"by-ip\"").await;
    callers_are(
        &gate,
        "x-forwarded-for",
        &[
            "1.2.3.4",
            "9.9.9.9, 1.2.3.4",
            "1.2.3.4, 10.1.1.1",
            "6.6.6.6 , 1.2.3.4,10.1.1.1 ,10.2.2.2",
            "::ffff:1.2.3.4",
            "1.2.3.4:4711",
        ],
        &["1.2.3.5", "1.2.3.4, 1.2.3.6"],
    )
    .await;
    callers_are(
        &gate,
        "x-forwarded-for",
        &["2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", "[2001:db8:1:2::9]:443"],
        &["2001:db8:1:3::1"],
    )
    .await;
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn no_bytes_in_a_hop_make_another_hop_the_client() {
    let (upstream, gate) = behind_a_proxy("anonymous = \"by-ip\"").await;
    // The client wrote the first line and the odd byte; a proxy appended the true address to the last line.
    let mut statuses = Vec::new();
    for forged in ["7.7.7.1", "7.7.7.2", "7.7.7.3"] {
        let mut bytes =
            format!("GET {ASK} HTTP/1.1\r\nHost: g\r\nConnection: close\r\nX-Forwarded-For: {forged}\r\nX-Forwarded-For: ")
                .into_bytes();
        bytes.extend_from_slice(b"\xff, 1.2.3.4\r\n\r\n");
        statuses.push(exchange(gate.addr, bytes).await[0].status);
    }
    assert_eq!(statuses, [200, 429, 429]);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn nobody_elses_forwarded_for_is_believed() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate =
        quote("", LIMITED).callers("anonymous = \"by-ip\"").server("trusted_proxies = [\"10.0.0.0/8\"]").start(&upstream).await;
    callers_are(&gate, "x-forwarded-for", &["1.2.3.4", "1.2.3.5", "10.0.0.1"], &[]).await;
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_callers_header_is_believed_from_trusted_proxies_alone() {
    let header = "[callers.header]\nname = \"x-user-id\"";
    let (upstream, gate) = behind_a_proxy(header).await;
    callers_are(&gate, "x-user-id", &["ann", "ann", " ann "], &["bob"]).await;
    refused(&gate.stranger().get(ASK).await);
    refused(&showing(&gate, "x-user-id", " ").get(ASK).await);
    refused(&showing(&gate, "x-user-id", "carl").with("x-api-key", "wrong").get(ASK).await);
    // Two lines: one of them is not the proxy's.
    let two = format!("GET {ASK} HTTP/1.1\r\nHost: g\r\nConnection: close\r\nX-User-Id: dora\r\nX-User-Id: ann\r\n\r\n");
    assert_eq!(exchange(gate.addr, two).await[0].status, 401);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));

    let gate = quote("", "").callers(header).server("trusted_proxies = [\"10.0.0.0/8\"]").start(&upstream).await;
    refused(&showing(&gate, "x-user-id", "ann").get(ASK).await);
}
