//! The cache: process memory, then the store. A fresh hit ends here and costs nothing.
//!
//! A stale answer is served, marked, while one refresh flies for it (`stale_while_revalidate`), and on provider trouble
//! (`stale_if_error`): 5xx, time-outs, cut bodies, an open breaker, back-pressure. Never for a 4xx, never past its window. Expiry
//! is set once, when an answer is stored; reads extend nothing, and a refresh that fails extends nothing either: the next one
//! backs off.
//!
//! A caller may force a fresh answer as often as the route's `refresh` bucket allows; beyond that it gets the hit.
//!
//! Without the store the cache is passed (or refuses, if the route says so). What is written is the business of `keep`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use quick_cache::sync::DefaultLifecycle;
use tokio_util::task::TaskTracker;

use super::{Next, Stage, Verdict};
use crate::answer::{Answer, Kept, Outcome};
use crate::call::{Call, Journey};
use crate::clock::{Clock, Timestamp};
use crate::config::section::Section;
use crate::config::units::Lifetime;
use crate::refusal::{Code, Refusal};
use crate::route::Route;
use crate::shared::Generation;
use crate::stage::limits::identity;
use crate::store::handle::StoreHandle;
use crate::store::{Bucket, Digest, OpId, StoredAnswer, Taken};
use crate::uniform::Uniform;

/// `cache` of a route: how long each outcome is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) found: Option<Duration>,
    pub(crate) not_found: Option<Duration>,
    pub(crate) weak: Option<Duration>,
    pub(crate) rejected: Option<Duration>,
    /// Both windows start when freshness ends.
    pub(crate) stale_if_error: Duration,
    pub(crate) stale_while_revalidate: Duration,
}

impl Config {
    pub(crate) fn read(section: &Section<'_>) -> Option<Self> {
        let below = section.section("cache")?;
        let lifetime = |key| below.get::<Lifetime>(key).map(Lifetime::duration);
        let config = Self {
            found: lifetime("found"),
            not_found: lifetime("not_found"),
            weak: lifetime("weak"),
            rejected: lifetime("rejected"),
            stale_if_error: lifetime("stale_if_error").unwrap_or_default(),
            stale_while_revalidate: lifetime("stale_while_revalidate").unwrap_or_default(),
        };
        below.finish();
        Some(config)
    }

    pub(crate) fn lifetime(&self, outcome: Outcome) -> Option<Duration> {
        match outcome {
            Outcome::Answered => self.found,
            Outcome::NotFound => self.not_found,
            Outcome::Weak => self.weak,
            Outcome::Rejected => self.rejected,
            Outcome::Busy | Outcome::Denied | Outcome::Failed | Outcome::Unknown => None,
        }
    }

    /// Every lifetime under its key.
    pub(crate) fn lifetimes(&self) -> [(&'static str, Option<Duration>); 4] {
        [("found", self.found), ("not_found", self.not_found), ("weak", self.weak), ("rejected", self.rejected)]
    }
}

/// Answers in process memory, over all routes, bounded by bytes.
pub(crate) type Memory = Arc<quick_cache::sync::Cache<Digest, Arc<Kept>, ByWeight, Uniform>>;

/// What an answer weighs: its bytes.
#[derive(Clone)]
pub(crate) struct ByWeight;

impl quick_cache::Weighter<Digest, Arc<Kept>> for ByWeight {
    fn weight(&self, _: &Digest, kept: &Arc<Kept>) -> u64 {
        kept.weight()
    }
}

pub(crate) fn memory(bytes: usize) -> Memory {
    // An ordinary answer is about a KiB.
    Arc::new(quick_cache::sync::Cache::with(bytes >> 10, bytes as u64, ByWeight, Uniform::default(), DefaultLifecycle::default()))
}

/// Where answers are kept: both levels of one gateway.
#[derive(Clone)]
pub(crate) struct Answers {
    pub(crate) memory: Memory,
    pub(crate) store: StoreHandle,
    pub(crate) clock: Clock,
}

impl Answers {
    /// What is kept under a call's key, fresh or within some window. `generation` is its route's.
    pub(crate) async fn find(
        &self,
        call: &Call,
        generation: &Generation,
        now: Timestamp,
    ) -> Result<Option<Arc<Kept>>, crate::store::StoreError> {
        if let Some(kept) = self.memory.get(&call.key) {
            if now < kept.expires() {
                return Ok(Some(kept));
            }
            self.forget(&call.key, &kept);
        }
        let Some(stored) = self.store.answer(&call.journey, &call.key).await? else { return Ok(None) };
        Ok(self.adopt(call, generation, stored).filter(|kept| now < kept.expires()))
    }

    /// Puts an answer of the store into memory.
    pub(crate) fn adopt(&self, call: &Call, generation: &Generation, stored: StoredAnswer) -> Option<Arc<Kept>> {
        let read = Arc::new(Kept::from_stored(stored)?);
        // Another reader may have been quicker: all share one entry, and with it one claim to refresh it.
        let shared = self.memory.get_or_insert_with(&call.key, || Ok::<_, Infallible>(Arc::clone(&read)));
        let mut kept = shared.unwrap_or_else(|never| match never {});
        if kept.stored < read.stored {
            // Another instance has refreshed it: what memory had is past.
            self.memory.insert(call.key, Arc::clone(&read));
            kept = read;
        }
        if generation.era() != call.era {
            self.forget(&call.key, &kept);
        }
        Some(kept)
    }

    /// Puts a new answer into memory; false if something of its route was purged since its call began. Whoever puts something
    /// there looks afterwards: a purge is counted before it clears the memory, so one of the two sees the other.
    pub(crate) fn remember(&self, call: &Call, generation: &Generation, kept: &Arc<Kept>) -> bool {
        self.memory.insert(call.key, Arc::clone(kept));
        let current = generation.era() == call.era;
        if !current {
            self.forget(&call.key, kept);
        }
        current
    }

    /// Forgets this entry in memory, and no other that has come in its place.
    fn forget(&self, key: &Digest, kept: &Arc<Kept>) {
        self.memory.remove_if(key, |known| Arc::ptr_eq(known, kept));
    }
}

/// The stage.
#[derive(Clone)]
pub(crate) struct Cache(Arc<Shared>);

struct Shared {
    route: Arc<Route>,
    answers: Answers,
    generation: Generation,
    tasks: TaskTracker,
}

impl Cache {
    pub(crate) fn new(route: &Arc<Route>, answers: Answers, generation: Generation, tasks: TaskTracker) -> Option<Self> {
        route.cache?;
        Some(Self(Arc::new(Shared { route: Arc::clone(route), answers, generation, tasks })))
    }
}

impl Stage for Cache {
    type In = Call;
    type Out = Call;

    async fn handle(&self, call: Call, next: &impl Next<Call>) -> Verdict {
        let shared = &*self.0;
        if call.volatile {
            return shared.pass(call, next).await;
        }
        // From here on the call says what was granted, not what was wished for.
        let wished = call.directives.refresh;
        let call = call.granted(false);
        let now = shared.answers.clock.now();
        let kept = match shared.answers.find(&call, &shared.generation, now).await {
            Ok(kept) => kept,
            Err(error) if shared.route.on_store_error.cache_refuse => {
                shared.answers.store.fell_back("cache", "refuse");
                return Err(Refusal::new(Code::StoreUnavailable, "the cache cannot be read")
                    .after(Duration::from_secs(1))
                    .because(error));
            }
            Err(_) => {
                shared.answers.store.fell_back("cache", "pass");
                None
            }
        };
        let Some(kept) = kept else { return shared.pass(call, next).await };
        let fresh = kept.is_fresh(now);
        // An entry from the future is expired: nobody knows how old it is.
        let stale = !fresh && kept.stored <= now;
        let young = call.directives.max_age.is_none_or(|most| kept.age_at(now) <= most);
        if call.directives.only_if_cached {
            // The other answer would be a 504, for which stale-if-error is meant, too.
            let usable = young && (fresh || stale);
            return if usable { Ok(Answer::stored(kept, stale, now)) } else { shared.pass(call, next).await };
        }
        let servable = fresh || (stale && now < kept.revalidate_until);
        if !servable {
            return shared.replace(call, kept, next).await;
        }
        if (wished || !young) && shared.may_refresh(&call).await {
            return shared.replace(call.granted(true), kept, next).await;
        }
        if stale {
            shared.refresh(&call, &kept, next);
        }
        Ok(Answer::stored(kept, stale, now))
    }
}

// === impl Shared ===

impl Shared {
    /// Nothing usable is stored.
    async fn pass(&self, call: Call, next: &impl Next<Call>) -> Verdict {
        if call.directives.only_if_cached {
            return Err(Refusal::new(Code::NotCached, "no stored answer to this question"));
        }
        // What a hit never reaches is boxed, so that a hit does not carry its weight.
        Box::pin(next.run(call)).await
    }

    /// Asks again; if the provider is in trouble, what is stored stands in, inside its window.
    async fn replace(&self, call: Call, kept: Arc<Kept>, next: &impl Next<Call>) -> Verdict {
        let journey = Arc::clone(&call.journey);
        let verdict = Box::pin(next.run(call)).await;
        let Err(refusal) = &verdict else { return verdict };
        let now = self.answers.clock.now();
        if kept.is_fresh(now) {
            return Ok(Answer::stored(kept, false, now));
        }
        if refusal.is_trouble() && kept.stored <= now && now < kept.error_until {
            journey.notes.stands_in(refusal.code);
            return Ok(Answer::stored(kept, true, now));
        }
        verdict
    }

    /// One refresh flies for any number of stale hits. After a failure the next one waits.
    fn refresh(&self, call: &Call, kept: &Arc<Kept>, next: &impl Next<Call>) {
        let clock = &self.answers.clock;
        let now = clock.now();
        if !kept.claim_refresh(now, now.after(self.route.provider.flight)) {
            return;
        }
        call.journey.notes.refreshes();
        let (kept, clock, next) = (Arc::clone(kept), clock.clone(), next.clone());
        // Its time, attempts and wishes are its own, not those of whoever met the stale entry.
        let call = call.in_background(Journey::new(call.journey.id.clone(), clock.ticks()), self.route.provider.flight);
        self.tasks.spawn(async move {
            let stale = Arc::clone(&kept);
            // What is not kept in its place leaves the stale entry to the next hit, as a failure does.
            if !next.run(call).await.is_ok_and(|answer| answer.is_kept()) {
                stale.refresh_failed(clock.now());
            }
        });
    }

    async fn may_refresh(&self, call: &Call) -> bool {
        let Some(rule) = self.route.refresh else { return false };
        let id = identity(&[b"refresh", self.route.name.as_bytes(), &call.caller.id.to_be_bytes()]);
        let bucket = Bucket::whole(id, rule.burst, rule.rate.count, rule.rate.per);
        matches!(self.answers.store.take(&call.journey, OpId::random, &[bucket], true).await, Ok(Taken::Yes(_)))
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::call::{Caller, Directives, Facts, Question, RequestId};
    use crate::store::handle::{Backend, Patience, Whose};
    use crate::store::memory::{Bounds, MemoryStore};
    use crate::telemetry::Metrics;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn answers() -> Answers {
        let clock = Clock::manual(NOW);
        let local = Arc::new(MemoryStore::new(clock.clone(), Bounds::default()));
        let backend = Backend::new(local.clone(), &local, Whose::Own(local.clone()));
        let second = Duration::from_secs(1);
        let patience = Patience { one_call: second, one_request: second };
        let store = StoreHandle::new(backend, patience, 1, clock.clone(), Metrics::new());
        Answers { memory: memory(1 << 20), store, clock }
    }

    fn call(generation: &Generation) -> Call {
        Call::new(Facts {
            question: Question::default(),
            key: [1; 32],
            caller: Caller::new("key", "web"),
            directives: Directives::default(),
            wait: Duration::from_secs(1),
            journey: Journey::new(RequestId::Ours(uuid::Uuid::nil()), NOW),
            volatile: false,
            alone: false,
            idempotency_key: None,
            write: None,
            era: generation.era(),
        })
    }

    fn kept() -> Kept {
        let mut kept = Kept::passing(StatusCode::OK, Outcome::Answered, "old".into(), NOW);
        kept.fresh_until = NOW.after(Duration::from_secs(60));
        kept
    }

    #[tokio::test]
    async fn what_was_read_before_a_purge_does_not_come_back_into_memory() {
        let (answers, generation) = (answers(), Generation::default());
        let call = call(&generation);
        answers.store.keep(&call.journey, "quote", &call.key, kept().to_stored()).await.unwrap();
        // The purge comes between this call's beginning and the end of its look.
        generation.count_single();
        assert!(answers.find(&call, &generation, NOW).await.unwrap().is_some(), "it was asked for before the purge");
        answers.store.forget("quote", &call.key).await.unwrap();
        assert!(answers.find(&call, &generation, NOW).await.unwrap().is_none());
    }

    #[test]
    fn what_was_paid_for_before_a_purge_does_not_either() {
        let (answers, generation) = (answers(), Generation::default());
        let (before, kept) = (call(&generation), Arc::new(kept()));
        generation.count_single();
        let after = call(&generation);
        assert!(!answers.remember(&before, &generation, &kept) && answers.memory.get(&before.key).is_none());
        assert!(answers.remember(&after, &generation, &kept) && answers.memory.get(&before.key).is_some());
    }
}
