//! What a shared store tells an instance of the others.

use super::{Digest, Switch};
use crate::clock::Timestamp;

/// Something has changed. Each is safe to hear twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// All that is followed, read whole: at the beginning, and after a gap that could not be filled.
    State(State),
    /// A switch was set.
    Switch {
        /// A route, or `all`.
        name: String,
        /// Its position.
        switch: Switch,
        /// Of two, the higher revision is in force.
        revision: u64,
    },
    /// All answers of a route were purged.
    Generation {
        /// The route.
        route: String,
        /// Its generation now.
        generation: u64,
    },
    /// One answer was purged.
    Purged {
        /// Its route.
        route: String,
        /// Its key.
        key: Digest,
    },
    /// A provider has asked to be left alone.
    Paused {
        /// The provider.
        provider: String,
        /// Until then.
        until: Timestamp,
    },
    /// A flight for which somebody waits has landed.
    Landed(Digest),
    /// So many instances are alive, this one included.
    Instances(u32),
}

/// All that is followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Every switch that was ever set, with its revision.
    pub switches: Vec<(String, Switch, u64)>,
    /// Every route's purge generation, where it is not zero.
    pub generations: Vec<(String, u64)>,
    /// Providers that are paused.
    pub pauses: Vec<(String, Timestamp)>,
    /// Purges of single answers may have been missed: what memory holds cannot be trusted.
    pub missed: bool,
}

/// How a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// It has answered a real operation, and nothing has failed since. A store that never has is not ready.
    pub well: bool,
    /// It has been well at least once.
    pub was_well: bool,
    /// The last thing that went wrong, for logs and operators.
    pub error: Option<String>,
    /// Instances alive, when last heard.
    pub instances: u32,
    /// Settings of the store that lose money or records, in words.
    pub warnings: Vec<String>,
}
