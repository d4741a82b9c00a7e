//! What a request costs in round trips to a shared store: the numbers of `docs/ARCHITECTURE.md`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::fleet::Fleet;
use crate::support::gate::{Gate, fare, quote};
use crate::support::redis::RedisServer;
use crate::support::soon;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const QUOTE: &str = "/v1/quote?from=Delhi&to=Jaipur";

/// Round trips so far, by operation. What was saved is written once a second, whatever is asked.
async fn trips(gate: &Gate) -> BTreeMap<String, u64> {
    gate.settled().await;
    let metrics = gate.metrics().await;
    let trip = |line: &str| {
        let (op, count) = line.strip_prefix("tollgate_store_seconds_count{op=\"")?.split_once("\"} ")?;
        Some((op.to_owned(), count.parse().ok()?))
    };
    metrics.lines().filter_map(trip).filter(|(op, _): &(String, u64)| op != "credit").collect()
}

/// What came on top of `before`.
async fn since(gate: &Gate, before: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let more = |(op, count): (String, u64)| (op.clone(), count - before.get(&op).copied().unwrap_or_default());
    trips(gate).await.into_iter().map(more).filter(|(_, count)| *count > 0).collect()
}

/// What one request costs at this instance, and its status.
async fn cost(gate: &Gate, path: &str) -> (u16, Vec<(String, u64)>) {
    let before = trips(gate).await;
    let status = gate.get(path).await.status;
    (status, since(gate, &before).await)
}

fn ops(ops: &[(&str, u64)]) -> Vec<(String, u64)> {
    ops.iter().map(|(op, count)| ((*op).to_owned(), *count)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn round_trips_by_kind_of_request() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let route = "limits = { caller = { burst = 5, rate = \"1/h\" }, route = { burst = 100, rate = \"1/h\" } }";
    let fleet = Fleet::start(2, &upstream, |_| quote("quota = { burst = 9, rate = \"1/s\" }", route).redis(&redis.url())).await;
    let [one, two] = [&fleet[0], &fleet[1]];
    // Not a question: nothing is asked.
    assert_eq!(cost(one, "/v1/quote?from=&to=x").await, (400, ops(&[])));
    // A miss: the buckets, a look, the lease with another look, the quota of the attempt, landing.
    let miss = ops(&[("answer", 1), ("enter", 1), ("land", 1), ("reserve", 1), ("settle", 1), ("take", 2)]);
    assert_eq!(cost(one, QUOTE).await, (200, miss));
    // From process memory: the buckets. From the store: a look more, once.
    assert_eq!(cost(one, QUOTE).await, (200, ops(&[("take", 1)])));
    assert_eq!(cost(two, QUOTE).await, (200, ops(&[("answer", 1), ("take", 1)])));
    assert_eq!(cost(two, QUOTE).await, (200, ops(&[("take", 1)])));
    assert_eq!(cost(two, QUOTE).await, (200, ops(&[("take", 1)])));
    // The allowance is used up: the buckets say so.
    assert_eq!(cost(two, QUOTE).await, (429, ops(&[("take", 1)])));
    assert_eq!((upstream.calls(), fleet.spent().await), (1, 5_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_without_limits_and_quota_costs_nothing_on_a_hit() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let fleet = Fleet::start(1, &upstream, |_| quote("", "").redis(&redis.url())).await;
    let miss = ops(&[("answer", 1), ("enter", 1), ("land", 1), ("reserve", 1), ("settle", 1)]);
    assert_eq!(cost(&fleet[0], QUOTE).await, (200, miss));
    assert_eq!(cost(&fleet[0], QUOTE).await, (200, ops(&[])));
    assert_eq!((upstream.calls(), fleet.spent().await), (1, 5_000));
}

/// Waiting for another instance's flight is entering again when told; a refresh in the background enters and lands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_and_refreshing_cost_two_each() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start([Step::ok(fare()).gated(), Step::ok(fare())]).await;
    let cache = "cache = { found = \"1s\", stale_while_revalidate = \"1h\" }";
    let fleet = Fleet::start(2, &upstream, |_| quote("", cache).redis(&redis.url())).await;
    let holder = fleet[0].get(QUOTE);
    let waiter = async {
        upstream.wait_for_calls(1).await;
        let before = trips(&fleet[1]).await;
        let (reply, ()) = tokio::join!(fleet[1].get(QUOTE), async {
            soon("the waiter", async {
                while fleet[1].metric("tollgate_store_seconds_count", "op=\"enter\"").await == 0 {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            })
            .await;
            upstream.release(1);
        });
        assert_eq!(reply.status, 200);
        assert_eq!(since(&fleet[1], &before).await, ops(&[("answer", 1), ("enter", 2)]));
    };
    tokio::join!(holder, waiter);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let before = trips(&fleet[0]).await;
    assert!(fleet[0].get(QUOTE).await.header("cache-status").unwrap().contains("detail=stale"));
    soon("the refresh", async {
        while since(&fleet[0], &before).await != ops(&[("enter", 1), ("land", 1), ("reserve", 1), ("settle", 1)]) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!((upstream.calls(), fleet.spent().await), (2, 10_000));
}
