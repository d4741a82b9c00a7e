//! What the dead leave open.

use super::super::super::money::ledger::ORPHANED;
use super::super::super::money::{Money, Reserved, Settlement};
use super::super::money::watch::sweep;
use super::money::{caps, line, lines, reserve, settle};
use super::mortal::Mortal;
use super::*;

const SILENT: Duration = Duration::from_secs(10);

async fn swept(store: &RedisStore) -> u64 {
    sweep(&store.link, &store.epoch, &store.instance).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_instance_had_open_becomes_unknown_and_stays_spent() {
    let (server, clock) = (Server::start(), Clock::manual(Timestamp(START)));
    let mortal = Mortal::start(Time::Caller, options(&server), &clock);
    let caps = caps(&mortal.store);
    for id in 1..=4 {
        assert!(matches!(reserve(&mortal.store, id, &caps, 10).await, Ok(Reserved::Yes(_))));
    }
    settle(&mortal.store, 3, Settlement::Billed(8)).await.unwrap();
    settle(&mortal.store, 4, Settlement::Unknown).await.unwrap();
    drop(mortal);

    let (store, _events) = on_clock(&server, &clock).await;
    clock.advance(SILENT.saturating_sub(Duration::from_micros(1)));
    assert_eq!(swept(&store).await, 0, "it may only be slow");
    let mut expected = vec![line("billed", "answered", 1, 8), line("open", "", 2, 20), line("unknown", "answered", 1, 10)];
    assert_eq!(lines(&store).await, expected);
    clock.advance(Duration::from_micros(1));
    let looked_at = swept(&store).await;
    assert!(looked_at == 2 || looked_at == 0, "the heartbeat may have been first: {looked_at}");
    expected.remove(1);
    expected.push(line("unknown", ORPHANED, 2, 20));
    assert_eq!((lines(&store).await, store.used(&caps).await), (expected, Ok(vec![38, 38])));
    assert_eq!((swept(&store).await, server.say("EXISTS t:owners:{t}")), (0, ":0\r\n".to_owned()), "nothing is left to look at");
    assert_eq!(settle(&store, 1, Settlement::Unknown).await, Ok(false));
    assert_eq!(settle(&store, 1, Settlement::NotBilled).await, Ok(true), "a person may know");
    assert_eq!(store.used(&caps).await, Ok(vec![28, 28]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_heartbeat_of_the_living_sweeps_and_the_frozen_may_settle_late() {
    let (server, clock) = (Server::start(), Clock::manual(Timestamp(START)));
    let mortal = Mortal::start(Time::Caller, options(&server), &clock);
    let caps = caps(&mortal.store);
    for id in 1..=2 {
        reserve(&mortal.store, id, &caps, 10).await.unwrap();
    }
    let (store, mut events) = on_clock(&server, &clock).await;
    super::super::super::conformance::shared::listening(&mut events).await;
    let thaw = mortal.freeze();
    clock.advance(SILENT);
    let orphaned = async {
        while lines(&store).await != [line("unknown", ORPHANED, 2, 20)] {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, orphaned).await.expect("they are swept up");
    drop(thaw);
    assert_eq!(settle(&mortal.store, 1, Settlement::Billed(7)).await, Ok(true));
    assert_eq!(settle(&mortal.store, 2, Settlement::Unknown).await, Ok(false));
    assert_eq!(lines(&store).await, [line("billed", "answered", 1, 7), line("unknown", ORPHANED, 1, 10)]);
    assert_eq!(reserve(&mortal.store, 3, &caps, 10).await, Ok(Reserved::Yes(vec![27, 27])), "it lives as before");
    assert_eq!(swept(&store).await, 0);
    assert_eq!(settle(&mortal.store, 3, Settlement::NotBilled).await, Ok(true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_sweeps_lives_however_late_it_is() {
    let (server, clock) = (Server::start(), Clock::manual(Timestamp(START)));
    let (store, _events) = on_clock(&server, &clock).await;
    reserve(&store, 1, &caps(&store), 10).await.unwrap();
    clock.advance(Duration::from_hours(1));
    assert_eq!((swept(&store).await, lines(&store).await), (0, vec![line("open", "", 1, 10)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_left_at_a_goodbye_is_swept_at_once_and_a_backlog_in_pieces() {
    let (server, clock) = (Server::start(), Clock::manual(Timestamp(START)));
    let ((left, _events), (store, _others)) = (on_clock(&server, &clock).await, on_clock(&server, &clock).await);
    let none = [];
    futures_util::future::join_all((0..250).map(|id| reserve(&left, id, &none, 10))).await;
    reserve(&store, 250, &none, 10).await.unwrap();
    left.close().await.unwrap();
    // The clock stands: no heartbeat sweeps.
    for expected in [100, 100, 50, 0] {
        assert_eq!(swept(&store).await, expected);
    }
    assert_eq!(lines(&store).await, [line("open", "", 1, 10), line("unknown", ORPHANED, 250, 2_500)]);
}
