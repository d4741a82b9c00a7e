//! A circuit breaker as a state machine apart from the code that asks it: closed, open, half-open in the usual words.
//!
//! Closed counts consecutive failures; open refuses until its cooldown ends; half-open lets one probe through. Every opening
//! starts a new generation, and a report from an older one is ignored, so a late answer neither heals nor hurts. A permit that is
//! dropped without a report says "unknown": a lost probe makes room for the next, and a probe that never ends has a maximum
//! age.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::alerts::{Alerts, Kind};
use crate::clock::{Clock, Timestamp};
use crate::provider::BreakerRule;
use crate::telemetry::Metrics;

/// The breaker of one provider. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Breaker(Arc<Shared>);

struct Shared {
    provider: String,
    state: Mutex<Machine>,
    clock: Clock,
    metrics: Arc<Metrics>,
    alerts: Alerts,
}

#[derive(Debug)]
struct Machine {
    state: State,
    generation: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed {
        failures: u32,
    },
    Open {
        until: Timestamp,
    },
    /// One probe is out, until it reports or is too old.
    HalfOpen {
        probe_expires: Timestamp,
    },
}

/// What an attempt says about the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Success,
    Failure,
    /// Says nothing either way: a 4xx, back-pressure, a refusal of ours, a lost attempt.
    Neutral,
}

/// The breaker is open for so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Open(pub(crate) Duration);

impl Breaker {
    pub(crate) fn new(provider: &str, clock: Clock, metrics: Arc<Metrics>, alerts: Alerts) -> Self {
        metrics.breaker(provider, 0);
        let state = Mutex::new(Machine { state: State::Closed { failures: 0 }, generation: 0 });
        Self(Arc::new(Shared { provider: provider.to_owned(), state, clock, metrics, alerts }))
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call would be let through, without taking a permit.
    pub(crate) fn look(&self) -> Result<(), Open> {
        self.machine().look(self.0.clock.ticks())
    }

    /// Permission for one attempt. `probe_age` is the longest a probe may take.
    pub(crate) fn permit(&self, rule: BreakerRule, probe_age: Duration) -> Result<Permit, Open> {
        let mut machine = self.machine();
        let probe = machine.admit(self.0.clock.ticks(), probe_age)?;
        if probe {
            self.tell(&machine);
        }
        Ok(Permit { breaker: self.clone(), rule, generation: machine.generation, probe, reported: false })
    }

    /// The state's name, for the admin API.
    pub(crate) fn state(&self) -> &'static str {
        match self.machine().state {
            State::Closed { .. } => "closed",
            State::Open { .. } => "open",
            State::HalfOpen { .. } => "half-open",
        }
    }

    fn report(&self, rule: BreakerRule, generation: u64, probe: bool, report: Report) {
        let mut machine = self.machine();
        let before = machine.generation;
        machine.report(rule, generation, probe, report, self.0.clock.ticks());
        self.tell(&machine);
        let opened = machine.generation != before && matches!(machine.state, State::Open { .. });
        drop(machine);
        if opened {
            let told = || {
                format!("the provider fails: its breaker is open, and calls are held back {}s at a time", rule.cooldown.as_secs())
            };
            self.0.alerts.provider(Kind::BreakerOpen, &self.0.provider, told);
        }
    }

    /// Said while the machine is held, so that the last word is true.
    fn tell(&self, machine: &Machine) {
        let state = match machine.state {
            State::Closed { .. } => 0,
            State::HalfOpen { .. } => 1,
            State::Open { .. } => 2,
        };
        self.0.metrics.breaker(&self.0.provider, state);
    }
}

// === impl Machine ===

impl Machine {
    fn look(&self, now: Timestamp) -> Result<(), Open> {
        match self.state {
            State::Open { until } if now < until => Err(Open(until.since(now))),
            State::HalfOpen { probe_expires } if now < probe_expires => {
                Err(Open(probe_expires.since(now).min(Duration::from_secs(1))))
            }
            _ => Ok(()),
        }
    }

    /// Lets an attempt through; says whether it is the probe.
    fn admit(&mut self, now: Timestamp, probe_age: Duration) -> Result<bool, Open> {
        self.look(now)?;
        if matches!(self.state, State::Closed { .. }) {
            return Ok(false);
        }
        self.generation += 1;
        self.state = State::HalfOpen { probe_expires: now.after(probe_age) };
        Ok(true)
    }

    fn report(&mut self, rule: BreakerRule, generation: u64, probe: bool, report: Report, now: Timestamp) {
        if generation != self.generation {
            return;
        }
        match (self.state, report) {
            (State::Closed { .. }, Report::Success) => self.state = State::Closed { failures: 0 },
            (State::Closed { failures }, Report::Failure) if failures + 1 >= rule.failures => self.open(rule, now),
            (State::Closed { failures }, Report::Failure) => self.state = State::Closed { failures: failures + 1 },
            (State::HalfOpen { .. }, Report::Success) if probe => {
                self.generation += 1;
                self.state = State::Closed { failures: 0 };
            }
            (State::HalfOpen { .. }, Report::Failure) if probe => self.open(rule, now),
            // The probe learnt nothing: the next request is the probe.
            (State::HalfOpen { .. }, Report::Neutral) if probe => self.state = State::HalfOpen { probe_expires: now },
            _ => {}
        }
    }

    fn open(&mut self, rule: BreakerRule, now: Timestamp) {
        self.generation += 1;
        self.state = State::Open { until: now.after(rule.cooldown) };
    }
}

/// The right to one attempt. Dropped without a report, it says "unknown".
pub(crate) struct Permit {
    breaker: Breaker,
    rule: BreakerRule,
    generation: u64,
    probe: bool,
    reported: bool,
}

impl Permit {
    /// A probe is never retried.
    pub(crate) fn is_probe(&self) -> bool {
        self.probe
    }

    pub(crate) fn report(mut self, report: Report) {
        self.reported = true;
        self.breaker.report(self.rule, self.generation, self.probe, report);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.reported {
            self.breaker.report(self.rule, self.generation, self.probe, Report::Neutral);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: BreakerRule = BreakerRule { failures: 3, cooldown: Duration::from_secs(1) };
    const AGE: Duration = Duration::from_secs(6);

    fn breaker() -> (Breaker, Clock) {
        let clock = Clock::manual(Timestamp(1_000_000));
        (Breaker::new("p", clock.clone(), Metrics::new(), Alerts::silent(&clock)), clock)
    }

    fn attempt(breaker: &Breaker, report: Report) -> bool {
        breaker.permit(RULE, AGE).map(|permit| permit.report(report)).is_ok()
    }

    fn trip(breaker: &Breaker) {
        for _ in 0..3 {
            assert!(attempt(breaker, Report::Failure));
        }
        assert_eq!(breaker.state(), "open");
    }

    #[test]
    fn consecutive_failures_open_it_and_neutral_reports_do_nothing() {
        let (breaker, _) = breaker();
        for report in [Report::Failure, Report::Failure, Report::Success, Report::Failure, Report::Neutral, Report::Failure] {
            assert!(attempt(&breaker, report));
        }
        assert_eq!(breaker.state(), "closed");
        assert!(attempt(&breaker, Report::Failure));
        assert_eq!(breaker.look(), Err(Open(Duration::from_secs(1))));
        assert!(!attempt(&breaker, Report::Success));
    }

    #[test]
    fn one_probe_at_a_time_decides() {
        let (breaker, clock) = breaker();
        trip(&breaker);
        clock.advance(Duration::from_secs(1));
        let probe = breaker.permit(RULE, AGE).unwrap();
        assert!(probe.is_probe() && breaker.permit(RULE, AGE).is_err());
        probe.report(Report::Success);
        assert_eq!(breaker.state(), "closed");
    }

    #[test]
    fn b_01_a_lost_probe_makes_room_for_the_next() {
        let (breaker, clock) = breaker();
        trip(&breaker);
        clock.advance(Duration::from_secs(1));
        drop(breaker.permit(RULE, AGE).unwrap());
        assert!(breaker.permit(RULE, AGE).unwrap().is_probe());
        let stuck = breaker.permit(RULE, AGE).unwrap();
        clock.advance(AGE);
        let next = breaker.permit(RULE, AGE).unwrap();
        stuck.report(Report::Failure);
        assert_eq!(breaker.state(), "half-open", "a report from before counts for nothing");
        next.report(Report::Success);
        assert_eq!(breaker.state(), "closed");
    }

    #[test]
    fn a_late_success_does_not_close_an_open_breaker() {
        let (breaker, _) = breaker();
        let late = breaker.permit(RULE, AGE).unwrap();
        trip(&breaker);
        late.report(Report::Success);
        assert_eq!(breaker.state(), "open");
    }
}
