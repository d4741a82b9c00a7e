//! Whether the store is lost, judged by what becomes of the calls to it: some failures in a row. Reads and writes are judged apart: a
//! full disk reads well. It is back when neither fails.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// So many calls of a kind in a row.
const FAILURES: u32 = 3;

/// Operations that change nothing, in an embedded store at least.
const READS: [&str; 9] = ["answer", "enter", "generation", "lockout", "renew", "saved", "spent", "switches", "unresolved"];

/// Operations that write unless there is nothing to do: a failure is one of writing, and a success says that the store can be read.
/// A claim that finds an answer is such a one.
const MAY_WRITE: [&str; 1] = ["claim"];

/// Counts, and tells whoever wants to know.
#[derive(Default)]
pub(super) struct Outage {
    reads: AtomicU32,
    writes: AtomicU32,
    lost: AtomicBool,
    tell: OnceLock<Box<dyn Fn(bool) + Send + Sync>>,
}

impl fmt::Debug for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outage({:?})", self.lost)
    }
}

impl Outage {
    /// Whom to tell: `true` when the store is lost, `false` when it is back.
    pub(super) fn tell(&self, tell: impl Fn(bool) + Send + Sync + 'static) {
        let _ = self.tell.set(Box::new(tell));
    }

    /// A call has failed, or not.
    pub(super) fn heard(&self, op: &str, failed: bool) {
        let reads = READS.contains(&op) || (!failed && MAY_WRITE.contains(&op));
        let (own, other) = if reads { (&self.reads, &self.writes) } else { (&self.writes, &self.reads) };
        let changed = if failed {
            let count = |failures: u32| Some(failures.saturating_add(1));
            let before = own.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).unwrap_or_default();
            before >= FAILURES - 1 && !self.lost.swap(true, Ordering::Relaxed)
        } else {
            if own.load(Ordering::Relaxed) != 0 {
                own.store(0, Ordering::Relaxed);
            }
            other.load(Ordering::Relaxed) < FAILURES
                && self.lost.load(Ordering::Relaxed)
                && self.lost.swap(false, Ordering::Relaxed)
        };
        if let (true, Some(tell)) = (changed, self.tell.get()) {
            tell(failed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn told(calls: &[(&str, bool)]) -> Vec<bool> {
        let (outage, told) = (Outage::default(), Arc::new(Mutex::new(Vec::new())));
        let teller = Arc::clone(&told);
        outage.tell(move |lost| teller.lock().unwrap().push(lost));
        for (op, failed) in calls {
            outage.heard(op, *failed);
        }
        let told = told.lock().unwrap();
        told.clone()
    }

    #[test]
    fn it_is_lost_after_some_failures_and_back_after_one_success() {
        let calls = [false, true, true, false, true, true, true, true, false, false, true, true, true];
        assert_eq!(told(&calls.map(|failed| ("keep", failed))), [true, false, true]);
    }

    #[test]
    fn what_reads_well_may_be_lost_for_writing() {
        let fails = [("keep", true), ("answer", false)].repeat(4);
        assert_eq!(told(&fails), [true]);
        assert_eq!(told(&[fails, vec![("keep", false)]].concat()), [true, false]);
    }

    #[test]
    fn a_claim_that_finds_an_answer_has_written_nothing() {
        for read in ["claim", "unresolved"] {
            let fails = [("claim", true), (read, false)].repeat(4);
            assert_eq!(told(&fails), [true], "{read}");
            assert_eq!(told(&[fails, vec![("sending", false)]].concat()), [true, false], "{read}");
        }
    }
}
