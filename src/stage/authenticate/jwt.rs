//! Tokens: a JWT against the keys of its issuer ([`crate::jwks`]).

use std::sync::Arc;

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde_json::{Map, Value as Json};
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::config::section::Section;
use crate::jwks::{self, Jwks};

/// `[callers.jwt]`.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) issuer: String,
    pub(crate) audience: Option<String>,
    pub(crate) jwks: jwks::Source,
    /// The claim that names the caller.
    pub(crate) subject: String,
}

impl Config {
    pub(crate) fn read(section: Section<'_>) -> Option<Self> {
        let issuer: Option<String> = section.need("issuer");
        let audience = section.get("audience");
        let subject = section.or("subject", "sub".to_owned());
        let jwks = section.get::<String>("jwks");
        let jwks = jwks.or_else(|| Some(format!("{}/.well-known/jwks.json", issuer.as_ref()?.trim_end_matches('/'))));
        let jwks = jwks.and_then(|text| jwks::Source::read(&section, &text));
        section.finish();
        Some(Self { issuer: issuer?, audience, jwks: jwks?, subject })
    }
}

/// The verifier.
pub(crate) struct Jwt {
    config: Config,
    keys: Arc<Jwks>,
}

impl Jwt {
    /// Reads the keys. An address that does not answer now is asked again when the first token comes; until then those of
    /// `before` hold, if they came from there.
    pub(crate) async fn start(
        config: Config,
        clock: Clock,
        tasks: TaskTracker,
        before: Option<&Self>,
    ) -> Result<Arc<Self>, String> {
        let keys = Jwks::open(&config.jwks, clock, tasks, before.map(|before| &*before.keys))?;
        keys.fetch_now().await;
        Ok(Arc::new(Self { config, keys }))
    }

    /// The subject of a valid token; else why it is none, for the log.
    pub(crate) async fn subject(&self, token: &str) -> Result<String, String> {
        let header = decode_header(token).map_err(|error| error.to_string())?;
        let key = self.keys.key(header.kid.as_deref()).await;
        self.verify(token, header.alg, &key.ok_or("no such key")?)
    }

    fn verify(&self, token: &str, claimed: Algorithm, key: &Jwk) -> Result<String, String> {
        let algorithm = jwks::algorithm(key, claimed).ok_or("the token's algorithm is not the key's")?;
        let mut validation = Validation::new(algorithm);
        validation.set_issuer(&[&self.config.issuer]);
        validation.set_required_spec_claims(&["exp", "iss"]);
        validation.validate_nbf = true;
        validation.validate_aud = self.config.audience.is_some();
        if let Some(audience) = &self.config.audience {
            validation.set_audience(&[audience]);
            validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        }
        let decoding = DecodingKey::from_jwk(key).map_err(|error| error.to_string())?;
        let claims = decode::<Map<String, Json>>(token, &decoding, &validation).map_err(|error| error.to_string())?.claims;
        let subject = claims.get(&self.config.subject).and_then(Json::as_str).filter(|subject| !subject.is_empty());
        subject.map(ToOwned::to_owned).ok_or_else(|| format!("the token has no {}", self.config.subject))
    }
}
