//! What entering and landing do in every store, shared or not.

use std::time::Duration;

use super::super::lease::{Entered, Entry, Landing, Leave};
use super::super::{Digest, OpId};
use super::World;
use super::answers::answer;
use crate::clock::Timestamp;

pub(super) const KEY: Digest = [7; 32];
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// A flight at the door, that looks and has not waited; its lease is for ten seconds.
pub(super) fn entry(flight: OpId) -> Entry<'static> {
    Entry { flight, key: &KEY, ttl: SECOND * 10, look: true, waiting: None }
}

/// A flight at its end, that keeps nothing and leaves nothing.
pub(super) fn landing(flight: OpId, began: Timestamp) -> Landing<'static> {
    Landing { flight, route: "geo", key: &KEY, began, keep: None, leave: Leave::Nothing }
}

pub async fn a_fresh_answer_is_found_and_a_stale_one_is_not(world: World) {
    let kept = answer(0, b"x");
    world.store.keep("geo", &KEY, kept.clone()).await.unwrap();
    world.clock.advance(Duration::from_micros(9_999_999));
    assert_eq!(world.store.enter(entry(OpId::random())).await, Ok(Entered::Found(kept)));
    world.clock.advance(Duration::from_micros(1));
    assert_eq!(world.store.enter(entry(OpId::random())).await, Ok(Entered::Taken(world.clock.now())));
}

pub async fn whoever_does_not_look_finds_nothing(world: World) {
    world.store.keep("geo", &KEY, answer(0, b"x")).await.unwrap();
    let blind = Entry { look: false, ..entry(OpId::random()) };
    assert_eq!(world.store.enter(blind).await, Ok(Entered::Taken(world.clock.now())));
}

pub async fn an_answer_from_the_future_is_not_found(world: World) {
    world.store.keep("geo", &KEY, answer(2, b"x")).await.unwrap();
    assert!(matches!(world.store.enter(entry(OpId::random())).await, Ok(Entered::Taken(_))));
}

pub async fn landing_keeps_the_answer_and_frees_the_lease(world: World) {
    let (flight, kept) = (OpId::random(), answer(0, b"x"));
    let Ok(Entered::Taken(began)) = world.store.enter(entry(flight)).await else { panic!("nothing is there") };
    assert_eq!(world.store.renew(flight, &KEY, SECOND * 10).await, Ok(true));
    let landing = Landing { keep: Some(kept.clone()), leave: Leave::Kept, ..landing(flight, began) };
    assert_eq!(world.store.land(landing.clone()).await, Ok(true));
    assert_eq!(world.store.land(landing).await, Ok(true), "twice is once");
    assert_eq!(world.store.answer(&KEY).await, Ok(Some(kept.clone())));
    assert_eq!(world.store.enter(entry(OpId::random())).await, Ok(Entered::Found(kept)));
    let blind = Entry { look: false, ..entry(OpId::random()) };
    assert!(matches!(world.store.enter(blind).await, Ok(Entered::Taken(_))));
}

pub async fn landing_never_replaces_a_later_answer(world: World) {
    let flight = OpId::random();
    world.clock.advance(SECOND * 5);
    world.store.keep("geo", &KEY, answer(4, b"later")).await.unwrap();
    let landing = Landing { keep: Some(answer(3, b"earlier")), leave: Leave::Kept, ..landing(flight, world.clock.now()) };
    assert_eq!(world.store.land(landing).await, Ok(true));
    assert_eq!(world.store.answer(&KEY).await, Ok(Some(answer(4, b"later"))));
}
