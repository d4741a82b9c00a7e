//! The lease: one flight for a key across all instances that share a store, and the inner half of the cache: a flight looks once
//! more on entering (whoever flew before may have kept the answer) and keeps what it brings home before another may begin.
//!
//! Entering looks for an answer and takes the lease in one step; landing keeps the answer, gives the lease back and wakes whoever
//! waits in one step ([`crate::store::lease`]). The holder renews its lease while it lives, so a lease is short and a killed
//! holder costs seconds. Whoever finds it held waits, woken by the store's push, with polling as a backstop, and shares what the
//! holder brings home, its failure included. Only a holder that has vanished is replaced, by one of those who wait.
//!
//! At the end of `lease.wait` a caller gets what is stale, else `try_again`: never a second paid call. A lease saves calls and
//! guards no money. Without the store each instance flies for itself (policy `local`, or `refuse`).

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::TaskTracker;

use super::keep::Keeper;
use super::{Next, Stage, Verdict};
use crate::answer::{Answer, Source};
use crate::call::Call;
use crate::config::section::Section;
use crate::flight::UNSHAREABLE;
use crate::refusal::{Code, Refusal};
use crate::store::handle::StoreHandle;
use crate::store::lease::{Entered, Entry, Leave};
use crate::store::{OpId, StoreError, StoredAnswer};

mod hold;
pub(crate) mod landings;
mod word;

use hold::Hold;
use landings::{Landings, Waiting};

/// `lease` of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// How long a lease outlives its holder.
    pub(crate) ttl: Duration,
    /// How long a flight waits for another instance's.
    pub(crate) wait: Duration,
}

impl Config {
    pub(crate) fn read(section: &Section<'_>, deadline: Duration) -> Self {
        let usual = Self { ttl: Duration::from_secs(3), wait: Duration::from_secs(5).min(deadline) };
        let Some(below) = section.section("lease") else { return usual };
        let config = Self { ttl: below.or("ttl", usual.ttl), wait: below.or("wait", usual.wait) };
        if config.wait > deadline {
            below.fault("wait", "is longer than the caller waits", "lower it below the route's deadline");
        }
        if config.ttl < SHORTEST {
            below.fault("ttl", "is too short to be renewed in time", "write 300ms or more");
        }
        below.finish();
        config
    }
}

/// A third of it must be ample for a round trip to the store.
const SHORTEST: Duration = Duration::from_millis(300);

/// A landing that was not heard of is found out within this time.
const POLL: Duration = Duration::from_millis(250);

/// The stage.
#[derive(Clone)]
pub(crate) struct Lease(Arc<Shared>);

struct Shared {
    config: Config,
    refuse_without_store: bool,
    keeper: Keeper,
    landings: Landings,
    tasks: TaskTracker,
}

impl Lease {
    /// None where the store belongs to this process, so that nobody is to be excluded, and nothing is kept.
    pub(crate) fn new(keeper: Keeper, landings: Landings, tasks: TaskTracker) -> Option<Self> {
        let route = &keeper.route;
        let (config, refuse_without_store) = (route.lease, route.on_store_error.lease_refuse);
        let needed = (keeper.answers.store.is_shared() || route.cache.is_some()) && route.writes.is_none();
        needed.then(|| Self(Arc::new(Shared { config, refuse_without_store, keeper, landings, tasks })))
    }
}

impl Stage for Lease {
    type In = Call;
    type Out = Call;

    async fn handle(&self, call: Call, next: &impl Next<Call>) -> Verdict {
        let shared = &self.0;
        let door = if call.alone || shared.is_needless(&call) { Door::Unleased } else { shared.enter(&call).await? };
        match door {
            Door::Ended(verdict) => verdict,
            Door::Unleased => {
                let began = shared.keeper.begins();
                let answer = next.run(call.clone()).await?;
                Ok(shared.keeper.keep(&call, answer, began).await)
            }
            Door::Leased(hold) => {
                let verdict = hold.renewing(next.run(call.clone())).await;
                shared.land(&call, hold, verdict).await
            }
        }
    }
}

/// What is behind the door.
enum Door {
    /// This flight holds the lease.
    Leased(Hold),
    /// It flies without one: the store is away, or answers to this question are for one asker each.
    Unleased,
    /// There is nothing to fly for: an answer was there, or another flight has ended.
    Ended(Verdict),
}

// === impl Shared ===

impl Shared {
    fn store(&self) -> &StoreHandle {
        &self.keeper.answers.store
    }

    /// Nobody else could have kept an answer that memory does not have.
    fn is_needless(&self, call: &Call) -> bool {
        !self.store().is_shared() && (call.volatile || call.directives.refresh)
    }

    /// Takes the lease, or waits for whoever has it.
    async fn enter(&self, call: &Call) -> Result<Door, Refusal> {
        let look = !call.directives.refresh && self.keeper.route.cache.is_some() && !call.volatile;
        if look && let Some(kept) = self.keeper.answers.memory.get(&call.key) {
            let now = self.keeper.answers.clock.now();
            if kept.is_fresh(now) {
                return Ok(Door::Ended(Ok(Answer::stored(kept, false, now))));
            }
            // What is stale in memory is stale in a store that nobody else writes.
            if !self.store().is_shared() {
                return Ok(Door::Unleased);
            }
        }
        let flight = OpId::random();
        // Before the first look: a landing between it and the waiting must be heard.
        let waiting = self.landings.wait_for(call.key);
        let entry = Entry { flight, key: &call.key, ttl: self.config.ttl, look, waiting: None };
        match self.store().enter(Some(&call.journey), entry).await {
            Ok(Entered::Held { since, left }) => {
                let patience = tokio::time::timeout(self.config.wait, self.wait(call, entry, since, left, &waiting));
                patience.await.unwrap_or_else(|_| {
                    // It may just have been asked for the lease: what was granted unheard is given back.
                    drop(self.hold_unheard(call, flight));
                    Err(waited_in_vain())
                })
            }
            entered => self.entered(call, flight, entered, false),
        }
    }

    /// Enters again whenever there may be news: at a push, when the lease would end, or after a while.
    async fn wait(
        &self,
        call: &Call,
        entry: Entry<'_>,
        since: crate::clock::Timestamp,
        mut left: Duration,
        waiting: &Waiting,
    ) -> Result<Door, Refusal> {
        let entry = Entry { waiting: Some(since), ..entry };
        let mut unheard = false;
        loop {
            // A little after its end: a lease is still held in its last millisecond.
            let _ = tokio::time::timeout(left.saturating_add(Duration::from_millis(2)).min(POLL), waiting.told()).await;
            // Polling is not bound by the patience of a request: each time by itself, and all together by `lease.wait`.
            match self.store().enter(None, entry).await {
                Ok(Entered::Held { left: rest, .. }) => (left, unheard) = (rest, false),
                // One reply that is lost says nothing of the holder.
                Err(_) if !unheard => unheard = true,
                entered => return self.entered(call, entry.flight, entered, true),
            }
        }
    }

    fn entered(&self, call: &Call, flight: OpId, entered: Result<Entered, StoreError>, waited: bool) -> Result<Door, Refusal> {
        match entered {
            Ok(Entered::Taken(began)) => Ok(Door::Leased(self.hold(call, flight, began))),
            Ok(Entered::Found(stored)) => Ok(self.found(call, stored, waited)),
            Ok(Entered::Ended(word)) => Ok(word::read(&word).map_or(Door::Unleased, Door::Ended)),
            Ok(Entered::Alone | Entered::Held { .. }) => Ok(Door::Unleased),
            Err(error) if self.refuse_without_store => {
                self.store().fell_back("lease", "refuse");
                let refusal = Refusal::new(Code::StoreUnavailable, "other instances cannot be seen");
                Err(refusal.after(Duration::from_secs(1)).because(error))
            }
            Err(_) => {
                self.store().fell_back("lease", "local");
                Ok(if self.store().is_shared() { Door::Leased(self.hold_unheard(call, flight)) } else { Door::Unleased })
            }
        }
    }

    fn hold(&self, call: &Call, flight: OpId, began: crate::clock::Timestamp) -> Hold {
        Hold::new(flight, call.key, began, self.config.ttl, self.keeper.route.name.clone(), self.store().clone(), &self.tasks)
    }

    /// The lease may have been granted unheard: it is held as if it were, and given back in the end. If it is another's, neither has
    /// any effect.
    fn hold_unheard(&self, call: &Call, flight: OpId) -> Hold {
        self.hold(call, flight, self.keeper.begins()).unheard()
    }

    /// An answer of the store, which memory gets, too.
    fn found(&self, call: &Call, stored: StoredAnswer, waited: bool) -> Door {
        let Some(kept) = self.keeper.answers.adopt(call, &self.keeper.generation, stored) else { return Door::Unleased };
        let source = if waited {
            Source::Joined { stored: true }
        } else {
            Source::Cache { stale: false, at: self.keeper.answers.clock.now() }
        };
        Door::Ended(Ok(Answer { kept, source }))
    }

    /// Keeps what was brought home, gives the lease back, tells those who wait: one step of the store.
    async fn land(&self, call: &Call, hold: Hold, verdict: Verdict) -> Verdict {
        let keep = verdict.as_ref().ok().and_then(|answer| self.keeper.worth_keeping(call, answer));
        let (keeps, leave) = (keep.is_some(), leave(&verdict, keep.is_some()));
        let landed = hold.land(&call.journey, keep, leave).await;
        let answer = verdict?;
        Ok(if keeps { self.keeper.kept(call, answer, landed).await } else { answer })
    }
}

/// What those get who wait for this flight.
fn leave(verdict: &Verdict, keeps: bool) -> Leave {
    match verdict {
        Ok(answer) if !answer.kept.shareable => Leave::Alone(UNSHAREABLE),
        Ok(_) if keeps => Leave::Kept,
        Ok(answer) => Leave::Word(word::answer(answer)),
        Err(refusal) if refusal.its_askers.is_some() => Leave::Nothing,
        Err(refusal) => Leave::Word(word::refusal(refusal)),
    }
}

fn waited_in_vain() -> Refusal {
    Refusal::new(Code::TryAgain, "another instance is asking and has not been answered yet").after(Duration::from_secs(1))
}
