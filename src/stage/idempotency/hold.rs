//! A claim in hand: renewed while its write is in the air, ended however that ends.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use rand::RngExt as _;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use super::herald::Herald;
use super::write::{Owner, ProviderKey, Write};
use super::{UNKNOWN, Verdict};
use crate::clock::Timestamp;
use crate::money::found::REPEATED;
use crate::money::toll::insist_on_settling;
use crate::refusal::{Code, Refusal};
use crate::store::StoredAnswer;
use crate::store::handle::StoreHandle;
use crate::store::money::Settlement;
use crate::store::write::{About, End};

/// How often ending is tried, with a wait that doubles from a tenth of a second to two: a day. The end of a drain ends it, too.
const TRIES: u32 = 43_200;

/// How long an answer waits for its record: then the owner goes on by itself.
const RECORDING: Duration = Duration::from_millis(500);

/// The guard.
pub(super) struct Hold {
    write: Arc<Write>,
    store: StoreHandle,
    tasks: TaskTracker,
    herald: Herald,
    /// There may be a claim, or is one.
    claims: bool,
    ended: bool,
}

impl Hold {
    /// `claims`: whether it is claimed by who makes this.
    pub(super) fn new(write: Write, claims: bool, store: StoreHandle, tasks: TaskTracker, herald: Herald) -> Self {
        Self { write: Arc::new(write), store, tasks, herald, claims, ended: false }
    }

    /// The claim is granted.
    pub(super) fn granted(mut self, provider_key: Option<ProviderKey>, before: Option<&About>) -> Self {
        if let Some(write) = Arc::get_mut(&mut self.write) {
            write.granted(provider_key, before);
        }
        self
    }

    /// There is no claim.
    pub(super) fn forget(mut self) {
        self.ended = true;
    }

    pub(super) fn write(&self) -> Arc<Write> {
        Arc::clone(&self.write)
    }

    /// Runs `flight`, and renews the claim beside it three times in its length.
    pub(super) async fn renewing<T>(&self, flight: impl Future<Output = T>) -> T {
        let Some(owner) = &self.write.owner else { return flight.await };
        tokio::select! {
            result = flight => result,
            never = owner.renew() => match never {},
        }
    }

    /// Writes down what came of it, before anybody is told. A store that is away does not keep a paid answer back.
    pub(super) async fn land(mut self, verdict: Verdict, replayed_until: Timestamp) -> Verdict {
        let unclear = verdict.is_err() && self.write.is_unclear();
        let end = match &verdict {
            Ok(answer) => {
                let stored = answer.kept.to_stored();
                let until = replayed_until;
                End::Done(StoredAnswer { fresh_until: until, revalidate_until: until, error_until: until, ..stored })
            }
            Err(_) if unclear => End::Unknown,
            Err(_) => End::Free,
        };
        if verdict.is_ok() {
            self.pay_once();
        }
        self.end(end).await;
        verdict.map_err(|refusal| if unclear { unknown(&refusal) } else { refusal })
    }

    /// The provider has done it once, whatever was sent before: what was set aside for that is free.
    fn pay_once(&self) {
        let (repeated, store) = (self.write.is_clear(), self.store.clone());
        if repeated.is_empty() {
            return;
        }
        self.tasks.spawn(async move {
            for id in repeated {
                insist_on_settling(&store, id, Settlement::NotBilled, REPEATED).await;
            }
        });
    }

    async fn end(&mut self, end: End) {
        if let Some(recording) = self.record(end) {
            let _ = tokio::time::timeout(RECORDING, recording).await;
        }
    }

    /// Begins to write it down, and tells whoever must know.
    fn record(&mut self, end: End) -> Option<JoinHandle<()>> {
        self.ended = true;
        let (owner, asked) = (self.write.owner.clone(), self.write.was_asked_to_send());
        // What was taken over and not sent again is as unknown as before, which is no news.
        if end == End::Unknown && (asked || owner.is_none()) {
            self.herald.tell(owner.as_ref());
        }
        let owner = owner.filter(|_| self.claims)?;
        Some(if asked { self.tasks.spawn(owner.insist(end)) } else { self.tasks.spawn(owner.try_to_end(end)) })
    }
}

impl Drop for Hold {
    /// A flight that panicked or ran out of time, or a claim that nobody waited for or that the store did not confirm.
    fn drop(&mut self) {
        if self.ended || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let end = if self.write.is_unclear() { End::Unknown } else { End::Free };
        drop(self.record(end));
    }
}

impl Owner {
    async fn renew(&self) -> std::convert::Infallible {
        loop {
            tokio::time::sleep(self.lease / 3).await;
            // Who has lost it is refused when it wants to send; what it has sent goes on.
            if let Ok(false) = self.store.prolong(self.intention, self.id, self.lease).await {
                tracing::warn!("a write has lost its claim: the store was away, or this instance stood still");
                break;
            }
        }
        std::future::pending().await
    }

    /// Ends a record of which nothing was sent by this owner, if that is sooner than that it lapses by itself. So a store that is
    /// away is not left with a task for everyone it has failed.
    async fn try_to_end(self, end: End) {
        let lapse = self.lease;
        let ended = async {
            while self.store.finish(self.intention, self.id, end.clone()).await.is_err() {
                tokio::time::sleep(jittered(Duration::from_secs(1))).await;
            }
        };
        let _ = tokio::time::timeout(lapse, ended).await;
    }

    /// Ends the record, again and again until the store has heard it; meanwhile the owner lives.
    async fn insist(self, end: End) {
        for attempt in 0..TRIES {
            match self.store.finish(self.intention, self.id, end.clone()).await {
                Ok(true) => return,
                Ok(false) if end == End::Free => return,
                Ok(false) => {
                    tracing::error!("what came of a write was not recorded: it was settled, or taken over, before it was known");
                    return;
                }
                Err(_) => {}
            }
            tokio::time::sleep(jittered(Duration::from_millis(100 << attempt.min(5)).min(Duration::from_secs(2)))).await;
            let _ = self.store.prolong(self.intention, self.id, self.lease).await;
        }
        tracing::error!("what came of a write could not be recorded");
    }
}

/// Half of it to all of it: those who wait for the store do not come back all at once.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(0.5..=1.0))
}

/// The first time it is told.
fn unknown(refusal: &Refusal) -> Refusal {
    let timed_out = refusal.code == Code::UpstreamTimeout;
    let status = if timed_out { StatusCode::GATEWAY_TIMEOUT } else { StatusCode::BAD_GATEWAY };
    let unknown = Refusal::new(Code::OutcomeUnknown, UNKNOWN).answering(status);
    match &refusal.cause {
        Some(cause) => unknown.because(format!("{}: {cause}", refusal.code.word())),
        None => unknown.because(refusal.code.word()),
    }
}
