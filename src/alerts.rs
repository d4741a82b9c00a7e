//! Alerts: what an operator wants to be woken for, told once.
//!
//! Whoever notices something says it ([`Alerts::say`]) with a mark: of one mark there is one alert for as long as it is kept, over
//! all instances and restarts, which is the store's to know. Without the store it is this instance's. It is logged, and where
//! `[alerts]` names a webhook it is sent there: by a task that the drain waits for, of which there are so many at most; what is too
//! much is dropped and counted, and may be said again.
//!
//! An alert names routes, providers, amounts and the id of a write. It holds no question, no credential, and of a caller only a digest.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::clock::{Clock, Timestamp};
use crate::store::handle::StoreHandle;
use crate::store::write::id::WriteId;
use crate::telemetry::Metrics;

mod send;
mod sign;

pub(crate) use send::Webhook;

/// On their way at a time.
const WAITING: usize = 64;
/// Marks remembered here. The store's memory is longer.
const TOLD: usize = 4096;

/// What is the matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// So much of a cap is used.
    Budget,
    /// A budget that is used up has stopped a route.
    BudgetStop,
    BreakerOpen,
    ProviderPause,
    UpstreamDenied,
    StoreLost,
    StoreBack,
    RecordsLost,
    /// A write was sent, and nobody knows what came of it.
    WriteUnknown,
}

/// What is told.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Alert {
    pub(crate) kind: Kind,
    /// `route:geocode`, `provider:opencage`, `store`.
    pub(crate) subject: String,
    #[serde(flatten)]
    pub(crate) numbers: Option<Numbers>,
    /// The write it is about, as an admin settles it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) write: Option<String>,
    /// In words.
    pub(crate) message: String,
}

/// How a cap stands, in micro-units.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Numbers {
    pub(crate) used: u64,
    pub(crate) cap: u64,
    pub(crate) percent: u64,
    pub(crate) currency: String,
    /// `day` or `month`.
    pub(crate) window: &'static str,
    /// First digits of the digest of whose cap it is, as in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) caller: Option<String>,
}

/// The alerts of one gateway. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Alerts(Arc<Shared>);

struct Shared {
    webhook: ArcSwapOption<Webhook>,
    waiting: Arc<Semaphore>,
    /// Until when each mark is not said again.
    told: Mutex<HashMap<String, Timestamp>>,
    /// That the store is lost has been said.
    store_lost: AtomicBool,
    store: StoreHandle,
    clock: Clock,
    tasks: TaskTracker,
    metrics: Arc<Metrics>,
}

impl Alerts {
    pub(crate) fn new(store: StoreHandle, clock: Clock, tasks: TaskTracker, metrics: Arc<Metrics>) -> Self {
        let alerts = Self(Arc::new(Shared {
            webhook: ArcSwapOption::empty(),
            waiting: Arc::new(Semaphore::new(WAITING)),
            told: Mutex::default(),
            store_lost: AtomicBool::new(false),
            store,
            clock,
            tasks,
            metrics,
        }));
        let weak = Arc::downgrade(&alerts.0);
        alerts.0.store.when_lost(move |lost| {
            if let Some(shared) = weak.upgrade() {
                Self(shared).store(lost);
            }
        });
        alerts
    }

    /// Tells nobody.
    #[cfg(test)]
    pub(crate) fn silent(clock: &Clock) -> Self {
        use crate::store::handle::{Backend, Patience, Whose};
        let own = Arc::new(crate::store::memory::MemoryStore::new(clock.clone(), crate::store::memory::Bounds::default()));
        let backend = Backend::new(own.clone(), &own, Whose::Own(own.clone()));
        let patience = Patience { one_call: Duration::from_secs(1), one_request: Duration::from_secs(1) };
        let store = StoreHandle::new(backend, patience, 1, clock.clone(), Metrics::new());
        Self::new(store, clock.clone(), TaskTracker::new(), Metrics::new())
    }

    /// Whom to tell from now on.
    pub(crate) fn aim(&self, webhook: Option<Arc<Webhook>>) {
        self.0.webhook.store(webhook);
    }

    /// Says it, unless it was said under that mark no longer than `keep` ago. Whether it was news here.
    pub(crate) fn say(&self, mark: String, keep: Duration, alert: impl FnOnce() -> Alert) -> bool {
        let shared = &*self.0;
        if !shared.is_news(&mark, keep) {
            return false;
        }
        let alert = alert();
        tracing::warn!(target: "tollgate::alert", kind = ?alert.kind, subject = alert.subject, "{}", alert.message);
        let Some(webhook) = shared.webhook.load_full() else { return true };
        let room = Arc::clone(&shared.waiting).try_acquire_owned();
        let (Ok(room), true) = (room, tokio::runtime::Handle::try_current().is_ok()) else {
            shared.metrics.alerted("dropped");
            shared.forget(&mark);
            return true;
        };
        let own = Arc::clone(&self.0);
        shared.tasks.spawn(async move {
            own.metrics.alerted(own.deliver(&webhook, &mark, keep, &alert).await);
            drop(room);
        });
        true
    }

    /// A provider is in trouble: once an hour.
    pub(crate) fn provider(&self, kind: Kind, provider: &str, message: impl FnOnce() -> String) {
        let (mark, subject) = (format!("alert:{kind:?}:{provider}"), format!("provider:{provider}"));
        self.say(mark, Duration::from_secs(3600), || Alert { kind, subject, numbers: None, write: None, message: message() });
    }

    /// A write of a route is unknown: once an hour, with the first of them. The log has each, and `/v1/writes` all.
    pub(crate) fn write_unknown(&self, route: &str, id: &WriteId, message: impl FnOnce() -> String) {
        let (mark, subject) = (format!("alert:write_unknown:{route}"), format!("route:{route}"));
        let alert =
            || Alert { kind: Kind::WriteUnknown, subject, numbers: None, write: Some(id.to_string()), message: message() };
        self.say(mark, Duration::from_secs(3600), alert);
    }

    /// The store is lost, or back. That it is back is said to whom it was said that it is lost.
    fn store(&self, lost: bool) {
        let alert =
            |kind, message: &str| Alert { kind, subject: "store".into(), numbers: None, write: None, message: message.into() };
        if lost {
            let message = "the store does not answer: each stage goes on or refuses as its policy says";
            let said = self.say("alert:store".into(), Duration::from_secs(600), || alert(Kind::StoreLost, message));
            self.0.store_lost.fetch_or(said, Ordering::AcqRel);
        } else if self.0.store_lost.swap(false, Ordering::AcqRel) {
            let mark = format!("alert:store:{}", uuid::Uuid::new_v4());
            self.say(mark, Duration::from_secs(600), || alert(Kind::StoreBack, "the store answers again"));
        }
    }
}

// === impl Shared ===

impl Shared {
    fn is_news(&self, mark: &str, keep: Duration) -> bool {
        let now = self.clock.now();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.get(mark).is_some_and(|until| now < *until) {
            return false;
        }
        if told.len() >= TOLD {
            told.retain(|_, until| now < *until);
        }
        if told.len() >= TOLD {
            told.clear();
        }
        told.insert(mark.to_owned(), now.after(keep));
        true
    }

    fn forget(&self, mark: &str) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).remove(mark);
    }
}
