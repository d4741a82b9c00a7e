//! Who may push: the account of the subscription, and nobody else.

use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::*;
use crate::support::raw::exchange;

const RSA_PUBLIC: &[u8] = include_bytes!("../keys/rsa.pub.pem");
const EC: &[u8] = include_bytes!("../keys/ec.pem");
const JWKS: &str = include_str!("../keys/jwks.json");

fn with(gate: &Gate, name: &str, value: impl Into<Json>) -> Json {
    let mut claims = claims(&gate.clock);
    claims[name] = value.into();
    claims
}

fn without(gate: &Gate, name: &str) -> Json {
    let mut claims = claims(&gate.clock);
    claims.as_object_mut().unwrap().remove(name);
    claims
}

fn over() -> Json {
    push_of("1", &notice(NOVEMBER, "105.2", "100.0"))
}

#[tokio::test]
async fn the_subscriptions_own_token_acts() {
    for issuer in ["https://accounts.google.com", "accounts.google.com"] {
        let (upstream, gate) = start(hooked("")).await;
        assert_eq!(gate.admin.get("/v1/switches/all").await.json()["state"], "on");
        let reply = push_by(&gate, &sign(&with(&gate, "iss", issuer)), over()).await;
        assert_eq!((reply.status, reply.body.len()), (204, 0));
        let refused = gate.get(ASK).await;
        assert_eq!((refused.status, refused.code()), (504, "not_cached".into()));
        assert_eq!(counted(&gate, "stopped").await, 1);
        assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
    }
}

fn signed(kid: Option<&str>, algorithm: Algorithm, key: &EncodingKey, claims: &Json) -> String {
    encode(&Header { kid: kid.map(Into::into), ..Header::new(algorithm) }, claims, key).unwrap()
}

#[tokio::test]
async fn every_other_token_is_refused_and_nothing_is_done() {
    let (upstream, gate) = start(hooked("")).await;
    let good = claims(&gate.clock);
    let (now, good_token) = (gate.clock.now().seconds(), sign(&good));
    let parts: Vec<&str> = good_token.split('.').collect();
    let rsa = EncodingKey::from_rsa_pem(RSA).unwrap();
    let none = format!("{}.{}.", URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT","kid":"rsa"}"#), parts[1]);
    let public = EncodingKey::from_secret(RSA_PUBLIC).unwrap();
    let other_body = sign(&with(&gate, "sub", "2"));
    let refused = [
        ("issuer", 401, sign(&with(&gate, "iss", "https://accounts.google.com.evil.example"))),
        ("no issuer", 401, sign(&without(&gate, "iss"))),
        ("audience", 401, sign(&with(&gate, "aud", "https://gate.example/google-budget/"))),
        ("audience in capitals", 401, sign(&with(&gate, "aud", AUDIENCE.to_uppercase()))),
        ("audiences", 401, sign(&with(&gate, "aud", json!([AUDIENCE, "else"])))),
        ("no audience", 401, sign(&without(&gate, "aud"))),
        ("expired", 401, sign(&with(&gate, "exp", now - 60))),
        ("no end", 401, sign(&without(&gate, "exp"))),
        ("from the future", 401, sign(&with(&gate, "iat", now + 61))),
        ("no beginning", 401, sign(&without(&gate, "iat"))),
        ("another account", 403, sign(&with(&gate, "email", "push@project.iam.gserviceaccount.com.evil"))),
        ("another account's case", 403, sign(&with(&gate, "email", EMAIL.to_uppercase()))),
        ("no account", 403, sign(&without(&gate, "email"))),
        ("an account nobody verified", 403, sign(&with(&gate, "email_verified", false))),
        ("an account of which nothing is said", 403, sign(&without(&gate, "email_verified"))),
        ("a verdict that is a text", 401, sign(&with(&gate, "email_verified", "true"))),
        ("no algorithm", 401, none),
        ("the public key as a secret", 401, signed(Some("rsa"), Algorithm::HS256, &public, &good)),
        ("another algorithm of the key", 401, signed(Some("rsa"), Algorithm::RS512, &rsa, &good)),
        ("an elliptic key", 401, signed(Some("ec"), Algorithm::ES256, &EncodingKey::from_ec_pem(EC).unwrap(), &good)),
        ("another key's name", 401, signed(Some("ec"), Algorithm::RS256, &rsa, &good)),
        ("an unknown key", 401, signed(Some("gone"), Algorithm::RS256, &rsa, &good)),
        ("no key named", 401, signed(None, Algorithm::RS256, &rsa, &good)),
        ("another body", 401, format!("{}.{}.{}", parts[0], other_body.split('.').nth(1).unwrap(), parts[2])),
        ("no signature", 401, format!("{}.{}.", parts[0], parts[1])),
        ("cut", 401, good_token[..good_token.len() - 4].to_owned()),
        ("nonsense", 401, "a.b.c".to_owned()),
        ("nothing", 401, String::new()),
    ];
    for (what, status, token) in &refused {
        let reply = push_by(&gate, token, over()).await;
        assert_eq!((what, reply.status), (what, *status), "{reply:?}");
        assert_eq!(reply.header("www-authenticate").is_some(), *status == 401);
    }
    for odd in [format!("Basic {good_token}"), good_token.clone(), format!("Bearer{good_token}")] {
        assert_eq!(hooks_of(&gate).with("authorization", &odd).post("/google-budget", over()).await.status, 401);
    }
    assert_eq!(hooks_of(&gate).post("/google-budget", over()).await.status, 401);
    // Two are none, whichever is right.
    let twice = format!(
        "POST /google-budget HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {good_token}\r\nAuthorization: Bearer x\r\nContent-Length: 0\r\n\r\n"
    );
    assert_eq!(exchange(gate.running.as_ref().unwrap().hooks.unwrap(), twice).await[0].status, 401);
    let forbidden = refused.iter().filter(|(_, status, _)| *status == 403).count() as u64;
    assert_eq!(counted(&gate, "forbidden").await, forbidden);
    assert_eq!(counted(&gate, "unauthenticated").await, refused.len() as u64 - forbidden + 5);
    assert_eq!((state(&gate).await.as_str(), gate.get(ASK).await.status), ("on", 200));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn times_are_judged_by_the_gateways_clock_with_a_minute_of_grace() {
    let (_upstream, gate) = start(hooked("")).await;
    let token = sign(&claims(&gate.clock));
    gate.advance(3_600 + 59);
    assert_eq!(push_by(&gate, &token, over()).await.status, 204);
    gate.advance(1);
    assert_eq!(push_by(&gate, &token, over()).await.status, 401);
    let early = gate.clock.now().seconds() + 60;
    assert_eq!(push_by(&gate, &sign(&with(&gate, "iat", early)), over()).await.status, 204);
}

#[tokio::test]
async fn googles_keys_are_fetched_when_they_are_needed_and_again_when_they_change() {
    let both: Json = serde_json::from_str(JWKS).unwrap();
    let mut other = both.clone();
    other["keys"].as_array_mut().unwrap().remove(0);
    let google = FakeUpstream::start([Step::ok(other), Step::ok(both), Step::close()]).await;
    let (_upstream, gate) = start(hooked_by(&format!("{}/certs", google.url()), "")).await;
    assert_eq!(google.calls(), 0, "a start waits for nobody");
    assert_eq!(tell(&gate, NOVEMBER, "1", "100").await, 401, "not a key of theirs yet");
    for _ in 0..20 {
        assert_eq!(tell(&gate, NOVEMBER, "1", "100").await, 401);
    }
    assert_eq!(google.calls(), 1, "strangers are no lever");
    gate.advance(60);
    assert_eq!(tell(&gate, NOVEMBER, "1", "100").await, 204, "a new key is learnt");
    assert_eq!(google.calls(), 2);
    assert_eq!(gate.admin.post("/v1/reload", json!({})).await.status, 200);
    gate.advance(600);
    assert_eq!(tell(&gate, NOVEMBER, "2", "100").await, 204, "Google in trouble withdraws nothing, nor does a reload");
    assert_eq!(google.calls(), 3);
}
