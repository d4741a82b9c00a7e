//! The kill switch: one atomic read. Refuses `switched_off`; in position `cached` lets only stored answers through.
//!
//! Switches are records: they are read before the first request is served, and an admin's change is stored before it is told.
//! A flight reads them again before each attempt, so nothing is paid for after *off*.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, RwLock};

use super::{Next, Stage, Verdict};
use crate::call::Request;
use crate::refusal::{Code, Refusal};
use crate::store::{Switch, SwitchState};

/// The switches of one gateway. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct Switches(Arc<Shared>);

#[derive(Default)]
struct Shared {
    all: Arc<Position>,
    routes: RwLock<HashMap<String, Arc<Position>>>,
    said: RwLock<HashMap<String, Switch>>,
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
    /// Sets a route's switch, or `all`.
    pub(crate) fn set(&self, name: &str, switch: Switch) {
        self.position(name).set(switch.state);
        if let Ok(mut said) = self.0.said.write() {
            said.insert(name.to_owned(), switch);
        }
    }

    /// What was last said of a switch.
    pub(crate) fn said(&self, name: &str) -> Option<Switch> {
        self.0.said.read().ok()?.get(name).cloned()
    }

    fn position(&self, name: &str) -> Arc<Position> {
        if name == "all" {
            return Arc::clone(&self.0.all);
        }
        let mut routes = self.0.routes.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        Arc::clone(routes.entry(name.to_owned()).or_default())
    }

    /// The switch of one route, over which `all` stands.
    pub(crate) fn of(&self, route: &str) -> KillSwitch {
        KillSwitch { all: Arc::clone(&self.0.all), own: self.position(route) }
    }
}

/// The stage, and the look that every attempt takes again.
#[derive(Clone)]
pub(crate) struct KillSwitch {
    all: Arc<Position>,
    own: Arc<Position>,
}

impl KillSwitch {
    /// The stricter of the two positions.
    pub(crate) fn state(&self) -> SwitchState {
        let (all, own) = (self.all.get(), self.own.get());
        if all as u8 > own as u8 { all } else { own }
    }

    /// Whether a call may be paid for now.
    pub(crate) fn permits_paying(&self) -> Result<(), Refusal> {
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

    async fn handle(&self, request: Box<Request>, next: impl Next<Box<Request>>) -> Verdict {
        if self.state() == SwitchState::Off {
            return Err(off());
        }
        next.run(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stricter_position_counts() {
        let switches = Switches::default();
        let route = switches.of("a");
        let to = |state| Switch { state, reason: String::new(), since: 0 };
        assert_eq!(route.state(), SwitchState::On);
        switches.set("a", to(SwitchState::Cached));
        assert_eq!(route.state(), SwitchState::Cached);
        switches.set("all", to(SwitchState::Off));
        assert_eq!((route.state(), switches.of("b").state()), (SwitchState::Off, SwitchState::Off));
        switches.set("all", to(SwitchState::On));
        assert_eq!((route.state(), switches.of("b").state()), (SwitchState::Cached, SwitchState::On));
    }
}
