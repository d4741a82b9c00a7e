//! Money in the file: one transaction an operation, on the disk before it is answered for. The rules are in
//! `store::money::ledger`.

use std::time::Duration;

use rusqlite::Connection;

use super::{Db, SqliteStore, applied};
use crate::clock::Timestamp;
use crate::store::money::{Cap, Days, Money, Reservation, Reserved, Saved, Settlement, Spent, ledger};
use crate::store::{OpId, Reply, StoreError};

mod attempts;
mod counters;
mod marks;
mod reports;

pub(super) use self::attempts::orphan_open;

/// Removes some of what has lost its meaning, and sums some of what is old; of each kind, how much.
pub(super) fn sweep(conn: &Connection, now: Timestamp) -> Result<[usize; 4], StoreError> {
    Ok([attempts::sweep(conn, now)?, attempts::sweep_given_up(conn, now)?, counters::sweep(conn, now)?, marks::sweep(conn, now)?])
}

fn reserve(db: &Db<'_>, reservation: &Reservation<'_>) -> Result<Reserved, StoreError> {
    ledger::check(reservation, db.now)?;
    let Reservation { id, caps, amount, row } = reservation;
    if attempts::is_given_up(db, *id)? {
        return Ok(Reserved::TooLate);
    }
    let used = counters::used(db, caps)?;
    if attempts::is_known(db, *id)? {
        return Ok(Reserved::Yes(used));
    }
    let levels = match ledger::fit(caps, &used, *amount) {
        Ok(levels) => levels,
        Err(no) => return Ok(no),
    };
    let held = counters::set(db, caps, &levels)?;
    attempts::open(db, *id, *amount, &held, row)?;
    Ok(Reserved::Yes(levels))
}

fn settle(db: &Db<'_>, id: OpId, by: Settlement, outcome: &str) -> Result<bool, StoreError> {
    ledger::check_settlement(by)?;
    let Some(attempt) = attempts::load(db, id)? else {
        attempts::give_up(db, id)?;
        return Ok(false);
    };
    let Some(then) = attempt.standing.settled(by) else { return Ok(false) };
    counters::move_all(db, &attempt.held, attempt.standing.micros, then.micros)?;
    attempts::settle(db, &attempt, then, outcome)?;
    Ok(true)
}

fn credit(db: &Db<'_>, op: OpId, saved: &[Saved]) -> Result<(), StoreError> {
    saved.iter().try_for_each(|saved| ledger::number(saved.requests).and_then(|()| ledger::number(saved.micros)))?;
    applied::once(db, op, || {
        saved.iter().try_for_each(|saved| reports::add_saved(db, saved))?;
        Ok(0)
    })?;
    Ok(())
}

// === impl Money ===

impl Money for SqliteStore {
    fn reserve<'a>(&'a self, reservation: Reservation<'a>) -> Reply<'a, Reserved> {
        let Reservation { id, caps, amount, row } = reservation;
        let caps = caps.to_owned();
        self.write(move |db| reserve(db, &Reservation { id, caps: &caps, amount, row }))
    }

    fn settle<'a>(&'a self, id: OpId, settlement: Settlement, outcome: &'a str) -> Reply<'a, bool> {
        let outcome = outcome.to_owned();
        self.write(move |db| settle(db, id, settlement, &outcome))
    }

    fn used<'a>(&'a self, caps: &'a [Cap]) -> Reply<'a, Vec<u64>> {
        let caps = caps.to_owned();
        self.read(move |db| {
            // All as of one moment.
            let _snapshot = db.conn.unchecked_transaction()?;
            counters::used(db, &caps)
        })
    }

    fn credit<'a>(&'a self, op: OpId, saved: &'a [Saved]) -> Reply<'a, ()> {
        let saved = saved.to_owned();
        self.write(move |db| credit(db, op, &saved))
    }

    fn spent<'a>(&'a self, days: &'a Days) -> Reply<'a, Vec<Spent>> {
        let days = days.clone();
        self.read(move |db| reports::spent(db, &days))
    }

    fn saved<'a>(&'a self, days: &'a Days) -> Reply<'a, Vec<Saved>> {
        let days = days.clone();
        self.read(move |db| reports::saved(db, &days))
    }

    fn first<'a>(&'a self, mark: &'a str, keep: Duration) -> Reply<'a, bool> {
        let mark = mark.to_owned();
        self.write(move |db| marks::first(db, &mark, keep))
    }

    fn accept_loss(&self) -> Reply<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Columns of money are never below zero.
fn amount(column: i64) -> Result<u64, StoreError> {
    u64::try_from(column).map_err(|_| super::unreadable())
}

/// What is counted is below 2^53; should it not be, it is no number to write.
fn column(amount: u64) -> Result<i64, StoreError> {
    i64::try_from(amount).map_err(|_| ledger::too_much())
}
