use std::sync::Arc;
use std::time::Duration;

use super::super::{Digest, Guess, LockoutRule, LockoutState, OpId};
use super::World;
use crate::clock::Timestamp;

const SUBJECT: Digest = [1; 32];
const OTHER: Digest = [2; 32];
const SECOND: Duration = Duration::from_secs(1);
const RULE: LockoutRule =
    LockoutRule { misses: 5, window: Duration::from_mins(1), first: Duration::from_secs(10), max: Duration::from_secs(25) };

impl World {
    /// A guess that may fly for thirty seconds.
    async fn guess(&self, op: OpId, subjects: &[Digest]) -> Guess {
        self.store.guess(op, subjects, RULE, self.now().after(SECOND * 30)).await.unwrap()
    }

    async fn settle(&self, op: OpId, subjects: &[Digest], missed: bool) {
        self.store.settle_guess(op, subjects, RULE, missed).await.unwrap();
    }

    /// Guesses one after the other, all missed.
    async fn miss(&self, times: usize, subjects: &[Digest]) {
        for _ in 0..times {
            let op = OpId::random();
            assert_eq!(self.guess(op, subjects).await, Guess::Admitted);
            self.settle(op, subjects, true).await;
        }
    }

    async fn known(&self, subject: Digest) -> LockoutState {
        self.store.lockout(&subject, RULE).await.unwrap()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

pub async fn x_03_parallel_guesses_stay_within_the_allowance(world: World) {
    let world = Arc::new(world);
    let guess = |_| {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            let op = OpId::random();
            (op, world.guess(op, &[SUBJECT]).await)
        })
    };
    let guesses = futures_util::future::try_join_all((0..100).map(guess)).await.unwrap();
    let admitted: Vec<_> = guesses.iter().filter(|(_, guess)| *guess == Guess::Admitted).collect();
    assert_eq!(admitted.len(), 5);
    assert_eq!(guesses.iter().filter(|(_, guess)| *guess == Guess::Full).count(), 95);
    for (op, _) in admitted {
        world.settle(*op, &[SUBJECT], true).await;
    }
    assert_eq!(world.guess(OpId::random(), &[SUBJECT]).await, Guess::Locked(world.now().after(SECOND * 10)));
}

pub async fn full_is_too_fast_and_only_misses_lock(world: World) {
    world.miss(2, &[SUBJECT]).await;
    let ops = [OpId::random(), OpId::random(), OpId::random()];
    for op in ops {
        assert_eq!(world.guess(op, &[SUBJECT]).await, Guess::Admitted);
    }
    assert_eq!(world.guess(OpId::random(), &[SUBJECT]).await, Guess::Full);
    let state = world.known(SUBJECT).await;
    assert_eq!((state.misses, state.in_flight, state.locked_until), (2, 3, None));
    for op in ops {
        world.settle(op, &[SUBJECT], false).await;
    }
    assert_eq!(world.guess(OpId::random(), &[SUBJECT]).await, Guess::Admitted);
    world.clock.advance(SECOND * 60);
    assert_eq!(world.known(SUBJECT).await, LockoutState { misses: 0, in_flight: 0, locked_until: None, locks: 0 });
}

pub async fn a_guess_in_flight_expires(world: World) {
    for _ in 0..5 {
        assert_eq!(world.guess(OpId::random(), &[SUBJECT]).await, Guess::Admitted);
    }
    world.clock.advance(Duration::from_micros(29_999_999));
    assert_eq!(world.guess(OpId::random(), &[SUBJECT]).await, Guess::Full);
    world.clock.advance(Duration::from_micros(1));
    assert_eq!(world.guess(OpId::random(), &[SUBJECT]).await, Guess::Admitted);
}

pub async fn a_guess_and_its_settlement_count_once(world: World) {
    let op = OpId::random();
    for _ in 0..10 {
        assert_eq!(world.guess(op, &[SUBJECT, SUBJECT]).await, Guess::Admitted);
    }
    assert_eq!(world.known(SUBJECT).await.in_flight, 1);
    for _ in 0..10 {
        world.settle(op, &[SUBJECT, SUBJECT], true).await;
    }
    assert_eq!(world.guess(op, &[SUBJECT]).await, Guess::Admitted, "a late repeat of what has been settled");
    let state = world.known(SUBJECT).await;
    assert_eq!((state.misses, state.in_flight), (1, 0));
}

pub async fn attempts_during_a_lock_do_not_extend_it(world: World) {
    world.miss(5, &[SUBJECT]).await;
    let until = world.now().after(SECOND * 10);
    for _ in 0..9 {
        world.clock.advance(SECOND);
        let op = OpId::random();
        assert_eq!(world.guess(op, &[SUBJECT]).await, Guess::Locked(until));
        world.settle(op, &[SUBJECT], false).await;
    }
    world.clock.advance(SECOND);
    assert_eq!(world.guess(OpId::random(), &[SUBJECT]).await, Guess::Admitted, "it ends on time");
}

/// For a locked guesser there is the same to do as for another, and haste meets the same.
pub async fn a_guess_that_meets_a_lock_is_in_flight_like_any_other(world: World) {
    world.miss(5, &[SUBJECT]).await;
    let (before, until) = (world.known(SUBJECT).await, world.now().after(SECOND * 10));
    let ops = [(); 5].map(|()| OpId::random());
    for op in ops {
        assert_eq!(world.guess(op, &[SUBJECT]).await, Guess::Locked(until));
    }
    assert_eq!(world.known(SUBJECT).await, LockoutState { in_flight: 5, ..before });
    assert_eq!(world.guess(OpId::random(), &[SUBJECT]).await, Guess::Full);
    assert_eq!(world.guess(ops[0], &[SUBJECT]).await, Guess::Locked(until), "a repeat takes no room, and is not let through");
    world.miss(5, &[OTHER]).await;
    assert_eq!(world.guess(OpId::random(), &[SUBJECT, OTHER]).await, Guess::Locked(until));
    assert_eq!((world.known(SUBJECT).await.in_flight, world.known(OTHER).await.in_flight), (5, 1));
    for op in ops {
        world.settle(op, &[SUBJECT], false).await;
    }
    assert_eq!(world.known(SUBJECT).await, before, "nothing is left of them");
    world.clock.advance(SECOND * 10);
    assert_eq!(world.guess(OpId::random(), &[SUBJECT]).await, Guess::Admitted);
}

pub async fn locks_double_up_to_the_maximum_and_end_on_time(world: World) {
    for (number, seconds) in [(1, 10), (2, 20), (3, 25), (4, 25)] {
        world.miss(5, &[SUBJECT]).await;
        let state = world.known(SUBJECT).await;
        assert_eq!(state.locked_until, Some(world.now().after(SECOND * seconds).0));
        assert_eq!(state.locks, number);
        world.clock.advance(SECOND * seconds);
        assert_eq!(world.known(SUBJECT).await.locked_until, None);
    }
    world.clock.advance(SECOND * (60 + 25));
    world.miss(5, &[SUBJECT]).await;
    assert_eq!(world.known(SUBJECT).await.locked_until, Some(world.now().after(SECOND * 10).0), "after a quiet time");
}

pub async fn a_success_clears_nothing(world: World) {
    world.miss(4, &[SUBJECT]).await;
    let op = OpId::random();
    world.guess(op, &[SUBJECT]).await;
    world.settle(op, &[SUBJECT], false).await;
    assert_eq!(world.known(SUBJECT).await.misses, 4);
    world.miss(1, &[SUBJECT]).await;
    assert!(world.known(SUBJECT).await.locked_until.is_some());
}

pub async fn several_subjects_are_admitted_together_or_not_at_all(world: World) {
    world.miss(5, &[SUBJECT]).await;
    let until = world.now().after(SECOND * 10);
    for _ in 0..10 {
        let op = OpId::random();
        assert_eq!(world.guess(op, &[OTHER, SUBJECT]).await, Guess::Locked(until));
        assert_eq!(world.known(OTHER).await.in_flight, 0);
        world.settle(op, &[OTHER, SUBJECT], false).await;
    }
    for _ in 0..5 {
        assert_eq!(world.guess(OpId::random(), &[OTHER]).await, Guess::Admitted);
    }
    assert_eq!(world.guess(OpId::random(), &[OTHER, SUBJECT]).await, Guess::Locked(until), "locked is worse than full");
    assert_eq!(world.guess(OpId::random(), &[OTHER, [3; 32]]).await, Guess::Full);
}

pub async fn an_admin_clears_one_subject(world: World) {
    world.miss(5, &[SUBJECT, OTHER]).await;
    world.store.clear_lockout(&SUBJECT).await.unwrap();
    world.store.clear_lockout(&[3; 32]).await.unwrap();
    assert_eq!(world.known(SUBJECT).await, LockoutState { misses: 0, in_flight: 0, locked_until: None, locks: 0 });
    assert!(world.known(OTHER).await.locked_until.is_some());
    assert_eq!(world.guess(OpId::random(), &[SUBJECT]).await, Guess::Admitted);
}
