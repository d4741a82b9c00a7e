//! `[store]`.

use std::fmt;
use std::time::Duration;

use super::section::Section;
use super::units::{Count, Size};

/// `[store]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Store {
    pub(crate) url: StoreUrl,
    /// Of all names in a shared store.
    pub(crate) prefix: String,
    pub(crate) timeout: Duration,
    pub(crate) patience: Duration,
    pub(crate) instances: u32,
    /// Answers in process memory, in bytes.
    pub(crate) memory: usize,
}

/// Which store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    Memory,
    Sqlite(String),
    Redis(Redis),
}

/// A Redis or Valkey server. The address may hold a password and is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Redis {
    pub(crate) url: String,
    /// Certificates to trust beside the system's, as PEM.
    pub(crate) ca: Option<Vec<u8>>,
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redis(..)")
    }
}

const REMEDY: &str =
    "write \"memory:\", \"sqlite:PATH\", \"redis://HOST\", \"rediss://HOST\", or \"env:NAME\" of a variable that says which";

impl Store {
    pub(super) fn read(section: Section<'_>) -> Self {
        let url = read_url(&section);
        let timeout = if matches!(url, StoreUrl::Sqlite(_)) { 2_000 } else { 250 };
        let store = Self {
            timeout: section.or("timeout", Duration::from_millis(timeout)),
            patience: section.or("patience", Duration::from_millis(timeout * 2)),
            instances: section.or("instances", Count(1)).0,
            memory: section.or("memory", Size(64 << 20)).0,
            prefix: section.or("prefix", "tollgate".to_owned()),
            url,
        };
        if store.instances > 1 && !matches!(store.url, StoreUrl::Redis(_)) {
            let problem = "an embedded store belongs to one instance: several would each spend as if alone";
            section.fault("instances", problem, "write instances = 1, or share a store: url = \"redis://HOST\"");
        }
        let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '{' | '}');
        if store.prefix.is_empty() || !store.prefix.chars().all(plain) {
            section.fault("prefix", "is no prefix for a name", "use letters, digits and signs, but no braces and no spaces");
        }
        section.finish();
        store
    }
}

fn read_url(section: &Section<'_>) -> StoreUrl {
    let text: String = section.or("url", "sqlite:tollgate.db".to_owned());
    let (text, inline) = match text.strip_prefix("env:") {
        None => (text, true),
        Some(name) => match std::env::var(name) {
            Ok(value) => (value.trim_end_matches(['\r', '\n']).to_owned(), false),
            Err(_) => {
                section.fault("url", format!("environment variable {name} is not set"), REMEDY);
                return StoreUrl::Memory;
            }
        },
    };
    let url = match text.split_once(':') {
        Some(("memory", "")) => Some(StoreUrl::Memory),
        Some(("sqlite", path)) if !path.is_empty() => Some(StoreUrl::Sqlite(path.to_owned())),
        Some((scheme @ ("redis" | "rediss"), _)) => read_redis(section, scheme, &text, inline),
        Some(("redis+cluster" | "redis+sentinel", _)) => {
            section.fault("url", "clusters and sentinels are not built yet", "write the address of one server: redis://HOST");
            None
        }
        _ => {
            section.fault("url", "is no store", REMEDY);
            None
        }
    };
    if !matches!(url, Some(StoreUrl::Redis(_))) && section.has("ca") {
        section.fault("ca", "is for a store reached by TLS", "remove it, or write url = \"rediss://HOST\"");
    }
    url.unwrap_or(StoreUrl::Memory)
}

fn read_redis(section: &Section<'_>, scheme: &str, text: &str, inline: bool) -> Option<StoreUrl> {
    let remedy = "write redis://HOST, redis://HOST:PORT or redis://HOST:PORT/DB";
    let Some(url) = redis::parse_redis_url(text).filter(|_| redis::Client::open(text).is_ok()) else {
        // What it says may be a password: it is not repeated.
        section.fault("url", "is no address of a Redis server", remedy);
        return None;
    };
    if inline && url.password().is_some() {
        section.fault(
            "url",
            "a password stands here in the clear",
            "write url = \"env:NAME\", and the address into that variable",
        );
        return None;
    }
    if url.fragment().is_some() {
        section.fault(
            "url",
            "TLS without verifying the server is not offered",
            "remove what follows the #, and name the server's ca",
        );
        return None;
    }
    let ca = if section.has("ca") { crate::provider::read_ca(section) } else { None };
    if section.has("ca") && scheme == "redis" {
        section.fault("ca", "is for a store reached by TLS", "write rediss:// instead of redis://");
    }
    Some(StoreUrl::Redis(Redis { url: text.to_owned(), ca }))
}
