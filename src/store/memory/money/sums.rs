//! The reports: what was spent and what was saved, by day, bounded.

use std::collections::BTreeMap;

use crate::store::StoreError;
use crate::store::money::ledger::{self, State};
use crate::store::money::{Days, Row, Saved, Spent};

/// Sums by key. The day comes first in a key, so that the oldest days are first to go when there are too many.
struct Sums<K> {
    most: usize,
    by_key: BTreeMap<K, Sum>,
}

/// Too wide to overflow: what leaves it is checked.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: u128,
    micros: u128,
}

impl<K: Ord + Clone> Sums<K> {
    fn new(most: usize) -> Self {
        Self { most, by_key: BTreeMap::new() }
    }

    fn add(&mut self, key: K, count: u64, micros: u64) {
        let sum = self.by_key.entry(key).or_default();
        sum.count = sum.count.saturating_add(count.into());
        sum.micros = sum.micros.saturating_add(micros.into());
        while self.by_key.len() > self.most {
            self.by_key.pop_first();
        }
    }

    /// Takes out one of what was added. A sum that is forgotten stays so.
    fn take_one(&mut self, key: &K, micros: u64) {
        let Some(sum) = self.by_key.get_mut(key) else { return };
        sum.count = sum.count.saturating_sub(1);
        sum.micros = sum.micros.saturating_sub(micros.into());
        if sum.count == 0 {
            self.by_key.remove(key);
        }
    }
}

impl Sum {
    fn read(self) -> Result<(u64, u64), StoreError> {
        let narrow = |wide| u64::try_from(wide).map_err(|_| ledger::too_much());
        Ok((narrow(self.count)?, narrow(self.micros)?))
    }
}

fn within(days: &Days, day: &str) -> bool {
    days.from.as_str() <= day && day <= days.to.as_str()
}

// === What was spent ===

/// What a sum in the ledger is of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kept {
    day: String,
    route: String,
    provider: String,
    caller: String,
    state: &'static str,
    outcome: String,
    currency: String,
}

impl Kept {
    pub(super) fn of(row: Row, state: State) -> Self {
        let caller = ledger::shown(&row);
        let Row { day, route, provider, currency, .. } = row;
        Self { day, route, provider, caller, state: state.word(), outcome: String::new(), currency }
    }

    pub(super) fn settled(&self, state: State, outcome: &str) -> Self {
        Self { state: state.word(), outcome: outcome.to_owned(), ..self.clone() }
    }
}

/// The ledger, summed.
pub(super) struct Spending(Sums<Kept>);

impl Spending {
    pub(super) fn new(most: usize) -> Self {
        Self(Sums::new(most))
    }

    pub(super) fn add(&mut self, kept: Kept, micros: u64) -> Kept {
        self.0.add(kept.clone(), 1, micros);
        kept
    }

    pub(super) fn take(&mut self, kept: &Kept, micros: u64) {
        self.0.take_one(kept, micros);
    }

    pub(super) fn report(&self, days: &Days) -> Result<Vec<Spent>, StoreError> {
        self.0.by_key.iter().filter(|(kept, _)| within(days, &kept.day)).map(|(kept, sum)| spent(kept.clone(), *sum)).collect()
    }
}

fn spent(kept: Kept, sum: Sum) -> Result<Spent, StoreError> {
    let (calls, micros) = sum.read()?;
    let Kept { day, route, provider, caller, state, outcome, currency } = kept;
    Ok(Spent { day, route, provider, caller, state: state.to_owned(), outcome, currency, calls, micros })
}

// === What was saved ===

/// Day, route, caller, cause, currency.
type Credit = (String, String, String, String, String);

/// The savings, summed.
pub(super) struct Savings(Sums<Credit>);

impl Savings {
    pub(super) fn new(most: usize) -> Self {
        Self(Sums::new(most))
    }

    pub(super) fn add(&mut self, saved: &Saved) {
        let Saved { day, route, caller, cause, currency, requests, micros } = saved.clone();
        self.0.add((day, route, caller, cause, currency), requests, micros);
    }

    pub(super) fn report(&self, days: &Days) -> Result<Vec<Saved>, StoreError> {
        self.0.by_key.iter().filter(|(credit, _)| within(days, &credit.0)).map(|(credit, sum)| saved(credit, *sum)).collect()
    }
}

fn saved(credit: &Credit, sum: Sum) -> Result<Saved, StoreError> {
    let (requests, micros) = sum.read()?;
    let (day, route, caller, cause, currency) = credit.clone();
    Ok(Saved { day, route, caller, cause, currency, requests, micros })
}
