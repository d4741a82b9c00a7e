//! Tokens: which are believed, and where their keys come from.

use std::path::Path;

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use tollgate::clock::Clock;

use super::*;

/// Made with openssl for these tests; they open nothing.
const RSA: &[u8] = include_bytes!("../keys/rsa.pem");
const RSA_PUBLIC: &[u8] = include_bytes!("../keys/rsa.pub.pem");
const EC: &[u8] = include_bytes!("../keys/ec.pem");
const JWKS: &str = include_str!("../keys/jwks.json");
const ISSUER: &str = "https://id.example";

fn jwt(jwks: &str) -> String {
    format!("[callers.jwt]\nissuer = \"{ISSUER}\"\naudience = \"gate\"\njwks = \"{jwks}\"")
}

fn jwks_file() -> String {
    format!("file:{}", Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/keys/jwks.json").display())
}

/// Tokens are judged by the machine's clock.
fn soon() -> u64 {
    Clock::system().now().seconds() + 600
}

fn claims() -> Json {
    json!({ "iss": ISSUER, "aud": "gate", "exp": soon(), "sub": "ann" })
}

fn sign(algorithm: Algorithm, kid: Option<&str>, claims: &Json) -> String {
    let key = match algorithm {
        Algorithm::ES256 => EncodingKey::from_ec_pem(EC),
        _ => EncodingKey::from_rsa_pem(RSA),
    };
    let header = Header { kid: kid.map(ToOwned::to_owned), ..Header::new(algorithm) };
    encode(&header, claims, &key.unwrap()).unwrap()
}

async fn bearer(gate: &Gate, token: &str) -> Reply {
    showing(gate, "authorization", &format!("Bearer {token}")).get(ASK).await
}

fn with(name: &str, value: impl Into<Json>) -> Json {
    let mut claims = claims();
    claims[name] = value.into();
    claims
}

async fn token_gate(setup: Setup) -> (FakeUpstream, Gate) {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = setup.callers(&jwt(&jwks_file())).start(&upstream).await;
    (upstream, gate)
}

#[tokio::test]
async fn a_token_of_the_issuer_is_its_subject() {
    let (upstream, gate) = token_gate(quote("", LIMITED)).await;
    assert_eq!(bearer(&gate, &sign(Algorithm::RS256, Some("rsa"), &claims())).await.status, 200);
    assert_eq!(bearer(&gate, &sign(Algorithm::ES256, Some("ec"), &claims())).await.code(), "slow_down", "the same ann");
    let audiences = json!({ "iss": ISSUER, "aud": ["else", "gate"], "exp": soon(), "sub": "bob" });
    assert_eq!(bearer(&gate, &sign(Algorithm::ES256, Some("ec"), &audiences)).await.status, 200);
    assert_eq!(gate.get(ASK).await.status, 200, "keys work beside tokens");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_token_that_says_the_name_of_a_key_is_on_no_list() {
    let (upstream, gate) = token_gate(quote("", "callers = [\"web\", \"ann\"]")).await;
    let token = |name: &str| sign(Algorithm::RS256, Some("rsa"), &with("sub", name));
    assert_eq!(bearer(&gate, &token("web")).await.status, 404, "web is who has the key");
    assert_eq!(bearer(&gate, &token("ann")).await.status, 200);
    assert_eq!(gate.get(ASK).await.status, 200);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn every_other_token_is_refused() {
    let (upstream, gate) = token_gate(quote("", "")).await;
    let rs = |claims: &Json| sign(Algorithm::RS256, Some("rsa"), claims);
    let past = soon() - 3_600;
    let good = rs(&claims());
    let (head, rest) = good.split_once('.').unwrap();
    let (body, signature) = rest.split_once('.').unwrap();
    let other_body = rs(&with("sub", "root"));
    let other_body = other_body.split('.').nth(1).unwrap();
    let hs = |kid: &str| {
        let header = Header { kid: Some(kid.into()), ..Header::new(Algorithm::HS256) };
        encode(&header, &claims(), &EncodingKey::from_secret(RSA_PUBLIC).unwrap()).unwrap()
    };
    let none = {
        use base64::Engine as _;
        let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
        format!("{}.{body}.", engine.encode(r#"{"alg":"none","typ":"JWT","kid":"rsa"}"#))
    };
    for (what, token) in [
        ("issuer", rs(&with("iss", "https://evil.example"))),
        ("no issuer", rs(&json!({ "aud": "gate", "exp": soon(), "sub": "ann" }))),
        ("audience", rs(&with("aud", "other"))),
        ("no audience", rs(&json!({ "iss": ISSUER, "exp": soon(), "sub": "ann" }))),
        ("expired", rs(&with("exp", past))),
        ("no end", rs(&json!({ "iss": ISSUER, "aud": "gate", "sub": "ann" }))),
        ("not yet", rs(&with("nbf", soon()))),
        ("no subject", rs(&json!({ "iss": ISSUER, "aud": "gate", "exp": soon() }))),
        ("empty subject", rs(&with("sub", ""))),
        ("a subject that is no text", rs(&with("sub", json!(["ann"])))),
        ("another key's algorithm", sign(Algorithm::RS256, Some("ec"), &claims())),
        ("another algorithm of the family", sign(Algorithm::RS512, Some("rsa"), &claims())),
        ("no key named, two there", sign(Algorithm::RS256, None, &claims())),
        ("unknown key", sign(Algorithm::RS256, Some("gone"), &claims())),
        ("the public key as a secret", hs("rsa")),
        ("the public key as a secret for the other key", hs("ec")),
        ("no algorithm", none),
        ("no signature", format!("{head}.{body}.")),
        ("another body", format!("{head}.{other_body}.{signature}")),
        ("cut", good[..good.len() - 4].to_owned()),
        ("nonsense", "a.b.c".to_owned()),
        ("two parts", format!("{head}.{body}")),
    ] {
        let reply = bearer(&gate, &token).await;
        assert_eq!((what, reply.status), (what, 401), "{reply:?}");
        assert!(!reply.text().contains(body), "{reply:?}");
    }
    // Not as a bearer, it is a key, and nobody's.
    refused(&showing(&gate, "x-api-key", &good).get(ASK).await);
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

#[tokio::test]
async fn keys_are_fetched_again_for_an_unknown_one_but_not_for_every_stranger() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let mut first: Json = serde_json::from_str(JWKS).unwrap();
    let both = first.clone();
    first["keys"].as_array_mut().unwrap().truncate(1);
    let issuer = FakeUpstream::start([Step::ok(first), Step::ok(both)]).await;
    let gate = quote("", "").callers(&jwt(&format!("{}/jwks", issuer.url()))).start(&upstream).await;
    let (rsa, ec) = (sign(Algorithm::RS256, Some("rsa"), &claims()), sign(Algorithm::ES256, Some("ec"), &claims()));
    assert_eq!(bearer(&gate, &rsa).await.status, 200);
    assert_eq!(issuer.calls(), 1, "at the start");
    assert_eq!(bearer(&gate, &ec).await.status, 200, "a new key is learnt");
    assert_eq!(issuer.calls(), 2);
    for n in 0..50 {
        refused(&bearer(&gate, &sign(Algorithm::ES256, Some(&format!("stranger{n}")), &claims())).await);
    }
    assert_eq!(issuer.calls(), 2);
    gate.advance(60);
    refused(&bearer(&gate, &sign(Algorithm::ES256, Some("stranger"), &claims())).await);
    refused(&bearer(&gate, &sign(Algorithm::ES256, Some("stranger"), &claims())).await);
    assert_eq!(issuer.calls(), 3);
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn whoever_hangs_up_keeps_no_new_key_from_the_others() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let mut first: Json = serde_json::from_str(JWKS).unwrap();
    let both = first.clone();
    first["keys"].as_array_mut().unwrap().truncate(1);
    let issuer = FakeUpstream::start([Step::ok(first), Step::ok(both).gated()]).await;
    let gate = quote("", "").callers(&jwt(&format!("{}/jwks", issuer.url()))).start(&upstream).await;
    let stranger = sign(Algorithm::ES256, Some("stranger"), &claims());
    let mut raw = Raw::connect(gate.addr).await;
    raw.send(format!("GET {ASK} HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {stranger}\r\n\r\n")).await;
    issuer.wait_for_calls(2).await;
    drop(raw);
    // Nothing tells when the gateway has seen it: too short a time makes the test too kind, never wrong.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    issuer.release(1);
    assert_eq!(bearer(&gate, &sign(Algorithm::ES256, Some("ec"), &claims())).await.status, 200);
    assert_eq!((issuer.calls(), upstream.calls(), gate.spent().await), (2, 1, 5_000));
}

#[tokio::test]
async fn a_key_its_issuer_withdraws_is_believed_no_longer_than_ten_minutes() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let both: Json = serde_json::from_str(JWKS).unwrap();
    let mut one = both.clone();
    one["keys"].as_array_mut().unwrap().remove(0);
    let issuer = FakeUpstream::start([Step::ok(both), Step::ok(json!({})).status(500), Step::ok(one)]).await;
    let gate = quote("", "").callers(&jwt(&format!("{}/jwks", issuer.url()))).start(&upstream).await;
    let rsa = sign(Algorithm::RS256, Some("rsa"), &claims());
    assert_eq!(bearer(&gate, &rsa).await.status, 200);
    gate.advance(600);
    assert_eq!(bearer(&gate, &rsa).await.status, 200, "an issuer in trouble withdraws nothing");
    assert_eq!(issuer.calls(), 2);
    gate.advance(60);
    refused(&bearer(&gate, &rsa).await);
    assert_eq!((issuer.calls(), upstream.calls(), gate.spent().await), (3, 1, 5_000));
}

#[tokio::test]
async fn an_issuer_that_is_away_at_the_start_or_at_a_reload_is_asked_later() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let keys: Json = serde_json::from_str(JWKS).unwrap();
    let issuer = FakeUpstream::start([Step::ok(json!({})).status(503), Step::ok(keys), Step::close()]).await;
    let gate = quote("", "").callers(&jwt(&format!("{}/jwks", issuer.url()))).start(&upstream).await;
    let token = sign(Algorithm::RS256, Some("rsa"), &claims());
    assert_eq!(bearer(&gate, &token).await.status, 200);
    let reply = gate.admin.post("/v1/reload", json!({})).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(bearer(&gate, &token).await.status, 200, "the keys known before stay known");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}
