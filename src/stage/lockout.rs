//! Lockout: look-up routes where a caller could enumerate (company numbers, document ids).
//!
//! Counts confirmed misses (`not_found`) in a true rolling window per caller, and per subject over all callers if the route
//! names one. A full window locks, twice as long each time. A locked caller gets what looks like a stored "not found" (`looks`),
//! and for each of the two there is the same to do: a guess, a task, a settlement. Guesses in flight count against the allowance,
//! so parallel guesses gain nothing (`slow_down`), locked or not. An attempt during a lock leaves nothing; a success clears nothing.
//!
//! Checked before the cache. Without the store nobody can be counted: the default policy refuses.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio_util::task::TaskTracker;

use self::looks::{Asked, Looks};
use super::{Next, Stage, Verdict};
use crate::answer::{Answer, Outcome, Source};
use crate::call::Call;
use crate::clock::Clock;
use crate::config::section::Section;
use crate::config::units::Count;
use crate::refusal::{Code, Refusal};
use crate::route::Route;
use crate::stage::single_flight::stopped_waiting;
use crate::store::handle::StoreHandle;
use crate::store::{Digest, Guess, LockoutRule, OpId};

mod looks;

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
pub(crate) struct Lockout(Arc<Shared>);

struct Shared {
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
        let looks = Looks::new(subject(&route.name, "looks", b""), route, store.clone(), clock.clone());
        Some(Self(Arc::new(Shared { route: Arc::clone(route), config, store, clock, tasks, looks })))
    }
}

impl Stage for Lockout {
    type In = Call;
    type Out = Call;

    async fn handle(&self, call: Call, next: &impl Next<Call>) -> Verdict {
        let shared = &self.0;
        let patience = call.remaining(shared.clock.ticks());
        // A guess is settled whether or not its asker stays, and when its flight has landed, not when its asker's patience ends:
        // leaving must not make guessing free.
        let guess = {
            let (shared, next) = (Arc::clone(shared), next.clone());
            shared.tasks.clone().spawn(async move { shared.guess(call, &next).await })
        };
        match tokio::time::timeout(patience, guess).await {
            Ok(Ok(Guessed::Ended(verdict))) => verdict,
            Ok(Ok(Guessed::Uncounted(call))) => next.run(call).await,
            Ok(Err(error)) => Err(Refusal::new(Code::Internal, "the look-up broke").because(error)),
            Err(_) => Err(stopped_waiting(shared.route.provider.flight.saturating_sub(patience))),
        }
    }
}

/// What became of a guess.
enum Guessed {
    Ended(Verdict),
    /// There is no store to count it, and the route lets it pass.
    Uncounted(Call),
}

// === impl Shared ===

impl Shared {
    /// A guess from its admission to its settlement. A locked one takes the same way, but for what lies behind this stage: not even
    /// the cache is looked into, so that nothing about the question shows, and the time is that of a hit in memory.
    async fn guess(&self, call: Call, next: &impl Next<Call>) -> Guessed {
        let (id, subjects, rule) = (OpId::random(), self.subjects(&call), self.config.rule);
        let (journey, asked) = (Arc::clone(&call.journey), Asked::by(&call.question));
        let detached = self.detached(&call);
        let expires = self.clock.now().after(self.route.provider.flight);
        let verdict = match self.store.guess(&journey, id, &subjects, rule, expires).await {
            Ok(Guess::Admitted) => next.run(detached).await,
            Ok(Guess::Locked(_)) => Ok(self.looks.answer(&journey, &asked).await),
            Ok(Guess::Full) => {
                let refusal = Refusal::new(Code::SlowDown, "too many look-ups in flight");
                return Guessed::Ended(Err(refusal.after(Duration::from_secs(1))));
            }
            Err(error) if self.route.on_store_error.lockout_refuse => {
                self.store.fell_back("lockout", "refuse");
                let refusal = Refusal::new(Code::StoreUnavailable, "look-ups cannot be counted");
                return Guessed::Ended(Err(refusal.after(Duration::from_secs(1)).because(error)));
            }
            Err(_) => {
                self.store.fell_back("lockout", "pass");
                return Guessed::Uncounted(call);
            }
        };
        let miss = verdict.as_ref().ok().filter(|answer| is_miss(answer));
        if let Some(answer) = miss {
            self.looks.remember(&journey, answer, asked).await;
        }
        let _ = self.store.settle_guess(id, &subjects, rule, miss.is_some()).await;
        Guessed::Ended(verdict)
    }

    /// The call as it goes on without its asker: as long as its flight takes.
    fn detached(&self, call: &Call) -> Call {
        // One flight, and another if the first one's answer was for somebody else alone.
        let flights = self.route.provider.flight.saturating_mul(2);
        let since = self.clock.ticks().since(call.journey.started);
        call.waiting(call.wait.max(since.saturating_add(flights)))
    }

    fn subjects(&self, call: &Call) -> Vec<Digest> {
        let mut subjects = vec![caller(&self.route.name, &call.caller.name, call.caller.has_key)];
        if let Some(value) = self.config.subject.and_then(|index| call.question.value(index)) {
            subjects.push(subject(&self.route.name, "subject", value.key.as_bytes()));
        }
        subjects
    }
}

/// A "not found" that was really given.
fn is_miss(answer: &Answer) -> bool {
    answer.kept.outcome == Outcome::NotFound && answer.source != Source::Lockout
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
