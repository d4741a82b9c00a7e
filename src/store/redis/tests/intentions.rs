//! Any history of paid writes, with deaths of the server in it; and the scripts against the rules in Rust: the same questions at the
//! same times, the same answers.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::super::super::conformance::answers::answer;
use super::super::super::conformance::intentions::{any_writes, play};
use super::super::super::conformance::writes::{FIRST, LEASE, WHAT, about, claim};
use super::super::super::write::record::{self, Record};
use super::super::super::write::{Again, Claim, Claimed, End, Found, Intention, Sending, Settled, Settling, Unresolved, Writes};
use super::histories::{at_home, reborn};
use super::writes::sends;
use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_intention_is_sent_once(history in any_writes(60, false)) {
        play(at_home(Server::durable(), Clock::manual(Timestamp(START))), &history, |world| Ok(reborn(world)));
    }

    #[test]
    fn any_intention_is_sent_again_as_the_same(history in any_writes(60, true)) {
        play(at_home(Server::durable(), Clock::manual(Timestamp(START))), &history, |world| Ok(reborn(world)));
    }
}

/// What is done, for which intention, by whom.
#[derive(Clone, Debug)]
struct Step {
    wait: u64,
    /// As of a store that was replaced by a slower one.
    back: bool,
    what: u128,
    owner: u128,
    does: Does,
}

#[derive(Clone, Debug)]
enum Does {
    Claim {
        other: bool,
        lease: Duration,
        again: Option<Again>,
        look: bool,
    },
    Sending {
        lease: Duration,
        timeout: Duration,
    },
    Prolong {
        lease: Duration,
    },
    Finish(End),
    Resolve(Found),
    /// How many at most.
    List(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // One that is longer than any was begun by a clock that was set back.
    let long = || prop_oneof![Just(8), Just(11)].prop_map(Duration::from_mins);
    let lease = || prop_oneof![4 => (1..2_000_u64).prop_map(Duration::from_micros), 1 => long()];
    let kept = || (0..3_000_000_u64).prop_map(kept);
    let remember = (0..20_000_u64).prop_map(|later| Found::NotSent(Timestamp(START + later)));
    // Sent first at the start: after then, or not.
    let again = prop_oneof![Just(None), Just(Some(FIRST.0)), Just(Some(FIRST.0 - 1)), Just(Some(0))];
    let again = again.prop_flat_map(|after| {
        let to = prop_oneof![4 => Just(0x70_u128), 1 => Just(0x71)];
        to.prop_map(move |to| after.map(|after| Again { after: Timestamp(after), to }))
    });
    let claim = (prop::bool::weighted(0.1), lease(), again, prop::bool::weighted(0.2));
    let end = prop_oneof![1 => kept().prop_map(End::Done), 2 => Just(End::Free), 2 => Just(End::Unknown)];
    let does = prop_oneof![
        6 => claim.prop_map(|(other, lease, again, look)| Does::Claim { other, lease, again, look }),
        6 => (lease(), lease()).prop_map(|(lease, timeout)| Does::Sending { lease, timeout }),
        2 => lease().prop_map(|lease| Does::Prolong { lease }),
        3 => end.prop_map(Does::Finish),
        3 => prop_oneof![3 => remember, 1 => kept().prop_map(Found::Sent)].prop_map(Does::Resolve),
        1 => (0..4_usize).prop_map(Does::List),
    ];
    let owner = prop_oneof![4 => Just(1_u128), 1 => 2..4_u128];
    let step = (0..1_000_u64, prop::bool::weighted(0.05), 1..3_u128, owner, does);
    prop::collection::vec(step.prop_map(|(wait, back, what, owner, does)| Step { wait, back, what, owner, does }), 1..60)
}

/// Answered at the start, replayed for so long.
fn kept(long: u64) -> StoredAnswer {
    let until = Timestamp(START + long);
    StoredAnswer { fresh_until: until, revalidate_until: until, error_until: until, ..answer(0, b"sent") }
}

/// What a process would keep, were it the only one.
#[derive(Default)]
struct Model(HashMap<Intention, Option<Record>>);

impl Model {
    fn unresolved(&self, most: usize, now: Timestamp) -> Vec<Unresolved> {
        let records = self.0.iter().filter_map(|(what, record)| Some((what, record.as_ref()?)));
        let mut shown: Vec<_> = records.filter_map(|(what, record)| record::unresolved(*what, record, now)).collect();
        shown.sort_by_key(|line| (line.since, line.intention));
        shown.truncate(most);
        shown
    }
}

/// Does one step in both. Returns what each said.
async fn act(store: &RedisStore, model: &mut Model, base: u128, step: &Step, now: Timestamp) -> (String, String) {
    let (intention, owner) = (Intention(base + step.what), OpId(step.owner));
    let about = about(&format!("{:?}", step.does));
    let slot = model.0.entry(intention).or_default();
    match step.does.clone() {
        Does::Claim { other, lease, again, look } => {
            let claim = Claim { intention, owner, fingerprint: &[u8::from(other); 32], lease, again, look };
            said(record::claim(slot, &claim, now), store.claim(claim).await)
        }
        Does::Sending { lease, timeout } => {
            let sending = Sending { intention, owner, lease, timeout, about: &about };
            said(record::sending(slot, &sending, now), store.sending(sending).await)
        }
        Does::Prolong { lease } => said(record::prolong(slot, owner, lease, now), store.prolong(intention, owner, lease).await),
        Does::Finish(end) => said(record::finish(slot, owner, end.clone(), now), store.finish(intention, owner, end).await),
        Does::Resolve(found) => {
            let settling = Settling { intention, owner, by: OpId(9), found };
            said(record::resolve(slot, &settling, now), store.resolve(settling).await)
        }
        Does::List(most) => said(model.unresolved(most, now), store.unresolved(most).await),
    }
}

fn said<T: std::fmt::Debug>(by_rule: T, by_script: Result<T, StoreError>) -> (String, String) {
    (format!("{by_rule:?}"), format!("{:?}", by_script.unwrap()))
}

async fn agree(store: &RedisStore, steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut model, base) = (Model::default(), OpId::random().0 & !0xff);
    let mut now = Timestamp(START);
    for step in steps {
        now = now.after(Duration::from_micros(step.wait));
        let seen = if step.back { Timestamp(now.0 - 1_000_000) } else { now };
        store.link.clock.follow(seen);
        let (by_rule, by_script) = act(store, &mut model, base, step, seen).await;
        prop_assert_eq!(by_script, by_rule, "{:?}", step);
    }
    let left = store.unresolved(usize::MAX).await.unwrap();
    prop_assert_eq!(&left, &model.unresolved(usize::MAX, store.link.clock.now()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scripts_judge_as_the_process_does() {
    let (server, clock) = (Server::start(), Clock::manual(Timestamp(START)));
    let (store, _events) = on_clock(&server, &clock).await;
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        let mut runner = TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
        runner
            .run(&steps(), |steps| {
                // The list of what is unresolved is one for all.
                server.say("DEL t:unsettled:{t}");
                runtime.block_on(agree(&store, &steps))
            })
            .unwrap();
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_from_the_future_that_lives_has_the_time_of_day() {
    let (server, clock) = (Server::start(), Clock::manual(Timestamp(START).after(Duration::from_hours(1))));
    let (store, _events) = on_clock(&server, &clock).await;
    sends(&store, WHAT, 1).await;
    clock.follow(Timestamp(START));
    let found = Found::NotSent(Timestamp(START));
    let settle = || store.resolve(Settling { intention: WHAT, owner: OpId(1), by: OpId(9), found: found.clone() });
    let from = Timestamp(START).after(record::LONGEST).after(TIMEOUT);
    assert_eq!(settle().await, Ok(Settled::NotBefore(from)));
    assert_eq!(store.claim(claim(2)).await, Ok(Claimed::Unknown), "nobody waits for an hour");
    clock.advance(Duration::from_secs(1));
    assert_eq!(settle().await, Ok(Settled::NotBefore(from)), "it does not move on");
    assert_eq!(store.prolong(WHAT, OpId(1), LEASE).await, Ok(true));
    assert_eq!(store.claim(claim(2)).await, Ok(Claimed::Held { left: LEASE }));
}
