//! The store as a request sees it: every call has a deadline, all calls of one request together have one patience, and each is
//! counted. A slow store is a down store.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::event::Health;
use super::lease::{Entered, Entry, Landing, Leases};
use super::memory::{Bounds, MemoryStore};
use super::money::{Days, Money, Reservation, Reserved, Saved, Settlement, Spent};
use super::outage::Outage;
use super::redis::RedisStore;
use super::write::{Claim, Claimed, End, Intention, Sending, Settled, Settling, Unresolved, Writes};
use super::{
    Bucket, Coordination, Digest, Guess, LockoutRule, LockoutState, OpId, Records, StoreError, StoredAnswer, Switch, Taken,
};
use crate::call::Journey;
use crate::clock::{Clock, Timestamp};
use crate::telemetry::Metrics;

/// A backend: its two roles, where they meet, and whose it is.
#[derive(Clone)]
pub(crate) struct Backend {
    pub(crate) coordination: Arc<dyn Coordination>,
    pub(crate) records: Arc<dyn Records>,
    pub(crate) leases: Arc<dyn Leases>,
    pub(crate) money: Arc<dyn Money>,
    pub(crate) writes: Arc<dyn Writes>,
    pub(crate) whose: Whose,
}

impl Backend {
    /// Records, leases, money and writes of one store.
    pub(crate) fn new<T>(coordination: Arc<dyn Coordination>, store: &Arc<T>, whose: Whose) -> Self
    where
        T: Records + Leases + Money + Writes,
    {
        let (records, leases, money, writes) = (Arc::clone(store), Arc::clone(store), Arc::clone(store), Arc::clone(store));
        Self { coordination, records, leases, money, writes, whose }
    }
}

/// To whom a store belongs.
#[derive(Clone)]
pub(crate) enum Whose {
    /// To this process. Its coordination never leaves it and is no store call: it cannot be slow and needs no deadline, no id and
    /// no box.
    Own(Arc<MemoryStore>),
    /// To all instances.
    Shared(Arc<RedisStore>),
}

/// Instances last heard of. After an outage they are heard of again one by one: a lower number is believed after a while, a higher
/// one at once.
#[derive(Clone, Copy, Debug, Default)]
struct Alive {
    count: u32,
    before: u32,
    since: Timestamp,
}

/// Longer than an instance may be silent and still be alive.
const BELIEVED_AFTER: Duration = Duration::from_secs(6);

impl Alive {
    fn count_at(&self, now: Timestamp) -> u32 {
        if now.since(self.since) < BELIEVED_AFTER { self.count.max(self.before) } else { self.count }
    }
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
    /// Those stated by the config: there are no fewer.
    floor: u32,
    /// Those last heard of.
    alive: Mutex<Alive>,
    clock: Clock,
    metrics: Arc<Metrics>,
    /// Buckets of last resort, for when shared coordination is away (they live on, so a flapping store does not give both), and
    /// the pauses this instance knows of.
    local: Arc<MemoryStore>,
    outage: Outage,
}

impl StoreHandle {
    pub(crate) fn new(backend: Backend, patience: Patience, instances: u32, clock: Clock, metrics: Arc<Metrics>) -> Self {
        let local = match &backend.whose {
            Whose::Own(memory) => Arc::clone(memory),
            Whose::Shared(_) => Arc::new(MemoryStore::new(clock.clone(), Bounds::default())),
        };
        let (floor, alive) = (instances.max(1), Mutex::default());
        let outage = Outage::default();
        Self(Arc::new(Shared { backend, patience, floor, alive, clock, metrics, local, outage }))
    }

    /// Whether other instances use it, too.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared().is_some()
    }

    fn shared(&self) -> Option<&RedisStore> {
        match &self.0.backend.whose {
            Whose::Own(_) => None,
            Whose::Shared(store) => Some(store),
        }
    }

    /// How a shared store is.
    pub(crate) fn health(&self) -> Option<Health> {
        self.shared().map(RedisStore::health)
    }

    /// Calls `tell` when the store is lost (`true`), and when it is back.
    pub(crate) fn when_lost(&self, tell: impl Fn(bool) + Send + Sync + 'static) {
        self.0.outage.tell(tell);
    }

    /// So many instances are alive.
    pub(crate) fn set_alive(&self, instances: u32) {
        let mut alive = self.0.alive.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.0.clock.ticks();
        *alive = Alive { count: instances, before: alive.count_at(now), since: now };
    }

    /// By how many this instance's share is divided.
    fn instances(&self) -> u32 {
        let alive = self.0.alive.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.floor.max(alive.count_at(self.0.clock.ticks()))
    }

    /// A stage goes on without the store, or refuses, as its policy says.
    pub(crate) fn fell_back(&self, stage: &'static str, policy: &'static str) {
        self.0.metrics.store_fallback(stage, policy);
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
        shared.outage.heard(op, result.is_err());
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
        if let Whose::Own(memory) = &self.0.backend.whose {
            return Ok(memory.take_now(buckets, debit));
        }
        let coordination = &self.0.backend.coordination;
        // What leaves the process is boxed, here and below: a hit must not carry the weight of a call it does not make.
        Box::pin(self.timed(Some(journey), "take", coordination.take(op(), buckets, debit))).await
    }

    /// The buckets of last resort: this instance's share of rate and burst, at least one request's cost.
    pub(crate) fn local_share(&self, buckets: &[Bucket], debit: bool) -> Taken {
        let instances = self.instances();
        let share: Vec<Bucket> = buckets
            .iter()
            .map(|bucket| Bucket {
                capacity: (bucket.capacity / u64::from(instances)).max(bucket.cost),
                per: bucket.per.saturating_mul(instances),
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
        self.heard_of_pause(provider, until);
        if self.is_shared() {
            let _ = self.timed(Some(journey), "pause", self.0.backend.coordination.pause(provider, until)).await;
        }
    }

    /// A pause this instance knows of, whoever was told.
    pub(crate) fn heard_of_pause(&self, provider: &str, until: Timestamp) {
        self.0.local.pause_now(provider, until);
    }

    /// Until when a provider is paused. What other instances were told has been heard.
    pub(crate) fn paused(&self, provider: &str) -> Option<Timestamp> {
        self.0.local.paused_now(provider)
    }

    // === Leases ===

    /// Knocks for a flight. Without a journey it is not bound by a request's patience.
    pub(crate) async fn enter(&self, journey: Option<&Journey>, entry: Entry<'_>) -> Result<Entered, StoreError> {
        Box::pin(self.timed(journey, "enter", self.0.backend.leases.enter(entry))).await
    }

    pub(crate) async fn renew(&self, flight: OpId, key: &Digest, ttl: Duration) -> Result<bool, StoreError> {
        Box::pin(self.timed(None, "renew", self.0.backend.leases.renew(flight, key, ttl))).await
    }

    /// Lands a flight: not bound by the request's patience, for what it brings home is paid.
    pub(crate) async fn land(&self, journey: Option<&Journey>, landing: Landing<'_>) -> Result<bool, StoreError> {
        if landing.keep.is_none() && !self.is_shared() {
            return Ok(true);
        }
        let started = self.0.clock.ticks();
        let landed = Box::pin(self.timed(None, "land", self.0.backend.leases.land(landing))).await;
        if let Some(journey) = journey {
            journey.store_call(self.0.clock.ticks().since(started));
        }
        landed
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

    // === Money ===

    /// Sets money aside for an attempt. Without a journey it is not bound by a request's patience.
    pub(crate) async fn reserve(&self, journey: Option<&Journey>, reservation: Reservation<'_>) -> Result<Reserved, StoreError> {
        Box::pin(self.timed(journey, "reserve", self.0.backend.money.reserve(reservation))).await
    }

    pub(crate) async fn settle(&self, id: OpId, settlement: Settlement, outcome: &str) -> Result<bool, StoreError> {
        self.timed(None, "settle", self.0.backend.money.settle(id, settlement, outcome)).await
    }

    pub(crate) async fn credit(&self, op: OpId, saved: &[Saved]) -> Result<(), StoreError> {
        self.timed(None, "credit", self.0.backend.money.credit(op, saved)).await
    }

    pub(crate) async fn spent(&self, days: &Days) -> Result<Vec<Spent>, StoreError> {
        self.timed(None, "spent", self.0.backend.money.spent(days)).await
    }

    pub(crate) async fn saved(&self, days: &Days) -> Result<Vec<Saved>, StoreError> {
        self.timed(None, "saved", self.0.backend.money.saved(days)).await
    }

    pub(crate) async fn first(&self, mark: &str, keep: Duration) -> Result<bool, StoreError> {
        self.timed(None, "first", self.0.backend.money.first(mark, keep)).await
    }

    pub(crate) async fn accept_loss(&self) -> Result<(), StoreError> {
        self.timed(None, "accept_loss", self.0.backend.money.accept_loss()).await
    }

    // === Writes ===

    pub(crate) async fn claim(&self, journey: &Journey, claim: Claim<'_>) -> Result<Claimed, StoreError> {
        Box::pin(self.timed(Some(journey), "claim", self.0.backend.writes.claim(claim))).await
    }

    pub(crate) async fn sending(&self, journey: &Journey, sending: Sending<'_>) -> Result<bool, StoreError> {
        Box::pin(self.timed(Some(journey), "sending", self.0.backend.writes.sending(sending))).await
    }

    pub(crate) async fn prolong(&self, intention: Intention, owner: OpId, lease: Duration) -> Result<bool, StoreError> {
        self.timed(None, "prolong", self.0.backend.writes.prolong(intention, owner, lease)).await
    }

    /// Ends a write: not bound by the request's patience, for it may be paid.
    pub(crate) async fn finish(&self, intention: Intention, owner: OpId, end: End) -> Result<bool, StoreError> {
        self.timed(None, "finish", self.0.backend.writes.finish(intention, owner, end)).await
    }

    pub(crate) async fn unresolved(&self, most: usize) -> Result<Vec<Unresolved>, StoreError> {
        self.timed(None, "unresolved", self.0.backend.writes.unresolved(most)).await
    }

    pub(crate) async fn resolve(&self, settling: Settling) -> Result<Settled, StoreError> {
        self.timed(None, "resolve", self.0.backend.writes.resolve(settling)).await
    }

    /// Ends the store in order.
    pub(crate) async fn close(&self) {
        let _ = self.timed(None, "close", self.0.backend.records.close()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_instances_are_believed_after_a_while_and_more_at_once() {
        let heard = |alive: Alive, count, now| Alive { count, before: alive.count_at(now), since: now };
        let second = |n: u64| Timestamp(0).after(Duration::from_secs(n));
        let three = heard(Alive::default(), 3, second(100));
        assert_eq!(three.count_at(second(100)), 3);
        // After an outage the first to come back hears of itself alone, and then of one more.
        let one = heard(three, 1, second(200));
        let two = heard(one, 2, second(201));
        assert_eq!((one.count_at(second(200)), two.count_at(second(206)), two.count_at(second(207))), (3, 3, 2));
    }
}
