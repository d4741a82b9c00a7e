//! What every attempt on the wire must pass, retries included: the switch is read again, and the provider's quota is debited.
//! Refuses as the switch does, or `busy`.
//!
//! The place of money: reservations over all caps join here with the money issue, in one atomic step, before bytes are sent.

use std::sync::Arc;
use std::time::Duration;

use super::kill_switch::KillSwitch;
use super::limits::identity;
use super::{Next, Stage, Verdict};
use crate::call::Attempt;
use crate::refusal::{Code, Refusal};
use crate::route::Route;
use crate::store::handle::StoreHandle;
use crate::store::{Bucket, Taken};

/// The stage.
#[derive(Clone)]
pub(crate) struct Budget {
    switch: KillSwitch,
    /// The provider's quota, over all routes together.
    quota: Option<Bucket>,
    refuse_without_store: bool,
    store: StoreHandle,
}

impl Budget {
    pub(crate) fn new(route: &Arc<Route>, switch: KillSwitch, store: StoreHandle) -> Self {
        let provider = &route.provider;
        let id = identity(&[b"quota", provider.name.as_bytes()]);
        let quota = provider.quota.map(|rule| Bucket::whole(id, rule.burst, rule.rate.count, rule.rate.per));
        Self { switch, quota, refuse_without_store: route.on_store_error.limits_refuse, store }
    }
}

impl Budget {
    /// Takes one attempt from the quota; without the store from this instance's share of it, by the policy for buckets.
    async fn take(&self, attempt: &Attempt, bucket: Bucket) -> Result<(), Refusal> {
        let taken = match self.store.quota(&attempt.call.journey, bucket).await {
            Ok(taken) => taken,
            Err(error) if self.refuse_without_store => {
                self.store.fell_back("quota", "refuse");
                let refusal = Refusal::new(Code::StoreUnavailable, "the provider's quota cannot be read");
                return Err(refusal.after(Duration::from_secs(1)).because(error));
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
}

impl Stage for Budget {
    type In = Attempt;
    type Out = Attempt;

    async fn handle(&self, attempt: Attempt, next: &impl Next<Attempt>) -> Verdict {
        self.switch.permits_paying()?;
        if let Some(bucket) = self.quota {
            self.take(&attempt, bucket).await?;
        }
        next.run(attempt).await
    }
}
