//! A write on its way down: whether it may be sent, whether something of it may have had an effect, and under which key the
//! provider knows it. The stages below ask it and tell it; whoever owns its record reads it in the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::call::Journey;
use crate::clock::{Clock, Timestamp};
use crate::refusal::{Code, Refusal};
use crate::store::OpId;
use crate::store::handle::StoreHandle;
use crate::store::write::{About, Intention, Sending};

/// Who owns a record of the store.
#[derive(Clone)]
pub(super) struct Owner {
    pub(super) intention: Intention,
    pub(super) id: OpId,
    pub(super) lease: Duration,
    pub(super) store: StoreHandle,
}

/// A key of ours, and where it goes.
pub(super) struct ProviderKey {
    pub(super) key: String,
    /// A digest of provider, address and header: elsewhere nobody knows the key.
    pub(super) to: u128,
}

/// One write.
pub(crate) struct Write {
    /// None, where its caller gave it no key.
    pub(super) owner: Option<Owner>,
    lease: Duration,
    clock: Clock,
    /// What the provider is given as a key, if it takes one.
    provider_key: Option<ProviderKey>,
    standing: Mutex<Standing>,
    in_the_air: AtomicBool,
    /// The store was asked to write *sending*: it may have, unheard.
    asked: AtomicBool,
}

#[derive(Default)]
struct Standing {
    /// Something was sent, and nobody knows what came of it.
    unclear: bool,
    /// The money of all that is unclear, by the ids of its reservations.
    reservations: Vec<OpId>,
    /// How much of it the metric of spending has: it will have been spent once, however often it was sent.
    counted: u64,
    /// When it was sent first.
    first: Option<Timestamp>,
    /// Bytes may begin to leave until then, by the ticks and by the time of day: ticks stand still while a machine sleeps, and the
    /// time of day can be set back.
    until: [Timestamp; 2],
}

impl Write {
    pub(super) fn of(owner: Owner, clock: Clock) -> Self {
        let lease = owner.lease;
        Self { owner: Some(owner), ..Self::unrecorded(lease, clock) }
    }

    pub(super) fn unrecorded(lease: Duration, clock: Clock) -> Self {
        let no = || AtomicBool::new(false);
        Self { owner: None, lease, clock, provider_key: None, standing: Mutex::default(), in_the_air: no(), asked: no() }
    }

    /// One whose bytes may leave until then.
    #[cfg(test)]
    pub(crate) fn leaving_until(until: Timestamp, clock: Clock) -> std::sync::Arc<Self> {
        let write = Self::unrecorded(Duration::ZERO, clock);
        write.standing().until = [until; 2];
        std::sync::Arc::new(write)
    }

    /// It is granted, perhaps once more after a send of which nobody knows what came of it.
    pub(super) fn granted(&mut self, provider_key: Option<ProviderKey>, before: Option<&About>) {
        self.provider_key = provider_key;
        let standing = self.standing.get_mut().unwrap_or_else(PoisonError::into_inner);
        standing.unclear = before.is_some();
        standing.reservations = before.map(About::reservations).unwrap_or_default();
        standing.first = before.and_then(|before| before.first);
        standing.counted = before.filter(|_| !standing.reservations.is_empty()).map_or(0, |before| before.micros);
    }

    fn standing(&self) -> std::sync::MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn provider_key(&self) -> Option<&str> {
        self.provider_key.as_ref().map(|known| known.key.as_str())
    }

    /// Writes down that it is being sent, with the money set aside for it. From now on bytes may leave, for as long as the lease
    /// lasts that goes with it.
    pub(crate) async fn sending(
        &self,
        journey: &Journey,
        timeout: Duration,
        money: Option<OpId>,
        about: About,
    ) -> Result<(), Refusal> {
        let asked = [self.clock.ticks(), self.clock.now()];
        if let Some(Owner { intention, id, lease, store }) = &self.owner {
            let about = self.known(about, money);
            self.asked.store(true, Ordering::Release);
            let sending = Sending { intention: *intention, owner: *id, lease: *lease, timeout, about: &about };
            match store.sending(journey, sending).await {
                Ok(true) => {}
                Ok(false) => return Err(stood_still()),
                Err(error) => {
                    store.fell_back("writes", "refuse");
                    let refusal = Refusal::new(Code::StoreUnavailable, "it cannot be written down that it is being sent");
                    return Err(refusal.after(Duration::from_secs(1)).because(error));
                }
            }
        }
        self.standing().until = asked.map(|asked| asked.after(self.lease));
        Ok(())
    }

    /// With what is known of the sends before.
    fn known(&self, about: About, money: Option<OpId>) -> About {
        let mut standing = self.standing();
        let first = *standing.first.get_or_insert_with(|| self.clock.now());
        let reservations = standing.reservations.iter().copied().chain(money).collect();
        let to = self.provider_key.as_ref().map(|known| format!("{:032x}", known.to));
        let provider_key = self.provider_key().map(ToOwned::to_owned);
        About { first: Some(first), to, provider_key, ..about }.with_reservations(reservations)
    }

    /// Whether the record may say that it is being sent. If not, it lapses by itself to what it was.
    pub(super) fn was_asked_to_send(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// An attempt begins. Until it has [`landed`](Self::landed) nobody knows what comes of it.
    pub(crate) fn takes_off(&self) {
        self.in_the_air.store(true, Ordering::Release);
    }

    /// Whether bytes may still begin to leave: not after the owner's lease, when others think that it is gone.
    pub(crate) fn may_leave(&self) -> bool {
        let [ticks, time] = self.standing().until;
        self.clock.ticks() < ticks && self.clock.now() < time
    }

    /// An attempt has ended; whether it may have had an effect that is not known, and how much of what it cost is counted as
    /// spent so far. Gives what is to be counted now.
    pub(crate) fn landed(&self, unclear: bool, money: Option<OpId>, spent: u64) -> u64 {
        let mut standing = self.standing();
        let more = spent.saturating_sub(standing.counted);
        if unclear {
            standing.unclear = true;
            standing.reservations.extend(money);
            standing.counted = standing.counted.max(spent);
        }
        self.in_the_air.store(false, Ordering::Release);
        more
    }

    /// Whether that is so of what was sent before the attempt that is in the air.
    pub(crate) fn was_unclear(&self) -> bool {
        self.standing().unclear
    }

    /// Whether something of it may have had an effect that is not known.
    pub(crate) fn is_unclear(&self) -> bool {
        self.in_the_air.load(Ordering::Acquire) || self.standing().unclear
    }

    /// It is clear now, by the provider's own word. Gives the money that was set aside for what was unclear.
    pub(super) fn is_clear(&self) -> Vec<OpId> {
        let mut standing = self.standing();
        standing.unclear = false;
        std::mem::take(&mut standing.reservations)
    }
}

impl std::fmt::Debug for Write {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Write").field("unclear", &self.is_unclear()).finish_non_exhaustive()
    }
}

/// Another may own it by now; in any case nothing was sent.
fn stood_still() -> Refusal {
    let refusal = Refusal::new(Code::TryAgain, "the gateway stood still before it could send: nothing was sent");
    refusal.after(Duration::from_secs(1))
}
