//! The bill: what was paid, what would have been without the gateway, and why not. Paid and saved add up to that, exactly.

use std::collections::BTreeMap;

use serde::Serialize;

use super::report::{Report, Row, States, Sum};

/// A bill over some days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Bill {
    pub(crate) since: String,
    pub(crate) until: String,
    /// One a currency.
    pub(crate) totals: Vec<Total>,
    pub(crate) by: Vec<String>,
    /// Grouped as asked; savings by cause are in `savings`.
    pub(crate) rows: Vec<Line>,
    /// Grouped as asked, the cause included, if it was asked for with something else.
    pub(crate) savings: Vec<Row<Sum>>,
}

/// The bill in one currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Total {
    pub(crate) currency: String,
    #[serde(flatten)]
    pub(crate) account: Account,
    pub(crate) by_cause: Vec<Row<Sum>>,
}

/// One group of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    pub(crate) key: BTreeMap<String, String>,
    pub(crate) currency: String,
    #[serde(flatten)]
    pub(crate) account: Account,
}

/// Three sums of which the third is that of the others, and what the first is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Account {
    /// Billed, unknown and open. What was not billed is no part of it.
    pub(crate) paid: Sum,
    pub(crate) saved: Sum,
    pub(crate) would_have_paid: Sum,
    pub(crate) states: States,
}

impl Account {
    fn new(states: Option<States>, saved: Option<Sum>) -> Self {
        let (states, saved) = (states.unwrap_or_default(), saved.unwrap_or_default());
        let mut account = Self { states, ..Self::default() };
        for sum in [&account.states.billed, &account.states.unknown, &account.states.open] {
            account.paid.add(sum.calls, sum.micros);
        }
        account.saved.add(saved.calls, saved.micros);
        for sum in [&account.paid, &account.saved] {
            account.would_have_paid.add(sum.calls, sum.micros);
        }
        account
    }
}

/// Of what a bill is made: `spent` by everything asked but the cause, `by_cause` by cause alone, `saved` by everything asked.
pub(crate) struct Reports {
    pub(crate) spent: Report<States>,
    pub(crate) by_cause: Report<Sum>,
    pub(crate) saved: Report<Sum>,
}

type Group = (String, BTreeMap<String, String>);

impl Bill {
    pub(crate) fn new(reports: Reports) -> Self {
        let Reports { spent, by_cause, saved } = reports;
        let mut causes = by_cause.rows;
        let totals = accounts(spent.totals, &by_cause.totals).map(|((currency, _), account)| {
            let (own, others) = causes.drain(..).partition(|row| row.currency == currency);
            causes = others;
            Total { currency, account, by_cause: own }
        });
        let totals = totals.collect();
        let (with_cause, grouped) = (saved.by.iter().any(|key| key == "cause"), !spent.by.is_empty());
        let lines = accounts(spent.rows, &saved.rows).map(|((currency, key), account)| Line { key, currency, account });
        let rows = if grouped { lines.collect() } else { Vec::new() };
        let savings = if with_cause && grouped { saved.rows } else { Vec::new() };
        Self { since: spent.since, until: spent.until, totals, by: saved.by, rows, savings }
    }
}

/// What was spent and what was saved, side by side.
fn accounts(spent: Vec<Row<States>>, saved: &[Row<Sum>]) -> impl Iterator<Item = (Group, Account)> + use<> {
    let mut sides: BTreeMap<Group, (Option<States>, Option<Sum>)> = BTreeMap::new();
    for row in spent {
        sides.entry((row.currency, row.key)).or_default().0 = Some(row.sums);
    }
    for row in saved {
        let mut key = row.key.clone();
        key.remove("cause");
        let side = &mut sides.entry((row.currency.clone(), key)).or_default().1;
        side.get_or_insert_default().add(row.sums.calls, row.sums.micros);
    }
    sides.into_iter().map(|(group, (states, saved))| (group, Account::new(states, saved)))
}

impl Account {
    /// Every amount that is shown.
    pub(crate) fn amounts(&self) -> impl Iterator<Item = u64> {
        let states = &self.states;
        [&self.paid, &self.saved, &self.would_have_paid, &states.unknown, &states.open].into_iter().map(|sum| sum.micros)
    }
}

/// What a cause means, for somebody who has never seen this gateway.
pub(crate) fn in_words(cause: &str) -> &'static str {
    match cause {
        "invalid" => "refused: no valid question, and the provider bills its rejections",
        "limited" => "refused: faster than the limits allow",
        "locked" => "refused: the caller was locked out for guessing",
        "curated" => "answered by hand-kept answers",
        "cache" => "answered from what is stored: it had been asked before",
        "negative" => "answered from what is stored: there is no such thing",
        "stale" => "answered from what is stored, a little old",
        "coalesced" => "shared the call of somebody asking the same at that moment",
        "replay" => "sent already: told the first result again",
        "breaker" => "refused: the provider was unwell, and bills its failures",
        "budget" => "refused: the budget was used up",
        "switched_off" => "refused: the route was switched off",
        _ => "",
    }
}
