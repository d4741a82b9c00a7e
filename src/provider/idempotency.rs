//! How a provider tells one intention from another, if it does: a key of ours in a header, under which it does a thing once.
//!
//! What it answers to a repeat says something of the first request only if it comes from behind its own record of keys: marked as a
//! replay, or with a status that it does not give before. A rate limit, a refused credential or a refused parameter in front of
//! that record says nothing, and settles nothing.
//!
//! It forgets keys. What is asked again later would be done once more.

use std::time::Duration;

use http::{HeaderMap, HeaderName, StatusCode};

use super::outcome::statuses;
use crate::config::section::Section;

/// `idempotency` of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Idempotency {
    /// Where our key goes.
    pub(crate) header: HeaderName,
    /// What marks a replay.
    replayed: Option<HeaderName>,
    /// Statuses that it gives only when it has looked at the key.
    conclusive: Vec<(u16, u16)>,
    /// How long it knows a key, from the first request on.
    pub(crate) remembers: Duration,
}

impl Idempotency {
    pub(crate) fn read(section: &Section<'_>) -> Option<Self> {
        let below = section.section("idempotency")?;
        let name = |key| {
            let text: String = below.get(key)?;
            let name = text.parse::<HeaderName>().ok();
            if name.is_none() {
                below.fault(key, format!("{text:?} is no header name"), "write a name such as \"Idempotency-Key\"");
            }
            name
        };
        if !below.has("header") {
            below.fault("header", "is missing", "write the header that takes the key, such as \"Idempotency-Key\"");
        }
        let (header, replayed) = (name("header"), name("replayed"));
        let mut conclusive = Vec::new();
        for text in below.list_or("conclusive", || vec!["2xx".to_owned()]) {
            match statuses(&text) {
                Some(range) => conclusive.push(range),
                None => below.fault("conclusive", format!("{text:?} is no status"), "write \"200\", \"2xx\" or \"500-599\""),
            }
        }
        let remembers = below.or("remembers", Duration::from_hours(24));
        below.finish();
        Some(Self { header: header?, replayed, conclusive, remembers })
    }

    /// Whether an answer to a repeat says what came of the first request.
    pub(crate) fn concludes(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        let replayed = self.replayed.as_ref().and_then(|name| headers.get(name));
        replayed.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
            || self.conclusive.iter().any(|(low, high)| (*low..=*high).contains(&status.as_u16()))
    }
}
