//! What has been done once, for as long as that is to be known.

use std::time::Duration;

use rusqlite::Connection;

use crate::clock::Timestamp;
use crate::store::StoreError;
use crate::store::sqlite::upkeep::SWEPT;
use crate::store::sqlite::{Db, to_column};

const FIRST: &str = "INSERT INTO mark (mark, until) VALUES (?1, ?2)
    ON CONFLICT (mark) DO UPDATE SET until = excluded.until WHERE mark.until <= ?3";

const SWEEP: &str = "DELETE FROM mark WHERE mark IN (SELECT mark FROM mark WHERE until <= ?1 LIMIT ?2)";

/// Is `mark` not there? Then it is from now on.
pub(super) fn first(db: &Db<'_>, mark: &str, keep: Duration) -> Result<bool, StoreError> {
    let columns = (mark, to_column(db.now.after(keep).0), to_column(db.now.0));
    Ok(db.conn.prepare_cached(FIRST)?.execute(columns)? > 0)
}

pub(super) fn sweep(conn: &Connection, now: Timestamp) -> Result<usize, StoreError> {
    Ok(conn.prepare_cached(SWEEP)?.execute((to_column(now.0), SWEPT))?)
}
