//! The days a report is about: `since` and `until`, as ISO dates or in words that mean the day it is in each route's zone.

use jiff::civil::Date;

use crate::clock::Timestamp;
use crate::money::window::Zone;

/// A first or a last day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Today,
    /// The first day of the month it is.
    Month,
    On(Date),
}

impl Bound {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "today" => Some(Self::Today),
            "month" => Some(Self::Month),
            // Exactly as days are written in the ledger.
            _ => text.parse::<Date>().ok().filter(|date| date.to_string() == text).map(Self::On),
        }
    }

    /// The day in a zone, as `2026-11-30`.
    pub(super) fn day(self, zone: &Zone, now: Timestamp) -> String {
        let today = zone.day(now);
        match self {
            Self::Today => today,
            Self::Month => today.parse::<Date>().map_or(today, |date| date.first_of_month().to_string()),
            Self::On(date) => date.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_words_or_iso_dates() {
        let now = Timestamp(1_796_040_000_000_000);
        let day = |text: &str| Bound::parse(text).map(|bound| bound.day(&Zone::utc(), now));
        assert_eq!(day("today").as_deref(), Some("2026-11-30"));
        assert_eq!(day("month").as_deref(), Some("2026-11-01"));
        assert_eq!(day("2026-02-28").as_deref(), Some("2026-02-28"));
        for wrong in ["", "2026-02-30", "20260228", "yesterday", "2026-2-8", "2026-02-28T00:00"] {
            assert_eq!(day(wrong), None, "{wrong}");
        }
    }
}
