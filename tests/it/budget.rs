//! Caps that hold: at once, over retries, over days of 25 hours, over a crash.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tollgate::clock::{Clock, Timestamp};

use crate::support::fleet::volley::{get, volley};
use crate::support::gate::{Gate, Setup, fare, opencage, quote};
use crate::support::serve::command;
use crate::support::soon;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const QUOTE: &str = "/v1/quote?from=Delhi&to=Jaipur";

/// The quote route under a budget, at ten cents a call.
fn capped(budget: &str, provider: &str, route: &str) -> Setup {
    let mut setup = quote(provider, route);
    setup.body = setup.body.replace("budget = \"none\"", &format!("budget = {{ {budget} }}"));
    setup.body = setup.body.replace("price = \"0.005 USD\"", "price = \"0.10 USD\"");
    setup
}

fn town(n: usize) -> String {
    format!("/v1/quote?from=Delhi&to=Town{n}")
}

fn ok() -> Step {
    Step::ok(fare())
}

/// How many of the replies came to what: paid, refused for the budget.
async fn ask_all(gate: &Gate, towns: std::ops::Range<usize>) -> (usize, usize) {
    let paths: Vec<String> = towns.map(town).collect();
    let replies = join_all(paths.iter().map(|path| gate.get(path))).await;
    let refused = replies.iter().filter(|reply| reply.status != 200 && reply.code() == "budget_exhausted").count();
    (replies.iter().filter(|reply| reply.status == 200).count(), refused)
}

#[tokio::test]
async fn s_01_a_cap_is_hard_however_many_ask_at_once() {
    for store in ["url = \"memory:\"", "url = \"sqlite:{dir}/tollgate.db\""] {
        let upstream = FakeUpstream::start(ok().delay(Duration::from_millis(100))).await;
        let gate = capped("day = \"0.25 USD\"", "", "").store(store).start(&upstream).await;
        assert_eq!(ask_all(&gate, 0..20).await, (2, 18));
        assert_eq!((upstream.calls(), gate.spent().await), (2, 200_000));
        let refused = gate.get(&town(99)).await;
        assert_eq!((refused.status, refused.code().as_str()), (503, "budget_exhausted"));
        // Noon, UTC: until midnight.
        assert_eq!(refused.header("retry-after"), Some("43200"));
        assert_eq!(gate.metric("tollgate_budget_remaining_micros", "scope=\"route:quote\",window=\"day\"").await, 50_000);
    }
}

#[tokio::test]
async fn s_03_three_times_ten_cents_are_thirty() {
    let upstream = FakeUpstream::start(ok()).await;
    let gate = capped("day = \"0.30 USD\"", "", "").start(&upstream).await;
    for n in 0..3 {
        assert_eq!(gate.get(&town(n)).await.status, 200);
    }
    assert_eq!(gate.get(&town(3)).await.code(), "budget_exhausted");
    assert_eq!((upstream.calls(), gate.spent().await), (3, 300_000));
}

/// Hits, and whoever joins a flight, cost nothing and need no budget.
#[tokio::test]
async fn what_is_not_paid_for_passes_though_the_budget_is_used_up() {
    let upstream = FakeUpstream::start(ok().delay(Duration::from_millis(50))).await;
    let gate = capped("day = \"0.10 USD\"", "", "").start(&upstream).await;
    let replies = join_all((0..30).map(|_| gate.get(QUOTE))).await;
    assert!(replies.iter().all(|reply| reply.status == 200));
    assert_eq!(gate.get(&town(1)).await.code(), "budget_exhausted");
    assert!(gate.get(QUOTE).await.header("cache-status").unwrap().contains("hit"));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 100_000));
}

#[tokio::test]
async fn without_budget_what_is_stale_stands_in() {
    let upstream = FakeUpstream::start(ok()).await;
    let cache = "cache = { found = \"60s\", stale_if_error = \"1h\" }";
    let gate = capped("day = \"0.10 USD\"", "", cache).start(&upstream).await;
    gate.get(QUOTE).await;
    gate.advance(100);
    let stale = gate.get(QUOTE).await;
    assert!(stale.status == 200 && stale.header("cache-status").unwrap().contains("detail=stale"), "{stale:?}");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 100_000));
}

/// A caller's cap is that caller's alone, whoever shares its flight.
#[tokio::test]
async fn a_callers_budget_refuses_that_caller_alone() {
    let upstream = FakeUpstream::start([ok(), ok().delay(Duration::from_millis(50))]).await;
    let gate = capped("day = \"5 USD\", caller_day = \"0.10 USD\"", "", "").start(&upstream).await;
    assert_eq!(gate.get(&town(0)).await.status, 200);
    let other = gate.other();
    // All at once for one question: whoever may pay does, and those who may not are told so.
    let path = town(1);
    let web = join_all((0..10).map(|_| gate.get(&path)));
    let others = join_all((0..10).map(|_| other.get(&path)));
    let (web, others) = tokio::join!(web, others);
    assert!(others.iter().all(|reply| reply.status == 200), "{others:?}");
    for reply in &web {
        assert!(reply.status == 200 || (reply.status == 429 && reply.code() == "budget_exhausted"), "{reply:?}");
    }
    let refused = gate.get(&town(2)).await;
    assert_eq!(
        (refused.status, refused.code().as_str(), refused.header("retry-after")),
        (429, "budget_exhausted", Some("43200"))
    );
    assert_eq!((upstream.calls(), gate.spent().await), (2, 200_000));
}

/// Each attempt is reserved by itself. What was not billed comes back; what nobody knows stays spent.
#[tokio::test]
async fn every_attempt_is_paid_for_by_itself() {
    let failing = ok().status(503);
    let upstream = FakeUpstream::start(failing.clone()).await;
    let retry = "retry = { attempts = 3, base = \"1ms\", cap = \"2ms\" }\nbreaker = { failures = 100 }";
    let gate = capped("day = \"0.25 USD\"", retry, "").start(&upstream).await;
    let reply = gate.get(QUOTE).await;
    assert_eq!((reply.status, reply.code().as_str()), (503, "budget_exhausted"), "the third attempt found no money");
    assert_eq!((upstream.calls(), gate.spent().await), (2, 200_000));

    let upstream = FakeUpstream::start(failing).await;
    let free = format!("{retry}\nbilled = [\"answered\"]");
    let gate = capped("day = \"0.10 USD\"", &free, "").start(&upstream).await;
    assert_eq!(gate.get(QUOTE).await.code(), "upstream_failed");
    upstream.set_script(ok());
    assert_eq!(gate.get(QUOTE).await.status, 200, "failures cost nothing here, so the money is there");
    assert_eq!((upstream.calls(), gate.spent().await), (4, 100_000));

    let upstream = FakeUpstream::start([Step::hang(), ok()]).await;
    let gate = capped("day = \"0.10 USD\"", "billed = [\"answered\"]\ntimeout = \"200ms\"", "").start(&upstream).await;
    assert_eq!(gate.get(QUOTE).await.code(), "upstream_timeout");
    assert_eq!(gate.get(QUOTE).await.code(), "budget_exhausted", "unknown stays spent");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 100_000));
}

/// All caps at once or none: a route's refusal takes nothing from the provider's.
#[tokio::test]
async fn a_refusal_of_one_cap_takes_nothing_from_the_others() {
    let upstream = FakeUpstream::start(ok()).await;
    let gate = capped("day = \"0.10 USD\"", "budget = { day = \"0.40 USD\" }", "").start(&upstream).await;
    assert_eq!(ask_all(&gate, 0..20).await, (1, 19));
    assert_eq!(gate.metric("tollgate_budget_remaining_micros", "scope=\"provider:google-routes\"").await, 300_000);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 100_000));
}

fn at(text: &str) -> Timestamp {
    Timestamp(u64::try_from(text.parse::<jiff::Timestamp>().unwrap().as_microsecond()).unwrap())
}

/// S-02: the day is the provider's, one of them of 25 hours.
#[tokio::test]
async fn s_02_the_day_is_the_providers() {
    let upstream = FakeUpstream::start(ok()).await;
    let budget = "day = \"0.30 USD\", month = \"100 USD\", zone = \"America/Los_Angeles\"";
    let begin = at("2026-11-01T06:59:59Z");
    let clock = Clock::manual(begin);
    let gate = capped(budget, "", "").start_with(&upstream, clock.clone()).await;
    let mut now = begin;
    let mut go_to = |text: &str| {
        let then = at(text);
        clock.advance(then.since(now));
        now = then;
    };
    assert_eq!(ask_all(&gate, 0..3).await, (3, 0));
    assert_eq!(ask_all(&gate, 3..4).await, (0, 1));
    go_to("2026-11-01T07:00:00Z");
    assert_eq!(ask_all(&gate, 4..5).await, (1, 0), "a new day");
    go_to("2026-11-02T07:59:59Z");
    assert_eq!(ask_all(&gate, 5..8).await, (2, 1), "the end of a day of 25 hours");
    let refused = gate.get(&town(8)).await;
    assert_eq!(refused.header("retry-after"), Some("1"));
    go_to("2026-11-02T08:00:00Z");
    assert_eq!(ask_all(&gate, 9..10).await, (1, 0));
    assert_eq!((upstream.calls(), gate.spent().await), (7, 700_000));
}

#[tokio::test]
async fn s_02_the_month_ends_at_the_providers_midnight() {
    let upstream = FakeUpstream::start(ok()).await;
    let clock = Clock::manual(at("2026-12-01T07:59:59Z"));
    let budget = "month = \"0.20 USD\", zone = \"America/Los_Angeles\"";
    let gate = capped(budget, "", "").start_with(&upstream, clock.clone()).await;
    assert_eq!(ask_all(&gate, 0..3).await, (2, 1));
    clock.advance(Duration::from_secs(1));
    assert_eq!(ask_all(&gate, 3..6).await, (2, 1));
    assert_eq!((upstream.calls(), gate.spent().await), (4, 400_000));
}

/// A call reserved in one day and settled in the next belongs to the first.
#[tokio::test]
async fn s_02_a_late_settlement_belongs_to_the_day_it_was_reserved_in() {
    let upstream = FakeUpstream::start([ok().gated(), ok()]).await;
    let clock = Clock::manual(at("2026-11-30T23:59:59Z"));
    let gate = capped("day = \"0.10 USD\"", "billed = [\"answered\"]", "").start_with(&upstream, clock.clone()).await;
    let path = town(0);
    let (reply, ()) = tokio::join!(gate.get(&path), async {
        upstream.wait_for_calls(1).await;
        clock.advance(Duration::from_secs(2));
        upstream.release(1);
    });
    assert_eq!(reply.status, 200);
    assert_eq!(ask_all(&gate, 1..3).await, (1, 1), "the new day has its own ten cents");
}

/// A killed gateway's call in flight may have been billed: it stays spent.
#[tokio::test]
async fn s_01_what_a_killed_gateway_had_in_flight_stays_spent() {
    let upstream = FakeUpstream::start([ok(), Step::hang(), ok()]).await;
    let dir = tempfile::tempdir().unwrap();
    let store = "url = \"sqlite:{dir}/tollgate.db\"";
    let setup = capped("day = \"0.30 USD\"", "", "").store(store);
    let served = setup.serve_as(dir.path(), &upstream.url(), command).await;
    assert_eq!(served.client.get(&town(0)).await.status, 200);
    let addr = served.addr;
    let hanging = tokio::spawn(async move { volley(&[addr], [get(&town(1))]).await });
    upstream.wait_for_calls(2).await;
    served.signal("KILL");
    assert_eq!(hanging.await.unwrap(), [None]);
    drop(served);
    let served = setup.serve_as(dir.path(), &upstream.url(), command).await;
    let mut statuses = Vec::new();
    for n in 2..5 {
        statuses.push(served.client.get(&town(n)).await.status);
    }
    assert_eq!((statuses, upstream.calls()), (vec![200, 503, 503], 3), "thirty cents: one billed, one unknown, one new");
}

/// On a native route a used-up budget is final: its SDKs must not hammer.
#[tokio::test]
async fn a_used_up_budget_wears_the_providers_shape() {
    let upstream =
        FakeUpstream::start(Step::ok(json!({ "results": [{ "confidence": 9, "geometry": { "lat": 1, "lng": 2 } }] }))).await;
    let mut setup = opencage("", "");
    setup.body = setup.body.replace("budget = \"none\"", "budget = { day = \"0.005 USD\" }");
    let gate = setup.start(&upstream).await;
    assert_eq!(gate.get("/geocode/v1/json?q=Paris").await.status, 200);
    let refused = gate.get("/geocode/v1/json?q=Rome").await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "budget_exhausted"), "{refused:?}");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

/// A price by prefix, and a cap on one call.
#[tokio::test]
async fn a_dear_prefix_is_refused_before_anything_is_sent() {
    let upstream = FakeUpstream::start(Step::ok(json!({ "ok": true, "price": "-0.0123", "unit": "USD" }))).await;
    let gate = Setup::new(
        "[providers.sms]\nbase_url = \"{upstream}\"\nkey = \"{secret}\"\nauth = { in = \"bearer\" }\nretry = { attempts = 1 }\ncost = \"$.price\"\n\
         price = { table = [{ prefix = \"+1\", price = \"0.01 USD\" }, { prefix = \"+1900\", price = \"2 USD\" }], otherwise = \"0.10 USD\" }\n\
         [routes.look]\nprovider = \"sms\"\nexpose = \"GET /look\"\nbudget = { day = \"1 USD\" }\nmax_price = \"0.05 USD\"\n\
         priced_by = { prefix = \"to\" }\n[routes.look.question]\nto = { in = \"query\", type = \"phone\", required = true }\n",
    )
    .start(&upstream)
    .await;
    for (to, status) in [("%2B12025550123", 200), ("%2B19005550123", 400), ("%2B4915112345678", 400)] {
        let reply = gate.get(&format!("/look?to={to}")).await;
        assert_eq!(reply.status, status, "{to}: {reply:?}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 12_300), "what the answer says it cost");
}

/// What is switched off while the store is asked for the money is not sent, and the money is given back.
#[tokio::test]
async fn off_is_heeded_though_it_came_while_the_money_was_set_aside() {
    let upstream = FakeUpstream::start(ok()).await;
    let store = "url = \"sqlite:{dir}/t.db\"\ntimeout = \"9s\"\npatience = \"9s\"";
    let gate = capped("day = \"1 USD\"", "", "").store(store).start(&upstream).await;
    let file = rusqlite::Connection::open(gate.dir.path().join("t.db")).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (client, admin) = (gate.client.clone(), gate.admin.clone());
    let asked = tokio::spawn(async move { client.get(QUOTE).await });
    // It has taken its lease, so the next it asks for is the money.
    soon("the flight to enter", async {
        while gate.metric("tollgate_store_seconds_count", "op=\"enter\"").await == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    let off = json!({ "state": "off", "reason": "test" }).to_string();
    let said = tokio::spawn(async move { admin.send(http::Method::PUT, "/v1/switches/quote", off.into()).await });
    soon("off", async {
        while gate.admin.get("/v1/switches/quote").await.json()["state"] != "off" {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    file.execute_batch("ROLLBACK").unwrap();
    let refused = asked.await.unwrap();
    assert_eq!((refused.status, refused.code().as_str()), (503, "switched_off"));
    assert_eq!((said.await.unwrap().status, upstream.calls(), gate.spent().await), (200, 0, 0));
}

/// What is paid for while the ledger cannot be written, where no cap forbids that, is in it afterwards, once.
#[tokio::test]
async fn a_row_that_is_owed_is_written_when_the_store_is_back() {
    let upstream = FakeUpstream::start(ok()).await;
    let store = "url = \"sqlite:{dir}/t.db\"\ntimeout = \"100ms\"\npatience = \"300ms\"";
    let gate = quote("", "").store(store).start(&upstream).await;
    let path = gate.dir.path().join("t.db");
    let file = rusqlite::Connection::open(path).unwrap();
    // What is refused so is not carried out later by itself.
    file.execute_batch("CREATE TRIGGER no BEFORE INSERT ON attempt BEGIN SELECT RAISE(ABORT, 'trouble'); END").unwrap();
    assert_eq!(gate.get(QUOTE).await.status, 200);
    assert_eq!(gate.metric("tollgate_store_errors_total", "stage=\"budget\",policy=\"pass\"").await, 1);
    file.execute_batch("DROP TRIGGER no").unwrap();
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

/// A question that alone does not fit any more is refused alone: what is cheaper goes on, and nothing is stopped.
#[tokio::test]
async fn a_question_that_is_too_dear_stops_nobody_else() {
    let upstream = FakeUpstream::start(Step::ok(json!({ "ok": true }))).await;
    let gate = Setup::new(
        "[providers.sms]\nbase_url = \"{upstream}\"\nkey = \"{secret}\"\nauth = { in = \"bearer\" }\nretry = { attempts = 1 }\n\
         price = { table = [{ prefix = \"+1\", price = \"0.01 USD\" }], otherwise = \"0.60 USD\" }\n\
         [routes.look]\nprovider = \"sms\"\nexpose = \"GET /look\"\nbudget = { day = \"1 USD\", stop = \"off\" }\n\
         priced_by = { prefix = \"to\" }\n[routes.look.question]\nto = { in = \"query\", type = \"phone\", required = true }\n",
    )
    .start(&upstream)
    .await;
    let ask = async |to: &str| {
        let reply = gate.get(&format!("/look?to=%2B{to}")).await;
        (reply.status, reply.code())
    };
    assert_eq!(ask("4915112345678").await, (200, String::new()));
    assert_eq!(ask("4915112345679").await, (503, "budget_exhausted".into()));
    assert_eq!(gate.admin.get("/v1/switches/look").await.json()["stops"], json!([]));
    assert_eq!(ask("12025550123").await, (200, String::new()));
    assert_eq!((upstream.calls(), gate.spent().await), (2, 610_000));
}
