//! The record of one intention, and what every operation makes of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{About, Claim, Claimed, End, Found, Intention, Sending, Settled, Settling, Unresolved};
use crate::clock::Timestamp;
use crate::store::{Digest, OpId, StoredAnswer};

#[cfg(test)]
mod tests;

/// No lease is longer: what says so was written by a clock that was set back.
pub(in crate::store) const LONGEST: Duration = Duration::from_mins(10);

/// Where an intention stands, as it was last written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::store) enum State {
    /// Nothing was sent.
    Claimed,
    /// Bytes may have left.
    Sending,
    /// Nobody knows.
    Unknown,
    /// Answered.
    Done,
    /// Settled as not sent: only the turn is remembered.
    Free,
}

/// The record. What it lacks of its answer is kept beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct Record {
    pub state: State,
    owner: u128,
    fingerprint: Digest,
    /// The end of the owner's lease, or of what is remembered.
    pub until: Timestamp,
    /// When *sending* was written last.
    pub since: Timestamp,
    timeout: Duration,
    /// Its owner is known to have died: nobody waits for the end of its lease.
    gone: bool,
    /// It was sent by another before its owner took it over. That is unknown whatever becomes of the owner's own send, and no admin
    /// settles it before then.
    taken_over: Option<Timestamp>,
    turn: u32,
    /// Until when the turn must be remembered, once there was more than one.
    turn_until: Timestamp,
    about: About,
    #[serde(skip)]
    pub answer: Option<StoredAnswer>,
}

impl Record {
    /// Where it stands now: a claim lapses with its lease, and what was being sent becomes unknown.
    fn standing(&self, now: Timestamp) -> State {
        let over = self.until <= now;
        match self.state {
            State::Claimed if over || self.until > now.after(LONGEST) => State::Free,
            State::Sending if self.gone || over || self.until > now.after(LONGEST) => State::Unknown,
            State::Done if over => State::Free,
            other => other,
        }
    }

    /// Whether it may be forgotten.
    pub(in crate::store) fn is_over(&self, now: Timestamp) -> bool {
        self.standing(now) == State::Free && (self.turn == 0 || self.turn_until <= now)
    }

    /// When it may be forgotten, unless something happens before. None: never.
    pub(in crate::store) fn expires(&self) -> Option<Timestamp> {
        match self.state {
            State::Sending | State::Unknown => None,
            _ if self.turn == 0 => Some(self.until),
            _ => Some(self.until.max(self.turn_until)),
        }
    }

    fn owned(&self, owner: OpId) -> bool {
        self.owner == owner.0
    }

    fn turn(&self, now: Timestamp) -> u32 {
        if self.turn_until > now { self.turn } else { 0 }
    }

    /// A lease that a clock began which was set back since ends by this one. Its owner may be at it for as long as any. What was
    /// sent later than now was sent now.
    fn set_back(&mut self, now: Timestamp) {
        let longest = now.after(LONGEST);
        if matches!(self.state, State::Sending | State::Unknown) {
            self.since = self.since.min(now);
        }
        if self.state == State::Sending && self.until > longest {
            (self.until, self.gone) = (longest, true);
        }
    }

    fn settle_from(&self, now: Timestamp) -> Timestamp {
        let own = match self.state {
            // Its owner has said itself that it is not at it any more.
            State::Unknown => self.since.min(now),
            // Not by a clock that was set back.
            _ => self.until.min(now.after(LONGEST)).after(self.timeout),
        };
        own.max(self.taken_over.unwrap_or_default())
    }
}

/// Claims. What stands in `slot` is nothing, or the intention's record.
pub(in crate::store) fn claim(slot: &mut Option<Record>, claim: &Claim<'_>, now: Timestamp) -> Claimed {
    let standing = slot.as_ref().map(|record| (record.standing(now), record));
    let (state, turn, taken_over) = match standing {
        None | Some((State::Free, _)) => {
            let turn = slot.as_ref().map_or(0, |record| record.turn(now));
            if claim.look {
                return Claimed::Free;
            }
            (State::Claimed, turn, None)
        }
        Some((_, record)) if record.fingerprint != *claim.fingerprint => return Claimed::Reused,
        Some((State::Done, record)) => {
            return record.answer.clone().map_or(Claimed::Unknown, Claimed::Done);
        }
        Some((State::Claimed, record)) if record.owned(claim.owner) && !claim.look => (State::Claimed, record.turn, None),
        Some((State::Sending, record)) if record.owned(claim.owner) && !claim.look => {
            (State::Sending, record.turn, record.taken_over)
        }
        Some((State::Claimed | State::Sending, record)) => return Claimed::Held { left: record.until.since(now) },
        Some((State::Unknown, record))
            if !claim.look && claim.again.is_some_and(|again| record.about.may_be_sent_again(again, now)) =>
        {
            (State::Sending, record.turn, Some(record.settle_from(now)))
        }
        Some((State::Unknown, _)) => return Claimed::Unknown,
    };
    let turn_until = slot.as_ref().map_or(Timestamp(0), |before| before.turn_until);
    // What was known of another send is not known of this one.
    let before = slot.take().filter(|_| state == State::Sending);
    *slot = Some(Record {
        state,
        owner: claim.owner.0,
        fingerprint: *claim.fingerprint,
        until: now.after(claim.lease),
        turn,
        gone: false,
        taken_over,
        since: before.as_ref().map_or(now, |before| before.since),
        timeout: before.as_ref().map_or(Duration::ZERO, |before| before.timeout),
        turn_until,
        about: before.map(|before| before.about).unwrap_or_default(),
        answer: None,
    });
    match slot {
        Some(record) if state == State::Sending => Claimed::Again { turn, about: record.about.clone() },
        _ => Claimed::Owned { turn },
    }
}

/// Writes *sending*, if its owner still has half of its lease.
pub(in crate::store) fn sending(slot: &mut Option<Record>, sending: &Sending<'_>, now: Timestamp) -> bool {
    let Some(record) = slot.as_mut().filter(|record| record.owned(sending.owner)) else { return false };
    let in_time = record.until > now.after(sending.lease / 2);
    if !in_time || !matches!(record.standing(now), State::Claimed | State::Sending) {
        return false;
    }
    (record.state, record.since) = (State::Sending, now);
    (record.until, record.timeout) = (now.after(sending.lease), sending.timeout);
    record.about = sending.about.clone();
    true
}

/// Renews the lease of an owner that is at it, also of one that was thought gone.
pub(in crate::store) fn prolong(slot: &mut Option<Record>, owner: OpId, lease: Duration, now: Timestamp) -> bool {
    match slot.as_mut().filter(|record| record.owned(owner)) {
        Some(record) if matches!(record.state, State::Claimed | State::Sending) => {
            (record.until, record.gone) = (now.after(lease), false);
            true
        }
        _ => false,
    }
}

/// Ends a write by its owner.
pub(in crate::store) fn finish(slot: &mut Option<Record>, owner: OpId, end: End, now: Timestamp) -> bool {
    let Some(record) = slot.as_mut().filter(|record| record.owned(owner)) else {
        // Freed before: ending it twice ends it once.
        return slot.is_none() && end == End::Free;
    };
    match (record.state, end) {
        (State::Claimed | State::Sending | State::Unknown, End::Done(answer)) => {
            (record.state, record.until) = (State::Done, answer.expires());
            record.answer = Some(answer);
        }
        (State::Done, End::Done(_)) | (State::Unknown, End::Unknown) | (State::Free, End::Free) => {}
        // It may not even have heard that it was sent before.
        (State::Sending | State::Unknown, End::Free) if record.taken_over.is_some() => record.state = State::Unknown,
        (State::Claimed | State::Sending, End::Free) => free(slot, now),
        // Who has claimed and not sent does not say so; whoever does is believed.
        (State::Claimed | State::Sending, End::Unknown) => record.state = State::Unknown,
        _ => return false,
    }
    true
}

fn free(slot: &mut Option<Record>, now: Timestamp) {
    match slot {
        Some(record) if record.turn > 0 && record.turn_until > now => {
            (record.state, record.until, record.answer) = (State::Free, record.turn_until, None);
        }
        _ => *slot = None,
    }
}

/// Its owner has died: a claim is free, and what was being sent is unknown, at once. An admin settles it no earlier for that: bytes
/// that its owner let go in its last moment may be under way.
pub(in crate::store) fn orphan(slot: &mut Option<Record>, now: Timestamp) {
    match slot {
        Some(record) if record.state == State::Claimed => free(slot, now),
        Some(record) => record.gone = record.state == State::Sending,
        None => {}
    }
}

/// What an admin is shown of it, if it is being sent or unknown.
pub(in crate::store) fn unresolved(intention: Intention, record: &Record, now: Timestamp) -> Option<Unresolved> {
    let standing = record.standing(now);
    matches!(standing, State::Sending | State::Unknown).then(|| Unresolved {
        intention,
        owner: OpId(record.owner),
        since: record.since,
        unknown: standing == State::Unknown,
        settle_from: record.settle_from(now),
        about: record.about.clone(),
    })
}

/// Settles it by what an admin has found out.
pub(in crate::store) fn resolve(slot: &mut Option<Record>, settling: &Settling, now: Timestamp) -> Settled {
    let Some(record) = slot.as_mut() else { return Settled::None };
    if record.owned(settling.by) {
        return Settled::Yes(record.about.clone());
    }
    if !record.owned(settling.owner) {
        return Settled::None;
    }
    record.set_back(now);
    match record.standing(now) {
        State::Sending | State::Unknown if record.settle_from(now) > now => return Settled::NotBefore(record.settle_from(now)),
        State::Unknown => {}
        _ => return Settled::None,
    }
    let about = record.about.clone();
    // From now on nothing is its former owner's.
    record.owner = settling.by.0;
    match &settling.found {
        Found::Sent(answer) => {
            (record.state, record.until) = (State::Done, answer.expires());
            record.answer = Some(answer.clone());
        }
        Found::NotSent(remember) => {
            (record.state, record.until) = (State::Free, *remember);
            (record.turn, record.turn_until) = (record.turn.saturating_add(1), *remember);
        }
    }
    Settled::Yes(about)
}
