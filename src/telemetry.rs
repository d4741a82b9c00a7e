//! What can be seen from outside: metrics and logs.
//!
//! Each metric is declared once, here. Labels are routes, providers and words of ours, never user text.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::answer::{Outcome, Source};
use crate::money::Money;
use crate::money::savings::{CAUSES, Cause};
use crate::refusal::{CODES, Code};

pub(crate) mod log;

type Seconds<L> = Family<L, Histogram, fn() -> Histogram>;

/// From a process-memory hit to a slow provider.
fn seconds() -> Histogram {
    Histogram::new([0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0])
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    outcome: &'static str,
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnsweredLabels {
    route: String,
    answered_by: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    provider: String,
    outcome: &'static str,
    billed: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabels {
    provider: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SpendLabels {
    route: String,
    currency: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SavedLabels {
    route: String,
    cause: &'static str,
    currency: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BudgetLabels {
    scope: String,
    window: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OpLabels {
    op: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PolicyLabels {
    stage: &'static str,
    policy: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HookLabels {
    kind: &'static str,
    result: &'static str,
}

/// All metrics of one gateway.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Seconds<AnsweredLabels>,
    upstream_calls: Family<AttemptLabels, Counter>,
    upstream_seconds: Seconds<ProviderLabels>,
    spend: Family<SpendLabels, Counter>,
    saved: Family<SavedLabels, Counter>,
    budget_left: Family<BudgetLabels, Gauge<u64, AtomicU64>>,
    pub(crate) flights: Gauge,
    breaker: Family<ProviderLabels, Gauge>,
    store_seconds: Seconds<OpLabels>,
    store_errors: Family<PolicyLabels, Counter>,
    reloads: Family<ResultLabels, Counter>,
    hooks: Family<HookLabels, Counter>,
    alerts: Family<ResultLabels, Counter>,
}

impl Metrics {
    pub(crate) fn new() -> Arc<Self> {
        let mut metrics = Self {
            registry: Registry::with_prefix("tollgate"),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(seconds as fn() -> Histogram),
            upstream_calls: Family::default(),
            upstream_seconds: Family::new_with_constructor(seconds as fn() -> Histogram),
            spend: Family::default(),
            saved: Family::default(),
            budget_left: Family::default(),
            flights: Gauge::default(),
            breaker: Family::default(),
            store_seconds: Family::new_with_constructor(seconds as fn() -> Histogram),
            store_errors: Family::default(),
            reloads: Family::default(),
            hooks: Family::default(),
            alerts: Family::default(),
        };
        metrics.register();
        Arc::new(metrics)
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("requests", "Requests, by what came of them", self.requests.clone());
        registry.register("request_seconds", "Time to the answer, by who answered", self.request_seconds.clone());
        registry.register("upstream_calls", "Attempts on the wire", self.upstream_calls.clone());
        registry.register("upstream_seconds", "Time of one attempt", self.upstream_seconds.clone());
        registry.register("spend_micros", "Money spent, in millionths", self.spend.clone());
        registry.register("saved_micros", "Money not spent, in millionths, by cause", self.saved.clone());
        registry.register("budget_remaining_micros", "What a cap still holds, in millionths", self.budget_left.clone());
        registry.register("flights", "Flights in the air", self.flights.clone());
        registry.register("breaker_state", "0 closed, 1 half-open, 2 open", self.breaker.clone());
        registry.register("store_seconds", "Time of one store call", self.store_seconds.clone());
        registry.register("store_errors", "Store calls that failed, by what was done instead", self.store_errors.clone());
        registry.register("config_reloads", "Reloads of the config", self.reloads.clone());
        registry.register("hooks", "What providers told, by what came of it", self.hooks.clone());
        registry.register("alerts", "Alerts, by what became of them", self.alerts.clone());
    }

    /// The Prometheus text.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }

    pub(crate) fn attempt(&self, provider: &str, outcome: Outcome, billed: bool, took: Duration) {
        let labels =
            AttemptLabels { provider: provider.to_owned(), outcome: outcome.word(), billed: if billed { "yes" } else { "no" } };
        self.upstream_calls.get_or_create(&labels).inc();
        self.upstream_seconds.get_or_create(&ProviderLabels { provider: provider.to_owned() }).observe(took.as_secs_f64());
    }

    pub(crate) fn spent(&self, route: &str, cost: Money) {
        let labels = SpendLabels { route: route.to_owned(), currency: cost.currency.code().to_owned() };
        self.spend.get_or_create(&labels).inc_by(cost.micros);
    }

    pub(crate) fn budget_left(&self, scope: &str, window: &'static str, micros: u64) {
        self.budget_left.get_or_create(&BudgetLabels { scope: scope.to_owned(), window }).set(micros);
    }

    pub(crate) fn breaker(&self, provider: &str, state: i64) {
        self.breaker.get_or_create(&ProviderLabels { provider: provider.to_owned() }).set(state);
    }

    pub(crate) fn store_call(&self, op: &'static str, took: Duration, failed: bool) {
        self.store_seconds.get_or_create(&OpLabels { op }).observe(took.as_secs_f64());
        if failed {
            self.store_errors.get_or_create(&PolicyLabels { stage: op, policy: "error" }).inc();
        }
    }

    /// A stage went on without the store, as its policy says.
    pub(crate) fn store_fallback(&self, stage: &'static str, policy: &'static str) {
        self.store_errors.get_or_create(&PolicyLabels { stage, policy }).inc();
    }

    pub(crate) fn reloaded(&self, accepted: bool) {
        let result = if accepted { "accepted" } else { "refused" };
        self.reloads.get_or_create(&ResultLabels { result }).inc();
    }

    pub(crate) fn hook(&self, kind: &'static str, result: &'static str) {
        self.hooks.get_or_create(&HookLabels { kind, result }).inc();
    }

    /// What became of an alert: sent, known (another instance has told it), failed, dropped.
    pub(crate) fn alerted(&self, result: &'static str) {
        self.alerts.get_or_create(&ResultLabels { result }).inc();
    }

    /// A request that belongs to no route.
    pub(crate) fn nowhere(&self, code: Code) {
        let labels = RequestLabels { route: "-".to_owned(), outcome: "refused", code: code.word() };
        self.requests.get_or_create(&labels).inc();
    }

    /// The handles of one route, so that a request looks nothing up.
    pub(crate) fn route(self: &Arc<Self>, route: &str) -> RouteMetrics {
        RouteMetrics {
            metrics: Arc::clone(self),
            route: route.to_owned(),
            refused: Default::default(),
            answered: Default::default(),
            by: Default::default(),
            saved: Default::default(),
        }
    }
}

const SOURCES: usize = 8;

/// The counters of one route.
pub(crate) struct RouteMetrics {
    metrics: Arc<Metrics>,
    route: String,
    refused: [OnceLock<Counter>; CODES],
    answered: [OnceLock<Counter>; Outcome::ALL.len()],
    by: [OnceLock<Histogram>; SOURCES],
    saved: [OnceLock<Counter<u64, AtomicU64>>; CAUSES],
}

impl RouteMetrics {
    pub(crate) fn answered(&self, outcome: Outcome, source: Source, took: Duration) {
        if let Some(slot) = self.answered.get(outcome as usize) {
            slot.get_or_init(|| self.requests(outcome.word(), "")).inc();
        }
        self.observe(source_index(source), source.word(), took);
    }

    pub(crate) fn refused(&self, code: Code, took: Duration) {
        if let Some(slot) = self.refused.get(code as usize) {
            slot.get_or_init(|| self.requests("refused", code.word())).inc();
        }
        self.observe(SOURCES - 1, "refusal", took);
    }

    fn requests(&self, outcome: &'static str, code: &'static str) -> Counter {
        self.metrics.requests.get_or_create_owned(&RequestLabels { route: self.route.clone(), outcome, code })
    }

    fn observe(&self, index: usize, word: &'static str, took: Duration) {
        let Some(slot) = self.by.get(index) else { return };
        let histogram = slot.get_or_init(|| {
            let labels = AnsweredLabels { route: self.route.clone(), answered_by: word };
            self.metrics.request_seconds.get_or_create_owned(&labels)
        });
        histogram.observe(took.as_secs_f64());
    }

    /// What a request saved.
    pub(crate) fn credit(&self, cause: Cause, amount: Money) {
        let Some(slot) = self.saved.get(cause as usize) else { return };
        let counter = slot.get_or_init(|| {
            let currency = amount.currency.code().to_owned();
            self.metrics.saved.get_or_create_owned(&SavedLabels { route: self.route.clone(), cause: cause.word(), currency })
        });
        counter.inc_by(amount.micros);
    }
}

fn source_index(source: Source) -> usize {
    match source {
        Source::Upstream { .. } => 0,
        Source::Joined { .. } => 1,
        Source::Cache { stale: false, .. } => 2,
        Source::Cache { stale: true, .. } => 3,
        Source::Curated => 4,
        Source::Lockout => 5,
        Source::Replay => 6,
    }
}
