//! The admin API.

use http::Method;
use serde_json::{Value as Json, json};

use crate::support::client::{Client, Reply};
use crate::support::gate::{ADMIN_TOKEN, Gate, SECRET, Setup, fare, quote};
use crate::support::soon;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const ASK: &str = "/v1/quote?from=Delhi&to=Jaipur";

async fn gate() -> (FakeUpstream, Gate) {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = quote("", "limits = { caller = { burst = 100, rate = \"1/h\" } }").start(&upstream).await;
    (upstream, gate)
}

fn with_token(gate: &Gate, token: &str) -> Client {
    gate.admin.bare().with("authorization", token)
}

#[tokio::test]
async fn health_and_metrics_are_for_everyone_and_the_rest_is_for_the_token() {
    let (_upstream, gate) = gate().await;
    let stranger = Client::new(format!("http://{}", gate.admin_addr));
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(stranger.get(path).await.status, 200, "{path}");
    }
    for (method, path) in [
        (Method::GET, "/v1/status"),
        (Method::GET, "/v1/routes"),
        (Method::GET, "/v1/switches/all"),
        (Method::PUT, "/v1/switches/all"),
        (Method::POST, "/v1/answers/quote/purge"),
    ] {
        let reply = stranger.send(method, path, "{\"state\":\"off\"}".into()).await;
        assert_eq!((reply.status, reply.code()), (401, "unauthenticated".into()), "{path}");
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    }
    assert_eq!(gate.get(ASK).await.status, 200);
    assert_eq!(gate.admin.get("/v1/nothing").await.status, 404);
    assert_eq!(gate.admin.send(Method::DELETE, "/v1/status", "".into()).await.status, 405);
}

#[tokio::test]
async fn wrong_tokens_are_limited_and_the_right_one_is_never_refused() {
    let (_upstream, gate) = gate().await;
    let mut statuses = Vec::new();
    for n in 0..15 {
        let reply = with_token(&gate, &format!("Bearer wrong{n}")).get("/v1/status").await;
        if reply.status == 429 {
            assert_eq!(reply.header("retry-after"), Some("60"));
        }
        statuses.push(reply.status);
        assert_eq!(gate.admin.get("/v1/status").await.status, 200, "after {n} failures");
    }
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 10, "{statuses:?}");
    for odd in [ADMIN_TOKEN, "Bearer", "Basic YTpi", &format!("Bearer {ADMIN_TOKEN}x"), &format!("Token {ADMIN_TOKEN}")] {
        assert_ne!(with_token(&gate, odd).get("/v1/status").await.status, 200, "{odd}");
    }
    assert_eq!(with_token(&gate, &format!("bearer {ADMIN_TOKEN}")).get("/v1/status").await.status, 200);
    gate.advance(60);
    assert_eq!(with_token(&gate, "Bearer wrong").get("/v1/status").await.status, 401);
}

#[tokio::test]
async fn status_and_routes_say_what_is_in_force_and_no_secret() {
    let (_upstream, gate) = gate().await;
    gate.switch("quote", "cached").await;
    let status = gate.admin.get("/v1/status").await;
    let json = status.json();
    assert_eq!((&json["generation"], &json["refused_reload"], &json["store"]["state"]), (&json!(1), &Json::Null, &json!("ok")));
    assert_eq!(
        (&json["breakers"]["google-routes"], &json["pauses"], &json["flights"]),
        (&json!("closed"), &json!({}), &json!(0))
    );
    let routes = gate.admin.get("/v1/routes").await;
    assert_eq!(
        routes.json(),
        json!({ "routes": [{
            "name": "quote", "provider": "google-routes", "expose": "GET /v1/quote", "native": false,
            "price": "0.005 USD", "switch": "cached",
        }] })
    );
    for reply in [status, routes, gate.admin.get("/metrics").await] {
        assert!(!reply.text().contains(SECRET) && !reply.text().contains(ADMIN_TOKEN), "{reply:?}");
    }
}

#[tokio::test]
async fn without_a_token_in_the_config_there_is_no_api() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let dir = tempfile::tempdir().unwrap();
    let text = quote("", "").render(dir.path(), &upstream.url());
    let text = text.lines().filter(|line| !line.starts_with("token")).collect::<Vec<_>>().join("\n");
    std::fs::write(dir.path().join("tollgate.toml"), text).unwrap();
    let gate = Gate::from(dir, tollgate::clock::Clock::manual(tollgate::clock::Timestamp(1))).await;
    assert_eq!(gate.admin.get("/v1/status").await.status, 404);
    assert_eq!(gate.admin.get("/healthz").await.status, 200);
}

// === purge ===

async fn purge(gate: &Gate, body: &str) -> Reply {
    gate.admin.send(Method::POST, "/v1/answers/quote/purge", body.to_owned().into()).await
}

#[tokio::test]
async fn one_answer_or_all_can_be_purged() {
    let (upstream, gate) = gate().await;
    let town = |name: &str| format!("/v1/quote?from=Delhi&to={name}");
    for name in ["Agra", "Pune"] {
        gate.get(&town(name)).await;
    }
    // However it is spelled, and either way round.
    assert_eq!(purge(&gate, r#"{"question":{"from":" AGRA","to":"delhi"}}"#).await.status, 200);
    for name in ["Agra", "Pune"] {
        assert_eq!(gate.get(&town(name)).await.status, 200);
    }
    assert_eq!(upstream.calls(), 3);
    assert_eq!(purge(&gate, "{}").await.json()["purged"], "all");
    for name in ["Agra", "Pune"] {
        assert_eq!(gate.get(&town(name)).await.status, 200);
    }
    assert_eq!((upstream.calls(), gate.spent().await), (5, 25_000));
}

#[tokio::test]
async fn a_purge_that_is_not_understood_purges_nothing() {
    let (upstream, gate) = gate().await;
    gate.get(ASK).await;
    for body in [
        "",
        "[]",
        r#"{"question":null}"#,
        r#"{"question":{}}"#,
        r#"{"question":"Delhi"}"#,
        r#"{"question":{"from":"Delhi"}}"#,
        r#"{"question":{"from":"Delhi","to":"!"}}"#,
        r#"{"question":{"from":"Delhi","to":"Agra","via":"Pune"}}"#,
        r#"{"questions":{"from":"Delhi","to":"Jaipur"}}"#,
    ] {
        let reply = purge(&gate, body).await;
        assert_eq!(reply.status, 400, "{body}: {reply:?}");
    }
    assert_eq!(gate.admin.send(Method::POST, "/v1/answers/nowhere/purge", "{}".into()).await.status, 404);
    assert_eq!(gate.get(ASK).await.status, 200);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

// === reload ===

fn rewrite(gate: &Gate, upstream: &FakeUpstream, setup: &Setup) {
    std::fs::write(gate.config_path(), setup.render(gate.dir.path(), &upstream.url())).unwrap();
}

async fn reload(gate: &Gate) -> Reply {
    gate.admin.post("/v1/reload", json!({})).await
}

#[tokio::test]
async fn a_reload_puts_all_of_a_new_config_in_force() {
    let (upstream, gate) = gate().await;
    gate.get(ASK).await;
    rewrite(&gate, &upstream, &quote("", "").callers(""));
    let accepted = reload(&gate).await;
    assert_eq!((accepted.status, accepted.json()), (200, json!({ "generation": 2 })));
    let reply = gate.get(ASK).await;
    assert_eq!((reply.status, reply.header("ratelimit")), (200, None), "no limits now, and the answer is still there");
    assert_eq!(gate.metric("tollgate_config_reloads_total", "accepted").await, 1);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_faulty_config_changes_nothing_and_is_told() {
    let (upstream, gate) = gate().await;
    for (text, want) in [
        ("[server", "1"),
        ("", "routes"),
        (&quote("", "colour = \"red\"").render(gate.dir.path(), "http://127.0.0.1:1"), "colour"),
    ] {
        std::fs::write(gate.config_path(), text).unwrap();
        let refused = reload(&gate).await;
        assert_eq!((refused.status, refused.code()), (422, "invalid_config".into()));
        assert!(refused.text().contains(want), "{refused:?}");
        let status = gate.admin.get("/v1/status").await.json();
        assert!(status["refused_reload"].as_str().unwrap().contains(want) && status["generation"] == 1, "{status}");
        let reply = gate.get(ASK).await;
        assert_eq!((reply.status, reply.header("ratelimit").is_some()), (200, true), "the old one stays whole");
    }
    std::fs::remove_file(gate.config_path()).unwrap();
    assert_eq!(reload(&gate).await.status, 422);
    assert_eq!(gate.metric("tollgate_config_reloads_total", "refused").await, 4);
    rewrite(&gate, &upstream, &quote("", ""));
    assert_eq!(reload(&gate).await.status, 200);
    assert_eq!(gate.admin.get("/v1/status").await.json()["refused_reload"], Json::Null);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn buckets_breakers_pauses_and_switches_survive_a_reload() {
    let lines = "limits = { caller = { burst = 10, rate = \"1/h\" } }";
    let breaker = "breaker = { failures = 2, cooldown = \"1h\" }";
    let upstream = FakeUpstream::start([Step::ok(fare()), Step::ok(json!({})).status(500)]).await;
    let gate = quote(breaker, lines).start(&upstream).await;
    let town = |n: u32| format!("/v1/quote?from=Delhi&to=Town{n}");
    for n in 0..3 {
        gate.get(&town(n)).await;
    }
    gate.switch("all", "cached").await;
    rewrite(&gate, &upstream, &quote(breaker, lines));
    assert_eq!(reload(&gate).await.status, 200);
    assert_eq!(gate.get(&town(9)).await.code(), "not_cached");
    let hit = gate.get(&town(0)).await;
    assert_eq!((hit.status, hit.header("ratelimit")), (200, Some("\"caller\";r=5;t=18000")));
    gate.switch("all", "on").await;
    assert_eq!(gate.get(&town(9)).await.code(), "circuit_open");
    // A larger bucket adds nothing to what is there.
    rewrite(&gate, &upstream, &quote(breaker, "limits = { caller = { burst = 100, rate = \"1/h\" } }"));
    assert_eq!(reload(&gate).await.status, 200);
    assert_eq!(gate.get(&town(0)).await.header("ratelimit"), Some("\"caller\";r=3;t=349200"));
    assert_eq!((upstream.calls(), gate.spent().await), (3, 15_000));
}

#[tokio::test]
async fn the_admin_token_can_be_changed_by_a_reload() {
    let (_upstream, gate) = gate().await;
    std::fs::write(gate.dir.path().join("admin"), "new-token").unwrap();
    assert_eq!(reload(&gate).await.status, 200);
    assert_eq!(gate.admin.get("/v1/status").await.status, 401);
    assert_eq!(with_token(&gate, "Bearer new-token").get("/v1/status").await.status, 200);
}

// === health ===

#[tokio::test]
async fn readiness_says_no_while_draining_and_the_flight_lands() {
    let upstream = FakeUpstream::start(Step::ok(fare()).gated()).await;
    let mut gate = quote("", "").start(&upstream).await;
    let client = gate.client.clone();
    let asker = tokio::spawn(async move { client.get(ASK).await.status });
    upstream.wait_for_calls(1).await;
    let stopping = tokio::spawn(gate.running.take().unwrap().stop());
    gate.admin.until("/readyz", 503).await;
    assert_eq!(gate.admin.get("/readyz").await.text(), "draining\n");
    assert_eq!(gate.admin.get("/healthz").await.status, 200);
    let late = gate.client.fresh().get("/v1/quote?from=Delhi&to=Agra").await;
    assert_eq!((late.status, late.code(), late.header("retry-after")), (503, "shutting_down".into(), Some("1")));
    upstream.release(1);
    assert_eq!(asker.await.unwrap(), 200);
    soon("the end", stopping).await.unwrap();
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test]
async fn a_drain_takes_no_longer_than_it_may() {
    let upstream = FakeUpstream::start(Step::hang()).await;
    let mut gate = quote("", "").server("drain = \"500ms\"").start(&upstream).await;
    let client = gate.client.clone();
    let asker = tokio::spawn(async move { client.try_send(Method::GET, ASK, "".into()).await.is_ok() });
    upstream.wait_for_calls(1).await;
    let began = tokio::time::Instant::now();
    soon("the end", gate.running.take().unwrap().stop()).await;
    let took = began.elapsed();
    assert!(took.as_millis() < 1_400, "{took:?}: a drain of 500 ms, and no second one after it");
    let _ = asker.await;
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test]
async fn metrics_have_the_names_of_the_contract() {
    let (upstream, gate) = gate().await;
    gate.get(ASK).await;
    gate.get(ASK).await;
    gate.get("/v1/quote?from=Delhi").await;
    upstream.set_script(Step::ok(json!({})).status(500));
    gate.get("/v1/quote?from=Delhi&to=Agra").await;
    reload(&gate).await;
    let text = gate.metrics().await;
    // Names, labels and types; what is measured, and in what order, is not the contract's.
    let mut names: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("_bucket{") && !line.starts_with("# HELP"))
        .map(|line| if line.starts_with('#') { line } else { line.rsplit_once(' ').unwrap().0 })
        .collect();
    names.sort_unstable();
    insta::assert_snapshot!(names.join("\n"));
}
