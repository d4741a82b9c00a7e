//! Amounts and shares, read as they are written: no floats anywhere.
//!
//! A budget's amounts come as JSON numbers that were doubles before (`0.30000000000000004`). The text is taken to the nearest
//! millionth, which is finer than any bill and coarser than what a double adds; from there on only integers are compared.

use std::fmt;

use serde_json::value::RawValue;

use crate::config::node::{Node, Value};
use crate::config::section::Setting;
use crate::question::Decimal;

/// Places of a millionth.
const PLACES: u32 = 6;
const MILLION: i128 = 1_000_000;
/// More than this, in millionths, is no amount: products of two fit an `i128` with room to spare.
const MOST: i128 = 1 << 60;

/// An amount in millionths of a currency's unit. Below zero where credits are more than costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Amount(i128);

impl Amount {
    /// The number of a JSON text, to the nearest millionth.
    pub(super) fn of(json: &RawValue) -> Option<Self> {
        json.get().parse().ok().and_then(|number| millionths(&number)).map(Self)
    }

    /// Whether this much has been spent, and it is at least that share of the budget.
    pub(super) fn reaches(self, share: Share, budget: Self) -> bool {
        let Some(spent) = self.0.checked_mul(MILLION) else { return true };
        self.0 > 0 && budget.0.checked_mul(share.0).is_some_and(|limit| spent >= limit)
    }
}

fn millionths(number: &Decimal) -> Option<i128> {
    let nearest = number.round(PLACES);
    if !nearest.is_short() {
        return None;
    }
    let plain = nearest.to_string();
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let all: i128 = format!("{whole}{fraction:0<6}").parse().ok()?;
    (all.checked_abs()? <= MOST).then_some(all)
}

/// Plain, without needless zeros.
fn show(millionths: i128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (sign, size) = (if millionths < 0 { "-" } else { "" }, millionths.unsigned_abs());
    let fraction = format!("{:06}", size % MILLION.unsigned_abs());
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    write!(f, "{sign}{}{point}{fraction}", size / MILLION.unsigned_abs())
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.0, f)
    }
}

/// A share of a budget: above 0, at most 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share(i128);

impl Share {
    /// All of it.
    pub(super) const WHOLE: Self = Self(MILLION);

    fn parse(text: &str) -> Result<Self, String> {
        let number: Decimal = text.trim().parse().map_err(|_| format!("{text} is not a number"))?;
        if number.round(PLACES) != number {
            return Err(format!("{text} is finer than a millionth"));
        }
        let share = millionths(&number).filter(|share| (1..=10 * MILLION).contains(share));
        share.map(Self).ok_or_else(|| format!("{text} is not above 0 and at most 10"))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.0, f)
    }
}

impl Setting for Share {
    const REMEDY: &'static str = "write a share of the budget, such as 1.0 or 0.9";

    fn read(node: &Node) -> Result<Self, String> {
        match &node.value {
            Value::Integer(number) => Self::parse(&number.to_string()),
            Value::Other(text) | Value::Raw(text) => Self::parse(text),
            _ => Err(format!("is {}, not a number", node.describe())),
        }
    }

    fn show(&self) -> toml::Value {
        // Printed only: what is compared was read from the text.
        self.to_string().parse().map_or_else(|_| self.to_string().into(), toml::Value::Float)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Option<Amount> {
        Amount::of(&RawValue::from_string(text.to_owned()).unwrap())
    }

    fn reaches(spent: &str, share: &str, budget: &str) -> bool {
        amount(spent).unwrap().reaches(Share::parse(share).unwrap(), amount(budget).unwrap())
    }

    #[test]
    fn amounts_are_read_to_the_nearest_millionth() {
        for (text, right) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("100", "100"),
            ("100.50", "100.5"),
            ("1.0E7", "10000000"),
            ("1e-6", "0.000001"),
            ("0.30000000000000004", "0.3"),
            ("0.29999999999999999", "0.3"),
            ("0.2999994", "0.299999"),
            ("-12.25", "-12.25"),
            ("-0.5", "-0.5"),
            ("1e-400", "0"),
            ("1152921504606.846976", "1152921504606.846976"),
        ] {
            assert_eq!(amount(text).map(|amount| amount.to_string()).as_deref(), Some(right), "{text}");
        }
        for none in ["1152921504606.846977", "1e400", "-1e400", "\"1\"", "null", "[]", "true"] {
            assert_eq!(amount(none), None, "{none}");
        }
    }

    #[test]
    fn a_budget_is_reached_at_its_border_and_not_before() {
        for (spent, share, budget) in [
            ("100", "1", "100"),
            ("0.30000000000000004", "1.0", "0.3"),
            ("0.3", "1.0", "0.30000000000000004"),
            ("0.1", "0.1", "1"),
            ("90.000000", "0.9", "100"),
            ("0.000001", "10", "0"),
            ("1152921504606", "10", "115292150460.6"),
        ] {
            assert!(reaches(spent, share, budget), "{spent} {share} {budget}");
        }
        for (spent, share, budget) in [
            ("99.999999", "1", "100"),
            ("0.299999", "1", "0.3"),
            ("89.999999", "0.9", "100"),
            ("100", "1.000001", "100"),
            ("0", "1", "0"),
            ("-5", "1", "-10"),
            ("1152921504606", "10", "1152921504606"),
        ] {
            assert!(!reaches(spent, share, budget), "{spent} {share} {budget}");
        }
    }

    #[test]
    fn a_share_is_above_nothing_and_at_most_ten() {
        for (text, right) in [("1.0", "1"), ("0.90", "0.9"), ("10", "10"), ("1e-6", "0.000001")] {
            assert_eq!(Share::parse(text).unwrap().to_string(), right);
        }
        for wrong in ["0", "-1", "10.000001", "0.0000001", "nan", "inf", "", "1%"] {
            assert!(Share::parse(wrong).is_err(), "{wrong}");
        }
    }
}
