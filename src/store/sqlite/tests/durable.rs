//! What was answered for is there again, however the process ended.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::super::super::conformance::answers::answer;
use super::*;

const RULE: LockoutRule =
    LockoutRule { misses: 1, window: Duration::from_mins(1), first: Duration::from_mins(1), max: Duration::from_mins(1) };

/// A key made of a number.
fn key(n: u64) -> Digest {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&n.to_be_bytes());
    key
}

/// One record of every kind.
async fn fill(store: &SqliteStore) {
    store.keep("geo", &key(1), answer(0, b"paid for")).await.unwrap();
    store.raise_generation(OpId(1), "geo").await.unwrap();
    store
        .set_switch("geo", Switch { state: super::super::super::SwitchState::Off, reason: "why".into(), since: 1, until: None })
        .await
        .unwrap();
    store.guess(OpId(2), &[key(2)], RULE, Timestamp(u64::MAX)).await.unwrap();
    store.settle_guess(OpId(2), &[key(2)], RULE, true).await.unwrap();
}

async fn assert_filled(store: &SqliteStore) {
    assert_eq!(store.answer(&key(1)).await, Ok(Some(answer(0, b"paid for"))));
    assert_eq!(store.raise_generation(OpId(1), "geo").await, Ok(1), "the operation is remembered too");
    assert_eq!(store.switches().await.unwrap()[0].1.reason, "why");
    assert!(store.lockout(&key(2), RULE).await.unwrap().locked_until.is_some());
}

#[tokio::test]
async fn everything_is_there_after_close_and_after_drop() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = open(&path).unwrap();
    fill(&store).await;
    store.close().await.unwrap();
    store.close().await.unwrap();
    assert_eq!(store.answer(&key(1)).await, Err(writer::closed()));
    assert_eq!(store.forget("geo", &key(1)).await, Err(writer::closed()));
    assert!(!directory.path().join("store.db-wal").exists(), "closed in order, the log is gone");

    let store = open(&path).unwrap();
    assert_filled(&store).await;
    store.keep("geo", &key(3), answer(0, b"last")).await.unwrap();
    drop(store);
    let store = open(&path).unwrap();
    assert_filled(&store).await;
    assert!(store.answer(&key(3)).await.unwrap().is_some());
}

#[tokio::test]
async fn every_commit_is_forced_to_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("store.db")).unwrap();
    let pragmas = |db: &Db<'_>| {
        let number = |pragma| db.conn.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        Ok((number("synchronous")?, number("page_size")?, number("wal_autocheckpoint")?, number("foreign_keys")?))
    };
    assert_eq!(store.write(pragmas).await, Ok((2, 8192, 0, 1)));
}

#[tokio::test]
async fn files_copied_while_in_use_hold_all_that_was_answered_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let store = open(&path("store.db")).unwrap();
    fill(&store).await;
    std::fs::copy(path("store.db"), path("copy.db")).unwrap();
    std::fs::copy(path("store.db-wal"), path("copy.db-wal")).unwrap();
    assert_filled(&open(&path("copy.db")).unwrap()).await;
}

#[tokio::test]
async fn close_finishes_what_is_queued() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = open(&path).unwrap();
    let mut queued: Vec<_> = (0..500)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.keep("geo", &key(n), answer(0, b"x")).await })
        })
        .collect();
    queued.push(tokio::spawn(async move { store.close().await }));
    for outcome in queued {
        assert_eq!(outcome.await.unwrap(), Ok(()));
    }
    let store = open(&path).unwrap();
    assert_eq!(rows(&store, "answer").await, 500);
}

#[tokio::test]
async fn a_killed_process_has_lost_nothing_it_answered_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let last = kill("durable::body_of_the_killed_process", &path);
    let store = open(&path).unwrap();
    for n in 0..=last {
        assert!(store.answer(&key(n)).await.unwrap().is_some(), "{n} of {last}");
    }
}

/// Kills a process that runs one of these tests, when it has said `acked 200`. Returns the last number it acked.
pub(super) fn kill(body: &str, path: &Path) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("store::sqlite::tests::{body}"), "--nocapture"])
        .env(KILLED, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut acked = lines.by_ref().filter_map(|line| line.rsplit_once("acked ")?.1.parse::<u64>().ok());
    assert_eq!(acked.by_ref().nth(200), Some(200));
    let held = open(path).err();
    child.kill().unwrap();
    let last = acked.last().unwrap_or(200);
    child.wait().unwrap();
    assert!(matches!(held, Some(StoreError::Held(_))), "{held:?}");
    last
}

/// In a process that is to be killed: where its store is.
pub(super) fn to_be_killed() -> Option<PathBuf> {
    std::env::var_os(KILLED).map(PathBuf::from)
}

const KILLED: &str = "TOLLGATE_TEST_KILLED_STORE";

/// Not a test by itself: the other process of the test above.
#[tokio::test]
async fn body_of_the_killed_process() {
    let Some(path) = to_be_killed() else { return };
    let store = open(&path).unwrap();
    for n in 0.. {
        store.keep("geo", &key(n), answer(0, b"x")).await.unwrap();
        println!("acked {n}");
    }
}

#[tokio::test]
async fn what_has_lost_its_meaning_is_swept() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), Clock::manual(Timestamp(START)));
    let path = directory.path().join("other.db");
    let store = SqliteStore::open(&path, clock.clone(), PATIENCE).unwrap();
    for n in 0..300 {
        store.keep("geo", &key(n), answer(0, b"x")).await.unwrap();
    }
    fill(&store).await;
    clock.advance(Duration::from_hours(1));
    // Each of the next two commits sweeps a bounded part.
    store.keep("geo", &key(1_000), answer(3_600, b"fresh")).await.unwrap();
    store.close().await.unwrap();
    let store = SqliteStore::open(&path, clock.clone(), PATIENCE).unwrap();
    store.forget("geo", &key(1)).await.unwrap();
    store.close().await.unwrap();
    let store = SqliteStore::open(&path, clock, PATIENCE).unwrap();
    let left = (rows(&store, "answer").await, rows(&store, "body").await);
    assert_eq!((left, rows(&store, "lockout").await, rows(&store, "applied").await), ((1, 1), 0, 0));
    assert_eq!((rows(&store, "generation").await, rows(&store, "switch").await), (1, 1));
}

#[tokio::test]
async fn the_log_is_cut_when_it_is_long() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("store.db")).unwrap();
    let mut big = answer(0, b"");
    big.body = vec![1; 4 * 1024 * 1024].into();
    let mut longest = 0;
    for _ in 0..20 {
        store.keep("geo", &key(1), big.clone()).await.unwrap();
        longest = longest.max(std::fs::metadata(directory.path().join("store.db-wal")).unwrap().len());
    }
    assert!(longest < 80 * 1024 * 1024, "{longest}");
    assert_eq!(store.answer(&key(1)).await, Ok(Some(big)));
}

pub(super) async fn rows(store: &SqliteStore, table: &'static str) -> i64 {
    let count = move |db: &Db<'_>| Ok(db.conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?);
    store.read(count).await.unwrap()
}
