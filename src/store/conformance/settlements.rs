use std::sync::Arc;
use std::time::Duration;

use super::super::money::{Cap, Reservation, Reserved, Settlement};
use super::super::{OpId, StoreError};
use super::World;
use super::money::{cap, row};

const EVERY: [Settlement; 3] = [Settlement::Billed(7), Settlement::NotBilled, Settlement::Unknown];

pub async fn an_attempt_goes_from_open_to_its_end_and_stays(world: World) {
    let all = [cap("all", 1_000)];
    for (id, first, used) in [(1, Settlement::Billed(5), 5), (2, Settlement::NotBilled, 5), (3, Settlement::Billed(0), 5)] {
        assert!(matches!(world.reserve(id, &all, 20).await, Reserved::Yes(_)));
        assert!(world.end(id, first).await);
        assert_eq!(world.used(&all).await, [used]);
        for late in EVERY.into_iter().chain([first]) {
            assert!(!world.end(id, late).await, "{late:?} after {first:?}");
        }
        assert_eq!(world.used(&all).await, [used]);
    }
}

pub async fn what_is_unknown_stays_spent_until_it_is_known(world: World) {
    let all = [cap("all", 60)];
    for id in 1..=3 {
        assert!(matches!(world.reserve(id, &all, 20).await, Reserved::Yes(_)));
        assert!(world.end(id, Settlement::Unknown).await);
        assert!(!world.end(id, Settlement::Unknown).await, "it is unknown already");
    }
    assert_eq!(world.reserve(4, &all, 1).await, Reserved::No { cap: 0, used: 60 });
    assert!(world.end(1, Settlement::NotBilled).await);
    assert!(world.end(2, Settlement::Billed(15)).await);
    assert_eq!(world.used(&all).await, [35]);
    for settlement in EVERY {
        assert!(!world.end(1, settlement).await && !world.end(2, settlement).await);
    }
    assert_eq!(world.used(&all).await, [35]);
}

pub async fn the_real_cost_replaces_the_price(world: World) {
    let caps = [cap("all", 100), cap("geocode", 20)];
    for (id, real, used) in [(1, 5, 5), (2, 0, 5), (3, 12, 17)] {
        assert!(matches!(world.reserve(id, &caps, 15).await, Reserved::Yes(_)), "{id}");
        assert!(world.end(id, Settlement::Billed(real)).await);
        assert_eq!(world.used(&caps).await, [used, used]);
    }
}

pub async fn a_cost_above_the_price_is_recorded_in_full(world: World) {
    let caps = [cap("all", 100), cap("geocode", 20)];
    assert_eq!(world.reserve(1, &caps, 15).await, Reserved::Yes(vec![15, 15]));
    assert!(world.end(1, Settlement::Billed(90)).await);
    assert_eq!(world.used(&caps).await, [90, 90]);
    assert_eq!(world.reserve(2, &caps, 1).await, Reserved::No { cap: 1, used: 90 }, "the next admission sees it");
    assert_eq!(world.reserve(2, &caps[..1], 10).await, Reserved::Yes(vec![100]));
}

pub async fn s_02_a_late_settlement_belongs_to_where_it_was_reserved(world: World) {
    let today = [cap("geocode|day:2027-01-15", 20)];
    let tomorrow = [Cap { ends: today[0].ends.after(Duration::from_hours(24)), ..cap("geocode|day:2027-01-16", 20) }];
    assert_eq!(world.reserve(1, &today, 20).await, Reserved::Yes(vec![20]));
    world.clock.advance(Duration::from_hours(25));
    assert_eq!(world.reserve(2, &tomorrow, 15).await, Reserved::Yes(vec![15]), "a new window begins at nothing");
    assert!(world.end(1, Settlement::Billed(12)).await);
    assert_eq!((world.used(&today).await, world.used(&tomorrow).await), (vec![12], vec![15]));
    assert_eq!(world.reserve(3, &today, 8).await, Reserved::Yes(vec![20]), "a reserve may come a little late");
}

pub async fn what_is_settled_before_it_comes_is_refused(world: World) {
    let all = [cap("all", 100)];
    for (id, settlement) in [(1, Settlement::NotBilled), (2, Settlement::Unknown), (3, Settlement::Billed(5))] {
        assert!(!world.end(id, settlement).await, "there was nothing to change");
        assert!(!world.end(id, settlement).await);
        assert_eq!(world.reserve(id, &all, 10).await, Reserved::TooLate);
    }
    world.clock.advance(Duration::from_hours(23));
    for id in 1..=3 {
        assert_eq!(world.reserve(id, &all, 10).await, Reserved::TooLate);
        assert!(!world.end(id, Settlement::Billed(5)).await);
    }
    assert_eq!(world.used(&all).await, [0]);
}

pub async fn a_window_long_over_is_refused(world: World) {
    let all = [cap("all", 100)];
    assert_eq!(world.reserve(1, &all, 10).await, Reserved::Yes(vec![10]));
    world.clock.advance(Duration::from_hours(24 * 60));
    let late = Reservation { id: OpId(2), caps: &all, amount: 95, row: row("2027-01-15") };
    let outcome = world.store.reserve(late).await;
    assert!(matches!(outcome, Err(StoreError::Failed(_))), "its counter may be gone: {outcome:?}");
    assert!(world.end(1, Settlement::Billed(4)).await, "but what was reserved in it is settled whenever");
    assert!(!world.end(1, Settlement::NotBilled).await);
}

pub async fn many_settlements_at_once_count_once(world: World) {
    let all = [cap("all", 1_000)];
    for id in 0..10 {
        assert!(matches!(world.reserve(id, &all, 10).await, Reserved::Yes(_)));
    }
    let world = Arc::new(world);
    let settle = |n: u32| {
        let world = Arc::clone(&world);
        tokio::spawn(async move { u32::from(world.end(u128::from(n % 10), Settlement::Billed(7)).await) })
    };
    let changed: u32 = futures_util::future::try_join_all((0..200).map(settle)).await.unwrap().into_iter().sum();
    assert_eq!((changed, world.used(&all).await), (10, vec![70]));
}
