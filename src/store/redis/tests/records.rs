//! What is kept of money, for how long, and what becomes of records that make no sense.

use super::super::super::conformance::money::row;
use super::super::super::money::{Cap, Money, Reservation, Reserved, Row, Settlement};
use super::money::{caps, ledger, line, lines, reserve, settle};
use super::*;
use crate::clock::micros;

const DAY: Duration = Duration::from_hours(24);

async fn open(server: &Server) -> (Arc<RedisStore>, Events) {
    let (store, events) = RedisStore::open(options(server), Clock::system()).unwrap();
    assert!(store.connected(TIMEOUT).await, "{:?}", store.health());
    (store, events)
}

/// Days to live, rounded up to whole ones.
fn days(server: &Server, key: &str) -> u64 {
    let left: u64 = server.say(&format!("PTTL {key}")).trim().trim_start_matches(':').parse().expect(key);
    left.div_ceil(86_400_000)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_outlive_their_windows_and_what_is_over_leaves_a_word() {
    let server = Server::start();
    let (store, _events) = open(&server).await;
    let (keys, until) = (store.keys().clone(), |ends| [Cap { ends, ..caps(&store)[0].clone() }]);
    let (now, counter) = (store.link.clock.now(), keys.cap("all"));
    for (id, ends, lasts) in [(1, now, 42), (2, now.after(DAY * 30), 72), (3, now, 72), (4, Timestamp(u64::MAX), 3_650)] {
        reserve(&store, id, &until(ends), 10).await.unwrap();
        assert_eq!(days(&server, &counter), lasts, "{id}");
    }
    settle(&store, 1, Settlement::Billed(7)).await.unwrap();
    settle(&store, 9, Settlement::NotBilled).await.unwrap();
    settle(&store, 2, Settlement::Unknown).await.unwrap();
    assert_eq!(days(&server, &counter), 3_650);
    for (key, lasts) in [(keys.attempt(OpId(1)), 3), (keys.attempt(OpId(9)), 3), (keys.attempt(OpId(2)), 401)] {
        assert_eq!(days(&server, &key), lasts, "{key}");
    }
    assert_eq!((days(&server, &keys.spent("2027-01-15")), days(&server, &keys.days())), (401, 401));
    assert_eq!(server.say(&format!("STRLEN {}", keys.attempt(OpId(1)))), format!(":{}\r\n", "settled".len()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_judges_by_its_own_time_whether_a_window_is_long_over() {
    let server = Server::start();
    let (store, _events) = open(&server).await;
    let now = store.link.clock.now();
    let old = [Cap { ends: Timestamp(now.0 - micros(DAY * 40)), ..caps(&store)[0].clone() }];
    // What this instance takes for now would do, if the heartbeat did not set it right just before: then it is refused, too.
    store.link.clock.follow(Timestamp(now.0 - micros(DAY)));
    let outcome = reserve(&store, 1, &old, 10).await;
    assert!(matches!(&outcome, Err(StoreError::Failed(text)) if text.contains("long ago")), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_settlement_leaves_a_later_counter_of_the_same_name_alone() {
    let server = Server::start();
    let (store, _events) = open(&server).await;
    let caps = caps(&store);
    reserve(&store, 1, &caps, 10).await.unwrap();
    reserve(&store, 2, &caps, 10).await.unwrap();
    server.say(&format!("DEL {}", store.keys().cap("all")));
    assert_eq!(settle(&store, 1, Settlement::Billed(7)).await, Ok(true));
    assert_eq!(store.used(&caps).await, Ok(vec![0, 17]), "it is not made again");
    reserve(&store, 3, &caps[..1], 5).await.unwrap();
    assert_eq!(settle(&store, 2, Settlement::NotBilled).await, Ok(true));
    assert_eq!(store.used(&caps).await, Ok(vec![5, 7]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_add_up_or_read_is_an_error_and_changes_nothing() {
    let server = Server::start();
    let (store, _events) = open(&server).await;
    let (caps, counter, attempt) = (caps(&store), store.keys().cap("geocode"), store.keys().attempt(OpId(1)));
    reserve(&store, 1, &caps, 10).await.unwrap();
    server.say(&format!("HSET {counter} used 3"));
    assert!(settle(&store, 1, Settlement::NotBilled).await.is_err());
    assert_eq!((store.used(&caps).await, lines(&store).await), (Ok(vec![10, 3]), vec![line("open", "", 1, 10)]));
    for used in ["x", "-1", "1e3", "9007199254740992", "\"\""] {
        server.say(&format!("HSET {counter} used {used}"));
        assert!(settle(&store, 1, Settlement::NotBilled).await.is_err(), "{used}");
        assert!(reserve(&store, 2, &caps, 10).await.is_err(), "{used}");
        assert!(store.used(&caps).await.is_err(), "{used}");
    }
    server.say(&format!("SET {counter} x"));
    assert!(reserve(&store, 2, &caps, 10).await.is_err());
    assert!(settle(&store, 1, Settlement::NotBilled).await.is_err());
    assert_eq!((store.used(&caps[..1]).await, ledger(&store).await.len()), (Ok(vec![10]), 1));
    server.say(&format!("DEL {counter}"));
    server.say(&format!("HSET {attempt} micros x"));
    assert!(settle(&store, 1, Settlement::NotBilled).await.is_err());
    server.say(&format!("HSET {attempt} micros 10"));
    assert_eq!(settle(&store, 1, Settlement::NotBilled).await, Ok(true));
    assert_eq!(reserve(&store, 2, &caps, 10).await, Ok(Reserved::Yes(vec![10, 10])));
    assert!(store.health().well, "{:?}", store.health());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sums_are_read_whole_however_many_days_there_are() {
    let server = Server::start();
    let (store, _events) = open(&server).await;
    let attempt = async |n: u32| {
        let row = Row { day: format!("day {n:04}"), ..row("") };
        let reservation = Reservation { id: OpId(n.into()), caps: &[], amount: n.into(), row };
        store.reserve(reservation).await.unwrap();
    };
    futures_util::future::join_all((0..100).map(attempt)).await;
    let days: Vec<_> = ledger(&store).await.into_iter().map(|line| (line.day, line.micros)).collect();
    assert_eq!(days, (0..100).map(|n| (format!("day {n:04}"), n)).collect::<Vec<_>>());
}
