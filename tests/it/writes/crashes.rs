//! An owner that dies or stands still at each step of a send, and another instance on the same Redis: never a second send.

use std::time::Duration;

use serde_json::json;

use super::{PRICE, hello, raw_send, send, sent};
use crate::support::client::{Client, Reply};
use crate::support::fault_proxy::FaultProxy;
use crate::support::fleet::Fleet;
use crate::support::fleet::processes::Processes;
use crate::support::gate::Setup;
use crate::support::raw::Raw;
use crate::support::redis::RedisServer;
use crate::support::resp;
use crate::support::routes::sms;
use crate::support::soon;
use crate::support::step::{Script, Step};
use crate::support::upstream::FakeUpstream;

/// Replies take so much longer for the first instance: long enough to strike between two steps.
const SLOW: Duration = Duration::from_millis(300);

/// An owner that is gone is waited for this long.
const LEASE: Duration = Duration::from_secs(2);

fn setup(url: &str) -> Setup {
    let provider = "timeout = \"2s\"\nconnect_timeout = \"1s\"\nretry = { attempts = 1 }\nbreaker = { failures = 100 }";
    sms(provider, "writes = { lease = \"2s\" }").store(&format!("url = \"{url}\"\ntimeout = \"3s\"\npatience = \"10s\""))
}

/// Two instances, the first behind a slow way to Redis.
struct World {
    redis: RedisServer,
    _proxy: FaultProxy,
    upstream: FakeUpstream,
    fleet: Processes,
    /// Who asked the first instance.
    asked: Raw,
}

impl World {
    /// The first instance is asked, and struck once the record stands as `state`.
    async fn at(state: &str, upstream: impl Into<Script>) -> Self {
        let redis = RedisServer::durable().await;
        let proxy = FaultProxy::before(redis.addr()).await;
        let upstream = FakeUpstream::start(upstream).await;
        let urls = [proxy.url(), redis.url()];
        let fleet = Processes::start(2, &upstream, |nth| setup(&urls[nth])).await;
        let mut asked = Raw::connect(fleet.member(0).addr).await;
        proxy.delay(Duration::ZERO, SLOW);
        asked.send(raw_send("k")).await;
        let world = Self { redis, _proxy: proxy, upstream, fleet, asked };
        world.stands(state).await;
        world
    }

    /// Waits until the one record there is stands as `state`.
    async fn stands(&self, state: &str) {
        soon(&format!("the record to be {state}"), async {
            while self.state().await.as_deref() != Some(state) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }

    async fn state(&self) -> Option<String> {
        let key = self.redis.keys().await.into_iter().find(|key| key.starts_with("tollgate:write:"))?;
        match self.redis.command(&["HGET", &key, "state"]).await {
            reply @ resp::Reply::Text(_) => Some(reply.text()),
            _ => None,
        }
    }

    fn other(&self) -> &Client {
        &self.fleet.member(1).client
    }

    /// What the other instance says in the end, once the owner's lease is over; until then the send is in progress.
    async fn afterwards(&self) -> Reply {
        let began = tokio::time::Instant::now();
        loop {
            let reply = send(self.other(), "k", hello()).await;
            if reply.code() != "idempotency_in_progress" {
                return reply;
            }
            assert_eq!(reply.status, 409);
            assert!(began.elapsed() < LEASE + Duration::from_secs(1), "an owner that is gone is not waited for");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// What is spent, in the one ledger there is.
    async fn spent(&self) -> u64 {
        let ledger = self.fleet.member(1).admin.get("/v1/spend?since=1970-01-01&until=9999-12-31&by=").await.json();
        ledger["totals"][0]["micros"].as_u64().unwrap_or_default()
    }
}

fn is_unknown(reply: &Reply) -> bool {
    (reply.status, reply.code().as_str()) == (409, "outcome_unknown")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_the_claim_nothing_was_sent() {
    let mut world = World::at("claimed", sent(7)).await;
    world.fleet.kill(0);
    let reply = world.afterwards().await;
    assert_eq!((reply.status, world.upstream.calls()), (201, 1), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_sending_was_written_nobody_knows() {
    let mut world = World::at("sending", sent(7)).await;
    world.fleet.kill(0);
    let reply = world.afterwards().await;
    assert!(is_unknown(&reply), "{reply:?}");
    assert_eq!((world.upstream.calls(), world.spent().await), (0, PRICE), "its money stays counted");
    settle(&world, json!({ "outcome": "not_sent" })).await;
    assert_eq!((send(world.other(), "k", hello()).await.status, world.upstream.calls()), (201, 1));
    assert_eq!(world.spent().await, PRICE, "of the first nothing is billed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_the_bytes_nobody_knows() {
    let mut world = World::at("sending", Step::hang()).await;
    world.upstream.wait_for_calls(1).await;
    world.fleet.kill(0);
    assert!(is_unknown(&world.afterwards().await));
    settle(&world, json!({ "outcome": "sent", "status": 201, "body": { "id": 7 } })).await;
    let replay = send(world.other(), "k", hello()).await;
    assert_eq!((replay.status, replay.json()["id"].as_u64()), (201, Some(7)));
    assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    assert_eq!((world.upstream.calls(), world.spent().await), (1, PRICE));
}

/// The answer is there, and *done* may or may not have been written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_the_answer_it_is_replayed_or_unknown() {
    let mut world = World::at("sending", sent(7).gated()).await;
    world.upstream.wait_for_calls(1).await;
    world.upstream.release(1);
    tokio::time::sleep(SLOW / 2).await;
    world.fleet.kill(0);
    let reply = world.afterwards().await;
    assert!(reply.header("idempotent-replayed") == Some("true") || is_unknown(&reply), "{reply:?}");
    assert_eq!((world.upstream.calls(), world.spent().await), (1, PRICE));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_after_the_claim_it_may_not_send_any_more() {
    let mut world = World::at("claimed", [sent(1), sent(2)]).await;
    world.fleet.stop(0);
    let reply = world.afterwards().await;
    assert_eq!((reply.status, reply.json()["id"].as_u64()), (201, Some(1)));
    world.fleet.go_on(0);
    let woken = world.asked.response().await.unwrap();
    assert_eq!((woken.status, woken.json()["code"].as_str()), (503, Some("try_again")), "{woken:?}");
    assert_eq!(send(&world.fleet.member(0).client, "k", hello()).await.header("idempotent-replayed"), Some("true"));
    assert_eq!((world.upstream.calls(), world.spent().await), (1, PRICE));
}

/// It may have sent, as far as anybody can see; when it wakes its bytes do not leave, and it says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_after_sending_was_written_its_bytes_do_not_leave() {
    let mut world = World::at("sending", [sent(1), sent(2)]).await;
    world.fleet.stop(0);
    assert_eq!(world.upstream.calls(), 0, "the reply that lets it send is still on its way");
    assert!(is_unknown(&world.afterwards().await));
    world.fleet.go_on(0);
    let woken = world.asked.response().await.unwrap();
    assert!(matches!(woken.json()["code"].as_str(), Some("upstream_failed" | "upstream_timeout")), "{woken:?}");
    assert_eq!(world.upstream.calls(), 0);
    assert_eq!(send(world.other(), "k", hello()).await.status, 201);
    assert_eq!((world.upstream.calls(), world.spent().await), (1, PRICE));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_after_the_bytes_its_answer_counts_when_it_wakes() {
    let mut world = World::at("sending", sent(7)).await;
    world.upstream.wait_for_calls(1).await;
    world.fleet.stop(0);
    let meanwhile = world.afterwards().await;
    assert!(is_unknown(&meanwhile) || meanwhile.header("idempotent-replayed") == Some("true"), "{meanwhile:?}");
    world.fleet.go_on(0);
    let woken = world.asked.response().await.unwrap();
    // What it was answered it has, unless it took longer than an attempt may.
    assert!(matches!(woken.status, 201 | 502 | 504), "{woken:?}");
    if woken.status == 201 {
        soon("a replay", async {
            while send(world.other(), "k", hello()).await.header("idempotent-replayed") != Some("true") {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    } else {
        assert!(is_unknown(&send(world.other(), "k", hello()).await));
    }
    assert_eq!((world.upstream.calls(), world.spent().await), (1, PRICE));
}

/// Settles the one write that is unknown, as soon as that may be.
async fn settle(world: &World, found: serde_json::Value) {
    let admin = &world.fleet.member(1).admin;
    let listed = admin.get("/v1/writes?state=unknown").await.json();
    let id = listed["writes"][0]["id"].as_str().unwrap_or_else(|| panic!("{listed}")).to_owned();
    let path = format!("/v1/writes/{id}/settle");
    soon("the settling", async {
        loop {
            let reply = admin.post(&path, found.clone()).await;
            if reply.status == 200 {
                return;
            }
            assert_eq!(reply.status, 409, "before lease and timeout are over: {reply:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(admin.get("/v1/writes?state=unknown").await.json()["writes"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i_01_twenty_at_once_over_two_instances_are_one_message() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(sent(7).gated()).await;
    let fleet = Fleet::start(2, &upstream, |_| sms("", "").redis(&redis.url())).await;
    let (replies, ()) = tokio::join!(fleet.ask((0..20).map(|_| raw_send("k"))), async {
        upstream.wait_for_calls(1).await;
        soon("all to have come", async {
            while fleet.metric("tollgate_store_seconds_count", "op=\"claim\"").await < 20 {
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        })
        .await;
        upstream.release(1);
    });
    let statuses: Vec<u16> = replies.iter().flatten().map(|reply| reply.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    let told = replies.iter().flatten().filter(|reply| reply.status == 409);
    let told: Vec<_> = told.map(|reply| reply.json()["code"].clone()).collect();
    assert_eq!(told, vec![json!("idempotency_in_progress"); 19], "{statuses:?}");
    let first = replies.iter().flatten().find(|reply| reply.status == 201).unwrap();
    for gate in &fleet.gates {
        let again = send(&gate.client, "k", hello()).await;
        assert_eq!((&again.body[..], again.header("idempotent-replayed")), (&first.body[..], Some("true")));
    }
    assert_eq!((upstream.calls(), fleet.spent().await), (1, PRICE));
}
