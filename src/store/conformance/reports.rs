use std::time::Duration;

use super::super::OpId;
use super::super::money::{Days, Reservation, Row, Saved, Settlement, Spent};
use super::World;
use super::money::row;

fn days(from: &str, to: &str) -> Days {
    Days { from: from.to_owned(), to: to.to_owned() }
}

impl World {
    async fn open(&self, id: u128, amount: u64, row: Row) {
        let reserved = self.store.reserve(Reservation { id: OpId(id), caps: &[], amount, row }).await;
        assert_eq!(reserved, Ok(super::super::money::Reserved::Yes(Vec::new())));
    }

    /// In order: day, caller, state, outcome, calls, micros.
    async fn spent(&self, days: &Days) -> Vec<(String, String, String, String, u64, u64)> {
        let flat = |s: Spent| (s.day, s.caller, s.state, s.outcome, s.calls, s.micros);
        let mut spent: Vec<_> = self.store.spent(days).await.unwrap().into_iter().map(flat).collect();
        spent.sort();
        spent
    }

    async fn saved(&self, days: &Days) -> Vec<Saved> {
        let mut saved = self.store.saved(days).await.unwrap();
        saved.sort_by_key(|saved| (saved.day.clone(), saved.cause.clone(), saved.caller.clone()));
        saved
    }
}

pub async fn the_ledger_sums_by_day_and_kind(world: World) {
    let (named, nameless) = (row("2027-01-15"), Row { caller_name: None, ..row("2027-01-15") });
    for id in 0..4 {
        world.open(id, 10, named.clone()).await;
    }
    world.open(4, 10, nameless.clone()).await;
    world.open(5, 11, Row { caller: nameless.caller + 1, ..nameless }).await;
    let settle = |id, settlement, outcome| world.store.settle(OpId(id), settlement, outcome);
    assert_eq!(settle(0, Settlement::Billed(12), "answered").await, Ok(true));
    assert_eq!(settle(1, Settlement::Billed(0), "answered").await, Ok(true));
    assert_eq!(settle(2, Settlement::NotBilled, "busy").await, Ok(true));
    assert_eq!(settle(3, Settlement::Unknown, "timeout").await, Ok(true));
    let line = |caller: &str, state: &str, outcome: &str, calls, micros| {
        ("2027-01-15".to_owned(), caller.to_owned(), state.to_owned(), outcome.to_owned(), calls, micros)
    };
    let mut expected = vec![
        line("12345678", "open", "", 2, 21),
        line("till", "billed", "answered", 2, 12),
        line("till", "not_billed", "busy", 1, 0),
        line("till", "unknown", "timeout", 1, 10),
    ];
    let day = days("2027-01-15", "2027-01-15");
    assert_eq!(world.spent(&day).await, expected);
    assert_eq!(settle(3, Settlement::Billed(9), "answered").await, Ok(true));
    expected.truncate(3);
    expected[1] = line("till", "billed", "answered", 3, 21);
    assert_eq!(world.spent(&day).await, expected, "it has moved");

    let other = [
        Row { route: "routes".to_owned(), ..named.clone() },
        Row { provider: "google".to_owned(), ..named.clone() },
        Row { currency: "EUR".to_owned(), ..named },
    ];
    for (id, row) in (6..).zip(other) {
        world.open(id, 1, row).await;
    }
    let open = world.store.spent(&day).await.unwrap().into_iter().filter(|line| line.state == "open" && line.caller == "till");
    let mut open: Vec<_> = open.map(|s| (s.route, s.provider, s.currency, s.calls, s.micros)).collect();
    open.sort();
    let line = |route: &str, provider: &str, currency: &str| (route.to_owned(), provider.to_owned(), currency.to_owned(), 1, 1);
    assert_eq!(open, [line("geocode", "google", "USD"), line("geocode", "opencage", "EUR"), line("routes", "opencage", "USD")]);
}

pub async fn days_are_taken_from_the_first_to_the_last(world: World) {
    for (id, day) in (0..).zip(["2026-12-31", "2027-01-01", "2027-01-31", "2027-02-01"]) {
        world.open(id, 10, row(day)).await;
        let saved = Saved { day: day.to_owned(), ..saving("cache", 1, 10) };
        world.store.credit(OpId(id), &[saved]).await.unwrap();
    }
    world.clock.advance(Duration::from_hours(24));
    world.store.settle(OpId(0), Settlement::Billed(10), "answered").await.unwrap();
    for (from, to, count) in [
        ("2027-01-01", "2027-01-31", 2),
        ("2027-01-02", "2027-01-30", 0),
        ("2026-12-31", "2026-12-31", 1),
        ("2026-01-01", "2027-12-31", 4),
        ("2027-01-31", "2027-01-01", 0),
        ("", "~", 4),
    ] {
        let days = days(from, to);
        assert_eq!((world.spent(&days).await.len(), world.saved(&days).await.len()), (count, count), "{from} to {to}");
    }
}

pub fn saving(cause: &str, requests: u64, micros: u64) -> Saved {
    Saved {
        day: "2027-01-15".to_owned(),
        route: "geocode".to_owned(),
        caller: "till".to_owned(),
        cause: cause.to_owned(),
        currency: "USD".to_owned(),
        requests,
        micros,
    }
}

pub async fn what_was_saved_is_credited_once(world: World) {
    let day = days("2027-01-15", "2027-01-15");
    let batch = [saving("cache", 3, 15), saving("limited", 1, 5), saving("cache", 1, 5)];
    for _ in 0..3 {
        world.store.credit(OpId(1), &batch).await.unwrap();
    }
    assert_eq!(world.saved(&day).await, [saving("cache", 4, 20), saving("limited", 1, 5)]);
    world.store.credit(OpId(2), &batch[..1]).await.unwrap();
    world.store.credit(OpId(3), &[]).await.unwrap();
    assert_eq!(world.saved(&day).await, [saving("cache", 7, 35), saving("limited", 1, 5)]);
    for beyond in [saving("cache", 1 << 53, 0), saving("cache", 0, u64::MAX)] {
        assert!(world.store.credit(OpId(4), &[saving("cache", 1, 1), beyond]).await.is_err());
    }
    assert_eq!(world.saved(&day).await[0], saving("cache", 7, 35), "all of it or nothing");
}

pub async fn a_mark_is_first_once_until_it_lapses(world: World) {
    let hour = Duration::from_hours(1);
    let first = |mark| world.store.first(mark, hour);
    assert_eq!((first("half").await, first("half").await, first("all").await), (Ok(true), Ok(false), Ok(true)));
    world.clock.advance(Duration::from_micros(3_599_999_999));
    assert_eq!(first("half").await, Ok(false));
    world.clock.advance(Duration::from_micros(1));
    assert_eq!((first("half").await, first("half").await), (Ok(true), Ok(false)), "asking has not prolonged it");
    let asked = futures_util::future::join_all((0..20).map(|_| first("at once"))).await;
    assert_eq!(asked.into_iter().filter(|first| *first == Ok(true)).count(), 1);
}
