//! The faults that are set, and how many calls each has seen.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::Fault;
use crate::sandbox::provider::Provider;

/// Faults in the order they were set.
#[derive(Debug, Default)]
pub struct Board(Mutex<Vec<Standing>>);

/// A fault that is set.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    /// The fault.
    #[serde(flatten)]
    pub fault: Fault,
    /// Calls it concerned since it was set.
    pub seen: u64,
    /// Calls it was applied to.
    pub applied: u64,
}

impl Board {
    /// Sets more faults; those already there keep their counts.
    pub fn set(&self, faults: Vec<Fault>) {
        let standing = faults.into_iter().map(|fault| Standing { fault, seen: 0, applied: 0 });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(standing);
    }

    /// Takes all faults away.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// What is set.
    pub fn list(&self) -> Vec<Standing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts one call and returns the first fault that applies to it.
    pub fn next(&self, provider: Provider, path: &str) -> Option<Fault> {
        let mut standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut chosen = None;
        for entry in standing.iter_mut().filter(|entry| entry.fault.concerns(provider, path)) {
            entry.seen = entry.seen.saturating_add(1);
            if chosen.is_none() && entry.fault.calls.contain(entry.seen) {
                entry.applied = entry.applied.saturating_add(1);
                chosen = Some(entry.fault.clone());
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_counted_from_when_the_fault_was_set() {
        let board = Board::default();
        let next = |provider| board.next(provider, "/geocode/v1/json").and_then(|fault| fault.status);
        board.set(vec![serde_json::from_value(json!({"provider": "opencage", "calls": [2], "status": 503})).unwrap()]);
        assert_eq!((next(Provider::OpenCage), next(Provider::Stripe)), (None, None));
        board.set(vec![serde_json::from_value(json!({"path": "/geo", "calls": "2..", "status": 429})).unwrap()]);
        assert_eq!([next(Provider::OpenCage), next(Provider::OpenCage)], [Some(503), Some(429)]);
        let counts: Vec<_> = board.list().iter().map(|entry| (entry.seen, entry.applied)).collect();
        assert_eq!(counts, [(3, 1), (2, 1)]);
        board.clear();
        assert_eq!(next(Provider::OpenCage), None);
    }
}
