//! Where both roles meet: the right to fly for a key across instances, and what a flight leaves behind.
//!
//! Entering looks for an answer and takes the lease in one step; landing keeps the answer, gives the lease back and tells
//! whoever waits in one step. So nobody can come between a look and a lease, and an answer is there before the lease is free.
//! A store that belongs to one process has nobody to exclude: there every entry is granted (the seat map of
//! `flight.rs` lets in one flight a key).
//!
//! A lease saves calls and guards no money: at worst there is one call too many.

use std::time::Duration;

use bytes::Bytes;

use super::{Digest, OpId, Reply, StoredAnswer};
use crate::clock::Timestamp;

/// A flight at the door.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// One id for the whole flight: its lease is known by it, and entering twice takes one lease.
    pub flight: OpId,
    /// What it would ask.
    pub key: &'a Digest,
    /// How long the lease lasts unless it is renewed.
    pub ttl: Duration,
    /// Whether a fresh answer that is kept will do.
    pub look: bool,
    /// Since when it waits for another's flight ([`Entered::Held`]): what has landed since is meant for it, too.
    pub waiting: Option<Timestamp>,
}

/// What a flight meets on entering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entered {
    /// There is an answer: a fresh one, or the one this flight has waited for.
    Found(StoredAnswer),
    /// The lease is its own, taken at this moment of the store's clock.
    Taken(Timestamp),
    /// Another flight has it. Whoever waits enters again with `waiting = since`, when told or when `left` is over.
    Held {
        /// The moment of the store's clock from which on a landing is meant for this flight, too.
        since: Timestamp,
        /// Until the lease ends, if its holder does not renew it.
        left: Duration,
    },
    /// The flight it has waited for has ended, and left this word ([`Leave::Word`]).
    Ended(Bytes),
    /// Answers to this question are for one asker each, for the time being: fly without a lease.
    Alone,
}

/// A flight at its end.
#[derive(Clone, Debug)]
pub struct Landing<'a> {
    /// The id it entered by.
    pub flight: OpId,
    /// Its route.
    pub route: &'a str,
    /// What it asked.
    pub key: &'a Digest,
    /// When it took its lease ([`Entered::Taken`]): what was purged since then is not kept.
    pub began: Timestamp,
    /// The answer to keep, by the rules of [`keep`](super::Records::keep).
    pub keep: Option<StoredAnswer>,
    /// What those who wait are left.
    pub leave: Leave,
}

/// What a flight leaves to those who wait for it. A flight that has lost its lease leaves nothing to anyone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Nothing: the next of them may fly.
    Nothing,
    /// The answer that is kept.
    Kept,
    /// An answer that is not kept, or a failure: for those who wait now, and for nobody who comes later.
    Word(Bytes),
    /// The answer was for its asker alone; everyone flies without a lease for this long.
    Alone(Duration),
}

/// Leases, in one step with the answers they are for.
pub trait Leases: Send + Sync + 'static {
    /// Looks, and takes the lease if there is nothing to find.
    fn enter<'a>(&'a self, entry: Entry<'a>) -> Reply<'a, Entered>;

    /// Keeps a lease for another `ttl`. False if it is no longer the flight's own.
    fn renew<'a>(&'a self, flight: OpId, key: &'a Digest, ttl: Duration) -> Reply<'a, bool>;

    /// Keeps the answer, gives the lease back, tells whoever waits. False if the answer was purged meanwhile and is not kept.
    fn land<'a>(&'a self, landing: Landing<'a>) -> Reply<'a, bool>;
}
