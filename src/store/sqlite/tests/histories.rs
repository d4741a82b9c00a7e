//! Any history of money, with deaths of the process in it.

use proptest::prelude::*;

use super::super::super::conformance::histories::{any_history, play};
use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_history_of_money_is_counted_as_it_was(history in any_history(60)) {
        play(world(), &history, |world| Ok(killed(&world)));
    }
}

/// What the store's process would leave if it died now: its files as they are. Another opens them.
fn killed(world: &World) -> World {
    let old = world.home.downcast_ref::<tempfile::TempDir>().unwrap();
    let directory = tempfile::tempdir().unwrap();
    for name in ["store.db", "store.db-wal"] {
        std::fs::copy(old.path().join(name), directory.path().join(name)).unwrap();
    }
    let store = SqliteStore::open(&directory.path().join("store.db"), world.clock.clone(), PATIENCE).unwrap();
    World { store, clock: world.clock.clone(), home: Box::new(directory) }
}
