//! Which questions have been credited as refused today, in a fixed amount of memory.
//!
//! One bit a question, found by its key. Two questions may share a bit; then the second is not credited: the error is on the side
//! of too little. A hundred thousand refused questions a day cost five in a hundred of the later ones. Every instance has its own.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::Timestamp;
use crate::store::Digest;

/// Words of 64 bits: 128 KiB in all.
const WORDS: usize = 1 << 14;
const DAY: u64 = 86_400_000_000;

pub(super) struct Seen {
    day: AtomicU64,
    words: Box<[AtomicU64]>,
}

impl Default for Seen {
    fn default() -> Self {
        Self { day: AtomicU64::new(0), words: (0..WORDS).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Seen {
    /// Whether this key comes for the first time today (by UTC: all routes share the memory).
    pub(super) fn first(&self, key: &Digest, now: Timestamp) -> bool {
        let today = now.0 / DAY;
        if self.day.swap(today, Ordering::AcqRel) != today {
            self.words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
        let [a, b, c, ..] = *key;
        let place = u32::from_be_bytes([0, a, b, c]);
        let index = usize::try_from(place >> 6).unwrap_or_default() % WORDS;
        let bit = 1u64 << (place & 63);
        self.words.get(index).is_some_and(|word| word.fetch_or(bit, Ordering::Relaxed) & bit == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_a_day() {
        let seen = Seen::default();
        let (one, other) = ([1; 32], [2; 32]);
        let noon = Timestamp(DAY * 20_000 + DAY / 2);
        assert!(seen.first(&one, noon) && seen.first(&other, noon));
        assert!(!seen.first(&one, noon));
        assert!(seen.first(&one, Timestamp(noon.0 + DAY)));
    }
}
