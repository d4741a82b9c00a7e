//! Where the gateway keeps what must outlive a request.
//!
//! Two roles behind small traits. *Coordination* ([`Coordination`]: buckets, pauses) may be lost: the worst is a little too much or
//! too little let through. *Records* ([`Records`]: answers, purge generations, switches, lockouts; [`money::Money`]: caps and the
//! ledger; [`write::Writes`]: one send for each intention) must not be. [`lease::Leases`] is where both meet, and [`event::Event`] what a shared store tells of other
//! instances.
//!
//! Every operation is atomic, is given a deadline by its caller, and is idempotent by its [`OpId`] where a repeat would count
//! twice: an operation that timed out may still have run. (Buckets in process memory cannot time out and need no id.)
//!
//! | backend | coordination | records |
//! |---|---|---|
//! | [`memory`] | process memory | process memory |
//! | [`sqlite`] | process memory | one file, WAL, durable before the answer is given |
//! | [`redis`] | one Redis, shared by all instances | the same Redis, as durable as it is set to be |
//!
//! The same conformance tests run against every backend.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;

use crate::clock::Timestamp;

mod bucket;
pub mod event;
pub(crate) mod handle;
pub mod lease;
mod lockout;
pub mod memory;
pub mod money;
mod outage;
pub mod redis;
pub mod sqlite;
pub mod write;

#[cfg(test)]
mod conformance;

/// How long an operation is remembered by its id. A repeat comes within the patience of one request, so this is ample.
const OPS_REMEMBERED: Duration = Duration::from_mins(10);

/// How far clocks may be apart that agree: instances set theirs by the shared store's, and the way there takes its time. What was
/// stored later than that lies in the future, and nobody knows how old it is.
pub const SKEW: Duration = Duration::from_secs(1);

/// What every store operation returns: a boxed future, so that backends stay behind `dyn`.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Identity of one operation: the same id twice has the effect of once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpId(pub u128);

impl OpId {
    /// A fresh random id.
    #[must_use]
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().as_u128())
    }
}

/// Why a store could not do what it was asked.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum StoreError {
    /// No answer within the caller's deadline. The operation may still have run.
    #[error("the store did not answer in time")]
    Timeout,
    /// The store refused or failed; the text is for logs and holds no user data.
    #[error("the store failed: {0}")]
    Failed(String),
    /// Another process holds the store.
    #[error("{0}")]
    Held(String),
}

/// A SHA-256: the key of an answer, or any identity too private to be stored as it is.
pub type Digest = [u8; 32];

// === Coordination ===

/// One token bucket as the caller describes it. Amounts are micro-tokens: 1 token = 1,000,000.
///
/// A bucket's identity is `id` alone. Its numbers may change between calls: raising the capacity adds no tokens, lowering it
/// clamps what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Who or what is limited: a digest of route, kind and caller, cut to 128 bits.
    pub id: u128,
    /// Capacity in micro-tokens; at least `cost`, else it can never pass.
    pub capacity: u64,
    /// Refill: `refill` micro-tokens every `per` (both above zero), continuous, computed in integers without loss.
    pub refill: u64,
    /// Period of the refill.
    pub per: Duration,
    /// What this request takes, in micro-tokens.
    pub cost: u64,
}

impl Bucket {
    /// A bucket of whole tokens, of which a request takes one.
    #[must_use]
    pub fn whole(id: u128, burst: u32, count: u64, per: Duration) -> Self {
        const TOKEN: u64 = 1_000_000;
        Self { id, capacity: u64::from(burst) * TOKEN, refill: count.saturating_mul(TOKEN), per, cost: TOKEN }
    }
}

/// What came of asking for tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// All buckets were debited. One entry a bucket, in the order asked.
    Yes(Vec<Level>),
    /// At least one bucket could not pay, and **none** was debited.
    No {
        /// Index of the bucket with the longest wait.
        bucket: usize,
        /// Until all would pass if nobody else asked: exact, never too short. [`Duration::MAX`] if they never can.
        wait: Duration,
        /// Levels, untouched.
        levels: Vec<Level>,
    },
}

/// What is in a bucket after the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Micro-tokens left.
    pub left: u64,
    /// Until the bucket is full again.
    pub full_in: Duration,
}

/// State shared for the sake of order, not of money: may be lost.
pub trait Coordination: Send + Sync + 'static {
    /// Tests all buckets, then debits all or none. A refused request is free. `debit = false` only looks.
    fn take<'a>(&'a self, op: OpId, buckets: &'a [Bucket], debit: bool) -> Reply<'a, Taken>;

    /// Keeps calls away from `provider` until `until` (a provider's own `Retry-After`); a shorter pause never cuts a longer.
    fn pause<'a>(&'a self, provider: &'a str, until: Timestamp) -> Reply<'a, ()>;

    /// Until when `provider` is paused, if it is.
    fn paused<'a>(&'a self, provider: &'a str) -> Reply<'a, Option<Timestamp>>;
}

// === Records ===

/// An answer as it is kept: cleaned for sharing, decoded, with its times fixed when it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAnswer {
    /// The provider's status code.
    pub status: u16,
    /// What the answer means, as its wire word (`answered`, `not_found`, `weak`, `rejected`).
    pub outcome: String,
    /// Allow-listed headers, lower-case names.
    pub headers: Vec<(String, Bytes)>,
    /// The decoded body.
    pub body: Bytes,
    /// When it was stored.
    pub stored: Timestamp,
    /// Age it already had when it arrived (a valid upstream `Age`).
    pub age: Duration,
    /// Fresh until then.
    pub fresh_until: Timestamp,
    /// May be served stale while one refresh flies, until then (equal to `fresh_until`: never).
    pub revalidate_until: Timestamp,
    /// May be served stale on provider trouble, until then (equal to `fresh_until`: never).
    pub error_until: Timestamp,
}

impl StoredAnswer {
    /// When nothing may use it any more, and the store may forget it.
    #[must_use]
    pub fn expires(&self) -> Timestamp {
        self.fresh_until.max(self.revalidate_until).max(self.error_until)
    }

    /// Fresh: stored by now (an entry from the future is expired) and inside its lifetime.
    #[must_use]
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.stored <= now.after(SKEW) && now < self.fresh_until
    }
}

/// What one maker says of a kill switch, and why.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Switch {
    /// `on`, `cached` or `off`.
    pub state: SwitchState,
    /// Free text from whoever set it.
    pub reason: String,
    /// When it was set, in seconds since the epoch.
    pub since: u64,
    /// From then on it no longer stands, in seconds since the epoch: what a budget has stopped ends with its period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// What a kill switch lets through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchState {
    /// Everything.
    #[default]
    On,
    /// Only what is stored; nothing paid.
    Cached,
    /// Nothing.
    Off,
}

/// The numbers of a lockout, as the route configures them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockoutRule {
    /// Confirmed misses within `window` that lock, and guesses in flight at most.
    pub misses: u32,
    /// A true rolling window.
    pub window: Duration,
    /// The first lock; each following one doubles.
    pub first: Duration,
    /// No lock is longer.
    pub max: Duration,
}

/// May this guess go on?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guess {
    /// It is counted as in flight until it is settled or `expires`.
    Admitted,
    /// Confirmed misses have locked this subject until then. The attempt is counted as in flight all the same, and changes nothing else.
    Locked(Timestamp),
    /// Misses and guesses in flight together fill the allowance: not locked, only too fast.
    Full,
}

/// A subject's lockout, for the admin API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LockoutState {
    /// Confirmed misses inside the window.
    pub misses: u32,
    /// Guesses in flight.
    pub in_flight: u32,
    /// Locked until (microseconds since the epoch), if it is.
    pub locked_until: Option<u64>,
    /// Locks so far that still make the next one longer.
    pub locks: u32,
}

/// State that must not be lost.
pub trait Records: Send + Sync + 'static {
    /// The answer kept under `key`, unless its last use has passed.
    fn answer<'a>(&'a self, key: &'a Digest) -> Reply<'a, Option<StoredAnswer>>;

    /// Keeps an answer. An answer stored later (by `stored`) is never replaced by an earlier one, unless it is from the
    /// future: after the clock was set back it would stay too long.
    fn keep<'a>(&'a self, route: &'a str, key: &'a Digest, answer: StoredAnswer) -> Reply<'a, ()>;

    /// Forgets one answer of a route: it was purged. A flight for it that is under way leaves nothing behind.
    fn forget<'a>(&'a self, route: &'a str, key: &'a Digest) -> Reply<'a, ()>;

    /// The route's purge generation: part of every key. Zero until it is first raised.
    fn generation<'a>(&'a self, route: &'a str) -> Reply<'a, u64>;

    /// Raises the generation, once per `op`, and returns the new one.
    fn raise_generation<'a>(&'a self, op: OpId, route: &'a str) -> Reply<'a, u64>;

    /// All switches that were ever set, by route name or `all`, behind which `#MAKER` stands where an admin is not the maker.
    fn switches(&self) -> Reply<'_, Vec<(String, Switch)>>;

    /// Sets a switch, durably. Returns its revision: of two, the higher one is in force. (Counted from the start of the process
    /// where the store belongs to one.)
    fn set_switch<'a>(&'a self, name: &'a str, switch: Switch) -> Reply<'a, u64>;

    /// Begins a guess for every subject at once. The worst verdict wins (locked over full): admitted, it is in flight for all; locked,
    /// for those that are locked and have room; full, for none. `expires` is the flight's deadline, after which an unsettled guess no
    /// longer counts.
    fn guess<'a>(&'a self, op: OpId, subjects: &'a [Digest], rule: LockoutRule, expires: Timestamp) -> Reply<'a, Guess>;

    /// Settles a guess by its id, once. A miss is added to each subject's window and locks it when the window is full;
    /// locks double while the previous one ended less than `window` plus its own length ago. A lock uses up the misses that led
    /// to it; a miss settled during one is not counted.
    fn settle_guess<'a>(&'a self, op: OpId, subjects: &'a [Digest], rule: LockoutRule, missed: bool) -> Reply<'a, ()>;

    /// What is known about a subject.
    fn lockout<'a>(&'a self, subject: &'a Digest, rule: LockoutRule) -> Reply<'a, LockoutState>;

    /// Forgets a subject's misses and lock. Guesses in flight still count.
    fn clear_lockout<'a>(&'a self, subject: &'a Digest) -> Reply<'a, ()>;

    /// Ends the store in order: everything accepted so far is kept.
    fn close(&self) -> Reply<'_, ()>;
}
