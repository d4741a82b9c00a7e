//! The store: what a request asks of it, what happens when it fails, and what outlives a process.

use std::time::Duration;

use serde_json::json;

use crate::support::gate::{Gate, Setup, opencage, quote};
use crate::support::serve::{command, under};
use crate::support::soon;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const QUOTE: &str = "/v1/quote?from=Delhi&to=Jaipur";
const SQLITE: &str = "url = \"sqlite:{dir}/tollgate.db\"";

fn fare(meters: u64) -> Step {
    Step::ok(json!({ "routes": [{ "distanceMeters": meters, "duration": "60s" }] }))
}

/// A miss: a look, a look again with the lease, money set aside and settled, the answer kept.
const MISS: [(&str, u64); 5] = [("answer", 1), ("enter", 1), ("reserve", 1), ("settle", 1), ("land", 1)];

/// Store calls so far, by operation.
async fn calls(gate: &Gate) -> Vec<(&'static str, u64)> {
    gate.settled().await;
    let mut calls = Vec::new();
    for op in ["answer", "enter", "reserve", "settle", "land", "keep", "take", "pause", "guess", "settle_guess", "forget"] {
        let count = gate.metric("tollgate_store_seconds_count", &format!("op=\"{op}\"")).await;
        calls.extend((count > 0).then_some((op, count)));
    }
    calls
}

/// The numbers of `docs/ARCHITECTURE.md`.
#[tokio::test]
async fn a_miss_costs_five_store_calls_and_a_hit_from_memory_none() {
    for store in ["url = \"memory:\"", SQLITE] {
        let upstream = FakeUpstream::start(fare(1)).await;
        let limits = "limits = { caller = { burst = 100, rate = \"1/s\" }, route = { burst = 100, rate = \"1/s\" } }";
        let route = format!("{limits}\ncache = {{ found = \"60s\", stale_while_revalidate = \"60s\" }}");
        let gate = quote("quota = { burst = 9, rate = \"1/s\" }", &route).store(store).start(&upstream).await;
        gate.get(QUOTE).await;
        assert_eq!(calls(&gate).await, MISS, "a miss: look, look again in the flight, keep");
        for _ in 0..5 {
            assert!(gate.get(QUOTE).await.header("cache-status").unwrap().contains("hit"));
        }
        assert_eq!(calls(&gate).await, MISS, "hits from memory");
        gate.get("/v1/quote?from=&to=x").await;
        gate.stranger().get(QUOTE).await;
        assert_eq!(calls(&gate).await, MISS, "refusals");
        // Stale: the hit costs nothing, its refresh looks nowhere else than in memory, and keeps.
        gate.advance(60);
        gate.get(QUOTE).await;
        soon("the refresh", async {
            while calls(&gate).await != [("answer", 1), ("enter", 1), ("reserve", 2), ("settle", 2), ("land", 1), ("keep", 1)] {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
    }
}

/// The second look is what keeps a question from being paid twice: no wish of a caller's does away with it.
#[tokio::test]
async fn a_miss_looks_twice_whatever_the_caller_wishes() {
    let upstream = FakeUpstream::start(fare(1)).await;
    let gate = quote("", "cache = { found = \"60s\" }\nrefresh = { burst = 1, rate = \"1/h\" }").start(&upstream).await;
    for (n, wish) in ["no-cache", "max-age=0", "max-age=60"].into_iter().enumerate() {
        let client = gate.client.clone().with("cache-control", wish);
        client.get(&format!("/v1/quote?from=Delhi&to=Town{n}")).await;
        let n = n as u64 + 1;
        assert_eq!(calls(&gate).await, [("answer", n), ("enter", n), ("reserve", n), ("settle", n), ("land", n)], "{wish}");
    }
    // A refresh that was granted is not answered with what it is to replace.
    gate.client.clone().with("cache-control", "no-cache").get("/v1/quote?from=Delhi&to=Town0").await;
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn joiners_cost_one_look_each() {
    let upstream = FakeUpstream::start(fare(1).gated()).await;
    let gate = quote("", "").start(&upstream).await;
    let asks = futures_util::future::join_all((0..5).map(|_| gate.get(QUOTE)));
    let (replies, ()) = tokio::join!(asks, async {
        while calls(&gate).await.first() != Some(&("answer", 5)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        upstream.release(1);
    });
    assert!(replies.iter().all(|reply| reply.status == 200));
    assert_eq!(calls(&gate).await, [("answer", 5), ("enter", 1), ("reserve", 1), ("settle", 1), ("land", 1)]);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

/// A second connection that lets nobody else write.
fn writers_lock(gate: &Gate) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(gate.dir.path().join("tollgate.db")).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

#[tokio::test]
async fn c_07_a_paid_answer_survives_a_store_that_will_not_write() {
    let upstream = FakeUpstream::start(fare(1)).await;
    let gate = quote("", "").store(&format!("{SQLITE}\ntimeout = \"100ms\"")).start(&upstream).await;
    let lock = writers_lock(&gate);
    let asks = futures_util::future::join_all((0..10).map(|_| gate.get(QUOTE)));
    for reply in asks.await {
        assert_eq!((reply.status, &reply.json()["distance_meters"]), (200, &json!(1)), "paid for, so it is given");
    }
    assert!(gate.metric("tollgate_store_errors_total", "stage=\"land\"").await >= 1, "the failure is counted");
    assert!(gate.get(QUOTE).await.header("cache-status").unwrap().contains("hit"), "this process still knows it");
    assert_eq!(gate.admin.get("/readyz").await.status, 200);
    drop(lock);
    let other = gate.get("/v1/quote?from=Delhi&to=Agra").await;
    assert_eq!(other.header("cache-status"), Some("tollgate; fwd=miss; stored"));
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

/// The provider took nearly all of the flight's time, and the store takes more than what is left.
#[tokio::test]
async fn c_07_a_paid_answer_is_not_lost_to_the_flights_deadline() {
    let upstream = FakeUpstream::start(fare(1).delay(Duration::from_millis(700))).await;
    let provider = "timeout = \"1s\"\nflight = \"1s\"";
    let gate = quote(provider, "").store(&format!("{SQLITE}\ntimeout = \"1s\"")).start(&upstream).await;
    let lock = writers_lock(&gate);
    let reply = gate.get(QUOTE).await;
    assert_eq!((reply.status, &reply.json()["distance_meters"]), (200, &json!(1)), "{reply:?}");
    drop(lock);
    assert!(gate.get(QUOTE).await.header("cache-status").unwrap().contains("hit"));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn c_07_a_full_disk_costs_no_answer() {
    let large = Step::ok(json!({ "routes": [{ "distanceMeters": 1 }], "pad": "x".repeat(600_000) }));
    let upstream = FakeUpstream::start([large, fare(2)]).await;
    let dir = tempfile::tempdir().unwrap();
    let setup = quote("", "").store(SQLITE);
    // No file may grow beyond 400 KiB.
    let served = setup.serve_as(dir.path(), &upstream.url(), |dir| under("trap '' XFSZ; ulimit -f 800", dir)).await;
    let reply = served.client.get(QUOTE).await;
    assert_eq!((reply.status, &reply.json()["distance_meters"]), (200, &json!(1)));
    assert_eq!(served.metric("tollgate_store_errors_total", "stage=\"land\"").await, 1);
    assert!(served.client.get(QUOTE).await.header("cache-status").unwrap().contains("hit"));
    assert_eq!(served.client.get("/v1/quote?from=Delhi&to=Agra").await.status, 200);
    assert_eq!((upstream.calls(), served.spent().await), (2, 10_000));
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_passed_or_refuses_as_the_route_says() {
    for (policy, statuses, paid) in [("pass", [200, 200], 1), ("refuse", [503, 503], 0)] {
        let upstream = FakeUpstream::start(fare(1)).await;
        let route = format!("cache = {{ found = \"30d\" }}\non_store_error = {{ cache = \"{policy}\" }}");
        let gate = quote("", &route).store(SQLITE).start(&upstream).await;
        rusqlite::Connection::open(gate.dir.path().join("tollgate.db")).unwrap().execute_batch("DROP TABLE body").unwrap();
        for status in statuses {
            let reply = gate.get(QUOTE).await;
            assert_eq!(reply.status, status, "{policy}: {reply:?}");
            assert_eq!(reply.header("retry-after").is_some(), status == 503);
        }
        assert_eq!((upstream.calls(), gate.spent().await), (paid, paid as u64 * 5_000));
    }
}

#[tokio::test]
async fn n_06_answers_outlive_a_restart_and_a_new_provider_key() {
    let upstream = FakeUpstream::start(fare(1)).await;
    let gate = quote("", "").store(SQLITE).start(&upstream).await;
    gate.get(QUOTE).await;
    gate.advance(10);
    let clock = gate.clock.clone();
    let dir = gate.stop().await;
    std::fs::write(dir.path().join("secret"), "a-rotated-key").unwrap();
    let gate = Gate::from(dir, clock).await;
    let hit = gate.get("/v1/quote?from=jaipur&to=DELHI").await;
    assert_eq!((&hit.json()["distance_meters"], hit.header("age")), (&json!(1), Some("10")));
    assert_eq!(calls(&gate).await, [("answer", 1)], "once from the store, then from memory");
    gate.get(QUOTE).await;
    assert_eq!(calls(&gate).await, [("answer", 1)]);
    // No key of a provider or a caller, and no word of a question, stands in the file.
    let path = gate.dir.path().join("tollgate.db");
    gate.get("/v1/quote?from=Unmistakable&to=Place").await;
    let dir = gate.stop().await;
    let file = std::fs::read(&path).unwrap();
    for text in ["s3cret/provider+key", "a-rotated-key", "caller-key", "nmistakable", "unmistakable"] {
        assert!(memchr::memmem::find(&file, text.as_bytes()).is_none(), "{text}");
    }
    drop(dir);
    assert_eq!(upstream.calls(), 2);
}

#[tokio::test]
async fn an_answer_from_the_future_is_expired_and_replaced() {
    let upstream = FakeUpstream::start([fare(1), fare(2), fare(3).status(503)]).await;
    let route = "cache = { found = \"1h\", stale_if_error = \"1h\", stale_while_revalidate = \"1h\" }";
    let gate = quote("", route).store(SQLITE).start(&upstream).await;
    gate.get(QUOTE).await;
    let dir = gate.stop().await;
    // The clock was set back by ten minutes.
    let clock = tollgate::clock::Clock::manual(tollgate::clock::Timestamp(1_796_040_000_000_000 - 600_000_000));
    let gate = Gate::from(dir, clock).await;
    let cached = gate.client.clone().with("cache-control", "only-if-cached");
    assert_eq!(cached.get(QUOTE).await.status, 504);
    assert_eq!(gate.get(QUOTE).await.json()["distance_meters"], 2);
    assert_eq!(gate.get(QUOTE).await.header("age"), Some("0"));
    gate.advance(1);
    assert_eq!(gate.get(QUOTE).await.header("age"), Some("1"));
    assert_eq!(gate.spent().await, 5_000, "of this process");
    assert_eq!(upstream.calls(), 2);
}

#[tokio::test]
async fn answers_paid_for_before_a_kill_are_hits_after_it() {
    let upstream = FakeUpstream::start(fare(7)).await;
    let dir = tempfile::tempdir().unwrap();
    let setup: Setup = quote("", "").store(SQLITE);
    let served = setup.serve(dir.path(), &upstream).await;
    let ask = |n: usize| format!("/v1/quote?from=Delhi&to=Town{n}");
    let asked = futures_util::future::join_all((0..20).map(|n| {
        let (client, path) = (served.client.clone(), ask(n));
        async move { client.get(&path).await.status }
    }));
    assert_eq!(asked.await, vec![200; 20]);
    served.signal("KILL");
    served.ended().await;
    let served = setup.serve(dir.path(), &upstream).await;
    for n in 0..20 {
        let reply = served.client.get(&ask(n)).await;
        assert!(reply.header("cache-status").unwrap().starts_with("tollgate; hit"), "{reply:?}");
    }
    assert_eq!((upstream.calls(), served.spent().await), (20, 0));
}

#[tokio::test]
async fn a_second_process_on_the_same_file_is_refused_with_a_reason() {
    let upstream = FakeUpstream::start(Step::hang()).await;
    let dir = tempfile::tempdir().unwrap();
    let served = opencage("", "").store(SQLITE).serve(dir.path(), &upstream).await;
    let second = command(dir.path());
    let output =
        soon("the second process to give up", tokio::task::spawn_blocking(|| { second }.output())).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("tollgate.db is in use by another tollgate"), "{said}");
    assert_eq!(served.admin.get("/readyz").await.text(), "ready\n");
    assert_eq!((upstream.calls(), served.spent().await), (0, 0));
}

#[tokio::test]
async fn a_look_up_route_counts_its_guesses_in_the_store() {
    let upstream = FakeUpstream::start(fare(1)).await;
    let route = "cache = { found = \"60s\" }\nlockout = { misses = 5, window = \"1h\", first = \"60s\", max = \"24h\" }";
    let gate = quote("", route).start(&upstream).await;
    gate.get(QUOTE).await;
    assert_eq!(
        calls(&gate).await,
        [("answer", 1), ("enter", 1), ("reserve", 1), ("settle", 1), ("land", 1), ("guess", 1), ("settle_guess", 1)]
    );
    gate.get(QUOTE).await;
    assert_eq!(
        calls(&gate).await,
        [("answer", 1), ("enter", 1), ("reserve", 1), ("settle", 1), ("land", 1), ("guess", 2), ("settle_guess", 2)]
    );
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}
