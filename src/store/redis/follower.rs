//! Follows what other instances change.
//!
//! Changes are numbered and logged by the store; each is also told at once to who listens ([`subscription`]). Messages may be
//! lost, so they are only the fast way: a number that does not follow the last one is looked up in the log, and once a second
//! the heartbeat brings the latest number. So every change is known at the latest a second (and a call) after it was made, as
//! long as the store answers. A log that does not reach back, or numbers that went backwards (the store was emptied, or an older
//! copy took over), mean that all is read anew.
//!
//! The same beat says that this instance lives, counts those that do, sets the clock, and looks after the records of money.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use self::subscription::{Heard, Subscription};
use super::super::StoreError;
use super::super::event::Event;
use super::fault::Fault;
use super::link::Link;
use super::link::call::Call;
use super::money::watch::Watch;
use super::script::HEARTBEAT;

mod changes;
mod reading;
mod subscription;

const BEAT: Duration = Duration::from_secs(1);

/// One instance's view of the others.
pub(super) struct Follower {
    link: Arc<Link>,
    /// Which of the instances this is.
    instance: String,
    events: mpsc::UnboundedSender<Event>,
    /// Instances alive.
    instances: Arc<AtomicU32>,
    /// Looks after the records of money.
    watch: Watch,
    subscription: Option<Subscription>,
    /// Listening has failed, and this has been said.
    deaf: bool,
    /// Reading all has failed, and this has been said.
    blind: bool,
    /// The latest change that is known. Nothing before all was read once.
    last: Option<u64>,
    /// The latest change that was told, and the latest that had to be looked up.
    told: u64,
    looked_up: u64,
}

impl Follower {
    pub(super) fn new(
        link: Arc<Link>,
        instance: String,
        events: mpsc::UnboundedSender<Event>,
        instances: Arc<AtomicU32>,
        watch: Watch,
    ) -> Self {
        Self {
            link,
            instance,
            events,
            instances,
            watch,
            subscription: None,
            deaf: false,
            blind: false,
            last: None,
            told: 0,
            looked_up: 0,
        }
    }

    /// Follows until it is told to stop; says goodbye then, and ends the link.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut connections = self.link.connections();
        let mut beats = tokio::time::interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                heard = subscription::next(&mut self.subscription) => self.heard(heard).await,
                _ = beats.tick() => self.beat().await,
                _ = connections.changed() => self.beat().await,
            }
        }
        let _ = self.heartbeat(true).await;
        self.link.stop.cancel();
    }

    // === The fast way ===

    async fn heard(&mut self, heard: Heard) {
        match heard {
            Heard::Change(number, change) => self.told(number, change).await,
            Heard::Landed(key) => self.emit(Event::Landed(key)),
            Heard::Nonsense => {}
            Heard::End => self.hung_up().await,
        }
    }

    /// Listens again at once, unless the connection was cut as soon as it was made: then it is time enough at the next beat.
    async fn hung_up(&mut self) {
        let now = self.link.clock.ticks();
        if self.subscription.take().is_some_and(|subscription| subscription.age(now) >= BEAT) {
            self.beat().await;
        }
    }

    /// A change was told: the next one, one that is known, or one after some that were missed.
    async fn told(&mut self, number: u64, change: Bytes) {
        let Some(last) = self.last else { return };
        self.told = self.told.max(number);
        if number == last.saturating_add(1) {
            self.apply(number, change).await;
        } else if number > last {
            self.catch_up(last).await;
        }
    }

    // === The sure way ===

    /// Looks after the subscription, then sees whether anything was missed. In this order: what is told from now on is heard.
    async fn beat(&mut self) {
        if !self.link.is_up() {
            return;
        }
        let listened = self.listen().await;
        self.watch.look(&self.link, &self.instance).await;
        let Ok(number) = self.heartbeat(false).await else { return };
        match self.last {
            None => self.read_all().await,
            Some(last) if last != number => {
                self.catch_up(last).await;
                self.looked_up = if listened { number } else { 0 };
            }
            Some(_) => {}
        }
    }

    /// Listens, if it does not. A subscription that answers no ping, or did not tell by now what had to be looked up a beat ago,
    /// is none. True if it has listened since before.
    async fn listen(&mut self) -> bool {
        let behind = std::mem::take(&mut self.looked_up) > self.told;
        if let Some(subscription) = &mut self.subscription
            && (behind || !subscription.answers(self.link.timeout).await)
        {
            self.subscription = None;
        }
        if self.subscription.is_some() {
            return true;
        }
        let subscribed = Subscription::open(&self.link).await.map_err(Fault::error);
        let was_deaf = std::mem::replace(&mut self.deaf, subscribed.is_err());
        if let Some(error) = subscribed.as_ref().err().filter(|_| !was_deaf) {
            tracing::warn!(%error, "cannot listen to the store: what other instances change is known a second later");
        }
        self.subscription = subscribed.ok();
        false
    }

    /// A sign of life, or a goodbye. Returns the number of the latest change.
    async fn heartbeat(&mut self, leaves: bool) -> Result<u64, StoreError> {
        let keys = &self.link.dialer.keys;
        let call = Call::new(&HEARTBEAT).keys([keys.instances(), keys.seq(), keys.owners()]);
        let call = call.bytes(self.instance.as_bytes()).flag(leaves);
        let asked = self.link.clock.ticks();
        let (there, alive, number) = self.link.run(call, |parts| Some((parts.time()?, parts.number()?, parts.number()?))).await?;
        self.link.follow(there, asked);
        let alive = u32::try_from(alive).unwrap_or(u32::MAX).max(1);
        if !leaves && (self.instances.swap(alive, Ordering::Relaxed) != alive || self.last.is_none()) {
            self.emit(Event::Instances(alive));
        }
        Ok(number)
    }

    /// Nobody listening means that the gateway is going.
    fn emit(&self, event: Event) {
        let _ = self.events.send(event);
    }
}
