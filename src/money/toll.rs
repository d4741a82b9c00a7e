//! The money of one attempt: set aside before its first byte, settled once, however the attempt ends.
//!
//! A toll that is dropped unsettled (a panic, a flight out of time) becomes unknown, which stays spent. Settling is a task of its own,
//! repeated until the store has heard of it: what is repeated has no further effect. Should the process end before, its row stays
//! open, and whoever finds it makes it unknown.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use super::Money;
use crate::store::OpId;
use crate::store::handle::StoreHandle;
use crate::store::money::{Reservation, Reserved, Row, Settlement};

/// How often settling is tried, with a wait that doubles from a tenth of a second to five: a day. The end of a drain ends it, too.
const TRIES: u32 = 17_280;

/// No more than this may wait to be settled; beyond, nothing more is paid.
pub(crate) const WAITING: usize = 100_000;

/// The guard.
pub(crate) struct Toll {
    id: OpId,
    pub(crate) amount: Money,
    /// The ledger's row, where the store was away and no cap was over the attempt: it is written afterwards.
    owed: Option<Row>,
    store: StoreHandle,
    tasks: TaskTracker,
    settled: bool,
}

impl Toll {
    pub(crate) fn new(id: OpId, amount: Money, owed: Option<Row>, store: StoreHandle, tasks: TaskTracker) -> Self {
        Self { id, amount, owed, store, tasks, settled: false }
    }

    pub(crate) fn id(&self) -> OpId {
        self.id
    }

    /// Settles in the background. Whoever cares that the money is free again waits for the task.
    pub(crate) fn settle(mut self, settlement: Settlement, outcome: &'static str) -> JoinHandle<()> {
        self.settled = true;
        self.send(settlement, outcome)
    }

    fn send(&mut self, settlement: Settlement, outcome: &'static str) -> JoinHandle<()> {
        let (id, amount, owed, store) = (self.id, self.amount, self.owed.take(), self.store.clone());
        self.tasks.spawn(async move {
            for attempt in 0..TRIES {
                if enter(&store, id, amount, owed.as_ref()).await {
                    insist_on_settling(&store, id, settlement, outcome).await;
                    return;
                }
                tokio::time::sleep(pause(attempt)).await;
            }
            tracing::error!("an attempt could not be entered: nothing counts it as spent");
        })
    }
}

/// Settles, again and again until the store has heard it: what is repeated has no further effect. Whether it changed anything, as
/// far as is known: of a try that had no answer it is not.
pub(crate) async fn insist_on_settling(store: &StoreHandle, id: OpId, settlement: Settlement, outcome: &'static str) -> bool {
    for attempt in 0..TRIES {
        if let Ok(changed) = store.settle(id, settlement, outcome).await {
            return changed;
        }
        tokio::time::sleep(pause(attempt)).await;
    }
    tracing::error!("an attempt could not be settled: it stays counted as spent");
    false
}

fn pause(attempt: u32) -> Duration {
    Duration::from_millis(100 << attempt.min(6)).min(Duration::from_secs(5))
}

/// Opens the row that is owed.
async fn enter(store: &StoreHandle, id: OpId, amount: Money, owed: Option<&Row>) -> bool {
    let Some(row) = owed else { return true };
    let reservation = Reservation { id, caps: &[], amount: amount.micros, row: row.clone() };
    matches!(store.reserve(None, reservation).await, Ok(Reserved::Yes(_)))
}

impl Drop for Toll {
    fn drop(&mut self) {
        if !self.settled && tokio::runtime::Handle::try_current().is_ok() {
            drop(self.send(Settlement::Unknown, "unknown"));
        }
    }
}
