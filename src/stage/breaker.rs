//! The look at the breaker: a memory read, taken before anything is waited for. Refuses `circuit_open` while the provider is
//! unwell, `upstream_busy` while it has asked for a pause. The permit for each attempt is taken further down, in `retry`.

use std::sync::Arc;

use super::{Next, Stage, Verdict};
use crate::breaker::{Breaker, Open};
use crate::call::Call;
use crate::clock::{Clock, Timestamp};
use crate::refusal::{Code, Refusal};
use crate::route::Route;
use crate::store::handle::StoreHandle;

/// The stage.
#[derive(Clone)]
pub(crate) struct BreakerLook {
    route: Arc<Route>,
    breaker: Breaker,
    store: StoreHandle,
    clock: Clock,
}

impl BreakerLook {
    pub(crate) fn new(route: &Arc<Route>, breaker: Breaker, store: StoreHandle, clock: Clock) -> Self {
        Self { route: Arc::clone(route), breaker, store, clock }
    }
}

/// What an open breaker says.
pub(crate) fn circuit_open(Open(rest): Open) -> Refusal {
    Refusal::new(Code::CircuitOpen, "the provider is unwell; calls are held back").after(rest)
}

/// What a provider says that has asked to be left alone until then.
pub(crate) fn paused(until: Option<Timestamp>, now: Timestamp) -> Result<(), Refusal> {
    match until {
        Some(until) if now < until => {
            Err(Refusal::new(Code::UpstreamBusy, "the provider asked for a pause").after(until.since(now)))
        }
        _ => Ok(()),
    }
}

impl Stage for BreakerLook {
    type In = Call;
    type Out = Call;

    async fn handle(&self, call: Call, next: &impl Next<Call>) -> Verdict {
        self.breaker.look().map_err(circuit_open)?;
        paused(self.store.paused(&self.route.provider.name), self.clock.now())?;
        next.run(call).await
    }
}
