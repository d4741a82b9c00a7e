//! What happens to a lease when its holder dies, stands still or is slow.

use std::time::Duration;

use crate::support::fleet::Fleet;
use crate::support::fleet::processes::Processes;
use crate::support::fleet::volley::{get, volley};
use crate::support::gate::{fare, quote};
use crate::support::redis::RedisServer;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;
use tokio::time::Instant;

const QUOTE: &str = "/v1/quote?from=Delhi&to=Jaipur";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alone_with_the_clock_a_killed_holder_is_replaced_by_exactly_one() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start([Step::hang(), Step::ok(fare())]).await;
    let route = "lease = { ttl = \"1s\", wait = \"8s\" }";
    let mut fleet = Processes::start(3, &upstream, |_| quote("", route).redis(&redis.url())).await;
    let addrs: [_; 3] = fleet.addrs().try_into().unwrap();
    let holder = tokio::spawn(async move { volley(&addrs[..1], [get(QUOTE)]).await });
    upstream.wait_for_calls(1).await;
    let others = [addrs[1], addrs[2]];
    let waiters = tokio::spawn(async move { volley(&others, (0..50).map(|_| get(QUOTE))).await });
    // They must be waiting before their holder dies.
    wait_for_waiters(&redis).await;
    fleet.kill(0);
    let killed = Instant::now();
    let replies = waiters.await.unwrap();
    let took = killed.elapsed();
    assert!(replies.iter().all(|reply| reply.as_ref().is_some_and(|reply| reply.status == 200)), "{replies:?}");
    assert_eq!((replies.len(), upstream.calls()), (50, 2), "exactly one more call");
    assert!(took < Duration::from_secs(2), "lease TTL + 1 s: {took:?}");
    assert_eq!(holder.await.unwrap(), [None]);
}

/// F-03 (c): the holder's process stands still, its lease ends, and one of those who wait flies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_03_f_05_a_holder_that_stands_still_is_replaced_by_exactly_one() {
    let redis = RedisServer::start().await;
    let slow = Step::ok(fare()).delay(Duration::from_millis(1_500));
    let upstream = FakeUpstream::start([slow, Step::ok(fare())]).await;
    let route = "lease = { ttl = \"500ms\", wait = \"8s\" }";
    let fleet = Processes::start(2, &upstream, |_| quote("", route).redis(&redis.url())).await;
    let addrs: [_; 2] = fleet.addrs().try_into().unwrap();
    let holder = tokio::spawn(async move { volley(&addrs[..1], [get(QUOTE)]).await });
    upstream.wait_for_calls(1).await;
    let waiters = tokio::spawn(async move { volley(&[addrs[1]], (0..50).map(|_| get(QUOTE))).await });
    wait_for_waiters(&redis).await;
    fleet.stop(0);
    let replies = waiters.await.unwrap();
    assert!(replies.iter().all(|reply| reply.as_ref().is_some_and(|reply| reply.status == 200)), "{replies:?}");
    assert_eq!((replies.len(), upstream.calls()), (50, 2));
    // Awake again, it answers its own asker, and neither undoes nor repeats anything.
    fleet.go_on(0);
    assert!(holder.await.unwrap()[0].as_ref().is_some_and(|reply| reply.status == 200));
    let again = volley(&fleet.addrs(), [get(QUOTE), get(QUOTE)]).await;
    assert!(again.iter().flatten().all(|reply| reply.header("cache-status").is_some_and(|status| status.contains("hit"))));
    assert_eq!(upstream.calls(), 2);
}

/// Until somebody waits for a lease: the holder's record says so.
async fn wait_for_waiters(redis: &RedisServer) {
    crate::support::soon("someone to wait for the lease", async {
        loop {
            for key in redis.keys().await.into_iter().filter(|key| key.contains(":lease:")) {
                let held = format!("{:?}", redis.command(&["HGETALL", &key]).await);
                if held.contains("waited") {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// A flight longer than its lease keeps it by renewing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_flight_keeps_its_lease() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(Step::ok(fare()).delay(Duration::from_millis(1_200))).await;
    let fleet = Fleet::start(2, &upstream, |_| quote("", "lease = { ttl = \"300ms\" }").redis(&redis.url())).await;
    let replies = fleet.ask((0..20).map(|_| get(QUOTE))).await;
    assert!(replies.iter().flatten().all(|reply| reply.status == 200));
    assert_eq!((replies.len(), upstream.calls(), fleet.spent().await), (20, 1, 5_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_in_vain_is_told_to_try_again_and_nobody_pays_twice() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(Step::ok(fare()).gated()).await;
    let fleet = Fleet::start(2, &upstream, |_| quote("", "lease = { wait = \"300ms\" }").redis(&redis.url())).await;
    let holder = fleet[0].get(QUOTE);
    let other = async {
        upstream.wait_for_calls(1).await;
        let reply = fleet[1].get(QUOTE).await;
        assert_eq!((reply.status, reply.code().as_str(), reply.header("retry-after")), (503, "try_again", Some("1")));
        upstream.release(1);
    };
    let (reply, ()) = tokio::join!(holder, other);
    assert_eq!(reply.status, 200);
    assert!(fleet[1].get(QUOTE).await.header("cache-status").unwrap().contains("hit"));
    assert_eq!((upstream.calls(), fleet.spent().await), (1, 5_000));
}

/// With something stale at hand, waiting in vain ends with that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_in_vain_gets_what_is_stale() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let route = "lease = { wait = \"300ms\" }\ncache = { found = \"1s\", stale_if_error = \"1h\" }";
    let fleet = Fleet::start(2, &upstream, |_| quote("", route).redis(&redis.url())).await;
    fleet[0].get(QUOTE).await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    upstream.set_script(Step::ok(fare()).gated());
    let holder = fleet[0].get(QUOTE);
    let other = async {
        upstream.wait_for_calls(2).await;
        let reply = fleet[1].get(QUOTE).await;
        assert!(reply.status == 200 && reply.header("cache-status").unwrap().contains("detail=stale"), "{reply:?}");
        upstream.release(1);
    };
    tokio::join!(holder, other);
    assert_eq!((upstream.calls(), fleet.spent().await), (2, 10_000));
}

/// *Off* while others wait for the lease of a holder that dies: whoever takes its place pays for nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_a_lease_pays_for_nothing_after_off() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start([Step::hang(), Step::ok(fare())]).await;
    let route = "lease = { ttl = \"1s\", wait = \"8s\" }";
    let mut fleet = Processes::start(2, &upstream, |_| quote("", route).redis(&redis.url())).await;
    let addrs: [_; 2] = fleet.addrs().try_into().unwrap();
    let holder = tokio::spawn(async move { volley(&addrs[..1], [get(QUOTE)]).await });
    upstream.wait_for_calls(1).await;
    let waiters = tokio::spawn(async move { volley(&addrs[1..], (0..10).map(|_| get(QUOTE))).await });
    wait_for_waiters(&redis).await;
    fleet.kill(0);
    let body = serde_json::json!({ "state": "off", "reason": "test" }).to_string();
    let said = fleet.member(1).admin.send(http::Method::PUT, "/v1/switches/all", body.into()).await;
    assert_eq!(said.status, 200);
    for reply in waiters.await.unwrap() {
        let reply = reply.unwrap();
        assert_eq!((reply.status, &reply.json()["code"]), (503, &serde_json::json!("switched_off")), "{reply:?}");
    }
    assert_eq!((holder.await.unwrap(), upstream.calls()), (vec![None], 1));
}
