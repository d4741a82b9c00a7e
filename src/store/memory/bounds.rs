//! What keeps the process from growing without end.

/// How much the process may remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Token buckets. Beyond, newcomers share: a bucket that is not full is never forgotten.
    pub buckets: usize,
    /// Subjects under a lockout rule. Beyond, guesses of newcomers fail: a lockout is never forgotten to make room.
    pub lockouts: usize,
    /// Bytes of answers, with what it takes to keep them. Beyond, the least used are forgotten.
    pub answer_bytes: u64,
    /// Attempts of the ledger, each for itself. Beyond, those settled longest ago are known only in their day's sums; if all are
    /// still to be settled, nothing is reserved.
    pub attempts: usize,
    /// Counters of caps. Beyond, reserving in new ones fails: a counter is never forgotten to make room.
    pub counters: usize,
    /// Sums in the reports on what was spent, and as many on what was saved. Beyond, those of the oldest days are forgotten.
    pub sums: usize,
    /// Paid writes, with what was answered to them. Beyond, new ones fail: none is forgotten before its time.
    pub writes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            buckets: 1_000_000,
            lockouts: 1_000_000,
            answer_bytes: 256 * 1024 * 1024,
            attempts: 250_000,
            counters: 1_000_000,
            sums: 250_000,
            writes: 250_000,
        }
    }
}
