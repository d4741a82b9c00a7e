//! One call for a question, whichever instance it comes to.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use tokio::time::Instant;

use crate::support::fleet::Fleet;
use crate::support::fleet::volley::get;
use crate::support::gate::{encode, fare, opencage, quote};
use crate::support::redis::RedisServer;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const QUOTE: &str = "/v1/quote?from=Delhi&to=Jaipur";

/// The machine may be busy with other tests: a store that is only slow must not be taken for one that is away.
fn patient(redis: &RedisServer) -> String {
    format!("url = \"{}\"\ntimeout = \"5s\"\npatience = \"9s\"", redis.url())
}

fn slow(millis: u64) -> Step {
    Step::ok(fare()).delay(Duration::from_millis(millis))
}

/// Milliseconds from the slowest of the first to that of 19 in 20.
fn p95(mut took: Vec<Duration>) -> Duration {
    took.sort_unstable();
    took[took.len() * 95 / 100]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alone_with_the_clock_150_at_once_over_three_instances_cost_one_call() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(slow(500)).await;
    let fleet = Fleet::start(3, &upstream, |_| quote("", "").store(&patient(&redis))).await;
    // Connections are open and the code is warm: what is measured is the waiting.
    fleet.ask((0..150).map(|_| get("/v1/quote?from=Agra&to=Goa"))).await;
    let began = Instant::now();
    let asks = (0..150).map(|nth| {
        let client = fleet[nth % 3].client.clone();
        async move { (client.get(QUOTE).await, began.elapsed()) }
    });
    let replies = futures_util::future::join_all(asks).await;
    for (reply, _) in &replies {
        assert_eq!((reply.status, &reply.json()["distance_meters"]), (200, &json!(280_000)), "{reply:?}");
    }
    assert_eq!((upstream.calls(), fleet.spent().await), (2, 10_000));
    let slowest = p95(replies.into_iter().map(|(_, took)| took).collect());
    assert!(slowest < Duration::from_millis(600), "woken by push, not by polling: {slowest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_questions_in_any_spelling_cost_as_many_calls_as_are_distinct() {
    const PAIRS: u32 = 1_000;
    const ASKED: usize = 20_000;
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(slow(5)).await;
    let fleet = Fleet::start(3, &upstream, |_| quote("", "").store(&patient(&redis))).await;
    let mut random = StdRng::seed_from_u64(7);
    // Zipf: the nth pair is asked for a share of 1/n.
    let weights: Vec<f64> = (1..=PAIRS)
        .scan(0.0, |sum, n| {
            *sum += 1.0 / f64::from(n);
            Some(*sum)
        })
        .collect();
    let mut distinct = std::collections::BTreeSet::new();
    let questions: Vec<String> = (0..ASKED)
        .map(|_| {
            let at = random.random_range(0.0..weights[weights.len() - 1]);
            let pair = weights.partition_point(|sum| *sum < at).min(weights.len() - 1);
            distinct.insert(pair);
            spelled(pair, &mut random)
        })
        .collect();
    for batch in questions.chunks(150) {
        let replies = fleet.ask(batch.iter().map(|question| get(question))).await;
        assert!(replies.iter().all(|reply| reply.as_ref().is_some_and(|reply| reply.status == 200)));
    }
    assert_eq!(upstream.calls(), distinct.len(), "upstream calls / distinct questions = 1.000");
    assert_eq!(fleet.spent().await, 5_000 * distinct.len() as u64);
}

/// A pair of towns in some direction, case, padding and spelling.
fn spelled(pair: usize, random: &mut StdRng) -> String {
    let mut town = |which: &str| {
        let name = format!("{which} Chambéry {pair}");
        let name = if random.random() { name.to_uppercase() } else { name };
        let name = if random.random() { name.replace('É', "E\u{301}").replace('é', "e\u{301}") } else { name };
        let name = if random.random() { name.replace(' ', "\u{a0} ") } else { name };
        encode(&format!("{}{name}{}", ["", " "].choose(random).unwrap(), ["", "\u{200b}", "  "].choose(random).unwrap()))
    };
    let (a, b) = (town("Old"), town("New"));
    if random.random() { format!("/v1/quote?from={a}&to={b}") } else { format!("/v1/quote?to={a}&from={b}") }
}

/// By Google's terms nothing may be kept: who asks while a call is out shares it all the same, and who asks afterwards does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_be_kept_is_shared_in_flight_and_not_afterwards() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(slow(300)).await;
    let fleet = Fleet::start(3, &upstream, |_| quote("", "cache = { not_found = \"1h\" }").store(&patient(&redis))).await;
    for round in 1..=2 {
        let replies = fleet.ask((0..30).map(|_| get(QUOTE))).await;
        for reply in replies.iter().flatten() {
            assert_eq!((reply.status, &reply.json()["distance_meters"]), (200, &json!(280_000)), "{reply:?}");
        }
        assert_eq!((replies.len(), upstream.calls()), (30, round));
    }
    let kept = redis.keys().await.into_iter().filter(|key| key.contains(":answer:"));
    assert_eq!(kept.count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_03_all_instances_share_the_cause_of_one_flights_failure() {
    let redis = RedisServer::start().await;
    let failing = slow(100).status(503).header("retry-after", "7");
    let upstream = FakeUpstream::start(failing).await;
    let provider = "retry = { attempts = 2, base = \"50ms\", cap = \"1s\" }\nbreaker = { failures = 100 }";
    let fleet = Fleet::start(3, &upstream, |_| quote(provider, "").store(&patient(&redis))).await;
    let replies = fleet.ask((0..50).map(|_| get(QUOTE))).await;
    let said: std::collections::BTreeSet<(u16, String, Option<String>)> = replies
        .iter()
        .flatten()
        .map(|reply| (reply.status, reply.json()["code"].to_string(), reply.header("retry-after").map(Into::into)))
        .collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said.iter().all(|(status, code, _)| (*status, code.as_str()) == (502, "\"upstream_failed\"")), "{said:?}");
    assert_eq!((replies.len(), upstream.calls()), (50, 1), "a wait of 7 s is longer than the cap: one attempt, one flight");
    assert_eq!(fleet.spent().await, 5_000);
    // A failure is kept for nobody who comes later.
    upstream.set_script(Step::ok(fare()));
    assert_eq!(fleet[1].get(QUOTE).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_03_calls_are_the_attempts_of_one_flight() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(slow(50).status(503)).await;
    let provider = "retry = { attempts = 3, base = \"20ms\", cap = \"1s\" }\nbreaker = { failures = 100 }";
    let fleet = Fleet::start(2, &upstream, |_| quote(provider, "").store(&patient(&redis))).await;
    let replies = fleet.ask((0..50).map(|_| get(QUOTE))).await;
    assert!(replies.iter().flatten().all(|reply| reply.status == 502));
    assert_eq!((replies.len(), upstream.calls(), fleet.spent().await), (50, 3, 15_000));
}

/// An answer for one asker alone: the others fly side by side, on every instance, and so do those who come while the mark lasts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_answer_goes_to_its_asker_alone_whoever_waits_where() {
    let redis = RedisServer::start().await;
    let private = Step::ok(json!({ "results": [{ "confidence": 9, "geometry": { "lat": 1, "lng": 2 } }] }))
        .header("cache-control", "private")
        .delay(Duration::from_millis(100));
    let upstream = FakeUpstream::start(private).await;
    let fleet = Fleet::start(2, &upstream, |_| opencage("", "").store(&patient(&redis))).await;
    let ask = get("/geocode/v1/json?q=Paris");
    let replies = fleet.ask((0..6).map(|_| ask.clone())).await;
    assert!(replies.iter().flatten().all(|reply| reply.status == 200));
    assert_eq!((replies.len(), upstream.calls()), (6, 6));
    fleet.ask([ask.clone(), ask]).await;
    assert_eq!((upstream.calls(), fleet.spent().await), (8, 40_000));
}

/// F-06 on two instances.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_06_one_stale_entry_is_refreshed_once_over_two_instances() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let cache = "cache = { found = \"1s\", stale_while_revalidate = \"1h\" }";
    let fleet = Fleet::start(2, &upstream, |_| quote("", cache).store(&patient(&redis))).await;
    fleet[0].get(QUOTE).await;
    fleet[1].get(QUOTE).await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    upstream.set_script(slow(300));
    let replies = fleet.ask((0..60).map(|_| get(QUOTE))).await;
    for reply in replies.iter().flatten() {
        assert!(reply.header("cache-status").unwrap().contains("detail=stale"), "{reply:?}");
    }
    assert_eq!(replies.len(), 60);
    crate::support::soon("the refresh is kept, and known to both", async {
        while fleet[0].metric_of("tollgate_flights").await + fleet[1].metric_of("tollgate_flights").await > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!((upstream.calls(), fleet.spent().await), (2, 10_000));
    // Both have the new answer: what memory held of before is past.
    for gate in &fleet.gates {
        let age: u64 = gate.get(QUOTE).await.header("age").unwrap().parse().unwrap();
        assert!(age < 1, "{age}");
    }
}

/// A caller who may force a fresh answer gets one call for it, though others wait for the same elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forced_refresh_on_two_instances_is_one_call() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(slow(200)).await;
    let fleet =
        Fleet::start(2, &upstream, |_| quote("", "refresh = { burst = 5, rate = \"1/s\" }").store(&patient(&redis))).await;
    fleet[0].get(QUOTE).await;
    let force = |nth: usize| fleet[nth].client.clone().with("cache-control", "no-cache");
    let (one, two) = (force(0), force(1));
    let (one, two) = tokio::join!(one.get(QUOTE), two.get(QUOTE));
    assert_eq!((one.status, two.status), (200, 200));
    assert_eq!((upstream.calls(), fleet.spent().await), (2, 10_000));
}
