//! What a provider's headers say, and the few that are passed on.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::clock::Timestamp;
use crate::provider::template::Template;

/// An allow-list: what is not here goes to nobody.
const ALLOWED: [HeaderName; 2] = [header::CONTENT_TYPE, header::CONTENT_LANGUAGE];
/// What was made by a write has a place and a version.
const ALLOWED_OF_WRITES: [HeaderName; 2] = [header::LOCATION, header::ETAG];

/// A wait longer than a day is told as a day: what lies beyond is a mistake, not a plan.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

pub(super) fn allowed(
    headers: &HeaderMap,
    writes: bool,
    reveals: impl Fn(&HeaderValue) -> bool,
) -> Vec<(HeaderName, HeaderValue)> {
    let more = ALLOWED_OF_WRITES.iter().filter(|_| writes);
    let found = ALLOWED.iter().chain(more).filter_map(|name| Some((name.clone(), headers.get(name)?.clone())));
    found.filter(|(_, value)| !reveals(value)).collect()
}

/// Whether a coding is left that was not undone.
pub(super) fn is_coded(headers: &HeaderMap) -> bool {
    headers.get_all(header::CONTENT_ENCODING).iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// A valid `Age`; anything else is none.
pub(super) fn age(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(header::AGE).and_then(|value| value.to_str().ok()).and_then(|text| text.parse::<u32>().ok());
    Duration::from_secs(u64::from(seconds.unwrap_or_default()))
}

/// `Retry-After` in seconds or as a date; of several the longest. What is malformed, zero or past is none.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let waits = headers.get_all(header::RETRY_AFTER).iter().filter_map(|value| wait(value.to_str().ok()?.trim(), now));
    waits.max().map(|wait| wait.min(LONGEST_WAIT))
}

fn wait(text: &str, now: Timestamp) -> Option<Duration> {
    let wait = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number holds are a very long wait.
        text.parse::<u64>().map_or(LONGEST_WAIT, Duration::from_secs)
    } else {
        let date = httpdate::parse_http_date(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        date.checked_sub(Duration::from_micros(now.0))?
    };
    (!wait.is_zero()).then_some(wait)
}

/// What the provider allows to be done with its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// For more than the one asker.
    pub(super) shareable: bool,
    pub(super) storable: bool,
    pub(super) may_be_stale: bool,
}

impl Policy {
    /// A cookie is the provider's with us, not with whoever asked: it is taken out, and those who joined the flight share the
    /// rest; but an answer that came with one is kept for nobody. The rest counts only where the provider's `Cache-Control`
    /// is respected: some mark everything private.
    pub(super) fn read(headers: &HeaderMap, respect: bool, template: &Template) -> Self {
        let cookie = headers.contains_key(header::SET_COOKIE);
        if !respect {
            return Self { shareable: true, storable: !cookie, may_be_stale: true };
        }
        let directives = directives(headers);
        let says = |word: &str| directives.iter().any(|directive| directive == word);
        let shareable = !says("private") && !says("no-store") && !varies(headers, template);
        Self {
            shareable,
            storable: shareable && !cookie && !says("no-cache"),
            may_be_stale: !says("must-revalidate") && !says("proxy-revalidate") && !says("no-cache"),
        }
    }
}

fn directives(headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all(header::CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let words = lines.flat_map(|line| line.split(',')).filter_map(|part| part.split('=').next());
    words.map(|word| word.trim().to_ascii_lowercase()).collect()
}

/// `Vary` on something that is not part of every request we send.
fn varies(headers: &HeaderMap, template: &Template) -> bool {
    let sent = |name: &str| {
        ["accept", "accept-encoding", "user-agent", "host", "content-type", "authorization"].contains(&name)
            || template.headers.iter().any(|(known, _)| known.as_str() == name)
    };
    let lines = headers.get_all(header::VARY).iter().map(|value| value.to_str().unwrap_or("*").to_ascii_lowercase());
    lines.collect::<Vec<_>>().iter().flat_map(|line| line.split(',')).map(str::trim).any(|name| !name.is_empty() && !sent(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_996_800_000_000); // 2026-11-30

    fn read(values: &[&str]) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::RETRY_AFTER, value.parse().unwrap());
        }
        retry_after(&headers, NOW).map(|wait| wait.as_secs())
    }

    #[test]
    fn b_04_every_retry_after_is_a_wait_or_none() {
        for nothing in ["0", "-5", "1.5", "abc", "", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            assert_eq!(read(&[nothing]), None, "{nothing}");
        }
        assert_eq!(read(&["120", "60"]), Some(120));
        for day in ["9223372037", "999999999999999999999999999999", "18446744073709551615", "Fri, 31 Dec 9999 23:59:59 GMT"] {
            assert_eq!(read(&[day]), Some(86_400), "{day}");
        }
    }

    fn policy(name: HeaderName, value: &str, respect: bool) -> Policy {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        Policy::read(&headers, respect, &Template::default())
    }

    #[test]
    fn c_04_what_is_for_one_asker_is_not_shared() {
        for respect in [false, true] {
            let cookie = policy(header::SET_COOKIE, "s=1", respect);
            assert!(cookie.shareable && !cookie.storable);
        }
        assert!(!policy(header::CACHE_CONTROL, "max-age=60, Private", true).shareable);
        assert!(policy(header::CACHE_CONTROL, "private", false).shareable);
        assert!(!policy(header::CACHE_CONTROL, "no-store", true).shareable);
        assert!(!policy(header::VARY, "Origin", true).shareable);
        assert!(policy(header::VARY, "Accept-Encoding", true).shareable);
        let revalidate = policy(header::CACHE_CONTROL, "must-revalidate", true);
        assert!(revalidate.storable && !revalidate.may_be_stale);
    }

    #[test]
    fn an_age_is_seconds_or_nothing() {
        for (text, seconds) in [("60", 60), ("-1", 0), ("1.5", 0), ("99999999999", 0)] {
            let mut headers = HeaderMap::new();
            headers.insert(header::AGE, text.parse().unwrap());
            assert_eq!(age(&headers).as_secs(), seconds, "{text}");
        }
    }
}
