//! Time, passed in. Nothing else in the crate reads a clock (`clippy.toml` bans it), so tests step time instead of sleeping.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The moment `by` later; saturates at the end of time.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(micros(by)))
    }

    /// The moment `by` earlier; saturates at the epoch.
    #[must_use]
    pub fn before(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(micros(by)))
    }

    /// How long ago `earlier` was; zero if it lies in the future.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// Whole seconds since the Unix epoch.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Likewise, not earlier than it is.
    pub(crate) fn seconds_up(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// So many seconds since the Unix epoch.
    pub(crate) fn of_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// In words, to the second: `2026-11-30T12:00:00Z`.
    pub(crate) fn written(self) -> String {
        let moment = i64::try_from(self.seconds()).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
        moment.map_or_else(|| "the end of time".to_owned(), |moment| moment.to_string())
    }
}

/// A duration in microseconds; saturates.
#[must_use]
pub fn micros(d: Duration) -> u64 {
    u64::try_from(d.as_micros()).unwrap_or(u64::MAX)
}

/// Whole seconds, rounded up, at least one: the only form `Retry-After` is given in.
#[must_use]
pub fn seconds_up(d: Duration) -> u64 {
    micros(d).div_ceil(1_000_000).max(1)
}

/// The clock of one gateway. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Clock {
    source: Source,
    /// What is added to this machine's wall time, in microseconds: instances that share a store agree on its time.
    offset: Arc<AtomicI64>,
}

#[derive(Clone, Debug)]
enum Source {
    System { origin: Instant },
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The machine's clock.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    #[must_use]
    pub fn system() -> Self {
        Self::of(Source::System { origin: Instant::now() })
    }

    /// A clock that stands at `start` until it is told to [`advance`](Self::advance).
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        Self::of(Source::Manual(Arc::new(AtomicU64::new(start.0))))
    }

    fn of(source: Source) -> Self {
        Self { source, offset: Arc::default() }
    }

    /// Sets wall time by another clock, which shows `there` now. Ticks stay as they are.
    pub fn follow(&self, there: Timestamp) {
        let here = self.own_time().0;
        let offset = i64::try_from(i128::from(there.0) - i128::from(here)).unwrap_or_default();
        self.offset.store(offset, Ordering::Relaxed);
    }

    /// Wall time: for what is written down (lifetimes, `Age`, records).
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp(self.own_time().0.saturating_add_signed(self.offset.load(Ordering::Relaxed)))
    }

    #[allow(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    fn own_time(&self) -> Timestamp {
        match &self.source {
            Source::System { .. } => Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).map(micros).unwrap_or_default()),
            Source::Manual(at) => Timestamp(at.load(Ordering::Relaxed)),
        }
    }

    /// Time that never goes back: for what is measured (buckets, breakers, elapsed time). Its zero means nothing.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    #[must_use]
    pub fn ticks(&self) -> Timestamp {
        match &self.source {
            Source::System { origin } => Timestamp(micros(origin.elapsed())),
            Source::Manual(at) => Timestamp(at.load(Ordering::Relaxed)),
        }
    }

    /// Steps a manual clock; does nothing to the machine's.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(at) = &self.source {
            at.fetch_add(micros(by), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_rounded_up_and_never_zero() {
        assert_eq!(seconds_up(Duration::ZERO), 1);
        assert_eq!(seconds_up(Duration::from_secs(1)), 1);
        assert_eq!(seconds_up(Duration::from_millis(1001)), 2);
    }

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = Clock::manual(Timestamp(5));
        assert_eq!(clock.now(), Timestamp(5));
        clock.clone().advance(Duration::from_micros(7));
        assert_eq!((clock.now(), clock.ticks()), (Timestamp(12), Timestamp(12)));
    }

    #[test]
    fn wall_time_follows_another_clock_and_ticks_do_not() {
        let clock = Clock::manual(Timestamp(100));
        clock.follow(Timestamp(40));
        clock.advance(Duration::from_micros(5));
        assert_eq!((clock.now(), clock.ticks()), (Timestamp(45), Timestamp(105)));
        clock.follow(Timestamp(1_000));
        assert_eq!(clock.now(), Timestamp(1_000));
    }
}
