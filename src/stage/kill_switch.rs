//! The kill switch: one atomic read. Refuses `switched_off`; in position `cached` lets only stored answers through.
//!
//! Switches are records: they are read before the first request is served, and an admin's change is stored before it is told.
//! A flight reads them again before each attempt, so nothing is paid for after *off*. Until a shared store has told its switches
//! nobody knows whether something is off, and everything is refused (`store_unavailable`); afterwards the last known holds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Next, Stage, Verdict};
use crate::call::Request;
use crate::refusal::{Code, Refusal};
use crate::store::{Switch, SwitchState};

/// The switches of one gateway. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct Switches(Arc<Shared>);

#[derive(Default)]
struct Shared {
    known: Arc<AtomicBool>,
    all: Arc<Position>,
    routes: Mutex<HashMap<String, Arc<Position>>>,
    said: Mutex<HashMap<String, Said>>,
}

/// What was last said of a switch, and the revision it is known to be, if the store has it.
#[derive(Clone)]
struct Said {
    switch: Switch,
    revision: Option<u64>,
}

/// One switch's position.
#[derive(Default)]
struct Position(AtomicU8);

impl Position {
    fn set(&self, state: SwitchState) {
        self.0.store(state as u8, Ordering::Release);
    }

    fn get(&self) -> SwitchState {
        match self.0.load(Ordering::Acquire) {
            0 => SwitchState::On,
            1 => SwitchState::Cached,
            _ => SwitchState::Off,
        }
    }
}

impl Switches {
    /// Sets a route's switch, or `all`, in this instance, whatever the store has.
    pub(crate) fn set(&self, name: &str, switch: Switch) {
        let mut all_said = lock(&self.0.said);
        let revision = all_said.get(name).and_then(|said| said.revision);
        self.position(name).set(switch.state);
        all_said.insert(name.to_owned(), Said { switch, revision });
    }

    /// A switch as the store has it. Of two the higher revision is in force, in whatever order they are heard.
    pub(crate) fn heard(&self, name: &str, switch: Switch, revision: u64) {
        let mut all_said = lock(&self.0.said);
        if all_said.get(name).and_then(|said| said.revision).is_some_and(|known| known > revision) {
            return;
        }
        self.position(name).set(switch.state);
        all_said.insert(name.to_owned(), Said { switch, revision: Some(revision) });
    }

    /// All that were ever set have been heard.
    pub(crate) fn are_known(&self) {
        self.0.known.store(true, Ordering::Release);
    }

    pub(crate) fn is_known(&self) -> bool {
        self.0.known.load(Ordering::Acquire)
    }

    /// What was last said of a switch.
    pub(crate) fn said(&self, name: &str) -> Option<Switch> {
        lock(&self.0.said).get(name).map(|said| said.switch.clone())
    }

    fn position(&self, name: &str) -> Arc<Position> {
        if name == "all" {
            return Arc::clone(&self.0.all);
        }
        Arc::clone(lock(&self.0.routes).entry(name.to_owned()).or_default())
    }

    /// The switch of one route, over which `all` stands.
    pub(crate) fn of(&self, route: &str) -> KillSwitch {
        KillSwitch { known: Arc::clone(&self.0.known), all: Arc::clone(&self.0.all), own: self.position(route) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The stage, and the look that every attempt takes again.
#[derive(Clone)]
pub(crate) struct KillSwitch {
    known: Arc<AtomicBool>,
    all: Arc<Position>,
    own: Arc<Position>,
}

impl KillSwitch {
    /// The stricter of the two positions.
    pub(crate) fn state(&self) -> SwitchState {
        let (all, own) = (self.all.get(), self.own.get());
        if all as u8 > own as u8 { all } else { own }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn to(state: SwitchState) -> Switch {
        Switch { state, reason: String::new(), since: 0 }
    }

    #[test]
    fn nothing_is_permitted_until_the_switches_are_known() {
        let switches = Switches::default();
        let route = switches.of("a");
        assert_eq!(route.permits_paying().unwrap_err().code, Code::StoreUnavailable);
        switches.are_known();
        assert!(route.permits_paying().is_ok());
    }

    #[test]
    fn the_higher_revision_is_in_force_in_whatever_order_they_are_heard() {
        let switches = Switches::default();
        let route = switches.of("a");
        switches.heard("a", to(SwitchState::Off), 6);
        switches.heard("a", to(SwitchState::On), 5);
        assert_eq!(route.state(), SwitchState::Off);
        switches.heard("a", to(SwitchState::On), 7);
        assert_eq!(route.state(), SwitchState::On);
        switches.set("a", to(SwitchState::Off));
        switches.heard("a", to(SwitchState::On), 6);
        assert_eq!(route.state(), SwitchState::Off, "turned off here without the store, and nothing newer is known");
        switches.heard("a", to(SwitchState::Cached), 8);
        assert_eq!(route.state(), SwitchState::Cached);
    }

    #[test]
    fn the_stricter_position_counts() {
        let switches = Switches::default();
        let route = switches.of("a");
        assert_eq!(route.state(), SwitchState::On);
        switches.set("a", to(SwitchState::Cached));
        assert_eq!(route.state(), SwitchState::Cached);
        switches.set("all", to(SwitchState::Off));
        assert_eq!((route.state(), switches.of("b").state()), (SwitchState::Off, SwitchState::Off));
        switches.set("all", to(SwitchState::On));
        assert_eq!((route.state(), switches.of("b").state()), (SwitchState::Cached, SwitchState::On));
    }
}
