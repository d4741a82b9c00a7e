//! Who has stopped what: one record for each maker, and the position that follows from all of them.
//!
//! A route is in the strictest position that any standing stop of it, or of `all`, asks for; it is *on* when none stands. A maker
//! ends its own stop and no other. Nothing is released by itself, except a stop that says until when it stands (a budget's: the end
//! of its period). That is judged at each look, by the wall clock, which all instances have from their store.
//!
//! The record of an admin's stop is named after the route alone, as it was before there were other makers; that of another maker
//! `ROUTE#MAKER`.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::KillSwitch;
use crate::clock::Clock;
use crate::store::handle::StoreHandle;
use crate::store::{StoreError, Switch, SwitchState};

/// The makers of stops.
pub(crate) const ADMIN: &str = "admin";
/// A route's own budget.
pub(crate) const BUDGET: &str = "budget";
/// The budget of a route's provider: another period, perhaps another position.
pub(crate) const PROVIDER_BUDGET: &str = "provider-budget";

/// Stands over every route.
pub(crate) const ALL: &str = "all";

/// The switches of one gateway. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Switches(Arc<Shared>);

struct Shared {
    clock: Clock,
    known: Arc<AtomicBool>,
    all: Arc<Target>,
    routes: Mutex<HashMap<String, Arc<Target>>>,
    /// Held while a stop is stored: of two at a time the one that is stored last is in force.
    turn: tokio::sync::Mutex<()>,
}

/// A route, or `all`: what was said of it, and what holds.
#[derive(Default)]
pub(super) struct Target {
    said: Mutex<BTreeMap<String, Said>>,
    /// The position, and from which second on it must be judged anew (nought: from none).
    held: AtomicU64,
}

/// What one maker last said, and the revision it is known to be, if the store has it.
#[derive(Clone)]
struct Said {
    switch: Switch,
    revision: Option<u64>,
}

/// A stop that stands.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Stop {
    /// The route it is a stop of, or `all`.
    pub(crate) of: String,
    pub(crate) maker: String,
    #[serde(flatten)]
    pub(crate) switch: Switch,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn record<'a>(target: &'a str, maker: &str) -> Cow<'a, str> {
    if maker == ADMIN { Cow::Borrowed(target) } else { Cow::Owned(format!("{target}#{maker}")) }
}

fn parts(record: &str) -> (&str, &str) {
    record.split_once('#').unwrap_or((record, ADMIN))
}

// === impl Switches ===

impl Switches {
    pub(crate) fn new(clock: Clock) -> Self {
        Self(Arc::new(Shared {
            clock,
            known: Arc::default(),
            all: Arc::default(),
            routes: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }))
    }

    /// Sets a maker's switch in this instance, whatever the store has.
    pub(crate) fn set(&self, target: &str, maker: &str, switch: Switch) {
        self.target(target).hear(maker, switch, None, self.now());
    }

    /// Likewise, unless what the maker last said goes as far as that: a stop that an admin has ended stays ended for its period.
    pub(crate) fn set_longer(&self, target: &str, maker: &str, switch: Switch) -> bool {
        let target = self.target(target);
        let mut said = lock(&target.said);
        let known = said.get(maker);
        if known.is_some_and(|known| known.switch.until >= switch.until) {
            return false;
        }
        let revision = known.and_then(|known| known.revision);
        said.insert(maker.to_owned(), Said { switch, revision });
        target.judge(&said, self.now());
        true
    }

    /// Stores what a maker says. It is then in force here, and soon in every other instance.
    pub(crate) async fn store(&self, store: &StoreHandle, target: &str, maker: &str, switch: Switch) -> Result<(), StoreError> {
        let _turn = self.0.turn.lock().await;
        let name = record(target, maker);
        let revision = store.set_switch(&name, switch.clone()).await?;
        self.heard(&name, switch, revision);
        Ok(())
    }

    /// A record as the store has it. Of two the higher revision is in force, in whatever order they are heard.
    pub(crate) fn heard(&self, record: &str, switch: Switch, revision: u64) {
        let (target, maker) = parts(record);
        self.target(target).hear(maker, switch, Some(revision), self.now());
    }

    /// All that were ever set have been heard.
    pub(crate) fn are_known(&self) {
        self.0.known.store(true, Ordering::Release);
    }

    pub(crate) fn is_known(&self) -> bool {
        self.0.known.load(Ordering::Acquire)
    }

    /// What a maker last said, whether or not it still stands.
    pub(crate) fn said(&self, target: &str, maker: &str) -> Option<Switch> {
        lock(&self.target(target).said).get(maker).map(|said| said.switch.clone())
    }

    /// Every stop that stands over a target, the strictest first.
    pub(crate) fn standing(&self, target: &str) -> Vec<Stop> {
        let now = self.now();
        let mut stops = self.target(target).standing(target, now);
        if target != ALL {
            stops.extend(self.0.all.standing(ALL, now));
        }
        stops.sort_by_key(|stop| std::cmp::Reverse(stop.switch.state));
        stops
    }

    fn now(&self) -> u64 {
        self.0.clock.now().seconds()
    }

    fn target(&self, name: &str) -> Arc<Target> {
        if name == ALL {
            return Arc::clone(&self.0.all);
        }
        Arc::clone(lock(&self.0.routes).entry(name.to_owned()).or_default())
    }

    /// The switch of one route, over which `all` stands.
    pub(crate) fn of(&self, route: &str) -> KillSwitch {
        let Shared { clock, known, all, .. } = &*self.0;
        KillSwitch { clock: clock.clone(), known: Arc::clone(known), all: Arc::clone(all), own: self.target(route) }
    }
}

// === impl Target ===

impl Target {
    /// One atomic read; where a stop ends by itself the clock is looked at, too.
    pub(super) fn state(&self, clock: &Clock) -> SwitchState {
        let held = self.held.load(Ordering::Acquire);
        let (state, until) = (unpack(held), held >> 2);
        if until == 0 || clock.now().seconds() < until {
            return state;
        }
        self.judge(&lock(&self.said), clock.now().seconds())
    }

    fn hear(&self, maker: &str, switch: Switch, revision: Option<u64>, now: u64) {
        let mut said = lock(&self.said);
        let known = said.get(maker).and_then(|said| said.revision);
        if revision.is_some_and(|revision| known.is_some_and(|known| known > revision)) {
            return;
        }
        said.insert(maker.to_owned(), Said { switch, revision: revision.or(known) });
        self.judge(&said, now);
    }

    /// Works out what holds. `said` is what its lock holds, so that the last word is the one that is kept.
    fn judge(&self, said: &BTreeMap<String, Said>, now: u64) -> SwitchState {
        let standing = || said.values().map(|said| &said.switch).filter(|switch| stands(switch, now));
        let state = standing().map(|switch| switch.state).max().unwrap_or_default();
        let until = standing().filter_map(|switch| switch.until).min().unwrap_or_default();
        self.held.store(until.min(u64::MAX >> 2) << 2 | state as u64, Ordering::Release);
        state
    }

    fn standing(&self, of: &str, now: u64) -> Vec<Stop> {
        let said = lock(&self.said);
        let standing = said.iter().filter(|(_, said)| stands(&said.switch, now));
        standing.map(|(maker, said)| Stop { of: of.to_owned(), maker: maker.clone(), switch: said.switch.clone() }).collect()
    }
}

fn stands(switch: &Switch, now: u64) -> bool {
    switch.state != SwitchState::On && switch.until.is_none_or(|until| now < until)
}

fn unpack(held: u64) -> SwitchState {
    match held & 3 {
        0 => SwitchState::On,
        1 => SwitchState::Cached,
        _ => SwitchState::Off,
    }
}

#[cfg(test)]
mod tests;
