//! What the ledger lets go of, and when.

use super::super::super::money::{Cap, Money, Reserved, Saved, Settlement};
use super::durable::rows;
use super::spending::{ledger, reserve, settle};
use super::*;
use crate::store::conformance::money::cap;

const DAY: Duration = Duration::from_hours(24);

/// Opened again, so that a sweep is due with the next commit, and that is over when it is closed.
async fn sweep(path: &Path, clock: &Clock) -> Arc<SqliteStore> {
    let store = SqliteStore::open(path, clock.clone(), PATIENCE).unwrap();
    store.forget("geo", &[0; 32]).await.unwrap();
    store.close().await.unwrap();
    SqliteStore::open(path, clock.clone(), PATIENCE).unwrap()
}

#[tokio::test]
async fn settled_rows_become_sums_and_the_others_stay() {
    let directory = tempfile::tempdir().unwrap();
    let (path, clock, caps) = (directory.path().join("store.db"), Clock::manual(Timestamp(START)), [cap("all", 1_000)]);
    let store = SqliteStore::open(&path, clock.clone(), PATIENCE).unwrap();
    for n in 0..20 {
        reserve(&store, n, &caps, 10).await.unwrap();
    }
    for n in 0..9 {
        settle(&store, n, Settlement::Billed(n)).await.unwrap();
    }
    settle(&store, 9, Settlement::NotBilled).await.unwrap();
    settle(&store, 10, Settlement::Unknown).await.unwrap();
    store.close().await.unwrap();

    let store = sweep(&path, &clock).await;
    let (before, used) = (ledger(&store).await, store.used(&caps).await);
    store.close().await.unwrap();
    clock.advance(DAY * 35);
    let store = sweep(&path, &clock).await;
    assert_eq!((rows(&store, "attempt").await, rows(&store, "spent").await), (20, 0), "not yet");
    store.close().await.unwrap();
    clock.advance(Duration::from_secs(1));
    let store = sweep(&path, &clock).await;
    assert_eq!((rows(&store, "attempt").await, rows(&store, "spent").await), (10, 2));
    assert_eq!((ledger(&store).await, store.used(&caps).await), (before, used));

    for n in 10..20 {
        assert_eq!(settle(&store, n, Settlement::Billed(1)).await, Ok(true), "{n}");
    }
    assert_eq!(settle(&store, 0, Settlement::NotBilled).await, Ok(false), "its id is not known any more");
    assert_eq!(reserve(&store, 0, &caps, 10).await, Ok(Reserved::TooLate));
    store.close().await.unwrap();
    clock.advance(DAY * 36);
    let store = sweep(&path, &clock).await;
    let lines: Vec<_> = ledger(&store).await.into_iter().map(|line| (line.state, line.calls, line.micros)).collect();
    assert_eq!(lines, [("billed".to_owned(), 19, 36 + 10), ("not_billed".to_owned(), 1, 0)]);
    assert_eq!((rows(&store, "attempt").await, rows(&store, "spent").await, rows(&store, "given_up").await), (0, 2, 0));
}

#[tokio::test]
async fn a_backlog_is_summed_in_pieces() {
    let directory = tempfile::tempdir().unwrap();
    let (path, clock) = (directory.path().join("store.db"), Clock::manual(Timestamp(START)));
    let store = SqliteStore::open(&path, clock.clone(), PATIENCE).unwrap();
    let attempt = async |n: u64| {
        reserve(&store, n, &[], 10).await.unwrap();
        settle(&store, n, Settlement::Billed(3)).await.unwrap();
    };
    futures_util::future::join_all((0..300).map(attempt)).await;
    store.close().await.unwrap();
    clock.advance(DAY * 36);
    let store = sweep(&path, &clock).await;
    let whole = |store| async move { ledger(store).await.into_iter().map(|line| (line.calls, line.micros)).collect::<Vec<_>>() };
    assert_eq!((rows(&store, "attempt").await, whole(&store).await), (300 - 256, vec![(300, 900)]));
    store.close().await.unwrap();
    let store = sweep(&path, &clock).await;
    assert_eq!((rows(&store, "attempt").await, whole(&store).await), (0, vec![(300, 900)]));
}

#[tokio::test]
async fn counters_marks_and_tombstones_lapse() {
    let directory = tempfile::tempdir().unwrap();
    let (path, clock) = (directory.path().join("store.db"), Clock::manual(Timestamp(START)));
    let store = SqliteStore::open(&path, clock.clone(), PATIENCE).unwrap();
    let until = |ends| [Cap { ends, ..cap("caller", 100) }];
    let (tomorrow, end) = (clock.now().after(DAY), Timestamp(u64::MAX));
    reserve(&store, 1, &[until(tomorrow)[0].clone(), Cap { ends: end, ..cap("ever", 100) }], 10).await.unwrap();
    settle(&store, 2, Settlement::NotBilled).await.unwrap();
    store.first("half", DAY).await.unwrap();
    let saved = Saved {
        day: "2027-01-15".to_owned(),
        route: "geo".to_owned(),
        caller: "till".to_owned(),
        cause: "cache".to_owned(),
        currency: "USD".to_owned(),
        requests: 1,
        micros: 10,
    };
    store.credit(OpId(1), &[saved]).await.unwrap();
    let counts = async |store: &SqliteStore| {
        [rows(store, "counter").await, rows(store, "given_up").await, rows(store, "mark").await, rows(store, "saved").await]
    };
    store.close().await.unwrap();
    for (days, expected) in [(0, [2, 1, 1, 1]), (1, [2, 1, 0, 1]), (2, [2, 0, 0, 1]), (37, [2, 0, 0, 1]), (1, [1, 0, 0, 1])] {
        clock.advance(DAY * days);
        let store = sweep(&path, &clock).await;
        assert_eq!(counts(&store).await, expected, "{days} days later");
        store.close().await.unwrap();
    }
    // The same name with another window: the late settlement finds its own counter gone, and leaves this one alone.
    let store = SqliteStore::open(&path, clock.clone(), PATIENCE).unwrap();
    reserve(&store, 3, &until(end), 7).await.unwrap();
    assert_eq!(settle(&store, 1, Settlement::NotBilled).await, Ok(true));
    assert_eq!(store.used(&[cap("caller", 100), cap("ever", 100)]).await, Ok(vec![7, 0]));
}
