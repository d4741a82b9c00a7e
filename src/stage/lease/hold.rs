//! A lease in hand: renewed while its flight is in the air, given back however the flight ends.

use std::future::Future;
use std::time::Duration;

use tokio_util::task::TaskTracker;

use crate::call::Journey;
use crate::clock::Timestamp;
use crate::store::handle::StoreHandle;
use crate::store::lease::{Landing, Leave};
use crate::store::{Digest, OpId, StoreError, StoredAnswer};

/// The guard.
pub(super) struct Hold {
    flight: OpId,
    key: Digest,
    began: Timestamp,
    ttl: Duration,
    route: String,
    store: StoreHandle,
    tasks: TaskTracker,
    /// The store has said that the lease is this flight's.
    granted: bool,
    landed: bool,
}

impl Hold {
    pub(super) fn new(
        flight: OpId,
        key: Digest,
        began: Timestamp,
        ttl: Duration,
        route: String,
        store: StoreHandle,
        tasks: &TaskTracker,
    ) -> Self {
        Self { flight, key, began, ttl, route, store, tasks: tasks.clone(), granted: true, landed: false }
    }

    /// A lease that nobody was heard to grant: it may be another's.
    pub(super) fn unheard(mut self) -> Self {
        self.granted = false;
        self
    }

    /// Runs `flight`, and renews the lease beside it three times in its length.
    pub(super) async fn renewing<T>(&self, flight: impl Future<Output = T>) -> T {
        tokio::select! {
            result = flight => result,
            never = self.renew() => match never {},
        }
    }

    async fn renew(&self) -> std::convert::Infallible {
        let mut granted = self.granted;
        while self.store.is_shared() {
            tokio::time::sleep(self.ttl / 3).await;
            // A lease that is lost stays lost; the call is paid for and goes on. A store that is away may come back in time.
            match self.store.renew(self.flight, &self.key, self.ttl).await {
                Ok(true) => granted = true,
                Ok(false) => {
                    if granted {
                        let route = &self.route;
                        tracing::warn!(route, "a flight has lost its lease: the store was away, or this instance stood still");
                    }
                    break;
                }
                Err(_) => {}
            }
        }
        std::future::pending().await
    }

    /// Gives the lease back with what the flight brought home. False if the answer was purged meanwhile.
    pub(super) async fn land(mut self, journey: &Journey, keep: Option<StoredAnswer>, leave: Leave) -> Result<bool, StoreError> {
        self.landed = true;
        self.store.land(Some(journey), self.landing(keep, leave)).await
    }

    fn landing(&self, keep: Option<StoredAnswer>, leave: Leave) -> Landing<'_> {
        Landing { flight: self.flight, route: &self.route, key: &self.key, began: self.began, keep, leave }
    }
}

impl Drop for Hold {
    /// A flight that panicked or ran out of time leaves nothing: the next one may fly.
    fn drop(&mut self) {
        if self.landed || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (store, route, flight, key, began) = (self.store.clone(), self.route.clone(), self.flight, self.key, self.began);
        self.tasks.spawn(async move {
            let landing = Landing { flight, route: &route, key: &key, began, keep: None, leave: Leave::Nothing };
            let _ = store.land(None, landing).await;
        });
    }
}
