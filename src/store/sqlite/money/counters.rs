//! What each cap has used.

use rusqlite::{Connection, OptionalExtension};

use super::{amount, column};
use crate::clock::Timestamp;
use crate::store::StoreError;
use crate::store::money::{Cap, ledger};
use crate::store::sqlite::upkeep::SWEPT;
use crate::store::sqlite::{Db, to_column, unreadable};

const SET: &str = "INSERT INTO counter (name, used, ends) VALUES (?1, ?2, ?3)
    ON CONFLICT (name) DO UPDATE SET used = excluded.used, ends = max(counter.ends, excluded.ends)
    RETURNING id";

const SWEEP: &str = "DELETE FROM counter WHERE id IN (SELECT id FROM counter WHERE ends <= ?1 LIMIT ?2)";

/// The counters an attempt is in, as often as it is in them.
pub(super) struct Held(Vec<i64>);

impl Held {
    pub(super) fn read(text: &str) -> Result<Self, StoreError> {
        serde_json::from_str(text).map(Self).map_err(|_| unreadable())
    }

    pub(super) fn write(&self) -> Result<String, StoreError> {
        serde_json::to_string(&self.0).map_err(|_| unreadable())
    }
}

pub(super) fn used(db: &Db<'_>, caps: &[Cap]) -> Result<Vec<u64>, StoreError> {
    let mut statement = db.conn.prepare_cached("SELECT used FROM counter WHERE name = ?1")?;
    let mut one = |cap: &Cap| {
        let used: Option<i64> = statement.query_row([&cap.name], |row| row.get(0)).optional()?;
        used.map_or(Ok(0), amount)
    };
    caps.iter().map(&mut one).collect()
}

pub(super) fn set(db: &Db<'_>, caps: &[Cap], levels: &[u64]) -> Result<Held, StoreError> {
    let mut statement = db.conn.prepare_cached(SET)?;
    let mut one = |(cap, level): (&Cap, &u64)| {
        let columns = (&cap.name, column(*level)?, to_column(cap.ends.0));
        Ok(statement.query_row(columns, |row| row.get(0))?)
    };
    caps.iter().zip(levels).map(&mut one).collect::<Result<_, StoreError>>().map(Held)
}

/// An attempt has gone from counting as `before` to counting as `after`: its counters follow. One that is swept stays so.
pub(super) fn move_all(db: &Db<'_>, held: &Held, before: u64, after: u64) -> Result<(), StoreError> {
    if before == after {
        return Ok(());
    }
    let mut counters = held.0.clone();
    counters.sort_unstable();
    for same in counters.chunk_by(|one, other| one == other) {
        if let Some(id) = same.first() {
            move_one(db, *id, |used| ledger::moved(used, same.len(), before, after))?;
        }
    }
    Ok(())
}

fn move_one(db: &Db<'_>, id: i64, moved: impl FnOnce(u64) -> Result<u64, StoreError>) -> Result<(), StoreError> {
    let mut statement = db.conn.prepare_cached("SELECT used FROM counter WHERE id = ?1")?;
    let used: Option<i64> = statement.query_row([id], |row| row.get(0)).optional()?;
    let Some(used) = used else { return Ok(()) };
    let columns = (id, column(moved(amount(used)?)?)?);
    db.conn.prepare_cached("UPDATE counter SET used = ?2 WHERE id = ?1")?.execute(columns)?;
    Ok(())
}

pub(super) fn sweep(conn: &Connection, now: Timestamp) -> Result<usize, StoreError> {
    let before = ledger::forgotten_before(now);
    Ok(conn.prepare_cached(SWEEP)?.execute((to_column(before.0), SWEPT))?)
}
