//! What instances learn of each other, whatever is lost on the way.

use super::super::super::SwitchState;
use super::super::super::conformance::shared::{listening, next};
use super::super::super::event::State;
use super::*;

async fn open(server: &Server) -> (Arc<RedisStore>, Events) {
    let (store, events) = RedisStore::open(options(server), Clock::system()).unwrap();
    assert!(store.connected(TIMEOUT).await, "{:?}", store.health());
    (store, events)
}

fn off() -> Switch {
    Switch { state: SwitchState::Off, reason: "why".to_owned(), since: 1, until: None }
}

async fn state(events: &mut Events) -> State {
    next(events, |event| if let Event::State(state) = event { Some(state) } else { None }).await
}

async fn generation(events: &mut Events) -> u64 {
    next(events, |event| if let Event::Generation { generation, .. } = event { Some(generation) } else { None }).await
}

async fn instances(events: &mut Events, wanted: u32) {
    next(events, |event| (event == Event::Instances(wanted)).then_some(())).await;
}

/// The number of the latest change.
fn seq(server: &Server) -> u64 {
    server.say("GET t:seq:{t}").lines().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_beginning_all_is_read() {
    let server = Server::start();
    let (store, mut events) = open(&server).await;
    assert_eq!(state(&mut events).await, State::default(), "nothing was missed");
    let revision = store.set_switch("geo", off()).await.unwrap();
    let raised = store.raise_generation(OpId::random(), "geo").await.unwrap();
    store.pause("google", Timestamp(u64::MAX)).await.unwrap();
    store.pause("over", Timestamp(5)).await.unwrap();
    let (_other, mut events) = open(&server).await;
    let expected = State {
        switches: vec![("geo".to_owned(), off(), revision)],
        generations: vec![("geo".to_owned(), raised)],
        pauses: vec![("google".to_owned(), Timestamp(u64::MAX))],
        missed: false,
    };
    assert_eq!(state(&mut events).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_beginning_may_have_missed_purges() {
    let mut server = Server::start();
    server.kill();
    let (store, mut events) = RedisStore::open(options(&server), Clock::system()).unwrap();
    while store.health().error.is_none() {
        tokio::task::yield_now().await;
    }
    assert!(server.run());
    assert!(state(&mut events).await.missed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_never_told_is_looked_up_in_order() {
    let server = Server::start();
    let (store, mut events) = open(&server).await;
    listening(&mut events).await;
    for generation in 41..44 {
        let number = seq(&server) + 1;
        server.say(&format!("XADD t:log:{{t}} {number}-0 change 10:generation3:geo2:{generation}"));
        server.say(&format!("SET t:seq:{{t}} {number}"));
    }
    let raised = store.raise_generation(OpId::random(), "geo").await.unwrap();
    for expected in [41, 42, 43, raised] {
        assert_eq!(generation(&mut events).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_message_a_change_is_known_by_the_next_beat() {
    let server = Server::start();
    let (_store, mut events) = open(&server).await;
    listening(&mut events).await;
    let number = seq(&server) + 1;
    server.say(&format!("XADD t:log:{{t}} {number}-0 change 10:generation3:geo2:41"));
    server.say(&format!("SET t:seq:{{t}} {number}"));
    assert_eq!(generation(&mut events).await, 41);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_while_nobody_listens_is_heard_afterwards() {
    let server = Server::start();
    let (store, mut events) = open(&server).await;
    let (other, mut other_events) = open(&server).await;
    listening(&mut events).await;
    listening(&mut other_events).await;
    for _ in 0..3 {
        server.say("CLIENT KILL TYPE pubsub");
        let raised = store.raise_generation(OpId::random(), "geo").await.unwrap();
        assert_eq!(generation(&mut events).await, raised);
        assert_eq!(generation(&mut other_events).await, raised);
    }
    drop(other);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_does_not_reach_back_means_reading_all() {
    let server = Server::start();
    let (store, mut events) = open(&server).await;
    listening(&mut events).await;
    let revision = store.set_switch("geo", off()).await.unwrap();
    server.say(&format!("SET t:seq:{{t}} {}", seq(&server) + 5_000));
    let all = state(&mut events).await;
    assert_eq!((all.missed, all.switches), (true, vec![("geo".to_owned(), off(), revision)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_was_emptied_is_read_anew_and_revisions_go_on() {
    let mut server = Server::start();
    let (store, mut events) = open(&server).await;
    listening(&mut events).await;
    let before = store.set_switch("geo", off()).await.unwrap();
    server.restart();
    let all = state(&mut events).await;
    assert_eq!((all.missed, all.switches), (true, Vec::new()));
    assert!(store.set_switch("geo", off()).await.unwrap() > before, "the later switch is in force");
    server.say("FLUSHALL");
    assert!(state(&mut events).await.missed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_count_each_other() {
    let server = Server::start();
    let (_store, mut events) = open(&server).await;
    instances(&mut events, 1).await;
    let (other, mut other_events) = open(&server).await;
    instances(&mut other_events, 2).await;
    instances(&mut events, 2).await;
    assert_eq!(other.health().instances, 2);
    other.close().await.unwrap();
    instances(&mut events, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l_02_everyone_lives_by_the_stores_clock() {
    let (server, clock) = (Server::start(), Clock::system());
    let mut stores = Vec::new();
    for wrong in [0, 10_000_000, 3_600_000_000] {
        let skewed = Clock::system();
        skewed.follow(Timestamp(skewed.now().0 + wrong - 10_000_000));
        let (store, events) = RedisStore::open(options(&server), skewed.clone()).unwrap();
        assert!(store.connected(TIMEOUT).await);
        let (there, here) = (skewed.now(), clock.now());
        assert!(there.since(here).max(here.since(there)) < Duration::from_secs(2), "{there:?} {here:?}");
        stores.push((store, events));
    }
    let bucket = Bucket::whole(1, 4, 1, Duration::from_hours(1));
    let mut admitted = 0;
    for n in 0..15 {
        let taken = stores[n % 3].0.take(OpId::random(), &[bucket], true).await.unwrap();
        admitted += u32::from(matches!(taken, Taken::Yes(_)));
    }
    assert_eq!(admitted, 4);
}
