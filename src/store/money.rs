//! Money as a store keeps it: caps, reservations, the ledger, what was saved.
//!
//! Before an attempt's first byte its price is reserved against every cap that is over it, all at once or not at all; afterwards it
//! is settled, once, by its id:
//!
//! ```text
//! open -> billed | not_billed | unknown        unknown -> billed | not_billed        nothing else
//! ```
//!
//! What is open or unknown counts as spent. The reservation is the ledger's row: it is there before bytes are sent, and is closed
//! by settling. A reservation whose instance has died becomes unknown, not free. Settling an id nobody knows leaves a tombstone:
//! a reserve that comes late, after its gateway had given it up, is then refused.
//!
//! Amounts are micro-units of one currency a cap, below 2^53 so that stores whose numbers are doubles count exactly. A window is
//! part of a cap's name: counters are never reset.

use std::time::Duration;

use super::{OpId, Reply};
use crate::clock::Timestamp;

pub(super) mod ledger;

/// One limit on spending in one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Whose money and when: `route:geocode|USD|day:2026-11-30@America/Los_Angeles`. Identity of the counter; a caller is in it
    /// only as a digest.
    pub name: String,
    /// No more than this, in micro-units.
    pub most: u64,
    /// When its window ends: the counter may be forgotten forty days later, and reserving in it then fails.
    pub ends: Timestamp,
}

/// What one attempt is about: the ledger's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The day it belongs to, in its route's zone (`2026-11-30`); settling later does not move it.
    pub day: String,
    /// Its route.
    pub route: String,
    /// Whom it is paid to.
    pub provider: String,
    /// Digest of the caller who is charged.
    pub caller: u128,
    /// The caller's name as the config has it, if it does: for the bill.
    pub caller_name: Option<String>,
    /// ISO 4217.
    pub currency: String,
}

/// A price to be set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation<'a> {
    /// Identity of the attempt. Reserving twice by one id reserves once, also after it was settled.
    pub id: OpId,
    /// What it must fit into, all of it. A cap that is named twice must hold it twice.
    pub caps: &'a [Cap],
    /// The most it may cost, in micro-units.
    pub amount: u64,
    /// The row that is opened.
    pub row: Row,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// Set aside in every cap. What each has used by now, in the order asked.
    Yes(Vec<u64>),
    /// One cap, by index, cannot hold it, and nothing was set aside. What that cap has used.
    No {
        /// Which.
        cap: usize,
        /// Spent, open and unknown of it.
        used: u64,
    },
    /// It had been given up before it came.
    TooLate,
    /// The store has lost records of money, and nobody has said yet that this is known: nothing may be paid.
    Lost,
}

/// What an attempt came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It cost this much; also more than was reserved, if the provider says so.
    Billed(u64),
    /// It cost nothing.
    NotBilled,
    /// It was sent, and nobody knows. It stays spent.
    Unknown,
}

/// A day's attempts of one kind, summed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Spent {
    /// The day, in the route's zone.
    pub day: String,
    /// Route.
    pub route: String,
    /// Provider.
    pub provider: String,
    /// The caller's name, or the first eight digits of its digest.
    pub caller: String,
    /// `billed`, `not_billed`, `unknown` or `open`.
    pub state: String,
    /// What the attempts came to (`answered`, `not_found` ..); empty while open, `orphaned` if their instance died first.
    pub outcome: String,
    /// ISO 4217.
    pub currency: String,
    /// How many attempts.
    pub calls: u64,
    /// What they cost, or have reserved.
    pub micros: u64,
}

/// What was not paid for, and why.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Saved {
    /// The day, in the route's zone.
    pub day: String,
    /// Route.
    pub route: String,
    /// The caller's name, or the first eight digits of its digest.
    pub caller: String,
    /// The one cause it is credited to.
    pub cause: String,
    /// ISO 4217.
    pub currency: String,
    /// How many requests.
    pub requests: u64,
    /// What they would have cost.
    pub micros: u64,
}

/// Days from the first to the last, both included, as `2026-11-30`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Days {
    /// The first.
    pub from: String,
    /// The last.
    pub to: String,
}

/// The money of all instances that share a store.
pub trait Money: Send + Sync + 'static {
    /// Reserves in every cap or in none, and opens the ledger's row. Durable before it returns.
    fn reserve<'a>(&'a self, reservation: Reservation<'a>) -> Reply<'a, Reserved>;

    /// Settles an attempt, once: a second settlement of what is billed or not billed changes nothing. `outcome` is the word for the
    /// ledger. Returns whether any attempt changed: a tombstone is none.
    fn settle<'a>(&'a self, id: OpId, settlement: Settlement, outcome: &'a str) -> Reply<'a, bool>;

    /// What caps have used: spent, open and unknown. In the order asked.
    fn used<'a>(&'a self, caps: &'a [Cap]) -> Reply<'a, Vec<u64>>;

    /// Adds what was saved to the day's sums, once per `op`.
    fn credit<'a>(&'a self, op: OpId, saved: &'a [Saved]) -> Reply<'a, ()>;

    /// The ledger, summed.
    fn spent<'a>(&'a self, days: &'a Days) -> Reply<'a, Vec<Spent>>;

    /// The savings, summed.
    fn saved<'a>(&'a self, days: &'a Days) -> Reply<'a, Vec<Saved>>;

    /// True the first time it is asked about `mark`, over all instances and restarts, for as long as it is kept: an alert is sent
    /// once.
    fn first<'a>(&'a self, mark: &'a str, keep: Duration) -> Reply<'a, bool>;

    /// Says that a loss of records is known ([`Reserved::Lost`]): paying goes on, from what is there.
    fn accept_loss(&self) -> Reply<'_, ()>;
}
