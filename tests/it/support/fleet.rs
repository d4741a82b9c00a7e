//! Several gateways that are to act as one, in this process: one upstream that counts, and what each instance has of its own.

use std::net::SocketAddr;
use std::ops::Index;

use futures_util::future::join_all;
use tollgate::clock::{Clock, Timestamp, micros};

use super::gate::{Gate, Setup};
use super::raw::Response;
use super::upstream::FakeUpstream;

pub mod processes;
pub mod volley;

use volley::volley;

/// Instances by number, from 0. Dropping it ends them.
///
/// ```ignore
/// let fleet = Fleet::start(2, &upstream, |_| quote("", "").redis(&redis.url())).await;
/// let fleet = Fleet::start(2, &upstream, |nth| (setup(&proxies[nth]), skewed(-10 * nth as i64))).await;
/// let replies = fleet.ask((0..50).map(|_| get(QUOTE))).await;     // the nth of instance nth % 2
/// assert_eq!((upstream.calls(), fleet.spent().await), (1, 5_000));
/// ```
pub struct Fleet {
    pub gates: Vec<Gate>,
    shares: bool,
}

/// One instance to be. A setup alone runs on the machine's clock, as Redis does.
pub struct Member {
    pub setup: Setup,
    pub clock: Clock,
}

impl From<Setup> for Member {
    fn from(setup: Setup) -> Self {
        Self { setup, clock: Clock::system() }
    }
}

impl From<(Setup, Clock)> for Member {
    fn from((setup, clock): (Setup, Clock)) -> Self {
        Self { setup, clock }
    }
}

/// A clock that is so many seconds ahead of the machine's, or behind, and stands until it is stepped.
pub fn skewed(seconds: i64) -> Clock {
    let skew = micros(std::time::Duration::from_secs(seconds.unsigned_abs()));
    let Timestamp(now) = Clock::system().now();
    Clock::manual(Timestamp(if seconds < 0 { now - skew } else { now + skew }))
}

impl Setup {
    /// Its store is the Redis at this URL, directly or through a proxy.
    pub fn redis(self, url: &str) -> Self {
        self.store(&format!("url = \"{url}\""))
    }
}

impl Fleet {
    /// So many instances, each as `member` says of its number.
    pub async fn start<M: Into<Member>>(instances: usize, upstream: &FakeUpstream, member: impl Fn(usize) -> M) -> Self {
        let start = async |nth| {
            let Member { setup, clock } = member(nth).into();
            setup.start_with(upstream, clock).await
        };
        let gates: Vec<Gate> = join_all((0..instances).map(start)).await;
        let shares = gates.first().is_some_and(Gate::shares_its_store);
        Self { gates, shares }
    }

    pub fn addrs(&self) -> Vec<SocketAddr> {
        self.gates.iter().map(|gate| gate.addr).collect()
    }

    /// Asks all at once, the nth request of the nth instance, round and round; the responses in the order of the requests. For
    /// some of the instances: [`volley`].
    pub async fn ask(&self, requests: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Vec<Option<Response>> {
        volley(&self.addrs(), requests).await
    }

    /// Money spent so far by all of them, in micro-units.
    pub async fn spent(&self) -> u64 {
        let spent = join_all(self.gates.iter().map(Gate::spent)).await.into_iter().sum();
        // They share one ledger, if they share a store.
        if self.shares
            && let Some(gate) = self.gates.first()
        {
            gate.ledger_says(spent).await;
        }
        spent
    }

    /// The sum of a metric over all of them.
    pub async fn metric(&self, name: &str, label: &str) -> u64 {
        join_all(self.gates.iter().map(|gate| gate.metric(name, label))).await.into_iter().sum()
    }
}

impl Index<usize> for Fleet {
    type Output = Gate;

    fn index(&self, nth: usize) -> &Gate {
        &self.gates[nth]
    }
}
