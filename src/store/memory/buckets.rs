//! Token buckets in process memory: sharded, bounded.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::super::bucket::{Numbers, State};
use super::super::{Bucket, Level, Taken};
use super::lock;
use crate::clock::{Clock, Timestamp};
use crate::uniform::Uniform;

/// A power of two, and few enough that those one operation asks for are the bits of a `u16`.
const SHARDS: usize = 16;
/// How many old buckets an operation looks at that has added one or found no room, to drop those that are full.
const LOOKS: usize = 4;

/// All buckets of this process.
pub(super) struct Buckets {
    shards: [Mutex<Shard>; SHARDS],
}

struct Shard {
    most: usize,
    own: HashMap<u128, State, Uniform>,
    /// Where those go for whom there is no room: one bucket for each set of numbers, which come from the configuration.
    shared: HashMap<Numbers, State>,
    /// Every own bucket once, in the order they will be looked at.
    order: VecDeque<u128>,
    /// This operation has added a bucket or found no room.
    crowded: bool,
}

impl Buckets {
    pub(super) fn new(most: usize) -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::new(Shard::new(most.div_ceil(SHARDS)))) }
    }

    /// Tests all, then debits all or none. Other operations see neither half: all shards are held from first to last.
    pub(super) fn take(&self, clock: &Clock, buckets: &[Bucket], debit: bool) -> Taken {
        let mut held = Held::new(&self.shards, buckets);
        let now = clock.ticks();
        let (mut slowest, mut wait) = (0, Duration::ZERO);
        for (index, bucket) in buckets.iter().enumerate() {
            let until = held.shard(bucket.id).map_or(Duration::MAX, |shard| shard.ask(bucket, now));
            if until > wait {
                (slowest, wait) = (index, until);
            }
        }
        let passed = wait.is_zero();
        let settle = |bucket: &Bucket| held.shard(bucket.id).and_then(|shard| shard.settle(bucket, debit && passed, now));
        let mut levels = Vec::with_capacity(buckets.len());
        levels.extend(buckets.iter().filter_map(settle));
        held.tidy(now);
        if passed { Taken::Yes(levels) } else { Taken::No { bucket: slowest, wait, levels } }
    }
}

/// The shards one operation holds, locked in index order so that no two operations wait for each other.
struct Held<'a>(Vec<(usize, MutexGuard<'a, Shard>)>);

impl<'a> Held<'a> {
    fn new(shards: &'a [Mutex<Shard>; SHARDS], buckets: &[Bucket]) -> Self {
        let wanted = buckets.iter().fold(0u16, |wanted, bucket| wanted | 1 << shard_of(bucket.id));
        let mut held = Vec::with_capacity(buckets.len());
        for (index, shard) in shards.iter().enumerate() {
            if wanted & 1 << index != 0 {
                held.push((index, lock(shard)));
            }
        }
        Self(held)
    }

    fn shard(&mut self, id: u128) -> Option<&mut Shard> {
        let wanted = shard_of(id);
        self.0.iter_mut().find(|(index, _)| *index == wanted).map(|(_, shard)| &mut **shard)
    }

    fn tidy(&mut self, now: Timestamp) {
        self.0.iter_mut().for_each(|(_, shard)| shard.tidy(now));
    }
}

fn shard_of(id: u128) -> usize {
    (id % SHARDS as u128) as usize
}

impl Shard {
    fn new(most: usize) -> Self {
        Self { most: most.max(1), own: HashMap::default(), shared: HashMap::new(), order: VecDeque::new(), crowded: false }
    }

    /// First half of an operation: how long until this bucket can pay, on top of what was asked of it before.
    fn ask(&mut self, bucket: &Bucket, now: Timestamp) -> Duration {
        let numbers = Numbers::from(bucket);
        let room = self.own.len() < self.most;
        let state = match self.own.get_mut(&bucket.id) {
            Some(own) => own,
            None if room => {
                self.crowded = true;
                self.order.push_back(bucket.id);
                self.own.entry(bucket.id).or_insert(State::full(numbers, now))
            }
            None => {
                self.crowded = true;
                self.shared.entry(numbers).or_insert(State::full(numbers, now))
            }
        };
        state.refill(numbers, now);
        state.ask(bucket.cost, now)
    }

    /// Second half, once for every bucket asked.
    fn settle(&mut self, bucket: &Bucket, debit: bool, now: Timestamp) -> Option<Level> {
        let state = match self.own.get_mut(&bucket.id) {
            Some(own) => own,
            None => self.shared.get_mut(&Numbers::from(bucket))?,
        };
        Some(state.settle(debit, now))
    }

    /// Drops a few full buckets, if this operation made it more crowded: the work stays in proportion to what is added.
    fn tidy(&mut self, now: Timestamp) {
        if !std::mem::take(&mut self.crowded) {
            return;
        }
        for _ in 0..LOOKS.min(self.order.len()) {
            let Some(id) = self.order.pop_front() else { break };
            if self.own.get(&id).is_some_and(|state| !state.is_full(now)) {
                self.order.push_back(id);
            } else {
                self.own.remove(&id);
            }
        }
        self.shared.retain(|_, state| !state.is_full(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: u64 = 1_000_000;

    /// A bucket of two tokens, in shard 0.
    fn bucket(n: u128) -> Bucket {
        let per = Duration::from_secs(1);
        Bucket { id: n * SHARDS as u128, capacity: 2 * TOKEN, refill: TOKEN, per, cost: TOKEN }
    }

    fn own(buckets: &Buckets) -> usize {
        let shard = lock(&buckets.shards[0]);
        assert_eq!(shard.own.len(), shard.order.len());
        shard.own.len()
    }

    #[test]
    fn only_full_buckets_are_forgotten() {
        let (clock, buckets) = (Clock::manual(Timestamp(1)), Buckets::new(1_000 * SHARDS));
        (0..100).for_each(|n| drop(buckets.take(&clock, &[bucket(n)], true)));
        assert_eq!(own(&buckets), 100);
        clock.advance(Duration::from_secs(1));
        (100..200).for_each(|n| drop(buckets.take(&clock, &[bucket(n)], true)));
        assert_eq!(own(&buckets), 100, "the first hundred are full again");
    }

    #[test]
    fn beyond_the_bound_newcomers_share_one_bucket() {
        let (clock, buckets) = (Clock::manual(Timestamp(1)), Buckets::new(10 * SHARDS));
        let passes = |n| matches!(buckets.take(&clock, &[bucket(n)], true), Taken::Yes(_));
        assert!((0..10).all(|n| passes(n) && passes(n)));
        let strangers = (10..1_000).filter(|n| passes(*n)).count();
        assert_eq!((strangers, own(&buckets)), (2, 10));
        assert!(!passes(0), "and whoever has a bucket keeps it");
    }

    #[test]
    fn a_bucket_named_twice_pays_twice_or_not_at_all() {
        let (clock, buckets) = (Clock::manual(Timestamp(1)), Buckets::new(SHARDS));
        let (one, other) = (bucket(1), bucket(2));
        assert!(matches!(buckets.take(&clock, &[one, other, one, one], true), Taken::No { wait: Duration::MAX, .. }));
        let Taken::Yes(levels) = buckets.take(&clock, &[one, one], true) else { panic!("two tokens are there") };
        assert!(levels.iter().all(|level| level.left == 0));
    }
}
