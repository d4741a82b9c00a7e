use std::sync::Arc;
use std::time::Duration;

use super::super::OpId;
use super::super::money::{Cap, Reservation, Reserved, Row, Settlement};
use super::World;
use crate::clock::Timestamp;

/// A cap on a window that ends tomorrow.
pub fn cap(name: &str, most: u64) -> Cap {
    Cap { name: name.to_owned(), most, ends: Timestamp(super::START).after(Duration::from_hours(24)) }
}

pub fn row(day: &str) -> Row {
    Row {
        day: day.to_owned(),
        route: "geocode".to_owned(),
        provider: "opencage".to_owned(),
        caller: 0x1234_5678_9abc << 80,
        caller_name: Some("till".to_owned()),
        currency: "USD".to_owned(),
    }
}

impl World {
    pub async fn reserve(&self, id: u128, caps: &[Cap], amount: u64) -> Reserved {
        let reservation = Reservation { id: OpId(id), caps, amount, row: row("2027-01-15") };
        self.store.reserve(reservation).await.unwrap()
    }

    pub async fn end(&self, id: u128, settlement: Settlement) -> bool {
        self.store.settle(OpId(id), settlement, "answered").await.unwrap()
    }

    pub async fn used(&self, caps: &[Cap]) -> Vec<u64> {
        self.store.used(caps).await.unwrap()
    }

    async fn refuses(&self, caps: &[Cap], amount: u64) {
        let reservation = Reservation { id: OpId(99), caps, amount, row: row("2027-01-15") };
        let outcome = self.store.reserve(reservation).await;
        assert!(matches!(outcome, Err(super::super::StoreError::Failed(_))), "{outcome:?}");
    }
}

pub async fn what_does_not_fit_every_cap_is_in_none(world: World) {
    let (wide, tight) = (cap("all", 100), cap("geocode", 30));
    let both = [wide.clone(), tight.clone()];
    assert_eq!(world.used(&both).await, [0, 0]);
    assert_eq!(world.reserve(1, &both, 20).await, Reserved::Yes(vec![20, 20]));
    assert_eq!(world.reserve(2, &both, 11).await, Reserved::No { cap: 1, used: 20 });
    assert_eq!(world.reserve(2, &[tight.clone(), wide.clone()], 11).await, Reserved::No { cap: 0, used: 20 });
    assert_eq!(world.used(&both).await, [20, 20]);
    assert_eq!(world.reserve(2, &both, 10).await, Reserved::Yes(vec![30, 30]), "refused, its id was not used up");
    assert_eq!(world.reserve(3, &both, 1).await, Reserved::No { cap: 1, used: 30 });
    assert_eq!(world.reserve(3, &both, 0).await, Reserved::Yes(vec![30, 30]), "nothing fits a full cap");
    assert_eq!(world.reserve(4, std::slice::from_ref(&wide), 70).await, Reserved::Yes(vec![100]));
    assert_eq!(world.reserve(5, &[], 1_000).await, Reserved::Yes(Vec::new()));
    assert_eq!(world.used(&[tight, wide, cap("other", 1)]).await, [30, 100, 0]);
}

pub async fn s_03_nothing_is_lost_to_fractions(world: World) {
    let budget = [cap("geocode", 300_000)];
    let mut admitted = 0;
    for id in 0..4 {
        admitted += u32::from(matches!(world.reserve(id, &budget, 100_000).await, Reserved::Yes(_)));
    }
    assert_eq!(admitted, 3);
    for id in 0..4 {
        world.end(id, Settlement::NotBilled).await;
    }
    assert_eq!(world.used(&budget).await, [0]);
}

pub async fn reserving_again_reserves_once(world: World) {
    let caps = [cap("all", 100), cap("geocode", 30)];
    for _ in 0..5 {
        assert_eq!(world.reserve(1, &caps, 20).await, Reserved::Yes(vec![20, 20]));
    }
    assert_eq!(world.reserve(2, &caps, 10).await, Reserved::Yes(vec![30, 30]));
    assert_eq!(world.reserve(1, &caps, 20).await, Reserved::Yes(vec![30, 30]), "it was, though it would not fit now");
    assert!(world.end(1, Settlement::NotBilled).await);
    assert_eq!(world.reserve(1, &caps, 20).await, Reserved::Yes(vec![10, 10]), "an id is used once");
    assert!(world.end(2, Settlement::Billed(10)).await);
    assert_eq!(world.reserve(2, &caps, 10).await, Reserved::Yes(vec![10, 10]));
    assert_eq!(world.used(&caps).await, [10, 10]);
}

pub async fn a_cap_named_twice_counts_twice_or_not_at_all(world: World) {
    let (one, other) = (cap("one", 25), cap("other", 100));
    let twice = [one.clone(), other.clone(), one.clone()];
    assert_eq!(world.reserve(1, &twice, 13).await, Reserved::No { cap: 0, used: 0 });
    assert_eq!(world.used(&twice).await, [0, 0, 0]);
    assert_eq!(world.reserve(1, &twice, 12).await, Reserved::Yes(vec![24, 12, 24]));
    assert!(world.end(1, Settlement::Billed(5)).await);
    assert_eq!(world.used(&twice).await, [10, 5, 10]);
}

pub async fn a_lower_cap_holds_at_once(world: World) {
    assert_eq!(world.reserve(1, &[cap("all", 100)], 60).await, Reserved::Yes(vec![60]));
    assert_eq!(world.reserve(2, &[cap("all", 50)], 0).await, Reserved::No { cap: 0, used: 60 });
    assert_eq!(world.reserve(2, &[cap("all", 61)], 1).await, Reserved::Yes(vec![61]));
}

pub async fn numbers_a_double_cannot_hold_are_refused(world: World) {
    let most = (1 << 53) - 1;
    for beyond in [1 << 53, 1 << 63, u64::MAX] {
        world.refuses(&[cap("all", 10)], beyond).await;
        world.refuses(&[cap("all", 10), cap("geocode", beyond)], 1).await;
        assert!(world.store.settle(OpId(1), Settlement::Billed(beyond), "answered").await.is_err());
    }
    let all = [cap("all", most)];
    assert_eq!(world.reserve(1, &all, most).await, Reserved::Yes(vec![most]));
    assert_eq!(world.reserve(2, &all, 0).await, Reserved::Yes(vec![most]));
    assert_eq!(world.reserve(3, &all, 1).await, Reserved::No { cap: 0, used: most });
    assert_eq!(world.reserve(3, &all, most).await, Reserved::No { cap: 0, used: most });
    assert!(world.store.settle(OpId(2), Settlement::Billed(1), "answered").await.is_err(), "the counter could not say so");
    assert_eq!(world.used(&all).await, [most]);
    assert!(world.end(1, Settlement::Billed(most - 1)).await);
    assert!(world.end(2, Settlement::Billed(1)).await, "what could not be recorded was still open");
    assert_eq!(world.used(&all).await, [most]);
}

pub async fn s_01_many_at_once_never_pass_a_cap(world: World) {
    let (world, caps) = (Arc::new(world), [cap("all", 1_000), cap("geocode", 750)]);
    let attempt = |n: u32| {
        let (world, mut caps) = (Arc::clone(&world), caps.clone());
        caps.rotate_left(n as usize % 2);
        tokio::spawn(async move {
            let id = u128::from(n);
            let Reserved::Yes(levels) = world.reserve(id, &caps, 10).await else { return 0 };
            assert!(caps.iter().zip(&levels).all(|(cap, level)| *level <= cap.most), "{levels:?}");
            let (settlement, cost) = match n % 3 {
                0 => (Settlement::Billed(10), 10),
                1 => (Settlement::NotBilled, 0),
                _ => (Settlement::Unknown, 10),
            };
            assert!(world.end(id, settlement).await);
            cost
        })
    };
    let costs: u64 = futures_util::future::try_join_all((0..200).map(attempt)).await.unwrap().into_iter().sum();
    assert_eq!(world.used(&caps).await, [costs, costs]);
    assert!(costs <= 750, "{costs}");
    let hold = |n: u32| {
        let (world, caps) = (Arc::clone(&world), caps.clone());
        tokio::spawn(async move { u64::from(matches!(world.reserve(u128::from(n), &caps, 10).await, Reserved::Yes(_))) })
    };
    let held: u64 = futures_util::future::try_join_all((200..400).map(hold)).await.unwrap().into_iter().sum();
    assert_eq!((held * 10 + costs, world.used(&caps).await), (750, vec![750, 750]), "as many as fit, and no more");
}
