//! What each cap has used.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::full;
use crate::clock::Timestamp;
use crate::store::StoreError;
use crate::store::money::{Cap, ledger};

/// By the cap's name, bounded.
pub(super) struct Counters {
    most: usize,
    known: HashMap<Arc<str>, Counter>,
    /// The same, by the end of their windows.
    ends: BTreeSet<(Timestamp, Arc<str>)>,
    /// Counters made so far.
    made: u64,
}

struct Counter {
    /// Tells it from one of the same name that was forgotten.
    number: u64,
    used: u64,
    ends: Timestamp,
}

/// The counters an attempt is in, as often as it is in them.
pub(super) struct Held(Box<[(Arc<str>, u64)]>);

impl Counters {
    pub(super) fn new(most: usize) -> Self {
        Self { most, known: HashMap::new(), ends: BTreeSet::new(), made: 0 }
    }

    pub(super) fn used(&self, caps: &[Cap]) -> Vec<u64> {
        caps.iter().map(|cap| self.known.get(cap.name.as_str()).map_or(0, |counter| counter.used)).collect()
    }

    /// Sets all, or none if there is no room for them.
    pub(super) fn set(&mut self, caps: &[Cap], levels: &[u64], now: Timestamp) -> Result<Held, StoreError> {
        let new = caps.iter().filter(|cap| !self.known.contains_key(cap.name.as_str())).count();
        if new > 0 {
            self.forget(now);
        }
        if self.known.len().saturating_add(new) > self.most {
            return Err(full("caps"));
        }
        Ok(Held(caps.iter().zip(levels).map(|(cap, level)| self.set_one(cap, *level)).collect()))
    }

    fn set_one(&mut self, cap: &Cap, level: u64) -> (Arc<str>, u64) {
        let name =
            self.known.get_key_value(cap.name.as_str()).map_or_else(|| Arc::from(cap.name.as_str()), |(name, _)| name.clone());
        let made = &mut self.made;
        let counter = self.known.entry(Arc::clone(&name)).or_insert_with(|| {
            *made = made.saturating_add(1);
            Counter { number: *made, used: 0, ends: cap.ends }
        });
        counter.used = level;
        self.ends.remove(&(counter.ends, Arc::clone(&name)));
        counter.ends = counter.ends.max(cap.ends);
        self.ends.insert((counter.ends, Arc::clone(&name)));
        (name, counter.number)
    }

    /// An attempt has gone from counting as `before` to counting as `after`: all its counters follow, or none. One that is
    /// forgotten stays so.
    pub(super) fn move_all(&mut self, held: &Held, before: u64, after: u64) -> Result<(), StoreError> {
        let moved = held.0.iter().filter_map(|(name, number)| {
            let used = self.known.get(name).filter(|counter| counter.number == *number)?.used;
            let times = held.0.iter().filter(|(other, _)| other == name).count();
            Some(ledger::moved(used, times, before, after).map(|used| (name, used)))
        });
        for (name, used) in moved.collect::<Result<Vec<_>, _>>()? {
            if let Some(counter) = self.known.get_mut(name) {
                counter.used = used;
            }
        }
        Ok(())
    }

    fn forget(&mut self, now: Timestamp) {
        let before = ledger::forgotten_before(now);
        while let Some((_, name)) = self.ends.first().filter(|(ends, _)| *ends <= before).cloned() {
            self.ends.pop_first();
            self.known.remove(&name);
        }
    }
}
