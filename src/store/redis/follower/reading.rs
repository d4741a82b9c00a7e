//! Reading what has changed: from the log, or everything.

use bytes::Bytes;

use super::super::super::StoreError;
use super::super::super::event::{Event, State};
use super::super::frame;
use super::super::link::call::Call;
use super::super::reply::Parts;
use super::super::routes::{pairs, read_switch, unreadable};
use super::super::script::{LOG, STATE};
use super::Follower;
use super::changes::{self, Change};
use crate::clock::Timestamp;

/// The log from a number on.
struct Log {
    /// The latest change.
    latest: u64,
    changes: Vec<(u64, Bytes)>,
}

impl Log {
    /// Does it tell all that came after `last`?
    fn follows(&self, last: u64) -> bool {
        let numbers = self.changes.iter().map(|(number, _)| *number);
        self.latest >= last && (last.saturating_add(1)..=self.latest).eq(numbers)
    }
}

impl Follower {
    /// Passes a change on. One that cannot be read may have been anything.
    /// False if all had to be read for that.
    pub(super) async fn apply(&mut self, number: u64, change: Bytes) -> bool {
        match changes::read(number, change, &self.instance) {
            Some(Change::News(event)) => self.emit(event),
            Some(Change::Known) => {}
            None => {
                self.read_all().await;
                return false;
            }
        }
        self.last = Some(number);
        true
    }

    /// Looks up what came after `last`. If the store does not answer, the next beat asks again.
    pub(super) async fn catch_up(&mut self, last: u64) {
        let Ok(log) = self.log(last.saturating_add(1)).await else { return };
        if !log.follows(last) {
            return self.read_all().await;
        }
        for (number, change) in log.changes {
            if !self.apply(number, change).await {
                return;
            }
        }
    }

    /// Reads everything. Purges of single answers are not part of it: they may have been missed, unless this is the beginning.
    pub(super) async fn read_all(&mut self) {
        let read = self.state().await;
        let was_blind = std::mem::replace(&mut self.blind, read.is_err());
        match read {
            Ok((latest, state)) => {
                self.last = Some(latest);
                self.emit(Event::State(state));
            }
            Err(error) if !was_blind => tracing::warn!(%error, "what other instances have changed cannot be read"),
            Err(_) => {}
        }
    }

    async fn log(&self, first: u64) -> Result<Log, StoreError> {
        let keys = &self.link.dialer.keys;
        let call = Call::new(&LOG).keys([keys.seq(), keys.log()]).number(first);
        let read = |parts: &mut Parts| {
            let (latest, mut entries, mut changes) = (parts.number()?, parts.list()?, Vec::new());
            while !entries.is_empty() {
                let mut entry = entries.list()?;
                let number = entry.text()?.strip_suffix("-0")?.parse().ok()?;
                changes.push((number, entry.bytes()?));
            }
            Some(Log { latest, changes })
        };
        self.link.run(call, read).await
    }

    async fn state(&self) -> Result<(u64, State), StoreError> {
        let keys = &self.link.dialer.keys;
        let call = Call::new(&STATE).keys([keys.seq(), keys.switches(), keys.generations(), keys.pauses()]);
        let read = |parts: &mut Parts| {
            let (latest, now) = (parts.number()?, parts.time()?);
            Some((latest, now, [pairs(&mut parts.list()?)?, pairs(&mut parts.list()?)?, pairs(&mut parts.list()?)?]))
        };
        let (latest, now, [switches, generations, pauses]) = self.link.run(call, read).await?;
        let first = self.last.is_none() && self.link.error().is_none();
        let switch = |(name, kept)| read_switch(kept).map(|(switch, revision)| (name, switch, revision));
        let number = |(name, kept): (String, Bytes)| frame::number(&kept).map(|number| (name, number));
        let state = State {
            switches: switches.into_iter().map(switch).collect::<Option<_>>().ok_or_else(unreadable)?,
            generations: generations.into_iter().map(number).collect::<Option<_>>().ok_or_else(unreadable)?,
            pauses: pauses
                .into_iter()
                .filter_map(number)
                .map(|(provider, until)| (provider, Timestamp(until)))
                .filter(|(_, until)| *until > now)
                .collect(),
            missed: !first,
        };
        Ok((latest, state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_follows_when_nothing_is_missing_between() {
        let log = |latest, numbers: &[u64]| Log { latest, changes: numbers.iter().map(|n| (*n, Bytes::new())).collect() };
        assert!(log(7, &[6, 7]).follows(5) && log(5, &[]).follows(5));
        assert!(!log(7, &[7]).follows(5), "it does not reach back");
        assert!(!log(7, &[6]).follows(5), "it ends too soon");
        assert!(!log(4, &[]).follows(5), "the count went backwards");
    }
}
