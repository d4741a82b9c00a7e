//! Process memory: the backend of a single instance that may forget at a restart, and the coordination half of [`sqlite`].
//!
//! An operation here runs to its end in the poll that starts it: it cannot time out and then turn out to have run. So
//! [`take`](Coordination::take), the one that every request pays for, remembers no [`OpId`]; those that change records do.
//! Everything is bounded by [`Bounds`].
//!
//! [`sqlite`]: super::sqlite

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::answers::Answers;
use self::applied::Applied;
pub use self::bounds::Bounds;
use self::buckets::Buckets;
use self::lockouts::Lockouts;
use self::money::Book;
use super::lease::{Entered, Entry, Landing, Leases};
use super::{Bucket, Coordination, Digest, Guess, LockoutRule, LockoutState, OpId, Records, Reply, StoredAnswer, Switch, Taken};
use crate::clock::{Clock, Timestamp};

mod answers;
mod applied;
mod bounds;
mod buckets;
mod lockouts;
mod money;
mod writes;

/// Both roles in process memory.
pub struct MemoryStore {
    clock: Clock,
    buckets: Buckets,
    /// By provider, so bounded by the configuration.
    pauses: Mutex<HashMap<String, Timestamp>>,
    answers: Answers,
    records: Mutex<Small>,
    money: Mutex<Book>,
    writes: Mutex<writes::Book>,
}

/// The records that are few and small.
struct Small {
    /// By route, so bounded by the configuration; as are the switches.
    generations: HashMap<String, u64>,
    switches: HashMap<String, Switch>,
    /// Switches set so far.
    revision: u64,
    lockouts: Lockouts,
    applied: Applied,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new(clock: Clock, bounds: Bounds) -> Self {
        let records = Small {
            generations: HashMap::new(),
            switches: HashMap::new(),
            revision: 0,
            lockouts: Lockouts::new(bounds.lockouts),
            applied: Applied::default(),
        };
        Self {
            clock,
            buckets: Buckets::new(bounds.buckets),
            pauses: Mutex::default(),
            answers: Answers::new(bounds.answer_bytes),
            records: Mutex::new(records),
            money: Mutex::new(Book::new(bounds)),
            writes: Mutex::new(writes::Book::new(bounds.writes)),
        }
    }

    /// [`Coordination::take`] without a future: memory neither waits nor repeats, so there is nothing to await and no id to know.
    pub fn take_now(&self, buckets: &[Bucket], debit: bool) -> Taken {
        self.buckets.take(&self.clock, buckets, debit)
    }

    /// [`Coordination::paused`] without a future.
    pub fn paused_now(&self, provider: &str) -> Option<Timestamp> {
        let until = lock(&self.pauses).get(provider).copied();
        until.filter(|until| *until > self.clock.now())
    }

    /// [`Coordination::pause`] without a future.
    pub fn pause_now(&self, provider: &str, until: Timestamp) {
        let mut pauses = lock(&self.pauses);
        match pauses.get_mut(provider) {
            Some(known) => *known = until.max(*known),
            None => drop(pauses.insert(provider.to_owned(), until)),
        }
    }
}

/// Locks. A panic elsewhere does not make the data unusable: no operation leaves it half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Coordination ===

impl Coordination for MemoryStore {
    fn take<'a>(&'a self, _: OpId, buckets: &'a [Bucket], debit: bool) -> Reply<'a, Taken> {
        Box::pin(async move { Ok(self.take_now(buckets, debit)) })
    }

    fn pause<'a>(&'a self, provider: &'a str, until: Timestamp) -> Reply<'a, ()> {
        Box::pin(async move {
            self.pause_now(provider, until);
            Ok(())
        })
    }

    fn paused<'a>(&'a self, provider: &'a str) -> Reply<'a, Option<Timestamp>> {
        Box::pin(async move { Ok(self.paused_now(provider)) })
    }
}

// === impl Records ===

impl Records for MemoryStore {
    fn answer<'a>(&'a self, key: &'a Digest) -> Reply<'a, Option<StoredAnswer>> {
        Box::pin(async move { Ok(self.answers.get(key, self.clock.now())) })
    }

    fn keep<'a>(&'a self, _: &'a str, key: &'a Digest, answer: StoredAnswer) -> Reply<'a, ()> {
        Box::pin(async move {
            self.answers.keep(key, answer, self.clock.now());
            Ok(())
        })
    }

    fn forget<'a>(&'a self, _: &'a str, key: &'a Digest) -> Reply<'a, ()> {
        Box::pin(async move {
            self.answers.forget(key);
            Ok(())
        })
    }

    fn generation<'a>(&'a self, route: &'a str) -> Reply<'a, u64> {
        Box::pin(async move { Ok(lock(&self.records).generations.get(route).copied().unwrap_or(0)) })
    }

    fn raise_generation<'a>(&'a self, op: OpId, route: &'a str) -> Reply<'a, u64> {
        Box::pin(async move {
            let Small { generations, applied, .. } = &mut *lock(&self.records);
            Ok(applied.once(op, self.clock.now(), || {
                let generation = generations.entry(route.to_owned()).or_default();
                *generation = generation.saturating_add(1);
                *generation
            }))
        })
    }

    fn switches(&self) -> Reply<'_, Vec<(String, Switch)>> {
        Box::pin(async move {
            let records = lock(&self.records);
            Ok(records.switches.iter().map(|(name, switch)| (name.clone(), switch.clone())).collect())
        })
    }

    fn set_switch<'a>(&'a self, name: &'a str, switch: Switch) -> Reply<'a, u64> {
        Box::pin(async move {
            let records = &mut *lock(&self.records);
            records.switches.insert(name.to_owned(), switch);
            records.revision = records.revision.saturating_add(1);
            Ok(records.revision)
        })
    }

    fn guess<'a>(&'a self, op: OpId, subjects: &'a [Digest], rule: LockoutRule, expires: Timestamp) -> Reply<'a, Guess> {
        Box::pin(async move {
            let Small { lockouts, applied, .. } = &mut *lock(&self.records);
            let now = self.clock.now();
            if applied.contains(op) { Ok(Guess::Admitted) } else { lockouts.guess(op, subjects, rule, expires, now) }
        })
    }

    fn settle_guess<'a>(&'a self, op: OpId, subjects: &'a [Digest], rule: LockoutRule, missed: bool) -> Reply<'a, ()> {
        Box::pin(async move {
            let Small { lockouts, applied, .. } = &mut *lock(&self.records);
            let now = self.clock.now();
            applied.once(op, now, || {
                lockouts.settle(op, subjects, rule, missed, now);
                0
            });
            Ok(())
        })
    }

    fn lockout<'a>(&'a self, subject: &'a Digest, rule: LockoutRule) -> Reply<'a, LockoutState> {
        Box::pin(async move { Ok(lock(&self.records).lockouts.state(subject, rule, self.clock.now())) })
    }

    fn clear_lockout<'a>(&'a self, subject: &'a Digest) -> Reply<'a, ()> {
        Box::pin(async move {
            lock(&self.records).lockouts.clear(subject);
            Ok(())
        })
    }

    fn close(&self) -> Reply<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

// === impl Leases ===

impl Leases for MemoryStore {
    fn enter<'a>(&'a self, entry: Entry<'a>) -> Reply<'a, Entered> {
        Box::pin(async move {
            let now = self.clock.now();
            let kept = if entry.look { self.answers.get(entry.key, now) } else { None };
            Ok(kept.filter(|kept| kept.is_fresh(now)).map_or(Entered::Taken(now), Entered::Found))
        })
    }

    fn renew<'a>(&'a self, _: OpId, _: &'a Digest, _: Duration) -> Reply<'a, bool> {
        Box::pin(std::future::ready(Ok(true)))
    }

    fn land<'a>(&'a self, landing: Landing<'a>) -> Reply<'a, bool> {
        Box::pin(async move {
            if let Some(answer) = landing.keep {
                self.answers.keep(landing.key, answer, self.clock.now());
            }
            Ok(true)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::conformance::histories::{any_history, play};
    use super::super::conformance::intentions::{self, any_writes};
    use super::super::conformance::{START, World, conformance};
    use super::*;

    fn world() -> World {
        let clock = Clock::manual(Timestamp(START));
        World { store: Arc::new(MemoryStore::new(clock.clone(), Bounds::default())), clock, home: Box::new(()) }
    }

    conformance!(world);

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn any_history_of_money_is_counted_as_it_was(history in any_history(100)) {
            // Memory leaves nothing behind when its process ends.
            play(world(), &history, Err);
        }

        #[test]
        fn any_intention_is_sent_once(history in any_writes(100, false)) {
            intentions::play(world(), &history, Err);
        }

        #[test]
        fn any_intention_is_sent_again_as_the_same(history in any_writes(100, true)) {
            intentions::play(world(), &history, Err);
        }
    }
}
