//! Which operations have been done, for as long as they could be repeated.

use std::collections::{HashMap, VecDeque};

use super::super::{OPS_REMEMBERED, OpId};
use crate::clock::Timestamp;

/// More than this are not remembered, however young.
const MOST: usize = 65_536;

/// Results of the latest operations.
#[derive(Default)]
pub(super) struct Applied {
    results: HashMap<OpId, u64>,
    /// Oldest first.
    order: VecDeque<(Timestamp, OpId)>,
}

impl Applied {
    /// Has `op` been done?
    pub(super) fn contains(&self, op: OpId) -> bool {
        self.results.contains_key(&op)
    }

    /// Does `work` unless `op` has been done, and returns what the first time returned.
    pub(super) fn once(&mut self, op: OpId, now: Timestamp, work: impl FnOnce() -> u64) -> u64 {
        if let Some(result) = self.results.get(&op) {
            return *result;
        }
        self.prune(now);
        let result = work();
        self.results.insert(op, result);
        self.order.push_back((now, op));
        result
    }

    fn prune(&mut self, now: Timestamp) {
        while let Some((at, op)) = self.order.front().copied() {
            if self.order.len() < MOST && now.since(at) <= OPS_REMEMBERED {
                break;
            }
            self.order.pop_front();
            self.results.remove(&op);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_forgotten_when_old_or_too_many() {
        let mut applied = Applied::default();
        let id = |n: usize| OpId(u128::try_from(n).expect("fits"));
        (0..MOST + 5).for_each(|n| {
            applied.once(id(n), Timestamp(0), || 0);
        });
        assert!(applied.order.len() == MOST && applied.results.len() == MOST && !applied.contains(id(4)));
        applied.once(id(MOST + 5), Timestamp(1).after(OPS_REMEMBERED), || 0);
        assert_eq!((applied.order.len(), applied.results.len()), (1, 1));
    }
}
