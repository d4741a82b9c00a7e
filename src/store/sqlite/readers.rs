//! Connections that only read, on the runtime's blocking threads: a few, opened when first needed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::super::StoreError;
use super::writer::closed;
use super::{Db, file, lock};
use crate::clock::Clock;

/// Reads at a time.
const READERS: usize = 4;

/// The pool.
pub(super) struct Readers {
    permits: Arc<Semaphore>,
    pool: Arc<Pool>,
}

struct Pool {
    path: PathBuf,
    timeout: Duration,
    clock: Clock,
    /// `None` when closed.
    idle: Mutex<Option<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf, timeout: Duration, clock: Clock) -> Self {
        let pool = Pool { path, timeout, clock, idle: Mutex::new(Some(Vec::new())) };
        Self { permits: Arc::new(Semaphore::new(READERS)), pool: Arc::new(pool) }
    }

    /// Sees every write that was answered before this is called.
    pub(super) async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Db<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| closed())?;
        let pool = Arc::clone(&self.pool);
        let work = move || {
            let result = pool.with(work);
            drop(permit);
            result
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| StoreError::Failed("a reader of the store has ended".to_owned()))?
    }

    pub(super) fn close(&self) {
        self.permits.close();
        drop(lock(&self.pool.idle).take());
    }
}

impl Pool {
    fn with<T>(&self, work: impl FnOnce(&Db<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let idle = lock(&self.idle).as_mut().ok_or_else(closed)?.pop();
        let conn = idle.map_or_else(|| file::open_reader(&self.path, self.timeout), Ok)?;
        let result = work(&Db { conn: &conn, now: self.clock.now() });
        if let Some(idle) = lock(&self.idle).as_mut() {
            idle.push(conn);
        }
        result
    }
}
