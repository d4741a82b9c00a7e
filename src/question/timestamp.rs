//! Moments.

use std::time::Duration;

use jiff::Timestamp;

use super::{Decimal, Invalid, Value, text};

const NANOS: i128 = 1_000_000_000;

/// Reads RFC 3339 with any offset, or Unix seconds, and cuts down to whole multiples of `precision`.
pub fn read(raw: &str, precision: Duration) -> Result<Value, Invalid> {
    let typed = text::typed(raw)?;
    let moment = match typed.parse::<Decimal>() {
        Ok(seconds) => unix(&seconds),
        Err(_) => typed.parse().ok(),
    };
    let cut = moment.and_then(|m| cut(m, precision)).filter(|m| is_common_era(*m));
    let cut = cut.ok_or_else(|| Invalid::new("must be a time such as 2027-01-31T09:30:00Z (RFC 3339) or Unix seconds"))?;
    Ok(Value::plain(cut.to_string()))
}

fn unix(seconds: &Decimal) -> Option<Timestamp> {
    let (whole, nanos) = seconds.nanos()?;
    Timestamp::new(whole, nanos).ok()
}

fn cut(moment: Timestamp, precision: Duration) -> Option<Timestamp> {
    let step = i128::try_from(precision.as_nanos()).ok()?.max(1);
    let nanos = moment.as_nanosecond();
    Timestamp::from_nanosecond(nanos.checked_sub(nanos.checked_rem_euclid(step)?)?).ok()
}

/// Years 0 to 9999, all that RFC 3339 can write.
fn is_common_era(moment: Timestamp) -> bool {
    moment.as_nanosecond() >= -62_167_219_200 * NANOS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(raw: &str, seconds: u64) -> Option<String> {
        read(raw, Duration::from_secs(seconds)).ok().map(|v| v.key)
    }

    #[test]
    fn a_moment_has_one_spelling() {
        let table = [
            "2027-01-31T09:30:05Z",
            "2027-01-31t09:30:05z",
            "2027-01-31 09:30:05Z",
            "2027-01-31T09:30:05.000Z",
            "2027-01-31T10:30:05+01:00",
            "2027-01-31T00:00:05-09:30",
            "1801387805",
            "1801387805.0",
            "1.801387805e9",
            " １８０１３８７８０５ ",
        ];
        for raw in table {
            assert_eq!(at(raw, 0).as_deref(), Some("2027-01-31T09:30:05Z"), "{raw}");
        }
    }

    #[test]
    fn moments_are_cut_down_never_up() {
        assert_eq!(at("2027-01-31T09:59:59.999Z", 3600).as_deref(), Some("2027-01-31T09:00:00Z"));
        assert_eq!(at("1969-12-31T23:59:59.5Z", 1).as_deref(), Some("1969-12-31T23:59:59Z"));
        assert_eq!(at("-0.5", 1).as_deref(), Some("1969-12-31T23:59:59Z"));
        assert_eq!(at("1801387805.25", 0).as_deref(), Some("2027-01-31T09:30:05.25Z"));
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for raw in [
            "",
            "now",
            "2027-01-31",
            "2027-01-31T09:30:05",
            "2027-13-01T00:00:00Z",
            "09:30Z",
            "1e400",
            "1e18",
            "-1e11",
            "NaN",
            "0.0000000001",
        ] {
            assert_eq!(at(raw, 0), None, "{raw}");
        }
        assert_eq!(read("-1", Duration::MAX).ok(), None, "cut down beyond all years");
    }
}
