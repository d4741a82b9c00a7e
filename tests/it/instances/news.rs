//! What is said to one instance is true in all: switches, purges.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::support::fault_proxy::FaultProxy;
use crate::support::fleet::Fleet;
use crate::support::gate::{Gate, fare, quote};
use crate::support::redis::RedisServer;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const QUOTE: &str = "/v1/quote?from=Delhi&to=Jaipur";

/// How long it takes until a request to this instance ends so.
async fn until(gate: &Gate, path: &str, status: u16, hint: &str) -> Duration {
    let began = Instant::now();
    crate::support::soon(hint, async {
        while gate.get(path).await.status != status {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switch_set_at_one_instance_is_in_force_at_all_within_a_second() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let fleet = Fleet::start(3, &upstream, |_| quote("", "").redis(&redis.url())).await;
    fleet[0].get(QUOTE).await;
    fleet[0].switch("all", "off").await;
    for nth in 1..3 {
        assert!(until(&fleet[nth], QUOTE, 503, "off").await < Duration::from_secs(1));
    }
    fleet[1].switch("all", "on").await;
    for nth in [0, 2] {
        assert!(until(&fleet[nth], QUOTE, 200, "on").await < Duration::from_secs(1));
    }
    // Of two set at about the same time, all instances agree on one.
    let set = |nth: usize, state: &'static str| {
        let body = json!({ "state": state, "reason": "test" }).to_string();
        let admin = fleet[nth].admin.clone();
        async move { admin.send(http::Method::PUT, "/v1/switches/quote", body.into()).await }
    };
    for _ in 0..10 {
        tokio::join!(set(0, "off"), set(1, "on"), set(2, "cached"));
        crate::support::soon("agreement", async {
            loop {
                let mut said = Vec::new();
                for gate in &fleet.gates {
                    said.push(gate.admin.get("/v1/switches/quote").await.json()["state"].clone());
                }
                if said.windows(2).all(|pair| pair[0] == pair[1]) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
    assert_eq!((upstream.calls(), fleet.spent().await), (1, 5_000));
}

/// Switches are records: who starts later, or again, has them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switch_is_known_to_whoever_starts_later() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let fleet = Fleet::start(1, &upstream, |_| quote("", "").redis(&redis.url())).await;
    fleet[0].switch("quote", "off").await;
    let later = Fleet::start(1, &upstream, |_| quote("", "").redis(&redis.url())).await;
    assert_eq!(later[0].get(QUOTE).await.code(), "switched_off");
    assert_eq!(upstream.calls(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_reaches_the_memory_of_every_instance_within_a_second() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let fleet = Fleet::start(2, &upstream, |_| quote("", "").redis(&redis.url())).await;
    let mut calls = 0;
    for body in [json!({}), json!({ "question": { "from": "delhi", "to": "JAIPUR" } })] {
        for gate in &fleet.gates {
            gate.get(QUOTE).await;
        }
        calls += 1;
        assert_eq!(upstream.calls(), calls);
        let purged = fleet[0].admin.send(http::Method::POST, "/v1/answers/quote/purge", body.to_string().into()).await;
        assert_eq!(purged.status, 200, "{purged:?}");
        let client = fleet[1].client.clone().with("cache-control", "only-if-cached");
        let began = Instant::now();
        crate::support::soon("the purge", async {
            while client.get(QUOTE).await.status != 504 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
        assert!(began.elapsed() < Duration::from_secs(1));
    }
    assert_eq!(fleet.spent().await, 5_000 * calls as u64);
}

/// After a store came back empty a purge still purges, and whoever starts then agrees with those who have been there before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_purges_though_the_store_has_forgotten_those_before() {
    let mut redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let fleet = Fleet::start(1, &upstream, |_| quote("", "").redis(&redis.url())).await;
    let purge = async || fleet[0].admin.send(http::Method::POST, "/v1/answers/quote/purge", "{}".into()).await.status;
    assert_eq!((purge().await, purge().await), (200, 200));
    redis.restart().await;
    crate::support::soon("the store", async {
        while fleet[0].admin.get("/readyz").await.text().starts_with("degraded\nstore: the store")
            || redis.keys().await.iter().all(|key| !key.contains(":generations:"))
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(fleet[0].get(QUOTE).await.status, 200);
    let later = Fleet::start(1, &upstream, |_| quote("", "").redis(&redis.url())).await;
    assert!(later[0].get(QUOTE).await.header("cache-status").unwrap().contains("hit"), "under one key");
    assert_eq!(purge().await, 200);
    assert_eq!(fleet[0].get(QUOTE).await.header("cache-status"), Some("tollgate; fwd=miss; stored"));
    assert_eq!(upstream.calls(), 2);
}

/// Without push (its connection hangs) news come at the latest with the next heartbeat, which is every second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn news_come_without_push_too() {
    let redis = RedisServer::start().await;
    let proxy = FaultProxy::before(redis.addr()).await;
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let urls = [redis.url(), proxy.url()];
    let fleet = Fleet::start(2, &upstream, |nth| quote("", "").redis(&urls[nth])).await;
    proxy.cut().await;
    fleet[0].switch("all", "off").await;
    let took = until(&fleet[1], QUOTE, 503, "off").await;
    assert!(took < Duration::from_secs(3), "{took:?}");
}

/// F-05 and purges: what was paid for before a purge is not kept after it, wherever it flew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flight_of_before_a_purge_elsewhere_keeps_nothing() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start([Step::ok(fare()).gated(), Step::ok(fare())]).await;
    let fleet = Fleet::start(2, &upstream, |_| quote("", "").redis(&redis.url())).await;
    let (first, ()) = tokio::join!(fleet[1].get(QUOTE), async {
        upstream.wait_for_calls(1).await;
        let body = json!({ "question": { "from": "Delhi", "to": "Jaipur" } }).to_string();
        let purged = fleet[0].admin.send(http::Method::POST, "/v1/answers/quote/purge", body.into()).await;
        assert_eq!(purged.status, 200);
        upstream.release(1);
    });
    assert_eq!(first.status, 200, "its asker gets what was paid for");
    let client = fleet[0].client.clone().with("cache-control", "only-if-cached");
    assert_eq!(client.get(QUOTE).await.status, 504);
    let client = fleet[1].client.clone().with("cache-control", "only-if-cached");
    assert_eq!(client.get(QUOTE).await.status, 504);
    assert_eq!((fleet[0].get(QUOTE).await.status, upstream.calls(), fleet.spent().await), (200, 2, 10_000));
}

/// What one instance's budget has stopped is stopped in all; and what an admin ends at one is ended in all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_by_a_budget_is_in_force_at_all_within_a_second() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let receiver = FakeUpstream::start(Step::ok(json!({}))).await;
    let fleet = Fleet::start(2, &upstream, |_| {
        let mut setup = quote("", "").redis(&redis.url());
        let budget = "budget = { month = \"0.005 USD\", alert = [100], stop = \"off\" }";
        setup.body = setup.body.replace("budget = \"none\"", budget);
        setup.body += &format!("[alerts]\nwebhook = \"{}\"\n", receiver.url());
        setup
    })
    .await;
    assert_eq!(fleet[0].get(QUOTE).await.status, 200);
    assert_eq!(fleet[0].get("/v1/quote?from=Delhi&to=Agra").await.code(), "budget_exhausted");
    assert!(until(&fleet[1], QUOTE, 503, "off").await < Duration::from_secs(1));
    let stops = |nth: usize| {
        let admin = fleet[nth].admin.clone();
        async move { admin.get("/v1/switches/quote").await.json()["stops"].clone() }
    };
    assert_eq!((stops(0).await, &stops(1).await[0]["maker"]), (stops(1).await, &json!("budget")));
    let body = json!({ "state": "on", "maker": "budget" }).to_string();
    assert_eq!(fleet[1].admin.send(http::Method::PUT, "/v1/switches/quote", body.into()).await.status, 200);
    assert!(until(&fleet[0], QUOTE, 200, "on").await < Duration::from_secs(1));
    // It is used up for both, and neither stops the route again in that month; and each thing is told by one of them.
    for gate in &fleet.gates {
        assert_eq!(gate.get("/v1/quote?from=Delhi&to=Agra").await.code(), "budget_exhausted");
        assert_eq!(gate.get(QUOTE).await.status, 200);
    }
    let known = async { while fleet.metric("tollgate_alerts_total", "known").await < 1 {} };
    crate::support::soon("what one has told to be known to the other", known).await;
    assert_eq!(receiver.calls(), 2, "the share, and the stop");
    assert_eq!((upstream.calls(), fleet.spent().await), (1, 5_000));
}
