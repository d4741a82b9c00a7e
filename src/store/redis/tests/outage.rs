//! What the store does when Redis is away, frozen, full, starting, or answers amiss.

use super::super::super::conformance::answers::answer;
use super::super::super::lease::Leave;
use super::super::super::{StoreError, SwitchState};
use super::*;

const KEY: Digest = [7; 32];
/// Short, for outages; still ample for a call.
const SHORT: Duration = Duration::from_millis(400);

pub fn short(url: String) -> Options {
    Options { url, prefix: "t".to_owned(), timeout: SHORT, ca: None, writes: false }
}

/// A store on the server's own time, which is connected.
async fn open(server: &Server) -> (Arc<RedisStore>, Events) {
    let (store, events) = RedisStore::open(short(server.url()), Clock::system()).unwrap();
    assert!(store.connected(TIMEOUT).await, "{:?}", store.health());
    (store, events)
}

/// One whole token a day, of which there are very many.
fn bucket() -> Bucket {
    Bucket::whole(1, 100_000, 1, Duration::from_hours(24))
}

async fn take(store: &RedisStore) -> Result<Taken, StoreError> {
    store.take(OpId::random(), &[bucket()], true).await
}

/// Tries until it works, and says for how long.
pub async fn recovery(store: &RedisStore, clock: &Clock) -> Duration {
    let since = clock.ticks();
    while take(store).await.is_err() {
        assert!(clock.ticks().since(since) < TIMEOUT, "{:?}", store.health());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    clock.ticks().since(since)
}

/// Waits until something is so.
pub async fn becomes(what: &str, so: impl Fn() -> bool) {
    let wait = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.unwrap_or_else(|_| panic!("it never came to this: {what}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_server_calls_fail_at_once_and_nothing_is_well() {
    let mut server = Server::start();
    server.kill();
    let clock = Clock::system();
    let (store, _events) = RedisStore::open(short(server.url()), clock.clone()).unwrap();
    becomes("an error", || store.health().error.is_some()).await;
    let since = clock.ticks();
    for _ in 0..100 {
        assert!(take(&store).await.is_err());
    }
    assert!(clock.ticks().since(since) < Duration::from_millis(100), "a hundred calls");
    let health = store.health();
    assert_eq!((health.well, health.was_well), (false, false));
    assert_eq!(health.error.as_deref(), Some("the store failed: Redis: connection refused"));
    assert!(server.run());
    recovery(&store, &clock).await;
    assert!(store.health().well);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_server_costs_one_timeout_then_nothing() {
    let (server, clock) = (Server::start(), Clock::system());
    let (store, _events) = open(&server).await;
    take(&store).await.unwrap();
    server.signal("STOP");
    let since = clock.ticks();
    assert!(take(&store).await.is_err());
    assert!(clock.ticks().since(since) < SHORT * 2);
    becomes("the connection is gone", || !store.health().well).await;
    let since = clock.ticks();
    assert!(take(&store).await.is_err());
    assert!(clock.ticks().since(since) < Duration::from_millis(50), "no second timeout");
    server.signal("CONT");
    let took = recovery(&store, &clock).await;
    assert!(took < SHORT + Duration::from_secs(1), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_who_leave_before_the_timeout_still_reveal_a_frozen_server() {
    let server = Server::start();
    let (store, _events) = open(&server).await;
    server.signal("STOP");
    for _ in 0..20 {
        let _ = tokio::time::timeout(SHORT * 95 / 100, take(&store)).await;
        if !store.health().well {
            return;
        }
    }
    panic!("it still counts as well");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_who_leave_hurt_nobody() {
    let (server, clock) = (Server::start(), Clock::system());
    let (store, _events) = open(&server).await;
    for n in 0..200_u64 {
        let _ = tokio::time::timeout(Duration::from_micros(n * 5), take(&store)).await;
        assert_eq!(store.generation("geo").await, Ok(0));
    }
    assert_eq!(*store.link.connections().borrow(), 1, "it is the first connection yet");
    assert!(recovery(&store, &clock).await < SHORT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_01_a_restart_without_data_or_scripts_is_over_at_once() {
    let (mut server, clock) = (Server::start(), Clock::system());
    let (store, _events) = open(&server).await;
    for _ in 0..5 {
        assert!(server.say("SCRIPT FLUSH").contains("+OK"));
        take(&store).await.unwrap();
        assert_eq!(store.generation("geo").await, Ok(0));
    }
    assert_eq!(*store.link.connections().borrow(), 1);
    server.kill();
    becomes("away, though nobody asks", || !store.health().well).await;
    assert!(take(&store).await.is_err());
    assert!(server.run());
    let took = recovery(&store, &clock).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    let Taken::Yes(levels) = take(&store).await.unwrap() else { panic!("full again") };
    assert!(levels[0].left >= bucket().capacity - 3 * bucket().cost, "buckets begin full");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_03_a_copy_is_left_as_soon_as_it_refuses_to_write() {
    let (server, clock) = (Server::start(), Clock::system());
    let (store, _events) = open(&server).await;
    server.say("REPLICAOF 127.0.0.1 1");
    assert!(take(&store).await.is_err());
    assert!(!store.health().well);
    assert!(store.generation("geo").await.is_err(), "what a copy could answer may be old");
    becomes("its refusal is known", || store.health().error.is_some_and(|error| error.contains("READONLY"))).await;
    server.say("REPLICAOF NO ONE");
    let took = recovery(&store, &clock).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_07_a_full_store_refuses_what_needs_room_and_nothing_else() {
    let server = Server::start();
    let (store, _events) = open(&server).await;
    let (waiting, flight) = (OpId::random(), OpId::random());
    let entry = |flight, waiting| Entry { flight, key: &KEY, ttl: Duration::from_mins(1), look: true, waiting };
    let Ok(Entered::Taken(began)) = store.enter(entry(flight, None)).await else { panic!("nobody is there") };
    let Ok(Entered::Held { since, .. }) = store.enter(entry(waiting, None)).await else { panic!("it is held") };
    let kept = StoredAnswer { stored: began, fresh_until: Timestamp(u64::MAX), ..answer(0, b"paid for") };
    store.keep("geo", &[1; 32], kept.clone()).await.unwrap();

    server.say("CONFIG SET maxmemory 1");
    assert_eq!(take(&store).await, Err(StoreError::Failed("Redis: OOM: it is full".to_owned())));
    assert!(store.keep("geo", &KEY, kept.clone()).await.is_err());
    assert_eq!(store.answer(&[1; 32]).await, Ok(Some(kept.clone())), "what is there can be read");
    let leave = Leave::Kept;
    let landing = Landing { flight, route: "geo", key: &KEY, began, keep: Some(kept.clone()), leave };
    assert!(store.land(landing).await.is_err(), "that it is not kept is said");
    assert_eq!(server.say("EXISTS t:lease:{0707070707070707070707070707070707070707070707070707070707070707}"), ":0\r\n");
    store.raise_generation(OpId::random(), "geo").await.unwrap();
    let off = Switch { state: SwitchState::Off, reason: String::new(), since: 1, until: None };
    store.set_switch("all", off).await.unwrap();
    store.forget("geo", &[1; 32]).await.unwrap();
    store.pause("google", Timestamp(u64::MAX)).await.unwrap();
    assert!(store.health().well);

    server.say("CONFIG SET maxmemory 0");
    take(&store).await.unwrap();
    assert_eq!(store.enter(entry(waiting, Some(since))).await, Ok(Entered::Found(kept)), "who waited gets it all the same");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_said_and_not_repeated_in_words() {
    let server = Server::with(&["--save", "", "--user", "default", "on", ">secret-7", "~*", "&*", "+@all"]);
    let url = |password: &str| format!("redis://:{password}@127.0.0.1:{}", server.port);
    let (store, _events) = RedisStore::open(short(url("wrong-8")), Clock::system()).unwrap();
    becomes("an error", || store.health().error.is_some()).await;
    let said = format!("{:?} {:?}", store.health(), short(url("wrong-8")));
    assert!(!said.contains("wrong-8") && said.contains("password is wrong"), "{said}");
    let (store, _events) = RedisStore::open(short(url("secret-7")), Clock::system()).unwrap();
    assert!(store.connected(TIMEOUT).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_url_that_is_none_is_refused_without_being_repeated() {
    for url in ["", "redis", "http://user:pass-9@host", "redis://user:pass-9@host:port", "rediss://h/x"] {
        let refusal = RedisStore::open(short(url.to_owned()), Clock::system()).err().expect(url).to_string();
        assert!(!refusal.contains("pass-9") && refusal.contains("url"), "{refusal}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_ends_every_task_and_says_goodbye() {
    let server = Server::start();
    let (store, _events) = open(&server).await;
    let (other, _other_events) = open(&server).await;
    becomes("two are alive", || server.say("ZCARD t:instances:{t}") == ":2\r\n").await;
    store.close().await.unwrap();
    assert!(store.tasks.is_empty());
    assert_eq!(server.say("ZCARD t:instances:{t}"), ":1\r\n");
    assert!(take(&store).await.is_err());
    take(&other).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_that_lose_records_are_reported() {
    let server = Server::start();
    let (store, _events) = open(&server).await;
    becomes("the report", || !store.health().warnings.is_empty()).await;
    assert!(store.health().warnings[0].contains("keeps nothing on disk"), "{:?}", store.health().warnings);
    server.kill_clients();
    server.say("CONFIG SET maxmemory 100000000");
    server.say("CONFIG SET maxmemory-policy allkeys-lru");
    server.kill_clients();
    becomes("a new report", || store.health().warnings.iter().any(|warning| warning.contains("allkeys-lru"))).await;
}
