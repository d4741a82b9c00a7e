//! What a store must do that instances share: one flight at a time for a question, whoever asks where.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::super::event::Event;
use super::super::lease::{Entered, Entry, Landing, Leave};
use super::super::{OpId, StoredAnswer};
use super::Store;
use super::answers::answer;
use super::leases::{KEY, SECOND, entry, landing};
use crate::clock::{Clock, Timestamp};

/// Two instances with one store, and what the second one is told.
pub(in super::super) struct Shared {
    pub one: Arc<dyn Store>,
    pub other: Arc<dyn Store>,
    pub events: mpsc::UnboundedReceiver<Event>,
    pub clock: Clock,
    #[expect(dead_code, reason = "it is there until the end, and that is all")]
    pub home: Box<dyn Any + Send + Sync>,
}

impl Shared {
    /// Takes the lease on the first instance. Returns the flight, and when it took it.
    async fn fly(&self) -> (OpId, Timestamp) {
        let flight = OpId::random();
        let entered = self.one.enter(entry(flight)).await.unwrap();
        assert_eq!(entered, Entered::Taken(self.clock.now()));
        (flight, self.clock.now())
    }

    /// Meets a taken lease on the other instance. Returns how long it has, and since when one waits.
    async fn wait(&self, waiting: Option<Timestamp>) -> (Duration, Timestamp) {
        match self.other.enter(Entry { waiting, ..entry(OpId::random()) }).await.unwrap() {
            Entered::Held { since, left } => (left, since),
            entered => panic!("{entered:?}"),
        }
    }

    /// What one who waits on the other instance meets on entering again.
    async fn again(&self, since: Timestamp) -> Entered {
        self.other.enter(Entry { waiting: Some(since), ..entry(OpId::random()) }).await.unwrap()
    }

    async fn land(&self, (flight, began): (OpId, Timestamp), keep: Option<StoredAnswer>, leave: Leave) -> bool {
        self.one.land(Landing { keep, leave, ..landing(flight, began) }).await.unwrap()
    }
}

/// The next event of a kind.
pub(in super::super) async fn next<T>(
    events: &mut mpsc::UnboundedReceiver<Event>,
    mut wanted: impl FnMut(Event) -> Option<T>,
) -> T {
    let next = async {
        loop {
            if let Some(found) = wanted(events.recv().await.expect("the store lives")) {
                return found;
            }
        }
    };
    tokio::time::timeout(SECOND * 20, next).await.expect("an event in time")
}

/// All was read, and what comes after is told.
pub(in super::super) async fn listening(events: &mut mpsc::UnboundedReceiver<Event>) {
    next(events, |event| matches!(event, Event::State(_)).then_some(())).await;
}

pub async fn a_lease_is_for_one_flight_which_may_enter_twice(shared: Shared) {
    let (flight, _) = shared.fly().await;
    assert_eq!(shared.wait(None).await, (SECOND * 10, shared.clock.now()));
    shared.clock.advance(SECOND);
    assert!(matches!(shared.one.enter(entry(flight)).await, Ok(Entered::Taken(_))));
    assert_eq!(shared.wait(None).await.0, SECOND * 10, "it has entered anew");
    shared.clock.advance(SECOND);
    let since = shared.clock.now();
    assert_eq!(shared.wait(Some(Timestamp(since.0 - 5))).await.1, Timestamp(since.0 - 5), "nothing is to be missed");
}

pub async fn only_its_own_lease_is_renewed(shared: Shared) {
    let (flight, _) = shared.fly().await;
    shared.clock.advance(SECOND * 9);
    assert_eq!(shared.other.renew(OpId::random(), &KEY, SECOND * 10).await, Ok(false));
    assert_eq!(shared.wait(None).await.0, SECOND);
    assert_eq!(shared.one.renew(flight, &KEY, SECOND * 10).await, Ok(true));
    assert_eq!(shared.wait(None).await.0, SECOND * 10);
    assert_eq!(shared.one.renew(flight, &[1; 32], SECOND * 10).await, Ok(false), "it has none there");
}

pub async fn a_lease_ends_on_time(shared: Shared) {
    shared.fly().await;
    shared.clock.advance(Duration::from_micros(9_999_999));
    assert_eq!(shared.wait(None).await.0, Duration::from_micros(1));
    shared.clock.advance(Duration::from_micros(1));
    assert!(matches!(shared.other.enter(entry(OpId::random())).await, Ok(Entered::Taken(_))));
}

pub async fn f_05_a_late_leader_neither_frees_nor_overwrites(shared: Shared) {
    let late = shared.fly().await;
    shared.clock.advance(SECOND * 10);
    let successor = shared.fly().await;
    let (left, since) = shared.wait(None).await;
    assert_eq!(left, SECOND * 10);
    assert!(shared.land(late, None, Leave::Word(Bytes::from_static(b"late"))).await);
    assert_eq!(shared.wait(Some(since)).await.0, SECOND * 10, "the lease is its successor's, and nobody heard a word");
    assert_eq!(shared.one.renew(late.0, &KEY, SECOND * 10).await, Ok(false));

    assert!(shared.land(successor, Some(answer(9, b"newer")), Leave::Kept).await);
    assert!(shared.land(late, Some(answer(3, b"older")), Leave::Kept).await);
    assert_eq!(shared.other.answer(&KEY).await, Ok(Some(answer(9, b"newer"))));
}

pub async fn who_waits_gets_what_was_kept_fresh_or_not(shared: Shared) {
    let flight = shared.fly().await;
    let (_, since) = shared.wait(None).await;
    shared.clock.advance(SECOND * 2);
    let mut kept = answer(0, b"x");
    kept.fresh_until = Timestamp(kept.stored.0 + 1);
    assert!(shared.land(flight, Some(kept.clone()), Leave::Kept).await);
    assert_eq!(shared.again(since).await, Entered::Found(kept));
}

pub async fn who_waits_is_left_a_word_and_newcomers_are_not(shared: Shared) {
    let flight = shared.fly().await;
    let (_, since) = shared.wait(None).await;
    shared.clock.advance(SECOND);
    let word = Bytes::from_static(b"\0busy\xff");
    assert!(shared.land(flight, None, Leave::Word(word.clone())).await);
    assert_eq!(shared.again(since).await, Entered::Ended(word.clone()));
    assert_eq!(shared.again(since).await, Entered::Ended(word), "for all who wait");
    shared.clock.advance(SECOND);
    shared.fly().await;
}

pub async fn after_nothing_exactly_one_of_those_who_wait_flies(shared: Shared) {
    let flight = shared.fly().await;
    let (_, since) = shared.wait(None).await;
    assert!(shared.land(flight, None, Leave::Nothing).await);
    let enter = |n: u32| {
        let store = Arc::clone(if n.is_multiple_of(2) { &shared.one } else { &shared.other });
        tokio::spawn(async move { store.enter(Entry { waiting: Some(since), ..entry(OpId::random()) }).await.unwrap() })
    };
    let entered = futures_util::future::try_join_all((0..20).map(enter)).await.unwrap();
    assert_eq!(entered.iter().filter(|entered| matches!(entered, Entered::Taken(_))).count(), 1);
    assert_eq!(entered.iter().filter(|entered| matches!(entered, Entered::Held { .. })).count(), 19);
}

pub async fn who_waits_through_two_flights_hears_of_the_second(shared: Shared) {
    let first = shared.fly().await;
    let (_, since) = shared.wait(None).await;
    shared.clock.advance(SECOND);
    assert!(shared.land(first, None, Leave::Nothing).await);
    let second = shared.fly().await;
    shared.clock.advance(SECOND);
    assert!(shared.land(second, None, Leave::Word(Bytes::from_static(b"failed"))).await);
    assert!(matches!(shared.again(since).await, Entered::Ended(_)), "though it had not entered again in between");
}

pub async fn answers_for_one_asker_let_everyone_fly(shared: Shared) {
    let flight = shared.fly().await;
    assert!(shared.land(flight, None, Leave::Alone(SECOND * 30)).await);
    for store in [&shared.one, &shared.other] {
        assert_eq!(store.enter(entry(OpId::random())).await, Ok(Entered::Alone));
    }
    shared.clock.advance(SECOND * 30);
    shared.fly().await;
}

pub async fn what_was_purged_during_the_flight_is_not_kept(shared: Shared) {
    let flight = shared.fly().await;
    let (_, since) = shared.wait(None).await;
    shared.clock.advance(SECOND);
    shared.other.forget("geo", &KEY).await.unwrap();
    assert!(!shared.land(flight, Some(answer(0, b"x")), Leave::Kept).await);
    let unleased = Landing { keep: Some(answer(0, b"x")), ..landing(OpId::random(), flight.1) };
    assert_eq!(shared.one.land(unleased).await, Ok(false), "with a lease or without");
    assert_eq!(shared.one.answer(&KEY).await, Ok(None));
    shared.clock.advance(SECOND);
    let Entered::Taken(began) = shared.again(since).await else { panic!("the lease went with the answer") };
    let landing = Landing { keep: Some(answer(2, b"y")), leave: Leave::Kept, ..landing(OpId::random(), began) };
    assert_eq!(shared.other.land(landing).await, Ok(true), "what began after it is");
}

pub async fn a_landing_is_told_when_somebody_waits_for_it(mut shared: Shared) {
    listening(&mut shared.events).await;
    let unawaited = Entry { key: &[1; 32], ..entry(OpId::random()) };
    let Ok(Entered::Taken(began)) = shared.one.enter(unawaited).await else { panic!("nobody is there") };
    shared.one.land(Landing { key: &[1; 32], ..landing(unawaited.flight, began) }).await.unwrap();
    let flight = shared.fly().await;
    shared.wait(None).await;
    shared.land(flight, None, Leave::Nothing).await;
    let landed = next(&mut shared.events, |event| if let Event::Landed(key) = event { Some(key) } else { None }).await;
    assert_eq!(landed, KEY);
}

pub async fn what_one_instance_changes_the_other_hears(mut shared: Shared) {
    use super::super::{Switch, SwitchState};
    listening(&mut shared.events).await;
    let switch = Switch { state: SwitchState::Off, reason: "\"1:2\" ü\n".to_owned(), since: 5, until: None };
    let first = shared.one.set_switch("geo", switch.clone()).await.unwrap();
    let second = shared.one.set_switch("geo", switch.clone()).await.unwrap();
    assert!(second > first, "of two, the later one is in force");
    let generation = shared.one.raise_generation(OpId::random(), "geo").await.unwrap();
    shared.other.forget("geo", &[2; 32]).await.unwrap();
    shared.one.forget("geo", &KEY).await.unwrap();
    let until = shared.clock.now().after(SECOND);
    shared.one.pause("google", until).await.unwrap();
    let mut heard = Vec::new();
    while heard.len() < 5 {
        let change = |event| (!matches!(event, Event::Instances(_) | Event::Landed(_))).then_some(event);
        heard.push(next(&mut shared.events, change).await);
    }
    let set = |revision| Event::Switch { name: "geo".to_owned(), switch: switch.clone(), revision };
    let raised = Event::Generation { route: "geo".to_owned(), generation };
    let purged = Event::Purged { route: "geo".to_owned(), key: KEY };
    let paused = Event::Paused { provider: "google".to_owned(), until };
    assert_eq!(heard, [set(first), set(second), raised, purged, paused], "in order, and nothing of its own purge");
}
