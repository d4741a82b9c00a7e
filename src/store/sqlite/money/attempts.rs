//! The ledger's rows: attempts by their ids, and ids that were given up before they came.

use rusqlite::{Connection, OptionalExtension, named_params};

use super::counters::Held;
use super::{amount, column, reports};
use crate::clock::{Timestamp, micros};
use crate::store::money::Row;
use crate::store::money::ledger::{self, GIVEN_UP_KEPT, ORPHANED, ROW_KEPT, Standing, State};
use crate::store::sqlite::upkeep::SWEPT;
use crate::store::sqlite::{Db, to_column, unreadable};
use crate::store::{OpId, StoreError};

const OPEN: &str = "INSERT INTO attempt (id, state, at, micros, counters, day, route, provider, caller, shown, outcome, currency)
    VALUES (:id, :state, :at, :micros, :counters, :day, :route, :provider, :caller, :shown, '', :currency)";

const SETTLE: &str = "UPDATE attempt SET state = ?2, at = ?3, micros = ?4, outcome = ?5 WHERE number = ?1";

// The process that opened them is dead: it held the file alone.
const ORPHAN_OPEN: &str = "UPDATE attempt SET state = 'unknown', at = ?1, outcome = ?2 WHERE state = 'open'";

const GIVE_UP: &str = "INSERT INTO given_up (id, at) VALUES (?1, ?2) ON CONFLICT (id) DO NOTHING";

const SWEEP_GIVEN_UP: &str = "DELETE FROM given_up WHERE id IN (SELECT id FROM given_up WHERE at < ?1 LIMIT ?2)";

// Never one that is open or unknown. What is returned is what is gone: nothing is summed twice, and nothing is missed.
const SWEEP: &str =
    "DELETE FROM attempt WHERE number IN (SELECT number FROM attempt WHERE state IN ('billed', 'not_billed') AND at < ?1 LIMIT ?2)
    RETURNING day, route, provider, shown AS caller, state, outcome, currency, 1 AS calls, micros";

/// An attempt that can be settled.
pub(super) struct Attempt {
    number: i64,
    pub(super) standing: Standing,
    pub(super) held: Held,
}

pub(super) fn open(db: &Db<'_>, id: OpId, amount: u64, held: &Held, row: &Row) -> Result<(), StoreError> {
    let standing = Standing::open(amount);
    db.conn.prepare_cached(OPEN)?.execute(named_params! {
        ":id": id.0.to_be_bytes(),
        ":state": standing.state.word(),
        ":at": to_column(db.now.0),
        ":micros": column(standing.micros)?,
        ":counters": held.write()?,
        ":day": row.day,
        ":route": row.route,
        ":provider": row.provider,
        ":caller": row.caller.to_be_bytes(),
        ":shown": ledger::shown(row),
        ":currency": row.currency,
    })?;
    Ok(())
}

pub(super) fn is_known(db: &Db<'_>, id: OpId) -> Result<bool, StoreError> {
    Ok(db.conn.prepare_cached("SELECT 1 FROM attempt WHERE id = ?1")?.exists([id.0.to_be_bytes()])?)
}

pub(super) fn load(db: &Db<'_>, id: OpId) -> Result<Option<Attempt>, StoreError> {
    let mut statement = db.conn.prepare_cached("SELECT number, state, micros, counters FROM attempt WHERE id = ?1")?;
    let columns = |row: &rusqlite::Row<'_>| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?, row.get::<_, String>(3)?))
    };
    let Some((number, state, micros, counters)) = statement.query_row([id.0.to_be_bytes()], columns).optional()? else {
        return Ok(None);
    };
    let standing = Standing { state: State::read(&state).ok_or_else(unreadable)?, micros: amount(micros)? };
    Ok(Some(Attempt { number, standing, held: Held::read(&counters)? }))
}

pub(super) fn settle(db: &Db<'_>, attempt: &Attempt, then: Standing, outcome: &str) -> Result<(), StoreError> {
    let columns = (attempt.number, then.state.word(), to_column(db.now.0), column(then.micros)?, outcome);
    db.conn.prepare_cached(SETTLE)?.execute(columns)?;
    Ok(())
}

/// What is still open belongs to a process that has died: whether it was sent, nobody knows, so it stays spent. For when the file
/// has just been claimed, before anything is reserved.
pub(in crate::store::sqlite) fn orphan_open(conn: &Connection, now: Timestamp) -> Result<usize, StoreError> {
    Ok(conn.execute(ORPHAN_OPEN, (to_column(now.0), ORPHANED))?)
}

/// Sums some of the rows that were settled long ago, in their place.
pub(super) fn sweep(conn: &Connection, now: Timestamp) -> Result<usize, StoreError> {
    let before = now.0.saturating_sub(micros(ROW_KEPT));
    let mut statement = conn.prepare_cached(SWEEP)?;
    let gone = statement.query_map((to_column(before), SWEPT), |row| Ok(reports::read_spent(row)))?;
    let gone = gone.collect::<Result<Vec<_>, _>>()?;
    let count = gone.len();
    gone.into_iter().try_for_each(|row| reports::add_spent(conn, &row?))?;
    Ok(count)
}

// === Given up ===

pub(super) fn is_given_up(db: &Db<'_>, id: OpId) -> Result<bool, StoreError> {
    Ok(db.conn.prepare_cached("SELECT 1 FROM given_up WHERE id = ?1")?.exists([id.0.to_be_bytes()])?)
}

pub(super) fn give_up(db: &Db<'_>, id: OpId) -> Result<(), StoreError> {
    db.conn.prepare_cached(GIVE_UP)?.execute((id.0.to_be_bytes(), to_column(db.now.0)))?;
    Ok(())
}

pub(super) fn sweep_given_up(conn: &Connection, now: Timestamp) -> Result<usize, StoreError> {
    let before = now.0.saturating_sub(micros(GIVEN_UP_KEPT));
    Ok(conn.prepare_cached(SWEEP_GIVEN_UP)?.execute((to_column(before), SWEPT))?)
}
