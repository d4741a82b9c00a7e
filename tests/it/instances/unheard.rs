//! Replies of the store that nobody hears, and news that concern somebody else.

use std::time::Duration;

use serde_json::json;
use tollgate::clock::Clock;

use crate::support::fault_proxy::{FaultProxy, Lose};
use crate::support::fleet::Fleet;
use crate::support::gate::{Gate, fare, found, opencage, quote};
use crate::support::redis::RedisServer;
use crate::support::soon;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const QUOTE: &str = "/v1/quote?from=Delhi&to=Jaipur";

/// The first instance sees Redis through a proxy, the second does not.
async fn fleet(upstream: &FakeUpstream, route: &str) -> (RedisServer, FaultProxy, Fleet) {
    let redis = RedisServer::start().await;
    let proxy = FaultProxy::before(redis.addr()).await;
    let urls = [proxy.url(), redis.url()];
    let fleet = Fleet::start(2, upstream, |nth| quote("", route).redis(&urls[nth])).await;
    (redis, proxy, fleet)
}

async fn ready(gate: &Gate) {
    soon("the store to be there again", async {
        while gate.admin.get("/readyz").await.text() != "ready\n" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

async fn leases(redis: &RedisServer) -> Vec<String> {
    redis.keys().await.into_iter().filter(|key| key.contains(":lease:")).collect()
}

/// So many calls of this operation have failed.
async fn failed(gate: &Gate, op: &str) -> u64 {
    gate.metric("tollgate_store_errors_total", &format!("stage=\"{op}\",policy=\"error\"")).await
}

/// The reply is lost, the lease is not: it is the flight's own, and goes with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_was_granted_unheard_is_given_back() {
    let upstream = FakeUpstream::start(Step::ok(fare()).gated()).await;
    // Without a cache, entering is a request's first word to the store.
    let (redis, proxy, fleet) = fleet(&upstream, "# no cache").await;
    let mut asked = 0;
    let reply = loop {
        assert!(asked < 20, "no reply to an entry was lost");
        ready(&fleet[0]).await;
        proxy.lose(Lose::next(1).of("EVALSHA"));
        let (client, path) = (fleet[0].client.clone(), format!("/v1/quote?from=Delhi&to=Town{asked}"));
        let reply = tokio::spawn(async move { client.get(&path).await });
        asked += 1;
        upstream.wait_for_calls(asked).await;
        // A heartbeat may have come first.
        if failed(&fleet[0], "enter").await > 0 && !leases(&redis).await.is_empty() {
            break reply;
        }
        upstream.release(1);
        assert_eq!(reply.await.unwrap().status, 200);
    };
    ready(&fleet[0]).await;
    // Longer than it lasts by itself: it is renewed.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let path = format!("/v1/quote?from=Delhi&to=Town{}", asked - 1);
    let waits = tokio::spawn({
        let client = fleet[1].client.clone();
        async move { client.get(&path).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!((leases(&redis).await.len(), upstream.calls()), (1, asked), "the other one waits");
    upstream.release(1);
    assert_eq!((reply.await.unwrap().status, waits.await.unwrap().status), (200, 200));
    assert_eq!((leases(&redis).await, upstream.calls()), (vec![], asked));
}

/// Whoever waits for another instance's flight waits on when one look at it gets lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_look_that_gets_lost_is_no_reason_to_fly() {
    let upstream = FakeUpstream::start(Step::ok(fare()).gated()).await;
    let (redis, proxy, fleet) = fleet(&upstream, "lease = { wait = \"9s\" }").await;
    let ask = |nth: usize| {
        let client = fleet[nth].client.clone();
        tokio::spawn(async move { client.get(QUOTE).await })
    };
    let holder = ask(1);
    upstream.wait_for_calls(1).await;
    let waiter = ask(0);
    soon("a wait", async {
        while !format!("{:?}", redis.command(&["HGETALL", &leases(&redis).await[0]]).await).contains("waited") {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    // It looks four times a second, and a heartbeat may come between.
    for times in 0.. {
        if failed(&fleet[0], "enter").await > 0 {
            break;
        }
        assert!(times < 20, "no reply to a look was lost");
        let lost = proxy.lost();
        proxy.lose(Lose::next(1).of("EVALSHA"));
        proxy.wait_for_lost(lost + 1).await;
        ready(&fleet[0]).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_millis(600)).await;
    upstream.release(9);
    assert_eq!((holder.await.unwrap().status, waiter.await.unwrap().status), (200, 200));
    assert_eq!((upstream.calls(), fleet.spent().await), (1, 5_000));
}

/// A purge of which no news has come: the mark it leaves in the store is enough, for a flight without a lease, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flight_without_a_lease_does_not_undo_a_purge_it_has_not_heard_of() {
    const PARIS: &str = "/geocode/v1/json?q=Paris";
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(Step::ok(found()).header("cache-control", "private")).await;
    let fleet = Fleet::start(2, &upstream, |_| opencage("", "").redis(&redis.url())).await;
    // An answer for its asker alone: for a while everybody flies without a lease.
    assert_eq!(fleet[0].get(PARIS).await.status, 200);
    let landed = redis.keys().await.into_iter().find(|key| key.contains(":landed:")).unwrap();
    for purged in [true, false] {
        upstream.set_script(Step::ok(found()).gated());
        let calls = upstream.calls() + 1;
        let client = fleet[0].client.clone();
        let flight = tokio::spawn(async move { client.get(PARIS).await });
        upstream.wait_for_calls(calls).await;
        assert_eq!(leases(&redis).await, Vec::<String>::new());
        let mark = landed.replace(":landed:", ":purged:");
        if purged {
            let now = Clock::system().now().0.to_string();
            redis.command(&["SET", &mark, &now]).await;
        } else {
            redis.command(&["DEL", &mark]).await;
        }
        upstream.release(1);
        assert_eq!(flight.await.unwrap().status, 200);
        let kept = redis.keys().await.iter().any(|key| key.contains(":answer:"));
        assert_eq!(kept, !purged);
    }
}

/// An answer that is purged while another is on its way is no reason not to keep that one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_of_another_answer_keeps_none_from_being_kept() {
    let upstream = FakeUpstream::start(Step::ok(fare()).gated()).await;
    let (_redis, _proxy, fleet) = fleet(&upstream, "").await;
    let client = fleet[0].client.clone();
    let flight = tokio::spawn(async move { client.get(QUOTE).await });
    upstream.wait_for_calls(1).await;
    let other = json!({ "question": { "from": "Agra", "to": "Goa" } });
    assert_eq!(fleet[0].admin.post("/v1/answers/quote/purge", other).await.status, 200);
    upstream.release(1);
    assert_eq!(flight.await.unwrap().status, 200);
    assert!(fleet[1].get(QUOTE).await.header("cache-status").unwrap().contains("; hit"));
    // Its own purge is one.
    upstream.set_script(Step::ok(fare()).gated());
    let path = "/v1/quote?from=Agra&to=Goa";
    let client = fleet[0].client.clone();
    let flight = tokio::spawn(async move { client.get(path).await });
    upstream.wait_for_calls(2).await;
    let own = json!({ "question": { "from": "Agra", "to": "Goa" } });
    assert_eq!(fleet[1].admin.post("/v1/answers/quote/purge", own).await.status, 200);
    upstream.release(2);
    assert_eq!(flight.await.unwrap().status, 200);
    let again = fleet[1].get(path).await;
    assert!(again.header("cache-status").unwrap().contains("fwd=miss"), "{again:?}");
    assert_eq!((upstream.calls(), fleet.spent().await), (3, 15_000));
}
