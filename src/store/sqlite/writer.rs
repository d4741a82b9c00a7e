//! The one thread that writes: it takes what is queued, commits it together, and answers only then.

use std::path::Path;
use std::sync::Mutex;
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot, watch};

use super::super::StoreError;
use super::file::Claim;
use super::upkeep::{self, Upkeep};
use super::{Db, lock};
use crate::clock::Clock;

/// Operations waiting at most; more wait for room, within their own deadline.
const QUEUE: usize = 1024;
/// Operations in one commit at most.
const TOGETHER: usize = 256;

/// Handle to the thread.
pub(super) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Box<dyn Job>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Its other half is dropped when the thread has given up the file.
    end: watch::Receiver<()>,
}

impl Writer {
    pub(super) fn start(conn: Connection, claim: Claim, path: &Path, clock: Clock) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let (ended, end) = watch::channel(());
        let mut thread = Thread { upkeep: Upkeep::new(path, clock.now()), conn, clock };
        let main = move || {
            thread.work(jobs);
            drop(thread);
            drop(claim);
            drop(ended);
        };
        let thread = std::thread::Builder::new().name("store-writer".to_owned()).spawn(main);
        let thread = thread.map_err(|error| StoreError::Failed(format!("no thread for the store's writer: {error}")))?;
        Ok(Self { queue: Mutex::new(Some(queue)), thread: Mutex::new(Some(thread)), end })
    }

    /// Has `work` done in a transaction. Returns when it is on the disk.
    ///
    /// Once queued it is done even if nobody waits for it any more: the caller cannot know how far it was.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let queue = lock(&self.queue).clone().ok_or_else(closed)?;
        let (done, outcome) = oneshot::channel();
        let task = Task { work: Some(work), result: Err(closed()), done };
        queue.send(Box::new(task)).await.map_err(|_| closed())?;
        drop(queue);
        outcome.await.map_err(|_| StoreError::Failed("the store's writer has ended".to_owned()))?
    }

    /// Lets the thread finish what is queued, and waits for its end.
    pub(super) async fn close(&self) {
        drop(lock(&self.queue).take());
        let _ = self.end.clone().changed().await;
    }

    /// As [`close`](Self::close), for where nothing can be awaited.
    pub(super) fn close_blocking(&self) {
        drop(lock(&self.queue).take());
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

pub(super) fn closed() -> StoreError {
    StoreError::Failed("the store is closed".to_owned())
}

// === One operation ===

trait Job: Send {
    /// Does the work inside a transaction. If it fails it must be undone.
    fn run(&mut self, db: &Db<'_>) -> Result<(), StoreError>;

    /// Tells whoever waits, once the transaction has ended.
    fn answer(self: Box<Self>, commit: Result<(), StoreError>);
}

struct Task<T, F> {
    work: Option<F>,
    result: Result<T, StoreError>,
    done: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Task<T, F>
where
    T: Send,
    F: FnOnce(&Db<'_>) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, db: &Db<'_>) -> Result<(), StoreError> {
        if let Some(work) = self.work.take() {
            self.result = work(db);
        }
        self.result.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    fn answer(self: Box<Self>, commit: Result<(), StoreError>) {
        let Self { result, done, .. } = *self;
        let _ = done.send(commit.and(result));
    }
}

// === The thread ===

struct Thread {
    conn: Connection,
    clock: Clock,
    upkeep: Upkeep,
}

impl Thread {
    fn work(&mut self, mut jobs: mpsc::Receiver<Box<dyn Job>>) {
        while let Some(first) = jobs.blocking_recv() {
            let mut batch = vec![first];
            while batch.len() < TOGETHER
                && let Ok(next) = jobs.try_recv()
            {
                batch.push(next);
            }
            self.commit(batch);
            self.upkeep.after_commit(&self.conn, self.clock.now(), jobs.is_empty());
        }
        upkeep::at_end(&self.conn);
    }

    fn commit(&self, mut batch: Vec<Box<dyn Job>>) {
        let outcome = self.transaction(&mut batch);
        if outcome.is_err() && !self.conn.is_autocommit() {
            let _ = self.conn.execute_batch("ROLLBACK");
        }
        for job in batch {
            job.answer(outcome.clone());
        }
    }

    /// All in one transaction; one that fails is undone alone, unless SQLite has had to give up the whole.
    fn transaction(&self, batch: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
        self.run("BEGIN IMMEDIATE")?;
        for job in batch {
            self.run("SAVEPOINT job")?;
            if let Err(error) = job.run(&Db { conn: &self.conn, now: self.clock.now() }) {
                if self.conn.is_autocommit() {
                    return Err(error);
                }
                self.run("ROLLBACK TO job")?;
            }
            self.run("RELEASE job")?;
        }
        self.run("COMMIT")
    }

    fn run(&self, sql: &str) -> Result<(), StoreError> {
        self.conn.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}
