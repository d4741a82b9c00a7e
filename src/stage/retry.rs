//! Attempts: a permit of the breaker for each, full jitter between them, never past the flight's deadline.
//!
//! Only *busy* and *failed* are tried again; a probe never is. A `Retry-After` within the cap is waited in full (jitter only on
//! top); a longer one ends the flight. Either way the time a busy provider names is a pause for everyone, other flights' retries
//! included. Retries are bounded twice: by `attempts`, and by a budget over all requests, a share of first attempts with a
//! stated minimum, counted when a retry is decided.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::RngExt as _;

use super::breaker::{circuit_open, paused};
use super::{Next, Stage, Verdict};
use crate::alerts::{Alerts, Kind};
use crate::answer::Outcome;
use crate::breaker::{Breaker, Open, Report};
use crate::call::Call;
use crate::clock::{Clock, Timestamp, micros};
use crate::provider::{RetryRule, backoff};
use crate::refusal::Refusal;
use crate::route::Route;
use crate::store::handle::StoreHandle;
use crate::upstream::LONGEST_WAIT;

/// A pause that is longer is told to the operator.
const LONG_PAUSE: Duration = Duration::from_secs(60);

/// The stage.
#[derive(Clone)]
pub(crate) struct Retry {
    route: Arc<Route>,
    breaker: Breaker,
    budget: RetryBudget,
    store: StoreHandle,
    clock: Clock,
    alerts: Alerts,
}

impl Retry {
    pub(crate) fn new(
        route: &Arc<Route>,
        breaker: Breaker,
        budget: RetryBudget,
        store: StoreHandle,
        clock: Clock,
        alerts: Alerts,
    ) -> Self {
        Self { route: Arc::clone(route), breaker, budget, store, clock, alerts }
    }

    /// Keeps everyone away until the time a busy provider has named; says until when. For a provider in trouble there is the
    /// breaker: what one failure says of the future is not taken for all.
    async fn pause(&self, call: &Call, refusal: &Refusal) -> Option<Timestamp> {
        if refusal.outcome != Some(Outcome::Busy) {
            return None;
        }
        // A day or more is no plan but a mistake, and must not close the shop.
        let asked = refusal.retry_after.filter(|asked| *asked < LONGEST_WAIT)?;
        let until = self.clock.now().after(asked);
        if asked > LONG_PAUSE {
            let told =
                || format!("the provider asks to be left alone for {} seconds: calls are refused until then", asked.as_secs());
            self.alerts.provider(Kind::ProviderPause, &self.route.provider.name, told);
        }
        self.store.pause(&call.journey, &self.route.provider.name, until).await;
        Some(until)
    }

    /// How long to wait before the next attempt, or none if there is none.
    fn wait(&self, refusal: &Refusal, attempt: u32, spent: Duration) -> Option<Duration> {
        let rule = &self.route.provider.retry;
        let asked = refusal.retry_after;
        let again = match refusal.outcome {
            Some(Outcome::Busy | Outcome::Failed) => true,
            // A write that may have had its effect: only where the provider sees that it is the same one.
            Some(Outcome::Unknown) => self.route.provider.idempotency.is_some(),
            _ => false,
        } && attempt < rule.attempts;
        if !again || asked.is_some_and(|asked| asked > rule.cap) {
            return None;
        }
        let jitter = full_jitter(backoff(rule, attempt));
        let wait = asked.map_or(jitter, |asked| asked.saturating_add(full_jitter(rule.base)));
        // This failure may have been the one that opened the breaker: then there is nothing to wait for.
        if self.breaker.look().is_err_and(|Open(rest)| rest > wait) {
            return None;
        }
        let rest = self.route.provider.flight.saturating_sub(spent);
        // An attempt that could not end before the flight does is not begun.
        (wait.saturating_add(self.route.provider.timeout) <= rest && self.budget.withdraw(rule, self.clock.ticks()))
            .then_some(wait)
    }
}

/// Anything from nothing to `most`.
fn full_jitter(most: Duration) -> Duration {
    Duration::from_micros(rand::rng().random_range(0..=micros(most)))
}

/// What an outcome says about the provider's health. A 4xx says nothing, and neither does back-pressure.
fn report(verdict: &Verdict) -> Report {
    match verdict {
        Ok(answer) if answer.kept.outcome == Outcome::Rejected => Report::Neutral,
        Ok(answer) if answer.kept.status.is_client_error() => Report::Neutral,
        Ok(_) => Report::Success,
        Err(refusal) => match refusal.outcome {
            Some(Outcome::Failed | Outcome::Unknown) => Report::Failure,
            _ => Report::Neutral,
        },
    }
}

impl Stage for Retry {
    type In = Call;
    type Out = Call;

    async fn handle(&self, call: Call, next: &impl Next<Call>) -> Verdict {
        let provider = &self.route.provider;
        let began = self.clock.ticks();
        let mut slept = Duration::ZERO;
        self.budget.deposit(&provider.retry);
        let mut attempt = 1;
        loop {
            let permit = self.breaker.permit(provider.breaker, provider.timeout.saturating_mul(2)).map_err(circuit_open)?;
            let probe = permit.is_probe();
            let verdict = next.run(call.clone()).await;
            permit.report(report(&verdict));
            let Err(refusal) = verdict else { return verdict };
            let own = self.pause(&call, &refusal).await;
            // A stepped clock does not see the waits, so they are counted, too.
            let spent = self.clock.ticks().since(began).max(slept);
            let wait = if probe { None } else { self.wait(&refusal, attempt, spent) };
            let Some(wait) = wait else { return Err(refusal) };
            tokio::time::sleep(wait).await;
            slept = slept.saturating_add(wait);
            // What this flight was told it has waited for; what others were told meanwhile is news.
            let until = self.store.paused(&provider.name);
            paused(until.filter(|until| Some(*until) > own), self.clock.now())?;
            attempt += 1;
        }
    }
}

/// The retry budget of one provider. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetryBudget(Arc<Mutex<Tokens>>);

#[derive(Debug, Default)]
struct Tokens {
    /// Millionths of a retry, earned by first attempts.
    earned: u64,
    /// The minimum refills by time: when all of it will be there again.
    minimum_full: Timestamp,
}

const RETRY: u64 = 1_000_000;
/// No more than this many retries are saved up.
const MOST: u64 = 100 * RETRY;

impl RetryBudget {
    fn tokens(&self) -> std::sync::MutexGuard<'_, Tokens> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deposit(&self, rule: &RetryRule) {
        let mut tokens = self.tokens();
        tokens.earned = (tokens.earned + u64::from(rule.budget.0) * (RETRY / 100)).min(MOST);
    }

    /// Takes one retry: an earned one, else one of the stated minimum (with ten seconds of burst).
    fn withdraw(&self, rule: &RetryRule, now: Timestamp) -> bool {
        let mut tokens = self.tokens();
        if tokens.earned >= RETRY {
            tokens.earned -= RETRY;
            return true;
        }
        let spacing = rule.minimum.per / u32::try_from(rule.minimum.count).unwrap_or(u32::MAX).max(1);
        let burst = Duration::from_secs(10).max(spacing.saturating_mul(2));
        let full = tokens.minimum_full.max(now).after(spacing);
        if full > now.after(burst) {
            return false;
        }
        tokens.minimum_full = full;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::units::{Percent, Rate};

    fn rule() -> RetryRule {
        RetryRule {
            attempts: 3,
            base: Duration::from_millis(250),
            cap: Duration::from_secs(8),
            budget: Percent(20),
            minimum: Rate { count: 1, per: Duration::from_secs(1) },
        }
    }

    #[test]
    fn the_budget_is_a_share_with_a_minimum() {
        let budget = RetryBudget::default();
        // Ticks begin at nought, and a gateway that has just begun has its minimum, too.
        let now = Timestamp(0);
        let minimum = (0..100).filter(|_| budget.withdraw(&rule(), now)).count();
        assert_eq!(minimum, 10, "ten seconds of the minimum may come at once");
        for _ in 0..50 {
            budget.deposit(&rule());
        }
        assert_eq!((0..100).filter(|_| budget.withdraw(&rule(), now)).count(), 10, "20% of 50");
        assert!(budget.withdraw(&rule(), now.after(Duration::from_secs(1))));
        assert!(!budget.withdraw(&rule(), now.after(Duration::from_secs(1))));
    }

    #[test]
    fn backoff_doubles_up_to_the_cap() {
        let waits: Vec<u128> = [1, 2, 3, 6, 7, 100].map(|attempt| backoff(&rule(), attempt).as_millis()).to_vec();
        assert_eq!(waits, [250, 500, 1000, 8000, 8000, 8000]);
    }
}
