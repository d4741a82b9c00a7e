use std::sync::atomic::AtomicU32;

use super::super::{ArcSwap, Zone};
use super::*;
use crate::store::handle::{Backend, Patience, Whose};
use crate::store::memory::{Bounds, MemoryStore};
use crate::store::money::{Cap, Days, Money, Reservation, Reserved, Settlement, Spent};
use crate::store::{Coordination, Reply};
use crate::telemetry::Metrics;

const NOON: Timestamp = Timestamp(1_796_040_000_000_000);

/// Does what it is told and says that it has not, so often.
struct Silent {
    store: Arc<MemoryStore>,
    times: AtomicU32,
}

impl Money for Silent {
    fn reserve<'a>(&'a self, reservation: Reservation<'a>) -> Reply<'a, Reserved> {
        self.store.reserve(reservation)
    }
    fn settle<'a>(&'a self, id: OpId, settlement: Settlement, outcome: &'a str) -> Reply<'a, bool> {
        self.store.settle(id, settlement, outcome)
    }
    fn used<'a>(&'a self, caps: &'a [Cap]) -> Reply<'a, Vec<u64>> {
        self.store.used(caps)
    }
    fn credit<'a>(&'a self, op: OpId, saved: &'a [Saved]) -> Reply<'a, ()> {
        Box::pin(async move {
            self.store.credit(op, saved).await?;
            let left = self.times.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            left.map_or(Ok(()), |_| Err(StoreError::Timeout))
        })
    }
    fn spent<'a>(&'a self, days: &'a Days) -> Reply<'a, Vec<Spent>> {
        self.store.spent(days)
    }
    fn saved<'a>(&'a self, days: &'a Days) -> Reply<'a, Vec<Saved>> {
        self.store.saved(days)
    }
    fn first<'a>(&'a self, mark: &'a str, keep: Duration) -> Reply<'a, bool> {
        self.store.first(mark, keep)
    }
    fn accept_loss(&self) -> Reply<'_, ()> {
        self.store.accept_loss()
    }
}

struct World {
    tally: Tally,
    page: Arc<Page>,
    store: StoreHandle,
    clock: Clock,
}

fn world(times: u32) -> World {
    let clock = Clock::manual(NOON);
    let local = Arc::new(MemoryStore::new(clock.clone(), Bounds::default()));
    let money = Arc::new(Silent { store: local.clone(), times: AtomicU32::new(times) });
    let coordination: Arc<dyn Coordination> = local.clone();
    let backend = Backend { money, ..Backend::new(coordination, &local, Whose::Own(local.clone())) };
    let second = Duration::from_secs(1);
    let store = StoreHandle::new(backend, Patience { one_call: second, one_request: second }, 1, clock.clone(), Metrics::new());
    let today = ArcSwap::from_pointee(Day { name: String::new(), ends: Timestamp(0) });
    let page = Page { id: 1, route: "geo".to_owned(), currency: "USD".to_owned(), zone: Zone::utc(), today };
    World { tally: Tally::default(), page: Arc::new(page), store, clock }
}

impl World {
    fn hit(&self, caller: Option<&Arc<Caller>>) {
        self.tally.add(&self.page, caller, Cause::Cache, 5_000, self.clock.now());
    }

    async fn flush(&self) -> bool {
        self.tally.flush(&self.store, &self.clock).await.is_ok()
    }

    /// Day, caller, requests and micro-units of every row.
    async fn saved(&self) -> Vec<(String, String, u64, u64)> {
        let days = Days { from: "2026-01-01".to_owned(), to: "2026-12-31".to_owned() };
        let rows = self.store.saved(&days).await.unwrap();
        let mut rows: Vec<_> = rows.into_iter().map(|row| (row.day, row.caller, row.requests, row.micros)).collect();
        rows.sort();
        rows
    }
}

fn row(day: &str, caller: &str, requests: u64) -> (String, String, u64, u64) {
    (day.to_owned(), caller.to_owned(), requests, requests * 5_000)
}

#[tokio::test]
async fn what_was_written_without_a_word_is_not_written_twice() {
    let (world, web) = (world(2), Caller::new("key", "web"));
    world.hit(Some(&web));
    assert!(!world.flush().await);
    world.hit(Some(&web));
    assert!(!world.flush().await, "the same batch again, and nothing else");
    assert!(world.flush().await);
    assert_eq!(world.saved().await, [row("2026-11-30", "web", 2)]);
}

#[tokio::test]
async fn what_could_be_written_twice_is_given_up() {
    let (world, web) = (world(1), Caller::new("key", "web"));
    world.hit(Some(&web));
    assert!(!world.flush().await);
    world.clock.advance(Duration::from_secs(11 * 60));
    world.hit(Some(&web));
    assert!(world.flush().await);
    assert_eq!(world.saved().await, [row("2026-11-30", "web", 2)], "it had been written, and was not again");
}

#[tokio::test]
async fn days_end_where_the_zone_says_and_callers_are_bounded() {
    let world = world(0);
    for nth in 0..LINES + 5 {
        world.hit(Some(&Caller::new("ip", nth.to_string())));
    }
    world.clock.advance(Duration::from_secs(12 * 3_600));
    world.hit(Some(&Caller::new("key", "web")));
    assert!(world.flush().await);
    let saved = world.saved().await;
    assert_eq!(saved.iter().map(|row| row.2).sum::<u64>(), u64::try_from(LINES).unwrap() + 6);
    assert_eq!(saved.first(), Some(&row("2026-11-30", "*", 5)), "nobody is lost, but not everybody is named");
    assert_eq!(saved.last(), Some(&row("2026-12-01", "*", 1)));
}
