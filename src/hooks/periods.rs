//! What is known of each budget while this process lives: its period, the most that was told of it, how far acting has come.
//!
//! That a period was acted on is the store's to know; this saves asking, tells repeats from news, and remembers what is owed.
//! After a restart the first notice of a budget sets its period anew, so that one of a period that had ended meanwhile, never acted
//! on and kept back by Pub/Sub, would still be heard.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::amount::{Amount, Share};
use super::notice::Notice;

/// More budgets than this are not of one operator: all are forgotten at once.
const MOST: usize = 1_024;

/// All budgets.
#[derive(Default)]
pub(super) struct Periods(HashMap<String, Period>);

/// A budget's period.
pub(super) struct Period {
    begins: i64,
    most: Amount,
    share: Share,
    pub(super) acting: Acting,
}

/// How far acting has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acting {
    /// Nothing is known of it: ask the store.
    Unknown,
    /// It was begun and did not end.
    Owed,
    Done,
}

/// What a notice is, beside what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Of a period that has ended.
    Older,
    /// Of the same period, and no more than was known.
    Repeated,
    /// More than was known.
    News,
    /// The first of a period after one that was known.
    NextPeriod,
}

impl Period {
    fn new(notice: &Notice, share: Share) -> Self {
        Self { begins: notice.period, most: notice.spent, share, acting: Acting::Unknown }
    }
}

impl Periods {
    /// Notes what is told. Within a period the most counts; an older period changes nothing.
    pub(super) fn note(&mut self, notice: &Notice, share: Share) -> (&mut Period, Place) {
        if self.0.len() >= MOST && !self.0.contains_key(&notice.budget) {
            self.0.clear();
        }
        let period = match self.0.entry(notice.budget.clone()) {
            Entry::Vacant(free) => return (free.insert(Period::new(notice, share)), Place::News),
            Entry::Occupied(known) => known.into_mut(),
        };
        if period.share != share {
            // A reload: what was done at the old share is not what the new one asks for.
            (period.share, period.acting) = (share, Acting::Unknown);
        }
        let place = match notice.period.cmp(&period.begins) {
            std::cmp::Ordering::Less => Place::Older,
            std::cmp::Ordering::Greater => {
                *period = Period::new(notice, share);
                Place::NextPeriod
            }
            std::cmp::Ordering::Equal if notice.spent > period.most => {
                period.most = notice.spent;
                Place::News
            }
            std::cmp::Ordering::Equal => Place::Repeated,
        };
        (period, place)
    }
}
