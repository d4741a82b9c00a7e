//! Without its store, or with one that has lost its records, nothing is sent.

use std::time::Duration;

use super::{PRICE, hello, send, sent};
use crate::support::fault_proxy::FaultProxy;
use crate::support::fleet::Fleet;
use crate::support::gate::Gate;
use crate::support::redis::RedisServer;
use crate::support::redis::trouble::Trouble;
use crate::support::routes::sms;
use crate::support::soon;
use crate::support::upstream::FakeUpstream;

async fn refused(gate: &Gate, key: &str) {
    let began = tokio::time::Instant::now();
    let reply = send(&gate.client, key, hello()).await;
    assert_eq!((reply.status, reply.code().as_str()), (503, "store_unavailable"), "{reply:?}");
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

/// Until it is sent, once the store is well again.
async fn recovers(gate: &Gate, key: &str) {
    soon("recovery", async {
        loop {
            let reply = send(&gate.client, key, hello()).await;
            if reply.status == 201 {
                return;
            }
            assert!(matches!(reply.code().as_str(), "store_unavailable" | "idempotency_in_progress"), "{reply:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

async fn through(trouble: Trouble) {
    let mut redis = if trouble == Trouble::Loading { RedisServer::durable().await } else { RedisServer::start().await };
    let upstream = FakeUpstream::start(sent(1)).await;
    let fleet = Fleet::start(1, &upstream, |_| sms("", "").redis(&redis.url())).await;
    send(&fleet[0].client, "before", hello()).await;
    redis.begin(trouble).await;
    for n in 0..5 {
        refused(&fleet[0], &format!("k-{n}")).await;
    }
    assert_eq!(upstream.calls(), 1);
    assert!(fleet[0].metric("tollgate_store_errors_total", "stage=\"writes\",policy=\"refuse\"").await > 0);
    redis.end(trouble).await;
    recovers(&fleet[0], "k-0").await;
    assert_eq!((upstream.calls(), fleet.spent().await), (2, 2 * PRICE));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_03_nothing_is_sent_while_the_store_is_read_only() {
    through(Trouble::ReadOnly).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_07_nothing_is_sent_while_the_store_is_full() {
    through(Trouble::Full).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_03_nothing_is_sent_while_the_store_lacks_its_replicas() {
    through(Trouble::NoReplicas).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_03_nothing_is_sent_while_the_store_is_loading() {
    through(Trouble::Loading).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_03_nothing_is_sent_while_the_store_hangs() {
    through(Trouble::Hangs).await;
}

/// It comes back empty: what was sent before is not known any more, so nothing is sent until a person says that this is known.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_by_a_store_that_has_lost_its_records() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(sent(1)).await;
    let fleet = Fleet::start(2, &upstream, |_| sms("", "").redis(&redis.url())).await;
    assert_eq!(send(&fleet[0].client, "k", hello()).await.status, 201);
    redis.flush_all().await;
    soon("the loss to be seen", async {
        while send(&fleet[1].client, "k", hello()).await.code() != "store_unavailable" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    refused(&fleet[0], "k").await;
    assert_eq!(upstream.calls(), 1);
    assert_eq!(fleet[0].admin.post("/v1/spend/accept-loss", serde_json::json!({})).await.status, 200);
    recovers(&fleet[1], "k").await;
    assert_eq!(upstream.calls(), 2);
}

/// The answer is paid for: it is told although it cannot be recorded, and recorded as soon as it can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_07_an_answer_is_told_though_it_cannot_be_recorded() {
    let redis = RedisServer::start().await;
    let proxy = FaultProxy::before(redis.addr()).await;
    let upstream = FakeUpstream::start(sent(7).gated()).await;
    let urls = [proxy.url(), redis.url()];
    let fleet = Fleet::start(2, &upstream, |nth| sms("", "").redis(&urls[nth])).await;
    let (reply, ()) = tokio::join!(send(&fleet[0].client, "k", hello()), async {
        upstream.wait_for_calls(1).await;
        proxy.down().await;
        upstream.release(1);
    });
    assert_eq!((reply.status, reply.json()["id"].as_u64()), (201, Some(7)));
    let meanwhile = send(&fleet[1].client, "k", hello()).await;
    assert!(matches!(meanwhile.code().as_str(), "idempotency_in_progress" | "outcome_unknown"), "{meanwhile:?}");
    proxy.pass().await;
    soon("a replay", async {
        while send(&fleet[1].client, "k", hello()).await.header("idempotent-replayed") != Some("true") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!((upstream.calls(), fleet.spent().await), (1, PRICE));
}

/// What was refused leaves nothing behind that waits for the store: its claim lapses by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_away_is_not_left_with_a_task_for_everyone() {
    let mut redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(sent(1)).await;
    let route = "writes = { lease = \"1s\" }";
    let setup = || sms("connect_timeout = \"500ms\"", route).server("drain = \"60s\"").redis(&redis.url());
    let mut fleet = Fleet::start(1, &upstream, |_| setup()).await;
    redis.kill();
    for n in 0..5 {
        refused(&fleet[0], &format!("k-{n}")).await;
    }
    // Drained as soon as nobody has to be waited for, which is in a lease's time.
    soon("the end", fleet.gates.remove(0).stop()).await;
    assert_eq!(upstream.calls(), 0);
}
