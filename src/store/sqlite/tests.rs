use super::super::conformance::{START, World, conformance};
use super::*;

mod durable;
mod histories;
mod ledger;
mod migrations;
mod spending;
mod trouble;
mod writes;

const PATIENCE: Duration = Duration::from_secs(20);

fn open(path: &Path) -> Result<Arc<SqliteStore>, StoreError> {
    SqliteStore::open(path, Clock::manual(Timestamp(START)), PATIENCE)
}

fn world() -> World {
    let directory = tempfile::tempdir().unwrap();
    let clock = Clock::manual(Timestamp(START));
    let store = SqliteStore::open(&directory.path().join("store.db"), clock.clone(), PATIENCE).unwrap();
    World { store, clock, home: Box::new(directory) }
}

conformance!(world);
