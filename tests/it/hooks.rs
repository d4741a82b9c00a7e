//! The hooks listener: who may push, what is acted on, and what is only acknowledged.

mod durable;
mod emulator;
mod listener;
mod notices;
mod tokens;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value as Json, json};
use tollgate::clock::Clock;

use crate::support::client::{Client, Reply};
use crate::support::gate::{Gate, Setup, fare, quote};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const AUDIENCE: &str = "https://gate.example/google-budget";
const EMAIL: &str = "push@project.iam.gserviceaccount.com";
const BUDGET: &str = "b1c2d3e4-0000-4000-8000-000000000001";
const NOVEMBER: &str = "2026-11-01T07:00:00Z";
const DECEMBER: &str = "2026-12-01T08:00:00Z";
const ASK: &str = "/v1/quote?from=Delhi&to=Jaipur";
/// Made with openssl for these tests; it opens nothing.
const RSA: &[u8] = include_bytes!("keys/rsa.pem");
const SQLITE: &str = "url = \"sqlite:{dir}/tollgate.db\"\ntimeout = \"200ms\"";

fn jwks_file() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/keys/jwks.json");
    format!("file:{}", path.display())
}

/// A gateway with a hook of these further keys.
fn hooked(more: &str) -> Setup {
    hooked_by(&jwks_file(), more)
}

fn hooked_by(jwks: &str, more: &str) -> Setup {
    let mut setup = quote("", "");
    setup.body.push_str(&format!(
        "[hooks]\nlisten = \"127.0.0.1:0\"\n\
         google_budget = {{ audience = \"{AUDIENCE}\", email = \"{EMAIL}\", jwks = \"{jwks}\"{more} }}\n"
    ));
    setup
}

async fn start(setup: Setup) -> (FakeUpstream, Gate) {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = setup.start(&upstream).await;
    (upstream, gate)
}

/// What Google says of a subscription's account.
fn claims(clock: &Clock) -> Json {
    let now = clock.now().seconds();
    json!({
        "iss": "https://accounts.google.com", "aud": AUDIENCE, "azp": "1", "sub": "1", "email": EMAIL, "email_verified": true,
        "iat": now, "exp": now + 3_600,
    })
}

fn sign(claims: &Json) -> String {
    let header = Header { kid: Some("rsa".into()), ..Header::new(Algorithm::RS256) };
    encode(&header, claims, &EncodingKey::from_rsa_pem(RSA).unwrap()).unwrap()
}

/// A notice; its amounts as text, for JSON's numbers are more than Rust's.
fn notice(period: &str, spent: &str, budget: &str) -> String {
    format!(
        r#"{{"budgetDisplayName":"Maps","costAmount":{spent},"costIntervalStart":"{period}","budgetAmount":{budget},"budgetAmountType":"SPECIFIED_AMOUNT","currencyCode":"USD"}}"#
    )
}

/// A push as the emulator makes it, around these bytes.
fn push_of(id: &str, data: &str) -> Json {
    json!({
        "subscription": "projects/p/subscriptions/s",
        "message": {
            "data": BASE64.encode(data), "messageId": id, "message_id": id,
            "publishTime": "2026-11-30T11:59:00.123Z", "publish_time": "2026-11-30T11:59:00.123Z",
            "attributes": { "billingAccountId": "A", "budgetId": BUDGET, "schemaVersion": "1.0" },
        },
    })
}

fn hooks_of(gate: &Gate) -> Client {
    let addr = gate.running.as_ref().unwrap().hooks.unwrap();
    Client::new(format!("http://{addr}"))
}

async fn push_by(gate: &Gate, token: &str, push: Json) -> Reply {
    hooks_of(gate).with("authorization", &format!("Bearer {token}")).post("/google-budget", push).await
}

/// Pushes with the right token.
async fn push(gate: &Gate, push: Json) -> u16 {
    push_by(gate, &sign(&claims(&gate.clock)), push).await.status
}

/// Pushes a notice with the right token.
async fn tell(gate: &Gate, period: &str, spent: &str, budget: &str) -> u16 {
    push(gate, push_of("1", &notice(period, spent, budget))).await
}

/// An admin ends Google's stop, if it stands.
async fn open(gate: &Gate) {
    let body = json!({ "state": "on", "maker": "google-budget", "reason": "test" }).to_string();
    let reply = gate.admin.send(http::Method::PUT, "/v1/switches/all", body.into()).await;
    assert!(matches!(reply.status, 200 | 404), "{reply:?}");
}

async fn switch(gate: &Gate, name: &str) -> Json {
    gate.admin.get(&format!("/v1/switches/{name}")).await.json()
}

async fn state(gate: &Gate) -> String {
    switch(gate, "all").await["state"].as_str().unwrap().to_owned()
}

async fn counted(gate: &Gate, result: &str) -> u64 {
    gate.metric("tollgate_hooks_total", &format!("kind=\"google-budget\",result=\"{result}\"")).await
}
