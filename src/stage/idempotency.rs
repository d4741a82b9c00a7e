//! Idempotency, on routes with `writes`: one send for each intention, which is what one caller wants done once on one route and
//! names by an `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header).
//!
//! Whoever comes first claims the key and sends; what it was answered is replayed to whoever comes with the same key and the same
//! question. Refuses `idempotency_in_progress` while the first is at it, `idempotency_key_reused` for another question, and
//! `outcome_unknown` where it was sent and nobody knows what came of it: that is settled by an admin, or by the provider, if it
//! takes a key of ours and is asked again. What can have had no effect (never sent, the provider was busy or refused our
//! credential, a refusal of our own) frees the key.
//!
//! The send is a flight of its own: nobody's hang-up ends it. Without the store nothing is sent that has a key.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use sha2::{Digest as _, Sha256};
use tokio_util::task::TaskTracker;

use self::herald::Herald;
use self::hold::Hold;
use self::key::{Key, KeyRule};
use self::write::{Owner, ProviderKey, Write};
use super::limits::identity;
use super::single_flight::stopped_waiting;
use super::{Next, Stage, Verdict};
use crate::alerts::Alerts;
use crate::answer::{Answer, Kept, Source};
use crate::call::Call;
use crate::clock::Clock;
use crate::config::section::Section;
use crate::flight::Flights;
use crate::refusal::{Code, Refusal};
use crate::route::Route;
use crate::store::handle::StoreHandle;
use crate::store::write::{Again, Claim, Claimed, Intention};
use crate::store::{Digest, OpId, StoreError};

mod herald;
mod hold;
pub(crate) mod key;
pub(crate) mod write;

/// `writes` of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) key: KeyRule,
    /// How long an answer is replayed.
    pub(crate) keep: Duration,
    /// How long a claim outlives its owner.
    pub(crate) lease: Duration,
}

/// A third of it must be ample for a round trip to the store.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(5);

impl Config {
    pub(crate) fn read(section: &Section<'_>, connect_timeout: Duration) -> Option<Self> {
        let below = section.section("writes")?;
        let config = Self {
            key: KeyRule::read(&below),
            keep: below.or("keep", Duration::from_hours(24)),
            lease: below.or("lease", Duration::from_secs(5)),
        };
        if !(SHORTEST..=LONGEST).contains(&config.lease) {
            below.fault("lease", "is no time that an owner can be waited for", "write 1s or more, and at most 5m");
        } else if config.lease <= connect_timeout {
            let remedy = "write more than the provider's connect_timeout, or lower that";
            below.fault("lease", "would end while the provider is still being connected to", remedy);
        }
        below.finish();
        Some(config)
    }
}

/// The stage.
#[derive(Clone)]
pub(crate) struct Idempotency(Arc<Shared>);

struct Shared {
    route: Arc<Route>,
    config: Config,
    store: StoreHandle,
    flights: Flights,
    clock: Clock,
    tasks: TaskTracker,
    herald: Herald,
}

impl Idempotency {
    pub(crate) fn new(
        route: &Arc<Route>,
        store: StoreHandle,
        flights: Flights,
        clock: Clock,
        tasks: TaskTracker,
        alerts: Alerts,
    ) -> Option<Self> {
        let config = route.writes?;
        let herald = Herald { route: Arc::clone(route), alerts };
        Some(Self(Arc::new(Shared { route: Arc::clone(route), config, store, flights, clock, tasks, herald })))
    }
}

impl Stage for Idempotency {
    type In = Call;
    type Out = Call;

    async fn handle(&self, call: Call, next: &impl Next<Call>) -> Verdict {
        let shared = &*self.0;
        let door = match &call.idempotency_key {
            Some(key) => shared.claim(&call, key).await?,
            None if call.directives.only_if_cached => return Err(nothing_stored()),
            None => shared.unrecorded(),
        };
        match door {
            Door::Open(hold) => shared.send(call, hold, next).await,
            Door::Shut(verdict) => verdict,
        }
    }
}

/// What is behind the door.
enum Door {
    /// It may be sent.
    Open(Hold),
    /// It was sent, or may not be.
    Shut(Verdict),
}

// === impl Shared ===

impl Shared {
    /// Claims the intention, or says what stands in the way.
    async fn claim(&self, call: &Call, key: &Key) -> Result<Door, Refusal> {
        let fingerprint = self.fingerprint(call);
        let intention = self.intention(call, key, &fingerprint);
        let owner = Owner { intention, id: OpId::random(), lease: self.config.lease, store: self.store.clone() };
        let claim = Claim {
            intention,
            owner: owner.id,
            fingerprint: &fingerprint,
            lease: self.config.lease,
            again: self.again(),
            look: call.directives.only_if_cached,
        };
        // Whoever leaves while the store is asked, or is not answered, leaves no claim behind.
        let hold = self.hold(Write::of(owner, self.clock.clone()), !claim.look);
        let claimed = self.store.claim(&call.journey, claim).await.map_err(|error| {
            self.store.fell_back("writes", "refuse");
            unavailable("what was sent before cannot be read", error)
        })?;
        let turn_key = |turn| self.provider_key(identity(&[b"turn", &intention.0.to_be_bytes(), &fingerprint, &be(turn)]));
        let verdict = match claimed {
            Claimed::Owned { turn } => return Ok(Door::Open(hold.granted(turn_key(turn), None))),
            Claimed::Again { turn, about } => return Ok(Door::Open(hold.granted(turn_key(turn), Some(&about)))),
            Claimed::Done(stored) => replay(stored),
            Claimed::Free => Err(nothing_stored()),
            Claimed::Held { .. } => Err(in_progress()),
            Claimed::Reused => Err(Refusal::new(Code::IdempotencyKeyReused, "this Idempotency-Key was used for another request")),
            Claimed::Unknown => Err(unknown()),
            Claimed::Lost => {
                self.store.fell_back("writes", "refuse");
                Err(unavailable("records of what was sent were lost", StoreError::Failed(LOST.to_owned())))
            }
        };
        hold.forget();
        Ok(Door::Shut(verdict))
    }

    /// A write whose caller gave it no key: sent once, and known to nobody afterwards.
    fn unrecorded(&self) -> Door {
        let hold = self.hold(Write::unrecorded(self.config.lease, self.clock.clone()), false);
        Door::Open(hold.granted(self.provider_key(OpId::random().0), None))
    }

    fn hold(&self, write: Write, claims: bool) -> Hold {
        Hold::new(write, claims, self.store.clone(), self.tasks.clone(), self.herald.clone())
    }

    /// A flight of its own, for which its asker waits.
    async fn send(&self, call: Call, hold: Hold, next: &impl Next<Call>) -> Verdict {
        let (next, keep, clock) = (next.clone(), self.config.keep, self.clock.clone());
        let sent = call.clone().sending(hold.write());
        let flight = async move {
            let verdict = hold.renewing(next.run(sent)).await;
            hold.land(verdict, clock.now().after(keep)).await
        };
        let (longest, remaining) = (self.route.provider.flight, call.remaining(self.clock.ticks()));
        let seat = self.flights.alone(longest, flight)?;
        let waited = tokio::time::timeout(remaining, seat.landed()).await;
        waited.unwrap_or_else(|_| Err(stopped_waiting(longest.saturating_sub(remaining))))
    }

    /// What is sent, whatever it is called: every value of the question, as it goes to the provider.
    fn fingerprint(&self, call: &Call) -> Digest {
        let mut hasher = Sha256::new();
        let mut put = |part: &[u8]| {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        };
        for (field, value) in self.route.fields.iter().zip(&call.question.0) {
            if let Some(value) = value {
                put(field.name.as_bytes());
                put(field.kind.name().as_bytes());
                put(value.fingerprint().as_bytes());
            }
        }
        hasher.finalize().into()
    }

    /// A caller's key is its own: nobody else's answer is replayed for it, and nobody else can take it first.
    fn intention(&self, call: &Call, key: &Key, fingerprint: &Digest) -> Intention {
        let (kind, key): (&[u8], &[u8]) = match key {
            Key::Given(key) => (b"given", key.as_bytes()),
            Key::Question => (b"question", fingerprint),
        };
        Intention(identity(&[b"write", self.route.name.as_bytes(), &call.caller.id.to_be_bytes(), kind, key]))
    }

    /// To whom what is unknown may be sent again: to who was given a key of ours, and has not forgotten it before this flight has
    /// landed. Nobody, where no key is taken.
    fn again(&self) -> Option<Again> {
        let provider = &self.route.provider;
        let remembers = provider.idempotency.as_ref()?.remembers;
        Some(Again { after: self.clock.now().after(provider.flight).before(remembers), to: self.to()? })
    }

    /// A digest of where keys of ours go.
    fn to(&self) -> Option<u128> {
        let provider = &self.route.provider;
        let header = &provider.idempotency.as_ref()?.header;
        Some(identity(&[b"to", provider.name.as_bytes(), provider.base_url.as_bytes(), header.as_str().as_bytes()]))
    }

    /// What the provider is given as a key, if it takes one: derived, so that it is the same again even if our record is lost.
    fn provider_key(&self, id: u128) -> Option<ProviderKey> {
        Some(ProviderKey { key: format!("{id:032x}"), to: self.to()? })
    }
}

const UNKNOWN: &str = "it was sent, and nobody knows what came of it";
const LOST: &str = "records of writes were lost, and nobody has said that this is known";

fn be(turn: u32) -> [u8; 4] {
    turn.to_be_bytes()
}

fn unknown() -> Refusal {
    Refusal::new(Code::OutcomeUnknown, UNKNOWN).answering(StatusCode::CONFLICT)
}

fn in_progress() -> Refusal {
    Refusal::new(Code::IdempotencyInProgress, "the first request with this Idempotency-Key is being answered")
        .after(Duration::from_secs(1))
}

fn nothing_stored() -> Refusal {
    Refusal::new(Code::NotCached, "nothing was answered to this before")
}

fn replay(stored: crate::store::StoredAnswer) -> Verdict {
    match Kept::from_stored(stored) {
        Some(kept) => Ok(Answer { kept: Arc::new(kept), source: Source::Replay }),
        None => {
            Err(Refusal::new(Code::OutcomeUnknown, "it was answered, and the answer cannot be read")
                .answering(StatusCode::CONFLICT))
        }
    }
}

fn unavailable(detail: &'static str, error: StoreError) -> Refusal {
    Refusal::new(Code::StoreUnavailable, detail).after(Duration::from_secs(1)).because(error)
}
