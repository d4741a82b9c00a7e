//! Redis (7 or later) or Valkey: the store that instances share.
//!
//! Every operation is one script, run by the store in one step and on the store's own time (`lua/`, beside this file). Replies
//! are checked: each carries back what its question was marked with. One connection serves all calls (`link`); when it is not
//! there, they fail at once. A second one listens to the others (`follower`): what it misses is read from a log, so that an
//! instance knows every change at the latest a second after it was made. A third waits for copies of the store, if it has any
//! (`copies`).
//!
//! What this store may lose depends on its settings, which are read at each connection (`report`). The names of all keys are in
//! `keys`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::copies::Copies;
use self::follower::Follower;
use self::keys::Keys;
use self::link::Link;
use self::link::dial::Dialer;
use self::money::epoch::Epoch;
use self::money::watch::Watch;
use self::report::Report;
use self::script::Time;
use super::event::{Event, Health};
use super::lease::{Entered, Entry, Landing, Leases};
use super::{
    Bucket, Coordination, Digest, Guess, LockoutRule, LockoutState, OpId, Records, Reply, StoreError, StoredAnswer, Switch, Taken,
};
use crate::clock::{Clock, Timestamp};

mod answers;
mod asking;
mod buckets;
mod copies;
mod fault;
mod follower;
mod frame;
mod keys;
mod leases;
mod link;
mod lockouts;
mod money;
mod reply;
mod report;
mod routes;
mod script;
mod writes;

#[cfg(test)]
mod tests;

pub use self::buckets::countable;

/// Where the store is, and how it is used.
#[derive(Clone)]
pub struct Options {
    /// `redis://` or `rediss://`, with user, password and database if there are any.
    pub url: String,
    /// What the names of all keys begin with.
    pub prefix: String,
    /// For each call, and for each step of connecting.
    pub timeout: Duration,
    /// Who vouches for the store's certificate, in PEM form, if not those the system trusts.
    pub ca: Option<Vec<u8>>,
    /// Whether there are routes with paid writes: what the store may lose of them is reported.
    pub writes: bool,
}

impl fmt::Debug for Options {
    /// The address may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("prefix", &self.prefix).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// The store.
pub struct RedisStore {
    link: Arc<Link>,
    report: Arc<Report>,
    epoch: Arc<Epoch>,
    copies: Arc<Copies>,
    /// Which of the instances this is.
    instance: String,
    /// Instances alive, when last heard.
    instances: Arc<AtomicU32>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl RedisStore {
    /// Begins to connect and returns at once: a store that is away is no reason not to begin. To be called within a runtime.
    ///
    /// Events are not bounded in number: they come as fast as people set switches and flights land, and whoever takes them does
    /// no more than note them.
    pub fn open(options: Options, clock: Clock) -> Result<(Arc<Self>, mpsc::UnboundedReceiver<Event>), StoreError> {
        Self::open_on(Time::Store, options, clock)
    }

    fn open_on(time: Time, options: Options, clock: Clock) -> Result<(Arc<Self>, mpsc::UnboundedReceiver<Event>), StoreError> {
        let (timeout, writes) = (options.timeout, options.writes);
        let link = Link::new(Dialer::new(options)?, clock, time, timeout);
        let (events, heard) = mpsc::unbounded_channel();
        let store = Self {
            link: Arc::clone(&link),
            report: Arc::new(Report::new(writes)),
            epoch: Arc::default(),
            copies: Arc::default(),
            instance: keys::id(OpId::random()),
            instances: Arc::new(AtomicU32::new(1)),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        store.tasks.spawn(Arc::clone(&link).supervise(Some(Arc::clone(&store.report))));
        let watch = Watch::new(Arc::clone(&store.epoch), Arc::clone(&store.copies));
        let follower = Follower::new(link, store.instance.clone(), events, Arc::clone(&store.instances), watch);
        store.tasks.spawn(follower.run(store.stop.clone()));
        store.tasks.close();
        Ok((Arc::new(store), heard))
    }

    /// Waits for the first connection, but no longer than this. Is there one?
    pub async fn connected(&self, within: Duration) -> bool {
        let mut connections = self.link.connections();
        tokio::time::timeout(within, connections.wait_for(|shown| *shown > 0)).await.is_ok()
    }

    /// How the store is.
    pub fn health(&self) -> Health {
        Health {
            well: self.link.is_up(),
            was_well: *self.link.connections().borrow() > 0,
            error: self.link.error().map(|error| error.to_string()),
            instances: self.instances.load(Ordering::Relaxed),
            warnings: self.epoch.warning().into_iter().chain(self.report.warnings()).chain(self.copies_warning()).collect(),
        }
    }

    fn copies_warning(&self) -> Option<String> {
        if self.report.writes { self.copies.warning() } else { None }
    }

    fn keys(&self) -> &Keys {
        &self.link.dialer.keys
    }
}

impl Drop for RedisStore {
    /// The tasks end by themselves.
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

// === impl Coordination ===

impl Coordination for RedisStore {
    /// Nobody repeats it, so its id is not remembered.
    fn take<'a>(&'a self, _: OpId, buckets: &'a [Bucket], debit: bool) -> Reply<'a, Taken> {
        Box::pin(buckets::take(self, buckets, debit))
    }

    fn pause<'a>(&'a self, provider: &'a str, until: Timestamp) -> Reply<'a, ()> {
        Box::pin(buckets::pause(self, provider, until))
    }

    fn paused<'a>(&'a self, provider: &'a str) -> Reply<'a, Option<Timestamp>> {
        Box::pin(buckets::paused(self, provider))
    }
}

// === impl Leases ===

impl Leases for RedisStore {
    fn enter<'a>(&'a self, entry: Entry<'a>) -> Reply<'a, Entered> {
        Box::pin(leases::enter(self, entry))
    }

    fn renew<'a>(&'a self, flight: OpId, key: &'a Digest, ttl: Duration) -> Reply<'a, bool> {
        Box::pin(leases::renew(self, flight, key, ttl))
    }

    fn land<'a>(&'a self, landing: Landing<'a>) -> Reply<'a, bool> {
        Box::pin(async move { leases::land(self, &landing).await })
    }
}

// === impl Records ===

impl Records for RedisStore {
    fn answer<'a>(&'a self, key: &'a Digest) -> Reply<'a, Option<StoredAnswer>> {
        Box::pin(answers::answer(self, key))
    }

    fn keep<'a>(&'a self, _: &'a str, key: &'a Digest, answer: StoredAnswer) -> Reply<'a, ()> {
        Box::pin(async move { answers::keep(self, key, &answer).await })
    }

    fn forget<'a>(&'a self, route: &'a str, key: &'a Digest) -> Reply<'a, ()> {
        Box::pin(answers::forget(self, route, key))
    }

    fn generation<'a>(&'a self, route: &'a str) -> Reply<'a, u64> {
        Box::pin(routes::generation(self, route))
    }

    fn raise_generation<'a>(&'a self, op: OpId, route: &'a str) -> Reply<'a, u64> {
        Box::pin(routes::raise_generation(self, op, route))
    }

    fn switches(&self) -> Reply<'_, Vec<(String, Switch)>> {
        Box::pin(routes::switches(self))
    }

    fn set_switch<'a>(&'a self, name: &'a str, switch: Switch) -> Reply<'a, u64> {
        Box::pin(async move { routes::set_switch(self, name, &switch).await })
    }

    fn guess<'a>(&'a self, op: OpId, subjects: &'a [Digest], rule: LockoutRule, expires: Timestamp) -> Reply<'a, Guess> {
        Box::pin(lockouts::guess(self, op, subjects, rule, expires))
    }

    fn settle_guess<'a>(&'a self, op: OpId, subjects: &'a [Digest], rule: LockoutRule, missed: bool) -> Reply<'a, ()> {
        Box::pin(lockouts::settle(self, op, subjects, rule, missed))
    }

    fn lockout<'a>(&'a self, subject: &'a Digest, rule: LockoutRule) -> Reply<'a, LockoutState> {
        Box::pin(lockouts::lockout(self, subject, rule))
    }

    fn clear_lockout<'a>(&'a self, subject: &'a Digest) -> Reply<'a, ()> {
        Box::pin(lockouts::clear(self, subject))
    }

    /// The follower says goodbye, then the link ends.
    fn close(&self) -> Reply<'_, ()> {
        Box::pin(async move {
            self.stop.cancel();
            self.tasks.wait().await;
            Ok(())
        })
    }
}
