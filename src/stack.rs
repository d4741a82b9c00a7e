//! The request path. The order of the stages stands here and nowhere else.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tower::ServiceBuilder;

use crate::call::Request;
use crate::route::Route;
use crate::shared::{Generation, Shared};
use crate::stage::authenticate::{Authenticate, Callers};
use crate::stage::breaker::BreakerLook;
use crate::stage::budget::{Budget, Watch};
use crate::stage::cache::Cache;
use crate::stage::curated::Curated;
use crate::stage::idempotency::Idempotency;
use crate::stage::keep::Keeper;
use crate::stage::lease::Lease;
use crate::stage::limits::Limits;
use crate::stage::lockout::Lockout;
use crate::stage::retry::Retry;
use crate::stage::single_flight::SingleFlight;
use crate::stage::validate::{self, Validate};
use crate::stage::{Next, Verdict, stage};
use crate::upstream::Upstream;
use crate::upstream::client::Client;

/// A route's whole path, its types forgotten: boxed once, here.
pub(crate) type Path = Box<dyn Enter>;

pub(crate) trait Enter: Send + Sync {
    fn enter(&self, request: Box<Request>) -> Pin<Box<dyn Future<Output = Verdict> + Send + '_>>;
}

impl<N: Next<Box<Request>>> Enter for N {
    fn enter(&self, request: Box<Request>) -> Pin<Box<dyn Future<Output = Verdict> + Send + '_>> {
        Box::pin(self.run(request))
    }
}

/// What a route's path is made of beside the route itself.
pub(crate) struct Parts<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) callers: &'a Arc<Callers>,
    pub(crate) client: Client,
    pub(crate) generation: Generation,
    pub(crate) body_timeout: Duration,
    /// All there are.
    pub(crate) routes: &'a [Arc<Route>],
}

/// The request path of one route, outermost first. A request refused at one stage costs nothing of the next.
pub(crate) fn route(route: &Arc<Route>, parts: &Parts<'_>) -> Path {
    let on = Stages { route, parts };
    let path = ServiceBuilder::new() // input     costs            refuses with
        .layer(stage(on.kill_switch())) // Request   atomic read      switched_off
        .layer(stage(on.authenticate())) // Request   one hash         unauthenticated, not_found
        .layer(stage(on.validate())) // Ask       parse, fold      invalid_question, unknown_field ...
        .layer(stage(on.limits())) // Call      buckets          slow_down, busy, cost_too_high
        .layer(stage(on.lockout())) // Call      store, if any    looks like not found; slow_down
        .layer(stage(on.idempotency())) // Call      store            idempotency_..., outcome_unknown
        .layer(stage(on.curated())) // Call      one look-up      -
        .layer(stage(on.cache())) // Call      memory, store    not_cached
        .layer(stage(on.single_flight())) // Call      a task           upstream_timeout
        .layer(stage(on.breaker_look())) // Call      memory           circuit_open, upstream_busy
        .layer(stage(on.lease())) // Call      store            try_again
        .layer(stage(on.retry())) // Call      waits            circuit_open
        .layer(stage(on.budget())); //              Call      money; quota     switched_off, busy, budget_exhausted
    Box::new(path.service(on.upstream())) //        Attempt   MONEY            upstream_...
}

/// Makes the stages of one route.
pub(crate) struct Stages<'a> {
    pub(crate) route: &'a Arc<Route>,
    pub(crate) parts: &'a Parts<'a>,
}

impl Stages<'_> {
    fn kill_switch(&self) -> crate::stage::kill_switch::KillSwitch {
        self.parts.shared.switches.of(&self.route.name)
    }

    pub(crate) fn authenticate(&self) -> Authenticate {
        Authenticate::new(Arc::clone(self.parts.callers), Arc::clone(self.route))
    }

    pub(crate) fn validate(&self) -> Validate {
        let parts = validate::Parts {
            consumed: self.parts.callers.consumed(),
            body_timeout: self.parts.body_timeout,
            limits: self.limits(),
            switch: self.kill_switch(),
            generation: self.parts.generation.clone(),
        };
        Validate::new(self.route, parts)
    }

    fn limits(&self) -> Option<Limits> {
        Limits::new(self.route, self.parts.shared.store.clone())
    }

    fn lockout(&self) -> Option<Lockout> {
        let shared = self.parts.shared;
        Lockout::new(self.route, shared.store.clone(), shared.clock.clone(), shared.tasks.clone())
    }

    fn idempotency(&self) -> Option<Idempotency> {
        let Shared { store, flights, clock, tasks, alerts, .. } = self.parts.shared;
        Idempotency::new(self.route, store.clone(), flights.clone(), clock.clone(), tasks.clone(), alerts.clone())
    }

    fn curated(&self) -> Option<Curated> {
        Curated::new(self.route.curated.as_ref(), self.parts.shared.clock.clone())
    }

    fn cache(&self) -> Option<Cache> {
        let Shared { answers, tasks, .. } = self.parts.shared;
        Cache::new(self.route, answers.clone(), self.parts.generation.clone(), tasks.clone())
    }

    /// Of a write nothing is shared: it has a flight of its own from `idempotency`, and no lease.
    fn single_flight(&self) -> Option<SingleFlight> {
        let Shared { flights, clock, .. } = self.parts.shared;
        self.route.writes.is_none().then(|| SingleFlight::new(self.route, flights.clone(), clock.clone()))
    }

    fn lease(&self) -> Option<Lease> {
        let Shared { answers, landings, tasks, .. } = self.parts.shared;
        let generation = self.parts.generation.clone();
        let keeper = Keeper { route: Arc::clone(self.route), answers: answers.clone(), generation };
        Lease::new(keeper, landings.clone(), tasks.clone())
    }

    fn breaker_look(&self) -> BreakerLook {
        let shared = self.parts.shared;
        BreakerLook::new(self.route, shared.breaker(&self.route.provider.name), shared.store.clone(), shared.clock.clone())
    }

    fn retry(&self) -> Retry {
        let shared = self.parts.shared;
        let provider = &self.route.provider.name;
        Retry::new(
            self.route,
            shared.breaker(provider),
            shared.retry_budget(provider),
            shared.store.clone(),
            shared.clock.clone(),
            shared.alerts.clone(),
        )
    }

    fn budget(&self) -> Budget {
        let Shared { store, clock, tasks, .. } = self.parts.shared;
        let watch = Watch::new(self.route, self.parts.routes, self.parts.shared);
        Budget::new(self.route, self.kill_switch(), store.clone(), clock.clone(), tasks.clone(), watch)
    }

    fn upstream(&self) -> Upstream {
        let shared = self.parts.shared;
        let (alerts, metrics) = (shared.alerts.clone(), Arc::clone(&shared.metrics));
        Upstream::new(self.route, self.parts.client.clone(), shared.clock.clone(), metrics, alerts)
    }
}
