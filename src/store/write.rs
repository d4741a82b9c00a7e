//! Paid writes as a store keeps them: one send for each intention.
//!
//! An *intention* is what one caller wants done once on one route, known by the key it gave for it. Its record goes through
//!
//! ```text
//! (none) -> claimed -> sending -> done            what was answered, replayed until it is forgotten
//!              |          |
//!              |          +-----> unknown -> done | (none)     settled by an admin or by the provider, never by time
//!              +----------+-----> (none)                       nothing that was sent can have had an effect
//! ```
//!
//! Whoever claims it owns it under a lease that it renews while it lives. A claim whose lease has ended lapses: nothing was sent.
//! *Sending* is written just before the first byte leaves, by its owner, and is durable when the store has answered. What is
//! *sending* when its lease ends is *unknown*: bytes may have left, and nobody is there to say what came of them. That is so by
//! the time alone; no sweeper has to come by.
//!
//! The rules are in `record`, for stores that can run them; the others keep the same rules in their own words.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Digest, OpId, Reply, SKEW, StoredAnswer};
use crate::clock::Timestamp;

pub(crate) mod id;
pub(super) mod record;

/// Identity of an intention: 128 bits of a digest over caller, route and key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Intention(pub u128);

/// Somebody wants to send.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// What for.
    pub intention: Intention,
    /// One id for whoever owns it from now on: claiming twice claims once.
    pub owner: OpId,
    /// What would be sent. Another one under the same intention is refused ([`Claimed::Reused`]).
    pub fingerprint: &'a Digest,
    /// How long the claim outlives its owner.
    pub lease: Duration,
    /// Whether what is unknown may be sent again: to a provider that tells it from another intention.
    pub again: Option<Again>,
    /// Only looks: what is free stays free.
    pub look: bool,
}

/// To whom what is unknown may be sent again, and until when. What was sent elsewhere, or so long ago that it is forgotten there,
/// would be done once more; and nothing is sent more often than [`MOST_SENDS`] times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// It must have been sent first after then.
    pub after: Timestamp,
    /// A digest of where it must have been sent ([`About::to`]).
    pub to: u128,
}

/// As often something is sent without a word of what came of it. After that only an admin settles it.
pub const MOST_SENDS: usize = 32;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// It is the owner's. Nothing that was sent for it has had an effect.
    Owned {
        /// How often it was settled as not sent: another turn is another intention to the provider.
        turn: u32,
    },
    /// It is the owner's, and was sent before: with what effect is unknown. Only to who may send it [`again`](Claim::again).
    Again {
        /// As above.
        turn: u32,
        /// What was written down when it was sent.
        about: About,
    },
    /// Nobody's. Only to who [`look`](Claim::look)s.
    Free,
    /// Somebody else's, who may still be at it.
    Held {
        /// Until its lease ends, if it is not renewed.
        left: Duration,
    },
    /// It has been done: this was answered.
    Done(StoredAnswer),
    /// It was claimed for something else.
    Reused,
    /// It was sent, and nobody knows what came of it.
    Unknown,
    /// The store has lost records, and nobody has said yet that this is known: nothing may be sent.
    Lost,
}

/// The owner is about to send.
#[derive(Clone, Debug)]
pub struct Sending<'a> {
    /// What for.
    pub intention: Intention,
    /// By whom.
    pub owner: OpId,
    /// The lease from now on.
    pub lease: Duration,
    /// How long bytes may be under way after the lease has ended: no admin settles before.
    pub timeout: Duration,
    /// What an admin is told.
    pub about: &'a About,
}

/// What is known of a write that is sent: for whoever has to find out what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Its route.
    pub route: String,
    /// Whom it is sent to.
    pub provider: String,
    /// Who wants it, as reports name callers.
    pub caller: String,
    /// The `X-Request-Id` of the request that sent it.
    pub request: String,
    /// When it was sent first: from then on the provider knows its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Timestamp>,
    /// A digest of where it was sent, if a key went along (32 hexadecimal digits).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The key the provider was given for it, if it takes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_key: Option<String>,
    /// The money set aside for it, by the ids of its reservations (32 hexadecimal digits each): one for every time it was sent
    /// without a word of what came of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<String>,
    /// How much each of them is, in micro-units.
    pub micros: u64,
    /// Of which currency (ISO 4217); empty if it costs nothing.
    pub currency: String,
}

impl About {
    /// Whether it may be sent again, as far as can be seen here.
    pub(super) fn may_be_sent_again(&self, again: Again, now: Timestamp) -> bool {
        let is_remembered = self.first.is_some_and(|first| again.after < first && first <= now.after(SKEW));
        is_remembered && self.to == Some(format!("{:032x}", again.to)) && self.reservations.len() < MOST_SENDS
    }

    /// The ids of its reservations.
    #[must_use]
    pub fn reservations(&self) -> Vec<OpId> {
        self.reservations.iter().filter_map(|id| u128::from_str_radix(id, 16).ok().map(OpId)).collect()
    }

    /// With these reservations.
    #[must_use]
    pub fn with_reservations(mut self, ids: Vec<OpId>) -> Self {
        self.reservations = ids.into_iter().map(|id| format!("{:032x}", id.0)).collect();
        self
    }
}

/// How a flight ends its write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Answered, for good: replayed until the answer expires.
    Done(StoredAnswer),
    /// Nothing that its owner has sent can have had an effect: whoever comes next may send, unless the owner has taken it over from
    /// another who had sent it. Then it is unknown again.
    Free,
    /// Nobody knows.
    Unknown,
}

/// A write that is being sent, or of which nobody knows what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// What for.
    pub intention: Intention,
    /// Who sent it.
    pub owner: OpId,
    /// When *sending* was written last.
    pub since: Timestamp,
    /// Nobody is at it any more.
    pub unknown: bool,
    /// From when on its owner is not at it any more. Its provider may be for a while longer.
    pub settle_from: Timestamp,
    /// What is known of it.
    pub about: About,
}

/// What an admin has found out about a write.
#[derive(Clone, Debug)]
pub struct Settling {
    /// Which.
    pub intention: Intention,
    /// Of whom: of another owner's sending under the same intention nothing was found out.
    pub owner: OpId,
    /// One id for this settling: settling twice settles once.
    pub by: OpId,
    /// What.
    pub found: Found,
}

/// What was found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It was sent: whoever asks again gets this until it expires.
    Sent(StoredAnswer),
    /// It was not: whoever asks again sends. Until then another turn is remembered.
    NotSent(Timestamp),
}

/// What came of settling.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "one a settling, and mostly the large one")]
pub enum Settled {
    /// It is settled.
    Yes(About),
    /// Its owner may still be at it.
    NotBefore(Timestamp),
    /// There is no such write that is unknown.
    None,
}

/// Writes. Every operation is durable when it is answered, as far as the store is.
pub trait Writes: Send + Sync + 'static {
    /// Claims an intention, or says what stands in the way.
    fn claim<'a>(&'a self, claim: Claim<'a>) -> Reply<'a, Claimed>;

    /// Writes *sending*, just before the first byte: by the owner alone, and only while more than half of its lease is left. False
    /// if it may not send.
    fn sending<'a>(&'a self, sending: Sending<'a>) -> Reply<'a, bool>;

    /// Renews the owner's lease. False if it is no longer its own.
    fn prolong(&self, intention: Intention, owner: OpId, lease: Duration) -> Reply<'_, bool>;

    /// Ends a write by its owner, also one that has become unknown meanwhile. False if it is no longer its own: an admin has
    /// settled it, or its claim has lapsed and is another's. Ending it twice in the same way ends it once.
    fn finish(&self, intention: Intention, owner: OpId, end: End) -> Reply<'_, bool>;

    /// The writes that are sending or unknown, the oldest first, so many at most.
    fn unresolved(&self, most: usize) -> Reply<'_, Vec<Unresolved>>;

    /// Settles what is unknown.
    fn resolve(&self, settling: Settling) -> Reply<'_, Settled>;
}
