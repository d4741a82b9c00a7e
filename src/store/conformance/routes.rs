use std::sync::Arc;

use super::super::{OpId, Switch, SwitchState};
use super::World;

pub async fn a_generation_rises_once_for_each_operation(world: World) {
    let (first, second) = (OpId::random(), OpId::random());
    assert_eq!(world.store.generation("geo").await, Ok(0));
    let one = world.store.raise_generation(first, "geo").await.unwrap();
    let two = world.store.raise_generation(second, "geo").await.unwrap();
    assert!(0 < one && one < two, "{one}, {two}");
    assert_eq!(world.store.raise_generation(first, "geo").await, Ok(one), "a repeat says what the first time said");
    assert_eq!(world.store.generation("geo").await, Ok(two));
    assert_eq!(world.store.generation("other").await, Ok(0));
}

pub async fn generations_raised_at_once_are_all_counted(world: World) {
    let raise = |_| {
        let store = Arc::clone(&world.store);
        tokio::spawn(async move { store.raise_generation(OpId::random(), "geo").await.unwrap() })
    };
    let mut raised = futures_util::future::try_join_all((0..50).map(raise)).await.unwrap();
    raised.sort_unstable();
    raised.dedup();
    assert_eq!(raised.len(), 50);
}

pub async fn a_switch_stays_as_it_was_last_set(world: World) {
    assert_eq!(world.store.switches().await, Ok(Vec::new()));
    let switch = |state, reason: &str| Switch { state, reason: reason.to_owned(), since: 1_800_000_000, until: None };
    let (off, cached) = (switch(SwitchState::Off, "the bill \"jumped\"\n"), switch(SwitchState::Cached, "Prüfung"));
    world.store.set_switch("geo", off.clone()).await.unwrap();
    world.store.set_switch("all", cached.clone()).await.unwrap();
    world.store.set_switch("geo", cached.clone()).await.unwrap();
    world.store.set_switch("all", off.clone()).await.unwrap();
    let mut switches = world.store.switches().await.unwrap();
    switches.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(switches, [("all".to_owned(), off), ("geo".to_owned(), cached)]);
}
