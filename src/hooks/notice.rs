//! What Google Cloud Billing says of a budget.
//!
//! ```text
//! {"budgetDisplayName": "Maps", "costAmount": 105.2, "costIntervalStart": "2026-11-01T08:00:00Z", "budgetAmount": 100.0,
//!  "budgetAmountType": "SPECIFIED_AMOUNT", "currencyCode": "USD", "alertThresholdExceeded": 1.0}
//! ```
//!
//! Schema version 1.0, the only one there is (Google Cloud Billing, "Set up programmatic notifications"). `costAmount` is what has
//! been spent since `costIntervalStart`, an estimate that credits can lower again. The thresholds are there only if the budget
//! has rules, and only once one is passed: what is acted on is the amounts.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::amount::{Amount, Share};
use super::envelope::{Message, Unread};
use super::words::clean;
use crate::clock::Timestamp as Now;

/// A budget, and what was spent of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) budget: String,
    /// The beginning of the period, in seconds since the Unix epoch.
    pub(super) period: i64,
    pub(super) spent: Amount,
    amount: Amount,
    currency: String,
    name: String,
    published: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload<'a> {
    #[serde(borrow)]
    cost_amount: &'a RawValue,
    #[serde(borrow)]
    budget_amount: &'a RawValue,
    cost_interval_start: String,
    #[serde(default)]
    budget_display_name: String,
    #[serde(default)]
    currency_code: String,
}

/// A period that begins later than this from now is a mistake; believed, it would make every true one an older one.
const AHEAD: i64 = 2 * 86_400;
const SCHEMA: &str = "1.0";

impl Notice {
    pub(super) fn read(message: &Message, now: Now) -> Result<Self, Unread> {
        let Some(budget) = message.attributes.get("budgetId") else {
            return Err(Unread::Foreign("it is of no budget".to_owned()));
        };
        let schema = message.attributes.get("schemaVersion").map_or("", String::as_str);
        if schema != SCHEMA {
            return Err(Unread::Foreign(format!("its schema is {:?}", clean(schema, 20))));
        }
        if !is_id(budget) {
            return Err(Unread::malformed("budgetId is no id"));
        }
        let payload: Payload<'_> = serde_json::from_slice(&message.data).map_err(|error| Unread::malformed(error.to_string()))?;
        let amount = |json, name: &str| Amount::of(json).ok_or_else(|| Unread::malformed(format!("{name} is no amount")));
        let period: Result<Timestamp, _> = payload.cost_interval_start.parse();
        let period = period.map_err(|_| Unread::malformed("costIntervalStart is no time"))?.as_second();
        let now = i64::try_from(now.seconds()).unwrap_or(i64::MAX);
        if period.saturating_sub(now) > AHEAD {
            return Err(Unread::malformed("costIntervalStart is in the future"));
        }
        Ok(Self {
            budget: budget.clone(),
            period,
            spent: amount(payload.cost_amount, "costAmount")?,
            amount: amount(payload.budget_amount, "budgetAmount")?,
            currency: clean(&payload.currency_code, 3),
            name: clean(&payload.budget_display_name, 60),
            published: message.published.clone(),
        })
    }

    /// Whether that share of the budget is spent, by this notice alone: which one comes first makes no difference.
    pub(super) fn reaches(&self, share: Share) -> bool {
        self.spent.reaches(share, self.amount)
    }

    /// The period's beginning, for people.
    pub(super) fn begins(&self) -> String {
        Timestamp::from_second(self.period).map_or_else(|_| self.period.to_string(), |at| at.to_string())
    }

    /// Why something is stopped, for people.
    pub(super) fn reason(&self, share: Share) -> String {
        let Self { name, spent, amount, currency, published, .. } = self;
        let begins = self.begins();
        format!(
            "Google Cloud budget {name:?}: {spent} of {amount} {currency} spent since {begins}, as Google had counted by \
             {published}; the limit is {share} of the budget"
        )
    }
}

/// A UUID today; anything that is safe in the name of a mark.
fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}
