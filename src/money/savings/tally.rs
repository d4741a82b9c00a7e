//! Credits on their way to the store: added up in memory, written once a second.
//!
//! A hit adds to the shard of its thread, which nobody else uses but the writer, and allocates nothing where its caller was seen
//! since the last writing. What is written goes in batches with an operation's id each; a batch that fails may have been written
//! all the same, so it is tried again as it is, by the same id, for as long as stores remember ids. After that it is given up: too
//! little is better than twice. Until the store answers again nothing new is tried, and the sums wait here, bounded: callers beyond
//! the bound are added up under `*`.

use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::seen::Seen;
use super::{CAUSES, Cause, Day, Page};
use crate::call::Caller;
use crate::clock::{Clock, Timestamp};
use crate::store::handle::StoreHandle;
use crate::store::money::Saved;
use crate::store::{Digest, OpId, StoreError};
use crate::uniform::Uniform;

const SHARDS: usize = 16;
/// Lines of one shard.
const LINES: usize = 1_000;
/// Rows of one store operation.
const ROWS: usize = 200;
/// Stores remember an operation's id for ten minutes.
const GIVE_UP: Duration = Duration::from_mins(8);

/// The credits of one gateway.
#[derive(Default)]
pub(crate) struct Tally {
    shards: [Mutex<HashMap<Key, Line, Uniform>>; SHARDS],
    queue: tokio::sync::Mutex<Queue>,
    seen: Seen,
}

/// Page and caller, both digests already; and the day, by its end.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key(u128, Timestamp);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(self.0);
    }
}

struct Line {
    page: Arc<Page>,
    day: String,
    caller: String,
    /// Requests and micro-units.
    sums: [(u64, u64); CAUSES],
}

#[derive(Default)]
struct Queue {
    batches: VecDeque<Batch>,
    /// The last one failed.
    failing: bool,
}

struct Batch {
    op: OpId,
    rows: Vec<Saved>,
    tried: Option<Timestamp>,
}

static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    static SHARD: usize = NEXT_THREAD.fetch_add(1, Ordering::Relaxed) % SHARDS;
}

impl Tally {
    pub(super) fn count(&self, page: &Arc<Page>, day: &Day, caller: Option<&Caller>, cause: Cause, micros: u64) {
        let Some(shard) = self.shards.get(SHARD.with(|shard| *shard)) else { return };
        let mut lines = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let full = lines.len() >= LINES;
        let id = |caller: Option<&Caller>| Key(page.id ^ caller.map_or(0, |caller| caller.id), day.ends);
        let caller = caller.filter(|_| !full || lines.contains_key(&id(caller)));
        let line = lines.entry(id(caller)).or_insert_with(|| Line {
            page: Arc::clone(page),
            day: day.name.clone(),
            caller: caller.map_or_else(|| "*".to_owned(), Caller::shown),
            sums: Default::default(),
        });
        if let Some((requests, saved)) = line.sums.get_mut(cause as usize) {
            (*requests, *saved) = (requests.saturating_add(1), saved.saturating_add(micros));
        }
    }

    /// Whether a question is refused for the first time today.
    pub(super) fn first_refusal(&self, key: &Digest, now: Timestamp) -> bool {
        self.seen.first(key, now)
    }

    /// Writes everything that has been added up.
    pub(crate) async fn flush(&self, store: &StoreHandle, clock: &Clock) -> Result<(), StoreError> {
        let mut queue = self.queue.lock().await;
        queue.send(store, clock).await?;
        if queue.failing {
            // The store is asked whether it is back before anything else is put at risk.
            store.credit(OpId::random(), &[]).await?;
            queue.failing = false;
        }
        let rows = self.take();
        let batches = rows.chunks(ROWS).map(|rows| Batch { op: OpId::random(), rows: rows.to_vec(), tried: None });
        queue.batches.extend(batches);
        queue.send(store, clock).await
    }

    /// The sums as rows; from here on they begin anew.
    fn take(&self) -> Vec<Saved> {
        let mut sums: HashMap<(Key, usize), Saved> = HashMap::new();
        for shard in &self.shards {
            let lines = std::mem::take(&mut *shard.lock().unwrap_or_else(PoisonError::into_inner));
            for (key, line) in lines {
                for (cause, (requests, micros)) in Cause::ALL.into_iter().zip(line.sums).filter(|(_, sum)| sum.0 > 0) {
                    let row = sums.entry((key, cause as usize)).or_insert_with(|| line.row(cause));
                    row.requests = row.requests.saturating_add(requests);
                    row.micros = row.micros.saturating_add(micros);
                }
            }
        }
        sums.into_values().collect()
    }
}

impl Line {
    fn row(&self, cause: Cause) -> Saved {
        Saved {
            day: self.day.clone(),
            route: self.page.route.clone(),
            caller: self.caller.clone(),
            cause: cause.word().to_owned(),
            currency: self.page.currency.clone(),
            requests: 0,
            micros: 0,
        }
    }
}

impl Queue {
    async fn send(&mut self, store: &StoreHandle, clock: &Clock) -> Result<(), StoreError> {
        while let Some(batch) = self.batches.front_mut() {
            let first = *batch.tried.get_or_insert(clock.ticks());
            if clock.ticks().since(first) > GIVE_UP {
                tracing::error!(rows = batch.rows.len(), "credits could not be written and are given up");
            } else if let Err(error) = store.credit(batch.op, &batch.rows).await {
                self.failing = true;
                return Err(error);
            }
            self.batches.pop_front();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
