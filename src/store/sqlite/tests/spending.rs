//! No money is lost when a process dies, and none is counted that was not reserved.

use super::super::super::money::ledger::ORPHANED;
use super::super::super::money::{Cap, Days, Money, Reservation, Reserved, Settlement, Spent};
use super::durable::{kill, rows, to_be_killed};
use super::trouble::{hold, limit};
use super::*;
use crate::store::conformance::money::{cap, row};

pub(super) async fn reserve(store: &SqliteStore, id: u64, caps: &[Cap], amount: u64) -> Result<Reserved, StoreError> {
    store.reserve(Reservation { id: OpId(id.into()), caps, amount, row: row("2027-01-15") }).await
}

pub(super) async fn settle(store: &SqliteStore, id: u64, settlement: Settlement) -> Result<bool, StoreError> {
    store.settle(OpId(id.into()), settlement, "answered").await
}

pub(super) async fn ledger(store: &SqliteStore) -> Vec<Spent> {
    store.spent(&Days { from: String::new(), to: "~".to_owned() }).await.unwrap()
}

fn all() -> [Cap; 2] {
    [cap("all", 1_000_000), cap("geocode", 1_000_000)]
}

#[tokio::test]
async fn a_killed_process_has_spent_what_it_had_open() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let last = kill("spending::body_of_the_killed_spender", &path);
    let store = open(&path).unwrap();
    let (lines, used) = (ledger(&store).await, store.used(&all()).await.unwrap());
    assert!(lines.iter().all(|line| line.state == "billed" || line.state == "unknown"), "{lines:?}");
    assert!(lines.iter().all(|line| (line.state == "unknown") == (line.outcome == ORPHANED)), "{lines:?}");
    assert_eq!(used, [lines.iter().map(|line| line.micros).sum::<u64>(); 2]);
    for n in 0..=last {
        let billed = n % 2 == 0;
        assert_eq!(settle(&store, n, Settlement::NotBilled).await, Ok(!billed), "{n} of {last}");
    }
    let known = ledger(&store).await.into_iter().filter(|line| line.state != "unknown").map(|line| line.calls).sum::<u64>();
    assert!(known > last, "{known} of {last}");
}

/// Not a test by itself: the other process of the test above. Every second attempt is settled.
#[tokio::test]
async fn body_of_the_killed_spender() {
    let Some(path) = to_be_killed() else { return };
    let store = open(&path).unwrap();
    for n in 0.. {
        reserve(&store, n, &all(), 10).await.unwrap();
        if n % 2 == 0 {
            settle(&store, n, Settlement::Billed(7)).await.unwrap();
        }
        println!("acked {n}");
    }
}

#[tokio::test]
async fn what_was_open_is_unknown_after_a_restart_and_settled_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = open(&path).unwrap();
    for n in 0..3 {
        reserve(&store, n, &all(), 10).await.unwrap();
    }
    settle(&store, 2, Settlement::Billed(8)).await.unwrap();
    store.close().await.unwrap();

    let store = open(&path).unwrap();
    let words = |lines: Vec<Spent>| lines.into_iter().map(|s| (s.state, s.outcome, s.calls, s.micros)).collect::<Vec<_>>();
    let word = |state: &str, outcome: &str, calls, micros| (state.to_owned(), outcome.to_owned(), calls, micros);
    let expected = [word("billed", "answered", 1, 8), word("unknown", ORPHANED, 2, 20)];
    assert_eq!(words(ledger(&store).await), expected);
    assert_eq!(store.used(&all()).await, Ok(vec![28, 28]));
    assert_eq!(settle(&store, 0, Settlement::Unknown).await, Ok(false));
    assert_eq!(settle(&store, 0, Settlement::Billed(9)).await, Ok(true));
    assert_eq!(settle(&store, 0, Settlement::NotBilled).await, Ok(false));
    assert_eq!(store.used(&all()).await, Ok(vec![27, 27]));
}

#[tokio::test]
async fn a_reserve_out_of_time_is_given_up_in_whatever_order_it_arrives() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("slow.db");
    let store = SqliteStore::open(&path, Clock::manual(Timestamp(START)), Duration::from_millis(20)).unwrap();
    let (go_on, held) = hold(&store);
    assert_eq!(held.await.unwrap(), Err(StoreError::Timeout));
    assert_eq!(reserve(&store, 1, &all(), 10).await, Err(StoreError::Timeout));
    assert_eq!(settle(&store, 1, Settlement::NotBilled).await, Err(StoreError::Timeout));
    assert_eq!(settle(&store, 2, Settlement::NotBilled).await, Err(StoreError::Timeout));
    assert_eq!(reserve(&store, 2, &all(), 10).await, Err(StoreError::Timeout));
    go_on.send(()).unwrap();
    store.close().await.unwrap();
    let store = open(&path).unwrap();
    assert_eq!(store.used(&all()).await, Ok(vec![0, 0]));
    assert_eq!(reserve(&store, 2, &all(), 10).await, Ok(Reserved::TooLate));
    assert_eq!((rows(&store, "attempt").await, rows(&store, "given_up").await), (1, 1));
}

#[tokio::test]
async fn a_full_disk_counts_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("full.db")).unwrap();
    limit(&store, "max_page_count = 20").await;
    let mut reserved = 0;
    let full = loop {
        match reserve(&store, reserved, &all(), 10).await {
            Ok(_) => reserved += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(&full, StoreError::Failed(text) if text.contains("full")), "{full:?}");
    assert_eq!(store.used(&all()).await, Ok(vec![reserved * 10; 2]));
    assert_eq!(ledger(&store).await[0].calls, reserved);
    assert_eq!(settle(&store, 0, Settlement::Billed(10)).await, Ok(true), "what needs no room is done");
    limit(&store, "max_page_count = 100000").await;
    assert_eq!(reserve(&store, reserved, &all(), 10).await, Ok(Reserved::Yes(vec![(reserved + 1) * 10; 2])));
}

#[tokio::test]
async fn a_locked_or_read_only_file_counts_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locked.db");
    let store = SqliteStore::open(&path, Clock::manual(Timestamp(START)), Duration::from_millis(50)).unwrap();
    limit(&store, "query_only = ON").await;
    assert!(reserve(&store, 1, &all(), 10).await.is_err());
    assert!(settle(&store, 1, Settlement::NotBilled).await.is_err());
    let outside = Connection::open(&path).unwrap();
    outside.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(reserve(&store, 2, &all(), 10).await.is_err());
    assert_eq!(store.used(&all()).await, Ok(vec![0, 0]));
    outside.execute_batch("ROLLBACK").unwrap();
    drop(store);
    let store = open(&path).unwrap();
    assert_eq!((store.used(&all()).await, ledger(&store).await), (Ok(vec![0, 0]), Vec::new()));
}

#[tokio::test]
async fn a_counter_that_does_not_add_up_is_an_error_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("store.db")).unwrap();
    reserve(&store, 1, &all(), 10).await.unwrap();
    let broken = |db: &Db<'_>| Ok(db.conn.execute("UPDATE counter SET used = 3 WHERE name = 'geocode'", [])?);
    assert_eq!(store.write(broken).await, Ok(1));
    let outcome = settle(&store, 1, Settlement::NotBilled).await;
    assert!(matches!(outcome, Err(StoreError::Failed(_))), "{outcome:?}");
    assert_eq!((store.used(&all()).await, ledger(&store).await[0].state.as_str()), (Ok(vec![10, 3]), "open"));
}
