//! Validation: a request becomes a question in one canonical form, with its key, or is refused (`invalid_question`,
//! `unknown_field`, `duplicate_field`) before any token or money.
//!
//! The head is judged first; where the question is in the body, the buckets are looked at (without debit) before it is read.

use std::sync::Arc;
use std::time::Duration;

use super::limits::Limits;
use super::{Next, Stage, Verdict};
use crate::call::{Ask, Call, Directives, Facts, Journey, Question};
use crate::money::Price;
use crate::question::KeyHasher;
use crate::refusal::{Code, Refusal};
use crate::route::Route;
use crate::shared::Generation;
use crate::stage::idempotency;
use crate::stage::kill_switch::KillSwitch;
use crate::store::SwitchState;

mod body;
mod directives;
mod names;
mod read;

pub(crate) use read::order;

use names::Names;

/// The stage.
#[derive(Clone)]
pub(crate) struct Validate(Arc<Shared>);

struct Shared {
    route: Arc<Route>,
    query: Names,
    form: Names,
    /// What the body is; none, where nothing of the question stands in it.
    body: Option<body::Sort>,
    body_timeout: Duration,
    limits: Option<Limits>,
    switch: KillSwitch,
    generation: Generation,
    key: KeyHasher,
}

/// What validation needs beside the route.
pub(crate) struct Parts {
    /// Query parameters that hold the caller's key.
    pub(crate) consumed: Vec<String>,
    pub(crate) body_timeout: Duration,
    pub(crate) limits: Option<Limits>,
    pub(crate) switch: KillSwitch,
    pub(crate) generation: Generation,
}

impl Validate {
    pub(crate) fn new(route: &Arc<Route>, parts: Parts) -> Self {
        let Parts { consumed, body_timeout, limits, switch, generation } = parts;
        Self(Arc::new(Shared {
            route: Arc::clone(route),
            query: Names::query(route, consumed),
            form: Names::form(route),
            body: body::Sort::of(route),
            body_timeout,
            limits,
            switch,
            generation,
            key: route_key(route),
        }))
    }
}

/// Everything of the route that changes the upstream request, hashed once: the credential is not in it.
fn route_key(route: &Route) -> KeyHasher {
    let mut key = KeyHasher::new();
    key.put(b'r', &route.name);
    key.put(b'v', route.version.to_be_bytes());
    key.put(b'p', &route.provider.name);
    key.put(b'b', &route.provider.base_url);
    // The template names fields by their place.
    for field in &route.fields {
        key.put(b'n', &field.name);
    }
    key.put(b't', route.template.fingerprint());
    key
}

impl Stage for Validate {
    type In = Ask;
    type Out = Call;

    async fn handle(&self, ask: Ask, next: &impl Next<Call>) -> Verdict {
        let call = self.call(ask).await?;
        next.run(call).await
    }
}

impl Validate {
    /// The key of a question given by its fields, as the admin API gives it.
    pub(crate) fn key_of(&self, fields: &serde_json::Map<String, serde_json::Value>) -> Result<crate::store::Digest, Refusal> {
        let shared = &*self.0;
        let question = read::given(&shared.route, fields)?;
        Ok(shared.key(&question, shared.generation.era().generation, None))
    }

    /// The call a request is.
    pub(crate) async fn call(&self, ask: Ask) -> Result<Call, Refusal> {
        let shared = &*self.0;
        let route = &*shared.route;
        let Ask { mut request, caller } = ask;
        let wait = directives::wait(&request.head.headers, route.deadline)?;
        let directives = shared.directives(&request.head, &request.journey)?;
        let idempotency_key = match route.writes {
            Some(writes) => idempotency::key::read(&request.head.headers, writes.key)?,
            None => None,
        };
        let bytes = body::read(shared, &mut request, &caller).await?;
        let question = read::question(shared, &request, &bytes)?;
        let era = shared.generation.era();
        let key = shared.key(&question, era.generation, route.per_caller.then_some(caller.id));
        let volatile = route.volatile.found(&route.template, &question.0).is_some();
        request.journey.notes.asks(key, route.cache.is_some() && !volatile);
        shared.affordable(&question, &request.journey)?;
        Ok(Call::new(Facts {
            volatile,
            question,
            key,
            caller,
            directives,
            wait,
            journey: request.journey,
            alone: false,
            era,
            idempotency_key,
            write: None,
        }))
    }
}

// === impl Shared ===

impl Shared {
    fn directives(&self, head: &http::request::Parts, journey: &Journey) -> Result<Directives, Refusal> {
        let mut directives = directives::cache_control(&head.headers);
        // HEAD never pays: a body nobody reads would be bought.
        directives.only_if_cached |= head.method == http::Method::HEAD;
        if directives.only_if_cached {
            journey.notes.is_modest();
        }
        if self.switch.state() == SwitchState::Cached {
            directives.only_if_cached = true;
        }
        let keeps = self.route.cache.is_some() || self.route.curated.is_some() || self.route.writes.is_some();
        if directives.only_if_cached && !keeps {
            return Err(Refusal::new(Code::NotCached, "this route keeps no answers"));
        }
        Ok(directives)
    }

    /// Refuses what costs more than one call may, and remembers what a question costs where that depends on the question.
    fn affordable(&self, question: &Question, journey: &Journey) -> Result<(), Refusal> {
        if self.route.provider.price.as_ref().is_none_or(Price::is_flat) {
            return Ok(());
        }
        let Some(price) = self.route.price(&question.0) else { return Ok(()) };
        journey.set_price(price.micros);
        if self.route.max_price.is_some_and(|most| price.micros > most.micros) {
            return Err(Refusal::new(Code::CostTooHigh, format!("the call would cost {price}, more than one may")));
        }
        Ok(())
    }

    fn key(&self, question: &Question, generation: u64, caller: Option<u128>) -> crate::store::Digest {
        let mut key = self.key.clone();
        key.put(b'g', generation.to_be_bytes());
        if let Some(caller) = caller {
            key.put(b'c', caller.to_be_bytes());
        }
        for (field, value) in self.route.fields.iter().zip(&question.0) {
            if let Some(value) = value {
                key.put(b'f', &field.name);
                key.put(b'k', field.kind.name());
                key.put(b'q', &value.key);
            }
        }
        key.finish()
    }
}
