//! The task that keeps a connection there.

use std::sync::Arc;
use std::time::Duration;

use super::super::super::StoreError;
use super::super::report::{self, Report};
use super::{Link, Live};
use crate::clock::Timestamp;

/// Between two attempts; doubles from the first to the second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));
/// A connection that has lasted this long was a good one: the next attempt need not wait.
const LASTED: Duration = Duration::from_secs(1);

impl Link {
    /// Connects, and again whenever the connection is lost, until it is told to stop. Of a store with several links one reports:
    /// the others say nothing.
    pub(in super::super) async fn supervise(self: Arc<Self>, report: Option<Arc<Report>>) {
        let stop = self.stop.clone();
        let watch = async {
            let mut attempts = Attempts { silent: report.is_none(), ..Attempts::default() };
            loop {
                tokio::time::sleep(attempts.pause()).await;
                let number = *self.shown.borrow();
                match self.dial(number).await {
                    Ok(live) => self.show(live, report.as_deref(), &mut attempts).await,
                    Err(fault) => attempts.failed(&self, fault.error()),
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = watch => {}
        }
        self.live.store(None);
    }

    /// Shows a connection to callers, until it is lost.
    async fn show(&self, live: Live, report: Option<&Report>, attempts: &mut Attempts) {
        let (since, mut connection) = (self.clock.ticks(), live.connection.clone());
        self.live.store(Some(Arc::new(live)));
        self.shown.send_modify(|shown| *shown = shown.wrapping_add(1));
        attempts.worked();
        if let Some(report) = report {
            report::read(report, &mut connection, self.timeout).await;
        }
        drop(connection);
        while self.is_up() {
            self.lost.notified().await;
        }
        let error = self.error().unwrap_or(StoreError::Timeout);
        attempts.lost(&error, since, self.clock.ticks());
    }
}

/// How it has gone so far: how long to wait, and what has been said of it.
#[derive(Default)]
struct Attempts {
    pause: Duration,
    away: bool,
    silent: bool,
}

impl Attempts {
    fn pause(&self) -> Duration {
        self.pause
    }

    fn failed(&mut self, link: &Link, error: StoreError) {
        self.pause = self.pause.saturating_mul(2).clamp(PAUSES.0, PAUSES.1);
        self.say_away(&error);
        link.note(error);
    }

    fn worked(&mut self) {
        if std::mem::take(&mut self.away) && !self.silent {
            tracing::info!("the store is back");
        }
    }

    fn lost(&mut self, error: &StoreError, since: Timestamp, now: Timestamp) {
        let lasted = now.since(since) >= LASTED;
        self.pause = if lasted { Duration::ZERO } else { self.pause.saturating_mul(2).clamp(PAUSES.0, PAUSES.1) };
        self.say_away(error);
    }

    fn say_away(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.away, true) && !self.silent {
            tracing::warn!(%error, "the store is away");
        }
    }
}
