//! The admin token. Failures are limited for each peer, and a right token is never refused for them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::Admin;
use super::api::problem;
use crate::clock::Timestamp;
use crate::config::secret::Secret;

/// Who has been wrong lately.
#[derive(Default)]
pub(super) struct Failures(Mutex<HashMap<IpAddr, (u32, Timestamp)>>);

/// The peer of a connection.
#[derive(Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

/// Failures of one peer within a minute that are answered with 401; more get 429.
const FAILURES: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);
/// Peers remembered; beyond that all are forgotten at once.
const PEERS: usize = 10_000;

/// Digests are compared, so that neither length nor time says anything.
fn is_right(secret: &Secret, given: &str) -> bool {
    let digest = |text: &str| -> [u8; 32] { Sha256::digest(text.as_bytes()).into() };
    digest(secret.expose()).ct_eq(&digest(given)).into()
}

impl Failures {
    /// Counts a failure; says whether the peer has had too many.
    fn add(&self, peer: IpAddr, now: Timestamp) -> bool {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= PEERS {
            failures.clear();
        }
        let (count, since) = failures.entry(peer).or_insert((0, now));
        if now.since(*since) >= WINDOW {
            (*count, *since) = (0, now);
        }
        *count = count.saturating_add(1);
        *count > FAILURES
    }
}

/// Proof that a request held the token.
pub(super) struct Authorized;

impl FromRequestParts<Admin> for Authorized {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, admin: &Admin) -> Result<Self, Response> {
        // The one in force, so that a reload can change it.
        let snapshot = admin.gate.snapshot();
        let Some(token) = &snapshot.config.admin.token else {
            return Err(problem(StatusCode::NOT_FOUND, "not_found", "the API is off: set admin.token").into_response());
        };
        let given = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        if given.is_some_and(|(_, given)| is_right(token, given.trim())) {
            return Ok(Self);
        }
        let peer = parts.extensions.get::<Peer>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0);
        if admin.failures.add(peer, admin.gate.shared().clock.ticks()) {
            let response = problem(StatusCode::TOO_MANY_REQUESTS, "slow_down", "too many wrong tokens");
            return Err(([(header::RETRY_AFTER, WINDOW.as_secs().to_string())], response).into_response());
        }
        let response = problem(StatusCode::UNAUTHORIZED, "unauthenticated", "the admin token is needed");
        Err(([(header::WWW_AUTHENTICATE, "Bearer")], response).into_response())
    }
}
