//! Days and months of a time zone, as providers bill by them.
//!
//! A window is a name and an end. The name is part of the counter's, so a new day begins with a new counter and nothing is ever
//! reset; a day may have 23 or 25 hours.

use std::fmt;

use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::clock::Timestamp;
use crate::config::units::text_setting;

/// An IANA time zone.
#[derive(Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// How long a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// From midnight to midnight.
    Day,
    /// From the first to the first.
    Month,
}

impl Span {
    /// `day` or `month`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }
}

/// One window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// `day:2026-11-30@America/Los_Angeles`.
    pub name: String,
    /// Its first moment that is no longer in it.
    pub ends: Timestamp,
}

impl Zone {
    /// Coordinated universal time.
    #[must_use]
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    fn parse(name: &str) -> Result<Self, String> {
        TimeZone::get(name).map(Self).map_err(|_| format!("{name:?} is no time zone"))
    }

    fn name(&self) -> String {
        self.0.iana_name().unwrap_or("UTC").to_owned()
    }

    /// The day it is, as `2026-11-30`.
    #[must_use]
    pub fn day(&self, now: Timestamp) -> String {
        self.date(now).to_string()
    }

    /// The window a moment is in.
    #[must_use]
    pub fn window(&self, span: Span, now: Timestamp) -> Window {
        let today = self.date(now);
        let (name, next) = match span {
            Span::Day => (today.to_string(), today.tomorrow()),
            Span::Month => (today.strftime("%Y-%m").to_string(), today.last_of_month().tomorrow()),
        };
        let name = format!("{}:{name}@{}", span.word(), self.name());
        Window { name, ends: self.midnight(next.unwrap_or(Date::MAX)) }
    }

    fn date(&self, now: Timestamp) -> Date {
        let micros = i64::try_from(now.0).unwrap_or(i64::MAX);
        let moment = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
        self.0.to_datetime(moment).date()
    }

    /// The first moment of a day. Where midnight does not exist (clocks are put forward over it), the day begins later.
    fn midnight(&self, date: Date) -> Timestamp {
        let start = self.0.to_timestamp(date.at(0, 0, 0, 0));
        start.ok().and_then(|start| u64::try_from(start.as_microsecond()).ok()).map_or(Timestamp(u64::MAX), Timestamp)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

text_setting!(
    Zone,
    "write a name of the time zone database, such as \"America/Los_Angeles\" or \"UTC\"",
    "a time zone",
    Zone::parse,
    Zone::name
);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp(u64::try_from(text.parse::<jiff::Timestamp>().unwrap().as_microsecond()).unwrap())
    }

    fn los_angeles() -> Zone {
        Zone::parse("America/Los_Angeles").unwrap()
    }

    #[test]
    fn s_02_a_day_is_the_providers_also_when_it_has_25_hours() {
        let day = |text| los_angeles().window(Span::Day, at(text));
        assert_eq!(day("2026-11-01T06:59:59Z").name, "day:2026-10-31@America/Los_Angeles");
        assert_eq!(day("2026-11-01T06:59:59Z").ends, at("2026-11-01T07:00:00Z"));
        assert_eq!(day("2026-11-01T07:00:00Z"), day("2026-11-02T07:59:59Z"));
        assert_eq!(day("2026-11-01T07:00:00Z").ends, at("2026-11-02T08:00:00Z"));
        assert_eq!(day("2026-11-02T08:00:00Z").name, "day:2026-11-02@America/Los_Angeles");
        assert_eq!(day("2026-03-08T08:00:00Z").ends, at("2026-03-09T07:00:00Z"), "23 hours");
    }

    #[test]
    fn s_02_a_month_ends_at_the_providers_midnight() {
        let month = |text| los_angeles().window(Span::Month, at(text));
        assert_eq!(month("2026-12-01T07:59:59Z").name, "month:2026-11@America/Los_Angeles");
        assert_eq!(month("2026-12-01T07:59:59Z").ends, at("2026-12-01T08:00:00Z"));
        assert_eq!(month("2026-12-01T08:00:00Z").name, "month:2026-12@America/Los_Angeles");
        assert_eq!(month("2026-12-31T23:00:00Z").ends, at("2027-01-01T08:00:00Z"));
    }

    #[test]
    fn a_day_without_midnight_begins_later() {
        // Clocks in Santiago go from 24:00 to 01:00.
        let zone = Zone::parse("America/Santiago").unwrap();
        let before = zone.window(Span::Day, at("2026-09-06T03:59:59Z"));
        assert_eq!((before.name.as_str(), before.ends), ("day:2026-09-05@America/Santiago", at("2026-09-06T04:00:00Z")));
        assert_eq!(zone.day(at("2026-09-06T04:00:00Z")), "2026-09-06");
    }

    #[test]
    fn the_ends_of_time_do_not_panic() {
        for now in [0, 1, u64::MAX] {
            let _ = (los_angeles().window(Span::Day, Timestamp(now)), los_angeles().window(Span::Month, Timestamp(now)));
        }
        assert!(Zone::parse("Mars/Olympus").is_err());
    }
}
