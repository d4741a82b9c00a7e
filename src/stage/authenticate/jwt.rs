//! Tokens: a JWT against a JWKS, from a file or an address.
//!
//! The algorithm belongs to the key, never to the token; symmetric keys are not taken from a key set. Keys from an address are
//! fetched at the start, every ten minutes while they are used (an issuer may withdraw one), and when a token names a key nobody
//! knows, at most once a minute: strangers' tokens are no lever. An issuer that does not answer changes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde_json::{Map, Value as Json};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::task::TaskTracker;

use crate::clock::{Clock, Timestamp};
use crate::config::section::Section;
use crate::config::units::is_loopback;

/// `[callers.jwt]`.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) issuer: String,
    pub(crate) audience: Option<String>,
    pub(crate) jwks: Keys,
    /// The claim that names the caller.
    pub(crate) subject: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Keys {
    File(String),
    Url(String),
}

impl Config {
    pub(crate) fn read(section: Section<'_>) -> Option<Self> {
        let issuer: Option<String> = section.need("issuer");
        let audience = section.get("audience");
        let subject = section.or("subject", "sub".to_owned());
        let jwks = section.get::<String>("jwks");
        let jwks = jwks.or_else(|| Some(format!("{}/.well-known/jwks.json", issuer.as_ref()?.trim_end_matches('/'))));
        let jwks = jwks.and_then(|text| read_keys(&section, &text));
        section.finish();
        Some(Self { issuer: issuer?, audience, jwks: jwks?, subject })
    }
}

fn read_keys(section: &Section<'_>, text: &str) -> Option<Keys> {
    const REMEDY: &str = "write jwks = \"https://..\" or \"file:PATH\"";
    if let Some(path) = text.strip_prefix("file:") {
        let set = std::fs::read_to_string(path).map_err(|error| error.to_string()).and_then(|text| parse(&text));
        if let Err(problem) = set {
            section.fault("jwks", format!("{path} gives no keys: {problem}"), REMEDY);
        }
        return Some(Keys::File(path.to_owned()));
    }
    let uri = text.parse::<http::Uri>().ok().filter(|uri| uri.host().is_some());
    if uri.is_some_and(|uri| uri.scheme_str() == Some("https") || (uri.scheme_str() == Some("http") && is_loopback(&uri))) {
        return Some(Keys::Url(text.to_owned()));
    }
    section.fault("jwks", format!("{text:?} is neither https nor a file"), REMEDY);
    None
}

fn parse(text: &str) -> Result<JwkSet, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// How long keys are believed without asking again.
const BELIEVED: Duration = Duration::from_secs(600);
/// How often an unknown key may lead to a fetch.
const REFETCH: Duration = Duration::from_secs(60);
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// No issuer has this many keys.
const LARGEST: usize = 1 << 20;

/// The verifier.
pub(crate) struct Jwt {
    config: Config,
    keys: ArcSwap<JwkSet>,
    /// When the keys were last given, on the clock's ticks.
    given: AtomicU64,
    /// When they were last asked for again. Held while they are.
    asked: Arc<Mutex<Option<Timestamp>>>,
    client: reqwest::Client,
    clock: Clock,
    tasks: TaskTracker,
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
        let client =
            reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).timeout(FETCH_TIMEOUT).build();
        let jwt = Self {
            keys: ArcSwap::from_pointee(JwkSet { keys: Vec::new() }),
            given: AtomicU64::new(clock.ticks().0),
            asked: Arc::default(),
            client: client.map_err(|error| error.to_string())?,
            config,
            clock,
            tasks,
        };
        match &jwt.config.jwks {
            Keys::File(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
                jwt.keys.store(Arc::new(parse(&text)?));
            }
            Keys::Url(url) => match jwt.fetch(url).await {
                Ok(keys) => jwt.keys.store(Arc::new(keys)),
                Err(problem) => {
                    tracing::warn!(problem, "the token keys could not be fetched; they will be asked for again");
                    if let Some(before) = before.filter(|before| before.comes_from(url)) {
                        jwt.keys.store(before.keys.load_full());
                        jwt.given.store(before.given.load(Ordering::Relaxed), Ordering::Relaxed);
                    }
                }
            },
        }
        Ok(Arc::new(jwt))
    }

    fn comes_from(&self, url: &str) -> bool {
        matches!(&self.config.jwks, Keys::Url(own) if own == url)
    }

    async fn fetch(&self, url: &str) -> Result<JwkSet, String> {
        // The address is the operator's, and may hold a credential: an error names it nowhere.
        let told = |error: reqwest::Error| error.without_url().to_string();
        let sent = self.client.get(url).send().await.and_then(reqwest::Response::error_for_status);
        let mut response = sent.map_err(told)?;
        let mut text = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(told)? {
            text.extend_from_slice(&chunk);
            if text.len() > LARGEST {
                return Err("the answer is no key set: it is too large".to_owned());
            }
        }
        serde_json::from_slice(&text).map_err(|error| error.to_string())
    }

    /// Fetches again; one fetch for any number of tokens, and not too often. In a task of its own: whoever asked and hangs up
    /// must not keep a new key from everyone else.
    async fn refetch(self: &Arc<Self>, mut asked: OwnedMutexGuard<Option<Timestamp>>) {
        let Keys::Url(url) = &self.config.jwks else { return };
        let now = self.clock.ticks();
        if asked.is_some_and(|asked| now.since(asked) < REFETCH) {
            return;
        }
        *asked = Some(now);
        let (jwt, url) = (Arc::clone(self), url.clone());
        let fetch = self.tasks.spawn(async move {
            match jwt.fetch(&url).await {
                Ok(keys) => {
                    jwt.keys.store(Arc::new(keys));
                    jwt.given.store(now.0, Ordering::Relaxed);
                }
                Err(problem) => tracing::warn!(problem, "the token keys could not be fetched"),
            }
            drop(asked);
        });
        let _ = fetch.await;
    }

    /// Asks again for keys that have been believed long enough. Whoever comes meanwhile goes on with what is known.
    async fn renew(self: &Arc<Self>) {
        let given = Timestamp(self.given.load(Ordering::Relaxed));
        if self.clock.ticks().since(given) >= BELIEVED
            && let Ok(asked) = Arc::clone(&self.asked).try_lock_owned()
        {
            self.refetch(asked).await;
        }
    }

    /// The subject of a valid token; else why it is none, for the log.
    pub(crate) async fn subject(self: &Arc<Self>, token: &str) -> Result<String, String> {
        let header = decode_header(token).map_err(|error| error.to_string())?;
        let find = |keys: &JwkSet| match &header.kid {
            Some(kid) => keys.find(kid).cloned(),
            None => {
                if let [only] = keys.keys.as_slice() {
                    Some(only.clone())
                } else {
                    None
                }
            }
        };
        self.renew().await;
        let mut key = find(&self.keys.load());
        if key.is_none() {
            self.refetch(Arc::clone(&self.asked).lock_owned().await).await;
            key = find(&self.keys.load());
        }
        self.verify(token, header.alg, &key.ok_or("no such key")?)
    }

    fn verify(&self, token: &str, claimed: Algorithm, key: &Jwk) -> Result<String, String> {
        let algorithm = algorithm(key, claimed).ok_or("the token's algorithm is not the key's")?;
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

/// The key's own algorithm, or, where it names none, the token's if it is of the key's family. Symmetric keys never.
fn algorithm(key: &Jwk, claimed: Algorithm) -> Option<Algorithm> {
    let family: &[Algorithm] = match &key.algorithm {
        AlgorithmParameters::RSA(_) => {
            &[Algorithm::RS256, Algorithm::RS384, Algorithm::RS512, Algorithm::PS256, Algorithm::PS384, Algorithm::PS512]
        }
        AlgorithmParameters::EllipticCurve(_) => &[Algorithm::ES256, Algorithm::ES384],
        AlgorithmParameters::OctetKeyPair(_) => &[Algorithm::EdDSA],
        _ => return None,
    };
    let own = key.common.key_algorithm.map(|own| own.to_string().parse::<Algorithm>());
    match own {
        Some(Ok(own)) => (own == claimed && family.contains(&own)).then_some(own),
        Some(Err(_)) => None,
        None => family.contains(&claimed).then_some(claimed),
    }
}
