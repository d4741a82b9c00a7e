//! What goes wrong is said, undone, and over when it is over.

use std::sync::mpsc;

use super::super::super::conformance::answers::answer;
use super::*;

const KEY: Digest = [7; 32];

/// The refusal to open `path`, in words.
fn refusal(path: &Path) -> String {
    open(path).err().expect("it must not open").to_string()
}

#[tokio::test]
async fn a_second_opening_is_refused_by_name_and_free_after_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let (path, alias) = (directory.path().join("store.db"), directory.path().join("alias.db"));
    let store = open(&path).unwrap();
    std::os::unix::fs::symlink(&path, &alias).unwrap();
    for name in [&path, &alias, &directory.path().join("./store.db")] {
        let held = open(name).err();
        let Some(StoreError::Held(text)) = &held else { panic!("{held:?}") };
        assert!(text.contains("store.db is in use by another tollgate: stop that one first"), "{text}");
    }
    store.close().await.unwrap();
    assert!(open(&alias).is_ok());
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let garbage = b"not a database, but somebody's only copy of it\n".repeat(400);
    std::fs::write(&path, &garbage).unwrap();
    let text = refusal(&path);
    assert!(text.contains("store.db") && text.contains("not a database"), "{text}");
    assert_eq!(std::fs::read(&path).unwrap(), garbage);

    let path = directory.path().join("foreign.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE answer (precious TEXT)").unwrap();
    let text = refusal(&path);
    assert!(text.contains("not a tollgate's"), "{text}");
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    drop(open(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", file::SCHEMA + 1).unwrap();
    let text = refusal(&path);
    assert!(text.contains("newer tollgate (schema 4, this one knows 3)"), "{text}");
}

#[tokio::test]
async fn a_damaged_page_is_an_error_not_a_panic() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = open(&path).unwrap();
    let mut big = answer(0, b"");
    big.body = vec![1; 100_000].into();
    store.keep("geo", &KEY, big).await.unwrap();
    store.close().await.unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let of_the_body = bytes.len() - 4 * 8192;
    bytes[of_the_body..].fill(0xA5);
    std::fs::write(&path, &bytes).unwrap();
    let store = open(&path).unwrap();
    for outcome in [store.answer(&KEY).await.map(drop), store.keep("geo", &KEY, answer(0, b"x")).await] {
        let Err(StoreError::Failed(text)) = outcome else { panic!("{outcome:?}") };
        assert!(text.contains("malformed"), "{text}");
    }
    drop(store);
    bytes[8192..].fill(0xA5);
    std::fs::write(&path, bytes).unwrap();
    let text = refusal(&path);
    assert!(text.contains("store.db") && text.contains("malformed"), "a ledger that cannot be read is not opened: {text}");
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "").unwrap();
    let inside_a_file = directory.path().join("file/store.db");
    for path in [&directory.path().join("missing/store.db"), &inside_a_file, Path::new("/proc/self/store.db"), directory.path()] {
        let text = refusal(path);
        assert!(text.contains(path.file_name().unwrap().to_str().unwrap()), "{text}");
    }
}

#[tokio::test]
async fn a_full_disk_fails_what_needs_room_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("full.db")).unwrap();
    store.keep("geo", &KEY, answer(0, b"small")).await.unwrap();
    limit(&store, "max_page_count = 40").await;
    let mut big = answer(0, b"");
    big.body = vec![1; 1_000_000].into();
    let outcome = store.keep("geo", &KEY, big.clone()).await;
    assert!(matches!(&outcome, Err(StoreError::Failed(text)) if text.contains("full")), "{outcome:?}");
    assert_eq!(store.answer(&KEY).await, Ok(Some(answer(0, b"small"))));
    limit(&store, "max_page_count = 100000").await;
    store.keep("geo", &KEY, big.clone()).await.unwrap();
    assert_eq!(store.answer(&KEY).await, Ok(Some(big)));
}

#[tokio::test]
async fn a_read_only_file_fails_writes_and_serves_reads() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("read-only.db");
    let store = open(&path).unwrap();
    store.keep("geo", &KEY, answer(0, b"kept")).await.unwrap();
    limit(&store, "query_only = ON").await;
    let outcome = store.raise_generation(OpId(1), "geo").await;
    assert!(matches!(&outcome, Err(StoreError::Failed(text)) if text.contains("readonly")), "{outcome:?}");
    assert!(store.answer(&KEY).await.unwrap().is_some());
    drop(store);
    let store = open(&path).unwrap();
    assert_eq!(store.raise_generation(OpId(1), "geo").await, Ok(1));
}

#[tokio::test]
async fn a_file_locked_from_outside_is_an_error_until_it_is_free() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locked.db");
    let store = SqliteStore::open(&path, Clock::manual(Timestamp(START)), Duration::from_millis(50)).unwrap();
    let outside = Connection::open(&path).unwrap();
    outside.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(store.raise_generation(OpId(1), "geo").await.is_err());
    outside.execute_batch("ROLLBACK").unwrap();
    let again = store.raise_generation(OpId(1), "geo").await;
    assert!(again == Ok(1) || again == Err(StoreError::Timeout), "{again:?}");
    while store.raise_generation(OpId(1), "geo").await.is_err() {}
    assert_eq!(store.generation("geo").await, Ok(1));
}

/// Keeps the writer busy until told to go on.
pub(super) fn hold(store: &Arc<SqliteStore>) -> (mpsc::Sender<()>, tokio::task::JoinHandle<Result<(), StoreError>>) {
    let (go_on, wait) = mpsc::channel();
    let store = Arc::clone(store);
    let held = tokio::spawn(async move {
        store
            .write(move |_| {
                let _ = wait.recv();
                Ok(())
            })
            .await
    });
    (go_on, held)
}

#[tokio::test]
async fn a_failed_operation_is_undone_alone_in_its_commit() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("together.db")).unwrap();
    let (go_on, held) = hold(&store);
    tokio::task::yield_now().await;
    let half_done = store.write(|db| {
        routes::raise_generation(db, OpId(2), "two")?;
        Err::<(), _>(unreadable())
    });
    let together = async {
        tokio::join!(store.raise_generation(OpId(1), "one"), half_done, store.raise_generation(OpId(3), "three"), async {
            go_on.send(()).unwrap();
        })
    };
    assert_eq!(together.await, (Ok(1), Err(unreadable()), Ok(1), ()));
    assert_eq!(held.await.unwrap(), Ok(()));
    let left = (store.generation("one").await, store.generation("two").await, store.generation("three").await);
    assert_eq!(left, (Ok(1), Ok(0), Ok(1)));
}

#[tokio::test]
async fn an_operation_out_of_time_may_still_be_done_and_its_repeat_counts_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("slow.db");
    let store = SqliteStore::open(&path, Clock::manual(Timestamp(START)), Duration::from_millis(20)).unwrap();
    let (go_on, held) = hold(&store);
    assert_eq!(held.await.unwrap(), Err(StoreError::Timeout));
    assert_eq!(store.raise_generation(OpId(1), "geo").await, Err(StoreError::Timeout));
    go_on.send(()).unwrap();
    store.close().await.unwrap();
    let store = open(&path).unwrap();
    assert_eq!(store.generation("geo").await, Ok(1));
    assert_eq!(store.raise_generation(OpId(1), "geo").await, Ok(1));
}

/// Sets a limit on the writer's connection.
pub(super) async fn limit(store: &SqliteStore, pragma: &'static str) {
    let set = move |db: &Db<'_>| Ok(db.conn.execute_batch(&format!("PRAGMA {pragma}"))?);
    store.write(set).await.unwrap();
}
