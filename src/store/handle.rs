//! The store as a request sees it: every call has a deadline, all calls of one request together have one patience, and each is
//! counted. A slow store is a down store.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::memory::{Bounds, MemoryStore};
use super::{
    Bucket, Coordination, Digest, Guess, LockoutRule, LockoutState, OpId, Records, StoreError, StoredAnswer, Switch, Taken,
};
use crate::call::Journey;
use crate::clock::{Clock, Timestamp};
use crate::telemetry::Metrics;

/// A backend: its two roles, and whether coordination is this process's own memory.
#[derive(Clone)]
pub(crate) struct Backend {
    pub(crate) coordination: Arc<dyn Coordination>,
    pub(crate) records: Arc<dyn Records>,
    /// Coordination that never leaves the process is not a store call: it cannot be slow and needs no deadline, no id and no box.
    pub(crate) local: Option<Arc<MemoryStore>>,
}

/// Deadlines, from `[store]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) one_call: Duration,
    pub(crate) one_request: Duration,
}

/// The handle. Cloning shares it.
#[derive(Clone)]
pub(crate) struct StoreHandle(Arc<Shared>);

struct Shared {
    backend: Backend,
    patience: Patience,
    instances: u32,
    clock: Clock,
    metrics: Arc<Metrics>,
    /// Buckets of last resort, for when shared coordination is away. They live on, so a flapping store does not give both.
    local: MemoryStore,
}

impl StoreHandle {
    pub(crate) fn new(backend: Backend, patience: Patience, instances: u32, clock: Clock, metrics: Arc<Metrics>) -> Self {
        let local = MemoryStore::new(clock.clone(), Bounds::default());
        Self(Arc::new(Shared { backend, patience, instances, clock, metrics, local }))
    }

    async fn timed<T>(
        &self,
        journey: Option<&Journey>,
        op: &'static str,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let shared = &*self.0;
        let spent = journey.map_or(Duration::ZERO, Journey::store_time);
        let left = shared.patience.one_request.saturating_sub(spent);
        let deadline = if journey.is_some() { left.min(shared.patience.one_call) } else { shared.patience.one_call };
        let started = shared.clock.ticks();
        let result = tokio::time::timeout(deadline, call).await.unwrap_or(Err(StoreError::Timeout));
        let took = shared.clock.ticks().since(started);
        if let Some(journey) = journey {
            journey.store_call(took);
        }
        shared.metrics.store_call(op, took, result.is_err());
        result
    }

    // === Coordination ===

    pub(crate) async fn take(
        &self,
        journey: &Journey,
        op: impl FnOnce() -> OpId,
        buckets: &[Bucket],
        debit: bool,
    ) -> Result<Taken, StoreError> {
        if let Some(local) = &self.0.backend.local {
            return Ok(local.take_now(buckets, debit));
        }
        let coordination = &self.0.backend.coordination;
        // What leaves the process is boxed, here and below: a hit must not carry the weight of a call it does not make.
        let taken = Box::pin(self.timed(Some(journey), "take", coordination.take(op(), buckets, debit))).await;
        if taken.is_err() && debit {
            self.0.metrics.store_fallback("limits", "local-share");
        }
        taken
    }

    /// The buckets of last resort: this instance's share of rate and burst, at least one request's cost.
    pub(crate) fn local_share(&self, buckets: &[Bucket], debit: bool) -> Taken {
        let instances = u64::from(self.0.instances.max(1));
        let share: Vec<Bucket> = buckets
            .iter()
            .map(|bucket| Bucket {
                capacity: (bucket.capacity / instances).max(bucket.cost),
                per: bucket.per.saturating_mul(self.0.instances.max(1)),
                ..*bucket
            })
            .collect();
        self.0.local.take_now(&share, debit)
    }

    /// Takes one attempt from a provider's quota.
    pub(crate) async fn quota(&self, journey: &Journey, bucket: Bucket) -> Result<Taken, StoreError> {
        self.take(journey, OpId::random, &[bucket], true).await
    }

    pub(crate) async fn pause(&self, journey: &Journey, provider: &str, until: Timestamp) {
        if self.0.backend.local.is_some() {
            let _ = self.0.backend.coordination.pause(provider, until).await;
        } else {
            let _ = self.timed(Some(journey), "pause", self.0.backend.coordination.pause(provider, until)).await;
        }
    }

    /// Until when a provider is paused. A store that does not answer does not pause.
    pub(crate) async fn paused(&self, journey: &Journey, provider: &str) -> Option<Timestamp> {
        let call = self.0.backend.coordination.paused(provider);
        let paused = if self.0.backend.local.is_some() { call.await } else { self.timed(Some(journey), "paused", call).await };
        paused.ok().flatten()
    }

    // === Records ===

    pub(crate) async fn answer(&self, journey: &Journey, key: &Digest) -> Result<Option<StoredAnswer>, StoreError> {
        Box::pin(self.timed(Some(journey), "answer", self.0.backend.records.answer(key))).await
    }

    /// Keeps a paid answer: not bound by the request's patience, for it is paid.
    pub(crate) async fn keep(
        &self,
        journey: &Journey,
        route: &str,
        key: &Digest,
        answer: StoredAnswer,
    ) -> Result<(), StoreError> {
        let started = self.0.clock.ticks();
        let kept = self.timed(None, "keep", self.0.backend.records.keep(route, key, answer)).await;
        journey.store_call(self.0.clock.ticks().since(started));
        kept
    }

    pub(crate) async fn forget(&self, route: &str, key: &Digest) -> Result<(), StoreError> {
        self.timed(None, "forget", self.0.backend.records.forget(route, key)).await
    }

    pub(crate) async fn generation(&self, route: &str) -> Result<u64, StoreError> {
        self.timed(None, "generation", self.0.backend.records.generation(route)).await
    }

    pub(crate) async fn raise_generation(&self, route: &str) -> Result<u64, StoreError> {
        self.timed(None, "raise_generation", self.0.backend.records.raise_generation(OpId::random(), route)).await
    }

    pub(crate) async fn switches(&self) -> Result<Vec<(String, Switch)>, StoreError> {
        self.timed(None, "switches", self.0.backend.records.switches()).await
    }

    pub(crate) async fn set_switch(&self, name: &str, switch: Switch) -> Result<u64, StoreError> {
        self.timed(None, "set_switch", self.0.backend.records.set_switch(name, switch)).await
    }

    pub(crate) async fn guess(
        &self,
        journey: &Journey,
        op: OpId,
        subjects: &[Digest],
        rule: LockoutRule,
        expires: Timestamp,
    ) -> Result<Guess, StoreError> {
        self.timed(Some(journey), "guess", self.0.backend.records.guess(op, subjects, rule, expires)).await
    }

    pub(crate) async fn settle_guess(
        &self,
        op: OpId,
        subjects: &[Digest],
        rule: LockoutRule,
        missed: bool,
    ) -> Result<(), StoreError> {
        self.timed(None, "settle_guess", self.0.backend.records.settle_guess(op, subjects, rule, missed)).await
    }

    pub(crate) async fn lockout(&self, subject: &Digest, rule: LockoutRule) -> Result<LockoutState, StoreError> {
        self.timed(None, "lockout", self.0.backend.records.lockout(subject, rule)).await
    }

    pub(crate) async fn clear_lockout(&self, subject: &Digest) -> Result<(), StoreError> {
        self.timed(None, "clear_lockout", self.0.backend.records.clear_lockout(subject)).await
    }

    /// Ends the store in order.
    pub(crate) async fn close(&self) {
        let _ = self.timed(None, "close", self.0.backend.records.close()).await;
    }
}
