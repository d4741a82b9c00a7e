//! Paid writes, as far as they are about Redis: many instances, lost records, a full store, and what is left of them there.

use super::super::super::conformance::answers::answer;
use super::super::super::conformance::writes::{ANY_TIME, LEASE, OTHER, OWNED, WHAT, about, claim, look, to};
use super::super::super::money::Money;
use super::super::super::write::{Claim, Claimed, End, Found, Intention, Sending, Settled, Settling, Writes};
use super::super::money::epoch::LOST;
use super::mortal::Mortal;
use super::outage::{becomes, recovery, short};
use super::*;

const YEARS: Duration = Duration::from_hours(20 * 365 * 24);

pub async fn open(options: Options) -> (Arc<RedisStore>, Events) {
    let (store, events) = RedisStore::open(options, Clock::system()).unwrap();
    assert!(store.connected(TIMEOUT).await, "{:?}", store.health());
    (store, events)
}

pub async fn send(store: &RedisStore, what: Intention, owner: u128) -> Result<bool, StoreError> {
    let about = about("first");
    store.sending(Sending { intention: what, owner: OpId(owner), lease: LEASE, timeout: TIMEOUT, about: &about }).await
}

pub async fn sends(store: &RedisStore, what: Intention, owner: u128) {
    assert_eq!(store.claim(to(what, owner)).await, Ok(OWNED));
    assert_eq!(send(store, what, owner).await, Ok(true));
}

pub async fn finish(store: &RedisStore, what: Intention, owner: u128, end: End) -> Result<bool, StoreError> {
    store.finish(what, OpId(owner), end).await
}

async fn not_sent(store: &RedisStore, what: Intention, owner: u128) -> Result<Settled, StoreError> {
    let found = Found::NotSent(store.link.clock.now().after(LEASE));
    store.resolve(Settling { intention: what, owner: OpId(owner), by: OpId::random(), found }).await
}

/// Replayed for longer than any test lasts.
pub fn kept() -> StoredAnswer {
    StoredAnswer { error_until: Timestamp(START).after(YEARS), ..answer(0, b"sent") }
}

fn is_lost<T>(outcome: &Result<T, StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Failed(text)) if text.contains(LOST))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_fifty_claims_at_two_instances_one_is_granted() {
    let server = Server::start();
    let ((one, _events), (other, _others)) = (open(options(&server)).await, open(options(&server)).await);
    let attempt = |n: u128| {
        let store = Arc::clone(if n.is_multiple_of(2) { &one } else { &other });
        tokio::spawn(async move { (store.claim(claim(n)).await.unwrap(), send(&store, WHAT, n).await.unwrap()) })
    };
    let outcomes = futures_util::future::try_join_all((1..=50).map(attempt)).await.unwrap();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == (OWNED, true)).count(), 1);
    assert_eq!(outcomes.iter().filter(|(claimed, sent)| matches!(claimed, Claimed::Held { .. }) && !sent).count(), 49);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_01_after_a_loss_nothing_is_sent_until_somebody_has_said_so() {
    let server = Server::start();
    let (store, _events) = open(options(&server)).await;
    sends(&store, WHAT, 1).await;
    let claimed = Intention(1);
    assert_eq!(store.claim(to(claimed, 1)).await, Ok(OWNED));
    server.say("FLUSHALL");
    for _ in 0..3 {
        assert_eq!(store.claim(claim(2)).await, Ok(Claimed::Lost));
        assert_eq!(store.claim(look()).await, Ok(Claimed::Lost));
    }
    assert!(is_lost(&send(&store, claimed, 1).await) && is_lost(&not_sent(&store, WHAT, 1).await));
    assert_eq!(finish(&store, WHAT, 1, End::Done(kept())).await, Ok(false), "its record is gone");
    assert_eq!(store.prolong(WHAT, OpId(1), LEASE).await, Ok(false));
    assert_eq!(server.say("KEYS t:write:*"), "*0\r\n");
    store.accept_loss().await.unwrap();
    assert_eq!(send(&store, claimed, 1).await, Ok(false));
    assert_eq!(store.claim(claim(2)).await, Ok(OWNED));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_else_is_lost_an_owner_still_says_what_came_of_its_own() {
    let server = Server::start();
    let (store, _events) = open(options(&server)).await;
    let [done, freed, forgotten] = [1, 2, 3].map(Intention);
    for what in [done, freed, forgotten] {
        sends(&store, what, 1).await;
    }
    server.say("DEL t:epoch:{t}");
    assert_eq!(store.claim(to(done, 2)).await, Ok(Claimed::Lost));
    assert!(is_lost(&send(&store, done, 1).await) && is_lost(&not_sent(&store, done, 1).await));
    assert_eq!(store.unresolved(9).await.unwrap().len(), 3, "what is there is shown");
    assert_eq!(store.prolong(done, OpId(1), LEASE).await, Ok(true));
    assert_eq!(finish(&store, done, 1, End::Done(kept())).await, Ok(true));
    assert_eq!(finish(&store, freed, 1, End::Free).await, Ok(true));
    assert_eq!(finish(&store, forgotten, 1, End::Unknown).await, Ok(true));
    assert_eq!(store.claim(to(done, 2)).await, Ok(Claimed::Lost), "nobody hears of it yet");
    store.accept_loss().await.unwrap();
    assert_eq!(store.claim(to(done, 2)).await, Ok(Claimed::Done(kept())));
    assert_eq!(store.claim(to(freed, 2)).await, Ok(OWNED));
    assert_eq!(store.claim(to(forgotten, 2)).await, Ok(Claimed::Unknown));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_to_writes_without_an_epoch_sends_nothing() {
    let server = Server::start();
    let (store, _events) = open(options(&server)).await;
    sends(&store, WHAT, 1).await;
    store.close().await.unwrap();
    server.say("DEL t:epoch:{t}");
    let (newcomer, _others) = open(options(&server)).await;
    assert_eq!(newcomer.claim(to(Intention(1), 2)).await, Ok(Claimed::Lost), "somebody has founded them");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_epoch_that_somebody_has_replaced_is_taken_over_at_once() {
    let server = Server::start();
    let mortal = Mortal::start(Time::Store, options(&server), &Clock::system());
    let (store, _events) = open(options(&server)).await;
    sends(&store, Intention(1), 1).await;
    assert_eq!(mortal.store.claim(to(Intention(2), 2)).await, Ok(OWNED));
    let thaw = mortal.freeze();
    server.say("FLUSHALL");
    assert_eq!(store.claim(claim(1)).await, Ok(Claimed::Lost));
    store.accept_loss().await.unwrap();
    drop(thaw);
    assert_eq!(mortal.store.claim(claim(3)).await, Ok(OWNED), "asked once more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_01_scripts_that_are_gone_are_loaded_again() {
    let server = Server::start();
    let (store, _events) = open(options(&server)).await;
    let flush = || assert!(server.say("SCRIPT FLUSH").contains("+OK"));
    flush();
    assert_eq!(store.claim(claim(1)).await, Ok(OWNED));
    flush();
    assert_eq!(send(&store, WHAT, 1).await, Ok(true));
    flush();
    assert_eq!(store.prolong(WHAT, OpId(1), LEASE).await, Ok(true));
    flush();
    assert_eq!(store.unresolved(9).await.unwrap().len(), 1);
    flush();
    assert_eq!(finish(&store, WHAT, 1, End::Unknown).await, Ok(true));
    flush();
    assert_eq!(not_sent(&store, WHAT, 1).await, Ok(Settled::Yes(about("first"))));
    assert_eq!(*store.link.connections().borrow(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_07_a_full_store_lets_nothing_be_sent_and_hears_what_came_of_it() {
    let server = Server::start();
    let (store, _events) = open(options(&server)).await;
    let [claimed, done, freed, unknown, settled, before] = [1, 2, 3, 4, 5, 6].map(Intention);
    assert_eq!(store.claim(to(claimed, 1)).await, Ok(OWNED));
    for what in [done, freed, unknown, settled, before] {
        sends(&store, what, 1).await;
    }
    finish(&store, before, 1, End::Done(kept())).await.unwrap();
    finish(&store, settled, 1, End::Unknown).await.unwrap();

    server.say("CONFIG SET maxmemory 1");
    let full = StoreError::Failed("Redis: OOM: it is full".to_owned());
    assert_eq!(store.claim(claim(1)).await, Err(full.clone()), "before anything is paid");
    assert_eq!(store.claim(Claim { again: ANY_TIME, ..to(settled, 2) }).await, Err(full.clone()));
    assert_eq!(send(&store, claimed, 1).await, Err(full));
    assert_eq!(store.claim(look()).await, Ok(Claimed::Free));
    assert_eq!(store.claim(to(before, 2)).await, Ok(Claimed::Done(kept())), "what is there is told");
    assert_eq!(store.claim(Claim { fingerprint: &OTHER, ..to(before, 2) }).await, Ok(Claimed::Reused));
    assert!(matches!(store.claim(to(done, 2)).await, Ok(Claimed::Held { .. })));
    assert_eq!(store.claim(to(settled, 2)).await, Ok(Claimed::Unknown));
    assert_eq!(store.prolong(done, OpId(1), LEASE).await, Ok(true));
    let long = StoredAnswer { body: vec![7; 100_000].into(), ..kept() };
    for (what, end) in [(done, End::Done(long.clone())), (freed, End::Free), (unknown, End::Unknown), (claimed, End::Free)] {
        assert_eq!(finish(&store, what, 1, end).await, Ok(true), "{what:?}");
    }
    assert_eq!(not_sent(&store, settled, 1).await, Ok(Settled::Yes(about("first"))));
    assert_eq!(store.unresolved(9).await.unwrap().len(), 1);
    server.say("CONFIG SET maxmemory 0");
    assert_eq!(store.claim(to(done, 2)).await, Ok(Claimed::Done(long)));
    assert_eq!(store.claim(to(freed, 2)).await, Ok(OWNED));
    assert_eq!(store.claim(to(settled, 2)).await, Ok(Claimed::Owned { turn: 1 }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_03_to_a_copy_nothing_is_written() {
    let (server, clock) = (Server::start(), Clock::system());
    let (store, _events) = open(options(&server)).await;
    sends(&store, WHAT, 1).await;
    assert_eq!(store.claim(to(Intention(1), 1)).await, Ok(OWNED));
    server.say("REPLICAOF 127.0.0.1 1");
    assert!(send(&store, Intention(1), 1).await.is_err() && store.claim(claim(2)).await.is_err());
    assert!(finish(&store, WHAT, 1, End::Done(kept())).await.is_err() && store.unresolved(9).await.is_err());
    server.say("REPLICAOF NO ONE");
    recovery(&store, &clock).await;
    assert!(matches!(store.claim(claim(2)).await, Ok(Claimed::Held { .. })), "as it was");
    assert_eq!(finish(&store, WHAT, 1, End::Done(kept())).await, Ok(true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_01_records_survive_a_restart_with_data() {
    let mut server = Server::durable();
    let clock = Clock::system();
    let (store, _events) = open(options(&server)).await;
    let [claimed, sent, unknown, done, settled] = [1, 2, 3, 4, 5].map(Intention);
    assert_eq!(store.claim(to(claimed, 1)).await, Ok(OWNED));
    for what in [sent, unknown, done, settled] {
        sends(&store, what, 1).await;
    }
    for (what, end) in [(unknown, End::Unknown), (done, End::Done(kept())), (settled, End::Unknown)] {
        assert_eq!(finish(&store, what, 1, end).await, Ok(true));
    }
    assert_eq!(not_sent(&store, settled, 1).await, Ok(Settled::Yes(about("first"))));
    let before = store.unresolved(9).await.unwrap();
    server.restart();
    recovery(&store, &clock).await;
    assert_eq!(store.unresolved(9).await, Ok(before));
    for what in [claimed, sent] {
        assert!(matches!(store.claim(to(what, 2)).await, Ok(Claimed::Held { .. })), "{what:?}");
    }
    assert_eq!(store.claim(to(unknown, 2)).await, Ok(Claimed::Unknown));
    assert_eq!(store.claim(to(done, 2)).await, Ok(Claimed::Done(kept())));
    assert_eq!(store.claim(to(settled, 2)).await, Ok(Claimed::Owned { turn: 1 }));
    assert_eq!(send(&store, claimed, 1).await, Ok(true));
    assert_eq!(finish(&store, sent, 1, End::Done(kept())).await, Ok(true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_ran_though_nobody_heard_is_claimed_once_by_its_owner() {
    let (server, clock) = (Server::start(), Clock::system());
    let (store, _events) = open(short(server.url())).await;
    let key = store.keys().write(WHAT);
    sends(&store, Intention(1), 1).await;
    server.signal("STOP");
    assert!(store.claim(claim(1)).await.is_err());
    server.signal("CONT");
    becomes("it is carried out", || server.say(&format!("EXISTS {key}")) == ":1\r\n").await;
    recovery(&store, &clock).await;
    assert!(matches!(store.claim(claim(2)).await, Ok(Claimed::Held { .. })));
    assert_eq!(store.claim(claim(1)).await, Ok(OWNED));
    assert_eq!((send(&store, WHAT, 1).await, send(&store, WHAT, 2).await), (Ok(true), Ok(false)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_live_as_long_as_they_count_and_a_minute() {
    let server = Server::start();
    let (store, _events) = open(options(&server)).await;
    let (now, hour) = (store.link.clock.now(), Duration::from_hours(1));
    let lives = |seconds: i64| {
        let ttl: i64 = server.say(&format!("TTL {}", store.keys().write(WHAT))).trim().trim_start_matches(':').parse().unwrap();
        assert!((seconds - 9..=seconds).contains(&ttl), "{ttl} and not {seconds}");
    };
    assert_eq!(store.claim(claim(1)).await, Ok(OWNED));
    lives(66);
    assert_eq!(store.prolong(WHAT, OpId(1), Duration::from_mins(2)).await, Ok(true));
    lives(180);
    assert_eq!((send(&store, WHAT, 1).await, finish(&store, WHAT, 1, End::Unknown).await), (Ok(true), Ok(true)));
    let not_sent = Settling { intention: WHAT, owner: OpId(1), by: OpId(9), found: Found::NotSent(now.after(hour)) };
    assert_eq!(store.resolve(not_sent).await, Ok(Settled::Yes(about("first"))));
    lives(3_660);
    assert_eq!(store.claim(claim(2)).await, Ok(Claimed::Owned { turn: 1 }));
    lives(3_660);
    assert_eq!(send(&store, WHAT, 2).await, Ok(true));
    let until = now.after(hour * 2);
    let kept = StoredAnswer { error_until: until, fresh_until: until, revalidate_until: until, ..kept() };
    assert_eq!(finish(&store, WHAT, 2, End::Done(kept)).await, Ok(true));
    lives(7_260);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_read_as_a_record_is_refused_and_left_as_it_is() {
    let server = Server::start();
    let (store, _events) = open(options(&server)).await;
    let (key, unsettled) = (store.keys().write(WHAT), store.keys().unsettled());
    for spoilt in ["until x", "since -1", "turn 1e3", "turn_until 9007199254740992", "timeout \"\""] {
        sends(&store, WHAT, 1).await;
        server.say(&format!("HSET {key} {spoilt}"));
        let before = server.say(&format!("HGETALL {key}"));
        assert!(store.claim(claim(2)).await.is_err() && send(&store, WHAT, 1).await.is_err(), "{spoilt}");
        assert!(store.prolong(WHAT, OpId(1), LEASE).await.is_err() && not_sent(&store, WHAT, 1).await.is_err(), "{spoilt}");
        assert!(finish(&store, WHAT, 1, End::Done(kept())).await.is_err() && store.unresolved(9).await.is_err(), "{spoilt}");
        assert_eq!(server.say(&format!("HGETALL {key}")), before);
        server.say(&format!("DEL {key} {unsettled}"));
    }
    server.say(&format!("SET {key} x"));
    assert!(store.claim(claim(1)).await.is_err());
    server.say(&format!("DEL {key}"));
    server.say(&format!("SET {unsettled} x"));
    assert!(store.claim(claim(1)).await.is_err());
    assert_eq!(server.say(&format!("EXISTS {key}")), ":0\r\n", "an index that is none leaves no half of a record");
    assert!(store.health().well, "{:?}", store.health());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_cannot_be_read_was_given_all_the_same() {
    let server = Server::start();
    let (store, _events) = open(options(&server)).await;
    sends(&store, WHAT, 1).await;
    finish(&store, WHAT, 1, End::Done(kept())).await.unwrap();
    server.say(&format!("HSET {} meta 1:9", store.keys().write(WHAT)));
    assert_eq!(store.claim(claim(2)).await, Ok(Claimed::Unknown), "never sent again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_many_are_unresolved_all_are_read() {
    let server = Server::start();
    let (store, _events) = open(options(&server)).await;
    futures_util::future::join_all((0..1_234).map(|n| sends(&store, Intention(n), 1))).await;
    let all = store.unresolved(usize::MAX).await.unwrap();
    assert!(all.is_sorted_by_key(|line| (line.since, line.intention)));
    assert_eq!(all.len(), 1_234);
    assert_eq!(store.unresolved(1_001).await, Ok(all[..1_001].to_vec()));
}
