//! Lockouts, one row a subject. The rules are in `store::lockout`.

use rusqlite::{Connection, OptionalExtension};

use super::super::lockout::{Lockout, distinct, flies, worst};
use super::super::{Digest, Guess, LockoutRule, OpId, StoreError};
use super::upkeep::SWEPT;
use super::{Db, applied, to_column, unreadable};
use crate::clock::Timestamp;

const SAVE: &str = "INSERT INTO lockout (subject, state, idle_at) VALUES (?1, ?2, ?3)
    ON CONFLICT (subject) DO UPDATE SET state = excluded.state, idle_at = excluded.idle_at";

const SWEEP: &str = "DELETE FROM lockout WHERE subject IN (SELECT subject FROM lockout WHERE idle_at <= ?1 LIMIT ?2)";

pub(super) fn guess(
    db: &Db<'_>,
    op: OpId,
    subjects: &[Digest],
    rule: LockoutRule,
    expires: Timestamp,
) -> Result<Guess, StoreError> {
    if applied::result(db, op)?.is_some() {
        return Ok(Guess::Admitted);
    }
    let known = |subject| {
        let lockout = load(db, subject)?;
        Ok((subject, lockout.verdict(op, rule, db.now), lockout))
    };
    let known = distinct(subjects).map(known).collect::<Result<Vec<_>, StoreError>>()?;
    let worst = worst(known.iter().map(|(_, own, _)| *own));
    for (subject, _, mut lockout) in known.into_iter().filter(|(_, own, _)| flies(worst, *own)) {
        lockout.admit(op, rule, expires, db.now);
        save(db, subject, &lockout)?;
    }
    Ok(worst)
}

pub(super) fn settle(db: &Db<'_>, op: OpId, subjects: &[Digest], rule: LockoutRule, missed: bool) -> Result<(), StoreError> {
    applied::once(db, op, || {
        for subject in distinct(subjects) {
            let mut lockout = load(db, subject)?;
            lockout.settle(op, rule, missed, db.now);
            save(db, subject, &lockout)?;
        }
        Ok(0)
    })?;
    Ok(())
}

pub(super) fn clear(db: &Db<'_>, subject: &Digest) -> Result<(), StoreError> {
    let mut lockout = load(db, subject)?;
    lockout.clear();
    save(db, subject, &lockout)
}

/// The subject's state; that of a newcomer if nothing is known.
pub(super) fn load(db: &Db<'_>, subject: &Digest) -> Result<Lockout, StoreError> {
    let mut statement = db.conn.prepare_cached("SELECT state FROM lockout WHERE subject = ?1")?;
    let state: Option<String> = statement.query_row([subject], |row| row.get(0)).optional()?;
    state.map_or_else(|| Ok(Lockout::default()), |state| serde_json::from_str(&state).map_err(|_| unreadable()))
}

fn save(db: &Db<'_>, subject: &Digest, lockout: &Lockout) -> Result<(), StoreError> {
    if lockout.is_empty() {
        db.conn.prepare_cached("DELETE FROM lockout WHERE subject = ?1")?.execute([subject])?;
        return Ok(());
    }
    let state = serde_json::to_string(lockout).map_err(|_| unreadable())?;
    db.conn.prepare_cached(SAVE)?.execute((subject, state, to_column(lockout.idle_at().0)))?;
    Ok(())
}

pub(super) fn sweep(conn: &Connection, now: Timestamp) -> Result<usize, StoreError> {
    Ok(conn.prepare_cached(SWEEP)?.execute((to_column(now.0), SWEPT))?)
}
