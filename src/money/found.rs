//! The money of a write once somebody has found out what came of it.
//!
//! Whoever sent it more than once without a word of what came of it has set its price aside as often, the newest last. Had it its
//! effect, then once, for nobody sends again but to a provider that tells one intention from another: one reservation is billed,
//! the newest of those that are not settled yet. The last attempts may be settled (they found no connection, or were refused);
//! then the one before them is what is paid. It is billed first: should this process end in between, the others stay counted. (Of one whose
//! last attempt was billed before its process died, an earlier one is billed, too: rather too much than too little.)

use super::toll::insist_on_settling;
use crate::store::handle::StoreHandle;
use crate::store::money::Settlement;
use crate::store::write::About;

/// The ledger's word for an attempt at what was done once, and is paid as another attempt's.
pub(crate) const REPEATED: &str = "repeated";
const SENT: &str = "found_sent";
const NOT_SENT: &str = "found_not_sent";

/// Settles what was set aside for it.
pub(crate) async fn settle(store: &StoreHandle, about: &About, was_sent: bool) {
    let mut owed = was_sent;
    for id in about.reservations().into_iter().rev() {
        let (settlement, outcome) = match (owed, was_sent) {
            (true, _) => (Settlement::Billed(about.micros), SENT),
            (false, true) => (Settlement::NotBilled, REPEATED),
            (false, false) => (Settlement::NotBilled, NOT_SENT),
        };
        let changed = insist_on_settling(store, id, settlement, outcome).await;
        owed &= !changed;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::clock::{Clock, Timestamp};
    use crate::store::OpId;
    use crate::store::handle::{Backend, Patience, Whose};
    use crate::store::memory::{Bounds, MemoryStore};
    use crate::store::money::{Days, Reservation, Row};
    use crate::telemetry::Metrics;

    fn store() -> StoreHandle {
        let clock = Clock::manual(Timestamp(1_796_040_000_000_000));
        let own = Arc::new(MemoryStore::new(clock.clone(), Bounds::default()));
        let backend = Backend::new(own.clone(), &own, Whose::Own(own.clone()));
        let patience = Patience { one_call: Duration::from_secs(1), one_request: Duration::from_secs(1) };
        StoreHandle::new(backend, patience, 1, clock, Metrics::new())
    }

    fn row() -> Row {
        Row {
            day: "2026-11-30".into(),
            route: "pay".into(),
            provider: "stripe".into(),
            caller: 1,
            caller_name: None,
            currency: "USD".into(),
        }
    }

    /// The ledger after settling a write whose attempts had come to this, by state and word, with how many and how much.
    async fn ledger(attempts: &[Option<Settlement>], was_sent: bool) -> Vec<(String, String, u64, u64)> {
        let (store, ids) = (store(), (1..).map(OpId).take(attempts.len()).collect::<Vec<_>>());
        for (id, settlement) in ids.iter().zip(attempts) {
            store.reserve(None, Reservation { id: *id, caps: &[], amount: 5, row: row() }).await.unwrap();
            if let Some(settlement) = settlement {
                store.settle(*id, *settlement, "before").await.unwrap();
            }
        }
        let about = About { micros: 5, ..About::default() }.with_reservations(ids);
        settle(&store, &about, was_sent).await;
        let days = Days { from: "2026-11-30".into(), to: "2026-11-30".into() };
        let mut rows: Vec<_> = store.spent(&days).await.unwrap();
        rows.sort_by_key(|row| (row.state.clone(), row.outcome.clone()));
        rows.into_iter().map(|row| (row.state, row.outcome, row.calls, row.micros)).collect()
    }

    fn rows(rows: &[(&str, &str, u64, u64)]) -> Vec<(String, String, u64, u64)> {
        rows.iter().map(|(state, word, calls, micros)| ((*state).to_owned(), (*word).to_owned(), *calls, *micros)).collect()
    }

    const UNKNOWN: Option<Settlement> = Some(Settlement::Unknown);
    const NOT_BILLED: Option<Settlement> = Some(Settlement::NotBilled);

    #[tokio::test]
    async fn what_was_sent_is_paid_once_however_often_it_was_tried() {
        let paid = ("billed", SENT, 1, 5);
        assert_eq!(ledger(&[UNKNOWN], true).await, rows(&[paid]));
        assert_eq!(ledger(&[None], true).await, rows(&[paid]), "its instance died");
        assert_eq!(ledger(&[UNKNOWN, UNKNOWN, None], true).await, rows(&[paid, ("not_billed", REPEATED, 2, 0)]));
        let last = [UNKNOWN, UNKNOWN, NOT_BILLED, NOT_BILLED];
        let free = [("not_billed", "before", 2, 0), ("not_billed", REPEATED, 1, 0)];
        assert_eq!(ledger(&last, true).await, rows(&[paid, free[0], free[1]]), "the last ones found no connection");
        assert_eq!(ledger(&[Some(Settlement::Billed(7))], true).await, rows(&[("billed", "before", 1, 7)]));
    }

    #[tokio::test]
    async fn what_was_not_sent_is_not_paid() {
        assert_eq!(ledger(&[UNKNOWN, None], false).await, rows(&[("not_billed", NOT_SENT, 2, 0)]));
        assert_eq!(ledger(&[], false).await, rows(&[]));
    }
}
