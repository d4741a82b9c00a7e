//! Lockout: look-up routes where a caller could enumerate (company numbers, document ids).
//!
//! Counts confirmed misses (`not_found`) in a true rolling window per caller, and per subject over all callers if the route
//! names one. A full window locks, twice as long each time. A locked caller gets what looks like a stored "not found", in
//! about the time such an answer takes. Guesses in flight count against the allowance, so parallel guesses gain nothing
//! (`slow_down`). An attempt during a lock changes nothing; a success clears nothing.
//!
//! Checked before the cache. Without the store nobody can be counted: the default policy refuses.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use http::{HeaderValue, StatusCode, header};
use sha2::{Digest as _, Sha256};
use tokio_util::task::TaskTracker;

use super::{Next, Stage, Verdict};
use crate::answer::{Answer, Kept, Outcome, Source};
use crate::call::{Call, Journey};
use crate::clock::Clock;
use crate::config::section::Section;
use crate::config::units::Count;
use crate::refusal::{Code, Refusal};
use crate::route::Route;
use crate::stage::single_flight::stopped_waiting;
use crate::store::handle::StoreHandle;
use crate::store::{Digest, Guess, LockoutRule, OpId, StoredAnswer};

/// `lockout` of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) rule: LockoutRule,
    /// Index of the field that names the subject.
    pub(crate) subject: Option<usize>,
}

impl Config {
    pub(crate) fn read(section: &Section<'_>, fields: &[String]) -> Option<Self> {
        let below = section.section("lockout")?;
        let rule = LockoutRule {
            misses: below.or("misses", Count(5)).0,
            window: below.or("window", Duration::from_secs(3600)),
            first: below.or("first", Duration::from_secs(60)),
            max: below.or("max", Duration::from_secs(86_400)),
        };
        if rule.first > rule.max {
            below.fault("max", "is shorter than the first lock", "raise max, or lower first");
        }
        let subject = below.get::<String>("subject").and_then(|name| {
            let index = fields.iter().position(|field| *field == name);
            if index.is_none() {
                below.fault("subject", format!("{name:?} is no field of the question"), "name a field of [question]");
            }
            index
        });
        below.finish();
        Some(Self { rule, subject })
    }
}

/// The stage.
#[derive(Clone)]
pub(crate) struct Lockout {
    route: Arc<Route>,
    config: Config,
    store: StoreHandle,
    clock: Clock,
    tasks: TaskTracker,
    looks: Looks,
}

impl Lockout {
    pub(crate) fn new(route: &Arc<Route>, store: StoreHandle, clock: Clock, tasks: TaskTracker) -> Option<Self> {
        let config = route.lockout.clone()?;
        let key = subject(&route.name, "looks", b"");
        let looks = Looks { last: Arc::default(), key, route: Arc::clone(route), store: store.clone(), clock: clock.clone() };
        Some(Self { config, route: Arc::clone(route), store, clock, tasks, looks })
    }

    /// The call as it goes on without its asker: as long as its flight takes. And how long its asker waits.
    fn detached(&self, call: &Call) -> (Call, Duration) {
        let now = self.clock.ticks();
        let patience = call.remaining(now);
        // One flight, and another if the first one's answer was for somebody else alone.
        let flights = self.route.provider.flight.saturating_mul(2);
        let wait = call.wait.max(now.since(call.journey.started).saturating_add(flights));
        (call.waiting(wait), patience)
    }

    fn subjects(&self, call: &Call) -> Vec<Digest> {
        let mut subjects = vec![caller(&self.route.name, &call.caller.name, call.caller.has_key)];
        if let Some(value) = self.config.subject.and_then(|index| call.question.value(index)) {
            subjects.push(subject(&self.route.name, "subject", value.key.as_bytes()));
        }
        subjects
    }
}

/// What a "not found" looks like on a route: the last one seen. The store has the first one of each process, since locks outlive
/// processes, too.
#[derive(Clone)]
struct Looks {
    last: Arc<ArcSwapOption<Kept>>,
    key: Digest,
    route: Arc<Route>,
    store: StoreHandle,
    clock: Clock,
}

/// For as long as there may be a lock, and then some.
const KEPT: Duration = Duration::from_secs(10 * 365 * 86_400);

impl Looks {
    /// Remembers an answer for its looks, unless it repeats what was asked: that would show one caller's question to another.
    async fn remember(&self, journey: &Journey, answer: &Answer, asked: &[String]) {
        let body = String::from_utf8_lossy(&answer.kept.body);
        let first = self.last.load().is_none();
        let news = first || matches!(answer.source, Source::Upstream { .. });
        if !news || asked.iter().any(|asked| asked.len() > 2 && body.contains(asked.as_str())) {
            return;
        }
        self.last.store(Some(Arc::clone(&answer.kept)));
        if first {
            let stored = StoredAnswer { error_until: self.clock.now().after(KEPT), ..answer.kept.to_stored() };
            let _ = self.store.keep(journey, &self.route.name, &self.key, stored).await;
        }
    }

    /// The looks, or the plainest there are.
    async fn answer(&self, journey: &Journey) -> Answer {
        if self.last.load().is_none()
            && let Ok(Some(stored)) = self.store.answer(journey, &self.key).await
            && let Some(kept) = Kept::from_stored(stored)
        {
            self.last.store(Some(Arc::new(kept)));
        }
        let kept = self.last.load_full().unwrap_or_else(|| Arc::new(self.plain()));
        Answer { kept, source: Source::Lockout }
    }

    fn plain(&self) -> Kept {
        let mut kept = Kept::passing(StatusCode::NOT_FOUND, Outcome::NotFound, "{}".into(), self.clock.now());
        kept.headers.push((header::CONTENT_TYPE, HeaderValue::from_static("application/json")));
        kept
    }
}

impl Stage for Lockout {
    type In = Call;
    type Out = Call;

    async fn handle(&self, call: Call, next: &impl Next<Call>) -> Verdict {
        let (id, subjects) = (OpId::random(), self.subjects(&call));
        let expires = self.clock.now().after(self.route.provider.flight);
        match self.store.guess(&call.journey, id, &subjects, self.config.rule, expires).await {
            Ok(Guess::Admitted) => {}
            Ok(Guess::Locked(_)) => return Ok(self.looks.answer(&call.journey).await),
            Ok(Guess::Full) => {
                return Err(Refusal::new(Code::SlowDown, "too many look-ups in flight").after(Duration::from_secs(1)));
            }
            Err(error) if self.route.on_store_error.lockout_refuse => {
                self.store.fell_back("lockout", "refuse");
                let refusal = Refusal::new(Code::StoreUnavailable, "look-ups cannot be counted");
                return Err(refusal.after(Duration::from_secs(1)).because(error));
            }
            Err(_) => {
                self.store.fell_back("lockout", "pass");
                return next.run(call).await;
            }
        }
        // A guess is settled whether or not its asker stays, and when its flight has landed, not when its asker's patience ends:
        // leaving must not make guessing free.
        let (call, patience) = self.detached(&call);
        let (store, rule, looks, journey) = (self.store.clone(), self.config.rule, self.looks.clone(), Arc::clone(&call.journey));
        let next = next.clone();
        let asked: Vec<String> = call.question.0.iter().flatten().map(|value| value.asked.text().into_owned()).collect();
        let flight = self.tasks.spawn(async move {
            let verdict = next.run(call).await;
            let missed = match &verdict {
                Ok(answer) if answer.kept.outcome == Outcome::NotFound => {
                    looks.remember(&journey, answer, &asked).await;
                    true
                }
                _ => false,
            };
            let _ = store.settle_guess(id, &subjects, rule, missed).await;
            verdict
        });
        match tokio::time::timeout(patience, flight).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(error)) => Err(Refusal::new(Code::Internal, "the look-up broke").because(error)),
            Err(_) => Err(stopped_waiting(self.route.provider.flight.saturating_sub(patience))),
        }
    }
}

/// A caller as a subject. Who only goes by the name of a key must not lock its owner out.
pub(crate) fn caller(route: &str, name: &str, has_key: bool) -> Digest {
    subject(route, if has_key { "key" } else { "caller" }, name.as_bytes())
}

/// Identity of a subject, hashed: user text is never stored as it is.
fn subject(route: &str, kind: &str, name: &[u8]) -> Digest {
    let mut hasher = Sha256::new();
    for part in [route.as_bytes(), kind.as_bytes(), name] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}
