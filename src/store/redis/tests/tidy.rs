//! What is left in the store: nothing without an end that is no record, and nobody's words in a name.

use super::super::super::SwitchState;
use super::super::super::conformance::answers::answer;
use super::super::super::conformance::money::{cap, row};
use super::super::super::conformance::reports::saving;
use super::super::super::conformance::writes::ANY_TIME;
use super::super::super::lease::Leave;
use super::super::super::money::{Cap, Days, Money, Reservation, Reserved, Row, Settlement};
use super::super::super::write::{About, Claim, Claimed, End, Found, Intention, Sending, Settled, Settling, Writes};
use super::super::money::watch::sweep;
use super::*;

const KEY: Digest = [7; 32];
const RULE: LockoutRule =
    LockoutRule { misses: 2, window: Duration::from_mins(1), first: Duration::from_mins(1), max: Duration::from_hours(1) };

async fn open(server: &Server) -> (Arc<RedisStore>, Events) {
    let (store, events) = RedisStore::open(options(server), Clock::system()).unwrap();
    assert!(store.connected(TIMEOUT).await, "{:?}", store.health());
    (store, events)
}

fn names(server: &Server) -> Vec<String> {
    server.say("KEYS *").lines().filter(|line| line.starts_with("t:")).map(str::to_owned).collect()
}

fn ttl(server: &Server, name: &str) -> i64 {
    server.say(&format!("PTTL {name}")).trim().trim_start_matches(':').parse().unwrap()
}

/// Something of everything, in every outcome.
async fn use_it(store: &RedisStore) {
    let now = store.link.clock.now();
    for n in 0..20_u8 {
        let (key, buckets) =
            ([n; 32], [Bucket::whole(1, 5, 1, Duration::from_mins(1)), Bucket::whole(u128::from(n), 2, 1, RULE.window)]);
        store.take(OpId::random(), &buckets, n.is_multiple_of(3)).await.unwrap();
        let op = OpId::random();
        store.guess(op, &[[n % 3; 32]], RULE, now.after(RULE.first)).await.unwrap();
        store.settle_guess(op, &[[n % 3; 32], [n; 32]], RULE, n.is_multiple_of(2)).await.unwrap();
        let entry = |flight| Entry { flight, key: &key, ttl: RULE.first, look: true, waiting: None };
        let (flight, kept) = (OpId::random(), StoredAnswer { error_until: Timestamp(u64::MAX), ..answer(0, b"x") });
        store.enter(entry(flight)).await.unwrap();
        store.enter(entry(OpId::random())).await.unwrap();
        let leave = match n % 5 {
            0 => Leave::Nothing,
            1 => Leave::Kept,
            2 => Leave::Word("word".into()),
            3 => Leave::Alone(RULE.first),
            _ => continue,
        };
        let keep = n.is_multiple_of(2).then_some(kept);
        store.land(Landing { flight, route: "someones-route", key: &key, began: now, keep, leave }).await.unwrap();
    }
    store.clear_lockout(&[1; 32]).await.unwrap();
    store.forget("someones-route", &KEY).await.unwrap();
    store.pause("someones-provider", now.after(RULE.first)).await.unwrap();
    store.raise_generation(OpId::random(), "someones-route").await.unwrap();
    spend(store).await;
    send(store).await;
    let switch = Switch { state: SwitchState::On, reason: "someones-reason".to_owned(), since: 1, until: None };
    store.set_switch("someones-route", switch).await.unwrap();
}

/// An attempt in each state, and one that was given up.
async fn spend(store: &RedisStore) {
    let caps = ["someones-cap", "someones-other-cap"].map(|name| Cap { ends: store.link.clock.now(), ..cap(name, 100) });
    for (id, settlement) in (0..).zip([None, Some(Settlement::Billed(7)), Some(Settlement::NotBilled), Some(Settlement::Unknown)])
    {
        let row = Row { route: "someones-route".to_owned(), ..row("2027-01-15") };
        let reserved = store.reserve(Reservation { id: OpId(id), caps: &caps, amount: 10, row }).await;
        assert!(matches!(reserved, Ok(Reserved::Yes(_))), "{reserved:?}");
        if let Some(settlement) = settlement {
            assert_eq!(store.settle(OpId(id), settlement, "someones-outcome").await, Ok(true));
        }
    }
    assert_eq!(store.settle(OpId(9), Settlement::NotBilled, "someones-outcome").await, Ok(false));
    let all = Days { from: String::new(), to: "~".to_owned() };
    assert_eq!((store.used(&caps).await, store.spent(&all).await.unwrap().len()), (Ok(vec![27, 27]), 4));
    store.credit(OpId::random(), &[saving("someones-cause", 1, 10)]).await.unwrap();
    assert_eq!(store.saved(&all).await.unwrap().len(), 1);
    assert_eq!(store.first("someones-mark", RULE.first).await, Ok(true));
    assert_eq!(sweep(&store.link, &store.epoch, "someone").await, Ok(0));
    store.accept_loss().await.unwrap();
}

/// What is sent and not settled, or was said to be unknown.
const UNSETTLED: [Intention; 2] = [Intention(2), Intention(5)];

/// A write in each state. Of two that were settled a turn is remembered.
async fn send(store: &RedisStore) {
    let (owner, lease, about) = (OpId(1), RULE.first, About { caller: "someones-name".to_owned(), ..About::default() });
    let claim = |what| Claim { intention: what, owner, fingerprint: &KEY, lease, again: ANY_TIME, look: false };
    let kept = StoredAnswer { error_until: Timestamp(u64::MAX), ..answer(0, b"x") };
    let [done, free, unknown] = [End::Done(kept.clone()), End::Free, End::Unknown];
    let not_sent = || Found::NotSent(store.link.clock.now().after(lease));
    for (what, end, found) in [
        (Intention(2), None, None),
        (Intention(3), Some(done), None),
        (Intention(4), Some(free), None),
        (Intention(5), Some(unknown.clone()), None),
        (Intention(6), Some(unknown.clone()), Some(Found::Sent(kept))),
        (Intention(7), Some(unknown.clone()), Some(not_sent())),
        (Intention(8), Some(unknown), Some(not_sent())),
    ] {
        assert_eq!(store.claim(claim(what)).await, Ok(Claimed::Owned { turn: 0 }));
        let sending = Sending { intention: what, owner, lease, timeout: lease, about: &about };
        assert_eq!((store.sending(sending).await, store.prolong(what, owner, lease).await), (Ok(true), Ok(true)));
        if let Some(end) = end {
            assert_eq!(store.finish(what, owner, end).await, Ok(true));
        }
        if let Some(found) = found {
            let settled = store.resolve(Settling { intention: what, owner, by: OpId(9), found }).await;
            assert_eq!(settled, Ok(Settled::Yes(about.clone())));
        }
    }
    assert_eq!(store.claim(claim(Intention(1))).await, Ok(Claimed::Owned { turn: 0 }));
    assert_eq!(store.claim(claim(Intention(8))).await, Ok(Claimed::Owned { turn: 1 }));
    assert_eq!(store.finish(Intention(8), owner, End::Free).await, Ok(true));
    assert_eq!(store.unresolved(9).await.unwrap().iter().map(|line| line.intention).collect::<Vec<_>>(), UNSETTLED);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l_01_nothing_but_records_stays_for_good_and_no_name_says_whose_it_is() {
    let server = Server::start();
    let (store, _events) = open(&server).await;
    use_it(&store).await;
    assert_eq!(server.say("ZCARD t:unsettled:{t}"), ":2\r\n");
    let names = names(&server);
    let kinds: std::collections::HashSet<_> = names.iter().filter_map(|name| name.split(':').nth(1)).collect();
    assert_eq!(kinds.len(), 27, "every kind of the table: {kinds:?}");
    for name in &names {
        let records = ["generations", "switches", "seq", "epoch", "owners", "unsettled"];
        let unsettled = UNSETTLED.map(|what| store.keys().write(what)).contains(name);
        let forever = unsettled || records.iter().any(|record| name == &format!("t:{record}:{{t}}"));
        assert_eq!(ttl(&server, name) == -1, forever, "{name}");
        assert!(!name.contains("someone"), "{name}");
    }
}

/// A cluster of one node: whatever names keys of two slots, or keys it did not declare, fails in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_keys_of_each_script_share_a_slot_and_all_are_declared() {
    let server = Server::with(&["--save", "", "--cluster-enabled", "yes"]);
    server.say("CLUSTER ADDSLOTSRANGE 0 16383");
    let (store, mut events) = open(&server).await;
    use_it(&store).await;
    super::super::super::conformance::shared::listening(&mut events).await;
    assert!(store.health().well, "{:?}", store.health());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_stays_until_it_is_full_and_a_minute() {
    let server = Server::start();
    let (store, _events) = open(&server).await;
    let bucket = Bucket::whole(1, 10, 1, Duration::from_secs(100));
    store.take(OpId::random(), &[Bucket { cost: 3_000_000, ..bucket }], true).await.unwrap();
    let ttl = ttl(&server, &names(&server).into_iter().find(|name| name.starts_with("t:bucket")).unwrap());
    assert!((350_000..=360_000).contains(&ttl), "{ttl}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l_01_what_an_old_version_left_without_an_end_repairs_itself() {
    let server = Server::start();
    let (store, _events) = open(&server).await;
    let keys = store.keys().clone();
    let bucket = Bucket::whole(1, 1, 1, Duration::from_secs(1));
    let name = keys.bucket(1);
    let now = store.link.clock.now().0;
    let exhausted = format!("SET {name} \"0 0 {} 1000000 1 1\"", now - 2_000_000);
    let in_the_future = format!("SET {name} \"1000000 0 {} 1000000 1 1\"", now + 1_000_000_000_000);
    let odd = format!("SET {name} \"0 0 0 18446744073709551615 0 0\"");
    for garbage in [exhausted, in_the_future, odd, format!("SET {name} x"), format!("RPUSH {name} x"), format!("HSET {name} t 0")]
    {
        server.say(&format!("DEL {name}"));
        server.say(&garbage);
        let taken = store.take(OpId::random(), &[bucket], true).await.unwrap();
        assert!(matches!(taken, Taken::Yes(_)), "{garbage}: {taken:?}");
        assert!(ttl(&server, &name) > 0, "{garbage}");
    }
    server.say(&format!("PERSIST {name}"));
    assert!(matches!(store.take(OpId::random(), &[bucket], true).await.unwrap(), Taken::No { .. }));
    assert!(ttl(&server, &name) > 0, "a refusal repairs it, too");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l_01_lockouts_and_leases_repair_themselves_too() {
    let server = Server::start();
    let (store, _events) = open(&server).await;
    let keys = store.keys().clone();
    let (subject, never) = (keys.lockout(&KEY), u64::MAX);
    let locked = format!("HSET {subject} lock \"{never} 1 1\" m:1 {never} m:2 {never} f:3 {never} f:4 x");
    for garbage in [locked, format!("HSET {subject} x y lock z"), format!("SET {subject} x"), format!("RPUSH {subject} x")] {
        server.say(&format!("DEL {subject}"));
        server.say(&garbage);
        let expires = store.link.clock.now().after(RULE.first);
        assert_eq!(store.guess(OpId::random(), &[KEY], RULE, expires).await, Ok(Guess::Admitted), "{garbage}");
        assert!(ttl(&server, &subject) > 0, "{garbage}");
    }
    let lease = keys.lease(&KEY);
    for garbage in [format!("HSET {lease} flight x until {never}"), format!("HSET {lease} flight x"), format!("SET {lease} x")] {
        server.say(&format!("DEL {lease}"));
        server.say(&garbage);
        let entry = Entry { flight: OpId::random(), key: &KEY, ttl: RULE.first, look: true, waiting: None };
        assert!(matches!(store.enter(entry).await, Ok(Entered::Taken(_))), "{garbage}");
        assert!(ttl(&server, &lease) > 0, "{garbage}");
    }
}
