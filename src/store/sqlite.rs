//! One SQLite file: the embedded store of a single process. Records are on the disk before they are answered for;
//! coordination stays in process memory.
//!
//! One thread writes (`writer`): it takes whatever is queued, commits it together, and answers only then. A few connections
//! read beside it (`readers`). The file belongs to one process at a time (`file`): a second one is refused, not queued.
//!
//! An operation that runs out of time is not taken back: it may still be done.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use self::readers::Readers;
use self::writer::Writer;
use super::lease::{Entered, Entry, Landing, Leases};
use super::memory::{Bounds, MemoryStore};
use super::{
    Bucket, Coordination, Digest, Guess, LockoutRule, LockoutState, OpId, Records, Reply, StoreError, StoredAnswer, Switch, Taken,
};
use crate::clock::{Clock, Timestamp};

mod answers;
mod applied;
mod file;
mod lockouts;
mod money;
mod readers;
mod routes;
mod upkeep;
mod writer;
mod writes;

#[cfg(test)]
mod tests;

/// The store in one file.
pub struct SqliteStore {
    coordination: MemoryStore,
    writer: Writer,
    readers: Readers,
    timeout: Duration,
    /// Switches set so far, counted by the thread that writes.
    revision: Arc<AtomicU64>,
}

/// What an operation works on.
struct Db<'a> {
    conn: &'a Connection,
    now: Timestamp,
}

impl SqliteStore {
    /// Opens the file at `path`, creating it if it is not there. `timeout` is for every operation; [`close`](Records::close)
    /// takes what it needs.
    pub fn open(path: &Path, clock: Clock, timeout: Duration) -> Result<Arc<Self>, StoreError> {
        let path = file::resolve(path);
        let claim = file::claim(&path)?;
        let conn = file::open_writer(&path, timeout)?;
        orphan(&conn, clock.now()).map_err(|error| file::named(&path, &error))?;
        // Answers are on the disk: memory keeps none.
        let coordination = MemoryStore::new(clock.clone(), Bounds { answer_bytes: 0, ..Bounds::default() });
        let writer = Writer::start(conn, claim, &path, clock.clone())?;
        let readers = Readers::new(path, timeout, clock);
        Ok(Arc::new(Self { coordination, writer, readers, timeout, revision: Arc::default() }))
    }

    fn write<T, F>(&self, work: F) -> Reply<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        Box::pin(self.in_time(self.writer.write(work)))
    }

    fn read<T, F>(&self, work: F) -> Reply<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        Box::pin(self.in_time(self.readers.read(work)))
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        tokio::time::timeout(self.timeout, work).await.unwrap_or(Err(StoreError::Timeout))
    }
}

/// The file was another process's, which is gone.
fn orphan(conn: &Connection, now: Timestamp) -> Result<(), StoreError> {
    money::orphan_open(conn, now)?;
    writes::orphan(conn, now)
}

impl Drop for SqliteStore {
    /// Finishes what is queued, so that the file can be opened again as soon as the store is gone.
    fn drop(&mut self) {
        self.readers.close();
        self.writer.close_blocking();
    }
}

// === impl Coordination ===

impl Coordination for SqliteStore {
    fn take<'a>(&'a self, op: OpId, buckets: &'a [Bucket], debit: bool) -> Reply<'a, Taken> {
        self.coordination.take(op, buckets, debit)
    }

    fn pause<'a>(&'a self, provider: &'a str, until: Timestamp) -> Reply<'a, ()> {
        self.coordination.pause(provider, until)
    }

    fn paused<'a>(&'a self, provider: &'a str) -> Reply<'a, Option<Timestamp>> {
        self.coordination.paused(provider)
    }
}

// === impl Leases ===

impl Leases for SqliteStore {
    fn enter<'a>(&'a self, entry: Entry<'a>) -> Reply<'a, Entered> {
        let (key, look) = (*entry.key, entry.look);
        self.read(move |db| {
            let kept = if look { answers::get(db, &key)? } else { None };
            Ok(kept.filter(|kept| kept.is_fresh(db.now)).map_or(Entered::Taken(db.now), Entered::Found))
        })
    }

    fn renew<'a>(&'a self, _: OpId, _: &'a Digest, _: Duration) -> Reply<'a, bool> {
        Box::pin(std::future::ready(Ok(true)))
    }

    fn land<'a>(&'a self, landing: Landing<'a>) -> Reply<'a, bool> {
        let Landing { route, key, keep, .. } = landing;
        let Some(answer) = keep else { return Box::pin(std::future::ready(Ok(true))) };
        let (route, key) = (route.to_owned(), *key);
        self.write(move |db| answers::keep(db, &route, &key, &answer).map(|()| true))
    }
}

// === impl Records ===

impl Records for SqliteStore {
    fn answer<'a>(&'a self, key: &'a Digest) -> Reply<'a, Option<StoredAnswer>> {
        let key = *key;
        self.read(move |db| answers::get(db, &key))
    }

    fn keep<'a>(&'a self, route: &'a str, key: &'a Digest, answer: StoredAnswer) -> Reply<'a, ()> {
        let (route, key) = (route.to_owned(), *key);
        self.write(move |db| answers::keep(db, &route, &key, &answer))
    }

    fn forget<'a>(&'a self, _: &'a str, key: &'a Digest) -> Reply<'a, ()> {
        let key = *key;
        self.write(move |db| answers::forget(db, &key))
    }

    fn generation<'a>(&'a self, route: &'a str) -> Reply<'a, u64> {
        let route = route.to_owned();
        self.read(move |db| routes::generation(db, &route))
    }

    fn raise_generation<'a>(&'a self, op: OpId, route: &'a str) -> Reply<'a, u64> {
        let route = route.to_owned();
        self.write(move |db| routes::raise_generation(db, op, &route))
    }

    fn switches(&self) -> Reply<'_, Vec<(String, Switch)>> {
        self.read(routes::switches)
    }

    fn set_switch<'a>(&'a self, name: &'a str, switch: Switch) -> Reply<'a, u64> {
        let (name, revision) = (name.to_owned(), Arc::clone(&self.revision));
        self.write(move |db| {
            routes::set_switch(db, &name, &switch)?;
            Ok(revision.fetch_add(1, Ordering::Relaxed) + 1)
        })
    }

    fn guess<'a>(&'a self, op: OpId, subjects: &'a [Digest], rule: LockoutRule, expires: Timestamp) -> Reply<'a, Guess> {
        let subjects = subjects.to_owned();
        self.write(move |db| lockouts::guess(db, op, &subjects, rule, expires))
    }

    fn settle_guess<'a>(&'a self, op: OpId, subjects: &'a [Digest], rule: LockoutRule, missed: bool) -> Reply<'a, ()> {
        let subjects = subjects.to_owned();
        self.write(move |db| lockouts::settle(db, op, &subjects, rule, missed))
    }

    fn lockout<'a>(&'a self, subject: &'a Digest, rule: LockoutRule) -> Reply<'a, LockoutState> {
        let subject = *subject;
        self.read(move |db| Ok(lockouts::load(db, &subject)?.state(rule, db.now)))
    }

    fn clear_lockout<'a>(&'a self, subject: &'a Digest) -> Reply<'a, ()> {
        let subject = *subject;
        self.write(move |db| lockouts::clear(db, &subject))
    }

    fn close(&self) -> Reply<'_, ()> {
        Box::pin(async move {
            self.readers.close();
            self.writer.close().await;
            Ok(())
        })
    }
}

// === Small things ===

/// SQLite's own words for its codes hold nothing of ours; whatever else it says might.
impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::SqliteFailure(code, _) => Self::Failed(format!("SQLite: {code}")),
            _ => unreadable(),
        }
    }
}

fn unreadable() -> StoreError {
    StoreError::Failed("a record in the file does not read as it was written".to_owned())
}

/// SQLite's integers are signed. Beyond their end is the end of time.
fn to_column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn from_column(number: i64) -> u64 {
    if number == i64::MAX { u64::MAX } else { u64::try_from(number).unwrap_or(0) }
}

/// Locks; nothing these guard can be left half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
