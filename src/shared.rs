//! What outlives a reload: buckets, breakers, flights, switches, answers in memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::task::TaskTracker;

use crate::alerts::Alerts;
use crate::breaker::Breaker;
use crate::clock::Clock;
use crate::flight::Flights;
use crate::money::savings::tally::Tally;
use crate::stage::cache::Answers;
use crate::stage::kill_switch::Switches;
use crate::stage::lease::landings::Landings;
use crate::stage::retry::RetryBudget;
use crate::store::StoreError;
use crate::store::handle::StoreHandle;
use crate::telemetry::Metrics;

mod follow;

/// A route's purge generation, as this instance knows it. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Generation(Arc<(AtomicU64, AtomicU64)>);

/// What had been purged of a route when a call began. If it is more by the time the answer is there, the answer is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Era {
    /// Raised by a purge of all: part of every key.
    pub(crate) generation: u64,
    /// Counts purges of one answer.
    single: u64,
}

impl Generation {
    pub(crate) fn era(&self) -> Era {
        let (all, single) = &*self.0;
        Era { generation: all.load(Ordering::Acquire), single: single.load(Ordering::Acquire) }
    }

    /// All answers are purged. Generations only rise.
    pub(crate) fn raise(&self, to: u64) {
        self.0.0.fetch_max(to, Ordering::AcqRel);
    }

    /// One answer is purged.
    pub(crate) fn count_single(&self) {
        self.0.1.fetch_add(1, Ordering::AcqRel);
    }
}

/// The long-lived parts of one gateway.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) store: StoreHandle,
    pub(crate) alerts: Alerts,
    pub(crate) answers: Answers,
    pub(crate) switches: Switches,
    pub(crate) flights: Flights,
    /// Who waits here for a flight of another instance.
    pub(crate) landings: Landings,
    /// Everything spawned that must end before the process may: flights, refreshes, settlements, an admin's changes.
    pub(crate) tasks: TaskTracker,
    /// What was saved and is not in the store yet.
    pub(crate) tally: Tally,
    breakers: Mutex<HashMap<String, Breaker>>,
    retries: Mutex<HashMap<String, RetryBudget>>,
    generations: Mutex<HashMap<String, Generation>>,
}

impl Shared {
    pub(crate) fn new(clock: Clock, metrics: Arc<Metrics>, store: StoreHandle, memory: crate::stage::cache::Memory) -> Arc<Self> {
        let tasks = TaskTracker::new();
        Arc::new(Self {
            alerts: Alerts::new(store.clone(), clock.clone(), tasks.clone(), Arc::clone(&metrics)),
            answers: Answers { memory, store: store.clone(), clock: clock.clone() },
            flights: Flights::new(tasks.clone(), clock.clone(), Arc::clone(&metrics)),
            switches: Switches::new(clock.clone()),
            landings: Landings::default(),
            tally: Tally::default(),
            breakers: Mutex::default(),
            retries: Mutex::default(),
            generations: Mutex::default(),
            clock,
            metrics,
            store,
            tasks,
        })
    }

    /// Reads what must be known before the first request: switches. A shared store tells them by its first event.
    pub(crate) async fn read_switches(&self) -> Result<(), StoreError> {
        if self.store.is_shared() {
            return Ok(());
        }
        for (name, switch) in self.store.switches().await? {
            self.switches.heard(&name, switch, 0);
        }
        self.switches.are_known();
        Ok(())
    }

    /// The purge generation of a route, read from the store once. A shared store tells it, too.
    pub(crate) async fn read_generation(&self, route: &str) -> Result<Generation, StoreError> {
        let generation = self.generation(route);
        if !self.store.is_shared() {
            generation.raise(self.store.generation(route).await?);
        }
        Ok(generation)
    }

    fn every_generation(&self, then: impl Fn(&Generation)) {
        let generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        generations.values().for_each(then);
    }

    pub(crate) fn generation(&self, route: &str) -> Generation {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        generations.entry(route.to_owned()).or_default().clone()
    }

    pub(crate) fn breaker(&self, provider: &str) -> Breaker {
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Breaker::new(provider, self.clock.clone(), Arc::clone(&self.metrics), self.alerts.clone());
        breakers.entry(provider.to_owned()).or_insert_with(new).clone()
    }

    pub(crate) fn retry_budget(&self, provider: &str) -> RetryBudget {
        let mut retries = self.retries.lock().unwrap_or_else(PoisonError::into_inner);
        retries.entry(provider.to_owned()).or_default().clone()
    }

    /// Every breaker with its state, for the admin API.
    pub(crate) fn breaker_states(&self) -> Vec<(String, &'static str)> {
        let breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        breakers.iter().map(|(name, breaker)| (name.clone(), breaker.state())).collect()
    }
}
