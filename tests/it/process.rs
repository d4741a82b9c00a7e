//! The binary: what it prints, its signals, its logs, its exit codes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::support::client::Client;
use crate::support::gate::{ADMIN_TOKEN, KEY, SECRET, Setup, fare, quote};
use crate::support::process::Process;
use crate::support::routes::sms;
use crate::support::soon;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const ASK: &str = "/v1/quote?from=Delhi&to=Jaipur";

/// `tollgate serve` with a config in a directory of its own.
struct Served {
    process: Process,
    gateway: SocketAddr,
    admin: Client,
    client: Client,
    dir: TempDir,
}

async fn serve(setup: &Setup, upstream: &str, variables: &[(&str, &str)]) -> Served {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tollgate.toml"), setup.render(dir.path(), upstream)).unwrap();
    serve_in(dir, variables).await
}

async fn serve_in(dir: TempDir, variables: &[(&str, &str)]) -> Served {
    let path = config(&dir);
    let process = Process::start(&["serve", "-c", path.to_str().unwrap()], variables);
    let gateway = process.listening("gateway").await;
    let admin = process.listening("admin").await;
    let client = Client::new(format!("http://{gateway}")).with("x-api-key", KEY);
    let admin = Client::new(format!("http://{admin}")).with("authorization", &format!("Bearer {ADMIN_TOKEN}"));
    Served { process, gateway, admin, client, dir }
}

fn config(dir: &TempDir) -> PathBuf {
    dir.path().join("tollgate.toml")
}

/// A record that is lost is a write that may be sent twice.
#[tokio::test]
async fn writes_in_a_store_that_forgets_are_warned_of_once() {
    for (setup, warnings) in
        [(sms("", ""), 1), (sms("", "").store("url = \"sqlite:{dir}/t.db\""), 0), (quote("", "").store("url = \"memory:\""), 0)]
    {
        let mut served = serve(&setup, "http://127.0.0.1:9", &[]).await;
        served.process.signal("TERM");
        assert_eq!(served.process.ended().await, Some(0));
        let log = served.process.err.to_end().await;
        assert_eq!(log.matches("no persistence with write routes").count(), warnings, "{log}");
    }
}

#[tokio::test]
async fn serve_prints_its_real_addresses_and_ends_in_order() {
    let upstream = FakeUpstream::start(Step::ok(fare()).gated()).await;
    let mut served = serve(&quote("", ""), &upstream.url(), &[]).await;
    assert_ne!(served.gateway.port(), 0);
    let client = served.client.clone();
    let asker = tokio::spawn(async move { client.get(ASK).await.status });
    upstream.wait_for_calls(1).await;
    served.process.signal("TERM");
    served.admin.until("/readyz", 503).await;
    upstream.release(1);
    assert_eq!(asker.await.unwrap(), 200, "what is in flight ends");
    assert_eq!(served.process.ended().await, Some(0));
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test]
async fn interrupt_ends_it_too_and_a_second_signal_at_once() {
    let upstream = FakeUpstream::start(Step::hang()).await;
    let mut idle = serve(&quote("", ""), &upstream.url(), &[]).await;
    idle.process.signal("INT");
    assert_eq!(idle.process.ended().await, Some(0));

    let mut busy = serve(&quote("", ""), &upstream.url(), &[]).await;
    let client = busy.client.clone();
    tokio::spawn(async move { client.try_send(http::Method::GET, ASK, "".into()).await });
    upstream.wait_for_calls(1).await;
    busy.process.signal("TERM");
    busy.admin.until("/readyz", 503).await;
    let began = tokio::time::Instant::now();
    busy.process.signal("TERM");
    assert_eq!(busy.process.ended().await, Some(1), "not in order");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test]
async fn the_drain_limit_ends_a_flight_that_hangs() {
    let upstream = FakeUpstream::start(Step::hang()).await;
    let mut served = serve(&quote("", "").server("drain = \"300ms\""), &upstream.url(), &[]).await;
    let client = served.client.clone();
    tokio::spawn(async move { client.try_send(http::Method::GET, ASK, "".into()).await });
    upstream.wait_for_calls(1).await;
    let began = tokio::time::Instant::now();
    served.process.signal("TERM");
    assert_eq!(served.process.ended().await, Some(0));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}: the attempt alone takes six seconds", began.elapsed());
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test]
async fn hangup_reloads_and_a_faulty_file_changes_nothing() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let limits = "limits = { caller = { burst = 100, rate = \"1/h\" } }";
    let served = serve(&quote("", limits), &upstream.url(), &[]).await;
    assert_eq!(served.client.get(ASK).await.header("ratelimit"), Some("\"caller\";r=99;t=3600"));
    served.admin.send(http::Method::PUT, "/v1/switches/quote", r#"{"state":"cached"}"#.into()).await;

    std::fs::write(config(&served.dir), "[server]\nlisten = 5\n").unwrap();
    served.process.signal("HUP");
    served.process.err.wait_for("refused").await;
    assert_eq!(served.client.get(ASK).await.status, 200);
    let status = served.admin.get("/v1/status").await.json();
    assert!(status["generation"] == 1 && status["refused_reload"].is_string(), "{status}");

    let setup = quote("", "limits = { caller = { burst = 50, rate = \"1/h\" } }");
    std::fs::write(config(&served.dir), setup.render(served.dir.path(), &upstream.url())).unwrap();
    served.process.signal("HUP");
    served.process.err.wait_for("reloaded").await;
    assert_eq!(served.admin.get("/v1/status").await.json()["generation"], 2);
    let policy = served.client.get(ASK).await;
    assert_eq!(policy.header("ratelimit-policy"), Some("\"caller\";q=50;w=180000"));
    assert_eq!(served.client.get("/v1/quote?from=Delhi&to=Agra").await.code(), "not_cached", "the switch is where it was");
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test]
async fn what_was_paid_for_survives_a_kill() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let setup = quote("", "").store("url = \"sqlite:{dir}/t.db\"");
    let mut served = serve(&setup, &upstream.url(), &[]).await;
    assert_eq!(served.client.get(ASK).await.status, 200);
    served.admin.send(http::Method::PUT, "/v1/switches/all", r#"{"state":"cached"}"#.into()).await;
    served.process.signal("KILL");
    assert_eq!(served.process.ended().await, None);
    let served = serve_in(served.dir, &[]).await;
    assert!(served.client.get(ASK).await.header("cache-status").unwrap().starts_with("tollgate; hit"));
    assert_eq!(served.client.get("/v1/quote?from=Delhi&to=Agra").await.code(), "not_cached");
    // Another process is refused the same file.
    let mut second = Process::start(&["serve", "-c", config(&served.dir).to_str().unwrap()], &[]);
    assert_eq!(second.ended().await, Some(1));
    assert_eq!(upstream.calls(), 1);
}

// === logs ===

/// Asks a hit, a miss, a refusal and a stranger's question; the request lines.
async fn logged(variables: &[(&str, &str)]) -> (String, Vec<String>) {
    let upstream = FakeUpstream::start([Step::ok(fare()), Step::ok(json!({})).status(503).delay(Duration::from_millis(5))]).await;
    let setup =
        quote("retry = { attempts = 2, base = \"1ms\", cap = \"2ms\" }", "").server("trusted_proxies = [\"127.0.0.1/32\"]");
    let mut served = serve(&setup, &upstream.url(), variables).await;
    let client = served.client.clone().with("x-forwarded-for", "203.0.113.9");
    for path in [ASK, ASK, "/v1/quote?from=Delhi&to=Agra", "/v1/quote?from=Delhi&to=Secretville&x=1", "/nowhere?q=Secretville"] {
        client.get(path).await;
    }
    Client::new(format!("http://{}", served.gateway)).with("x-api-key", "wrong-key").get(ASK).await;
    served.process.signal("TERM");
    assert_eq!(served.process.ended().await, Some(0));
    let all = soon("the log", async {
        loop {
            let all = served.process.err.all();
            if all.matches("request").count() >= 6 && all.contains("unauthenticated") {
                return all;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(upstream.calls(), 3);
    let told =
        [KEY, SECRET, ADMIN_TOKEN, "wrong-key", "203.0.113.9", "Delhi", "Jaipur", "Agra", "Secretville", "\"web\"", "=web"];
    for secret in told {
        assert!(!all.contains(secret), "{secret} in:\n{all}");
    }
    let lines = all.lines().filter(|line| line.contains("tollgate::request")).map(ToOwned::to_owned).collect();
    (all, lines)
}

#[tokio::test]
async fn one_json_line_a_request_says_who_what_and_how_long() {
    let (all, lines) = logged(&[("TOLLGATE_LOG_FORMAT", "json")]).await;
    let lines: Vec<Json> = lines.iter().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    assert_eq!(lines.len(), 6, "{all}");
    let facts: Vec<Json> = lines
        .iter()
        .map(|line| json!([line["route"], line["status"], line["outcome"], line["answered_by"], line["code"], line["attempts"]]))
        .collect();
    assert_eq!(
        facts,
        [
            json!(["quote", 200, "answered", "upstream", "", 1]),
            json!(["quote", 200, "answered", "cache", "", 0]),
            json!(["quote", 502, "failed", "refusal", "upstream_failed", 2]),
            json!(["quote", 400, "refused", "refusal", "unknown_field", 0]),
            json!(["-", 404, "refused", "refusal", "not_found", 0]),
            json!(["quote", 401, "refused", "refusal", "unauthenticated", 0]),
        ]
    );
    let callers: Vec<&str> = lines.iter().map(|line| line["caller"].as_str().unwrap()).collect();
    assert!(callers[0].len() == 8 && callers[..4].iter().all(|caller| *caller == callers[0]), "{callers:?}");
    assert_eq!(callers[4..], ["-", "-"]);
    assert!(lines[0]["upstream_us"].as_u64() > Some(0) && lines[1]["upstream_us"] == 0);
    assert!(lines[2]["upstream_us"].as_u64() >= Some(10_000), "both attempts: {}", lines[2]);
    for line in &lines {
        assert!(line["store_us"].is_u64() && line["id"].is_string() && line["timestamp"].is_string(), "{line}");
    }
}

#[tokio::test]
async fn text_lines_say_the_same() {
    let (all, lines) = logged(&[]).await;
    assert_eq!(lines.len(), 6, "{all}");
    assert!(lines[0].contains("route=\"quote\"") && lines[0].contains("attempts=1"), "{}", lines[0]);
    assert!(lines[2].contains("code=\"upstream_failed\""), "{}", lines[2]);
    assert!(!all.contains('\u{1b}'), "no colours in a file");
}

// === ways to fail ===

#[tokio::test]
async fn exit_codes_tell_a_wrong_config_from_a_failure() {
    let mut missing = Process::start(&["serve", "-c", "/nowhere/tollgate.toml"], &[]);
    assert_eq!(missing.ended().await, Some(78));
    missing.err.wait_for("/nowhere/tollgate.toml").await;
    let mut arguments = Process::start(&["serve", "--colour"], &[]);
    assert_eq!(arguments.ended().await, Some(2));

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let listener = tokio::net::TcpListener::bind(taken).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let text = quote("", "").render(dir.path(), "http://127.0.0.1:1");
    let text = text.replacen("listen = \"127.0.0.1:0\"", &format!("listen = \"{taken}\""), 1);
    std::fs::write(config(&dir), text).unwrap();
    let mut blocked = Process::start(&["serve", "-c", config(&dir).to_str().unwrap()], &[]);
    assert_eq!(blocked.ended().await, Some(1));
    let line = blocked.err.wait_for("cannot listen").await;
    assert!(line.contains(&taken.to_string()) && line.contains("in use"), "{line}");
    drop(listener);
}

#[tokio::test]
async fn a_platforms_port_is_taken_where_the_file_names_none() {
    let free = std::net::TcpListener::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port();
    let dir = tempfile::tempdir().unwrap();
    let text = quote("", "").render(dir.path(), "http://127.0.0.1:1").replacen("listen = \"127.0.0.1:0\"\n", "", 1);
    std::fs::write(config(&dir), &text).unwrap();
    let path = config(&dir);
    let arguments = ["serve", "-c", path.to_str().unwrap()];
    let process = Process::start(&arguments, &[("PORT", &free.to_string())]);
    assert_eq!(process.listening("gateway").await, SocketAddr::from(([0, 0, 0, 0], free)));
    drop(process);
    for wrong in ["http", "70000", "-1"] {
        let mut process = Process::start(&arguments, &[("PORT", wrong)]);
        assert_eq!(process.ended().await, Some(78), "{wrong:?}");
        process.err.wait_for("PORT").await;
    }
}

#[tokio::test]
async fn the_sandbox_says_where_it_is() {
    let mut process = Process::start(&["sandbox", "--listen", "127.0.0.1:0"], &[]);
    let addr = process.listening("sandbox").await;
    let client = Client::new(format!("http://{addr}"));
    assert_eq!(client.get("/geocode/v1/json?q=Kyoto&key=any").await.status, 200);
    assert_eq!(client.get("/meter").await.json()["calls"], 1);
    process.signal("TERM");
    assert_eq!(process.ended().await, Some(0));
}

// === demo ===

/// Runs a printed line, as a person would paste it.
async fn paste(line: String) -> String {
    let run = move || Command::new("sh").arg("-c").arg(&line).output().unwrap();
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn the_demos_lines_work_when_pasted_and_nothing_is_left_behind() {
    let dir = tempfile::tempdir().unwrap();
    let temporary = dir.path().to_str().unwrap();
    let mut process = Process::start(&["demo", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"], &[("TMPDIR", temporary)]);
    process.out.wait_for("The bill").await;
    let guide = process.out.all();
    let lines: Vec<String> = guide.lines().filter(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect();
    assert!(lines.len() >= 11, "{guide}");
    let mut said = Vec::new();
    for line in lines.iter().filter(|line| line.contains("curl")) {
        said.push(paste(line.clone()).await);
    }
    let status = |text: &str| text.split(' ').nth(1).unwrap_or_default().to_owned();
    let cache =
        |text: &str| text.lines().find_map(|line| line.strip_prefix("cache-status: ").map(ToOwned::to_owned)).unwrap_or_default();
    for (first, again) in [(0, 1), (2, 3)] {
        assert_eq!((status(&said[first]).as_str(), status(&said[again]).as_str()), ("200", "200"), "{said:?}");
        assert!(cache(&said[first]).contains("fwd=miss") && cache(&said[again]).starts_with("tollgate; hit"), "{said:?}");
    }
    let meter: Json = serde_json::from_str(said.iter().find(|text| text.contains("\"calls\"")).unwrap()).unwrap();
    assert_eq!(meter["calls"], 5, "Zürich, the fare, no such place, Kyoto, the message: {meter}");
    assert_eq!(meter["providers"]["twilio"]["billed"], 1, "{meter}");
    let message = said.iter().find(|text| text.contains("num_segments")).unwrap_or_else(|| panic!("{said:?}"));
    assert_eq!((message.matches("201 Created").count(), message.matches("idempotent-replayed: true").count()), (2, 1));
    assert!(said.iter().any(|text| text.contains("tollgate_requests_total")));
    process.out.wait_for("0.0279  what the providers bill").await;
    process.signal("INT");
    assert_eq!(process.ended().await, Some(0));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
}
