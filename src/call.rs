//! What a request becomes on its way down: `Request` → `Ask` (who) → `Call` (what) → `Attempt` (once on the wire).

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::request::Parts;

use crate::clock::{Timestamp, micros};
use crate::money::savings::notes::Notes;
use crate::money::toll::Toll;
use crate::question::Value;
use crate::shared::Era;
use crate::stage::idempotency::key::Key;
use crate::stage::idempotency::write::Write;
use crate::store::Digest;

/// A request at its route's door.
pub(crate) struct Request {
    pub(crate) head: Parts,
    pub(crate) body: Body,
    /// The peer of the connection.
    pub(crate) peer: IpAddr,
    /// The decoded path; empty where the route's path holds no field.
    pub(crate) path: Box<[String]>,
    pub(crate) journey: Arc<Journey>,
}

/// A body, not yet read.
pub(crate) enum Body {
    Incoming(hyper::body::Incoming),
    /// Given whole: `explain`.
    Whole(Bytes),
}

/// Who asks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The configured name, the token's subject, or the address.
    pub(crate) name: String,
    /// Digest of kind and name: buckets, log lines.
    pub(crate) id: u128,
    /// It showed one of the configured keys.
    pub(crate) has_key: bool,
}

impl Caller {
    pub(crate) fn new(kind: &str, name: impl Into<String>) -> Arc<Self> {
        let name = name.into();
        let id = crate::stage::limits::identity(&[b"caller", kind.as_bytes(), name.as_bytes()]);
        Arc::new(Self { name, id, has_key: kind == "key" })
    }

    /// As reports of money name it: by its name if the config has it, else by the first digits of its digest.
    pub(crate) fn shown(&self) -> String {
        if self.has_key { self.name.clone() } else { format!("{:08x}", self.id >> 96) }
    }
}

/// A request with its caller, not yet understood.
pub(crate) struct Ask {
    pub(crate) request: Box<Request>,
    pub(crate) caller: Arc<Caller>,
}

/// What is asked, in the order of the route's fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question(pub(crate) Vec<Option<Value>>);

impl Question {
    pub(crate) fn value(&self, index: usize) -> Option<&Value> {
        self.0.get(index)?.as_ref()
    }
}

/// What the caller's `Cache-Control` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Directives {
    /// `no-cache` or `max-age=0`: a fresh answer, if the route grants refreshes. Below the cache: it was granted.
    pub(crate) refresh: bool,
    /// A stored answer or none at all: `only-if-cached`, HEAD, a switch in position `cached`.
    pub(crate) only_if_cached: bool,
    /// `max-age=N`: nothing older.
    pub(crate) max_age: Option<Duration>,
}

/// A question with its caller, directives and deadline. One pointer: it is moved through every stage, and a flight takes it along.
#[derive(Clone)]
pub(crate) struct Call(Arc<Facts>);

/// What a call is made of.
#[derive(Clone)]
pub(crate) struct Facts {
    pub(crate) question: Question,
    pub(crate) key: Digest,
    pub(crate) caller: Arc<Caller>,
    pub(crate) directives: Directives,
    /// How long this caller waits, counted from its arrival.
    pub(crate) wait: Duration,
    pub(crate) journey: Arc<Journey>,
    /// The answer depends on the moment it is asked: it is shared in flight and never kept.
    pub(crate) volatile: bool,
    /// Its flight is nobody else's: it takes no lease and looks for none.
    pub(crate) alone: bool,
    /// What had been purged by then; the flight of an earlier era stores nothing.
    pub(crate) era: Era,
    /// What its caller calls it, where it is a write.
    pub(crate) idempotency_key: Option<Key>,
    /// Below `idempotency`: the write it is.
    pub(crate) write: Option<Arc<Write>>,
}

impl Deref for Call {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.0
    }
}

impl Call {
    pub(crate) fn new(facts: Facts) -> Self {
        Self(Arc::new(facts))
    }

    /// The same call with another patience.
    pub(crate) fn waiting(&self, wait: Duration) -> Self {
        Self::new(Facts { wait, ..(*self.0).clone() })
    }

    /// The same question on a journey of its own, without its caller's wishes.
    pub(crate) fn in_background(&self, journey: Arc<Journey>, wait: Duration) -> Self {
        Self::new(Facts { journey, wait, directives: Directives::default(), ..(*self.0).clone() })
    }

    /// Says below the cache whether a fresh answer was granted, which is not the same as wished for.
    pub(crate) fn granted(mut self, refresh: bool) -> Self {
        if self.directives.refresh != refresh {
            Arc::make_mut(&mut self.0).directives.refresh = refresh;
        }
        self
    }

    /// The same call as a write that may be sent.
    pub(crate) fn sending(mut self, write: Arc<Write>) -> Self {
        Arc::make_mut(&mut self.0).write = Some(write);
        self
    }

    /// The same call on a flight nobody shares.
    pub(crate) fn alone(mut self) -> Self {
        Arc::make_mut(&mut self.0).alone = true;
        self
    }

    /// What is left of the caller's patience.
    pub(crate) fn remaining(&self, now: Timestamp) -> Duration {
        self.wait.saturating_sub(now.since(self.journey.started))
    }
}

/// One attempt on the wire.
pub(crate) struct Attempt {
    pub(crate) call: Call,
    /// What is set aside for it, if it costs something.
    pub(crate) toll: Option<Toll>,
}

/// Identity of a request: the caller's own, or one of ours, written out only where it is read.
#[derive(Clone, Debug)]
pub(crate) enum RequestId {
    Callers(HeaderValue),
    Ours(uuid::Uuid),
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Callers(id) => f.write_str(id.to_str().unwrap_or_default()),
            Self::Ours(id) => id.as_hyphenated().fmt(f),
        }
    }
}

/// What is learnt about one request on its way, for its log line: who, how many attempts, where the time went.
#[derive(Debug)]
pub(crate) struct Journey {
    pub(crate) id: RequestId,
    /// On the clock's ticks.
    pub(crate) started: Timestamp,
    attempts: AtomicU32,
    upstream_micros: AtomicU64,
    store_micros: AtomicU64,
    store_calls: AtomicU32,
    caller: OnceLock<Arc<Caller>>,
    remaining: OnceLock<HeaderValue>,
    /// What the question costs, where that depends on the question.
    price: AtomicU64,
    /// For what it saved.
    pub(crate) notes: Notes,
}

impl Journey {
    pub(crate) fn new(id: RequestId, started: Timestamp) -> Arc<Self> {
        Arc::new(Self {
            id,
            started,
            attempts: AtomicU32::new(0),
            upstream_micros: AtomicU64::new(0),
            store_micros: AtomicU64::new(0),
            store_calls: AtomicU32::new(0),
            caller: OnceLock::new(),
            remaining: OnceLock::new(),
            price: AtomicU64::new(0),
            notes: Notes::default(),
        })
    }

    pub(crate) fn set_caller(&self, caller: &Arc<Caller>) {
        let _ = self.caller.set(Arc::clone(caller));
    }

    pub(crate) fn caller(&self) -> Option<&Arc<Caller>> {
        self.caller.get()
    }

    /// What the response says of limits: what remains.
    pub(crate) fn set_remaining(&self, remaining: HeaderValue) {
        let _ = self.remaining.set(remaining);
    }

    pub(crate) fn remaining(&self) -> Option<&HeaderValue> {
        self.remaining.get()
    }

    pub(crate) fn set_price(&self, micros: u64) {
        self.price.store(micros, Ordering::Relaxed);
    }

    /// What the question costs, where that depends on the question.
    pub(crate) fn price(&self) -> Option<u64> {
        Some(self.price.load(Ordering::Relaxed)).filter(|price| *price > 0)
    }

    pub(crate) fn attempt(&self, took: Duration) {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        self.upstream_micros.fetch_add(micros(took), Ordering::Relaxed);
    }

    pub(crate) fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    pub(crate) fn upstream_micros(&self) -> u64 {
        self.upstream_micros.load(Ordering::Relaxed)
    }

    pub(crate) fn store_call(&self, took: Duration) {
        self.store_calls.fetch_add(1, Ordering::Relaxed);
        self.store_micros.fetch_add(micros(took), Ordering::Relaxed);
    }

    pub(crate) fn store_time(&self) -> Duration {
        Duration::from_micros(self.store_micros.load(Ordering::Relaxed))
    }

    pub(crate) fn store_calls(&self) -> u32 {
        self.store_calls.load(Ordering::Relaxed)
    }
}
