//! What other instances have done becomes true here: switches, purges, pauses, landings. Told by the shared store's events.

use std::sync::Arc;

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

    /// One answer was purged, here or elsewhere. Counted first, so that no flight of before puts it back; and nobody who asks from
    /// now on joins such a flight.
    pub(crate) fn purged(&self, route: &str, key: &Digest) {
        self.generation(route).count_single();
        self.flights.recall(key);
        self.answers.memory.remove(key);
    }
}
