//! Paid writes: where each stands when its process has ended, and what of them is let go.

use std::fmt::Debug;

use super::super::super::conformance::answers::answer;
use super::super::super::conformance::writes::{LEASE, TIMEOUT, WHAT, about, claim, done, look, to};
use super::super::super::write::{Claim, Claimed, End, Found, Intention, Settled, Writes};
use super::durable::{kill, rows, to_be_killed};
use super::histories::killed;
use super::trouble::{hold, limit};
use super::*;

const OWNED: Claimed = Claimed::Owned { turn: 0 };
const DAY: Duration = Duration::from_hours(24);

/// A world, and the store that is in it.
fn here() -> (Arc<SqliteStore>, World) {
    let (directory, clock) = (tempfile::tempdir().unwrap(), Clock::manual(Timestamp(START)));
    let store = SqliteStore::open(&directory.path().join("store.db"), clock.clone(), PATIENCE).unwrap();
    (Arc::clone(&store), World { store, clock, home: Box::new(directory) })
}

/// Ended in order, and opened again.
async fn ended(world: &World) -> World {
    world.store.close().await.unwrap();
    killed(world)
}

/// Both after an end in order and after one that was not, and once more.
async fn after_each_end<T: PartialEq + Debug>(prepare: impl AsyncFn(&World), expected: T, found: impl AsyncFn(&World) -> T) {
    for in_order in [false, true] {
        let world = world();
        prepare(&world).await;
        let next = if in_order { ended(&world).await } else { killed(&world) };
        let once_more = killed(&next);
        assert_eq!(found(&next).await, expected, "in order: {in_order}");
        assert_eq!(found(&once_more).await, expected, "once more");
    }
}

async fn unknown(world: &World) {
    world.sends(WHAT, 1).await;
    assert!(world.finish(WHAT, 1, End::Unknown).await);
}

async fn settled_as_not_sent(world: &World) {
    unknown(world).await;
    let found = Found::NotSent(world.clock.now().after(DAY));
    assert_eq!(world.resolve(1, found).await, Settled::Yes(about("first")));
}

#[tokio::test]
async fn what_was_claimed_is_free_when_its_process_has_ended() {
    let claims = async |world: &World| assert_eq!(world.claim(claim(1)).await, OWNED);
    after_each_end(claims, (Claimed::Free, OWNED), async |world| (world.claim(look()).await, world.claim(claim(2)).await)).await;
    let claims = async |world: &World| {
        settled_as_not_sent(world).await;
        assert_eq!(world.claim(claim(2)).await, Claimed::Owned { turn: 1 });
    };
    after_each_end(claims, Claimed::Owned { turn: 1 }, async |world| world.claim(claim(3)).await).await;
}

#[tokio::test]
async fn what_was_being_sent_is_unknown_at_once_and_settled_no_earlier_for_that() {
    let from = Timestamp(START).after(LEASE).after(TIMEOUT);
    let found = async |world: &World| {
        let line = world.store.unresolved(10).await.unwrap().remove(0);
        let settled = world.resolve(1, Found::Sent(answer(0, b""))).await;
        (world.claim(claim(2)).await, line.unknown, line.settle_from, settled)
    };
    let expected = (Claimed::Unknown, true, from, Settled::NotBefore(from));
    after_each_end(async |world: &World| world.sends(WHAT, 1).await, expected, found).await;
    let old = world();
    old.sends(WHAT, 1).await;
    let world = killed(&old);
    world.clock.advance(LEASE + TIMEOUT);
    assert_eq!(world.resolve(1, Found::Sent(answer(60, b"found"))).await, Settled::Yes(about("first")));
    assert_eq!(world.claim(claim(2)).await, Claimed::Done(answer(60, b"found")));
}

#[tokio::test]
async fn what_is_known_or_unknown_stays_so_when_its_process_has_ended() {
    let claims = async |world: &World| world.claim(claim(2)).await;
    after_each_end(unknown, Claimed::Unknown, claims).await;
    let sent = async |world: &World| {
        world.sends(WHAT, 1).await;
        assert!(world.finish(WHAT, 1, done()).await);
    };
    after_each_end(sent, Claimed::Done(answer(0, b"sent")), claims).await;
    let settled = async |world: &World| {
        unknown(world).await;
        assert_eq!(world.resolve(1, Found::Sent(answer(0, b"said"))).await, Settled::Yes(about("first")));
    };
    after_each_end(settled, Claimed::Done(answer(0, b"said")), claims).await;
    after_each_end(settled_as_not_sent, Claimed::Owned { turn: 1 }, claims).await;
    let freed = async |world: &World| {
        world.sends(WHAT, 1).await;
        assert!(world.finish(WHAT, 1, End::Free).await);
    };
    after_each_end(freed, OWNED, claims).await;
}

#[tokio::test]
async fn a_killed_process_leaves_every_send_that_it_was_granted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let last = kill("writes::body_of_the_killed_process", &path);
    let store = open(&path).unwrap();
    for n in 0..=last {
        assert_eq!(store.claim(to(Intention(n.into()), 2)).await, Ok(Claimed::Unknown), "{n} of {last}");
    }
}

/// Not a test by itself: the other process of the test above.
#[tokio::test]
async fn body_of_the_killed_process() {
    let Some(path) = to_be_killed() else { return };
    let world = World { store: open(&path).unwrap(), clock: Clock::manual(Timestamp(START)), home: Box::new(()) };
    for n in 0.. {
        world.sends(Intention(n), 1).await;
        println!("acked {n}");
    }
}

#[tokio::test]
async fn what_is_over_is_swept_and_what_may_have_been_sent_never_is() {
    let (store, world) = here();
    let of_each = async |kind: u128| {
        let what = (0..50).map(move |n| Intention(kind << 64 | n));
        for what in what.clone() {
            assert_eq!(world.claim(to(what, 1)).await, OWNED);
        }
        what
    };
    drop(of_each(1).await);
    for what in of_each(2).await {
        assert!(world.send(what, 1).await && world.finish(what, 1, done()).await);
    }
    for what in of_each(3).await {
        assert!(world.send(what, 1).await);
    }
    for what in of_each(4).await {
        assert!(world.send(what, 1).await && world.finish(what, 1, End::Unknown).await);
    }
    settled_as_not_sent(&world).await;
    let counts = async || (rows(&store, "write").await, rows(&store, "write_answer").await);
    assert_eq!(counts().await, (201, 50));
    let almost = DAY.saturating_sub(Duration::from_micros(1));
    for (wait, left) in [(almost, 101), (Duration::from_mins(1), 100), (DAY * 3_650, 100)] {
        world.clock.advance(wait);
        // The sweep that is due with the first of them is over when the second begins.
        store.forget("geo", &[0; 32]).await.unwrap();
        store.forget("geo", &[0; 32]).await.unwrap();
        assert_eq!(counts().await, (left, 0));
    }
}

#[tokio::test]
async fn whoever_changes_nothing_does_not_wait_for_those_who_write() {
    let (store, world) = here();
    let [replayed, held, unclear, free] = [1, 2, 3, 4].map(Intention);
    world.sends(replayed, 1).await;
    assert!(world.finish(replayed, 1, done()).await);
    world.sends(held, 1).await;
    world.sends(unclear, 1).await;
    assert!(world.finish(unclear, 1, End::Unknown).await);
    let (go_on, writer) = hold(&store);
    assert_eq!(world.claim(to(replayed, 2)).await, Claimed::Done(answer(0, b"sent")));
    assert_eq!(world.claim(to(held, 2)).await, Claimed::Held { left: LEASE });
    assert_eq!(world.claim(to(unclear, 2)).await, Claimed::Unknown);
    assert_eq!(world.claim(Claim { look: true, ..to(free, 2) }).await, Claimed::Free);
    assert_eq!(store.unresolved(10).await.map(|lines| lines.len()), Ok(2));
    go_on.send(()).unwrap();
    assert_eq!(writer.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn what_cannot_be_written_down_changes_nothing() {
    let (store, world) = here();
    world.sends(WHAT, 1).await;
    let mut big = answer(0, b"");
    big.body = vec![1; 1_000_000].into();
    limit(&store, "max_page_count = 60").await;
    let outcome = store.finish(WHAT, OpId(1), End::Done(big.clone())).await;
    assert!(matches!(&outcome, Err(StoreError::Failed(text)) if text.contains("full")), "{outcome:?}");
    assert_eq!(world.claim(claim(2)).await, Claimed::Held { left: LEASE });
    limit(&store, "max_page_count = 100000").await;
    assert!(world.finish(WHAT, 1, End::Done(big.clone())).await, "its owner tries again");
    assert_eq!(world.claim(claim(2)).await, Claimed::Done(big));
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_not_taken_for_none() {
    let (store, world) = here();
    world.sends(WHAT, 1).await;
    let damage = |db: &Db<'_>| Ok(db.conn.execute("UPDATE write SET record = json_remove(record, '$.owner')", [])?);
    assert_eq!(store.write(damage).await, Ok(1));
    assert_eq!(store.claim(claim(2)).await, Err(unreadable()));
    assert_eq!(store.finish(WHAT, OpId(1), End::Free).await, Err(unreadable()));
    store.close().await.unwrap();
    let path = world.home.downcast_ref::<tempfile::TempDir>().unwrap().path().join("store.db");
    let refused = open(&path).err().map(|error| error.to_string());
    assert!(refused.as_ref().is_some_and(|text| text.contains("store.db")), "{refused:?}");
}
