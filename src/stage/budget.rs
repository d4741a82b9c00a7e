//! What every attempt on the wire must pass, retries included: the switch is read again, the attempt's price is set aside in every cap
//! that is over it, all at once or not at all, and the provider's quota is debited.
//!
//! Refuses as the switch does, `busy` for the quota, `budget_exhausted` where a cap cannot hold the price: 429 for a caller's own
//! cap (which concerns that caller alone: who shares the flight may be charged instead), 503 for a route's or the provider's.
//!
//! Without the store, or with one that has lost its records, nobody knows what is spent, so nothing is paid under a cap. Where no cap is over a route (`budget = "none"`, said
//! aloud) the attempt goes out, and its row is written into the ledger when the store is back.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio_util::task::TaskTracker;

use super::kill_switch::KillSwitch;
use super::limits::identity;
use super::{Next, Stage, Verdict};
use crate::call::{Attempt, Call};
use crate::clock::{Clock, Timestamp};
use crate::money::budget::Over;
use crate::money::toll::{Toll, WAITING};
use crate::money::{Budget as Said, Money};
use crate::refusal::{Code, Refusal};
use crate::route::Route;
use crate::store::handle::StoreHandle;
use crate::store::money::{Cap, Reservation, Reserved, Row, Settlement};
use crate::store::write::About;
use crate::store::{Bucket, OpId, StoreError, Taken};

mod watch;

pub(crate) use watch::Watch;

/// The stage. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Budget(Arc<Shared>);

struct Shared {
    route: Arc<Route>,
    switch: KillSwitch,
    /// The provider's quota, over all routes together.
    quota: Option<Bucket>,
    store: StoreHandle,
    clock: Clock,
    tasks: TaskTracker,
    watch: Watch,
}

impl Budget {
    pub(crate) fn new(
        route: &Arc<Route>,
        switch: KillSwitch,
        store: StoreHandle,
        clock: Clock,
        tasks: TaskTracker,
        watch: Watch,
    ) -> Self {
        let provider = &route.provider;
        let id = identity(&[b"quota", provider.name.as_bytes()]);
        let quota = provider.quota.map(|rule| Bucket::whole(id, rule.burst, rule.rate.count, rule.rate.per));
        Self(Arc::new(Shared { route: Arc::clone(route), switch, quota, store, clock, tasks, watch }))
    }
}

impl Stage for Budget {
    type In = Call;
    type Out = Attempt;

    async fn handle(&self, call: Call, next: &impl Next<Attempt>) -> Verdict {
        let shared = &*self.0;
        shared.switch.permits_paying()?;
        let toll = match shared.route.price(&call.question.0) {
            Some(price) => Some(shared.reserve(&call, price).await?),
            None => None,
        };
        // After the money: whose own budget is used up must not use up the quota of all.
        if let Err(refusal) = shared.may_go(&call, toll.as_ref()).await {
            if let Some(toll) = toll {
                drop(toll.settle(Settlement::NotBilled, "never_sent"));
            }
            return Err(refusal);
        }
        next.run(Attempt { call, toll }).await
    }
}

// === impl Shared ===

impl Shared {
    /// The quota, the record of a write, and once more the switch: it may have been thrown while the store was asked.
    async fn may_go(&self, call: &Call, toll: Option<&Toll>) -> Result<(), Refusal> {
        if let Some(bucket) = self.quota {
            self.take(call, bucket).await?;
        }
        if let Some(write) = &call.write {
            let timeout = self.route.provider.timeout;
            write.sending(&call.journey, timeout, toll.map(Toll::id), self.about(call, toll)).await?;
        }
        self.switch.permits_paying()
    }

    /// What an admin is told of a write of which nobody knows what came of it.
    fn about(&self, call: &Call, toll: Option<&Toll>) -> About {
        About {
            route: self.route.name.clone(),
            provider: self.route.provider.name.clone(),
            caller: call.caller.shown(),
            request: call.journey.id.to_string(),
            micros: toll.map_or(0, |toll| toll.amount.micros),
            currency: toll.map(|toll| toll.amount.currency.code().to_owned()).unwrap_or_default(),
            ..About::default()
        }
    }

    /// Takes one attempt from the quota; without the store from this instance's share of it, by the policy for buckets.
    async fn take(&self, call: &Call, bucket: Bucket) -> Result<(), Refusal> {
        let taken = match self.store.quota(&call.journey, bucket).await {
            Ok(taken) => taken,
            Err(error) if self.route.on_store_error.limits_refuse => {
                self.store.fell_back("quota", "refuse");
                return Err(unavailable("the provider's quota cannot be read", error));
            }
            Err(_) => {
                self.store.fell_back("quota", "local-share");
                self.store.local_share(&[bucket], true)
            }
        };
        match taken {
            Taken::Yes(_) => Ok(()),
            Taken::No { wait, .. } => Err(Refusal::new(Code::Busy, "the provider's quota is used up for now").after(wait)),
        }
    }

    /// Sets a price aside.
    async fn reserve(&self, call: &Call, price: Money) -> Result<Toll, Refusal> {
        if self.tasks.len() > WAITING {
            return Err(unavailable("too many attempts wait to be settled", StoreError::Timeout));
        }
        let now = self.clock.now();
        let (over, row, id) = (self.over(call, now), self.row(call, price, now), OpId::random());
        let caps: Vec<Cap> = over.iter().map(|over| over.cap.clone()).collect();
        let reservation = Reservation { id, caps: &caps, amount: price.micros, row: row.clone() };
        let toll = |owed| Toll::new(id, price, owed, self.store.clone(), self.tasks.clone());
        match self.store.reserve(Some(&call.journey), reservation).await {
            Ok(Reserved::Yes(used)) => {
                self.watch.used(&over, &used, call.caller.id);
                Ok(toll(None))
            }
            Ok(Reserved::No { cap, used }) => {
                let over = over.get(cap);
                if let Some(over) = over {
                    let least = self.route.provider.price.as_ref().map_or(0, |price| price.least().micros);
                    self.watch.exhausted(over, used, least, call.caller.id);
                }
                Err(exhausted(over, call.caller.id, now))
            }
            Ok(Reserved::TooLate) => Err(unavailable("the money was given back before it was set aside", StoreError::Timeout)),
            Ok(Reserved::Lost) | Err(_) if caps.is_empty() => {
                self.store.fell_back("budget", "pass");
                Ok(toll(Some(row)))
            }
            Ok(Reserved::Lost) => {
                self.watch.lost();
                self.store.fell_back("budget", "refuse");
                let lost = StoreError::Failed("records of money were lost, and nobody has said that this is known".to_owned());
                Err(unavailable("what was spent is not known", lost))
            }
            Err(error) => {
                self.store.fell_back("budget", "refuse");
                // It may have been set aside all the same: it is given back.
                drop(toll(None).settle(Settlement::NotBilled, "never_sent"));
                Err(unavailable("what was spent cannot be read", error))
            }
        }
    }

    /// Every cap that is over this call: the provider's, the route's, its caller's own.
    fn over(&self, call: &Call, now: Timestamp) -> Vec<Over> {
        let provider = &self.route.provider;
        let scopes = [("provider", &provider.name, &provider.budget), ("route", &self.route.name, &self.route.budget)];
        let caps = scopes.into_iter().filter_map(|(kind, name, said)| Some((kind, name, said.as_ref().and_then(Said::caps)?)));
        caps.flat_map(|(kind, name, caps)| caps.now(kind, name, call.caller.id, now)).collect()
    }

    fn row(&self, call: &Call, price: Money, now: Timestamp) -> Row {
        Row {
            day: self.route.zone().day(now),
            route: self.route.name.clone(),
            provider: self.route.provider.name.clone(),
            caller: call.caller.id,
            caller_name: call.caller.has_key.then(|| call.caller.name.clone()),
            currency: price.currency.code().to_owned(),
        }
    }
}

fn exhausted(over: Option<&Over>, caller: u128, now: Timestamp) -> Refusal {
    let refusal = match over {
        Some(over) if over.per_caller => Refusal::new(Code::BudgetExhausted, "your budget is used up")
            .with_status(StatusCode::TOO_MANY_REQUESTS)
            .of_its_asker(caller),
        _ => Refusal::new(Code::BudgetExhausted, "the budget is used up"),
    };
    let wait = over.map_or(Duration::ZERO, |over| over.cap.ends.since(now));
    refusal.after(wait.max(Duration::from_secs(1)))
}

fn unavailable(detail: &'static str, error: StoreError) -> Refusal {
    Refusal::new(Code::StoreUnavailable, detail).after(Duration::from_secs(1)).because(error)
}
