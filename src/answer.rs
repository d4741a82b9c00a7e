//! What the provider said, cleaned for sharing, and what it means.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderName, HeaderValue, StatusCode};

use crate::clock::Timestamp;
use crate::store::{SKEW, StoredAnswer};

/// What an attempt came to. The outcome, never the status alone, drives cache, breaker, retry, lockout and billing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// The question is answered.
    Answered,
    /// An authoritative "there is no such thing".
    NotFound,
    /// Answered, but too vaguely.
    Weak,
    /// The provider says our question is bad.
    Rejected,
    /// The provider asks us to wait: 429 and its kin.
    Busy,
    /// The provider refuses our credential.
    Denied,
    /// Trouble: 5xx, no connection, a body cut short, nonsense.
    Failed,
    /// Sent, and nobody knows.
    Unknown,
}

impl Outcome {
    pub(crate) const ALL: [Self; 8] =
        [Self::Answered, Self::NotFound, Self::Weak, Self::Rejected, Self::Busy, Self::Denied, Self::Failed, Self::Unknown];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::NotFound => "not_found",
            Self::Weak => "weak",
            Self::Rejected => "rejected",
            Self::Busy => "busy",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.word() == word)
    }
}

/// An answer as it is shared: between askers, through process memory and through the store.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) status: StatusCode,
    pub(crate) outcome: Outcome,
    /// Allow-listed headers.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
    pub(crate) stored: Timestamp,
    /// Age it already had when it arrived.
    pub(crate) age: Duration,
    pub(crate) fresh_until: Timestamp,
    pub(crate) revalidate_until: Timestamp,
    pub(crate) error_until: Timestamp,
    /// False where the provider marked it for one asker alone.
    pub(crate) shareable: bool,
    /// No refresh of this entry flies before then (see the cache stage).
    pub(crate) refresh_at: AtomicU64,
    pub(crate) refresh_failures: AtomicU32,
}

impl Kept {
    /// An answer that is shared while it is fresh off the wire and kept nowhere.
    pub(crate) fn passing(status: StatusCode, outcome: Outcome, body: Bytes, now: Timestamp) -> Self {
        Self {
            status,
            outcome,
            headers: Vec::new(),
            body,
            stored: now,
            age: Duration::ZERO,
            fresh_until: now,
            revalidate_until: now,
            error_until: now,
            shareable: true,
            refresh_at: AtomicU64::new(0),
            refresh_failures: AtomicU32::new(0),
        }
    }

    /// The same with headers. Their values and the body are copied into one piece of memory: it is as large as it is weighed, whatever
    /// they were read into, and a hit finds what it sends in one place.
    pub(crate) fn with_headers(self, headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        let length = headers.iter().fold(self.body.len(), |sum, (_, value)| sum + value.len());
        let mut piece = BytesMut::with_capacity(length);
        for (_, value) in &headers {
            piece.extend_from_slice(value.as_bytes());
        }
        piece.extend_from_slice(&self.body);
        let mut body = piece.freeze();
        let moved = |(name, value): (HeaderName, HeaderValue)| {
            let text = body.split_to(value.len());
            (name, HeaderValue::from_maybe_shared(text).unwrap_or(value))
        };
        let headers = headers.into_iter().map(moved).collect();
        Self { headers, body, ..self }
    }

    /// Its age, by RFC 9111.
    pub(crate) fn age_at(&self, now: Timestamp) -> Duration {
        now.since(self.stored).saturating_add(self.age)
    }

    /// Fresh: stored by now (an entry from the future is expired) and inside its lifetime.
    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        self.stored <= now.after(SKEW) && now < self.fresh_until
    }

    pub(crate) fn expires(&self) -> Timestamp {
        self.fresh_until.max(self.revalidate_until).max(self.error_until)
    }

    /// Claims the right to refresh this entry: one claim until `until`, however many stale hits come.
    pub(crate) fn claim_refresh(&self, now: Timestamp, until: Timestamp) -> bool {
        let at = self.refresh_at.load(Ordering::Relaxed);
        at <= now.0 && self.refresh_at.compare_exchange(at, until.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// A refresh failed: the next one waits a second, then twice as long each time, up to a minute.
    pub(crate) fn refresh_failed(&self, now: Timestamp) {
        let failures = self.refresh_failures.fetch_add(1, Ordering::Relaxed).min(6);
        let wait = Duration::from_secs((1u64 << failures).min(60));
        self.refresh_at.store(now.after(wait).0, Ordering::Release);
    }

    /// Bytes it takes in memory, about.
    pub(crate) fn weight(&self) -> u64 {
        let headers: usize = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 64).sum();
        (self.body.len() + headers + 256) as u64
    }

    pub(crate) fn to_stored(&self) -> StoredAnswer {
        StoredAnswer {
            status: self.status.as_u16(),
            outcome: self.outcome.word().to_owned(),
            headers: self
                .headers
                .iter()
                .map(|(name, value)| (name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes())))
                .collect(),
            body: self.body.clone(),
            stored: self.stored,
            age: self.age,
            fresh_until: self.fresh_until,
            revalidate_until: self.revalidate_until,
            error_until: self.error_until,
        }
    }

    /// What a store gave back; nothing, if it is not what we would have stored.
    pub(crate) fn from_stored(stored: StoredAnswer) -> Option<Self> {
        let headers = stored
            .headers
            .iter()
            .map(|(name, value)| Some((name.parse().ok()?, HeaderValue::from_bytes(value).ok()?)))
            .collect::<Option<Vec<_>>>()?;
        let kept = Self {
            status: StatusCode::from_u16(stored.status).ok()?,
            outcome: Outcome::from_word(&stored.outcome)?,
            headers: Vec::new(),
            body: stored.body,
            stored: stored.stored,
            age: stored.age,
            fresh_until: stored.fresh_until,
            revalidate_until: stored.revalidate_until,
            error_until: stored.error_until,
            shareable: true,
            refresh_at: AtomicU64::new(0),
            refresh_failures: AtomicU32::new(0),
        };
        Some(kept.with_headers(headers))
    }
}

/// Who answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A paid call of this request.
    Upstream { stored: bool },
    /// A flight somebody else had started.
    Joined { stored: bool },
    /// Process memory or the store, where it was found fresh or stale at a moment.
    Cache { stale: bool, at: Timestamp },
    /// An answer kept by hand.
    Curated,
    /// What a write was answered before.
    Replay,
    /// A lockout: looks like a stored "not found" and says nothing.
    Lockout,
}

impl Source {
    /// The label in logs and metrics.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Upstream { .. } => "upstream",
            Self::Joined { .. } => "flight",
            Self::Cache { stale: false, .. } => "cache",
            Self::Cache { stale: true, .. } => "stale",
            Self::Curated => "curated",
            Self::Replay => "replay",
            Self::Lockout => "lockout",
        }
    }
}

/// An answer on its way to one asker.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) kept: Arc<Kept>,
    pub(crate) source: Source,
}

impl Answer {
    /// One that was kept, as it was found at `at`.
    pub(crate) fn stored(kept: Arc<Kept>, stale: bool, at: Timestamp) -> Self {
        Self { kept, source: Source::Cache { stale, at } }
    }

    /// Whether whoever asks next will be given it, too.
    pub(crate) fn is_kept(&self) -> bool {
        match self.source {
            Source::Upstream { stored } | Source::Joined { stored } => stored,
            Source::Cache { .. } | Source::Curated | Source::Replay => true,
            Source::Lockout => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::header::{CONTENT_LANGUAGE, CONTENT_TYPE};

    use super::*;

    #[test]
    fn headers_and_body_lie_in_one_piece_and_say_the_same() {
        let headers =
            vec![(CONTENT_TYPE, "text/x".parse().unwrap()), (CONTENT_LANGUAGE, HeaderValue::from_bytes(b"\xff").unwrap())];
        let kept = Kept::passing(StatusCode::OK, Outcome::Answered, "body".into(), Timestamp(0)).with_headers(headers.clone());
        assert_eq!((&kept.headers, &kept.body[..]), (&headers, &b"body"[..]));
        let starts: Vec<*const u8> = kept.headers.iter().map(|(_, value)| value.as_bytes().as_ptr()).collect();
        assert_eq!(starts.iter().map(|start| kept.body.as_ptr() as usize - *start as usize).collect::<Vec<_>>(), [7, 1]);
    }
}
