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
    store: StoreHandle,
}

impl Budget {
    pub(crate) fn new(route: &Arc<Route>, switch: KillSwitch, store: StoreHandle) -> Self {
        let provider = &route.provider;
        let id = identity(&[b"quota", provider.name.as_bytes()]);
        let quota = provider.quota.map(|rule| Bucket::whole(id, rule.burst, rule.rate.count, rule.rate.per));
        Self { switch, quota, store }
    }
}

impl Stage for Budget {
    type In = Attempt;
    type Out = Attempt;

    async fn handle(&self, attempt: Attempt, next: impl Next<Attempt>) -> Verdict {
        self.switch.permits_paying()?;
        if let Some(bucket) = self.quota {
            match self.store.quota(&attempt.call.journey, bucket).await {
                Ok(Taken::Yes(_)) => {}
                Ok(Taken::No { wait, .. }) => {
                    return Err(Refusal::new(Code::Busy, "the provider's quota is used up for now").after(wait));
                }
                Err(error) => {
                    let refusal = Refusal::new(Code::StoreUnavailable, "the provider's quota cannot be read");
                    return Err(refusal.after(Duration::from_secs(1)).because(error));
                }
            }
        }
        next.run(attempt).await
    }
}
