//! Answers in process memory, bounded by bytes.

use std::sync::Arc;

use moka::ops::compute::Op;
use moka::sync::Cache;

use super::super::{Digest, StoredAnswer};
use crate::clock::Timestamp;

/// What an entry costs beyond its own bytes: key, times, and the cache's book-keeping.
const ENTRY: usize = 384;
/// What a header costs beyond its own bytes.
const HEADER: usize = 64;

/// The cache proper.
pub(super) struct Answers(Cache<Digest, Arc<StoredAnswer>>);

impl Answers {
    pub(super) fn new(bytes: u64) -> Self {
        Self(Cache::builder().max_capacity(bytes).weigher(|_, answer: &Arc<StoredAnswer>| weight(answer)).build())
    }

    pub(super) fn get(&self, key: &Digest, now: Timestamp) -> Option<StoredAnswer> {
        let answer = self.0.get(key)?;
        if answer.expires() > now {
            return Some(answer.as_ref().clone());
        }
        self.remove_expired(key, now);
        None
    }

    pub(super) fn keep(&self, key: &Digest, answer: StoredAnswer, now: Timestamp) {
        let _ = self.0.entry_by_ref(key).and_compute_with(|known| match known {
            Some(known) if outranks(known.value(), &answer, now) => Op::Nop,
            _ => Op::Put(Arc::new(answer)),
        });
    }

    pub(super) fn forget(&self, key: &Digest) {
        self.0.invalidate(key);
    }

    /// Looks again under the entry's lock: a fresh answer may have come meanwhile.
    fn remove_expired(&self, key: &Digest, now: Timestamp) {
        let _ = self.0.entry_by_ref(key).and_compute_with(|known| match known {
            Some(known) if known.value().expires() <= now => Op::Remove,
            _ => Op::Nop,
        });
    }
}

/// Does a kept answer stay when `other` comes? One from the future (the clock was set back) would stay too long.
fn outranks(known: &StoredAnswer, other: &StoredAnswer, now: Timestamp) -> bool {
    known.stored > other.stored && known.stored <= now
}

fn weight(answer: &StoredAnswer) -> u32 {
    let headers: usize = answer.headers.iter().map(|(name, value)| name.len() + value.len() + HEADER).sum();
    u32::try_from(ENTRY + headers + answer.outcome.len() + answer.body.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;

    #[test]
    fn answers_stay_within_their_bytes() {
        let answers = Answers::new(1024 * 1024);
        for n in 0..100_u8 {
            answers.keep(&[n; 32], of_size(100 * 1024), Timestamp(1));
        }
        answers.0.run_pending_tasks();
        assert!(answers.0.weighted_size() <= 1024 * 1024 && answers.0.entry_count() >= 5);
    }

    #[test]
    fn an_expired_answer_is_dropped_when_it_is_met() {
        let answers = Answers::new(1024 * 1024);
        answers.keep(&[1; 32], of_size(10), Timestamp(1));
        assert!(answers.get(&[1; 32], Timestamp(100)).is_none());
        answers.0.run_pending_tasks();
        assert_eq!(answers.0.entry_count(), 0);
    }

    fn of_size(bytes: usize) -> StoredAnswer {
        StoredAnswer {
            status: 200,
            outcome: "answered".to_owned(),
            headers: Vec::new(),
            body: Bytes::from(vec![0; bytes]),
            stored: Timestamp(1),
            age: Duration::ZERO,
            fresh_until: Timestamp(100),
            revalidate_until: Timestamp(100),
            error_until: Timestamp(100),
        }
    }
}
