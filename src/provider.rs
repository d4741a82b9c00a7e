//! Whose API, how it is reached, what it costs, what its answers mean, how long they may be kept.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;

use crate::answer::Outcome;
use crate::config::node::{Node, Table};
use crate::config::section::{Section, Setting};
use crate::config::units::{Count, Lifetime, Percent, Rate, Size, duration, is_loopback, show_duration};
use crate::money::cost::CostAt;
use crate::money::{Budget, Price};

pub(crate) mod credential;
pub(crate) mod idempotency;
pub(crate) mod outcome;
pub(crate) mod preset;
pub(crate) mod refusals;
pub(crate) mod template;
pub(crate) mod volatile;

use credential::Credential;
use idempotency::Idempotency;
use refusals::Refusals;

/// `[providers.NAME]`, its preset included.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) name: String,
    pub(crate) base_url: String,
    pub(crate) credential: Option<Credential>,
    /// Who we are to it, where it asks for more than a secret.
    pub(crate) account: Option<String>,
    pub(crate) ca: Option<Vec<u8>>,
    pub(crate) user_agent: Option<String>,
    pub(crate) price: Option<Price>,
    /// Outcomes that cost. `unknown` always counts.
    pub(crate) billed: BTreeSet<Outcome>,
    pub(crate) timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) connection_age: Duration,
    pub(crate) flight: Duration,
    pub(crate) max_answer: usize,
    pub(crate) quota: Option<BucketRule>,
    /// How long it is left alone where it is busy and names no time.
    pub(crate) pause: Option<Duration>,
    pub(crate) retry: RetryRule,
    pub(crate) breaker: BreakerRule,
    pub(crate) terms: Option<Terms>,
    pub(crate) terms_override: Option<String>,
    pub(crate) respect_cache_control: bool,
    pub(crate) refusals: Option<Refusals>,
    /// How it tells one intention from another, if it does.
    pub(crate) idempotency: Option<Idempotency>,
    /// The preset's operations, as they are merged below routes.
    pub(crate) operations: Table,
    /// Where an answer says what it has cost.
    pub(crate) cost: Option<CostAt>,
    /// Over all routes together.
    pub(crate) budget: Option<Budget>,
}

/// A token bucket: capacity and refill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BucketRule {
    pub(crate) burst: u32,
    pub(crate) rate: Rate,
}

/// Attempts and the waits between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetryRule {
    pub(crate) attempts: u32,
    pub(crate) base: Duration,
    pub(crate) cap: Duration,
    /// Retries at most, as a share of first attempts.
    pub(crate) budget: Percent,
    /// Retries always allowed.
    pub(crate) minimum: Rate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BreakerRule {
    /// Consecutive failures that open it.
    pub(crate) failures: u32,
    pub(crate) cooldown: Duration,
}

/// How long the provider lets an answer be kept; zero is "not at all".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) max_store: Duration,
    pub(crate) source: String,
}

impl BucketRule {
    pub(crate) fn read(section: &Section<'_>) -> Option<Self> {
        let burst = section.need::<Count>("burst");
        let rate = section.need::<Rate>("rate");
        Some(Self { burst: burst?.0, rate: rate? })
    }

    /// `key = { burst, rate }` of a section.
    pub(crate) fn read_at(section: &Section<'_>, key: &'static str) -> Option<Self> {
        let below = section.section(key)?;
        let rule = Self::read(&below);
        below.finish();
        rule
    }
}

impl Provider {
    /// Reads one provider; `table` has its preset merged below.
    pub(crate) fn read(section: &Section<'_>, name: &str, operations: Table) -> Arc<Self> {
        let _: Option<String> = section.get("preset");
        let public_hosts = section.list::<String>("public_hosts").unwrap_or_default();
        let allow_public = section.or("allow_public_host", false);
        let base_url = read_base_url(section);
        let (credential, account) = Credential::read(section);
        let retry = read_retry(section.section_or_empty("retry"));
        let timeout = section.or("timeout", Duration::from_secs(6));
        let price = Price::read(section);
        let provider = Self {
            name: name.to_owned(),
            credential,
            account,
            ca: read_ca(section),
            user_agent: section.get("user_agent"),
            budget: Budget::read(section, false, price.as_ref()),
            cost: section.get("cost"),
            price,
            billed: read_billed(section),
            timeout,
            connect_timeout: section.or("connect_timeout", Duration::from_secs(2)),
            connection_age: section.or("connection_age", Duration::from_secs(300)),
            flight: section.or("flight", least_flight(&retry, timeout)),
            max_answer: section.or("max_answer", Size(1 << 20)).0,
            quota: BucketRule::read_at(section, "quota"),
            pause: section.get("pause"),
            retry,
            breaker: read_breaker(section.section_or_empty("breaker")),
            terms: section.section("terms").and_then(read_terms),
            terms_override: section.get("terms_override"),
            respect_cache_control: section.or("respect_cache_control", true),
            refusals: section.section("refusals").and_then(Refusals::read),
            idempotency: Idempotency::read(section),
            operations,
            base_url: base_url.unwrap_or_default(),
        };
        provider.check(section);
        check_public_host(section, &provider, &public_hosts, allow_public);
        Arc::new(provider)
    }

    fn check(&self, section: &Section<'_>) {
        if self.price.is_none() && !section.has("price") {
            section.fault(
                "price",
                "a paid provider needs its price: without one no spending can be counted",
                "write price = \"0.005 USD\" (what one call costs), or \"0 USD\" if it is free",
            );
        }
        let least = least_flight(&self.retry, self.timeout);
        if self.flight < least {
            section.fault(
                "flight",
                format!(
                    "{} is too short for {} attempts of {} and the waits between them",
                    show_duration(self.flight),
                    self.retry.attempts,
                    show_duration(self.timeout)
                ),
                format!("write at least {}, or lower timeout or retry.attempts", show_duration(least)),
            );
        }
        if self.terms_override.as_deref().is_some_and(|reason| reason.trim().is_empty()) {
            section.fault("terms_override", "the reason is empty", "write what permits it, in words");
        }
    }

    /// Whether a call costs money.
    pub(crate) fn is_paid(&self) -> bool {
        self.price.as_ref().is_none_or(|price| !price.is_free())
    }

    /// Whether an outcome is billed.
    pub(crate) fn bills(&self, outcome: Outcome) -> bool {
        outcome == Outcome::Unknown || self.billed.contains(&outcome)
    }
}

/// All attempts and the longest waits between them.
fn least_flight(retry: &RetryRule, timeout: Duration) -> Duration {
    let waits: Duration = (1..retry.attempts).map(|attempt| backoff(retry, attempt)).sum();
    timeout.saturating_mul(retry.attempts).saturating_add(waits)
}

/// The longest wait before retry number `attempt` (from 1).
pub(crate) fn backoff(retry: &RetryRule, attempt: u32) -> Duration {
    let doubled = 2u32.saturating_pow(attempt.saturating_sub(1).min(30));
    retry.base.saturating_mul(doubled).min(retry.cap)
}

fn read_base_url(section: &Section<'_>) -> Option<String> {
    const REMEDY: &str = "write the provider's address, such as base_url = \"https://api.example.com\"";
    if !section.has("base_url") {
        section.fault("base_url", "is missing", REMEDY);
    }
    let plain_ok = section.or("allow_plain_http", false);
    let text: String = section.get("base_url")?;
    let text = text.trim_end_matches('/').to_owned();
    let uri: Option<Uri> = text.parse().ok().filter(|uri: &Uri| uri.host().is_some() && uri.query().is_none());
    let Some(uri) = uri else {
        section.fault("base_url", format!("{text:?} is not an address"), REMEDY);
        return None;
    };
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) || text.contains('#') {
        section.fault(
            "base_url",
            "holds more than an address",
            "remove user, password and fragment: the credential goes into `key`",
        );
        return None;
    }
    match uri.scheme_str() {
        Some("https") => Some(text),
        Some("http") if plain_ok || is_loopback(&uri) => Some(text),
        Some("http") => {
            section.fault(
                "base_url",
                "plain http would send the credential in the clear",
                "write https://, or allow_plain_http = true if the way there is safe",
            );
            None
        }
        _ => {
            section.fault("base_url", format!("{text:?} is neither https nor http"), REMEDY);
            None
        }
    }
}

fn check_public_host(section: &Section<'_>, provider: &Provider, hosts: &[String], allowed: bool) {
    let uri: Option<Uri> = provider.base_url.parse().ok();
    let Some(host) = uri.as_ref().and_then(Uri::host).filter(|host| hosts.iter().any(|public| public == host)) else { return };
    let slow =
        provider.quota.is_some_and(|quota| quota.burst == 1 && u128::from(quota.rate.count) * 1000 <= quota.rate.per.as_millis());
    if !(allowed && slow && provider.user_agent.is_some()) {
        section.fault(
            "base_url",
            format!("the policy of {host} allows one request a second for all users together, and no reselling"),
            "run your own server; or write allow_public_host = true, user_agent = \"...\" and quota = { burst = 1, rate = \"1/s\" }",
        );
    }
}

pub(crate) fn read_ca(section: &Section<'_>) -> Option<Vec<u8>> {
    const REMEDY: &str = "write \"file:PATH\" of a PEM file";
    let reference: String = section.get("ca")?;
    let pem = reference.strip_prefix("file:").and_then(|path| std::fs::read(path).ok());
    let valid = pem.filter(|pem| reqwest::Certificate::from_pem_bundle(pem).is_ok_and(|bundle| !bundle.is_empty()));
    if valid.is_none() {
        section.fault("ca", format!("{reference:?} gives no certificate"), REMEDY);
    }
    valid
}

fn read_billed(section: &Section<'_>) -> BTreeSet<Outcome> {
    let default = || ["answered", "not_found", "weak", "rejected", "failed"].map(ToOwned::to_owned).to_vec();
    let mut billed = BTreeSet::new();
    for word in section.list_or("billed", default) {
        match Outcome::from_word(&word) {
            Some(outcome) => {
                billed.insert(outcome);
            }
            None => section.fault(
                "billed",
                format!("{word:?} is no outcome"),
                "write some of answered, not_found, weak, rejected, busy, denied, failed",
            ),
        }
    }
    billed
}

/// Of one flight.
const MOST_ATTEMPTS: u32 = 10;

fn read_retry(section: Section<'_>) -> RetryRule {
    let attempts = section.or("attempts", Count(3)).0;
    if attempts > MOST_ATTEMPTS {
        section.fault("attempts", format!("{attempts} attempts are a storm"), format!("write {MOST_ATTEMPTS} or fewer"));
    }
    let rule = RetryRule {
        // What is a fault is not reckoned with any further: the waits of billions of attempts would take long to add up.
        attempts: attempts.min(MOST_ATTEMPTS),
        base: section.or("base", Duration::from_millis(250)),
        cap: section.or("cap", Duration::from_secs(8)),
        budget: section.or("budget", Percent(20)),
        minimum: section.or("minimum", Rate { count: 1, per: Duration::from_secs(1) }),
    };
    section.finish();
    rule
}

fn read_breaker(section: Section<'_>) -> BreakerRule {
    let rule =
        BreakerRule { failures: section.or("failures", Count(5)).0, cooldown: section.or("cooldown", Duration::from_secs(30)) };
    section.finish();
    rule
}

fn read_terms(section: Section<'_>) -> Option<Terms> {
    let max_store = section.need::<MaxStore>("max_store");
    let source = section.or("source", String::new());
    section.finish();
    Some(Terms { max_store: max_store?.0, source })
}

/// Like a lifetime, but zero means "coalesce only".
struct MaxStore(Duration);

impl Setting for MaxStore {
    const REMEDY: &'static str = "write how long an answer may be kept: \"30d\", \"forever\", or \"0s\" for not at all";

    fn read(node: &Node) -> Result<Self, String> {
        match node.text().map(duration) {
            Some(Ok(duration)) => Ok(Self(duration)),
            _ => Lifetime::read(node).map(|lifetime| Self(lifetime.duration())),
        }
    }

    fn show(&self) -> toml::Value {
        toml::Value::String(show_duration(self.0))
    }
}
