//! `[callers]`.

use std::collections::BTreeMap;

use http::HeaderName;

use super::jwt;
use crate::config::section::Section;
use crate::config::units::text_setting;

/// Who may call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    pub(crate) by_address: bool,
    pub(crate) read_key_from: Vec<KeySource>,
    /// Digests by caller; several while a key is being rotated.
    pub(crate) keys: BTreeMap<String, Vec<[u8; 32]>>,
    pub(crate) jwt: Option<jwt::Config>,
    pub(crate) header: Option<HeaderName>,
}

/// Where a caller's key is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeySource {
    Bearer,
    Header(HeaderName),
    Query(String),
    /// HTTP Basic: the password.
    Basic,
}

text_setting!(
    KeySource,
    "write \"bearer\", \"header:NAME\", \"query:NAME\" or \"basic\"",
    "a place for a key",
    |text| match text.split_once(':') {
        None if text == "bearer" => Ok(KeySource::Bearer),
        None if text == "basic" => Ok(KeySource::Basic),
        Some(("header", name)) => name.parse().map(KeySource::Header).map_err(|_| format!("{name:?} is no header name")),
        Some(("query", name)) if !name.is_empty() => Ok(KeySource::Query(name.to_owned())),
        _ => Err(format!("{text:?} is no place for a key")),
    },
    |source| match source {
        KeySource::Bearer => "bearer".to_owned(),
        KeySource::Basic => "basic".to_owned(),
        KeySource::Header(name) => format!("header:{name}"),
        KeySource::Query(name) => format!("query:{name}"),
    }
);

/// A SHA-256 in hexadecimal.
struct Sha(pub(crate) [u8; 32]);

text_setting!(
    Sha,
    "write the 64 hexadecimal digits that `tollgate key NAME` prints",
    "a SHA-256",
    |text| sha(text).map(Sha).ok_or_else(|| "is not a SHA-256".to_owned()),
    |_| "(a digest)".to_owned()
);

fn sha(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(digest)
}

/// What a file gets that names no sources. The last is where Google's own client libraries put a key.
fn default_sources() -> Vec<KeySource> {
    vec![
        KeySource::Bearer,
        KeySource::Header(HeaderName::from_static("x-api-key")),
        KeySource::Query("key".to_owned()),
        KeySource::Basic,
        KeySource::Header(HeaderName::from_static("x-goog-api-key")),
    ]
}

impl Config {
    pub(crate) fn read(section: &Section<'_>) -> Self {
        let anonymous = section.or("anonymous", "refuse".to_owned());
        if !["refuse", "by-ip"].contains(&anonymous.as_str()) {
            section.fault("anonymous", format!("{anonymous:?} is not one of its words"), "write \"refuse\" or \"by-ip\"");
        }
        let header = section.section("header").and_then(|below| {
            let name = below.need::<String>("name");
            below.finish();
            name?
                .parse::<HeaderName>()
                .map_err(|_| section.fault("header", "is no header name", "write name = \"x-user-id\""))
                .ok()
        });
        Self {
            by_address: anonymous == "by-ip",
            read_key_from: section.list_or("read_key_from", default_sources),
            keys: read_keys(section),
            jwt: section.section("jwt").and_then(jwt::Config::read),
            header,
        }
    }
}

fn read_keys(section: &Section<'_>) -> BTreeMap<String, Vec<[u8; 32]>> {
    let mut keys: BTreeMap<String, Vec<[u8; 32]>> = BTreeMap::new();
    for (name, below) in section.named("keys") {
        let digests: Vec<[u8; 32]> = below.list::<Sha>("sha256").unwrap_or_default().into_iter().map(|sha| sha.0).collect();
        if !below.has("sha256") {
            below.fault("sha256", "is missing", "write the line that `tollgate key NAME` prints");
        }
        if digests.iter().any(|digest| keys.values().any(|known| known.contains(digest))) {
            below.fault("sha256", "is the key of another caller, too", "make a key for each caller");
        }
        below.finish();
        keys.insert(name.to_owned(), digests);
    }
    keys
}
