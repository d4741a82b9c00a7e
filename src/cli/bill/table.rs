//! The bill as text, for somebody who has never seen this gateway.

use crate::money::bill::{Bill, Line, Total, in_words};
use crate::money::report::{Row, Sum};

/// The whole bill, ending with a line's end.
pub(in crate::cli) fn render(bill: &Bill) -> String {
    let days = if bill.since == bill.until { bill.since.clone() } else { format!("{} to {}", bill.since, bill.until) };
    let mut out = format!("The bill of {days}\n");
    if bill.totals.is_empty() {
        out.push_str("\nNothing was paid and nothing was saved.\n");
    }
    for total in &bill.totals {
        out.push('\n');
        out.push_str(&section(total));
    }
    if !bill.rows.is_empty() {
        out.push('\n');
        out.push_str(&groups(bill));
    }
    if !bill.savings.is_empty() {
        out.push('\n');
        out.push_str(&savings(bill));
    }
    out
}

fn section(total: &Total) -> String {
    let (account, currency) = (&total.account, &total.currency);
    let places = places(account.amounts().chain(total.by_cause.iter().map(|row| row.sums.micros)));
    let mut rows = vec![[String::new(), "calls".to_owned(), currency.clone(), String::new()]];
    let mut row = |name: &str, sum: &Sum, words: &str| {
        rows.push([name.to_owned(), sum.calls.to_string(), fixed(sum.micros, places), words.to_owned()]);
    };
    let states = &account.states;
    row("Paid", &account.paid, "what the providers bill");
    if states.unknown.calls > 0 {
        row("  of it unknown", &states.unknown, "sent, and nobody knows whether it is billed: counted until it is settled");
    }
    if states.open.calls > 0 {
        row("  of it open", &states.open, "on the wire at this moment");
    }
    row("Saved", &account.saved, "what was asked and not paid for:");
    for Row { key, sums, .. } in &total.by_cause {
        let cause = key.get("cause").map(String::as_str).unwrap_or_default();
        row(&format!("  {cause}"), sums, in_words(cause));
    }
    row("Would have paid", &account.would_have_paid, "paid and saved together: every question asked of the provider");
    if states.not_billed.calls > 0 {
        row("Not billed", &states.not_billed, "calls the providers charge nothing for");
    }
    columns(&rows, &[false, true, true, false])
}

fn groups(bill: &Bill) -> String {
    let keys = bill.by.iter().filter(|key| *key != "cause");
    let places = places(bill.rows.iter().flat_map(|line| line.account.amounts()));
    let title = ["calls paid", "paid", "calls saved", "saved", "would have paid", ""];
    let mut rows = vec![keys.clone().cloned().chain(title.map(str::to_owned)).collect::<Vec<_>>()];
    for Line { key, currency, account } in &bill.rows {
        let own = keys.clone().map(|name| key.get(name).cloned().unwrap_or_default());
        let sums = [
            account.paid.calls.to_string(),
            fixed(account.paid.micros, places),
            account.saved.calls.to_string(),
            fixed(account.saved.micros, places),
            fixed(account.would_have_paid.micros, places),
            currency.clone(),
        ];
        rows.push(own.chain(sums).collect());
    }
    let mut right = vec![false; keys.count()];
    right.extend([true, true, true, true, true, false]);
    columns(&rows, &right)
}

fn savings(bill: &Bill) -> String {
    let places = places(bill.savings.iter().map(|row| row.sums.micros));
    let title = ["calls saved", "saved", ""].map(str::to_owned);
    let mut rows = vec![bill.by.iter().cloned().chain(title).collect::<Vec<_>>()];
    for Row { key, currency, sums } in &bill.savings {
        let own = bill.by.iter().map(|name| key.get(name).cloned().unwrap_or_default());
        rows.push(own.chain([sums.calls.to_string(), fixed(sums.micros, places), currency.clone()]).collect());
    }
    let mut right = vec![false; bill.by.len()];
    right.extend([true, true, false]);
    columns(&rows, &right)
}

/// How many decimal places show every amount exactly: at least cents.
fn places(amounts: impl Iterator<Item = u64>) -> usize {
    let needed = |micros: u64| (0..=6u32).find(|places| micros.is_multiple_of(10u64.pow(6 - places))).unwrap_or(6);
    usize::try_from(amounts.map(needed).max().unwrap_or_default()).unwrap_or(6).max(2)
}

/// Micro-units with so many places, which show them exactly.
fn fixed(micros: u64, places: usize) -> String {
    let fraction = format!("{:06}", micros % 1_000_000);
    format!("{}.{}", micros / 1_000_000, fraction.get(..places).unwrap_or(&fraction))
}

/// Rows of cells, each column as wide as it must be. `right` says which are numbers.
pub(in crate::cli) fn columns<R: AsRef<[String]>>(rows: &[R], right: &[bool]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.as_ref().get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..right.len()).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row
            .as_ref()
            .iter()
            .zip(&widths)
            .zip(right)
            .map(|((cell, width), right)| if *right { format!("{cell:>width$}") } else { format!("{cell:<width$}") });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_exactly_and_under_one_another() {
        assert_eq!(places([5_000, 1_000_000].into_iter()), 3);
        assert_eq!((places([1_000_000].into_iter()), places([1].into_iter())), (2, 6));
        assert_eq!((fixed(1_005_000, 3), fixed(0, 2), fixed(7, 6)), ("1.005".into(), "0.00".into(), "0.000007".into()));
    }
}
