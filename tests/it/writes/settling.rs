//! A write of which nobody knows what came of it: who is told, how it is settled, and what becomes of its money.

use http::Method;
use serde_json::{Value as Json, json};

use super::{PRICE, hello, send};
use crate::support::client::Reply;
use crate::support::gate::Gate;
use crate::support::routes::{message, sms};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

mod command;
mod told;

/// A gateway in front of an upstream that reads the first message and closes the connection; one message of `k-1` was sent.
async fn unknown() -> (FakeUpstream, Gate) {
    let upstream = FakeUpstream::start([Step::close(), Step::ok(message(8)).status(201)]).await;
    let gate = sms("", "").start(&upstream).await;
    assert_eq!(send(&gate.client, "k-1", hello()).await.code(), "outcome_unknown");
    (upstream, gate)
}

async fn listed(gate: &Gate, state: &str) -> Vec<Json> {
    let reply = gate.admin.get(&format!("/v1/writes?state={state}")).await;
    assert_eq!((reply.status, &reply.json()["more"]), (200, &json!(false)), "{reply:?}");
    reply.json()["writes"].as_array().unwrap().clone()
}

/// The id of the one write in a state.
async fn id(gate: &Gate, state: &str) -> String {
    let writes = listed(gate, state).await;
    assert_eq!(writes.len(), 1, "{writes:?}");
    writes[0]["id"].as_str().unwrap().to_owned()
}

async fn settle(gate: &Gate, id: &str, report: &str) -> Reply {
    gate.admin.send(Method::POST, &format!("/v1/writes/{id}/settle"), report.to_owned().into()).await
}

/// Calls and micro-units of the ledger in a state.
async fn ledger(gate: &Gate, state: &str) -> (u64, u64) {
    let totals = gate.admin.get("/v1/spend?since=1970-01-01&until=9999-12-31&by=").await.json()["totals"][0].clone();
    (totals[state]["calls"].as_u64().unwrap_or_default(), totals[state]["micros"].as_u64().unwrap_or_default())
}

#[tokio::test]
async fn what_is_unknown_is_listed_with_all_that_helps_to_find_out() {
    let (upstream, gate) = unknown().await;
    let writes = listed(&gate, "unknown").await;
    let write = writes[0].as_object().unwrap();
    let id = write["id"].as_str().unwrap();
    let (intention, owner) = id.split_once('-').unwrap();
    assert!((intention.len(), owner.len()) == (32, 8) && id.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit()), "{id}");
    let mut rest = writes[0].clone();
    for member in ["id", "request_id"] {
        assert!(rest.as_object_mut().unwrap().remove(member).is_some(), "{member}");
    }
    assert_eq!(
        rest,
        json!({
            "route": "sms", "provider": "sms", "caller": "web", "state": "unknown", "since": 1_796_040_000,
            "settle_from": 1_796_040_006, "price": { "micros": PRICE, "currency": "USD" }, "sends": 1,
        })
    );
    assert_eq!(gate.admin.get("/v1/writes").await.json()["writes"], json!(writes), "unknown is what is meant");
    assert_eq!(listed(&gate, "sending").await, Vec::<Json>::new());
    assert_eq!(gate.admin.get("/v1/status").await.json()["writes"], json!({ "unknown": 1, "more": false }));
    for query in ["state=done", "state=", "state=Unknown", "states=unknown", "state=%ff"] {
        let reply = gate.admin.get(&format!("/v1/writes?{query}")).await;
        assert_eq!(reply.status, 400, "{query}");
        if query.starts_with("state=") && !query.contains('%') {
            assert!(reply.text().contains("unknown or sending"), "{reply:?}");
        }
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
}

#[tokio::test]
async fn it_is_known_by_the_request_that_sent_it() {
    let upstream = FakeUpstream::start(Step::close()).await;
    let gate = sms("", "").start(&upstream).await;
    send(&gate.client.clone().with("x-request-id", "order-17"), "k-1", hello()).await;
    assert_eq!(send(&gate.other(), "k-1", hello()).await.code(), "outcome_unknown");
    let writes = listed(&gate, "unknown").await;
    let of = |caller: &str| writes.iter().find(|write| write["caller"] == caller).unwrap();
    assert_eq!((of("web")["request_id"].as_str(), writes.len()), (Some("order-17"), 2));
    assert_ne!(of("web")["id"], of("other")["id"]);
    assert_eq!((upstream.calls(), gate.spent().await), (2, 2 * PRICE));
}

#[tokio::test]
async fn settled_as_sent_its_answer_is_replayed_and_it_is_paid() {
    let (upstream, gate) = unknown().await;
    let id = id(&gate, "unknown").await;
    let body = r#"{"id": 7,"total":1.10}"#;
    let settled = settle(&gate, &id, &format!(r#"{{"outcome":"sent","status":201,"body":{body}}}"#)).await;
    let told = settled.json();
    assert_eq!((settled.status, &told["id"], &told["outcome"], &told["booked"]), (200, &json!(id), &json!("sent"), &json!(true)));
    assert_eq!((ledger(&gate, "billed").await, ledger(&gate, "unknown").await), ((1, PRICE), (0, 0)));
    let again = send(&gate.client, "k-1", hello()).await;
    assert_eq!((again.status, again.text().as_str()), (201, body), "to the letter");
    assert_eq!((again.header("content-type"), again.header("idempotent-replayed")), (Some("application/json"), Some("true")));
    let other = send(&gate.client, "k-1", json!({ "to": "+491701234567", "body": "Something else" })).await;
    assert_eq!((other.status, other.code().as_str()), (422, "idempotency_key_reused"));
    assert_eq!(listed(&gate, "unknown").await, Vec::<Json>::new());
    let twice = settle(&gate, &id, r#"{"outcome":"not_sent"}"#).await;
    assert_eq!((twice.status, twice.code().as_str()), (404, "not_found"));
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
    // The route keeps its answers for a day.
    gate.advance(24 * 3600);
    assert_eq!(send(&gate.client, "k-1", hello()).await.json()["id"], 8);
    assert_eq!((upstream.calls(), gate.spent().await), (2, 2 * PRICE));
}

#[tokio::test]
async fn settled_as_sent_without_a_word_it_is_an_empty_object() {
    let (upstream, gate) = unknown().await;
    let id = id(&gate, "unknown").await;
    assert_eq!(settle(&gate, &id, r#"{"outcome":"sent"}"#).await.status, 200);
    let again = send(&gate.client, "k-1", hello()).await;
    assert_eq!((again.status, again.text().as_str(), again.header("content-type")), (200, "{}", Some("application/json")));
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
}

#[tokio::test]
async fn settled_as_not_sent_whoever_asks_again_sends_and_nothing_was_paid() {
    let (upstream, gate) = unknown().await;
    let old = id(&gate, "unknown").await;
    // The provider may be at it for as long as an attempt may take.
    gate.advance(5);
    let early = settle(&gate, &old, r#"{"outcome":"not_sent"}"#).await;
    assert_eq!((early.status, early.header("retry-after")), (409, Some("1")));
    gate.advance(1);
    let settled = settle(&gate, &old, r#"{"outcome":"not_sent"}"#).await;
    assert_eq!((settled.status, &settled.json()["outcome"]), (200, &json!("not_sent")));
    assert_eq!(ledger(&gate, "not_billed").await, (1, 0));
    // What an admin gives back is out of the ledger. A counter of what was sent goes up only.
    gate.ledger_says(0).await;
    let again = send(&gate.client, "k-1", hello()).await;
    assert_eq!((again.status, &again.json()["id"], again.header("idempotent-replayed")), (201, &json!(8), None));
    gate.ledger_says(PRICE).await;
    assert_eq!((ledger(&gate, "billed").await, ledger(&gate, "not_billed").await), ((1, PRICE), (1, 0)));
    assert_eq!(settle(&gate, &old, r#"{"outcome":"not_sent"}"#).await.status, 404);
    assert_eq!(send(&gate.client, "k-1", hello()).await.header("idempotent-replayed"), Some("true"));
    assert_eq!(upstream.calls(), 2);
}

#[tokio::test]
async fn what_was_found_out_of_one_send_settles_no_other_under_the_same_key() {
    let upstream = FakeUpstream::start([Step::close(), Step::close()]).await;
    let gate = sms("", "").start(&upstream).await;
    send(&gate.client, "k-1", hello()).await;
    let first = id(&gate, "unknown").await;
    gate.advance(6);
    assert_eq!(settle(&gate, &first, r#"{"outcome":"not_sent"}"#).await.status, 200);
    assert_eq!(send(&gate.client, "k-1", hello()).await.code(), "outcome_unknown");
    let second = id(&gate, "unknown").await;
    assert_eq!((first.split('-').next(), first != second), (second.split('-').next(), true));
    // Said once more, late: it was true of the first.
    assert_eq!(settle(&gate, &first, r#"{"outcome":"not_sent"}"#).await.status, 404);
    assert_eq!((send(&gate.client, "k-1", hello()).await.status, upstream.calls()), (409, 2));
    gate.ledger_says(PRICE).await;
}

#[tokio::test]
async fn while_its_owner_may_be_at_it_nobody_settles_it() {
    let upstream = FakeUpstream::start(Step::ok(message(7)).status(201).gated()).await;
    let gate = sms("", "writes = { lease = \"5m\" }").start(&upstream).await;
    let client = gate.client.clone();
    let asker = tokio::spawn(async move { send(&client, "k-1", hello()).await });
    upstream.wait_for_calls(1).await;
    let id = id(&gate, "sending").await;
    assert_eq!(listed(&gate, "unknown").await, Vec::<Json>::new());
    let report = r#"{"outcome":"sent","status":202}"#;
    // The lease, and what one attempt may take.
    let early = settle(&gate, &id, report).await;
    assert_eq!((early.status, early.code().as_str(), early.header("retry-after")), (409, "too_early", Some("306")));
    assert!(early.text().contains("from 2026-11-30T12:05:06Z on"), "{early:?}");
    gate.advance(305);
    assert_eq!(self::id(&gate, "unknown").await, id, "by the time alone");
    let early = settle(&gate, &id, report).await;
    assert_eq!((early.status, early.header("retry-after")), (409, Some("1")));
    gate.advance(1);
    assert_eq!(settle(&gate, &id, report).await.status, 200);
    // Its owner was only late. Whoever waited for it gets the provider's answer, and everybody else what was settled.
    upstream.release(1);
    assert_eq!(asker.await.unwrap().status, 201);
    assert_eq!(send(&gate.client, "k-1", hello()).await.status, 202);
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
    assert_eq!(ledger(&gate, "billed").await, (1, PRICE));
}

#[tokio::test]
async fn a_report_that_is_not_understood_settles_nothing() {
    let (upstream, gate) = unknown().await;
    let id = id(&gate, "unknown").await;
    for report in [
        "",
        "[]",
        "\"sent\"",
        "{}",
        r#"{"outcome":"done"}"#,
        r#"{"outcome":"sent","why":"x"}"#,
        r#"{"outcome":"sent","outcome":"not_sent"}"#,
        r#"{"outcome":"not_sent","status":200}"#,
        r#"{"outcome":"not_sent","body":"x"}"#,
        r#"{"outcome":"sent","status":503}"#,
        r#"{"outcome":"sent","status":"201"}"#,
        r#"{"outcome":"sent","status":204,"body":"x"}"#,
    ] {
        let reply = settle(&gate, &id, report).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"), "{report}: {reply:?}");
    }
    for wrong in ["1", &id[..40], &id.replace('-', "")] {
        assert_eq!(settle(&gate, wrong, r#"{"outcome":"sent"}"#).await.status, 400, "{wrong}");
    }
    let strangers = [format!("{:032x}-{:08x}", 7, 7), format!("{}-00000000", &id[..32])];
    for stranger in strangers {
        assert_eq!(settle(&gate, &stranger, r#"{"outcome":"sent"}"#).await.status, 404, "{stranger}");
    }
    let bare = gate.admin.bare().send(Method::POST, &format!("/v1/writes/{id}/settle"), r#"{"outcome":"sent"}"#.into()).await;
    assert_eq!((bare.status, gate.admin.bare().get("/v1/writes").await.status), (401, 401));
    assert_eq!(send(&gate.client, "k-1", hello()).await.status, 409, "it is as unknown as before");
    assert_eq!((upstream.calls(), gate.spent().await, ledger(&gate, "unknown").await), (1, PRICE, (1, PRICE)));
}

/// A provider that takes a key of ours, and says so of a replay.
const KEYED: &str = "idempotency = { header = \"Idempotency-Key\", replayed = \"Idempotent-Replayed\", conclusive = [] }";

#[tokio::test]
async fn after_not_sent_the_provider_is_given_another_key() {
    let upstream = FakeUpstream::start([Step::close(), Step::ok(message(8)).status(201)]).await;
    let gate = sms(&format!("{KEYED}\nretry = {{ attempts = 1 }}"), "").start(&upstream).await;
    assert_eq!(send(&gate.client, "k-1", hello()).await.code(), "outcome_unknown");
    let first = upstream.last().header("idempotency-key").unwrap().to_owned();
    let write = listed(&gate, "unknown").await.remove(0);
    assert_eq!(write["provider_key"], json!(first));
    gate.advance(6);
    assert_eq!(settle(&gate, write["id"].as_str().unwrap(), r#"{"outcome":"not_sent"}"#).await.status, 200);
    gate.advance(47 * 3600);
    assert_eq!(send(&gate.client, "k-1", hello()).await.status, 201);
    assert_ne!(upstream.last().header("idempotency-key"), Some(first.as_str()));
    assert_eq!(upstream.calls(), 2);
    gate.ledger_says(PRICE).await;
}

#[tokio::test]
async fn what_was_sent_more_than_once_is_paid_once() {
    // Twice without a word, then a rate limit, which says nothing of the others and is not billed.
    let busy = Step::ok(json!({})).status(429);
    let upstream = FakeUpstream::start([Step::close(), Step::close(), busy]).await;
    let gate = sms(&format!("{KEYED}\nretry = {{ base = \"1ms\", minimum = \"100/s\" }}"), "").start(&upstream).await;
    assert_eq!(send(&gate.client, "k-1", hello()).await.code(), "outcome_unknown");
    gate.ledger_says(2 * PRICE).await;
    let write = listed(&gate, "unknown").await.remove(0);
    assert_eq!(write["sends"], 3);
    assert_eq!(settle(&gate, write["id"].as_str().unwrap(), r#"{"outcome":"sent"}"#).await.status, 200);
    assert_eq!((ledger(&gate, "billed").await, ledger(&gate, "not_billed").await), ((1, PRICE), (2, 0)));
    gate.ledger_says(PRICE).await;
    assert_eq!(upstream.calls(), 3);
}
