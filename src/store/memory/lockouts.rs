//! Lockouts by subject, bounded.

use std::collections::{HashMap, VecDeque};

use super::super::lockout::{self, Lockout};
use super::super::{Digest, Guess, LockoutRule, LockoutState, OpId, StoreError};
use crate::clock::Timestamp;

/// How many old subjects a new one looks at, to drop those that mean nothing any more.
const LOOKS: usize = 4;

/// All subjects of which something is remembered.
pub(super) struct Lockouts {
    most: usize,
    subjects: HashMap<Digest, Lockout>,
    /// Every subject once, in the order they will be looked at.
    order: VecDeque<Digest>,
}

impl Lockouts {
    pub(super) fn new(most: usize) -> Self {
        Self { most, subjects: HashMap::new(), order: VecDeque::new() }
    }

    pub(super) fn guess(
        &mut self,
        op: OpId,
        subjects: &[Digest],
        rule: LockoutRule,
        expires: Timestamp,
        now: Timestamp,
    ) -> Result<Guess, StoreError> {
        let newcomer = Lockout::default();
        let verdict = |subject| self.subjects.get(subject).unwrap_or(&newcomer).verdict(op, rule, now);
        let verdicts: Vec<(Digest, Guess)> = lockout::distinct(subjects).map(|subject| (*subject, verdict(subject))).collect();
        let worst = lockout::worst(verdicts.iter().map(|(_, own)| *own));
        if worst == Guess::Admitted {
            self.make_room(subjects, now)?;
        }
        for (subject, _) in verdicts.into_iter().filter(|(_, own)| lockout::flies(worst, *own)) {
            self.subject(subject).admit(op, rule, expires, now);
        }
        Ok(worst)
    }

    pub(super) fn settle(&mut self, op: OpId, subjects: &[Digest], rule: LockoutRule, missed: bool, now: Timestamp) {
        for subject in lockout::distinct(subjects) {
            if missed {
                self.subject(*subject).settle(op, rule, missed, now);
            } else if let Some(lockout) = self.subjects.get_mut(subject) {
                lockout.settle(op, rule, missed, now);
            }
        }
    }

    pub(super) fn state(&self, subject: &Digest, rule: LockoutRule, now: Timestamp) -> LockoutState {
        self.subjects.get(subject).cloned().unwrap_or_default().state(rule, now)
    }

    pub(super) fn clear(&mut self, subject: &Digest) {
        if let Some(lockout) = self.subjects.get_mut(subject) {
            lockout.clear();
        }
    }

    fn subject(&mut self, subject: Digest) -> &mut Lockout {
        self.subjects.entry(subject).or_insert_with(|| {
            self.order.push_back(subject);
            Lockout::default()
        })
    }

    /// Looks at a few of the oldest, and refuses if there is no room for the new ones even so.
    fn make_room(&mut self, subjects: &[Digest], now: Timestamp) -> Result<(), StoreError> {
        let new = subjects.iter().filter(|subject| !self.subjects.contains_key(*subject)).count();
        for _ in 0..new.saturating_mul(LOOKS).min(self.order.len()) {
            let Some(old) = self.order.pop_front() else { break };
            if self.subjects.get(&old).is_some_and(|lockout| lockout.idle_at() > now) {
                self.order.push_back(old);
            } else {
                self.subjects.remove(&old);
            }
        }
        if new > 0 && self.subjects.len().saturating_add(new) > self.most {
            return Err(StoreError::Failed("too many subjects under a lockout rule at once".to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const RULE: LockoutRule = LockoutRule {
        misses: 3,
        window: Duration::from_micros(100),
        first: Duration::from_micros(10),
        max: Duration::from_micros(35),
    };

    fn guess(lockouts: &mut Lockouts, subject: u8, now: u64) -> Result<Guess, StoreError> {
        let (now, expires) = (Timestamp(now), Timestamp(now + 10));
        lockouts.guess(OpId(u128::from(subject)), &[[subject; 32]], RULE, expires, now)
    }

    #[test]
    fn beyond_the_bound_newcomers_fail_and_nobody_is_forgotten() {
        let mut lockouts = Lockouts::new(2);
        assert_eq!(guess(&mut lockouts, 1, 0), Ok(Guess::Admitted));
        assert_eq!(guess(&mut lockouts, 2, 5), Ok(Guess::Admitted));
        assert!(guess(&mut lockouts, 3, 5).is_err());
        assert_eq!(lockouts.state(&[1; 32], RULE, Timestamp(5)).in_flight, 1);
        assert_eq!(guess(&mut lockouts, 3, 10), Ok(Guess::Admitted), "the first has become idle");
        assert_eq!((lockouts.subjects.len(), lockouts.order.len()), (2, 2));
    }
}
