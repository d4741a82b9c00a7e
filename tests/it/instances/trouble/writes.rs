//! The row of paid writes in that table; and a store whose copy says nothing.

use serde_json::json;

use super::*;
use crate::support::routes::{message, sms};

const PRICE: u64 = 8_000;

fn write(url: &str) -> Setup {
    sms("retry = { attempts = 1 }", "").store(&format!("url = \"{url}\"\ninstances = 2"))
}

/// A message named like its key.
async fn send(gate: &Gate, key: &str) -> Reply {
    let began = Instant::now();
    let body = json!({ "to": "+491701234567", "body": key });
    let reply = gate.client.clone().with("idempotency-key", key).post("/v1/sms", body).await;
    assert!(began.elapsed() < Duration::from_millis(1_500), "{key}: {:?}", began.elapsed());
    reply
}

fn is_refused(reply: &Reply) -> bool {
    (reply.status, reply.code().as_str(), reply.header("retry-after")) == (503, "store_unavailable", Some("1"))
}

fn is_replayed(reply: &Reply) -> bool {
    reply.status == 201 && reply.header("idempotent-replayed") == Some("true")
}

/// How often the provider was sent it.
fn sent(upstream: &FakeUpstream, key: &str) -> usize {
    upstream.requests().iter().filter(|request| request.text().contains(&format!("\"{key}\""))).count()
}

fn answered() -> Step {
    Step::ok(message(7)).status(201)
}

async fn cells(fault: Fault) {
    const NEW: [&str; 4] = ["new-0", "new-1", "new-2", "new-3"];
    let mut world = World::with(fault, answered(), write).await;
    assert_eq!(send(&world.fleet[0], "before").await.status, 201);
    world.begin(fault).await;
    for (key, gate) in NEW.into_iter().zip(world.fleet.gates.iter().cycle()) {
        let reply = send(gate, key).await;
        assert!(is_refused(&reply) || fault.flickers(), "{reply:?}");
        // Known to be sent, or not: never neither.
        assert!(matches!(reply.status, 201 | 409 | 503), "{reply:?}");
    }
    let replay = send(&world.fleet[1], "before").await;
    if !fault.flickers() {
        assert!(if fault.reads() { is_replayed(&replay) } else { is_refused(&replay) }, "{replay:?}");
        assert_eq!(world.upstream.calls(), 1);
        assert!(world.fleet.metric("tollgate_store_errors_total", "stage=\"writes\",policy=\"refuse\"").await > 0);
    }

    world.end(fault).await;
    let forgotten = fault == Fault::Redis(Trouble::Down);
    if forgotten {
        until_answered(&world.fleet[0], "before", |reply| reply.json()["detail"].as_str().unwrap().contains("were lost")).await;
        assert_eq!(world.upstream.calls(), 1, "it may have been sent");
        let accept = async || world.fleet[1].admin.post("/v1/spend/accept-loss", json!({})).await.status;
        soon("a connection to accept it by", async { while accept().await != 200 {} }).await;
    }
    for key in NEW.into_iter().chain(["before"]) {
        for gate in &world.fleet.gates {
            until_answered(gate, key, |reply| reply.status == 201).await;
        }
        assert_eq!(sent(&world.upstream, key), 1 + usize::from(forgotten && key == "before"), "{key}");
    }
    let spent = world.fleet.metric("tollgate_spend_micros_total", "").await;
    assert_eq!(spent, PRICE * world.upstream.calls() as u64);
}

async fn until_answered(gate: &Gate, key: &str, wanted: impl Fn(&Reply) -> bool) {
    soon("recovery", async {
        while !wanted(&send(gate, key).await) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_03_writes_and_a_store_that_is_read_only() {
    cells(Fault::Redis(Trouble::ReadOnly)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_03_writes_and_a_store_without_its_replicas() {
    cells(Fault::Redis(Trouble::NoReplicas)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_07_writes_and_a_store_that_is_full() {
    cells(Fault::Redis(Trouble::Full)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_03_writes_and_a_store_that_is_loading() {
    cells(Fault::Redis(Trouble::Loading)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_03_writes_and_a_store_that_is_down() {
    cells(Fault::Redis(Trouble::Down)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_03_writes_and_a_store_that_hangs() {
    cells(Fault::Redis(Trouble::Hangs)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_03_writes_and_a_store_that_is_slow() {
    cells(Fault::Slow).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_03_writes_and_a_store_that_loses_three_replies_in_ten() {
    cells(Fault::Cuts).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_03_writes_and_a_store_whose_replies_are_swallowed() {
    cells(Fault::Swallows).await;
}

/// What is in the air when it begins lands, is handed to who waits, and is written down as soon as that is possible.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_03_what_is_in_the_air_lands_whatever_the_store_does() {
    for trouble in [Trouble::Full, Trouble::Hangs, Trouble::ReadOnly, Trouble::NoReplicas] {
        let fault = Fault::Redis(trouble);
        let mut world = World::with(fault, answered().gated(), write).await;
        let client = world.fleet[0].client.clone().with("idempotency-key", "k");
        let body = json!({ "to": "+491701234567", "body": "k" });
        let waiting = tokio::spawn(async move { client.post("/v1/sms", body).await });
        world.upstream.wait_for_calls(1).await;
        world.begin(fault).await;
        world.upstream.release(1);
        assert_eq!(waiting.await.unwrap().status, 201, "{trouble:?}");
        if fault.reads() {
            assert!(is_replayed(&send(&world.fleet[1], "k").await), "{trouble:?}");
        }
        world.end(fault).await;
        until_answered(&world.fleet[1], "k", is_replayed).await;
        assert_eq!((world.upstream.calls(), world.fleet.spent().await), (1, PRICE), "{trouble:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_copy_knows_of_is_not_sent() {
    let (redis, copy) = (RedisServer::start().await, RedisServer::start().await);
    redis.config_set("repl-diskless-sync-delay", "0").await;
    copy.follow(&redis).await;
    let upstream = FakeUpstream::start(answered()).await;
    let setup = write(&redis.url()).store(&format!("url = \"{}\"\ntimeout = \"1s\"", redis.url()));
    let gate = setup.start(&upstream).await;
    // A copy that has just come may not know yet what it is asked for.
    until_answered(&gate, "followed", |reply| reply.status == 201).await;
    assert_eq!(upstream.calls(), 1);
    copy.stop();
    for _ in 0..2 {
        assert!(is_refused(&send(&gate, "alone").await));
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
    assert!(is_replayed(&send(&gate, "followed").await), "what was answered before is");
    copy.go_on();
    until_answered(&gate, "alone", |reply| reply.status == 201).await;
    assert_eq!((sent(&upstream, "alone"), gate.spent().await), (1, 2 * PRICE));
}
