//! Whose key it is, what it is for, and what is no key.

use futures_util::future::join_all;
use serde_json::json;

use super::{PRICE, hello, send, sent};
use crate::support::gate::Gate;
use crate::support::routes::sms;
use crate::support::upstream::FakeUpstream;

async fn claims(gate: &Gate) -> u64 {
    gate.metric("tollgate_store_seconds_count", "op=\"claim\"").await
}

#[tokio::test]
async fn i_01_whoever_comes_while_the_first_is_at_it_is_told_so() {
    let upstream = FakeUpstream::start(sent(7).gated()).await;
    let gate = sms("", "").start(&upstream).await;
    let asked = join_all((0..20).map(|_| send(&gate.client, "k", hello())));
    let (replies, ()) = tokio::join!(asked, async {
        upstream.wait_for_calls(1).await;
        crate::support::soon("all to have come", async {
            while claims(&gate).await < 20 {
                tokio::time::sleep(std::time::Duration::from_millis(3)).await;
            }
        })
        .await;
        upstream.release(1);
    });
    let first = replies.iter().filter(|reply| reply.status == 201).count();
    let told = replies.iter().filter(|reply| reply.status == 409 && reply.code() == "idempotency_in_progress");
    assert_eq!((first, told.filter(|reply| reply.header("retry-after") == Some("1")).count()), (1, 19), "{replies:?}");
    let again = send(&gate.client, "k", hello()).await;
    assert_eq!((again.status, again.json()["id"].as_u64(), again.header("idempotent-replayed")), (201, Some(7), Some("true")));
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
}

#[tokio::test]
async fn i_02_a_key_is_its_callers_own() {
    let upstream = FakeUpstream::start([sent(1), sent(2), sent(3)]).await;
    let mut setup = sms("", "");
    setup.body.push_str(
        "[routes.check]\nprovider = \"sms\"\nexpose = \"POST /v1/check\"\nbudget = \"none\"\nwrites = {}\n\
         [routes.check.question]\nto = { in = \"json\", type = \"phone\", required = true }\n\
         body = { in = \"json\", type = \"text\", required = true }\n",
    );
    let gate = setup.start(&upstream).await;
    let (a, b) = (gate.client.clone(), gate.other());
    assert_eq!(send(&a, "k", hello()).await.json()["id"], 1);
    assert_eq!(send(&b, "k", hello()).await.json()["id"], 2);
    let elsewhere = a.clone().with("idempotency-key", "k").post("/v1/check", hello()).await;
    assert_eq!(elsewhere.json()["id"], 3);
    for (client, id) in [(&a, 1), (&b, 2)] {
        let again = send(client, "k", hello()).await;
        assert_eq!((again.json()["id"].as_u64(), again.header("idempotent-replayed")), (Some(id), Some("true")));
    }
    // What another sends under it is no business of the first: it is not even told that the key is known.
    assert_eq!(send(&b, "k", json!({ "to": "+491701234567", "body": "else" })).await.code(), "idempotency_key_reused");
    let before = claims(&gate).await;
    assert_eq!(send(&gate.stranger(), "k", hello()).await.code(), "unauthenticated");
    assert_eq!(claims(&gate).await, before, "a stranger has no keys");
    assert_eq!((upstream.calls(), gate.spent().await), (3, 3 * PRICE));
}

/// What is in progress for one caller is nothing that another has to wait for, or hears of.
#[tokio::test]
async fn i_02_a_key_is_its_callers_own_while_it_is_in_flight() {
    let upstream = FakeUpstream::start([sent(1).gated(), sent(2)]).await;
    let gate = sms("", "").start(&upstream).await;
    let (client, other) = (gate.client.clone(), gate.other());
    let first = tokio::spawn(async move { send(&client, "k", hello()).await });
    upstream.wait_for_calls(1).await;
    let second = send(&other, "k", hello()).await;
    assert_eq!((second.status, second.json()["id"].as_u64(), second.header("idempotent-replayed")), (201, Some(2), None));
    assert_eq!(send(&gate.client, "k", hello()).await.code(), "idempotency_in_progress");
    upstream.release(1);
    assert_eq!(first.await.unwrap().json()["id"], 1);
    for (client, id) in [(&gate.client, 1), (&other, 2)] {
        let again = send(client, "k", hello()).await;
        assert_eq!((again.json()["id"].as_u64(), again.header("idempotent-replayed")), (Some(id), Some("true")));
    }
    assert_eq!((upstream.calls(), gate.spent().await), (2, 2 * PRICE));
}

#[tokio::test]
async fn i_03_a_key_is_for_one_question() {
    let upstream = FakeUpstream::start(sent(7).gated()).await;
    let gate = sms("", "").start(&upstream).await;
    let other = json!({ "to": "+491701234568", "body": "Your table is ready" });
    let client = gate.client.clone();
    let first = tokio::spawn(async move { send(&client, "k", hello()).await });
    upstream.wait_for_calls(1).await;
    // In flight: the same in another order is in progress, another is refused.
    let reordered = gate.client.clone().with("idempotency-key", "k").with("content-type", "application/json");
    let text = "{ \"body\" : \"Your table is ready\",\n \"to\": \"+491701234567\" }";
    let same = reordered.send(http::Method::POST, "/v1/sms", text.into()).await;
    assert_eq!(same.code(), "idempotency_in_progress");
    assert_eq!(send(&gate.client, "k", other.clone()).await.code(), "idempotency_key_reused");
    upstream.release(1);
    assert_eq!(first.await.unwrap().status, 201);
    // And afterwards.
    assert_eq!(reordered.send(http::Method::POST, "/v1/sms", text.into()).await.header("idempotent-replayed"), Some("true"));
    let refused = send(&gate.client, "k", other).await;
    assert_eq!((refused.status, refused.code().as_str(), refused.header("retry-after")), (422, "idempotency_key_reused", None));
    // Letter case is what somebody wrote: a message is not a question.
    let shouted = json!({ "to": "+491701234567", "body": "YOUR TABLE IS READY" });
    assert_eq!(send(&gate.client, "k", shouted).await.status, 422);
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
}

#[tokio::test]
async fn what_is_no_key_is_refused_before_the_store_is_asked() {
    let upstream = FakeUpstream::start(sent(1)).await;
    let gate = sms("", "").start(&upstream).await;
    let missing = gate.client.post("/v1/sms", hello()).await;
    assert_eq!((missing.status, missing.code().as_str()), (400, "idempotency_key_missing"));
    let long = "k".repeat(256);
    for key in ["", " ", "\"\"", "\"open", &long] {
        let invalid = send(&gate.client, key, hello()).await;
        assert_eq!((invalid.status, invalid.code().as_str()), (400, "idempotency_key_invalid"), "{key:?}");
    }
    let twice = "POST /v1/sms HTTP/1.1\r\nHost: gate\r\nX-Api-Key: caller-key\r\nIdempotency-Key: a\r\nIdempotency-Key: a\r\n\
                 Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    let replies = crate::support::raw::exchange(gate.addr, twice).await;
    assert_eq!(replies[0].json()["code"], "idempotency_key_invalid");
    assert_eq!((claims(&gate).await, upstream.calls(), gate.spent().await), (0, 0, 0));
}

#[tokio::test]
async fn a_route_may_leave_the_key_to_its_callers() {
    let upstream = FakeUpstream::start([sent(1), sent(2), sent(3)]).await;
    let gate = sms("", "writes = { key = \"optional\" }").start(&upstream).await;
    for id in [1, 2] {
        let reply = gate.client.post("/v1/sms", hello()).await;
        assert_eq!((reply.json()["id"].as_u64(), reply.header("idempotent-replayed")), (Some(id), None));
    }
    for replayed in [None, Some("true")] {
        let reply = send(&gate.client, "k", hello()).await;
        assert_eq!((reply.json()["id"].as_u64(), reply.header("idempotent-replayed")), (Some(3), replayed));
    }
    assert_eq!((upstream.calls(), gate.spent().await), (3, 3 * PRICE));
}

/// For callers whose library has no place for a key: the same again within `keep` is the same intention.
#[tokio::test]
async fn a_route_may_take_the_question_for_the_key() {
    let upstream = FakeUpstream::start([sent(1), sent(2), sent(3)]).await;
    let gate = sms("", "writes = { key = \"question\", keep = \"10s\" }").start(&upstream).await;
    let other = json!({ "to": "+491701234567", "body": "Your table is gone" });
    for (body, id, replayed) in [(hello(), 1, None), (hello(), 1, Some("true")), (other, 2, None)] {
        let reply = gate.client.post("/v1/sms", body).await;
        assert_eq!((reply.json()["id"].as_u64(), reply.header("idempotent-replayed")), (Some(id), replayed));
    }
    gate.advance(10);
    assert_eq!(gate.client.post("/v1/sms", hello()).await.json()["id"], 3);
    assert_eq!((upstream.calls(), gate.spent().await), (3, 3 * PRICE));
}
