//! The rules of money: decisions and sums only, time passed in. Every backend keeps rows and counters its own way and asks here
//! what becomes of them.

use std::time::Duration;

use super::super::StoreError;
use super::{Cap, Reservation, Reserved, Row, Settlement};
use crate::clock::{Timestamp, micros};

/// Amounts stay below: a store whose numbers are doubles counts exactly up to here.
pub const LIMIT: u64 = 1 << 53;
/// How long a row stays one after it was settled. Then only its day's sums know of it, and its id is unknown.
pub const ROW_KEPT: Duration = Duration::from_hours(35 * 24);
/// How long a settlement of an unknown id keeps its reserve from coming late.
pub const GIVEN_UP_KEPT: Duration = Duration::from_hours(2 * 24);
/// How long a counter stays after its window.
const COUNTER_KEPT: Duration = Duration::from_hours(40 * 24);
/// The ledger's word for an attempt whose process died before it was settled.
pub const ORPHANED: &str = "orphaned";

/// What an attempt has come to so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Open,
    Billed,
    NotBilled,
    Unknown,
}

impl State {
    /// As [`Spent::state`](super::Spent) has it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Billed => "billed",
            Self::NotBilled => "not_billed",
            Self::Unknown => "unknown",
        }
    }

    /// Reads a word.
    #[must_use]
    pub fn read(word: &str) -> Option<Self> {
        [Self::Open, Self::Billed, Self::NotBilled, Self::Unknown].into_iter().find(|state| state.word() == word)
    }

    /// Is there nothing to come?
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Billed | Self::NotBilled)
    }
}

/// Where an attempt stands, and what it counts as in each of its caps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub state: State,
    pub micros: u64,
}

impl Standing {
    /// Just reserved.
    #[must_use]
    pub fn open(amount: u64) -> Self {
        Self { state: State::Open, micros: amount }
    }

    /// What a settlement makes of it; nothing if it changes nothing.
    #[must_use]
    pub fn settled(self, by: Settlement) -> Option<Self> {
        let (state, micros) = match (self.state, by) {
            (State::Open | State::Unknown, Settlement::Billed(real)) => (State::Billed, real),
            (State::Open | State::Unknown, Settlement::NotBilled) => (State::NotBilled, 0),
            (State::Open, Settlement::Unknown) => (State::Unknown, self.micros),
            (State::Unknown, Settlement::Unknown) | (State::Billed | State::NotBilled, _) => return None,
        };
        Some(Self { state, micros })
    }
}

/// Can this be asked at all? A window long over is refused, as its counter may be gone and everything would fit.
pub fn check(reservation: &Reservation<'_>, now: Timestamp) -> Result<(), StoreError> {
    number(reservation.amount)?;
    reservation.caps.iter().try_for_each(|cap| number(cap.most))?;
    if reservation.caps.iter().any(|cap| cap.ends <= forgotten_before(now)) {
        return Err(long_over());
    }
    Ok(())
}

/// Can this cost be recorded?
pub fn check_settlement(settlement: Settlement) -> Result<(), StoreError> {
    match settlement {
        Settlement::Billed(real) => number(real),
        Settlement::NotBilled | Settlement::Unknown => Ok(()),
    }
}

/// Is it below [`LIMIT`]?
pub fn number(number: u64) -> Result<(), StoreError> {
    if number < LIMIT { Ok(()) } else { Err(too_much()) }
}

/// Counters of windows that ended by then may be forgotten.
#[must_use]
pub fn forgotten_before(now: Timestamp) -> Timestamp {
    Timestamp(now.0.saturating_sub(micros(COUNTER_KEPT)))
}

/// Fits `amount` into every cap, given what each has `used`: what each has used then, or which cannot hold it. One that is named
/// more than once must hold it as often.
pub fn fit(caps: &[Cap], used: &[u64], amount: u64) -> Result<Vec<u64>, Reserved> {
    let fitted = caps.iter().zip(used).enumerate().map(|(index, (cap, used))| {
        let times = caps.iter().filter(|other| other.name == cap.name).count();
        let then = moved(*used, times, 0, amount).ok().filter(|then| *then <= cap.most);
        then.ok_or(Reserved::No { cap: index, used: *used })
    });
    fitted.collect()
}

/// A counter after an attempt that is in it so many `times` has gone from counting as `before` to counting as `after`.
pub fn moved(used: u64, times: usize, before: u64, after: u64) -> Result<u64, StoreError> {
    let times = u64::try_from(times).map_err(|_| too_much())?;
    let (before, after) = (before.checked_mul(times), after.checked_mul(times));
    let (before, after) = before.zip(after).ok_or_else(too_much)?;
    let others = used.checked_sub(before).ok_or_else(|| StoreError::Failed("a counter is below what is in it".to_owned()))?;
    let then = others.checked_add(after).ok_or_else(too_much)?;
    number(then)?;
    Ok(then)
}

/// The caller as reports name it.
#[must_use]
pub fn shown(row: &Row) -> String {
    row.caller_name.clone().unwrap_or_else(|| format!("{:08x}", row.caller >> 96))
}

pub fn long_over() -> StoreError {
    StoreError::Failed("a cap's window ended long ago".to_owned())
}

pub fn too_much() -> StoreError {
    StoreError::Failed("an amount of 2^53 or more".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [State; 4] = [State::Open, State::Billed, State::NotBilled, State::Unknown];

    fn cap(name: &str, most: u64) -> Cap {
        Cap { name: name.to_owned(), most, ends: Timestamp(u64::MAX) }
    }

    #[test]
    fn an_attempt_goes_forward_only() {
        let goes = |state, by| Standing { state, micros: 5 }.settled(by).map(|then| (then.state, then.micros));
        for state in [State::Open, State::Unknown] {
            assert_eq!(goes(state, Settlement::Billed(7)), Some((State::Billed, 7)));
            assert_eq!(goes(state, Settlement::NotBilled), Some((State::NotBilled, 0)));
        }
        assert_eq!(goes(State::Open, Settlement::Unknown), Some((State::Unknown, 5)));
        assert_eq!(goes(State::Unknown, Settlement::Unknown), None);
        for state in STATES.into_iter().filter(|state| state.is_final()) {
            for by in [Settlement::Billed(7), Settlement::NotBilled, Settlement::Unknown] {
                assert_eq!(goes(state, by), None);
            }
        }
    }

    #[test]
    fn states_read_back() {
        for state in STATES {
            assert_eq!(State::read(state.word()), Some(state));
        }
        assert_eq!(State::read("paid"), None);
    }

    #[test]
    fn what_fits_is_counted_as_often_as_it_is_named() {
        let caps = [cap("a", 10), cap("b", 20), cap("a", 100)];
        assert_eq!(fit(&caps, &[0, 15, 0], 5), Ok(vec![10, 20, 10]));
        assert_eq!(fit(&caps, &[1, 15, 1], 5), Err(Reserved::No { cap: 0, used: 1 }), "it would end at 11");
        assert_eq!(fit(&caps, &[0, 16, 0], 5), Err(Reserved::No { cap: 1, used: 16 }));
        assert_eq!(fit(&[], &[], 5), Ok(Vec::new()));
        assert_eq!(fit(&[cap("a", 3)], &[4], 0), Err(Reserved::No { cap: 0, used: 4 }), "over it, not even nothing fits");
    }

    #[test]
    fn numbers_at_the_edge_are_refused_not_wrapped() {
        let most = LIMIT - 1;
        assert_eq!(fit(&[cap("a", most)], &[most - 1], 1), Ok(vec![most]));
        for (used, amount) in [(most, 1), (0, u64::MAX), (u64::MAX, 0), (u64::MAX, u64::MAX)] {
            assert_eq!(fit(&[cap("a", most)], &[used], amount), Err(Reserved::No { cap: 0, used }));
        }
        assert_eq!(moved(10, 2, 5, 7), Ok(14));
        for (used, times, before, after) in [(9, 2, 5, 0), (0, 2, 0, 1 << 52), (0, usize::MAX, 0, 2), (5, 1, 0, u64::MAX)] {
            assert!(moved(used, times, before, after).is_err(), "{used} {times} {before} {after}");
        }
    }

    #[test]
    fn a_caller_without_a_name_is_eight_digits() {
        let row = |caller_name: Option<&str>| Row {
            day: String::new(),
            route: String::new(),
            provider: String::new(),
            caller: 0x00ab_cdef << 96 | 7,
            caller_name: caller_name.map(str::to_owned),
            currency: String::new(),
        };
        assert_eq!(shown(&row(None)), "00abcdef");
        assert_eq!(shown(&row(Some("till"))), "till");
    }
}
