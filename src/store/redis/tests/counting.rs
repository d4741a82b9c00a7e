//! The script that takes against the arithmetic in Rust: the same questions, the same answers.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::super::super::Level;
use super::super::super::bucket::{Numbers, State};
use super::super::buckets::Numbers as Sent;
use super::*;

/// One bucket of a question: which, its numbers, what it costs.
type Asked = (u128, usize, u64);
/// A question: how far the clock goes before it, and whether it goes back for it; the buckets; debit or look.
type Question = (u64, bool, Vec<Asked>, bool);

/// What a process would keep, were it the only one.
#[derive(Default)]
struct Model(HashMap<u128, State>);

impl Model {
    fn take(&mut self, buckets: &[Bucket], debit: bool, now: Timestamp) -> Taken {
        let before = self.0.clone();
        let (mut slowest, mut wait, mut renumbered) = (0, Duration::ZERO, Vec::new());
        for (index, bucket) in buckets.iter().enumerate() {
            let numbers = Numbers::from(bucket);
            let state = self.0.entry(bucket.id).or_insert_with(|| State::full(numbers, now));
            let was = *state;
            state.refill(numbers, now);
            if was.numbers() != numbers {
                renumbered.push(bucket.id);
            }
            let until = state.ask(bucket.cost, now);
            if until > wait {
                (slowest, wait) = (index, until);
            }
        }
        let passed = wait.is_zero();
        let asked = |id: u128| buckets.iter().any(|bucket| bucket.id == id && bucket.cost > 0);
        let settle = |bucket: &Bucket| self.0.get_mut(&bucket.id).map(|state| state.settle(debit && passed, now));
        let levels: Vec<Level> = buckets.iter().filter_map(settle).collect();
        // What nothing was taken from is as it was: what has accrued follows from that. (A process writes it down all the same,
        // which is another thing only when time goes back.)
        let changed = |id| (debit && passed && asked(id)) || renumbered.contains(&id);
        self.0.retain(|id, state| match before.get(id) {
            _ if changed(*id) => true,
            Some(before) => {
                *state = *before;
                true
            }
            None => false,
        });
        if passed { Taken::Yes(levels) } else { Taken::No { bucket: slowest, wait, levels } }
    }
}

fn numbers() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    prop::collection::vec((1..5_000_000_u64, 1..500_u64, 1..5_000_u64), 3)
}

fn questions() -> impl Strategy<Value = Vec<Question>> {
    let asked = prop::collection::vec((0..3_u128, 0..3_usize, 0..1_500_000_u64), 1..4);
    prop::collection::vec((0..3_000_000_u64, any::<bool>(), asked, prop::bool::weighted(0.8)), 1..40)
}

/// A bucket whose rate stands in its lowest terms, as it is sent.
fn bucket(base: u128, (id, index, cost): Asked, numbers: &[(u64, u64, u64)]) -> Bucket {
    let (capacity, refill, per) = numbers[index];
    let bucket = Bucket { id: base + id, capacity, refill, per: Duration::from_micros(per), cost };
    let sent = Sent::of(&bucket).unwrap();
    Bucket { refill: sent.refill, per: Duration::from_micros(sent.per), ..bucket }
}

async fn agree(store: &RedisStore, numbers: &[(u64, u64, u64)], questions: &[Question]) -> Result<(), TestCaseError> {
    let (mut model, base) = (Model::default(), OpId::random().0 & !0xff);
    let mut now = store.link.clock.now();
    for (step, back, asked, debit) in questions {
        now = now.after(Duration::from_micros(*step));
        // As of a store that was replaced by a slower one.
        let seen = if *back { Timestamp(now.0 - 1_000_000) } else { now };
        store.link.clock.follow(seen);
        let buckets: Vec<Bucket> = asked.iter().map(|asked| bucket(base, *asked, numbers)).collect();
        let taken = store.take(OpId::random(), &buckets, *debit).await.unwrap();
        prop_assert_eq!(taken, model.take(&buckets, *debit, seen), "{:?}", buckets);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_script_counts_as_the_process_does() {
    let (server, clock) = (Server::start(), Clock::manual(Timestamp(START)));
    let (store, _events) = on_clock(&server, &clock).await;
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        let mut runner = TestRunner::new(Config { cases: 150, failure_persistence: None, ..Config::default() });
        let agree = |(numbers, questions): (Vec<_>, Vec<_>)| runtime.block_on(agree(&store, &numbers, &questions));
        runner.run(&(numbers(), questions()), agree).unwrap();
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_at_the_edge_of_what_can_be_counted_are_exact() {
    let (server, clock) = (Server::start(), Clock::manual(Timestamp(START)));
    let (store, _events) = on_clock(&server, &clock).await;
    let mut model = Model::default();
    let capacity = (1 << 53) / 1_000_003 - 2;
    let bucket = Bucket { id: 1, capacity, refill: 7, per: Duration::from_micros(1_000_003), cost: capacity };
    assert!(countable(&bucket) && !countable(&Bucket { capacity: capacity + 3, ..bucket }));
    for (step, cost) in [(0, capacity), (1, 1), (142_857, 1), (999_999_999_999, 3), (u64::from(u32::MAX), capacity)] {
        clock.advance(Duration::from_micros(step));
        let asked = [Bucket { cost, ..bucket }];
        let taken = store.take(OpId::random(), &asked, true).await.unwrap();
        assert_eq!(taken, model.take(&asked, true, clock.now()));
    }
}
