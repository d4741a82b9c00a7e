//! What was not paid for: every request that was absorbed or refused is credited to one cause, once, at what it would have cost.
//!
//! A credit is a claim about money, so each is the least that is certain:
//!
//! - The price is that of the question, where it depends on the question, else the provider's least. Nothing is credited for an
//!   outcome the provider does not bill: a stored "rejected" saves only where `rejected` is billed, an invalid question likewise,
//!   an open breaker only where `failed` is.
//! - A request for which an attempt was made saved nothing, whatever it was answered with. Nor does a stale hit that began a refresh:
//!   the refresh is paid. Nor HEAD and `only-if-cached`: they would not have paid.
//! - A stale answer that stands in for a refusal is credited as the refusal would be, but to `stale`.
//! - A refusal saves only if its question is not a repeat, which would have cost nothing: not one that memory holds fresh, not
//!   one that is in flight, and, where answers are kept, not one already credited as refused that day ([`seen`]).
//! - What is refused before its question is known (switched off, unauthenticated, a body not read) cannot be told from a repeat:
//!   it saves nothing. An invalid question is never a repeat, as nothing invalid is ever kept.
//!
//! The metric `tollgate_saved_micros_total` and the store's credits are fed from here ([`Book::enter`]), so they agree.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::Money;
use super::window::{Span, Zone};
use crate::answer::{Answer, Outcome, Source};
use crate::call::Journey;
use crate::clock::Timestamp;
use crate::refusal::Code;
use crate::route::Route;
use crate::shared::Shared;
use crate::stage::Verdict;
use crate::stage::limits::identity;

pub(crate) mod notes;
mod seen;
pub(crate) mod tally;

use tally::Tally;

/// Why a call was not paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Cause {
    Invalid,
    Limited,
    Locked,
    Curated,
    Cache,
    Negative,
    Stale,
    Coalesced,
    Replay,
    Breaker,
    Budget,
    SwitchedOff,
}

/// How many causes there are: the size of a table over them.
pub(crate) const CAUSES: usize = Cause::ALL.len();

impl Cause {
    pub(crate) const ALL: [Self; 12] = [
        Self::Invalid,
        Self::Limited,
        Self::Locked,
        Self::Curated,
        Self::Cache,
        Self::Negative,
        Self::Stale,
        Self::Coalesced,
        Self::Replay,
        Self::Breaker,
        Self::Budget,
        Self::SwitchedOff,
    ];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Limited => "limited",
            Self::Locked => "locked",
            Self::Curated => "curated",
            Self::Cache => "cache",
            Self::Negative => "negative",
            Self::Stale => "stale",
            Self::Coalesced => "coalesced",
            Self::Replay => "replay",
            Self::Breaker => "breaker",
            Self::Budget => "budget",
            Self::SwitchedOff => "switched_off",
        }
    }

    /// What an answer from here saved, and what the provider would have said instead.
    fn of_answer(answer: &Answer) -> Option<(Self, Outcome)> {
        let outcome = answer.kept.outcome;
        let cause = match answer.source {
            Source::Upstream { .. } => return None,
            Source::Joined { .. } => Self::Coalesced,
            Source::Cache { stale: true, .. } => Self::Stale,
            Source::Cache { stale: false, .. } if outcome == Outcome::Answered => Self::Cache,
            Source::Cache { stale: false, .. } => Self::Negative,
            Source::Curated => Self::Curated,
            Source::Replay => Self::Replay,
            Source::Lockout => return Some((Self::Locked, Outcome::NotFound)),
        };
        Some((cause, outcome))
    }

    fn of_refusal(code: Code) -> Option<(Self, Outcome)> {
        match code {
            Code::InvalidQuestion | Code::UnknownField | Code::DuplicateField => Some((Self::Invalid, Outcome::Rejected)),
            Code::CostTooHigh => Some((Self::Invalid, Outcome::Answered)),
            Code::SlowDown | Code::Busy => Some((Self::Limited, Outcome::Answered)),
            // Who wished for no more than what is stored has been sorted out: it was the switch.
            Code::SwitchedOff | Code::NotCached => Some((Self::SwitchedOff, Outcome::Answered)),
            Code::CircuitOpen => Some((Self::Breaker, Outcome::Failed)),
            Code::BudgetExhausted => Some((Self::Budget, Outcome::Answered)),
            _ => None,
        }
    }

    /// Whether what is known of the question says nothing about it: it is invalid.
    fn needs_no_question(self, would_be: Outcome) -> bool {
        self == Self::Invalid && would_be == Outcome::Rejected
    }
}

/// The credits of one route.
pub(crate) struct Book {
    route: Arc<Route>,
    /// What the cheapest call costs; none, where nothing is paid.
    least: Option<Money>,
    page: Arc<Page>,
}

/// What the rows of a route have in common.
pub(crate) struct Page {
    /// Of route, currency and zone.
    id: u128,
    route: String,
    currency: String,
    zone: Zone,
    today: ArcSwap<Day>,
}

/// A day of the route's zone.
struct Day {
    name: String,
    ends: Timestamp,
}

impl Book {
    pub(crate) fn new(route: &Arc<Route>) -> Self {
        let least = route.provider.price.as_ref().map(super::Price::least);
        let currency = least.map(|least| least.currency.code().to_owned()).unwrap_or_default();
        let zone = route.zone();
        let id = identity(&[b"credits", route.name.as_bytes(), currency.as_bytes(), format!("{zone:?}").as_bytes()]);
        let today = ArcSwap::from_pointee(Day { name: String::new(), ends: Timestamp(0) });
        let page = Page { id, route: route.name.clone(), currency, zone, today };
        Self { route: Arc::clone(route), least, page: Arc::new(page) }
    }

    /// Credits what a request saved, if it saved something; tells the cause and the amount.
    pub(crate) fn enter(&self, verdict: &Verdict, journey: &Journey, shared: &Shared) -> Option<(Cause, Money)> {
        let least = self.least?;
        let price = journey.price().map_or(least, |micros| Money { micros, ..least });
        let cause = self.cause(verdict, journey, shared).filter(|_| price.micros > 0)?;
        shared.tally.add(&self.page, journey.caller(), cause, price.micros, shared.clock.now());
        Some((cause, price))
    }

    fn cause(&self, verdict: &Verdict, journey: &Journey, shared: &Shared) -> Option<Cause> {
        let notes = &journey.notes;
        if journey.attempts() > 0 || notes.saves_nothing() {
            return None;
        }
        let ((cause, would_be), refused) = match verdict {
            Ok(answer) => {
                let (cause, outcome) = Cause::of_answer(answer)?;
                match notes.stood_in_for() {
                    Some(code) if cause == Cause::Stale => ((cause, Cause::of_refusal(code)?.1), true),
                    _ => ((cause, outcome), cause == Cause::Locked),
                }
            }
            Err(refusal) => (Cause::of_refusal(refusal.code)?, true),
        };
        if !self.route.provider.bills(would_be) {
            return None;
        }
        let counts = !refused || cause.needs_no_question(would_be) || is_new(journey, shared);
        counts.then_some(cause)
    }
}

/// Whether a refused question is no repeat of one that is answered, being asked, or credited already.
fn is_new(journey: &Journey, shared: &Shared) -> bool {
    let Some(asked) = journey.notes.asked() else { return false };
    let now = shared.clock.now();
    let fresh = shared.answers.memory.get(&asked.key).is_some_and(|kept| kept.is_fresh(now));
    let known = fresh || journey.notes.is_repeat() || shared.flights.is_flying(&asked.key);
    !known && (!asked.keeps || shared.tally.first_refusal(&asked.key, now))
}

impl Page {
    /// The day it is, reckoned once a day.
    fn today(&self, now: Timestamp) -> arc_swap::Guard<Arc<Day>> {
        let today = self.today.load();
        if now < today.ends {
            return today;
        }
        self.today.store(Arc::new(Day { name: self.zone.day(now), ends: self.zone.window(Span::Day, now).ends }));
        self.today.load()
    }
}

impl Tally {
    fn add(&self, page: &Arc<Page>, caller: Option<&Arc<crate::call::Caller>>, cause: Cause, micros: u64, now: Timestamp) {
        let today = page.today(now);
        self.count(page, &today, caller.map(AsRef::as_ref), cause, micros);
    }
}
