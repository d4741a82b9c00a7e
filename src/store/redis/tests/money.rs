//! Money, as far as it is about Redis: many instances, a full store, lost replies, and what is left of it there.

use super::super::super::conformance::money::{cap, row};
use super::super::super::conformance::reports::saving;
use super::super::super::money::{Cap, Days, Money, Reservation, Reserved, Settlement, Spent};
use super::outage::{recovery, short};
use super::proxy::Proxy;
use super::*;

const DAY: Duration = Duration::from_hours(24);

pub async fn reserve(store: &RedisStore, id: u128, caps: &[Cap], amount: u64) -> Result<Reserved, StoreError> {
    store.reserve(Reservation { id: OpId(id), caps, amount, row: row("2027-01-15") }).await
}

pub async fn settle(store: &RedisStore, id: u128, settlement: Settlement) -> Result<bool, StoreError> {
    store.settle(OpId(id), settlement, "answered").await
}

pub async fn ledger(store: &RedisStore) -> Vec<Spent> {
    store.spent(&Days { from: String::new(), to: "~".to_owned() }).await.unwrap()
}

/// State, outcome, calls and micros of each line.
pub async fn lines(store: &RedisStore) -> Vec<(String, String, u64, u64)> {
    let mut lines: Vec<_> = ledger(store).await.into_iter().map(|s| (s.state, s.outcome, s.calls, s.micros)).collect();
    lines.sort();
    lines
}

pub fn line(state: &str, outcome: &str, calls: u64, micros: u64) -> (String, String, u64, u64) {
    (state.to_owned(), outcome.to_owned(), calls, micros)
}

/// Of a window that ends in a day, by the store's own clock.
pub fn caps(store: &RedisStore) -> [Cap; 2] {
    [("all", 1_000), ("geocode", 750)].map(|(name, most)| Cap { ends: store.link.clock.now().after(DAY), ..cap(name, most) })
}

async fn open(server: &Server) -> (Arc<RedisStore>, Events) {
    let (store, events) = RedisStore::open(options(server), Clock::system()).unwrap();
    assert!(store.connected(TIMEOUT).await, "{:?}", store.health());
    (store, events)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s_01_two_instances_at_once_never_pass_a_cap() {
    let server = Server::start();
    let ((one, _events), (other, _others)) = (open(&server).await, open(&server).await);
    let attempt = |n: u32| {
        let store = Arc::clone(if n.is_multiple_of(2) { &one } else { &other });
        tokio::spawn(async move {
            let mut caps = caps(&store);
            caps.rotate_left(n as usize / 2 % 2);
            let reserved = reserve(&store, n.into(), &caps, 10).await.unwrap();
            if let Reserved::Yes(levels) = &reserved {
                assert!(caps.iter().zip(levels).all(|(cap, level)| *level <= cap.most), "{levels:?}");
            }
            matches!(reserved, Reserved::Yes(_))
        })
    };
    let admitted = futures_util::future::try_join_all((0..200).map(attempt)).await.unwrap();
    assert_eq!(admitted.iter().filter(|admitted| **admitted).count(), 75);
    let caps = caps(&one);
    assert_eq!((one.used(&caps).await, lines(&other).await), (Ok(vec![750, 750]), vec![line("open", "", 75, 750)]));
    // Each is settled by both, whoever opened it.
    let end = |n: u32| {
        let stores = [Arc::clone(&one), Arc::clone(&other)];
        tokio::spawn(async move {
            let [one, other] = stores.each_ref().map(|store| settle(store, n.into(), Settlement::Billed(7)));
            let (one, other) = tokio::join!(one, other);
            u32::from(one.unwrap()) + u32::from(other.unwrap())
        })
    };
    let changed: u32 = futures_util::future::try_join_all((0..200).map(end)).await.unwrap().into_iter().sum();
    assert_eq!((changed, other.used(&caps).await), (75, Ok(vec![525, 525])));
    assert_eq!(lines(&one).await, [line("billed", "answered", 75, 525)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s_01_of_twenty_at_a_nearly_full_cap_two_pass() {
    let server = Server::start();
    let ((one, _events), (other, _others)) = (open(&server).await, open(&server).await);
    let all = [Cap { most: 5_000_000, ..caps(&one)[0].clone() }];
    reserve(&one, 1, &all, 4_750_000).await.unwrap();
    let attempt = |n: u128| reserve(if n.is_multiple_of(2) { &one } else { &other }, n, &all, 100_000);
    let reserved = futures_util::future::try_join_all((2..22).map(attempt)).await.unwrap();
    assert_eq!(reserved.iter().filter(|reserved| matches!(reserved, Reserved::Yes(_))).count(), 2);
    assert_eq!(one.used(&all).await, Ok(vec![4_950_000]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_done_though_the_reply_was_lost_is_done_once() {
    let (server, clock) = (Server::start(), Clock::system());
    let proxy = Proxy::before(server.port).await;
    let (store, _events) = RedisStore::open(short(proxy.url()), clock.clone()).unwrap();
    assert!(store.connected(TIMEOUT).await);
    let (caps, none) = (caps(&store), []);
    let saved = async || store.credit(OpId(9), &[saving("cache", 1, 10)]).await;
    assert_eq!(reserve(&store, 1, &caps, 10).await, Ok(Reserved::Yes(vec![10, 10])));

    proxy.lose_a_reply();
    assert!(reserve(&store, 2, &none, 10).await.is_err() && proxy.has_lost_it());
    recovery(&store, &clock).await;
    assert_eq!(reserve(&store, 2, &none, 10).await, Ok(Reserved::Yes(Vec::new())));
    assert_eq!(lines(&store).await, [line("open", "", 2, 20)]);

    proxy.lose_a_reply();
    assert!(settle(&store, 1, Settlement::Billed(7)).await.is_err() && proxy.has_lost_it());
    recovery(&store, &clock).await;
    assert_eq!(settle(&store, 1, Settlement::Billed(7)).await, Ok(false));
    assert_eq!(reserve(&store, 1, &caps, 10).await, Ok(Reserved::Yes(vec![7, 7])), "it was, and is over");
    assert_eq!(lines(&store).await, [line("billed", "answered", 1, 7), line("open", "", 1, 10)]);

    proxy.lose_a_reply();
    assert!(saved().await.is_err() && proxy.has_lost_it());
    recovery(&store, &clock).await;
    saved().await.unwrap();
    let all = Days { from: String::new(), to: "~".to_owned() };
    assert_eq!(store.saved(&all).await.unwrap(), [saving("cache", 1, 10)]);

    proxy.lose_a_reply();
    assert!(settle(&store, 3, Settlement::NotBilled).await.is_err() && proxy.has_lost_it());
    recovery(&store, &clock).await;
    assert_eq!(reserve(&store, 3, &caps, 10).await, Ok(Reserved::TooLate), "given up, though nobody heard that it was");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_store_reserves_nothing_and_settles_all() {
    let server = Server::start();
    let (store, _events) = open(&server).await;
    let caps = caps(&store);
    for id in 0..4 {
        reserve(&store, id, &caps, 10).await.unwrap();
    }
    server.say("CONFIG SET maxmemory 1");
    let full = StoreError::Failed("Redis: OOM: it is full".to_owned());
    assert_eq!(reserve(&store, 8, &caps, 10).await, Err(full.clone()));
    assert_eq!(store.credit(OpId(1), &[saving("cache", 1, 10)]).await, Err(full));
    for (id, settlement, changes) in [
        (0, Settlement::Billed(7), true),
        (1, Settlement::NotBilled, true),
        (2, Settlement::Unknown, true),
        (9, Settlement::NotBilled, false),
    ] {
        assert_eq!(settle(&store, id, settlement).await, Ok(changes), "{id}");
    }
    assert_eq!((store.used(&caps).await, ledger(&store).await.len()), (Ok(vec![27, 27]), 4));
    assert_eq!((store.first("full", DAY).await, store.accept_loss().await), (Ok(true), Ok(())));
    server.say("CONFIG SET maxmemory 0");
    assert_eq!(reserve(&store, 8, &caps, 10).await, Ok(Reserved::Yes(vec![37, 37])));
    assert_eq!(reserve(&store, 9, &caps, 10).await, Ok(Reserved::TooLate));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_neither_reserves_nor_says_that_records_were_lost() {
    let (server, clock) = (Server::start(), Clock::system());
    let (store, _events) = open(&server).await;
    let caps = caps(&store);
    reserve(&store, 1, &caps, 10).await.unwrap();
    server.say("REPLICAOF 127.0.0.1 1");
    assert!(reserve(&store, 2, &caps, 10).await.is_err());
    assert!(settle(&store, 1, Settlement::NotBilled).await.is_err());
    server.say("REPLICAOF NO ONE");
    recovery(&store, &clock).await;
    assert_eq!(reserve(&store, 2, &caps, 10).await, Ok(Reserved::Yes(vec![20, 20])));
}
