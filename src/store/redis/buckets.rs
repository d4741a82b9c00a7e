//! Token buckets, and providers that asked to be left alone.

use std::time::Duration;

use super::super::{Bucket, Level, StoreError, Taken};
use super::RedisStore;
use super::link::call::Call;
use super::reply::Parts;
use super::script::{PAUSE, PAUSED, TAKE};
use crate::clock::{Timestamp, micros};

/// Scripts count in doubles, which are exact up to here.
const EXACT: u128 = 1 << 53;

/// The numbers a script works with: the rate in its lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) capacity: u64,
    pub(super) refill: u64,
    pub(super) per: u64,
}

impl Numbers {
    /// Nothing, if their products are more than a script can count.
    pub(super) fn of(bucket: &Bucket) -> Option<Self> {
        let per = micros(bucket.per).max(1);
        let common = gcd(bucket.refill, per);
        let numbers =
            Self { capacity: bucket.capacity, refill: bucket.refill.checked_div(common)?, per: per.checked_div(common)? };
        let most = u128::from(numbers.capacity)
            .checked_mul(u128::from(numbers.per))?
            .checked_add(u128::from(numbers.refill))?
            .checked_add(u128::from(numbers.per))?;
        (numbers.refill > 0 && most <= EXACT).then_some(numbers)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}

/// Can a shared store count with this bucket's numbers?
pub fn countable(bucket: &Bucket) -> bool {
    Numbers::of(bucket).is_some()
}

pub(super) async fn take(store: &RedisStore, buckets: &[Bucket], debit: bool) -> Result<Taken, StoreError> {
    if buckets.is_empty() {
        return Ok(Taken::Yes(Vec::new()));
    }
    let mut call = Call::new(&TAKE).flag(debit);
    for bucket in buckets {
        let numbers = Numbers::of(bucket)
            .ok_or_else(|| StoreError::Failed("a limit's numbers are too large to be counted exactly".to_owned()))?;
        call = call.key(store.keys().bucket(bucket.id));
        for number in [numbers.capacity, numbers.refill, numbers.per, bucket.cost] {
            call = call.number(number);
        }
    }
    store.link.run(call, |parts| taken(parts, buckets.len())).await
}

fn taken(parts: &mut Parts, buckets: usize) -> Option<Taken> {
    let (passed, slowest, wait) = (parts.flag()?, usize::try_from(parts.int()?).ok()?, parts.int()?);
    let mut level = || Some(Level { left: parts.number()?, full_in: Duration::from_micros(parts.number()?) });
    let levels = (0..buckets).map(|_| level()).collect::<Option<Vec<_>>>()?;
    if passed {
        return Some(Taken::Yes(levels));
    }
    let wait = u64::try_from(wait).map_or(Duration::MAX, Duration::from_micros);
    (slowest < buckets).then_some(Taken::No { bucket: slowest, wait, levels })
}

pub(super) async fn pause(store: &RedisStore, provider: &str, until: Timestamp) -> Result<(), StoreError> {
    let keys = store.keys();
    let call = Call::new(&PAUSE)
        .keys([keys.pauses(), keys.seq(), keys.log()])
        .arg(keys.changes())
        .bytes(provider.as_bytes())
        .number(until.0);
    store.link.run(call, |_| Some(())).await
}

pub(super) async fn paused(store: &RedisStore, provider: &str) -> Result<Option<Timestamp>, StoreError> {
    let call = Call::new(&PAUSED).key(store.keys().pauses()).bytes(provider.as_bytes());
    let until = store.link.run(call, Parts::spelt).await?;
    Ok((until > 0).then_some(Timestamp(until)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_people_write_can_be_counted() {
        let whole = |burst, count, seconds| Bucket::whole(1, burst, count, Duration::from_secs(seconds));
        for (burst, count, seconds) in [(40, 40, 1), (1, 1, 5), (600, 600, 300), (1_000_000, 1_000_000, 86_400), (7, 7, 86_400)] {
            assert!(countable(&whole(burst, count, seconds)), "{count}/{seconds}s");
        }
        assert!(!countable(&whole(1_000_000, 999_983, 30 * 86_400)));
        assert!(!countable(&Bucket { refill: 0, ..whole(1, 1, 1) }));
        assert!(!countable(&Bucket { capacity: u64::MAX, ..whole(1, 1, 1) }));
    }

    #[test]
    fn a_rate_is_sent_in_its_lowest_terms() {
        let numbers = Numbers::of(&Bucket::whole(1, 600, 600, Duration::from_mins(5)));
        assert_eq!(numbers, Some(Numbers { capacity: 600_000_000, refill: 2, per: 1 }));
    }
}
