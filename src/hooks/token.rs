//! Who pushes: the OIDC token that Pub/Sub signs for the subscription's service account.
//!
//! RS256 alone, by the key that the token names among Google's; issuer, audience, account and times are each looked at, times by
//! the gateway's clock. **The account is not optional:** whoever has any project at Google can get a token of the same issuer for
//! our audience. Source: Google Cloud, "Authentication for push subscriptions"; the accepted issuers are those of Google's own
//! verifier (google-auth, `id_token.verify_oauth2_token`).

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, header};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;

use super::config::GoogleBudget;
use crate::clock::{Clock, Timestamp};
use crate::jwks::{self, Jwks};

const ISSUERS: [&str; 2] = ["accounts.google.com", "https://accounts.google.com"];
/// How far Google's clock and ours may be apart.
const SKEW: Duration = Duration::from_secs(60);

/// Why a push is not let in; the text is for the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    /// No token, or none that holds.
    Unknown(String),
    /// A token that holds, of another account.
    Another(String),
}

/// The verifier.
pub(crate) struct Tokens {
    audience: String,
    email: String,
    keys: Arc<Jwks>,
    clock: Clock,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    exp: u64,
    iat: u64,
    #[serde(default)]
    email: String,
    #[serde(default)]
    email_verified: bool,
}

impl Tokens {
    pub(super) fn new(config: &GoogleBudget, keys: Arc<Jwks>, clock: Clock) -> Self {
        Self { audience: config.audience.clone(), email: config.email.clone(), keys, clock }
    }

    pub(super) fn keys(&self) -> &Jwks {
        &self.keys
    }

    /// Lets the subscription's own account in, and nobody else.
    pub(super) async fn check(&self, headers: &HeaderMap) -> Result<(), Stranger> {
        let claims = self.claims(headers).await.map_err(Stranger::Unknown)?;
        self.is_for_us(&claims).map_err(|why| Stranger::Unknown(why.to_owned()))?;
        if claims.email != self.email {
            return Err(Stranger::Another("the token is of another account".to_owned()));
        }
        if !claims.email_verified {
            return Err(Stranger::Another("the token's account is not verified".to_owned()));
        }
        Ok(())
    }

    /// What a token says whose signature holds.
    async fn claims(&self, headers: &HeaderMap) -> Result<Claims, String> {
        let token = bearer(headers).ok_or("there is no bearer token")?;
        let header = decode_header(token).map_err(|error| error.to_string())?;
        if header.alg != Algorithm::RS256 {
            return Err("the token is not signed by RS256".to_owned());
        }
        let kid = header.kid.ok_or("the token names no key")?;
        let key = self.keys.key(Some(&kid)).await.ok_or("no such key")?;
        if jwks::algorithm(&key, Algorithm::RS256).is_none() {
            return Err("the token's algorithm is not the key's".to_owned());
        }
        let decoding = DecodingKey::from_jwk(&key).map_err(|error| error.to_string())?;
        let mut validation = Validation::new(Algorithm::RS256);
        // The machine's clock is not the gateway's, and what is to be claimed is below.
        (validation.validate_exp, validation.validate_aud) = (false, false);
        validation.required_spec_claims.clear();
        Ok(decode(token, &decoding, &validation).map_err(|error| error.to_string())?.claims)
    }

    fn is_for_us(&self, claims: &Claims) -> Result<(), &'static str> {
        let now = self.clock.now();
        let at = |seconds: u64| Timestamp(seconds.saturating_mul(1_000_000));
        if !ISSUERS.contains(&claims.iss.as_str()) {
            return Err("the token is of another issuer");
        }
        if claims.aud != self.audience {
            return Err("the token is for another audience");
        }
        if at(claims.exp).after(SKEW) <= now {
            return Err("the token has expired");
        }
        if at(claims.iat) > now.after(SKEW) {
            return Err("the token is from the future");
        }
        Ok(())
    }
}

/// The token, if there is one `Authorization` and it is a bearer's.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let (scheme, token) = line.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}
