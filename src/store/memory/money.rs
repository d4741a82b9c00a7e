//! Money in process memory: one book under one lock, so that every operation is whole. The rules are in `store::money::ledger`.
//!
//! What is spent is summed as it happens, so a row is needed only until nobody can ask for it by its id.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use self::counters::{Counters, Held};
use self::marks::Marks;
use self::sums::{Kept, Savings, Spending};
use super::applied::Applied;
use super::{Bounds, MemoryStore, lock};
use crate::clock::Timestamp;
use crate::store::money::ledger::{self, GIVEN_UP_KEPT, ROW_KEPT, Standing};
use crate::store::money::{Cap, Days, Money, Reservation, Reserved, Saved, Settlement, Spent};
use crate::store::{OpId, Reply, StoreError};

mod counters;
mod marks;
mod sums;

#[cfg(test)]
mod tests;

/// All of it.
pub(super) struct Book {
    most: usize,
    records: HashMap<OpId, Record>,
    /// Settled attempts, the earliest first.
    settled: VecDeque<(Timestamp, OpId)>,
    /// Tombstones, the earliest first.
    given_up: VecDeque<(Timestamp, OpId)>,
    counters: Counters,
    spending: Spending,
    savings: Savings,
    credited: Applied,
    marks: Marks,
}

/// What is known by an id.
enum Record {
    Attempt(Attempt),
    /// It was settled before it was reserved.
    GivenUp,
}

/// One row of the ledger.
struct Attempt {
    standing: Standing,
    held: Held,
    /// The sum it is in.
    kept: Kept,
}

impl Book {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            most: bounds.attempts,
            records: HashMap::new(),
            settled: VecDeque::new(),
            given_up: VecDeque::new(),
            counters: Counters::new(bounds.counters),
            spending: Spending::new(bounds.sums),
            savings: Savings::new(bounds.sums),
            credited: Applied::default(),
            marks: Marks::default(),
        }
    }

    fn reserve(&mut self, reservation: Reservation<'_>, now: Timestamp) -> Result<Reserved, StoreError> {
        ledger::check(&reservation, now)?;
        let Reservation { id, caps, amount, row } = reservation;
        match self.records.get(&id) {
            Some(Record::Attempt(_)) => return Ok(Reserved::Yes(self.counters.used(caps))),
            Some(Record::GivenUp) => return Ok(Reserved::TooLate),
            None => {}
        }
        let levels = match ledger::fit(caps, &self.counters.used(caps), amount) {
            Ok(levels) => levels,
            Err(no) => return Ok(no),
        };
        self.make_room(now)?;
        let held = self.counters.set(caps, &levels, now)?;
        let standing = Standing::open(amount);
        let kept = self.spending.add(Kept::of(row, standing.state), standing.micros);
        self.records.insert(id, Record::Attempt(Attempt { standing, held, kept }));
        Ok(Reserved::Yes(levels))
    }

    fn settle(&mut self, id: OpId, by: Settlement, outcome: &str, now: Timestamp) -> Result<bool, StoreError> {
        ledger::check_settlement(by)?;
        if !self.records.contains_key(&id) {
            return self.give_up(id, now).map(|()| false);
        }
        let Some(Record::Attempt(attempt)) = self.records.get_mut(&id) else { return Ok(false) };
        let Some(then) = attempt.standing.settled(by) else { return Ok(false) };
        self.counters.move_all(&attempt.held, attempt.standing.micros, then.micros)?;
        self.spending.take(&attempt.kept, attempt.standing.micros);
        attempt.kept = self.spending.add(attempt.kept.settled(then.state, outcome), then.micros);
        attempt.standing = then;
        if then.state.is_final() {
            self.settled.push_back((now, id));
        }
        Ok(true)
    }

    fn give_up(&mut self, id: OpId, now: Timestamp) -> Result<(), StoreError> {
        self.make_room(now)?;
        self.records.insert(id, Record::GivenUp);
        self.given_up.push_back((now, id));
        Ok(())
    }

    /// Forgets what is old, and one more that is settled if there is no room even so. What is still to be settled stays.
    fn make_room(&mut self, now: Timestamp) -> Result<(), StoreError> {
        forget(&mut self.given_up, &mut self.records, now, GIVEN_UP_KEPT);
        forget(&mut self.settled, &mut self.records, now, ROW_KEPT);
        if self.records.len() < self.most {
            return Ok(());
        }
        let (_, oldest) = self.settled.pop_front().ok_or_else(|| full("attempts that are not settled"))?;
        self.records.remove(&oldest);
        Ok(())
    }

    fn credit(&mut self, op: OpId, saved: &[Saved], now: Timestamp) -> Result<(), StoreError> {
        saved.iter().try_for_each(|saved| ledger::number(saved.requests).and_then(|()| ledger::number(saved.micros)))?;
        self.credited.once(op, now, || {
            for saved in saved {
                self.savings.add(saved);
            }
            0
        });
        Ok(())
    }
}

/// Forgets records that have been as they are for longer than `keep`.
fn forget(order: &mut VecDeque<(Timestamp, OpId)>, records: &mut HashMap<OpId, Record>, now: Timestamp, keep: Duration) {
    while let Some((_, id)) = order.pop_front_if(|(at, _)| now.since(*at) > keep) {
        records.remove(&id);
    }
}

fn full(of: &str) -> StoreError {
    StoreError::Failed(format!("no room for more {of}"))
}

// === impl Money ===

impl Money for MemoryStore {
    fn reserve<'a>(&'a self, reservation: Reservation<'a>) -> Reply<'a, Reserved> {
        Box::pin(async move { lock(&self.money).reserve(reservation, self.clock.now()) })
    }

    fn settle<'a>(&'a self, id: OpId, settlement: Settlement, outcome: &'a str) -> Reply<'a, bool> {
        Box::pin(async move { lock(&self.money).settle(id, settlement, outcome, self.clock.now()) })
    }

    fn used<'a>(&'a self, caps: &'a [Cap]) -> Reply<'a, Vec<u64>> {
        Box::pin(async move { Ok(lock(&self.money).counters.used(caps)) })
    }

    fn credit<'a>(&'a self, op: OpId, saved: &'a [Saved]) -> Reply<'a, ()> {
        Box::pin(async move { lock(&self.money).credit(op, saved, self.clock.now()) })
    }

    fn spent<'a>(&'a self, days: &'a Days) -> Reply<'a, Vec<Spent>> {
        Box::pin(async move { lock(&self.money).spending.report(days) })
    }

    fn saved<'a>(&'a self, days: &'a Days) -> Reply<'a, Vec<Saved>> {
        Box::pin(async move { lock(&self.money).savings.report(days) })
    }

    fn first<'a>(&'a self, mark: &'a str, keep: Duration) -> Reply<'a, bool> {
        Box::pin(async move { lock(&self.money).marks.first(mark, keep, self.clock.now()) })
    }

    fn accept_loss(&self) -> Reply<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}
