//! Payment intents: asked again under a key of ours, until Stripe has said what came of it.

use serde_json::json;

use super::{post, said, sdk};
use crate::support::client::{Client, Reply};
use crate::support::gate::{Gate, SECRET};
use crate::support::routes::{own_stripe, stripe};
use crate::support::step::Step;
use crate::support::upstream::{FakeUpstream, Recorded};

const PRICE: u64 = 300_000;
const FORM: &str = "amount=1099&currency=eur&payment_method_types[0]=card&metadata[order]=7";
const UNKNOWN: (u16, &str, bool) = (502, "outcome_unknown", false);
const ONE: &str = "timeout = \"300ms\"\nbreaker = { failures = 100 }";

fn intent() -> Step {
    Step::ok(json!({ "id": "pi_1", "object": "payment_intent", "amount": 1099 }))
}

fn replayed(step: Step) -> Step {
    step.header("idempotent-replayed", "true")
}

fn failed(status: u16, kind: &str, code: &str) -> Step {
    Step::ok(json!({ "error": { "type": kind, "code": code, "message": "no" } })).status(status)
}

fn client(gate: &Gate) -> Client {
    sdk(gate, |key| format!("Bearer {key}"))
}

async fn pay(client: &Client, key: &str, form: &str) -> Reply {
    post(client, key, "/v1/payment_intents", form).await
}

fn key(sent: &Recorded) -> String {
    let key = sent.header("idempotency-key").unwrap_or_default().to_owned();
    assert!(key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit()), "{key:?}");
    key
}

/// The one key under which everything was sent.
fn one_key(upstream: &FakeUpstream) -> String {
    let keys: Vec<String> = upstream.requests().iter().map(key).collect();
    assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "{keys:?}");
    keys[0].clone()
}

fn is(reply: &Reply, (status, code, replayed): (u16, &str, bool)) {
    assert_eq!(said(reply), (status, code.to_owned(), replayed), "{reply:?}");
}

#[tokio::test]
async fn what_the_sdk_sends_goes_out_with_our_key_for_it() {
    let upstream = FakeUpstream::start(intent()).await;
    let gate = stripe("", "").start(&upstream).await;
    let sdk = client(&gate)
        .with("stripe-version", "2026-10-28.endive; feature_beta=v2")
        .with("stripe-account", "acct_1")
        .with("x-stripe-client-user-agent", "{}");
    let form = "amount=1099&currency=EUR&automatic_payment_methods[enabled]=true&metadata%5Border%5D=7&expand[0]=latest_charge";
    is(&pay(&sdk, "stripe-node-retry-1", form).await, (200, "", false));
    let last = upstream.last();
    assert_eq!(
        last.text(),
        "amount=1099&currency=eur&automatic_payment_methods%5Benabled%5D=true&metadata%5Border%5D=7&expand%5B0%5D=latest_charge"
    );
    assert_eq!((last.method.as_str(), last.target.as_str()), ("POST", "/v1/payment_intents"));
    assert_eq!(last.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    assert_eq!(last.header("stripe-version"), Some("2026-10-28.endive; feature_beta=v2"));
    assert_eq!((last.header("stripe-account"), last.header("x-stripe-client-user-agent")), (Some("acct_1"), None));
    assert_ne!(key(&last), "stripe-node-retry-1");
    is(&pay(&sdk, "stripe-node-retry-1", form).await, (200, "", true));
    let elsewhere = sdk.clone().with("stripe-account", "acct_2");
    is(&pay(&elsewhere, "stripe-node-retry-1", form).await, (400, "idempotency_key_reused", false));
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
}

#[tokio::test]
async fn a_key_of_ours_is_its_intentions_own() {
    let upstream = FakeUpstream::start(intent()).await;
    let gate = stripe("", "").start(&upstream).await;
    pay(&client(&gate), "a", FORM).await;
    pay(&gate.other(), "a", FORM).await;
    pay(&client(&gate), "b", FORM).await;
    pay(&gate.other(), "b", &FORM.replace("1099", "1100")).await;
    let keys: std::collections::BTreeSet<String> = upstream.requests().iter().map(key).collect();
    assert_eq!((keys.len(), upstream.calls(), gate.spent().await), (4, 4, 4 * PRICE));
}

#[tokio::test]
async fn a_failure_is_asked_again_within_the_flight_and_is_one_intent() {
    for trouble in
        [failed(500, "api_error", ""), Step::close(), Step::hang(), failed(503, "api_error", "").header("retry-after", "1")]
    {
        let upstream = FakeUpstream::start([trouble, intent()]).await;
        let provider = format!("{ONE}\nflight = \"5s\"\nretry = {{ attempts = 2, base = \"1ms\" }}");
        let gate = stripe(&provider, "").start(&upstream).await;
        is(&pay(&client(&gate), "k", FORM).await, (200, "", false));
        is(&pay(&client(&gate), "k", FORM).await, (200, "", true));
        one_key(&upstream);
        assert_eq!((upstream.calls(), gate.spent().await), (2, PRICE));
    }
}

#[tokio::test]
async fn a_key_that_is_in_use_is_waited_for() {
    let upstream = FakeUpstream::start([failed(409, "idempotency_error", "idempotency_key_in_use"), replayed(intent())]).await;
    let gate = stripe("retry = { attempts = 2, base = \"1ms\" }", "").start(&upstream).await;
    is(&pay(&client(&gate), "k", FORM).await, (200, "", false));
    one_key(&upstream);
    assert_eq!((upstream.calls(), gate.spent().await), (2, PRICE));
}

#[tokio::test]
async fn what_timed_out_is_settled_by_stripes_replay() {
    let upstream = FakeUpstream::start([Step::hang(), replayed(intent())]).await;
    let gate = stripe(ONE, "").start(&upstream).await;
    let first = pay(&client(&gate), "k", FORM).await;
    is(&first, UNKNOWN);
    assert_eq!((&first.json()["error"]["type"], first.header("stripe-should-retry")), (&json!("api_error"), None));
    assert_eq!(gate.spent().await, PRICE, "nobody knows, so it counts");
    is(&pay(&client(&gate), "k", FORM).await, (200, "", false));
    for _ in 0..2 {
        is(&pay(&client(&gate), "k", FORM).await, (200, "", true));
    }
    one_key(&upstream);
    assert_eq!((upstream.calls(), gate.spent().await), (2, PRICE));
}

#[tokio::test]
async fn what_stands_in_front_of_stripes_record_settles_nothing() {
    for (step, sure) in [
        (failed(400, "invalid_request_error", "parameter_invalid"), "rejected"),
        (failed(404, "invalid_request_error", "resource_missing"), "rejected"),
        (failed(401, "invalid_request_error", ""), "denied"),
        (failed(429, "invalid_request_error", "rate_limit"), "busy"),
        (failed(409, "idempotency_error", "idempotency_key_in_use"), "busy"),
        (failed(409, "invalid_request_error", "lock_timeout"), "rejected"),
        (failed(500, "api_error", ""), "failed"),
        (replayed(failed(500, "api_error", "")), "failed"),
    ] {
        let upstream = FakeUpstream::start([Step::hang(), step, replayed(intent())]).await;
        let gate = stripe(ONE, "").start(&upstream).await;
        is(&pay(&client(&gate), "k", FORM).await, UNKNOWN);
        is(&pay(&client(&gate), "k", FORM).await, UNKNOWN);
        assert_eq!(upstream.calls(), 2, "{sure}");
        is(&pay(&client(&gate), "k", FORM).await, (200, "", false));
        is(&pay(&client(&gate), "k", FORM).await, (200, "", true));
        one_key(&upstream);
        assert_eq!((upstream.calls(), gate.spent().await), (3, PRICE), "{sure}");
    }
}

#[tokio::test]
async fn what_stripe_replays_is_its_word_whatever_it_is() {
    let declined = || failed(402, "card_error", "card_declined");
    let no = || failed(400, "invalid_request_error", "payment_intent_unexpected_state");
    for (step, status) in [(declined(), 402), (replayed(declined()), 402), (replayed(no()), 400)] {
        let upstream = FakeUpstream::start([Step::close(), step]).await;
        let gate = stripe(ONE, "").start(&upstream).await;
        is(&pay(&client(&gate), "k", FORM).await, UNKNOWN);
        is(&pay(&client(&gate), "k", FORM).await, (status, "", false));
        is(&pay(&client(&gate), "k", FORM).await, (status, "", true));
        assert_eq!(upstream.calls(), 2);
        // What counted as spent while nobody knew was not: the metric, which goes up alone, has it, and the ledger has not.
        assert_eq!(gate.metric("tollgate_spend_micros_total", "").await, PRICE);
        gate.ledger_says(0).await;
    }
}

#[tokio::test]
async fn a_card_that_is_declined_is_an_answer() {
    let upstream = FakeUpstream::start([failed(402, "card_error", "card_declined"), intent()]).await;
    let gate = stripe("", "").start(&upstream).await;
    let first = pay(&client(&gate), "k", FORM).await;
    is(&first, (402, "", false));
    assert_eq!(first.json()["error"]["code"], "card_declined");
    is(&pay(&client(&gate), "k", FORM).await, (402, "", true));
    is(&pay(&client(&gate), "another card", FORM).await, (200, "", false));
    assert_eq!((upstream.calls(), gate.spent().await), (2, PRICE));
}

#[tokio::test]
async fn an_account_of_the_callers_that_is_none_is_no_matter_of_our_credential() {
    let upstream =
        FakeUpstream::start([failed(403, "invalid_request_error", "account_invalid"), failed(403, "invalid_request_error", "")])
            .await;
    let gate = stripe("", "").start(&upstream).await;
    is(&pay(&client(&gate), "a", FORM).await, (403, "", false));
    is(&pay(&client(&gate), "b", FORM).await, (502, "upstream_denied", false));
    assert_eq!((upstream.calls(), gate.spent().await), (2, 0));
}

/// Stripe forgets a key once it is a day old: asked again then, it would make another payment.
#[tokio::test]
async fn nothing_is_asked_again_once_stripe_may_have_forgotten_the_key() {
    let day = 86_400;
    // The flight may take a while longer, and must end before.
    let flight = 10;
    let upstream = FakeUpstream::start([Step::hang(), Step::hang(), replayed(intent())]).await;
    let gate = stripe(&format!("{ONE}\nflight = \"{flight}s\""), "").start(&upstream).await;
    is(&pay(&client(&gate), "k", FORM).await, UNKNOWN);
    gate.advance(day - flight - 1);
    is(&pay(&client(&gate), "k", FORM).await, UNKNOWN);
    assert_eq!(upstream.calls(), 2, "it may still be asked");
    gate.advance(1);
    for _ in 0..2 {
        is(&pay(&client(&gate), "k", FORM).await, UNKNOWN);
    }
    gate.advance(30 * day);
    is(&pay(&client(&gate), "k", FORM).await, UNKNOWN);
    assert_eq!(upstream.calls(), 2, "asking does not make the key any younger");
    // Both times it was sent stay spent, as long as nobody has said what came of it.
    gate.ledger_says(2 * PRICE).await;
    is(&pay(&client(&gate), "another", FORM).await, (200, "", false));
}

/// Whoever describes the request themselves says nothing of writes: it is one all the same.
#[tokio::test]
async fn a_route_of_ones_own_shape_is_the_write_that_it_sends() {
    let upstream = FakeUpstream::start([Step::hang(), replayed(intent())]).await;
    let gate = own_stripe().start(&upstream).await;
    let form = "amount=1099&currency=eur";
    let bare = gate.client.form("/pay", form).await;
    is(&bare, (400, "idempotency_key_missing", false));
    assert_eq!(upstream.calls(), 0);
    let first = post(&gate.client, "k", "/pay", form).await;
    assert_eq!((first.code().as_str(), upstream.calls()), ("outcome_unknown", 1), "{first:?}");
    is(&post(&gate.client, "k", "/pay", form).await, (200, "", false));
    is(&post(&gate.client, "k", "/pay", form).await, (200, "", true));
    one_key(&upstream);
    assert_eq!((upstream.calls(), gate.spent().await), (2, PRICE));
}
