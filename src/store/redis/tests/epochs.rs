//! Records that are lost, and what may be done before somebody says that this is known.

use super::super::super::money::{Cap, Money, Reserved, Settlement};
use super::super::money::epoch::LOST;
use super::money::{caps, line, lines, reserve, settle};
use super::mortal::Mortal;
use super::outage::recovery;
use super::*;

async fn open(server: &Server) -> (Arc<RedisStore>, Events) {
    let (store, events) = RedisStore::open(options(server), Clock::system()).unwrap();
    assert!(store.connected(TIMEOUT).await, "{:?}", store.health());
    (store, events)
}

/// What a reservation of ten by a new id comes to.
async fn pay(store: &RedisStore, caps: &[Cap]) -> Reserved {
    reserve(store, OpId::random().0, caps, 10).await.unwrap()
}

fn money_keys(server: &Server) -> usize {
    let kinds = ["cap", "attempt", "open", "owners", "days", "spent", "saved", "credited"];
    let names = server.say("KEYS *");
    names.lines().filter(|name| kinds.iter().any(|kind| name.starts_with(&format!("t:{kind}:")))).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_01_an_emptied_store_is_paid_from_only_when_somebody_has_said_so() {
    let server = Server::start();
    let ((one, _events), (other, _others)) = (open(&server).await, open(&server).await);
    let caps = caps(&one);
    assert_eq!(reserve(&one, 1, &caps, 10).await, Ok(Reserved::Yes(vec![10, 10])));
    assert_eq!(pay(&other, &caps).await, Reserved::Yes(vec![20, 20]));
    assert!(!one.health().warnings.iter().any(|warning| warning.contains(LOST)));

    server.say("FLUSHALL");
    for _ in 0..3 {
        assert_eq!((pay(&one, &caps).await, pay(&other, &caps).await), (Reserved::Lost, Reserved::Lost));
    }
    let outcome = settle(&one, 1, Settlement::Billed(7)).await;
    assert!(matches!(&outcome, Err(StoreError::Failed(text)) if text.contains(LOST)), "{outcome:?}");
    assert!(one.used(&caps).await.is_err() && one.credit(OpId(1), &[]).await.is_err());
    assert!(one.health().well && one.health().warnings[0].contains(LOST), "{:?}", one.health());
    assert_eq!(money_keys(&server), 0, "{}", server.say("KEYS *"));
    assert_eq!(one.first("an alert about it", Duration::from_secs(60)).await, Ok(true));

    one.accept_loss().await.unwrap();
    assert_eq!((pay(&one, &caps).await, pay(&other, &caps).await), (Reserved::Yes(vec![10, 10]), Reserved::Yes(vec![20, 20])));
    assert_eq!(settle(&one, 1, Settlement::Billed(7)).await, Ok(false), "it is not known any more");
    assert_eq!(reserve(&one, 1, &caps, 10).await, Ok(Reserved::TooLate));
    assert!(!one.health().warnings.iter().any(|warning| warning.contains(LOST)), "{:?}", one.health());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_in_an_emptied_store_is_stopped_by_the_first_who_knows_better() {
    let server = Server::start();
    let mortal = Mortal::start(Time::Store, options(&server), &Clock::system());
    let caps = caps(&mortal.store);
    assert_eq!(pay(&mortal.store, &caps).await, Reserved::Yes(vec![10, 10]));
    let thaw = mortal.freeze();
    server.say("FLUSHALL");
    let (newcomer, _events) = open(&server).await;
    assert_eq!(pay(&newcomer, &caps).await, Reserved::Yes(vec![10, 10]), "nobody has told it");
    drop(thaw);
    assert_eq!(pay(&mortal.store, &caps).await, Reserved::Lost);
    assert_eq!(pay(&newcomer, &caps).await, Reserved::Lost);
    let (later, _others) = open(&server).await;
    assert_eq!(pay(&later, &caps).await, Reserved::Lost, "who comes now is told");

    newcomer.accept_loss().await.unwrap();
    for (store, level) in [(&mortal.store, 20), (&newcomer, 30), (&later, 40)] {
        assert_eq!(pay(store, &caps).await, Reserved::Yes(vec![level, level]), "what the newcomer has spent counts");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_01_a_restart_without_data_is_a_loss_and_newcomers_learn_of_it() {
    let (mut server, clock) = (Server::start(), Clock::system());
    let (store, _events) = open(&server).await;
    let caps = caps(&store);
    assert_eq!(pay(&store, &caps).await, Reserved::Yes(vec![10, 10]));
    server.restart();
    recovery(&store, &clock).await;
    assert_eq!(pay(&store, &caps).await, Reserved::Lost);
    let (newcomer, _others) = open(&server).await;
    assert_eq!(pay(&newcomer, &caps).await, Reserved::Lost);
    newcomer.accept_loss().await.unwrap();
    assert_eq!(
        (pay(&newcomer, &caps).await, pay(&store, &caps).await),
        (Reserved::Yes(vec![10, 10]), Reserved::Yes(vec![20, 20]))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_01_a_restart_with_data_goes_on_where_it_was() {
    let mut server = Server::durable();
    let clock = Clock::system();
    let (store, _events) = open(&server).await;
    let caps = caps(&store);
    for id in 1..=3 {
        reserve(&store, id, &caps, 10).await.unwrap();
    }
    settle(&store, 1, Settlement::Billed(7)).await.unwrap();
    server.restart();
    recovery(&store, &clock).await;
    assert_eq!(store.used(&caps).await, Ok(vec![27, 27]), "killed, it has lost nothing that it had answered");
    assert_eq!(reserve(&store, 2, &caps, 10).await, Ok(Reserved::Yes(vec![27, 27])));
    assert_eq!(settle(&store, 2, Settlement::NotBilled).await, Ok(true));
    assert_eq!(settle(&store, 1, Settlement::NotBilled).await, Ok(false));
    assert_eq!(
        lines(&store).await,
        [line("billed", "answered", 1, 7), line("not_billed", "answered", 1, 0), line("open", "", 1, 10)]
    );
    let (newcomer, _others) = open(&server).await;
    assert_eq!(pay(&newcomer, &caps).await, Reserved::Yes(vec![27, 27]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepting_when_nothing_is_lost_changes_nothing_and_twice_is_once() {
    let server = Server::start();
    let ((one, _events), (other, _others)) = (open(&server).await, open(&server).await);
    let (caps, epoch) = (caps(&one), || server.say("HGET t:epoch:{t} id"));
    assert_eq!((pay(&one, &caps).await, pay(&other, &caps).await), (Reserved::Yes(vec![10, 10]), Reserved::Yes(vec![20, 20])));
    let founded = epoch();
    one.accept_loss().await.unwrap();
    assert_eq!(epoch(), founded);
    server.say("FLUSHALL");
    let (first, second) = tokio::join!(one.accept_loss(), other.accept_loss());
    assert_eq!((first, second), (Ok(()), Ok(())));
    let accepted = epoch();
    assert_ne!(accepted, founded);
    one.accept_loss().await.unwrap();
    assert_eq!(epoch(), accepted);
    assert_eq!((pay(&other, &caps).await, pay(&one, &caps).await), (Reserved::Yes(vec![10, 10]), Reserved::Yes(vec![20, 20])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_without_an_epoch_and_an_epoch_of_before_are_losses_too() {
    let server = Server::start();
    let (store, _events) = open(&server).await;
    let caps = caps(&store);
    assert_eq!(pay(&store, &caps).await, Reserved::Yes(vec![10, 10]));
    let before = server.say("HGET t:epoch:{t} id").lines().nth(1).unwrap().to_owned();
    server.say("DEL t:epoch:{t}");
    store.close().await.unwrap();
    let (store, _events) = open(&server).await;
    assert_eq!(pay(&store, &caps).await, Reserved::Lost, "there are records: somebody has founded them");
    store.accept_loss().await.unwrap();
    assert_eq!(pay(&store, &caps).await, Reserved::Yes(vec![20, 20]), "from what is there");
    server
        .say(&format!("EVAL \"redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], 'id', ARGV[1])\" 1 t:epoch:{{t}} {before}"));
    assert_eq!(pay(&store, &caps).await, Reserved::Lost, "as of an older copy");
}
