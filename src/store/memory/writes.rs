//! Paid writes in process memory: one map under one lock. The rules are in `store::write::record`.

use std::collections::HashMap;
use std::time::Duration;

use super::{MemoryStore, lock};
use crate::clock::Timestamp;
use crate::store::write::record::{self, Record};
use crate::store::write::{Claim, Claimed, End, Intention, Sending, Settled, Settling, Unresolved, Writes};
use crate::store::{OpId, Reply, StoreError};

/// Records by intention, bounded: when there is no room, nothing more is claimed.
pub(super) struct Book {
    most: usize,
    records: HashMap<Intention, Record>,
    swept: Timestamp,
}

/// Between two sweeps.
const EVERY: Duration = Duration::from_secs(10);

impl Book {
    pub(super) fn new(most: usize) -> Self {
        Self { most, records: HashMap::new(), swept: Timestamp(0) }
    }

    /// Changes one record, which may come, stay or go.
    fn change<T>(&mut self, intention: Intention, change: impl FnOnce(&mut Option<Record>) -> T) -> T {
        let mut slot = self.records.remove(&intention);
        let result = change(&mut slot);
        if let Some(record) = slot {
            self.records.insert(intention, record);
        }
        result
    }

    fn make_room(&mut self, newcomer: Intention, now: Timestamp) -> Result<(), StoreError> {
        if self.records.contains_key(&newcomer) {
            return Ok(());
        }
        if now.since(self.swept) > EVERY || self.records.len() >= self.most {
            self.swept = now;
            self.records.retain(|_, record| !record.is_over(now));
        }
        if self.records.len() < self.most {
            return Ok(());
        }
        Err(StoreError::Failed("no room for more writes".to_owned()))
    }
}

impl MemoryStore {
    fn change<T>(&self, intention: Intention, change: impl FnOnce(&mut Option<Record>, Timestamp) -> T) -> T {
        let now = self.clock.now();
        lock(&self.writes).change(intention, |slot| change(slot, now))
    }
}

impl Writes for MemoryStore {
    fn claim<'a>(&'a self, claim: Claim<'a>) -> Reply<'a, Claimed> {
        Box::pin(async move {
            if !claim.look {
                lock(&self.writes).make_room(claim.intention, self.clock.now())?;
            }
            Ok(self.change(claim.intention, |slot, now| record::claim(slot, &claim, now)))
        })
    }

    fn sending<'a>(&'a self, sending: Sending<'a>) -> Reply<'a, bool> {
        Box::pin(async move { Ok(self.change(sending.intention, |slot, now| record::sending(slot, &sending, now))) })
    }

    fn prolong(&self, intention: Intention, owner: OpId, lease: Duration) -> Reply<'_, bool> {
        Box::pin(async move { Ok(self.change(intention, |slot, now| record::prolong(slot, owner, lease, now))) })
    }

    fn finish(&self, intention: Intention, owner: OpId, end: End) -> Reply<'_, bool> {
        Box::pin(async move { Ok(self.change(intention, |slot, now| record::finish(slot, owner, end, now))) })
    }

    fn unresolved(&self, most: usize) -> Reply<'_, Vec<Unresolved>> {
        Box::pin(async move {
            let (now, writes) = (self.clock.now(), lock(&self.writes));
            let shown = writes.records.iter().filter_map(|(intention, record)| record::unresolved(*intention, record, now));
            let mut shown: Vec<Unresolved> = shown.collect();
            shown.sort_by_key(|unresolved| (unresolved.since, unresolved.intention));
            shown.truncate(most);
            Ok(shown)
        })
    }

    fn resolve(&self, settling: Settling) -> Reply<'_, Settled> {
        Box::pin(async move { Ok(self.change(settling.intention, |slot, now| record::resolve(slot, &settling, now))) })
    }
}
