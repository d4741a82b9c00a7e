//! Any history, with deaths of the process in it.

use proptest::prelude::*;

use super::super::super::conformance::histories::{any_history, play};
use super::super::super::conformance::intentions::{self, any_writes};
use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_history_of_money_is_counted_as_it_was(history in any_history(60)) {
        play(world(), &history, |world| Ok(killed(&world)));
    }

    #[test]
    fn any_intention_is_sent_once(history in any_writes(60, false)) {
        intentions::play(world(), &history, |world| Ok(killed(&world)));
    }

    #[test]
    fn any_intention_is_sent_again_as_the_same(history in any_writes(60, true)) {
        intentions::play(world(), &history, |world| Ok(killed(&world)));
    }
}

/// What the store's process would leave if it died now: its files as they are. Another opens them.
pub(super) fn killed(world: &World) -> World {
    let old = world.home.downcast_ref::<tempfile::TempDir>().unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(old.path().join("store.db"), directory.path().join("store.db")).unwrap();
    let log = old.path().join("store.db-wal");
    if log.exists() {
        std::fs::copy(log, directory.path().join("store.db-wal")).unwrap();
    }
    let store = SqliteStore::open(&directory.path().join("store.db"), world.clock.clone(), PATIENCE).unwrap();
    World { store, clock: world.clock.clone(), home: Box::new(directory) }
}
