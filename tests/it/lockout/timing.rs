//! How long a locked caller waits for its answer, beside one who is not locked and is given a stored "not found".
//!
//! Figures, not a verdict: time is nobody's to promise on a machine that is shared. What makes both take as long is that they do
//! the same, and that is tested (see `same`). To see them:
//!
//! ```text
//! cargo nextest run --release --run-ignored only --no-capture -E 'test(lockout::timing)'
//! ```

use tollgate::clock::{Clock, Timestamp};

use super::{company, missing};
use crate::support::gate::{Gate, KEY, OTHER_KEY};
use crate::support::raw::Raw;
use crate::support::redis::RedisServer;
use crate::support::step::Script;
use crate::support::upstream::FakeUpstream;

/// Of each of the two.
const ASKS: usize = 2_000;
/// Fewer than lock, between two of which the admin clears what was counted.
const TOGETHER: usize = 4;
/// Asks at the beginning that are not looked at.
const WARM: usize = 200;

/// A caller with a connection of its own.
struct Asker {
    raw: Raw,
    key: &'static str,
    took: Vec<u64>,
}

impl Asker {
    async fn of(gate: &Gate, key: &'static str) -> Self {
        Self { raw: Raw::connect(gate.addr).await, key, took: Vec::new() }
    }

    async fn ask(&mut self, clock: &Clock, number: usize) {
        let request = format!("GET /company/{number:08} HTTP/1.1\r\nHost: g\r\nX-Api-Key: {}\r\n\r\n", self.key);
        let Timestamp(before) = clock.ticks();
        let status = self.raw.send(request).await.response().await.unwrap().status;
        self.took.push(clock.ticks().0 - before);
        assert_eq!(status, 404);
    }

    /// What it waited, sorted.
    fn sorted(mut self) -> Vec<u64> {
        self.took.drain(..WARM);
        self.took.sort_unstable();
        self.took
    }
}

/// The locked one asks for what is not stored, as guessers do; the other for what is.
async fn compare(gate: &Gate) -> (Vec<u64>, Vec<u64>) {
    let (mut locked, mut stored) = (Asker::of(gate, KEY).await, Asker::of(gate, OTHER_KEY).await);
    for number in 0..5 {
        gate.get(&format!("/company/{number:08}")).await;
    }
    for turn in 0..(ASKS + WARM) / TOGETHER {
        for nth in 0..TOGETHER {
            let number = 10_000 + turn * TOGETHER + nth;
            // Neither comes first more often than the other.
            if (turn + nth) % 2 == 0 {
                locked.ask(&gate.clock, number).await;
                stored.ask(&gate.clock, nth).await;
            } else {
                stored.ask(&gate.clock, nth).await;
                locked.ask(&gate.clock, number).await;
            }
        }
        gate.admin.send(http::Method::DELETE, "/v1/lockouts/company/other", "".into()).await;
    }
    (locked.sorted(), stored.sorted())
}

fn quantile(sorted: &[u64], percent: usize) -> u64 {
    sorted[(sorted.len() - 1) * percent / 100]
}

/// How many answers in a thousand the best threshold tells right; five hundred is none.
fn best_guess(one: &[u64], other: &[u64]) -> usize {
    let below = |sorted: &[u64], most: u64| sorted.partition_point(|took| *took <= most) * 1_000 / sorted.len();
    let gaps = one.iter().chain(other).map(|most| below(one, *most).abs_diff(below(other, *most)));
    500 + gaps.max().unwrap_or_default() / 2
}

fn report(store: &str, locked: &[u64], stored: &[u64]) {
    println!("{store}: {} asks each, microseconds", locked.len());
    for (name, took) in [("locked", locked), ("stored", stored)] {
        let [low, quarter, median, three, high] = [5, 25, 50, 75, 95].map(|percent| quantile(took, percent));
        println!("  {name}: median {median}, quartiles {quarter} {three}, 5 % {low}, 95 % {high}");
    }
    println!("  the best threshold is right {} times in 1000", best_guess(locked, stored));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures"]
async fn a_locked_caller_beside_a_stored_not_found() {
    let redis = RedisServer::start().await;
    let redis = format!("url = \"{}\"", redis.url());
    for store in ["url = \"memory:\"", "url = \"sqlite:{dir}/t.db\"", redis.as_str()] {
        let upstream = FakeUpstream::start(Script::by(|_| missing())).await;
        let cache = "cache = { found = \"1d\", not_found = \"1d\" }";
        let mut setup = company("", cache).store(store);
        setup.body = setup.body.replace("first = \"60s\", max = \"4m\"", "first = \"24h\"");
        let gate = setup.start_with(&upstream, Clock::system()).await;
        let (locked, stored) = compare(&gate).await;
        report(store.split([':', '"']).nth(1).unwrap(), &locked, &stored);
    }
}
