//! One token bucket: arithmetic only, time passed in.
//!
//! Integers throughout. What is less than a whole micro-token is kept as a remainder next to the time it belongs to, so
//! neither a refusal nor a refill loses or mints a fraction, however often the bucket is asked.

use std::time::Duration;

use super::{Bucket, Level};
use crate::clock::{Timestamp, micros};

/// The numbers a bucket runs on: `refill` micro-tokens every `per` microseconds, up to `capacity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Numbers {
    capacity: u64,
    refill: u64,
    per: u64,
}

impl From<&Bucket> for Numbers {
    fn from(bucket: &Bucket) -> Self {
        Self { capacity: bucket.capacity, refill: bucket.refill, per: micros(bucket.per).max(1) }
    }
}

/// What is in a bucket, and since when.
///
/// The numbers are kept too: time that has passed is credited at the numbers that held then, so a capacity raised now adds
/// nothing for the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    numbers: Numbers,
    left: u64,
    /// What has accrued beyond `left`: this many `per`ths of a micro-token. Zero when full.
    part: u64,
    /// When `left` and `part` were true. Never moves back.
    at: Timestamp,
    /// Asked by the operation under way and not yet settled.
    asked: u64,
}

impl State {
    /// A bucket nobody has used.
    #[must_use]
    pub fn full(numbers: Numbers, now: Timestamp) -> Self {
        Self { numbers, left: numbers.capacity, part: 0, at: now, asked: 0 }
    }

    /// What it runs on.
    #[cfg(test)]
    pub(super) fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// Credits the time until `now`, then goes over to `numbers`.
    pub fn refill(&mut self, numbers: Numbers, now: Timestamp) {
        let (whole, part) = self.earned(now.0.saturating_sub(self.at.0));
        self.part = part;
        self.left = self.left.saturating_add(whole).min(self.numbers.capacity);
        self.at = self.at.max(now);
        if self.left == self.numbers.capacity {
            self.part = 0;
        }
        self.renumber(numbers);
    }

    /// What `elapsed` microseconds bring, in whole micro-tokens and the part that is left over.
    fn earned(&self, elapsed: u64) -> (u64, u64) {
        let Numbers { refill, per, .. } = self.numbers;
        // Nearly always it fits, and half the width divides in a tenth of the time.
        if let Some(earned) = elapsed.checked_mul(refill).and_then(|earned| earned.checked_add(self.part)) {
            return (earned / per, earned % per);
        }
        let (earned, per) = (u128::from(elapsed) * u128::from(refill) + u128::from(self.part), u128::from(per));
        (u64::try_from(earned / per).unwrap_or(u64::MAX), u64::try_from(earned % per).unwrap_or(0))
    }

    fn renumber(&mut self, numbers: Numbers) {
        if self.numbers == numbers {
            return;
        }
        self.numbers = numbers;
        self.left = self.left.min(numbers.capacity);
        self.part = if self.left == numbers.capacity { 0 } else { self.part.min(numbers.per.saturating_sub(1)) };
    }

    /// Asks a refilled bucket for `cost`, on top of what this operation has already asked of it. Returns how long until it
    /// can pay: exact, zero if it can now, [`Duration::MAX`] if it never can. [`settle`](Self::settle) ends the operation.
    pub fn ask(&mut self, cost: u64, now: Timestamp) -> Duration {
        self.asked = self.asked.saturating_add(cost);
        self.until(self.asked, now)
    }

    /// Ends the operation: pays what was asked, or nothing.
    pub fn settle(&mut self, debit: bool, now: Timestamp) -> Level {
        if debit {
            self.left = self.left.saturating_sub(self.asked);
        }
        self.asked = 0;
        Level { left: self.left, full_in: self.until(self.numbers.capacity, now) }
    }

    /// Is nothing lost by forgetting this bucket?
    #[must_use]
    pub fn is_full(&self, now: Timestamp) -> bool {
        self.until(self.numbers.capacity, now).is_zero()
    }

    /// How long from `now` until the bucket holds `amount`.
    fn until(&self, amount: u64, now: Timestamp) -> Duration {
        if amount > self.numbers.capacity {
            return Duration::MAX;
        }
        let missing = amount.saturating_sub(self.left);
        if missing == 0 {
            return Duration::ZERO;
        }
        let due = (u128::from(missing) * u128::from(self.numbers.per)).saturating_sub(u128::from(self.part));
        let Some(late) = due.checked_sub(1).map_or(Some(0), |d| d.checked_div(u128::from(self.numbers.refill)).map(|q| q + 1))
        else {
            return Duration::MAX;
        };
        let end = u128::from(self.at.0) + late.min(u128::from(u64::MAX));
        Duration::from_micros(u64::try_from(end.saturating_sub(u128::from(now.0))).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOKEN: u64 = 1_000_000;

    fn numbers(capacity: u64, refill: u64, per: u64) -> Numbers {
        Numbers { capacity, refill, per }
    }

    /// One whole operation on one bucket.
    fn take(state: &mut State, numbers: Numbers, cost: u64, now: u64) -> Result<Level, Duration> {
        let now = Timestamp(now);
        state.refill(numbers, now);
        let wait = state.ask(cost, now);
        let level = state.settle(wait.is_zero(), now);
        if wait.is_zero() { Ok(level) } else { Err(wait) }
    }

    fn any_numbers() -> impl Strategy<Value = Numbers> {
        (1..20 * TOKEN, 1..5 * TOKEN, 1..10_000_000_u64).prop_map(|(capacity, refill, per)| numbers(capacity, refill, per))
    }

    #[test]
    fn l_03_a_poller_gets_every_token_that_accrues() {
        let slow = numbers(TOKEN, TOKEN, 2_000_000);
        let mut state = State::full(slow, Timestamp(0));
        let passed = (0..=33).filter(|i| take(&mut state, slow, TOKEN, i * 300_000).is_ok()).count();
        assert_eq!(passed, 5, "at 0, 2.1, 4.2, 6.0 and 8.1 s: the first poll after each whole token");
    }

    #[test]
    fn l_04_refused_is_free_and_the_whole_capacity_can_be_had() {
        let ten = numbers(10 * TOKEN, TOKEN, 1_000_000);
        let mut state = State::full(ten, Timestamp(0));
        assert_eq!(take(&mut state, ten, 7 * TOKEN, 0).map(|l| l.left), Ok(3 * TOKEN));
        assert_eq!(take(&mut state, ten, 5 * TOKEN, 0), Err(Duration::from_secs(2)));
        assert_eq!(take(&mut state, ten, 3 * TOKEN, 0).map(|l| l.left), Ok(0));
        assert_eq!(take(&mut state, ten, 11 * TOKEN, 0), Err(Duration::MAX));
        assert_eq!(take(&mut state, ten, u64::MAX, 0), Err(Duration::MAX));
        assert!(take(&mut state, ten, 0, 0).is_ok());
        assert_eq!(take(&mut state, ten, 10 * TOKEN, 10_000_000).map(|l| l.left), Ok(0));
    }

    #[test]
    fn raising_the_capacity_adds_nothing_even_for_time_already_passed() {
        let (ten, twenty) = (numbers(10 * TOKEN, TOKEN, 1_000_000), numbers(20 * TOKEN, TOKEN, 1_000_000));
        let mut state = State::full(ten, Timestamp(0));
        assert_eq!(take(&mut state, twenty, 0, 60_000_000).map(|l| l.left), Ok(10 * TOKEN));
        assert_eq!(take(&mut state, ten, 0, 90_000_000).map(|l| l.left), Ok(10 * TOKEN));
    }

    #[test]
    fn numbers_at_the_edge_of_the_type_do_not_panic() {
        for edge in [numbers(u64::MAX, u64::MAX, u64::MAX), numbers(u64::MAX, 1, u64::MAX), numbers(0, 0, 1)] {
            let mut state = State::full(edge, Timestamp(0));
            let _ = take(&mut state, edge, u64::MAX, 0);
            let _ = take(&mut state, edge, u64::MAX, u64::MAX);
            let _ = take(&mut state, edge, 1, 1);
            let _ = state.is_full(Timestamp(u64::MAX));
        }
    }

    proptest! {
        #[test]
        fn never_more_than_burst_plus_rate_times_time(
            n in any_numbers(),
            asks in prop::collection::vec((0..3_000_000_u64, 0..3 * TOKEN, any::<bool>()), 1..200),
        ) {
            let (mut state, mut now, mut granted) = (State::full(n, Timestamp(0)), 0_u64, 0_u128);
            for (step, cost, back) in asks {
                now += step;
                // An older time, as of a thread that read the clock and then had to wait, mints nothing.
                let seen = if back { now.saturating_sub(1_000_000) } else { now };
                if take(&mut state, n, cost, seen).is_ok() {
                    granted += u128::from(cost);
                }
                prop_assert!(granted * u128::from(n.per)
                    <= u128::from(n.capacity) * u128::from(n.per) + u128::from(now) * u128::from(n.refill));
            }
        }

        #[test]
        fn l_05_refused_until_exactly_the_advertised_instant(
            n in any_numbers(),
            spent in prop::collection::vec((0..50_000_u64, 1..2 * TOKEN), 0..40),
            cost in 1..20 * TOKEN,
        ) {
            let cost = cost.min(n.capacity);
            let (mut state, mut now) = (State::full(n, Timestamp(0)), 0_u64);
            for (step, amount) in spent {
                now += step;
                let _ = take(&mut state, n, amount, now);
            }
            if let Err(wait) = take(&mut state, n, cost, now) {
                let wait = micros(wait);
                prop_assert!(take(&mut state.clone(), n, cost, now + wait - 1).is_err());
                prop_assert!(take(&mut state, n, cost, now + wait).is_ok());
            }
        }

        #[test]
        fn l_03_no_fraction_is_lost_however_often_it_is_asked(
            n in any_numbers(),
            steps in prop::collection::vec(0..5_000_u64, 1..200),
        ) {
            let mut polled = State::full(n, Timestamp(0));
            prop_assert!(take(&mut polled, n, n.capacity, 0).is_ok());
            let mut left_alone = polled;
            let mut now = 0;
            for step in steps {
                now += step;
                let _ = take(&mut polled, n, u64::MAX, now);
            }
            polled.refill(n, Timestamp(now));
            left_alone.refill(n, Timestamp(now));
            prop_assert_eq!(polled, left_alone);
        }

        #[test]
        fn the_level_says_exactly_when_the_bucket_is_full(n in any_numbers(), cost in 1..20 * TOKEN, now in 0..u64::MAX / 2) {
            let mut state = State::full(n, Timestamp(now));
            if let Ok(level) = take(&mut state, n, cost.min(n.capacity), now) {
                let full = Timestamp(now).after(level.full_in);
                prop_assert!(state.is_full(full));
                prop_assert!(!state.is_full(Timestamp(full.0 - 1)));
            }
        }
    }
}
