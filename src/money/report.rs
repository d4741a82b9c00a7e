//! What the admin API tells of money, and `tollgate bill` reads: sums in micro-units, and the same as decimal text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::decimal;
use crate::store::money::{Saved, Spent};

/// A number of calls or requests, and what they cost or would have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sum {
    pub(crate) calls: u64,
    pub(crate) micros: u64,
    /// The micro-units as an exact decimal.
    pub(crate) amount: String,
}

impl Sum {
    pub(crate) fn add(&mut self, calls: u64, micros: u64) {
        self.calls = self.calls.saturating_add(calls);
        self.micros = self.micros.saturating_add(micros);
        self.amount = decimal(self.micros);
    }
}

/// Attempts on the wire by their state. Everything but `not_billed` counts as spent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct States {
    #[serde(flatten)]
    pub(crate) spent: Sum,
    pub(crate) billed: Sum,
    pub(crate) not_billed: Sum,
    pub(crate) unknown: Sum,
    pub(crate) open: Sum,
}

/// A row: what it is grouped by, and its sums.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Row<S> {
    pub(crate) key: BTreeMap<String, String>,
    pub(crate) currency: String,
    #[serde(flatten)]
    pub(crate) sums: S,
}

/// An answer of the API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report<S> {
    /// First and last day, both included, each in the zone of its route.
    pub(crate) since: String,
    pub(crate) until: String,
    pub(crate) by: Vec<String>,
    pub(crate) rows: Vec<Row<S>>,
    /// One row a currency.
    pub(crate) totals: Vec<Row<S>>,
}

/// What can be summed and grouped.
pub(crate) trait Entry {
    type Sums: Default;
    /// What it can be grouped by.
    const KEYS: &'static [&'static str];

    fn key(&self, name: &str) -> &str;
    fn day_and_route(&self) -> (&str, &str);
    fn currency(&self) -> &str;
    fn add_to(&self, sums: &mut Self::Sums);
}

impl Entry for Spent {
    type Sums = States;
    const KEYS: &'static [&'static str] = &["route", "provider", "caller", "day", "outcome", "state"];

    fn key(&self, name: &str) -> &str {
        match name {
            "route" => &self.route,
            "provider" => &self.provider,
            "caller" => &self.caller,
            "day" => &self.day,
            "outcome" => &self.outcome,
            "state" => &self.state,
            _ => "",
        }
    }

    fn day_and_route(&self) -> (&str, &str) {
        (&self.day, &self.route)
    }

    fn currency(&self) -> &str {
        &self.currency
    }

    fn add_to(&self, sums: &mut States) {
        sums.spent.add(self.calls, self.micros);
        let state = match self.state.as_str() {
            "billed" => &mut sums.billed,
            "not_billed" => &mut sums.not_billed,
            "open" => &mut sums.open,
            _ => &mut sums.unknown,
        };
        state.add(self.calls, self.micros);
    }
}

impl Entry for Saved {
    type Sums = Sum;
    const KEYS: &'static [&'static str] = &["route", "caller", "day", "cause"];

    fn key(&self, name: &str) -> &str {
        match name {
            "route" => &self.route,
            "caller" => &self.caller,
            "day" => &self.day,
            "cause" => &self.cause,
            _ => "",
        }
    }

    fn day_and_route(&self) -> (&str, &str) {
        (&self.day, &self.route)
    }

    fn currency(&self) -> &str {
        &self.currency
    }

    fn add_to(&self, sums: &mut Sum) {
        sums.add(self.requests, self.micros);
    }
}

/// Groups and sums, in the order of the keys.
pub(crate) fn group<E: Entry>(entries: &[E], by: &[String]) -> Vec<Row<E::Sums>> {
    let mut rows: BTreeMap<(&str, Vec<&str>), E::Sums> = BTreeMap::new();
    for entry in entries {
        let key = by.iter().map(|name| entry.key(name)).collect();
        entry.add_to(rows.entry((entry.currency(), key)).or_default());
    }
    let row = |((currency, key), sums): ((&str, Vec<&str>), E::Sums)| Row {
        key: by.iter().cloned().zip(key.into_iter().map(ToOwned::to_owned)).collect(),
        currency: currency.to_owned(),
        sums,
    };
    rows.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(route: &str, state: &str, currency: &str, calls: u64, micros: u64) -> Spent {
        let [day, provider, caller, outcome] = ["2026-11-30", "p", "web", "answered"].map(str::to_owned);
        let [route, state, currency] = [route, state, currency].map(str::to_owned);
        Spent { day, route, provider, caller, state, outcome, currency, calls, micros }
    }

    #[test]
    fn sums_are_exact_and_currencies_stay_apart() {
        let spent = [
            spent("a", "billed", "USD", 2, 10_001),
            spent("b", "unknown", "USD", 1, 5_000),
            spent("a", "open", "USD", 1, 5_000),
            spent("a", "not_billed", "USD", 1, 0),
            spent("a", "billed", "EUR", 1, 1),
        ];
        let totals = group(&spent, &[]);
        let shown: Vec<_> =
            totals.iter().map(|row| (row.currency.as_str(), &row.sums.spent.amount, row.sums.spent.calls)).collect();
        assert_eq!(shown, [("EUR", &"0.000001".to_owned(), 1), ("USD", &"0.020001".to_owned(), 5)]);
        let rows = group(&spent, &["route".to_owned()]);
        let micros: Vec<_> = rows.iter().map(|row| (row.key["route"].as_str(), row.sums.spent.micros)).collect();
        assert_eq!(micros, [("a", 1), ("a", 15_001), ("b", 5_000)]);
        let json = serde_json::to_string(&rows).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Row<States>>>(&json).unwrap(), rows, "what is told can be read");
    }
}
