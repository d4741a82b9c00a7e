//! Lockouts in Redis against lockouts in process memory: the same questions at the same times, the same answers.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::super::super::memory::{Bounds, MemoryStore};
use super::*;

const RULE: LockoutRule = LockoutRule {
    misses: 3,
    window: Duration::from_micros(1_000),
    first: Duration::from_micros(150),
    max: Duration::from_micros(700),
};

/// What is done, of whom (a bit a subject), and to which guess.
#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Guess { op: u128, subjects: u8, lasts: u64 },
    Settle { op: u128, subjects: u8, missed: bool },
    Clear(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..300_u64).prop_map(Step::Wait),
        (0..40_u128, 1..8_u8, 0..400_u64).prop_map(|(op, subjects, lasts)| Step::Guess { op, subjects, lasts }),
        (0..40_u128, 1..8_u8, prop::bool::weighted(0.8)).prop_map(|(op, subjects, missed)| Step::Settle { op, subjects, missed }),
        (0..3_u8).prop_map(Step::Clear),
    ];
    prop::collection::vec(step, 1..40)
}

/// Does one step. Returns what it said.
async fn act(store: &dyn Records, clock: &Clock, base: u128, step: &Step) -> Option<Guess> {
    let subject = |n: u8| -> Digest { std::array::from_fn(|at| if at == 0 { n } else { base.to_be_bytes()[at % 12] }) };
    let chosen = |bits: u8| (0..3).filter(|n| bits & (1 << n) != 0).map(subject).collect::<Vec<_>>();
    match *step {
        Step::Wait(_) => {}
        Step::Guess { op, subjects, lasts } => {
            let expires = clock.now().after(Duration::from_micros(lasts));
            return Some(store.guess(OpId(base + op), &chosen(subjects), RULE, expires).await.unwrap());
        }
        Step::Settle { op, subjects, missed } => {
            store.settle_guess(OpId(base + op), &chosen(subjects), RULE, missed).await.unwrap();
        }
        Step::Clear(n) => store.clear_lockout(&subject(n)).await.unwrap(),
    }
    None
}

async fn agree(redis: &RedisStore, steps: &[Step]) -> Result<(), TestCaseError> {
    let (clock, base) = (redis.link.clock.clone(), OpId::random().0 & !0xff);
    let memory = MemoryStore::new(clock.clone(), Bounds::default());
    for step in steps {
        if let Step::Wait(long) = step {
            clock.advance(Duration::from_micros(*long));
        }
        let said = (act(redis, &clock, base, step).await, act(&memory, &clock, base, step).await);
        prop_assert_eq!(said.0, said.1, "{:?}", step);
        for n in 0..3_u8 {
            let subject: Digest = std::array::from_fn(|at| if at == 0 { n } else { base.to_be_bytes()[at % 12] });
            let known = (redis.lockout(&subject, RULE).await, memory.lockout(&subject, RULE).await);
            prop_assert_eq!(known.0, known.1, "after {:?}", step);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lockouts_go_as_they_do_in_memory() {
    let (server, clock) = (Server::start(), Clock::manual(Timestamp(START)));
    let (store, _events) = on_clock(&server, &clock).await;
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        let mut runner = TestRunner::new(Config { cases: 50, failure_persistence: None, ..Config::default() });
        runner.run(&steps(), |steps| runtime.block_on(agree(&store, &steps))).unwrap();
    });
}
