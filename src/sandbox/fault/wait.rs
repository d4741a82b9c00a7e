//! A time to wait, written `400ms`, `2s` or `1m`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration as scripts write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Wait(pub Duration);

impl TryFrom<String> for Wait {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let text = text.trim();
        let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let millis = match unit.trim() {
            "ms" => Some(1),
            "s" => Some(1000),
            "m" => Some(60_000),
            _ => None,
        };
        let millis = number.parse::<u64>().ok().zip(millis).and_then(|(number, unit)| number.checked_mul(unit));
        millis
            .map(|millis| Self(Duration::from_millis(millis)))
            .ok_or_else(|| format!("{text:?} is not a time; write \"400ms\", \"2s\" or \"1m\""))
    }
}

impl From<Wait> for String {
    fn from(wait: Wait) -> Self {
        format!("{}ms", wait.0.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_unit_make_a_time() {
        let read = |text: &str| Wait::try_from(text.to_owned()).map(|wait| wait.0);
        assert_eq!(read("400ms"), Ok(Duration::from_millis(400)));
        assert_eq!(read("2 s"), Ok(Duration::from_secs(2)));
        assert_eq!(read("1m"), Ok(Duration::from_mins(1)));
        for text in ["", "5", "ms", "-1s", "1.5s", "18446744073709551615m"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
