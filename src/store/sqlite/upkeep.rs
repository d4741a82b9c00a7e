//! What the writer does between commits: checkpoints and sweeps. Traffic pays for it: without writes there is nothing to do.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::super::StoreError;
use super::{answers, applied, lockouts, money, writes};
use crate::clock::Timestamp;

/// A lull after this many commits is used for a checkpoint.
const COMMITS: u32 = 256;
/// A log longer than this is cut, lull or not.
const LONG: u64 = 64 * 1024 * 1024;
/// Time between two sweeps when the last one found little.
const SWEEP_EVERY: Duration = Duration::from_mins(1);
/// Rows of a kind that one sweep removes at most, so that nobody waits long behind it and a
/// backlog is still worked off as fast as it can grow.
pub(super) const SWEPT: u32 = 256;

/// When what is due.
pub(super) struct Upkeep {
    log: PathBuf,
    commits: u32,
    /// Length of the log at which it is to be cut.
    cut_at: u64,
    sweep_at: Timestamp,
}

impl Upkeep {
    pub(super) fn new(path: &Path, now: Timestamp) -> Self {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        Self { log: log.into(), commits: 0, cut_at: LONG, sweep_at: now }
    }

    /// `lull`: nobody waits.
    pub(super) fn after_commit(&mut self, conn: &Connection, now: Timestamp, lull: bool) {
        self.commits = self.commits.saturating_add(1);
        if now >= self.sweep_at {
            self.sweep(conn, now);
        }
        let length = std::fs::metadata(&self.log).map_or(0, |log| log.len());
        if length > self.cut_at {
            // Someone who reads for long can prevent it: then not again at once.
            self.cut_at = if checkpoint(conn, "TRUNCATE") { LONG } else { length.saturating_add(LONG) };
            self.commits = 0;
        } else if lull && self.commits >= COMMITS {
            checkpoint(conn, "PASSIVE");
            self.commits = 0;
        }
    }

    fn sweep(&mut self, conn: &Connection, now: Timestamp) {
        let next = match sweep(conn, now) {
            Ok(true) => now,
            Ok(false) => now.after(SWEEP_EVERY),
            Err(error) => {
                tracing::warn!(%error, "sweeping the store failed");
                now.after(SWEEP_EVERY)
            }
        };
        self.sweep_at = next;
    }
}

/// Removes some of what has lost its meaning; true if there may be more.
fn sweep(conn: &Connection, now: Timestamp) -> Result<bool, StoreError> {
    let transaction = conn.unchecked_transaction()?;
    let removed =
        [answers::sweep(conn, now)?, lockouts::sweep(conn, now)?, applied::sweep(conn, now)?, writes::sweep(conn, now)?];
    let of_money = money::sweep(conn, now)?;
    transaction.commit()?;
    Ok(removed.iter().chain(&of_money).any(|rows| *rows >= SWEPT as usize))
}

/// Leaves the file without a log.
pub(super) fn at_end(conn: &Connection) {
    checkpoint(conn, "TRUNCATE");
}

/// True if it was completed.
fn checkpoint(conn: &Connection, mode: &str) -> bool {
    let busy = conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| row.get::<_, i64>(0));
    match busy {
        Ok(busy) => busy == 0,
        Err(error) => {
            tracing::warn!(error = %StoreError::from(error), "a checkpoint of the store failed");
            false
        }
    }
}
