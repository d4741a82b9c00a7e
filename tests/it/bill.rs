//! The bill: what was paid and what was saved, by whom and why, and that it is not made to look better than it is.

use http::Method;
use serde_json::{Value as Json, json};

use crate::support::gate::{ADMIN_TOKEN, Gate, Setup, found, nothing, opencage};
use crate::support::process::Process;
use crate::support::soon;
use crate::support::step::{Script, Step};
use crate::support::upstream::FakeUpstream;

const PRICE: u64 = 5_000;
const CACHE: &str = "cache = { found = \"60s\", not_found = \"60s\", stale_while_revalidate = \"30s\" }";

fn path(place: &str) -> String {
    format!("/geocode/v1/json?q={place}")
}

/// Places that begin with `No` are none, and the provider breaks down over those that begin with `Break`.
fn world() -> Script {
    Script::by(|asked| match asked.target.split_once("q=").map_or("", |(_, place)| place) {
        place if place.starts_with("No") => Step::ok(nothing()),
        place if place.starts_with("Break") => Step::ok(json!({})).status(500),
        _ => Step::ok(found()),
    })
}

/// Under a budget, as a paid route should be.
fn capped(mut setup: Setup, budget: &str) -> Setup {
    setup.body = setup.body.replace("budget = \"none\"", budget);
    setup
}

/// The spend in sum, once nothing is open any more.
async fn spend(gate: &Gate) -> Json {
    soon("every attempt to be settled", async {
        loop {
            let total = gate.admin.get("/v1/spend?by=").await.json()["totals"][0].clone();
            if total["open"]["calls"] == 0 || total.is_null() {
                return total;
            }
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await
}

/// How many calls each cause has saved.
async fn saved(gate: &Gate) -> Vec<(String, u64)> {
    let report = gate.admin.get("/v1/savings?by=cause").await.json();
    let count = |row: &Json| {
        let calls = row["calls"].as_u64().unwrap();
        assert_eq!(row["micros"].as_u64(), Some(calls * PRICE), "{row}");
        (row["key"]["cause"].as_str().unwrap().to_owned(), calls)
    };
    let rows = report["rows"].as_array().unwrap().iter().map(count).collect();
    for (cause, calls) in &rows as &Vec<(String, u64)> {
        let metric = gate.metric("tollgate_saved_micros_total", &format!("cause=\"{cause}\"")).await;
        assert_eq!(metric, calls * PRICE, "the metric and the ledger agree on {cause}");
    }
    rows
}

fn counts(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(cause, calls)| ((*cause).to_owned(), *calls)).collect()
}

/// `tollgate bill` of a gateway: exit code, what it printed, what it complained of.
async fn bill(gate: &Gate, arguments: &[&str]) -> (Option<i32>, String, String) {
    let admin = format!("http://{}", gate.admin_addr);
    run(&[&["bill", "--admin", &admin], arguments].concat(), &[("TOLLGATE_ADMIN_TOKEN", ADMIN_TOKEN)]).await
}

async fn run(arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let mut process = Process::start(arguments, variables);
    let code = process.ended().await;
    let (out, err) = (process.out.to_end().await, process.err.to_end().await);
    (code, out, err)
}

/// Some of everything, on a route with a curated answer, a limit nobody reaches, and a breaker that opens at the second failure.
async fn worked() -> (FakeUpstream, Gate, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "{\"question\":{\"q\":\"Atlantis\"},\"answer\":{\"sunk\":true}}\n").unwrap();
    let upstream = FakeUpstream::start(world()).await;
    let route = format!("{CACHE}\ncurated = \"{}\"", file.path().display());
    let setup = capped(opencage("breaker = { failures = 2, cooldown = \"1h\" }", &route), "budget = { day = \"1 USD\" }");
    let gate = setup.start(&upstream).await;
    for place in ["Agra", "Agra", "AGRA", "Nowhere", "nowhere", "Atlantis", "!", "!"] {
        gate.get(&path(place)).await;
    }
    let looks = gate.metric("tollgate_store_seconds_count", "op=\"answer\"").await;
    upstream.set_script(Step::ok(found()).gated());
    let joiners: Vec<_> = (0..5)
        .map(|_| {
            let client = gate.client.clone();
            tokio::spawn(async move { client.get(&path("Kyoto")).await.status })
        })
        .collect();
    upstream.wait_for_calls(3).await;
    soon("all to have passed the cache", async {
        while gate.metric("tollgate_store_seconds_count", "op=\"answer\"").await < looks + 5 {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await;
    upstream.release(1);
    for joiner in joiners {
        assert_eq!(joiner.await.unwrap(), 200);
    }
    // The first of two stale hits begins a refresh, which is paid.
    gate.advance(70);
    for _ in 0..2 {
        assert_eq!(gate.get(&path("Agra")).await.status, 200);
    }
    upstream.wait_for_calls(4).await;
    upstream.release(1);
    upstream.set_script(world());
    for place in ["Break1", "Break2", "Pune", "Pune", "Puri"] {
        assert_ne!(gate.get(&path(place)).await.status, 200, "{place}");
    }
    (upstream, gate, file)
}

#[tokio::test]
async fn paid_and_saved_add_up_and_the_ledger_is_what_the_provider_billed() {
    let (upstream, gate, _file) = worked().await;
    let total = spend(&gate).await;
    assert_eq!(upstream.calls(), 6);
    assert_eq!((&total["calls"], &total["micros"], &total["amount"]), (&json!(6), &json!(6 * PRICE), &json!("0.03")));
    assert_eq!((&total["billed"]["calls"], &total["currency"]), (&json!(6), &json!("USD")));
    assert_eq!(gate.spent().await, 6 * PRICE);
    let causes = [("breaker", 2), ("cache", 2), ("coalesced", 4), ("curated", 1), ("invalid", 2), ("negative", 1), ("stale", 1)];
    assert_eq!(saved(&gate).await, counts(&causes));

    let (code, text, _) = bill(&gate, &[]).await;
    assert_eq!(code, Some(0));
    insta::assert_snapshot!("bill", text);
    let (_, text, _) = bill(&gate, &["--json", "--by", "route,caller,cause", "--since", "today"]).await;
    let json: Json = serde_json::from_str(&text).unwrap();
    for account in [&json["totals"][0], &json["rows"][0]] {
        let micros = |name: &str| account[name]["micros"].as_u64().unwrap();
        assert_eq!((micros("paid"), micros("saved")), (6 * PRICE, 13 * PRICE), "{account}");
        assert_eq!(micros("paid") + micros("saved"), micros("would_have_paid"));
    }
    assert_eq!(json["rows"][0]["key"], json!({ "route": "geo", "caller": "web" }));
    assert_eq!(json["savings"].as_array().unwrap().len(), causes.len());
    let (_, text, _) = bill(&gate, &["--by", "route,day,cause"]).await;
    insta::assert_snapshot!("bill_by", text);
}

#[tokio::test]
async fn a_refused_repeat_is_no_saving() {
    let upstream = FakeUpstream::start(world()).await;
    let limits = format!("{CACHE}\nlimits = {{ caller = {{ burst = 3, rate = \"1/h\" }} }}");
    let gate = opencage("", &limits).start(&upstream).await;
    upstream.set_script(Step::ok(found()).gated());
    let flying = {
        let client = gate.client.clone();
        tokio::spawn(async move { client.get(&path("Agra")).await.status })
    };
    upstream.wait_for_calls(1).await;
    upstream.set_script(world());
    for place in ["Pune", "Pune"] {
        assert_eq!(gate.get(&path(place)).await.status, 200);
    }
    for place in ["Agra", "Pune", "Puri", "PURI", "Puri"] {
        assert_eq!(gate.get(&path(place)).await.code(), "slow_down", "{place}");
    }
    upstream.release(1);
    assert_eq!(flying.await.unwrap(), 200);
    assert_eq!(saved(&gate).await, counts(&[("cache", 1), ("limited", 1)]), "one in flight, one stored, one refused before");
    assert_eq!((upstream.calls(), spend(&gate).await["micros"].as_u64()), (2, Some(2 * PRICE)));
}

#[tokio::test]
async fn what_is_not_billed_or_not_wished_for_saves_nothing() {
    let upstream = FakeUpstream::start(world()).await;
    let provider = "billed = [\"answered\"]\nbreaker = { failures = 1, cooldown = \"1h\" }";
    let gate = opencage(provider, CACHE).start(&upstream).await;
    let modest = gate.client.clone().with("cache-control", "only-if-cached");
    for place in ["Agra", "Nowhere", "Nowhere", "!", "Break1", "Pune"] {
        gate.get(&path(place)).await;
    }
    assert_eq!(modest.get(&path("Agra")).await.status, 200);
    assert_eq!(modest.get(&path("Puri")).await.code(), "not_cached");
    assert_eq!(gate.client.send(Method::HEAD, &path("Agra"), "".into()).await.status, 200);
    gate.stranger().get(&path("Agra")).await;
    gate.switch("geo", "off").await;
    assert_eq!(gate.get(&path("Puri")).await.code(), "switched_off");
    assert_eq!(saved(&gate).await, counts(&[]));
    let total = spend(&gate).await;
    assert_eq!((upstream.calls(), &total["micros"], &total["not_billed"]["calls"]), (3, &json!(PRICE), &json!(2)));
}

#[tokio::test]
async fn a_budget_that_is_used_up_saves_each_question_once() {
    let upstream = FakeUpstream::start(world()).await;
    let budget = "budget = { day = \"0.01 USD\", zone = \"America/Los_Angeles\" }";
    let gate = capped(opencage("", CACHE), budget).start(&upstream).await;
    for place in ["Agra", "Pune", "Puri", "puri", "Kyoto", "Agra"] {
        gate.get(&path(place)).await;
    }
    assert_eq!(saved(&gate).await, counts(&[("budget", 2), ("cache", 1)]));
    assert_eq!((upstream.calls(), spend(&gate).await["micros"].as_u64()), (2, Some(2 * PRICE)));
    // Days are those of the route's zone: at noon in Greenwich it is the same day there, at two in the morning it is not.
    gate.advance(14 * 3_600);
    let today = gate.admin.get("/v1/spend?since=today&by=day").await.json();
    assert_eq!(today["rows"][0]["key"]["day"], "2026-11-30", "{today}");
    gate.advance(6 * 3_600);
    assert_eq!(gate.admin.get("/v1/spend?since=today").await.json()["totals"], json!([]));
    assert_eq!(gate.admin.get("/v1/spend?since=2026-11-30&until=2026-11-30").await.json()["totals"][0]["calls"], 2);
}

#[tokio::test]
async fn both_sums_survive_a_restart() {
    let upstream = FakeUpstream::start(world()).await;
    let gate = opencage("", CACHE).store("url = \"sqlite:{dir}/t.db\"").start(&upstream).await;
    for place in ["Agra", "Agra", "Pune", "!"] {
        gate.get(&path(place)).await;
    }
    let clock = gate.clock.clone();
    let gate = Gate::from(gate.stop().await, clock).await;
    let report = gate.admin.get("/v1/savings?by=cause,caller").await.json();
    let rows: Vec<_> = report["rows"].as_array().unwrap().iter().map(|row| (row["key"].clone(), row["micros"].clone())).collect();
    let key = |cause: &str| (json!({ "cause": cause, "caller": "web" }), json!(PRICE));
    assert_eq!(rows, [key("cache"), key("invalid")], "what was in memory was written at the end");
    assert_eq!((upstream.calls(), spend(&gate).await["micros"].as_u64()), (2, Some(2 * PRICE)));
    gate.get(&path("Agra")).await;
    assert_eq!(gate.admin.get("/v1/savings").await.json()["totals"][0]["calls"], 3);
}

#[tokio::test]
async fn the_api_names_the_parameter_that_is_wrong_and_wants_its_token() {
    let upstream = FakeUpstream::start(world()).await;
    let gate = opencage("", "").start(&upstream).await;
    for (report, query, name) in [
        ("spend", "since=yesterday", "since"),
        ("spend", "until=2026-02-30", "until"),
        ("spend", "since=2026-12-01&until=2026-11-30", "since"),
        ("spend", "by=cause", "by"),
        ("savings", "by=route,provider", "by"),
        ("savings", "sicne=today", "sicne"),
    ] {
        let reply = gate.admin.get(&format!("/v1/{report}?{query}")).await;
        assert_eq!((reply.status, reply.code()), (400, "bad_request".into()), "{query}");
        assert!(reply.json()["detail"].as_str().unwrap().contains(&format!("`{name}`")), "{reply:?}");
    }
    let empty = gate.admin.get("/v1/spend").await.json();
    assert_eq!(empty, json!({ "since": "2026-11-01", "until": "2026-11-30", "by": ["route"], "rows": [], "totals": [] }));
    let stranger = gate.admin.bare();
    for path in ["/v1/spend", "/v1/savings"] {
        assert_eq!(stranger.get(path).await.status, 401, "{path}");
    }
    assert_eq!(stranger.post("/v1/spend/accept-loss", json!({})).await.status, 401);
    assert_eq!(gate.admin.post("/v1/spend/accept-loss", json!({})).await.json(), json!({ "accepted": true }));
}

#[tokio::test]
async fn the_command_says_what_is_wrong() {
    let upstream = FakeUpstream::start(world()).await;
    let gate = opencage("", "").start(&upstream).await;
    let (code, text, _) = bill(&gate, &[]).await;
    assert_eq!(
        (code, text.as_str()),
        (Some(0), "The bill of 2026-11-01 to 2026-11-30\n\nNothing was paid and nothing was saved.\n")
    );
    for wrong in [["--since", "yesterday"], ["--by", "moon"], ["--colour", "red"]] {
        assert_eq!(bill(&gate, &wrong).await.0, Some(2), "{wrong:?}");
    }
    let admin = format!("http://{}", gate.admin_addr);
    let (code, _, said) = run(&["bill", "--admin", &admin], &[("TOLLGATE_ADMIN_TOKEN", "wrong")]).await;
    assert!(code == Some(1) && said.contains("refuses the admin token"), "{said}");
    // Address and token as the config has them, the environment laid over it.
    let file = gate.config_path();
    let config = ["bill", "-c", file.to_str().unwrap()];
    let listen = gate.admin_addr.to_string();
    assert_eq!(run(&config, &[("TOLLGATE__ADMIN__LISTEN", &listen)]).await.0, Some(0));
    let (code, _, said) = run(&config, &[]).await;
    assert!(code == Some(1) && said.contains("--admin"), "{said}");
    assert_eq!(run(&["bill", "-c", "/nowhere.toml"], &[]).await.0, Some(78));
    gate.stop().await;
    let (code, _, said) = run(&["bill", "--admin", &admin], &[("TOLLGATE_ADMIN_TOKEN", ADMIN_TOKEN)]).await;
    assert!(code == Some(1) && said.contains("no gateway answers"), "{said}");
}
