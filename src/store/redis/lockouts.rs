//! Lockouts. The rules are in `store::lockout`; the scripts keep them as a hash a subject.

use std::time::Duration;

use super::super::lockout::distinct;
use super::super::{Digest, Guess, LockoutRule, LockoutState, OpId, StoreError};
use super::link::call::Call;
use super::reply::Parts;
use super::script::{CLEAR_LOCKOUT, GUESS, LOCKOUT, SETTLE_GUESS};
use super::{RedisStore, keys};
use crate::clock::{Timestamp, micros};

/// Longer than anyone waits, and short enough for a script to add to the time.
const AGES: Duration = Duration::from_hours(10 * 365 * 24);

pub(super) async fn guess(
    store: &RedisStore,
    op: OpId,
    subjects: &[Digest],
    rule: LockoutRule,
    expires: Timestamp,
) -> Result<Guess, StoreError> {
    let call = about(Call::new(&GUESS), store, op, subjects, rule).number(expires.0);
    store.link.run(call, verdict).await
}

pub(super) async fn settle(
    store: &RedisStore,
    op: OpId,
    subjects: &[Digest],
    rule: LockoutRule,
    missed: bool,
) -> Result<(), StoreError> {
    let call =
        about(Call::new(&SETTLE_GUESS), store, op, subjects, rule).number(short(rule.first)).number(short(rule.max)).flag(missed);
    store.link.run(call, |_| Some(())).await
}

pub(super) async fn lockout(store: &RedisStore, subject: &Digest, rule: LockoutRule) -> Result<LockoutState, StoreError> {
    let call = Call::new(&LOCKOUT).key(store.keys().lockout(subject)).number(short(rule.window));
    store.link.run(call, state).await
}

pub(super) async fn clear(store: &RedisStore, subject: &Digest) -> Result<(), StoreError> {
    store.link.run(Call::new(&CLEAR_LOCKOUT).key(store.keys().lockout(subject)), |_| Some(())).await
}

/// What both halves of a guess say: which, of whom, by which rule.
fn about(call: Call, store: &RedisStore, op: OpId, subjects: &[Digest], rule: LockoutRule) -> Call {
    let keys = store.keys();
    call.key(keys.settled(op))
        .keys(distinct(subjects).map(|subject| keys.lockout(subject)))
        .arg(keys::id(op))
        .number(u64::from(rule.misses))
        .number(short(rule.window))
}

fn short(duration: Duration) -> u64 {
    micros(duration.min(AGES))
}

fn verdict(parts: &mut Parts) -> Option<Guess> {
    match parts.bytes()?.as_ref() {
        b"admitted" => Some(Guess::Admitted),
        b"full" => Some(Guess::Full),
        b"locked" => Some(Guess::Locked(parts.time()?)),
        _ => None,
    }
}

fn state(parts: &mut Parts) -> Option<LockoutState> {
    let mut count = || u32::try_from(parts.int()?).ok();
    let (misses, in_flight) = (count()?, count()?);
    let locked_until = u64::try_from(parts.int()?).ok();
    Some(LockoutState { misses, in_flight, locked_until, locks: u32::try_from(parts.int()?).ok()? })
}
