//! Which calls a fault applies to: `[1, 2]`, `3`, `"3.."`, `"2..4"` (both ends included) or `"all"`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A set of call numbers; the first call is 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Calls {
    /// Every call.
    #[default]
    All,
    /// These.
    These(Vec<u64>),
    /// From one to another, or without end.
    Row {
        /// The first.
        from: u64,
        /// The last.
        to: Option<u64>,
    },
}

impl Calls {
    /// Is this call meant?
    pub fn contain(&self, number: u64) -> bool {
        match self {
            Self::All => true,
            Self::These(numbers) => numbers.contains(&number),
            Self::Row { from, to } => *from <= number && to.is_none_or(|to| number <= to),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if text.trim() == "all" {
            return Some(Self::All);
        }
        let (from, to) = text.split_once("..")?;
        let to = to.trim().trim_start_matches('=');
        let to = if to.is_empty() { None } else { Some(to.parse().ok()?) };
        let from = from.trim().parse().ok()?;
        (from > 0 && to.is_none_or(|to| from <= to)).then_some(Self::Row { from, to })
    }
}

impl TryFrom<Value> for Calls {
    type Error = String;

    fn try_from(given: Value) -> Result<Self, String> {
        let number = |value: &Value| value.as_u64().filter(|number| *number > 0);
        let read = match &given {
            Value::Number(_) => number(&given).map(|number| Self::These(vec![number])),
            Value::Array(items) => items.iter().map(number).collect::<Option<_>>().map(Self::These),
            Value::String(text) => Self::parse(text),
            _ => None,
        };
        read.ok_or_else(|| format!("{given} names no calls; write [1, 2], \"3..\", \"2..4\" or \"all\" (the first call is 1)"))
    }
}

impl From<Calls> for Value {
    fn from(calls: Calls) -> Self {
        match calls {
            Calls::All => "all".into(),
            Calls::These(numbers) => numbers.into(),
            Calls::Row { from, to } => format!("{from}..{}", to.map(|to| to.to_string()).unwrap_or_default()).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn meant(calls: Value) -> Vec<u64> {
        let calls = Calls::try_from(calls).unwrap();
        (1..=6).filter(|number| calls.contain(*number)).collect()
    }

    #[test]
    fn calls_are_named_in_four_ways() {
        assert_eq!(meant(json!([1, 3])), [1, 3]);
        assert_eq!(meant(json!(2)), [2]);
        assert_eq!(meant(json!("3..")), [3, 4, 5, 6]);
        assert_eq!(meant(json!("2..4")), [2, 3, 4]);
        assert_eq!(meant(json!("all")), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn what_names_no_calls_is_refused() {
        for calls in [json!("x"), json!([0]), json!("4..2"), json!("0.."), json!(-1), json!(true), json!({})] {
            assert!(Calls::try_from(calls.clone()).is_err(), "{calls}");
        }
    }
}
