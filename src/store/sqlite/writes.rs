//! Paid writes in the file: one transaction an operation, on the disk before it is answered for. The rules are in
//! `store::write::record`.

use std::time::Duration;

use super::{Db, SqliteStore};
use crate::clock::Timestamp;
use crate::store::write::record::{self, Record};
use crate::store::write::{Claim, Claimed, End, Intention, Sending, Settled, Settling, Unresolved, Writes};
use crate::store::{OpId, Reply, StoreError};

mod rows;

pub(super) use self::rows::{orphan, sweep};

impl SqliteStore {
    /// Changes one record by a rule.
    fn change<T, F>(&self, intention: Intention, rule: F) -> Reply<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Option<Record>, Timestamp) -> T + Send + 'static,
    {
        self.write(move |db| change(db, intention, rule))
    }
}

impl Writes for SqliteStore {
    fn claim<'a>(&'a self, claim: Claim<'a>) -> Reply<'a, Claimed> {
        let Claim { intention, owner, fingerprint: &fingerprint, lease, again, look } = claim;
        let rule = move |slot: &mut Option<Record>, now| {
            record::claim(slot, &Claim { intention, owner, fingerprint: &fingerprint, lease, again, look }, now)
        };
        Box::pin(async move {
            // Whoever finds something that stays as it is, a replay above all, does not wait for those who write.
            match self.read(move |db| unchanged(db, intention, rule)).await? {
                Some(claimed) => Ok(claimed),
                None => self.change(intention, rule).await,
            }
        })
    }

    fn sending<'a>(&'a self, sending: Sending<'a>) -> Reply<'a, bool> {
        let Sending { intention, owner, lease, timeout, about } = sending;
        let about = about.clone();
        self.change(intention, move |slot, now| {
            record::sending(slot, &Sending { intention, owner, lease, timeout, about: &about }, now)
        })
    }

    fn prolong(&self, intention: Intention, owner: OpId, lease: Duration) -> Reply<'_, bool> {
        self.change(intention, move |slot, now| record::prolong(slot, owner, lease, now))
    }

    fn finish(&self, intention: Intention, owner: OpId, end: End) -> Reply<'_, bool> {
        self.change(intention, move |slot, now| record::finish(slot, owner, end, now))
    }

    fn unresolved(&self, most: usize) -> Reply<'_, Vec<Unresolved>> {
        self.read(move |db| rows::unresolved(db, most))
    }

    fn resolve(&self, settling: Settling) -> Reply<'_, Settled> {
        self.change(settling.intention, move |slot, now| record::resolve(slot, &settling, now))
    }
}

fn change<T>(db: &Db<'_>, intention: Intention, rule: impl FnOnce(&mut Option<Record>, Timestamp) -> T) -> Result<T, StoreError> {
    let mut slot = rows::load(db, intention)?;
    let before = slot.clone();
    let result = rule(&mut slot, db.now);
    match &slot {
        after if *after == before => {}
        Some(record) => rows::save(db, intention, record)?,
        None => rows::remove(db, intention)?,
    }
    Ok(result)
}

/// What comes of a rule, if it changes nothing.
fn unchanged<T>(
    db: &Db<'_>,
    intention: Intention,
    rule: impl FnOnce(&mut Option<Record>, Timestamp) -> T,
) -> Result<Option<T>, StoreError> {
    let mut slot = rows::load(db, intention)?;
    let before = slot.clone();
    let result = rule(&mut slot, db.now);
    Ok((slot == before).then_some(result))
}
