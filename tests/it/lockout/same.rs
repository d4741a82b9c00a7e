//! A locked caller's answer beside a stored "not found": the same to the letter, and the same work behind it.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use serde_json::json;

use super::{company, look_up, looks, missing};
use crate::support::client::Reply;
use crate::support::gate::Gate;
use crate::support::redis::RedisServer;
use crate::support::step::{Script, Step};
use crate::support::upstream::{FakeUpstream, Recorded};

/// How often each operation of the store was called.
async fn store_calls(gate: &Gate) -> BTreeMap<String, u64> {
    let metrics = gate.metrics().await;
    let lines = metrics.lines().filter_map(|line| line.strip_prefix("tollgate_store_seconds_count{op=\""));
    let counts = lines.filter_map(|line| line.split_once("\"} "));
    counts.map(|(op, count)| (op.to_owned(), count.parse().unwrap())).collect()
}

/// What `asks` add to that, but for what goes on by itself.
async fn added(gate: &Gate, asks: impl Future<Output = ()>) -> BTreeMap<String, u64> {
    let before = store_calls(gate).await;
    asks.await;
    let after = store_calls(gate).await.into_iter();
    let added = after.map(|(op, count)| (op.clone(), count - before.get(&op).copied().unwrap_or_default()));
    added.filter(|(op, count)| *count > 0 && op != "credit").collect()
}

/// Everything but the id, the time of day and how much of the limit is left, whose own shape stays.
fn seen(reply: &Reply) -> (u16, Vec<(String, String)>, String) {
    let (status, mut headers, body) = looks(reply);
    for (name, value) in &mut headers {
        if name.starts_with("ratelimit") {
            *value = value.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        }
    }
    (status, headers, body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_every_store_locked_and_stored_are_alike_and_are_the_same_work() {
    let redis = RedisServer::start().await;
    let redis = format!("url = \"{}\"", redis.url());
    for store in ["url = \"memory:\"", "url = \"sqlite:{dir}/t.db\"", redis.as_str()] {
        let upstream = FakeUpstream::start(Script::by(|_| missing().header("content-language", "en"))).await;
        let route = "limits = { caller = { burst = 900, rate = \"900/m\" } }";
        let gate = company("", route).store(store).start(&upstream).await;
        super::lock(&gate, 10_000_000).await;
        let other = gate.other();
        let stored = look_up(&other, 10_000_000).await;
        for number in ["10000000", "10000099", "SC000001"] {
            assert_eq!(seen(&look_up(&gate.client, number).await), seen(&stored), "{store}: {number}");
        }
        for hidden in ["cache-status", "age", "retry-after", "proxy-status"] {
            assert!(stored.header(hidden).is_none(), "{hidden}");
        }
        assert!(stored.header("ratelimit").is_some() && stored.header("content-language") == Some("en"), "{stored:?}");
        let of_stored = added(&gate, async {
            for _ in 0..3 {
                assert_eq!(look_up(&other, 10_000_000).await.status, 404);
            }
        });
        let of_stored = of_stored.await;
        let of_locked = added(&gate, async {
            for number in 20_000_000..20_000_003 {
                assert_eq!(look_up(&gate.client, number).await.status, 404);
            }
        });
        assert_eq!(of_locked.await, of_stored, "{store}");
        assert_eq!((of_stored["guess"], of_stored["settle_guess"]), (3, 3), "{store}");
        assert_eq!(upstream.calls(), 5);
    }
}

/// Haste tells nothing either, and leaves nothing. How many are slowed down is a matter of haste (see the store's own tests).
#[tokio::test]
async fn many_asks_of_a_locked_caller_at_once_leave_nothing_behind() {
    let upstream = FakeUpstream::start(Script::by(|_| missing())).await;
    let gate = company("", "").store("url = \"sqlite:{dir}/t.db\"").start(&upstream).await;
    super::lock(&gate, 10_000_000).await;
    let before = gate.admin.get("/v1/lockouts/company/web").await.json();
    let replies = join_all((0..40).map(|nth| look_up(&gate.client, 20_000_000 + nth))).await;
    assert!(replies.iter().all(|reply| reply.status == 404 || reply.code() == "slow_down"), "{replies:?}");
    assert_eq!(gate.admin.get("/v1/lockouts/company/web").await.json(), before);
    assert_eq!((look_up(&gate.client, 20_000_000).await.status, upstream.calls()), (404, 5));
}

/// A provider that repeats what it was asked.
fn echo(asked: &Recorded) -> Step {
    let number = asked.target.rsplit('/').next().unwrap();
    Step::ok(json!({ "error": format!("no company {number}"), "links": { "self": asked.target } })).status(404)
}

#[tokio::test]
async fn where_the_provider_repeats_the_question_a_locked_caller_reads_its_own() {
    let upstream = FakeUpstream::start(Script::by(echo)).await;
    let gate = company("", "").store("url = \"sqlite:{dir}/t.db\"").start(&upstream).await;
    super::lock(&gate, 10_000_000).await;
    let stored = seen(&look_up(&gate.other(), 10_000_000).await);
    assert!(stored.2.contains("no company 10000000"), "{stored:?}");
    assert_eq!(seen(&look_up(&gate.client, 10_000_000).await), stored);
    let mine = seen(&look_up(&gate.client, "SC000001").await);
    assert_eq!(mine.2, stored.2.replace("10000000", "SC000001"));
    // Nobody's question is in the file, and the next process fills its blanks as well.
    let clock = gate.clock.clone();
    let gate = Gate::from(gate.stop().await, clock).await;
    assert_eq!(seen(&look_up(&gate.client, "SC000001").await), mine);
    assert_eq!(upstream.calls(), 5);
}

/// Whoever asks for a word of the answer makes no blank of it for the others.
#[tokio::test]
async fn one_caller_alone_does_not_change_the_looks() {
    let upstream = FakeUpstream::start(Script::by(|_| {
        Step::ok(json!({ "errors": [{ "type": "ch:service", "error": "NOTFOUND" }] })).status(404)
    }))
    .await;
    let gate = company("", "").start(&upstream).await;
    super::lock(&gate, 10_000_000).await;
    assert_eq!(look_up(&gate.other(), "NOTFOUND").await.status, 404);
    let stored = seen(&look_up(&gate.other(), 10_000_000).await);
    assert_eq!(seen(&look_up(&gate.client, 10_000_001).await), stored);
}
