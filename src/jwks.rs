//! Published keys: a JWKS (RFC 7517), from a file or an address.
//!
//! The algorithm belongs to the key, never to the token; symmetric keys are not taken from a key set. Keys from an address are
//! fetched every ten minutes while they are used (an issuer may withdraw one), and when a token names a key nobody knows, at most
//! once a minute: strangers' tokens are no lever. An issuer that does not answer changes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use jsonwebtoken::Algorithm;
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, JwkSet};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::task::TaskTracker;

use crate::clock::{Clock, Timestamp};
use crate::config::section::Section;
use crate::config::units::is_loopback;

/// Where keys come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    File(String),
    Url(String),
}

impl Source {
    /// Reads the key `jwks`. A file is read, so that a fault in it is one of the config.
    pub(crate) fn read(section: &Section<'_>, text: &str) -> Option<Self> {
        const REMEDY: &str = "write jwks = \"https://..\" or \"file:PATH\"";
        if let Some(path) = text.strip_prefix("file:") {
            let set = std::fs::read_to_string(path).map_err(|error| error.to_string()).and_then(|text| parse(&text));
            if let Err(problem) = set {
                section.fault("jwks", format!("{path} gives no keys: {problem}"), REMEDY);
            }
            return Some(Self::File(path.to_owned()));
        }
        let uri = text.parse::<http::Uri>().ok().filter(|uri| uri.host().is_some());
        if uri.is_some_and(|uri| uri.scheme_str() == Some("https") || (uri.scheme_str() == Some("http") && is_loopback(&uri))) {
            return Some(Self::Url(text.to_owned()));
        }
        section.fault("jwks", format!("{text:?} is neither https nor a file"), REMEDY);
        None
    }
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

/// The keys of one source.
pub(crate) struct Jwks {
    source: Source,
    keys: ArcSwap<JwkSet>,
    /// When the keys were last given, on the clock's ticks.
    given: AtomicU64,
    /// When they were last asked for again. Held while they are.
    asked: Arc<Mutex<Option<Timestamp>>>,
    client: reqwest::Client,
    clock: Clock,
    tasks: TaskTracker,
}

impl Jwks {
    /// Reads a file. An address is asked when the first token comes, unless [`fetch_now`](Self::fetch_now) does it before; until
    /// then the keys of `before` hold, if they came from there.
    pub(crate) fn open(source: &Source, clock: Clock, tasks: TaskTracker, before: Option<&Self>) -> Result<Arc<Self>, String> {
        let client =
            reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).timeout(FETCH_TIMEOUT).build();
        let jwks = Self {
            source: source.clone(),
            keys: ArcSwap::from_pointee(JwkSet { keys: Vec::new() }),
            given: AtomicU64::new(clock.ticks().0),
            asked: Arc::default(),
            client: client.map_err(|error| error.to_string())?,
            clock,
            tasks,
        };
        match source {
            Source::File(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
                jwks.keys.store(Arc::new(parse(&text)?));
            }
            Source::Url(_) => {
                if let Some(before) = before.filter(|before| before.source == *source) {
                    jwks.keys.store(before.keys.load_full());
                    jwks.given.store(before.given.load(Ordering::Relaxed), Ordering::Relaxed);
                }
            }
        }
        Ok(Arc::new(jwks))
    }

    /// Asks an address for its keys. One that does not answer is asked again when the first token comes.
    pub(crate) async fn fetch_now(&self) {
        let Source::Url(url) = &self.source else { return };
        match self.fetch(url).await {
            Ok(keys) => self.take(keys, self.clock.ticks()),
            Err(problem) => tracing::warn!(problem, "the token keys could not be fetched; they will be asked for again"),
        }
    }

    fn take(&self, keys: JwkSet, now: Timestamp) {
        self.keys.store(Arc::new(keys));
        self.given.store(now.0, Ordering::Relaxed);
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
        let Source::Url(url) = &self.source else { return };
        let now = self.clock.ticks();
        if asked.is_some_and(|asked| now.since(asked) < REFETCH) {
            return;
        }
        *asked = Some(now);
        let (jwks, url) = (Arc::clone(self), url.clone());
        let fetch = self.tasks.spawn(async move {
            match jwks.fetch(&url).await {
                Ok(keys) => jwks.take(keys, now),
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

    /// The key of that name; where a token names none, the only one there is.
    pub(crate) async fn key(self: &Arc<Self>, kid: Option<&str>) -> Option<Jwk> {
        let find = |keys: &JwkSet| match (kid, keys.keys.as_slice()) {
            (Some(kid), _) => keys.find(kid).cloned(),
            (None, [only]) => Some(only.clone()),
            (None, _) => None,
        };
        self.renew().await;
        let known = find(&self.keys.load());
        if known.is_some() {
            return known;
        }
        self.refetch(Arc::clone(&self.asked).lock_owned().await).await;
        find(&self.keys.load())
    }
}

/// The key's own algorithm, or, where it names none, the token's if it is of the key's family. Symmetric keys never.
pub(crate) fn algorithm(key: &Jwk, claimed: Algorithm) -> Option<Algorithm> {
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
