//! What other instances have done becomes true here: switches, purges, pauses, landings. Told by the shared store's events.

use std::sync::{Arc, PoisonError};

use tokio::sync::mpsc;

use super::Shared;
use crate::store::Digest;
use crate::store::event::{Event, State};

impl Shared {
    /// Follows until the store has ended.
    pub(crate) async fn follow(self: Arc<Self>, mut events: mpsc::UnboundedReceiver<Event>) {
        while let Some(event) = events.recv().await {
            self.heard(event);
        }
    }

    fn heard(&self, event: Event) {
        match event {
            Event::State(state) => self.heard_all(state),
            Event::Switch { name, switch, revision } => self.switches.heard(&name, switch, revision),
            Event::Generation { route, generation } => self.generation(&route).raise(generation),
            Event::Purged { route, key } => self.purged(&route, &key),
            Event::Paused { provider, until } => self.store.heard_of_pause(&provider, until),
            Event::Landed(key) => self.landings.tell(&key),
            Event::Instances(alive) => self.store.set_alive(alive),
        }
    }

    fn heard_all(&self, state: State) {
        if state.missed {
            self.remind_of_purges(&state);
        }
        for (route, generation) in state.generations {
            self.generation(&route).raise(generation);
        }
        for (provider, until) in state.pauses {
            self.store.heard_of_pause(&provider, until);
        }
        if state.missed {
            // Anything may have been purged: what is in memory and what is in the air cannot be trusted.
            self.every_generation(super::Generation::count_single);
            self.answers.memory.clear();
        }
        for (name, switch, revision) in state.switches {
            self.switches.heard(&name, switch, revision);
        }
        self.switches.are_known();
    }

    /// A store that came back empty has forgotten the purges this instance knows of. Whoever starts now would ask under keys of
    /// before them, and pay for every question again: the store is told anew, and all agree on what it says.
    fn remind_of_purges(&self, state: &State) {
        let told =
            |route: &str| state.generations.iter().find(|(name, _)| name == route).map_or(0, |(_, generation)| *generation);
        let known = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        for (route, generation) in known.iter().filter(|(route, known)| known.era().generation > told(route)) {
            let (route, generation, store) = (route.clone(), generation.clone(), self.store.clone());
            self.tasks.spawn(async move {
                if let Ok(raised) = store.raise_generation(&route).await {
                    generation.raise(raised);
                }
            });
        }
    }

    /// One answer was purged, here or elsewhere. Counted first, so that no flight of before puts it back; and nobody who asks from
    /// now on joins such a flight.
    pub(crate) fn purged(&self, route: &str, key: &Digest) {
        self.generation(route).count_single();
        self.flights.recall(key);
        self.answers.memory.remove(key);
    }
}
