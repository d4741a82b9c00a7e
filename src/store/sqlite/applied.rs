//! Operations already done.

use rusqlite::{Connection, OptionalExtension};

use super::super::{OPS_REMEMBERED, OpId, StoreError};
use super::upkeep::SWEPT;
use super::{Db, from_column, to_column};
use crate::clock::{Timestamp, micros};

const SWEEP: &str = "DELETE FROM applied WHERE op IN (SELECT op FROM applied WHERE at < ?1 LIMIT ?2)";

/// What `op` returned, if it has been done.
pub(super) fn result(db: &Db<'_>, op: OpId) -> Result<Option<u64>, StoreError> {
    let mut statement = db.conn.prepare_cached("SELECT result FROM applied WHERE op = ?1")?;
    let result: Option<i64> = statement.query_row([op.0.to_be_bytes()], |row| row.get(0)).optional()?;
    Ok(result.map(from_column))
}

/// Does `work` unless `op` has been done, and returns what the first time returned.
pub(super) fn once(db: &Db<'_>, op: OpId, work: impl FnOnce() -> Result<u64, StoreError>) -> Result<u64, StoreError> {
    if let Some(result) = result(db, op)? {
        return Ok(result);
    }
    let result = work()?;
    let mut statement = db.conn.prepare_cached("INSERT INTO applied (op, result, at) VALUES (?1, ?2, ?3)")?;
    statement.execute((op.0.to_be_bytes(), to_column(result), to_column(db.now.0)))?;
    Ok(result)
}

pub(super) fn sweep(conn: &Connection, now: Timestamp) -> Result<usize, StoreError> {
    let before = now.0.saturating_sub(micros(OPS_REMEMBERED));
    Ok(conn.prepare_cached(SWEEP)?.execute((to_column(before), SWEPT))?)
}
