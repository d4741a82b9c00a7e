//! A file of an earlier version opens and keeps what is in it.

use super::super::super::conformance::answers::answer;
use super::super::super::conformance::writes::{WHAT, claim};
use super::super::super::money::{Money, Reservation, Reserved};
use super::super::super::write::{Claimed, Writes};
use super::durable::rows;
use super::*;
use crate::store::conformance::money::{cap, row};

/// A file as this version left it, with one answer in it and one generation raised.
fn of_version(path: &Path, version: usize) -> Connection {
    let conn = Connection::open(path).unwrap();
    conn.pragma_update(None, "page_size", 8192).unwrap();
    conn.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    for step in [include_str!("../schema/1.sql"), include_str!("../schema/2.sql")].iter().take(version) {
        conn.execute_batch(step).unwrap();
    }
    conn.pragma_update(None, "application_id", 0x746f_6c6c).unwrap();
    conn.pragma_update(None, "user_version", i64::try_from(version).unwrap()).unwrap();
    let db = Db { conn: &conn, now: Timestamp(START) };
    answers::keep(&db, "geo", &[1; 32], &answer(0, b"paid for")).unwrap();
    routes::raise_generation(&db, OpId(1), "geo").unwrap();
    conn
}

async fn assert_kept(store: &SqliteStore) {
    assert_eq!(store.answer(&[1; 32]).await, Ok(Some(answer(0, b"paid for"))));
    assert_eq!((store.generation("geo").await, store.raise_generation(OpId(1), "geo").await), (Ok(1), Ok(1)));
}

#[tokio::test]
async fn a_file_of_the_first_version_gains_what_is_new_and_keeps_its_records() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    drop(of_version(&path, 1));
    let caps = [cap("all", 100)];
    let reservation = || Reservation { id: OpId(1), caps: &caps, amount: 10, row: row("2027-01-15") };
    let store = open(&path).unwrap();
    assert_kept(&store).await;
    assert_eq!(store.reserve(reservation()).await, Ok(Reserved::Yes(vec![10])));
    drop(store);
    let store = open(&path).unwrap();
    assert_kept(&store).await;
    assert_eq!(store.reserve(reservation()).await, Ok(Reserved::Yes(vec![10])), "opened again, it is as it was");
}

#[tokio::test]
async fn a_file_of_the_second_version_keeps_its_money_and_gains_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let conn = of_version(&path, 2);
    conn.execute("INSERT INTO counter (name, used, ends) VALUES ('all', 70, 9223372036854775807)", []).unwrap();
    drop(conn);
    let store = open(&path).unwrap();
    assert_kept(&store).await;
    assert_eq!(store.used(&[cap("all", 100)]).await, Ok(vec![70]));
    let world = World { store: store.clone(), clock: Clock::manual(Timestamp(START)), home: Box::new(()) };
    world.sends(WHAT, 1).await;
    drop((store, world));
    let store = open(&path).unwrap();
    assert_kept(&store).await;
    assert_eq!(store.claim(claim(2)).await, Ok(Claimed::Unknown));
}

#[tokio::test]
async fn old_and_new_files_have_one_schema() {
    let directory = tempfile::tempdir().unwrap();
    let new = directory.path().join("new.db");
    let schema = |db: &Db<'_>| {
        let mut statement = db.conn.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?)))?;
        let version: i64 = db.conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
        Ok((rows.collect::<Result<Vec<_>, _>>()?, version))
    };
    let new = open(&new).unwrap().read(schema).await;
    for version in [1, 2] {
        let old = directory.path().join(format!("{version}.db"));
        drop(of_version(&old, version));
        assert_eq!(open(&old).unwrap().read(schema).await, new, "{version}");
    }
}

#[tokio::test]
async fn a_migration_that_fails_leaves_the_file_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let conn = of_version(&path, 1);
    conn.execute_batch("CREATE TABLE mark (in_the_way TEXT)").unwrap();
    drop(conn);
    let refused = open(&path).err();
    let Some(StoreError::Failed(text)) = &refused else { panic!("{refused:?}") };
    assert!(text.contains("store.db"), "{text}");
    let conn = Connection::open(&path).unwrap();
    let version: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    let table = |name: &str| conn.table_exists(None, name).unwrap();
    assert_eq!((version, table("counter"), table("answer")), (1, false, true));
    conn.execute_batch("DROP TABLE mark").unwrap();
    drop(conn);
    let store = open(&path).unwrap();
    assert_kept(&store).await;
    assert_eq!(rows(&store, "counter").await, 0);
}
