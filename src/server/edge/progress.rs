//! How far one connection has come, and by when it must have come further. Shared by the three that know a part of it: the
//! wire (bytes), the service (requests) and the driver (the timer). On HTTP/1.1 the three live in one task; on HTTP/2 requests have their own
//! and only `running` and `due` are used.

use std::pin::Pin;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::Limits;
use crate::clock::micros;

/// No time is up, ever.
const NEVER: u64 = u64::MAX;

/// The request states no length: it is chunked.
pub(super) const UNSTATED: u64 = u64::MAX;

/// No request has been made of the head yet.
const UNKNOWN: u64 = u64::MAX - 1;

/// Where an HTTP/1.1 exchange stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// For a request, or the rest of its head.
    Waiting,
    /// The handler has it.
    Running,
    /// The answer is on its way to the socket.
    Answered,
}

/// The state of one connection.
#[derive(Debug)]
pub(super) struct Progress {
    origin: Instant,
    head_timeout: Duration,
    idle_timeout: Duration,
    /// Microseconds after `origin`.
    due: AtomicU64,
    expired: AtomicBool,
    stage: AtomicU8,
    body: AtomicU64,
    running: AtomicU32,
}

impl Progress {
    /// A connection just accepted: the first head is awaited.
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            origin: Instant::now(),
            head_timeout: limits.head_timeout,
            idle_timeout: limits.idle_timeout,
            due: AtomicU64::new(micros(limits.head_timeout)),
            expired: AtomicBool::new(false),
            stage: AtomicU8::new(Stage::Waiting as u8),
            body: AtomicU64::new(UNKNOWN),
            running: AtomicU32::new(0),
        }
    }

    fn due_in(&self, after: Duration) {
        self.due.store(micros(self.origin.elapsed().saturating_add(after)), Relaxed);
    }

    /// When the first head must have come.
    pub(super) fn first_head_due(&self) -> Option<Instant> {
        self.origin.checked_add(self.head_timeout)
    }

    /// The first byte of a head has come.
    pub(super) fn head_begins(&self) {
        self.due_in(self.head_timeout);
    }

    /// The connection is over but for the client to notice.
    pub(super) fn lingers(&self) {
        self.due_in(self.head_timeout.min(Duration::from_secs(1)));
    }

    pub(super) fn stage(&self) -> Stage {
        match self.stage.load(Relaxed) {
            0 => Stage::Waiting,
            1 => Stage::Running,
            _ => Stage::Answered,
        }
    }

    /// A request has come out of the head, with a body of that length.
    pub(super) fn begin(&self, body: u64) {
        self.body.store(body, Relaxed);
        self.stage.store(Stage::Running as u8, Relaxed);
        self.due.store(NEVER, Relaxed);
    }

    /// A request has been made of the head, and its body not been asked for yet.
    pub(super) fn has_request(&self) -> bool {
        self.body.load(Relaxed) != UNKNOWN
    }

    /// The length of the body, once, when the request is known.
    pub(super) fn take_body(&self) -> Option<u64> {
        match self.body.swap(UNKNOWN, Relaxed) {
            UNKNOWN => None,
            length => Some(length),
        }
    }

    /// The handler has answered.
    pub(super) fn answered(&self) {
        self.stage.store(Stage::Answered as u8, Relaxed);
    }

    /// The client does not take the answer as fast as it could be sent.
    pub(super) fn blocked(&self) {
        if self.stage() == Stage::Answered && self.due.load(Relaxed) == NEVER {
            self.due_in(self.idle_timeout);
        }
    }

    /// All that was written is with the system: true if that ends an exchange.
    pub(super) fn flushed(&self) -> bool {
        let over = self.stage() == Stage::Answered;
        if over {
            self.stage.store(Stage::Waiting as u8, Relaxed);
            self.due_in(self.idle_timeout);
        }
        over
    }

    /// One more request runs on this connection (HTTP/2).
    pub(super) fn enter(&self) {
        self.running.fetch_add(1, Relaxed);
    }

    /// One request less; after the last the client has the idle time to take the answers and ask again.
    pub(super) fn leave(&self) {
        self.due_in(self.idle_timeout);
        self.running.fetch_sub(1, Release);
    }

    /// What was due does not count while requests run side by side: looks again later.
    fn put_off(&self) -> bool {
        let runs = self.running.load(Acquire) > 0;
        if runs {
            self.due_in(self.idle_timeout);
        }
        runs
    }

    /// The time was up.
    pub(super) fn has_expired(&self) -> bool {
        self.expired.load(Relaxed)
    }
}

/// The one timer of a connection. It is set anew only when it has run out or when something is due earlier, so a connection
/// in use does not touch the runtime's timers.
pub(super) struct Timer<'a> {
    progress: &'a Progress,
    sleep: Pin<&'a mut Sleep>,
    armed: u64,
}

impl<'a> Timer<'a> {
    /// A timer not set yet.
    pub(super) fn new(progress: &'a Progress, sleep: Pin<&'a mut Sleep>) -> Self {
        Self { progress, sleep, armed: NEVER }
    }

    /// Ready when what was due has not come.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let due = self.progress.due.load(Relaxed);
            let ran_out = self.armed != NEVER && self.sleep.is_elapsed();
            if due >= self.armed && !ran_out {
                return Poll::Pending;
            }
            if ran_out && due <= self.armed {
                if self.progress.put_off() {
                    continue;
                }
                self.progress.expired.store(true, Relaxed);
                return Poll::Ready(());
            }
            self.armed = due;
            let Some(at) = self.progress.origin.checked_add(Duration::from_micros(due)).filter(|_| due != NEVER) else {
                self.armed = NEVER;
                return Poll::Pending;
            };
            self.sleep.as_mut().reset(at);
            if self.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}
