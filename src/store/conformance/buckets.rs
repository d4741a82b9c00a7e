use std::sync::Arc;
use std::time::Duration;

use super::super::{Bucket, Level, OpId, Taken};
use super::World;

const TOKEN: u64 = 1_000_000;
const SECOND: Duration = Duration::from_secs(1);

/// One token a second, each costing one.
fn bucket(id: u128, capacity: u64) -> Bucket {
    Bucket { id, capacity: capacity * TOKEN, refill: TOKEN, per: SECOND, cost: TOKEN }
}

impl World {
    async fn take(&self, buckets: &[Bucket]) -> Taken {
        self.store.take(OpId::random(), buckets, true).await.unwrap()
    }

    async fn passes(&self, buckets: &[Bucket]) -> bool {
        matches!(self.take(buckets).await, Taken::Yes(_))
    }

    async fn left(&self, bucket: Bucket) -> u64 {
        let look = Bucket { cost: 0, ..bucket };
        let (Taken::Yes(levels) | Taken::No { levels, .. }) = self.store.take(OpId::random(), &[look], false).await.unwrap();
        levels[0].left
    }
}

pub async fn l_03_a_poller_gets_what_accrues(world: World) {
    let slow = Bucket { per: SECOND * 2, ..bucket(1, 1) };
    let mut admitted = 0;
    for _ in 0..=33 {
        admitted += u32::from(world.passes(&[slow]).await);
        world.clock.advance(Duration::from_millis(300));
    }
    assert!((5..=7).contains(&admitted), "{admitted}");
}

pub async fn l_04_refused_is_free_at_any_cost(world: World) {
    let costing = |cost| Bucket { cost, ..bucket(1, 10) };
    assert!(world.passes(&[costing(7 * TOKEN)]).await);
    assert!(!world.passes(&[costing(5 * TOKEN)]).await);
    assert!(world.passes(&[costing(3 * TOKEN)]).await);
    for never in [11 * TOKEN, 1 << 53, 1 << 63, u64::MAX] {
        assert!(matches!(world.take(&[costing(never)]).await, Taken::No { wait: Duration::MAX, .. }));
    }
    assert!(world.passes(&[costing(0)]).await);
    world.clock.advance(SECOND * 10);
    let emptied = Taken::Yes(vec![Level { left: 0, full_in: SECOND * 10 }]);
    assert_eq!(world.take(&[costing(10 * TOKEN)]).await, emptied);
}

pub async fn l_05_waiting_as_told_passes(world: World) {
    let slow = Bucket { per: Duration::from_millis(1500), ..bucket(1, 1) };
    assert!(world.passes(&[slow]).await);
    for phase in 0..50 {
        world.clock.advance(Duration::from_micros(phase * 29_983));
        let Taken::No { wait, .. } = world.take(&[slow]).await else { panic!("empty in phase {phase}") };
        world.clock.advance(wait.saturating_sub(Duration::from_micros(1)));
        assert!(!world.passes(&[slow]).await, "too long a wait in phase {phase}");
        world.clock.advance(Duration::from_micros(1));
        assert!(world.passes(&[slow]).await, "too short a wait in phase {phase}");
    }
}

pub async fn l_06_a_refusal_takes_nothing_from_the_others(world: World) {
    let (user, all) = (bucket(1, 5), Bucket { per: SECOND * 100, ..bucket(2, 5) });
    assert!(world.passes(&[Bucket { cost: 5 * TOKEN, ..all }]).await);
    for _ in 0..5 {
        let taken = world.take(&[user, all]).await;
        assert!(
            matches!(&taken, Taken::No { bucket: 1, wait, levels } if *wait == SECOND * 100 && levels.len() == 2),
            "{taken:?}"
        );
    }
    assert_eq!(world.left(user).await, 5 * TOKEN);

    let (user, all) = (bucket(3, 5), bucket(4, 5));
    assert!(world.passes(&[Bucket { cost: 5 * TOKEN, ..user }]).await);
    for _ in 0..5 {
        assert!(matches!(world.take(&[user, all]).await, Taken::No { bucket: 0, .. }));
    }
    assert_eq!(world.left(all).await, 5 * TOKEN);
}

pub async fn looking_takes_nothing(world: World) {
    let two = bucket(1, 2);
    for _ in 0..10 {
        let seen = world.store.take(OpId::random(), &[two], false).await;
        assert_eq!(seen, Ok(Taken::Yes(vec![Level { left: 2 * TOKEN, full_in: Duration::ZERO }])));
    }
    assert!(world.passes(&[two]).await && world.passes(&[two]).await);
    let seen = world.store.take(OpId::random(), &[two], false).await.unwrap();
    assert!(matches!(seen, Taken::No { bucket: 0, wait: SECOND, .. }));
}

pub async fn capacity_follows_the_numbers_without_adding(world: World) {
    assert!(world.passes(&[Bucket { cost: 4 * TOKEN, ..bucket(1, 10) }]).await);
    assert_eq!(world.left(bucket(1, 20)).await, 6 * TOKEN, "raising adds nothing");
    assert_eq!(world.left(bucket(1, 3)).await, 3 * TOKEN, "lowering clamps");
    assert_eq!(world.left(bucket(1, 20)).await, 3 * TOKEN);
    world.clock.advance(SECOND * 2);
    assert_eq!(world.left(bucket(1, 20)).await, 5 * TOKEN);
}

pub async fn many_at_once_never_get_more_than_there_is(world: World) {
    let world = Arc::new(world);
    let ask = |_| {
        let world = Arc::clone(&world);
        tokio::spawn(async move { u64::from(world.passes(&[bucket(1, 20), bucket(2, 30)]).await) })
    };
    let granted: u64 = futures_util::future::try_join_all((0..200).map(ask)).await.unwrap().into_iter().sum();
    assert_eq!(granted, 20);
    assert_eq!(world.left(bucket(2, 30)).await, 10 * TOKEN);
}

pub async fn crossing_orders_neither_deadlock_nor_overdraw(world: World) {
    let world = Arc::new(world);
    let ask = |n: u32| {
        let world = Arc::clone(&world);
        let mut buckets = [bucket(1, 50), bucket(2, 50), bucket(19, 50), bucket(1 << 100, 50)];
        buckets.rotate_left(n as usize % 4);
        tokio::spawn(async move { u64::from(world.passes(&buckets).await) })
    };
    let granted: u64 = futures_util::future::try_join_all((0..400).map(ask)).await.unwrap().into_iter().sum();
    assert_eq!(granted, 50);
}

pub async fn a_shorter_pause_never_cuts_a_longer_one(world: World) {
    let after = |seconds| world.clock.now().after(SECOND * seconds);
    let (long, short) = (after(30), after(10));
    assert_eq!(world.store.paused("google").await, Ok(None));
    world.store.pause("google", long).await.unwrap();
    world.store.pause("google", short).await.unwrap();
    assert_eq!(world.store.paused("google").await, Ok(Some(long)));
    assert_eq!(world.store.paused("opencage").await, Ok(None));
    world.clock.advance(SECOND * 30);
    assert_eq!(world.store.paused("google").await, Ok(None));
}
