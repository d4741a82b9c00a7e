//! What has been done once, for as long as that is to be known.

use std::collections::HashMap;
use std::time::Duration;

use super::full;
use crate::clock::Timestamp;
use crate::store::StoreError;

/// More than this fail: marks are of alerts, so few and from the configuration.
const MOST: usize = 65_536;

/// Until when each mark is kept.
#[derive(Default)]
pub(super) struct Marks(HashMap<String, Timestamp>);

impl Marks {
    /// Is `mark` not there? Then it is from now on.
    pub(super) fn first(&mut self, mark: &str, keep: Duration, now: Timestamp) -> Result<bool, StoreError> {
        if self.0.get(mark).is_some_and(|until| *until > now) {
            return Ok(false);
        }
        self.0.retain(|_, until| *until > now);
        if self.0.len() >= MOST {
            return Err(full("marks"));
        }
        self.0.insert(mark.to_owned(), now.after(keep));
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_bounded_and_make_room_when_they_lapse() {
        let mut marks = Marks::default();
        let mut first = |mark: usize, now| marks.first(&mark.to_string(), Duration::from_micros(10), Timestamp(now));
        // Each looks through all that are there: so few of them, far apart.
        assert_eq!((first(1, 0), first(1, 9), first(1, 10)), (Ok(true), Ok(false), Ok(true)));
        marks.0 = (0..MOST).map(|mark| (mark.to_string(), Timestamp(20))).collect();
        let mut first = |mark: &str, now| marks.first(mark, Duration::ZERO, Timestamp(now));
        assert!(first("new", 19).is_err());
        assert_eq!((first("7", 19), first("new", 20)), (Ok(false), Ok(true)));
        assert_eq!(marks.0.len(), 1);
    }
}
