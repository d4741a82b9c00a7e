//! One subject's lockout: decisions only, time passed in. Both backends keep this state, each its own way.
//!
//! What counts against the allowance is confirmed misses inside a true rolling window, and guesses in flight. Only confirmed
//! misses lock. A lock uses the misses up that led to it, so that it ends on time and not when the window has passed; a miss
//! that is confirmed during a lock is not counted, so that nothing extends it.
//!
//! A guess that meets a lock is in flight like any other until it is settled: the backend has the same to do for a locked guesser as for
//! one who is not, and neither time nor haste tells them apart.

use serde::{Deserialize, Serialize};

use super::{Digest, Guess, LockoutRule, LockoutState, OpId};
use crate::clock::{Timestamp, micros};

/// What is remembered of one subject. Times are in microseconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lockout {
    /// When each miss was confirmed.
    misses: Vec<u64>,
    flights: Vec<Flight>,
    /// The latest lock, which may have ended.
    lock: Option<Lock>,
    /// When all of the above will have lost its meaning.
    idle_at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Flight {
    op: u128,
    expires: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Lock {
    until: u64,
    length: u64,
    /// The how manyth in a row.
    number: u32,
}

impl Lock {
    /// Until then, a further lock is longer than this one.
    fn weighs_until(&self, rule: LockoutRule) -> u64 {
        self.until.saturating_add(self.length).saturating_add(micros(rule.window))
    }
}

impl Lockout {
    /// May guess `op` go on? Changes nothing. A guess already in flight takes no more room.
    #[must_use]
    pub fn verdict(&self, op: OpId, rule: LockoutRule, now: Timestamp) -> Guess {
        let state = self.state(rule, now);
        let flies = self.flights.iter().any(|f| f.op == op.0 && f.expires > now.0);
        if !flies && state.misses.saturating_add(state.in_flight) >= rule.misses {
            return Guess::Full;
        }
        state.locked_until.map_or(Guess::Admitted, |until| Guess::Locked(Timestamp(until)))
    }

    /// Counts a guess as in flight.
    pub fn admit(&mut self, op: OpId, rule: LockoutRule, expires: Timestamp, now: Timestamp) {
        self.prune(rule, now);
        if !self.flights.iter().any(|f| f.op == op.0) {
            self.flights.push(Flight { op: op.0, expires: expires.0 });
        }
        self.idle_at = self.last_meaning(rule);
    }

    /// Ends a guess. A confirmed miss counts even if the guess had expired: it was made, and paid for.
    pub fn settle(&mut self, op: OpId, rule: LockoutRule, missed: bool, now: Timestamp) {
        self.prune(rule, now);
        self.flights.retain(|f| f.op != op.0);
        if missed && self.locked(now).is_none() {
            self.misses.push(now.0);
            if count(&self.misses) >= rule.misses {
                self.lock(rule, now);
            }
        }
        self.idle_at = self.last_meaning(rule);
    }

    fn lock(&mut self, rule: LockoutRule, now: Timestamp) {
        let before = self.lock.filter(|lock| now.0 < lock.weighs_until(rule)).map_or(0, |lock| lock.number);
        let doubled = 1_u64.checked_shl(before).unwrap_or(u64::MAX);
        let length = micros(rule.first).saturating_mul(doubled).min(micros(rule.max));
        self.lock = Some(Lock { until: now.0.saturating_add(length), length, number: before.saturating_add(1) });
        self.misses.clear();
    }

    /// Forgets misses and lock. Guesses in flight stay counted: they are still on their way.
    pub fn clear(&mut self) {
        self.misses.clear();
        self.lock = None;
    }

    /// Is there nothing to remember?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.misses.is_empty() && self.flights.is_empty() && self.lock.is_none()
    }

    /// What of this counts at `now`.
    #[must_use]
    pub fn state(&self, rule: LockoutRule, now: Timestamp) -> LockoutState {
        LockoutState {
            misses: count(self.misses.iter().filter(|at| in_window(**at, rule, now))),
            in_flight: count(self.flights.iter().filter(|f| f.expires > now.0)),
            locked_until: self.locked(now),
            locks: self.lock.filter(|lock| now.0 < lock.weighs_until(rule)).map_or(0, |lock| lock.number),
        }
    }

    /// When this may be forgotten.
    #[must_use]
    pub fn idle_at(&self) -> Timestamp {
        Timestamp(self.idle_at)
    }

    fn locked(&self, now: Timestamp) -> Option<u64> {
        self.lock.map(|lock| lock.until).filter(|until| *until > now.0)
    }

    fn prune(&mut self, rule: LockoutRule, now: Timestamp) {
        self.misses.retain(|at| in_window(*at, rule, now));
        self.flights.retain(|f| f.expires > now.0);
        self.lock = self.lock.filter(|lock| now.0 < lock.weighs_until(rule));
    }

    fn last_meaning(&self, rule: LockoutRule) -> u64 {
        let misses = self.misses.iter().map(|at| at.saturating_add(micros(rule.window)));
        let flights = self.flights.iter().map(|f| f.expires);
        misses.chain(flights).chain(self.lock.map(|lock| lock.weighs_until(rule))).max().unwrap_or(0)
    }
}

/// The verdict on one guess about several subjects: locked over full over admitted, and the latest lock of all.
pub fn worst(verdicts: impl Iterator<Item = Guess>) -> Guess {
    verdicts.fold(Guess::Admitted, |worst, next| match (worst, next) {
        (Guess::Locked(a), Guess::Locked(b)) => Guess::Locked(a.max(b)),
        (locked @ Guess::Locked(_), _) | (_, locked @ Guess::Locked(_)) => locked,
        (Guess::Full, _) | (_, Guess::Full) => Guess::Full,
        _ => Guess::Admitted,
    })
}

/// Whether a guess with that verdict is in flight for a subject whose own verdict is `own`: for all that admit it, or for those alone
/// that are locked. What one subject's lock holds back takes no room of another's.
#[must_use]
pub fn flies(verdict: Guess, own: Guess) -> bool {
    match verdict {
        Guess::Admitted => true,
        Guess::Locked(_) => matches!(own, Guess::Locked(_)),
        Guess::Full => false,
    }
}

/// Each subject once.
pub fn distinct(subjects: &[Digest]) -> impl Iterator<Item = &Digest> {
    let repeated = |index: usize| subjects.iter().take(index).any(|earlier| subjects.get(index) == Some(earlier));
    subjects.iter().enumerate().filter(move |(index, _)| !repeated(*index)).map(|(_, subject)| subject)
}

fn in_window(at: u64, rule: LockoutRule, now: Timestamp) -> bool {
    at.saturating_add(micros(rule.window)) > now.0
}

fn count<T>(items: impl IntoIterator<Item = T>) -> u32 {
    u32::try_from(items.into_iter().count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const RULE: LockoutRule = LockoutRule {
        misses: 3,
        window: Duration::from_micros(100),
        first: Duration::from_micros(10),
        max: Duration::from_micros(35),
    };

    /// One guess, missed at `now`.
    fn miss(lockout: &mut Lockout, id: u128, now: u64) {
        lockout.admit(OpId(id), RULE, Timestamp(now + 1), Timestamp(now));
        lockout.settle(OpId(id), RULE, true, Timestamp(now));
    }

    fn lock_at(lockout: &mut Lockout, now: u64) -> u64 {
        (0..3).for_each(|id| miss(lockout, id, now));
        lockout.state(RULE, Timestamp(now)).locked_until.expect("three misses lock")
    }

    #[test]
    fn the_window_rolls_with_each_miss() {
        let mut lockout = Lockout::default();
        miss(&mut lockout, 1, 0);
        miss(&mut lockout, 2, 60);
        miss(&mut lockout, 3, 100);
        assert_eq!(lockout.state(RULE, Timestamp(100)).misses, 2, "the first has just left");
        miss(&mut lockout, 4, 159);
        assert_eq!(lockout.state(RULE, Timestamp(159)).locked_until, Some(169));
    }

    #[test]
    fn locks_double_up_to_the_maximum_and_start_over_after_a_quiet_time() {
        let mut lockout = Lockout::default();
        assert_eq!(lock_at(&mut lockout, 0), 10);
        assert_eq!(lock_at(&mut lockout, 10), 30);
        assert_eq!(lock_at(&mut lockout, 149), 149 + 35, "ended at 30, 20 long, window 100: weighs until 150");
        assert_eq!(lockout.state(RULE, Timestamp(318)).locks, 3);
        assert_eq!(lockout.state(RULE, Timestamp(319)).locks, 0);
        assert_eq!(lock_at(&mut lockout, 319), 329);
    }

    #[test]
    fn a_miss_confirmed_during_a_lock_changes_nothing() {
        let mut lockout = Lockout::default();
        let until = lock_at(&mut lockout, 0);
        (10..20).for_each(|id| lockout.settle(OpId(id), RULE, true, Timestamp(5)));
        let after = lockout.state(RULE, Timestamp(until));
        assert_eq!((after.misses, after.locked_until), (0, None));
        assert_eq!(lockout.verdict(OpId(30), RULE, Timestamp(until)), Guess::Admitted);
    }

    #[test]
    fn a_guess_that_meets_a_lock_takes_room_until_it_is_settled_and_leaves_nothing() {
        let mut lockout = Lockout::default();
        let until = lock_at(&mut lockout, 0);
        let locked = Guess::Locked(Timestamp(until));
        let before = lockout.clone();
        for id in 10..13 {
            assert_eq!(lockout.verdict(OpId(id), RULE, Timestamp(1)), locked);
            lockout.admit(OpId(id), RULE, Timestamp(50), Timestamp(1));
        }
        assert_eq!(lockout.verdict(OpId(13), RULE, Timestamp(1)), Guess::Full, "as without a lock");
        assert_eq!(lockout.verdict(OpId(12), RULE, Timestamp(1)), locked, "a repeat is let through no more than the first");
        (10..13).for_each(|id| lockout.settle(OpId(id), RULE, false, Timestamp(2)));
        assert_eq!(lockout, before);
    }

    #[test]
    fn it_is_idle_when_nothing_in_it_counts_any_more() {
        let mut lockout = Lockout::default();
        miss(&mut lockout, 1, 7);
        assert_eq!(lockout.idle_at(), Timestamp(107));
        lockout.admit(OpId(2), RULE, Timestamp(500), Timestamp(8));
        assert_eq!(lockout.idle_at(), Timestamp(500));
        lockout.settle(OpId(2), RULE, false, Timestamp(9));
        assert_eq!(lockout.idle_at(), Timestamp(107));
    }

    #[test]
    fn the_worst_verdict_wins() {
        let (early, late) = (Guess::Locked(Timestamp(1)), Guess::Locked(Timestamp(2)));
        assert_eq!(worst([Guess::Full, early, late, Guess::Admitted].into_iter()), late);
        assert_eq!(worst([Guess::Admitted, Guess::Full].into_iter()), Guess::Full);
        assert_eq!(worst(std::iter::empty()), Guess::Admitted);
    }

    #[test]
    fn it_reads_back_as_it_was_written() {
        let mut lockout = Lockout::default();
        lock_at(&mut lockout, 3);
        lockout.admit(OpId(u128::MAX), RULE, Timestamp(u64::MAX), Timestamp(50));
        let text = serde_json::to_string(&lockout).expect("plain data");
        assert_eq!(serde_json::from_str::<Lockout>(&text).ok(), Some(lockout));
    }
}
