//! The connection that all calls share, and the watch over it.
//!
//! A task connects, loads the scripts, runs a real one, and only then shows the connection to callers. Without a connection a
//! call fails at once, so this is the store's breaker, too. Whatever says that the one at the other end is of no use (an I/O
//! error, a timeout, `READONLY`, a reply to another question) takes the connection away, and the task makes a new one: a
//! half-open TCP connection, a failover and a restart are all the same to it.
//!
//! A call is sent once. Only one whose script was not there, and so has not run, is sent again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use redis::Value;
use redis::aio::MultiplexedConnection;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use self::call::Call;
use self::dial::Dialer;
use super::super::StoreError;
use super::fault::{Fault, away, out_of_step};
use super::reply::Parts;
use super::script::{Script, Time};
use crate::clock::{Clock, Timestamp};

pub(super) mod call;
mod copied;
pub(super) mod dial;
mod supervise;
mod waiting;

/// The link. Everything in it is shared.
pub(super) struct Link {
    pub(super) dialer: Dialer,
    pub(super) clock: Clock,
    time: Time,
    /// For one call, and for each step of connecting.
    pub(super) timeout: Duration,
    live: ArcSwapOption<Live>,
    /// The connection was taken away.
    lost: Notify,
    /// Connections shown to callers so far.
    shown: watch::Sender<u64>,
    nonce: AtomicU64,
    /// The last thing that went wrong.
    error: Mutex<Option<StoreError>>,
    pub(super) stop: CancellationToken,
}

/// A connection that works.
struct Live {
    connection: MultiplexedConnection,
    number: u64,
}

impl Link {
    pub(super) fn new(dialer: Dialer, clock: Clock, time: Time, timeout: Duration) -> Arc<Self> {
        Arc::new(Self::with_stop(dialer, clock, time, timeout, CancellationToken::new()))
    }

    /// Another link to the same store, which ends when this one does.
    pub(super) fn another(&self) -> Arc<Self> {
        let link = Self::with_stop(self.dialer.clone(), self.clock.clone(), self.time, self.timeout, self.stop.clone());
        Arc::new(link)
    }

    fn with_stop(dialer: Dialer, clock: Clock, time: Time, timeout: Duration, stop: CancellationToken) -> Self {
        Self {
            dialer,
            clock,
            time,
            timeout,
            live: ArcSwapOption::empty(),
            lost: Notify::new(),
            shown: watch::Sender::new(0),
            nonce: AtomicU64::new(rand::random()),
            error: Mutex::default(),
            stop,
        }
    }

    /// Runs a script and reads its reply. What cannot be read was not the answer to this.
    pub(super) async fn run<T>(&self, call: Call, read: impl FnOnce(&mut Parts) -> Option<T>) -> Result<T, StoreError> {
        self.try_run(&call, read).await.map_err(Fault::error)
    }

    /// The same, for callers who mind what kind of fault it is.
    pub(super) async fn try_run<T>(&self, call: &Call, read: impl FnOnce(&mut Parts) -> Option<T>) -> Result<T, Fault> {
        let Some(live) = self.live.load_full() else { return Err(Fault::Link(away())) };
        let result = self.over(&live, call).await;
        let result = result.and_then(|mut parts| read(&mut parts).ok_or_else(|| Fault::Link(out_of_step())));
        if let Err(fault) = &result {
            self.failed(&live, fault);
        }
        result
    }

    /// One call over one connection, loading the script if it is not there.
    async fn over(&self, live: &Arc<Live>, call: &Call) -> Result<Parts, Fault> {
        let mut connection = live.connection.clone();
        let waiting = self.waiting(live);
        let result = tokio::time::timeout(self.timeout, async {
            let parts = self.send_or_load(&mut connection, call).await?;
            if call.copied {
                self.await_copy(&mut connection).await?;
            }
            Ok(parts)
        })
        .await;
        waiting.over();
        result.unwrap_or(Err(Fault::Link(StoreError::Timeout)))
    }

    async fn send_or_load(&self, connection: &mut MultiplexedConnection, call: &Call) -> Result<Parts, Fault> {
        match self.send(connection, call).await {
            Err(Fault::NoScript) => {
                self.load(connection, call.script).await?;
                self.send(connection, call).await
            }
            result => result,
        }
    }

    async fn send(&self, connection: &mut MultiplexedConnection, call: &Call) -> Result<Parts, Fault> {
        let nonce = self.mark();
        let command = call.command(&nonce, self.time, self.own_time());
        let reply: Value =
            command.query_async(connection).await.map_err(|error| Fault::of(&error).of_script(call.script.name))?;
        Parts::of(reply, &nonce).ok_or_else(|| Fault::Link(out_of_step()))
    }

    /// By which a reply is known.
    fn mark(&self) -> String {
        format!("{:x}", self.nonce.fetch_add(1, Ordering::Relaxed))
    }

    /// What the scripts are to take for now, if not the store's time.
    fn own_time(&self) -> Option<Timestamp> {
        match self.time {
            Time::Store => None,
            #[cfg(test)]
            Time::Caller => Some(self.clock.now()),
        }
    }

    async fn load(&self, connection: &mut MultiplexedConnection, script: &Script) -> Result<(), Fault> {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(script.text(self.time));
        command.query_async::<Value>(connection).await.map(drop).map_err(|error| Fault::of(&error))
    }

    /// Takes a connection away if its fault says so, unless another has taken its place already.
    fn failed(&self, live: &Arc<Live>, fault: &Fault) {
        self.note(fault.clone().error());
        if matches!(fault, Fault::Link(_)) {
            self.take_away(live);
        }
    }

    /// Takes the connection away, whatever it is worth: there is to be a new one.
    pub(super) fn renew(&self) {
        if let Some(live) = self.live.load_full() {
            self.take_away(&live);
        }
    }

    fn take_away(&self, live: &Arc<Live>) {
        let before = self.live.compare_and_swap(&Some(Arc::clone(live)), None);
        if before.as_ref().is_some_and(|before| Arc::ptr_eq(before, live)) {
            self.lost.notify_one();
        }
    }

    /// The other end has hung up.
    fn hung_up(&self, number: u64) {
        if let Some(live) = self.live.load_full().filter(|live| live.number == number) {
            self.failed(&live, &Fault::Link(super::fault::failed("connection lost")));
        }
    }

    fn note(&self, error: StoreError) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// The last thing that went wrong.
    pub(super) fn error(&self) -> Option<StoreError> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Is there a connection, as far as anybody knows?
    pub(super) fn is_up(&self) -> bool {
        self.live.load().is_some()
    }

    /// Waits for a connection, within the time for one call.
    pub(super) async fn up(&self) -> Result<(), StoreError> {
        let mut connections = self.connections();
        let up = async { while !self.is_up() && connections.changed().await.is_ok() {} };
        tokio::time::timeout(self.timeout, up).await.map_err(|_| away())
    }

    /// Connections so far, and word of each that is new.
    pub(super) fn connections(&self) -> watch::Receiver<u64> {
        self.shown.subscribe()
    }

    /// Sets our clock by the store's, which showed `there` some time between `asked` and now. A difference that the way there
    /// may account for is none.
    pub(super) fn follow(&self, there: Timestamp, asked: Timestamp) {
        let half = self.clock.ticks().since(asked) / 2;
        let (there, here) = (there.after(half), self.clock.now());
        if self.time == Time::Store && there.since(here).max(here.since(there)) > half {
            self.clock.follow(there);
        }
    }
}
