//! Refusals on native routes: the provider's shape, a status its client libraries take as final, the code in `Proxy-Status`.

use serde_json::{Value, json};

use super::{plain, shown, with_id};
use crate::support::client::{Client, Reply};
use crate::support::gate::{Setup, opencage};
use crate::support::routes::{compute_routes, google, nominatim, stripe, twilio};
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

/// Walks through what a write may be refused with. `ask` sends so much under a key.
async fn writes(setup: Setup, ask: impl AsyncFn(Client, &str) -> Reply, good: &str, bad: &str, of: &[u16; 12]) -> String {
    let upstream = FakeUpstream::start(Step::ok(json!({ "error": {} })).status(500)).await;
    let gate = setup.start(&upstream).await;
    let [unknown, stop, off, missing, odd, strange, stored, sent, reused, again, open, slow] = *of;
    let client = with_id(&gate.client);
    let keyed = |key: &str| client.clone().with("idempotency-key", key);
    let mut seen = native(&ask(with_id(&gate.stranger()), good).await, unknown, "unauthenticated", None);
    seen += &native(&ask(keyed("k").with("x-api-key", "wrong"), good).await, stop, "unauthenticated", None);
    gate.switch("all", "off").await;
    seen += &native(&ask(keyed("k"), good).await, off, "switched_off", None);
    gate.switch("all", "on").await;
    seen += &native(&ask(client.clone(), good).await, missing, "idempotency_key_missing", None);
    seen += &native(&ask(keyed("\"k"), good).await, odd, "idempotency_key_invalid", None);
    seen += &native(&ask(keyed("k"), bad).await, strange, "invalid_question", None);
    seen += &native(&ask(keyed("k").with("cache-control", "only-if-cached"), good).await, stored, "not_cached", None);
    seen += &native(&ask(keyed("k"), good).await, sent, "outcome_unknown", None);
    seen += &native(&ask(keyed("k"), &good.replace('5', "6")).await, reused, "idempotency_key_reused", None);
    seen += &native(&ask(keyed("k"), good).await, again, "outcome_unknown", None);
    seen += &native(&ask(keyed("l"), good).await, open, "circuit_open", Some(30));
    let last = ask(keyed("m"), good).await;
    seen += &native(&last, slow, "slow_down", last.header("retry-after").map(|wait| wait.parse().unwrap()));
    assert_eq!(upstream.calls(), 1);
    seen
}

const LIMITS: &str = "limits = { caller = { burst = 5, rate = \"1/8s\" } }";

#[tokio::test]
async fn twilio_() {
    let ask = async |client: Client, form: &str| client.form("/2010-04-01/Accounts/AC1/Messages.json", form).await;
    let statuses = [401, 401, 403, 400, 400, 400, 502, 502, 422, 409, 502, 429];
    let good = "To=%2B15005550006&From=%2B15005550001&Body=Hi";
    let seen = writes(twilio(PROVIDER, LIMITS), ask, good, "To=%2B15005550006&From=x", &statuses).await;
    insta::assert_snapshot!("twilio", seen);
}

#[tokio::test]
async fn stripe_() {
    let ask = async |client: Client, form: &str| client.form("/v1/payment_intents", form).await;
    // What is unknown is asked again, under the same key, as often as its own client library likes; here the circuit is open.
    let statuses = [401, 401, 403, 400, 400, 400, 502, 502, 400, 502, 502, 429];
    let seen = writes(stripe(PROVIDER, LIMITS), ask, "amount=500&currency=eur", "amount=0&currency=eur", &statuses).await;
    insta::assert_snapshot!("stripe", seen);
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
