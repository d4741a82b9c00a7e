//! `cost` of a provider: where an answer says what it has cost.

use serde_json::Value;
use serde_json_path::JsonPath;

use crate::config::units::text_setting;

/// A JSONPath to an amount in the price's currency: a number, or a text of one. Its sign means nothing (Twilio's is negative).
#[derive(Clone, Debug)]
pub(crate) struct CostAt {
    path: JsonPath,
    text: String,
}

impl CostAt {
    fn parse(text: &str) -> Result<Self, String> {
        let path = JsonPath::parse(text).map_err(|error| format!("{text:?} is no JSONPath: {error}"))?;
        Ok(Self { path, text: text.to_owned() })
    }

    /// What the answer says, in micro-units, rounded up. Nothing, if it does not say.
    pub(crate) fn read(&self, answer: &Value) -> Option<u64> {
        match self.path.query(answer).at_most_one().ok()?? {
            Value::String(text) => micros(text),
            Value::Number(number) => micros(&number.to_string()),
            _ => None,
        }
    }
}

/// Exact: an amount is not made a float on the way.
fn micros(text: &str) -> Option<u64> {
    let text = text.trim().trim_start_matches(['-', '+']);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let (exact, finer) = fraction.split_at_checked(6).unwrap_or((fraction, ""));
    let fraction: u64 = format!("{exact:0<6}").parse().ok()?;
    let up = u64::from(finer.bytes().any(|digit| digit != b'0'));
    let cost = whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(fraction)?.checked_add(up)?;
    (cost < 1 << 53).then_some(cost)
}

text_setting!(CostAt, "write a JSONPath into the answer, such as \"$.price\"", "a JSONPath", CostAt::parse, |cost| cost
    .text
    .clone());

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_says_what_it_cost() {
        let at = CostAt::parse("$.price").unwrap();
        for (price, right) in [
            (json!("-0.00750"), Some(7_500)),
            (json!(0.0079), Some(7_900)),
            (json!(2), Some(2_000_000)),
            (json!("0.0000001"), Some(1)),
            (json!("0.0000000"), Some(0)),
            (json!(null), None),
            (json!("a lot"), None),
            (json!("1e400"), None),
            (json!("99999999999999999999"), None),
            (json!(["1"]), None),
        ] {
            assert_eq!(at.read(&json!({ "price": price })), right, "{price}");
        }
        assert_eq!(at.read(&json!({})), None);
    }
}
