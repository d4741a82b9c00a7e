//! Copies of the store: what was said to be sent is in one of them, if there are any.

use super::super::super::write::{Claimed, End, Writes};
use super::outage::{becomes, recovery};
use super::writes::{finish, kept, open, send, sends};
use super::*;
use crate::store::conformance::writes::{OWNED, WHAT, claim, to};
use crate::store::write::Intention;

fn master() -> Server {
    Server::with(&["--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"])
}

/// A copy that is up to date.
async fn copy_of(master: &Server) -> Server {
    let copy = Server::with(&["--save", "", "--replicaof", "127.0.0.1", &master.port.to_string()]);
    becomes("it is sent what is there", || is_online(master)).await;
    // Whatever is written from now on it is told, a second later at first.
    master.say("SET begun 1");
    becomes("up to date", || copy.say("EXISTS begun") == ":1\r\n").await;
    copy
}

fn is_online(master: &Server) -> bool {
    master.say("INFO replication").contains("state=online")
}

/// How often it was waited for a copy.
fn waits(server: &Server) -> u64 {
    let stats = server.say("INFO commandstats");
    let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_wait:calls="));
    calls.map_or(0, |calls| calls.split(',').next().unwrap().parse().unwrap())
}

/// How many copies it is known to have.
async fn known(store: &RedisStore) -> Option<u64> {
    store.copies.look(&store.link).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_copy_nothing_waits_for_one() {
    let server = Server::start();
    let (store, _events) = open(options(&server)).await;
    for n in 0..20 {
        sends(&store, Intention(n), 1).await;
    }
    assert_eq!((waits(&server), known(&store).await), (0, Some(0)));
    assert_eq!(server.say("CLIENT LIST TYPE normal").lines().filter(|line| line.contains("addr=")).count(), 2, "and this one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_sent_is_in_a_copy_before_the_first_byte() {
    let master = master();
    let copy = copy_of(&master).await;
    let (store, _events) = open(options(&master)).await;
    for n in 0..20 {
        let what = Intention(n);
        assert_eq!(store.claim(to(what, 1)).await, Ok(OWNED));
        let name = store.keys().write(what);
        assert_eq!(send(&store, what, 1).await, Ok(true));
        assert!(copy.say(&format!("HGET {name} state")).contains("sending"), "{n}");
    }
    assert_eq!(waits(&master), 20);
    assert!(finish(&store, Intention(0), 1, End::Done(kept())).await.unwrap());
    assert_eq!(waits(&master), 20, "nothing else waits");
    let many = futures_util::future::join_all((100..200).map(|n| sends(&store, Intention(n), 1)));
    tokio::time::timeout(TIMEOUT, many).await.expect("many at once wait together");
    assert_eq!(*store.link.connections().borrow(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_word_of_the_copy_nothing_is_sent_and_nobody_else_waits() {
    let (master, clock) = (master(), Clock::system());
    let copy = copy_of(&master).await;
    let timeout = Duration::from_secs(1);
    let (store, _events) = open(Options { timeout, ..options(&master) }).await;
    sends(&store, Intention(1), 1).await;
    copy.signal("STOP");
    for n in 2..4 {
        assert_eq!(store.claim(to(Intention(n), 1)).await, Ok(OWNED));
        let since = clock.ticks();
        let sending = send(&store, Intention(n), 1);
        let others = async {
            for _ in 0..20 {
                assert_eq!(store.generation("geo").await, Ok(0));
            }
            clock.ticks().since(since)
        };
        let (sent, others) = tokio::join!(sending, others);
        assert!(matches!(&sent, Err(StoreError::Failed(why)) if why.contains("no copy")), "{sent:?}");
        assert!(clock.ticks().since(since) < timeout && others < timeout / 2, "{others:?}");
        assert_eq!(finish(&store, Intention(n), 1, End::Free).await, Ok(true), "nothing was sent");
    }
    assert_eq!(*store.link.connections().borrow(), 1);
    assert!(store.health().well);
    // More at once than can wait one after the other: none of them is told that it may send.
    for n in 10..20 {
        assert_eq!(store.claim(to(Intention(n), 1)).await, Ok(OWNED));
    }
    let sent = futures_util::future::join_all((10..20).map(|n| send(&store, Intention(n), 1))).await;
    assert!(sent.iter().all(Result::is_err), "{sent:?}");
    assert_eq!(*store.link.connections().borrow(), 1, "the calls of all others go on");
    copy.signal("CONT");
    becomes("it follows again", || is_online(&master)).await;
    let mut n = 100;
    let sent = async {
        while !matches!(send(&store, Intention(n), 1).await, Ok(true)) {
            n += 1;
            store.claim(to(Intention(n), 1)).await.unwrap();
        }
    };
    tokio::time::timeout(TIMEOUT, sent).await.expect("it sends again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_comes_is_waited_for_and_one_that_goes_is_not() {
    let master = master();
    let (store, _events) = open(options(&master)).await;
    sends(&store, Intention(1), 1).await;
    assert_eq!(waits(&master), 0);
    let mut copy = copy_of(&master).await;
    let known = || store.copies.exist(&store.link);
    let comes = async {
        while known().await != Ok(true) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, comes).await.expect("the beat asks");
    sends(&store, Intention(2), 1).await;
    assert_eq!(waits(&master), 1);
    copy.kill();
    becomes("it is gone", || !is_online(&master)).await;
    let goes = async {
        while known().await != Ok(false) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, goes).await.expect("the beat asks");
    sends(&store, Intention(3), 1).await;
    assert_eq!(waits(&master), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_connection_is_as_new_as_the_others() {
    let (master, clock) = (master(), Clock::system());
    let _copy = copy_of(&master).await;
    let (store, _events) = open(options(&master)).await;
    sends(&store, Intention(1), 1).await;
    let waiting = store.copies.link(&store.link, &store.tasks).await.unwrap();
    assert_eq!(*waiting.connections().borrow(), 1);
    store.link.renew();
    recovery(&store, &clock).await;
    sends(&store, Intention(2), 1).await;
    assert_eq!(*waiting.connections().borrow(), 2, "the store may be another");
    master.kill_clients();
    recovery(&store, &clock).await;
    sends(&store, Intention(3), 1).await;
    store.close().await.unwrap();
    assert!(store.tasks.is_empty() && !waiting.is_up(), "it ends with the others");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_forgets_nothing_that_was_sent() {
    let mut master = master();
    let copy = copy_of(&master).await;
    let (store, _events) = open(options(&master)).await;
    sends(&store, WHAT, 1).await;
    master.kill();
    copy.say("REPLICAOF NO ONE");
    let (other, _others) = open(options(&copy)).await;
    assert!(matches!(other.claim(claim(2)).await, Ok(Claimed::Held { .. })));
    assert_eq!(other.unresolved(9).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_does_not_tell_is_reported_where_it_matters() {
    let server = Server::with(&["--save", "", "--user", "default", "on", "nopass", "~*", "&*", "+@all", "-info"]);
    let with = |writes| Options { writes, ..options(&server) };
    let ((store, _events), (without, _others)) = (open(with(true)).await, open(with(false)).await);
    sends(&store, WHAT, 1).await;
    assert_eq!((known(&store).await, known(&without).await), (None, None));
    let says = |store: &RedisStore| store.health().warnings.iter().any(|warning| warning.contains("whether it has copies"));
    assert!(says(&store) && !says(&without));
    assert!(store.health().well, "{:?}", store.health());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_that_may_send_twice_are_reported_where_there_are_writes() {
    let server = Server::start();
    let with = |writes| Options { writes, ..options(&server) };
    let ((store, _events), (without, _others)) = (open(with(true)).await, open(with(false)).await);
    let says = |store: &RedisStore, what: &str| store.health().warnings.iter().any(|warning| warning.contains(what));
    becomes("both reports", || says(&store, "nothing on disk") && says(&without, "nothing on disk")).await;
    assert!(says(&store, "no persistence with write routes") && !says(&without, "write"));
    server.say("CONFIG SET appendonly yes");
    server.say("CONFIG SET maxmemory 100000000");
    server.say("CONFIG SET maxmemory-policy volatile-lru");
    server.kill_clients();
    becomes("a new report", || says(&store, "drops the answers to paid writes")).await;
    assert!(!says(&store, "no persistence"));
}
