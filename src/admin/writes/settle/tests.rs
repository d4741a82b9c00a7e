//! A store that settles and does not say so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::clock::Clock;
use crate::store::handle::{Backend, Patience, Whose};
use crate::store::memory::{Bounds, MemoryStore};
use crate::store::write::{Claim, Claimed, End, Found, Intention, Sending, Writes};
use crate::store::{OpId, Reply};
use crate::telemetry::Metrics;

/// What it is told it does; of so many settlings it does not say it.
struct Silent {
    own: Arc<MemoryStore>,
    times: AtomicU32,
}

impl Writes for Silent {
    fn claim<'a>(&'a self, claim: Claim<'a>) -> Reply<'a, Claimed> {
        self.own.claim(claim)
    }

    fn sending<'a>(&'a self, sending: Sending<'a>) -> Reply<'a, bool> {
        self.own.sending(sending)
    }

    fn prolong(&self, intention: Intention, owner: OpId, lease: Duration) -> Reply<'_, bool> {
        self.own.prolong(intention, owner, lease)
    }

    fn finish(&self, intention: Intention, owner: OpId, end: End) -> Reply<'_, bool> {
        self.own.finish(intention, owner, end)
    }

    fn unresolved(&self, most: usize) -> Reply<'_, Vec<Unresolved>> {
        self.own.unresolved(most)
    }

    fn resolve(&self, settling: Settling) -> Reply<'_, Settled> {
        Box::pin(async move {
            let settled = self.own.resolve(settling).await;
            let silent = self.times.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |times| times.checked_sub(1));
            if silent.is_ok() { Err(StoreError::Timeout) } else { settled }
        })
    }
}

/// What comes of settling one unknown write by two admins, where the store is silent about so many tries.
async fn settled(silent: u32) -> (Result<Settled, StoreError>, Result<Settled, StoreError>) {
    let clock = Clock::manual(Timestamp(1_796_040_000_000_000));
    let own = Arc::new(MemoryStore::new(clock.clone(), Bounds::default()));
    let writes = Arc::new(Silent { own: own.clone(), times: AtomicU32::new(silent) });
    let backend = Backend { writes, ..Backend::new(own.clone(), &own, Whose::Own(own.clone())) };
    let patience = Patience { one_call: Duration::from_secs(1), one_request: Duration::from_secs(1) };
    let store = StoreHandle::new(backend, patience, 1, clock.clone(), Metrics::new());
    let (intention, owner, lease) = (Intention(1), OpId(1), Duration::from_secs(5));
    let about = About { route: "sms".into(), ..About::default() };
    own.claim(Claim { intention, owner, fingerprint: &[1; 32], lease, again: None, look: false }).await.unwrap();
    assert!(own.sending(Sending { intention, owner, lease, timeout: lease, about: &about }).await.unwrap());
    assert!(own.finish(intention, owner, End::Unknown).await.unwrap());
    let settling = |by| Settling { intention, owner, by: OpId(by), found: Found::NotSent(Timestamp(u64::MAX)) };
    clock.advance(lease);
    (resolve(&store, &settling(8)).await, resolve(&store, &settling(9)).await)
}

#[tokio::test]
async fn a_settling_that_was_not_answered_is_not_lost() {
    let about = About { route: "sms".into(), ..About::default() };
    for silent in [0, 1] {
        let (first, second) = settled(silent).await;
        assert_eq!((first, second), (Ok(Settled::Yes(about.clone())), Ok(Settled::None)), "{silent} tries unanswered");
    }
    assert_eq!(settled(TRIES).await.0, Err(StoreError::Timeout));
}
