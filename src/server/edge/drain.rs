//! Ending a listener in order.
//!
//! `start`: keep-alive ends. Idle connections close at once, requests in flight are answered with `Connection: close`, and new
//! connections are still taken, one request each, so that a load balancer has time to look away. `stop`: the listener closes;
//! what is still open when the time given is up is cut.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// How long cut connections may take to notice.
const LAST_BREATH: Duration = Duration::from_secs(1);

/// The handle that ends listeners. Cloning shares it; one can end any number of listeners.
#[derive(Clone, Debug)]
pub struct Drain(Arc<watch::Sender<State>>);

#[derive(Clone, Copy, Debug)]
struct State {
    phase: Phase,
    cut_at: Option<Instant>,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Open,
    Draining,
    Stopped,
    Cut,
}

impl Default for Drain {
    fn default() -> Self {
        Self::new()
    }
}

impl Drain {
    /// A handle of listeners that are open.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(State { phase: Phase::Open, cut_at: None })))
    }

    /// Ends keep-alive; the listeners stay open.
    pub fn start(&self) {
        self.0.send_modify(|state| state.phase = state.phase.max(Phase::Draining));
    }

    /// Closes the listeners, and after `within` whatever is still open. Said twice, the earlier end holds.
    pub fn stop(&self, within: Duration) {
        let asked = Instant::now().checked_add(within);
        self.0.send_modify(|state| {
            state.phase = state.phase.max(Phase::Stopped);
            state.cut_at = match (state.cut_at, asked) {
                (Some(before), Some(asked)) => Some(before.min(asked)),
                (before, asked) => before.or(asked),
            };
        });
    }

    /// The end has begun.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.0.borrow().phase >= Phase::Draining
    }

    pub(super) fn watch(&self) -> Watch {
        Watch(self.0.subscribe())
    }

    /// Waits for the last connections, and cuts them when their time is up.
    pub(super) async fn see_off(&self, ended: impl Future<Output = ()>) {
        let mut ended = std::pin::pin!(ended);
        let mut watch = self.watch();
        tokio::select! {
            () = &mut ended => return,
            () = watch.time_up() => {}
        }
        self.0.send_modify(|state| state.phase = Phase::Cut);
        if tokio::time::timeout(LAST_BREATH, ended).await.is_err() {
            tracing::error!("a connection would not end");
        }
    }
}

/// One onlooker of the end.
#[derive(Clone, Debug)]
pub(super) struct Watch(watch::Receiver<State>);

impl Watch {
    /// How far it has come; what was seen is no news any more.
    pub(super) fn see(&mut self) -> Phase {
        self.0.borrow_and_update().phase
    }

    /// It has gone on since it was last seen. Costs one atomic read.
    pub(super) fn is_news(&self) -> bool {
        self.0.has_changed().unwrap_or(false)
    }

    /// Waits until it goes on.
    pub(super) async fn news(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until nothing new is to be accepted.
    pub(super) async fn stopped(&mut self) {
        self.reached(Phase::Stopped).await;
    }

    /// Waits until everything must end at once.
    pub(super) async fn cut(&mut self) {
        self.reached(Phase::Cut).await;
    }

    async fn reached(&mut self, phase: Phase) {
        if self.0.wait_for(|state| state.phase >= phase).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the time is up, however often it is moved.
    async fn time_up(&mut self) {
        loop {
            let cut_at = self.0.borrow_and_update().cut_at;
            let end = async {
                match cut_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = end => return,
                () = self.news() => {}
            }
        }
    }
}
