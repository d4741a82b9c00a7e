//! Lockout: look-up routes on which somebody could enumerate.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tollgate::clock::Clock;

use crate::support::client::{Client, Reply};
use crate::support::gate::{Gate, KEY, Setup};
use crate::support::raw::Raw;
use crate::support::soon;
use crate::support::step::{Script, Step};
use crate::support::upstream::{FakeUpstream, Recorded};

mod same;
mod timing;

/// Companies House's look-up, at a price, five misses an hour; `rule` and `route` are more of each.
fn company(rule: &str, route: &str) -> Setup {
    Setup::new(format!(
        "[providers.ch]\npreset = \"companies-house\"\nbase_url = \"{{upstream}}\"\nkey = \"{{secret}}\"\nprice = \"0.005 USD\"\n\
         retry = {{ attempts = 1 }}\n[routes.company]\nprovider = \"ch\"\noperation = \"company\"\nbudget = \"none\"\n\
         lockout = {{ misses = 5, window = \"1h\", first = \"60s\", max = \"4m\"{rule} }}\n{route}\n"
    ))
}

fn missing() -> Step {
    Step::ok(json!({ "errors": [{ "type": "ch:service", "error": "company-profile-not-found" }] })).status(404)
}

fn profile() -> Step {
    Step::ok(json!({ "company_name": "ACME LTD" }))
}

/// Companies whose number begins with a letter are there.
fn register(asked: &Recorded) -> Step {
    if asked.target.starts_with("/company/SC") { profile() } else { missing() }
}

async fn gate(rule: &str) -> (FakeUpstream, Gate) {
    let upstream = FakeUpstream::start(Script::by(register)).await;
    let gate = company(rule, "").start(&upstream).await;
    (upstream, gate)
}

async fn look_up(client: &Client, number: impl std::fmt::Display) -> Reply {
    client.get(&format!("/company/{number}")).await
}

/// Five misses, from `first` on.
async fn lock(gate: &Gate, first: u32) {
    for number in first..first + 5 {
        assert_eq!(look_up(&gate.client, number).await.status, 404);
    }
}

/// Everything a caller sees but the id and the time of day.
fn looks(reply: &Reply) -> (u16, Vec<(String, String)>, String) {
    let mut headers: Vec<(String, String)> = reply
        .headers
        .iter()
        .filter(|(name, _)| !["x-request-id", "date"].contains(&name.as_str()))
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    headers.sort();
    (reply.status, headers, reply.text())
}

#[tokio::test]
async fn five_misses_lock_and_a_locked_caller_cannot_tell() {
    let (upstream, gate) = gate("").await;
    let stored = {
        look_up(&gate.client, 10_000_000).await;
        look_up(&gate.client, 10_000_000).await
    };
    lock(&gate, 10_000_001).await;
    let calls = upstream.calls();
    for number in ["10000000", "10000099", "SC000001", "SC000002"] {
        let locked = look_up(&gate.client, number).await;
        assert_eq!(looks(&locked), looks(&stored), "{number}");
        assert!(
            locked.header("cache-status").is_none() && locked.header("age").is_none() && locked.header("retry-after").is_none()
        );
    }
    assert_eq!(look_up(&gate.other(), "SC000001").await.status, 200, "nobody else is locked");
    assert_eq!(gate.metric("tollgate_saved_micros_total", "cause=\"locked\"").await, 5_000 * (3 + 2), "one is stored");
    assert_eq!((upstream.calls(), gate.spent().await), (calls + 1, (calls as u64 + 1) * 5_000));
}

#[tokio::test]
async fn locks_end_on_time_double_up_to_the_maximum_and_attempts_extend_nothing() {
    let (upstream, gate) = gate("").await;
    let mut first = 20_000_000;
    for seconds in [60, 120, 240, 240] {
        lock(&gate, first).await;
        first += 10;
        for _ in 0..4 {
            gate.advance(seconds / 4 - 1);
            assert_eq!(look_up(&gate.client, "SC000001").await.status, 404, "{seconds}");
        }
        gate.advance(3);
        assert_eq!(look_up(&gate.client, "SC000001").await.status, 404, "{seconds}: a second before");
        gate.advance(1);
        assert_eq!(look_up(&gate.client, "SC000001").await.status, 200, "{seconds}: on time");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (21, 105_000));
}

#[tokio::test]
async fn the_window_rolls_and_a_success_clears_nothing() {
    let (upstream, gate) = gate("").await;
    for number in 30_000_000..30_000_004 {
        assert_eq!(look_up(&gate.client, number).await.status, 404);
        assert_eq!(look_up(&gate.client, "SC000001").await.status, 200);
        gate.advance(600);
    }
    assert_eq!(look_up(&gate.client, 30_000_004).await.status, 404);
    assert_eq!(look_up(&gate.client, "SC000001").await.status, 404, "five within the hour");
    gate.advance(60);
    assert_eq!(look_up(&gate.client, "SC000001").await.status, 200);
    // A lock uses up its misses; four more in a new window do not lock.
    gate.advance(3_600);
    for number in 30_000_010..30_000_014 {
        look_up(&gate.client, number).await;
    }
    assert_eq!(look_up(&gate.client, "SC000001").await.status, 200);
    assert_eq!((upstream.calls(), gate.spent().await), (10, 50_000));
}

#[tokio::test]
async fn x_03_of_100_parallel_guesses_five_are_paid_for() {
    let upstream = FakeUpstream::start(missing().gated()).await;
    let gate = company("", "").start(&upstream).await;
    let guesses: Vec<_> = (0..100)
        .map(|n| {
            let client = gate.client.clone();
            tokio::spawn(async move { look_up(&client, 40_000_000 + n).await })
        })
        .collect();
    upstream.wait_for_calls(5).await;
    let (mut held, mut missed) = (0, 0);
    upstream.release(100);
    for reply in join_all(guesses).await {
        let reply = reply.unwrap();
        match reply.status {
            429 => {
                assert_eq!((reply.code(), reply.header("retry-after")), ("slow_down".into(), Some("1")));
                held += 1;
            }
            404 => missed += 1,
            other => panic!("{other}: {reply:?}"),
        }
    }
    // Whoever came after the five had missed was locked, and looks like a miss.
    assert_eq!(held + missed, 100);
    assert_eq!(upstream.calls(), 5);
    // The right number now, and a hundred wrong ones: all look alike, and none is paid for.
    upstream.set_script(profile());
    let right = look_up(&gate.client, "SC000001").await;
    for n in 0..100 {
        assert_eq!(looks(&look_up(&gate.client, 41_000_000 + n).await), looks(&right));
    }
    assert_eq!((upstream.calls(), gate.spent().await), (5, 25_000));
}

#[tokio::test]
async fn hanging_up_does_not_make_guessing_free() {
    let upstream = FakeUpstream::start(missing().gated()).await;
    let gate = company("", "").start(&upstream).await;
    for n in 0..20 {
        let mut raw = Raw::connect(gate.addr).await;
        raw.send(format!("GET /company/{} HTTP/1.1\r\nHost: g\r\nX-Api-Key: {KEY}\r\n\r\n", 50_000_000 + n)).await;
        if n < 5 {
            upstream.wait_for_calls(n + 1).await;
        } else {
            assert_eq!(raw.response().await.unwrap().status, 429);
        }
    }
    upstream.release(100);
    locked(&gate, "web").await;
    assert_eq!((upstream.calls(), gate.spent().await), (5, 25_000));
}

#[tokio::test]
async fn impatience_does_not_make_guessing_free() {
    let upstream = FakeUpstream::start(missing().gated()).await;
    let gate = company("", "").start_with(&upstream, Clock::system()).await;
    let hasty = gate.client.clone().with("x-request-timeout", "1");
    let guesses = join_all((0..5).map(|n| look_up(&hasty, 60_000_000 + n))).await;
    assert!(guesses.iter().all(|reply| reply.code() == "upstream_timeout"), "{guesses:?}");
    let more = look_up(&hasty, 60_000_100).await;
    assert_eq!((more.status, more.code()), (429, "slow_down".into()), "the first five are still in flight");
    upstream.release(100);
    locked(&gate, "web").await;
    assert_eq!((upstream.calls(), gate.spent().await), (5, 25_000));
}

/// Waits until a caller is locked.
async fn locked(gate: &Gate, caller: &str) {
    soon("a lock", async {
        while gate.admin.get(&format!("/v1/lockouts/company/{caller}")).await.json()["locked_until"].is_null() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn who_wants_only_what_is_stored_pays_nothing_here_either() {
    let (upstream, gate) = gate("").await;
    let stored = gate.client.clone().with("cache-control", "only-if-cached");
    assert_eq!(look_up(&stored, "SC000001").await.code(), "not_cached");
    let head = gate.client.send(http::Method::HEAD, "/company/SC000001", "".into()).await;
    assert_eq!((head.status, head.code()), (502, "not_cached".into()));
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

#[tokio::test]
async fn trouble_is_no_miss() {
    let (upstream, gate) = gate("").await;
    for step in [Step::ok(json!({})).status(500), Step::cut(3), Step::ok(json!({})).status(429), Step::ok(json!({})).status(400)]
    {
        upstream.set_script(step);
        for n in 0..6 {
            look_up(&gate.client, 70_000_000 + n).await;
        }
    }
    gate.advance(30);
    upstream.set_script(profile());
    assert_eq!(look_up(&gate.client, "SC000001").await.status, 200);
    let state = gate.admin.get("/v1/lockouts/company/web").await.json();
    assert_eq!((&state["misses"], &state["in_flight"]), (&json!(0), &json!(0)), "{state}");
    assert!(gate.spent().await <= upstream.calls() as u64 * 5_000);
}

#[tokio::test]
async fn a_subject_is_counted_over_all_callers() {
    let (upstream, gate) = gate(", subject = \"number\"").await;
    // Stored or not, each look at the same number that is not there is a miss of it.
    for n in 0..5 {
        let client = if n % 2 == 0 { gate.client.clone() } else { gate.other() };
        assert_eq!(look_up(&client, if n < 3 { "8000-0000" } else { "80000000" }).await.status, 404);
    }
    // Three of one caller, two of the other: the number is locked for both, and no caller is.
    upstream.set_script(profile());
    gate.admin.post("/v1/answers/company/purge", json!({})).await;
    assert_eq!(look_up(&gate.client, "80000000").await.status, 404);
    assert_eq!(look_up(&gate.other(), "80000000").await.status, 404);
    assert_eq!(look_up(&gate.client, "SC000001").await.status, 200);
    gate.advance(60);
    assert_eq!(look_up(&gate.other(), "80000000").await.status, 200);
    assert_eq!((upstream.calls(), gate.spent().await), (3, 15_000));
}

#[tokio::test]
async fn who_only_says_the_name_of_a_key_locks_its_owner_out_of_nothing() {
    let upstream = FakeUpstream::start(Script::by(register)).await;
    let setup = company("", "").server("trusted_proxies = [\"127.0.0.1/32\"]");
    let gate = setup.callers("[callers.header]\nname = \"x-user-id\"").start(&upstream).await;
    let namesake = gate.stranger().with("x-user-id", "web");
    for number in 80_000_000..80_000_005 {
        assert_eq!(look_up(&namesake, number).await.status, 404);
    }
    assert_eq!(look_up(&namesake, "SC000001").await.status, 404, "it is locked");
    assert_eq!(look_up(&gate.client, "SC000001").await.status, 200);
    assert_eq!(gate.admin.get("/v1/lockouts/company/web").await.json()["locks"], 0);
    assert_eq!((upstream.calls(), gate.spent().await), (6, 30_000));
}

#[tokio::test]
async fn an_admin_sees_and_clears_a_lock() {
    let (upstream, gate) = gate("").await;
    lock(&gate, 90_000_000).await;
    let state = gate.admin.get("/v1/lockouts/company/web").await.json();
    // Seconds, as everywhere in the API.
    let until = gate.clock.now().seconds() + 60;
    assert!(state["locked_until"] == until && state["locks"] == 1, "{state}");
    assert_eq!(look_up(&gate.client, "SC000001").await.status, 404);
    let cleared = gate.admin.send(http::Method::DELETE, "/v1/lockouts/company/web", "".into()).await;
    assert_eq!(cleared.status, 204);
    assert_eq!(look_up(&gate.client, "SC000001").await.status, 200);
    for path in ["/v1/lockouts/nowhere/web", "/v1/lockouts/company/web/more"] {
        assert_eq!(gate.admin.get(path).await.status, 404, "{path}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (6, 30_000));
}

#[tokio::test]
async fn a_lock_survives_the_process_and_a_reload() {
    let upstream = FakeUpstream::start(Script::by(register)).await;
    let gate = company("", "").store("url = \"sqlite:{dir}/t.db\"").start(&upstream).await;
    lock(&gate, 11_000_000).await;
    let stored = look_up(&gate.other(), 11_000_000).await;
    assert_eq!(gate.admin.post("/v1/reload", json!({})).await.status, 200);
    assert_eq!(looks(&look_up(&gate.client, "SC000001").await), looks(&stored));
    let clock = gate.clock.clone();
    let gate = Gate::from(gate.stop().await, clock).await;
    assert_eq!(looks(&look_up(&gate.client, "SC000001").await), looks(&stored), "to the letter");
    gate.advance(60);
    assert_eq!(look_up(&gate.client, "SC000001").await.status, 200);
    assert_eq!((upstream.calls(), gate.spent().await), (6, 5_000));
}

#[tokio::test]
async fn without_a_store_guesses_are_refused_or_pass_as_the_route_says() {
    for (policy, status, paid) in [("refuse", 502, 0), ("pass", 404, 7)] {
        let upstream = FakeUpstream::start(Script::by(register)).await;
        let route = format!("on_store_error = {{ lockout = \"{policy}\" }}");
        let gate = company("", &route).store("url = \"sqlite:{dir}/t.db\"").start(&upstream).await;
        let database = rusqlite::Connection::open(gate.dir.path().join("t.db")).unwrap();
        database.execute_batch("DROP TABLE lockout").unwrap();
        for n in 0..7 {
            let reply = look_up(&gate.client, 12_000_000 + n).await;
            assert_eq!(reply.status, status, "{policy}: {reply:?}");
            if policy == "refuse" {
                assert_eq!((reply.code(), reply.header("retry-after")), ("store_unavailable".into(), Some("1")));
            }
        }
        assert_eq!((upstream.calls(), gate.spent().await), (paid, paid as u64 * 5_000));
    }
}
