//! The kill switch: one atomic read. Refuses `switched_off`; in position `cached` lets only stored answers through.
//!
//! Switches are records ([`stops`]), read before the first request is served.
//! A flight reads them again before each attempt, so nothing is paid for after *off*. Until a shared store has told its switches
//! nobody knows whether something is off, and everything is refused (`store_unavailable`); afterwards the last known holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Next, Stage, Verdict};
use crate::call::Request;
use crate::clock::Clock;
use crate::refusal::{Code, Refusal};
use crate::store::SwitchState;

pub(crate) mod stops;

pub(crate) use stops::Switches;

use stops::Target;

/// The stage, and the look that every attempt takes again.
#[derive(Clone)]
pub(crate) struct KillSwitch {
    clock: Clock,
    known: Arc<AtomicBool>,
    all: Arc<Target>,
    own: Arc<Target>,
}

impl KillSwitch {
    /// The stricter of the two positions.
    pub(crate) fn state(&self) -> SwitchState {
        self.all.state(&self.clock).max(self.own.state(&self.clock))
    }

    fn must_be_known(&self) -> Result<(), Refusal> {
        if self.known.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(Refusal::new(Code::StoreUnavailable, "the switches have not been read yet").after(Duration::from_secs(1)))
    }

    /// Whether a call may be paid for now.
    pub(crate) fn permits_paying(&self) -> Result<(), Refusal> {
        self.must_be_known()?;
        match self.state() {
            SwitchState::On => Ok(()),
            SwitchState::Cached => Err(Refusal::new(Code::NotCached, "the route answers from its store only")),
            SwitchState::Off => Err(off()),
        }
    }
}

fn off() -> Refusal {
    Refusal::new(Code::SwitchedOff, "the route is switched off")
}

impl Stage for KillSwitch {
    type In = Box<Request>;
    type Out = Box<Request>;

    async fn handle(&self, request: Box<Request>, next: &impl Next<Box<Request>>) -> Verdict {
        self.must_be_known()?;
        if self.state() == SwitchState::Off {
            return Err(off());
        }
        next.run(request).await
    }
}
