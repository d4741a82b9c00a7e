//! Refusals on native routes: the provider's shape, a status its client libraries take as final, the code in `Proxy-Status`.

use serde_json::{Value, json};

use super::{plain, shown, with_id};
use crate::support::client::{Client, Reply};
use crate::support::gate::{Setup, opencage};
use crate::support::routes::{compute_routes, google, nominatim};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const PROVIDER: &str = "breaker = { failures = 1, cooldown = \"30s\" }";
const ROUTE: &str = "limits = { caller = { burst = 3, rate = \"1/8s\" } }\ncache = { found = \"1d\" }";

fn native(reply: &Reply, status: u16, code: &str, wait: Option<u64>) -> String {
    plain(reply, status, wait);
    assert_eq!(reply.header("content-type"), Some("application/json"), "{reply:?}");
    assert_eq!(reply.header("proxy-status"), Some(format!("tollgate; details=\"{code}\"").as_str()), "{reply:?}");
    format!("--- {code}\n{}\n", shown(reply))
}

/// Walks through the three rows of a preset's table: stop, wait, trouble.
async fn rows(setup: Setup, ask: impl AsyncFn(Client) -> Reply, [stop, wait, trouble]: [u16; 3]) -> String {
    let upstream = FakeUpstream::start(Step::ok(json!({ "error": "trouble" })).status(500)).await;
    let gate = setup.start(&upstream).await;
    let client = with_id(&gate.client);
    let mut seen = String::new();
    seen += &native(&ask(with_id(&gate.stranger())).await, stop, "unauthenticated", None);
    gate.switch("all", "off").await;
    seen += &native(&ask(client.clone()).await, stop, "switched_off", None);
    gate.switch("all", "on").await;
    seen += &native(&ask(client.clone().with("cache-control", "only-if-cached")).await, trouble, "not_cached", None);
    seen += &native(&ask(client.clone()).await, trouble, "upstream_failed", None);
    seen += &native(&ask(client.clone()).await, trouble, "circuit_open", Some(30));
    seen += &native(&ask(client).await, wait, "slow_down", Some(8));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
    seen
}

#[tokio::test]
async fn google_geocoding() {
    let seen =
        rows(google(PROVIDER, ROUTE), async |client| client.get("/maps/api/geocode/json?address=Bonn").await, [403, 429, 502]);
    insta::assert_snapshot!("google_geocoding", seen.await);
}

#[tokio::test]
async fn google_routes() {
    let body = json!({ "origin": { "address": "A1" }, "destination": { "address": "B1" } });
    let ask =
        async |client: Client| client.with("x-goog-fieldmask", "*").post("/directions/v2:computeRoutes", body.clone()).await;
    insta::assert_snapshot!("google_routes", rows(compute_routes(PROVIDER, ROUTE), ask, [403, 429, 502]).await);
}

#[tokio::test]
async fn opencage_() {
    let ask = async |client: Client| client.get("/geocode/v1/json?q=Bonn").await;
    // Its library takes 400, 404, 502 and 503 for success where `results` is there, and hammers where it is not.
    insta::assert_snapshot!("opencage", rows(opencage(PROVIDER, &format!("{ROUTE}\n")), ask, [403, 429, 429]).await);
}

#[tokio::test]
async fn nominatim_() {
    let seen = rows(nominatim("search", PROVIDER, ROUTE), async |client| client.get("/search?q=Bonn").await, [403, 429, 502]);
    insta::assert_snapshot!("nominatim", seen.await);
}

#[tokio::test]
async fn the_providers_own_no_passes_through_on_its_route() {
    let no: Value = json!({ "results": [], "status": { "code": 400, "message": "invalid coordinates" }, "total_results": 0 });
    let upstream = FakeUpstream::start(Step::ok(no.clone()).status(400)).await;
    let gate = opencage("", "").start(&upstream).await;
    for _ in 0..2 {
        let reply = gate.get("/geocode/v1/json?q=Bonn").await;
        assert_eq!((reply.status, reply.json(), reply.header("proxy-status")), (400, no.clone(), None));
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}
