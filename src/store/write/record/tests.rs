//! What the laws of every store cannot reach: a clock that was set back, and what nobody does who sends.

use super::*;

const WHAT: Intention = Intention(1);
const LEASE: Duration = Duration::from_secs(6);
const TIMEOUT: Duration = Duration::from_secs(10);
/// By a clock that was a year ahead.
const AHEAD: Timestamp = Timestamp(1_831_536_000_000_000);
const NOW: Timestamp = Timestamp(1_800_000_000_000_000);

fn to(owner: u128, fingerprint: &Digest) -> Claim<'_> {
    Claim { intention: WHAT, owner: OpId(owner), fingerprint, lease: LEASE, again: None, look: false }
}

fn claimed(now: Timestamp) -> Option<Record> {
    let mut slot = None;
    assert_eq!(claim(&mut slot, &to(1, &[1; 32]), now), Claimed::Owned { turn: 0 });
    slot
}

fn sent(now: Timestamp) -> Option<Record> {
    let (mut slot, about) = (claimed(now), About::default());
    assert!(sending(&mut slot, &Sending { intention: WHAT, owner: OpId(1), lease: LEASE, timeout: TIMEOUT, about: &about }, now));
    slot
}

fn not_sent(slot: &mut Option<Record>, now: Timestamp) -> Settled {
    resolve(slot, &Settling { intention: WHAT, owner: OpId(1), by: OpId(9), found: Found::NotSent(now) }, now)
}

#[test]
fn what_was_known_of_an_earlier_send_is_not_known_of_the_next() {
    let (mut slot, about) = (claimed(NOW), About { request: "first".to_owned(), ..About::default() });
    assert!(sending(&mut slot, &Sending { intention: WHAT, owner: OpId(1), lease: LEASE, timeout: TIMEOUT, about: &about }, NOW));
    assert!(finish(&mut slot, OpId(1), End::Unknown, NOW));
    assert_eq!(not_sent(&mut slot, NOW), Settled::Yes(about));
    let later = NOW.after(TIMEOUT);
    assert_eq!(claim(&mut slot, &to(2, &[1; 32]), later), Claimed::Owned { turn: 0 });
    assert!(finish(&mut slot, OpId(2), End::Unknown, later), "it is believed, though it has never said that it sends");
    let line = unresolved(WHAT, slot.as_ref().unwrap(), later).unwrap();
    assert_eq!((line.about, line.since), (About::default(), later));
}

#[test]
fn a_claim_from_the_future_is_free() {
    let mut slot = claimed(AHEAD);
    assert!(slot.as_ref().is_some_and(|record| record.is_over(NOW)));
    assert_eq!(claim(&mut slot, &to(2, &[2; 32]), NOW), Claimed::Owned { turn: 0 });
}

#[test]
fn a_send_from_the_future_is_unknown_and_not_free() {
    let mut slot = sent(AHEAD);
    assert_eq!(claim(&mut slot, &to(2, &[1; 32]), NOW), Claimed::Unknown, "nobody waits for its owner for a year");
    assert_eq!(claim(&mut slot, &to(2, &[2; 32]), NOW), Claimed::Reused);
    assert_eq!((slot.as_ref().map(|record| record.is_over(NOW)), slot.as_ref().and_then(Record::expires)), (Some(false), None));
    assert!(prolong(&mut slot, OpId(1), LEASE, NOW), "its owner lives, and has the time of day");
    assert_eq!(claim(&mut slot, &to(2, &[1; 32]), NOW), Claimed::Held { left: LEASE });
}

#[test]
fn a_send_from_the_future_is_settled_when_the_longest_lease_has_ended_since_somebody_asked() {
    let (mut slot, from) = (sent(AHEAD), NOW.after(LONGEST).after(TIMEOUT));
    assert_eq!(unresolved(WHAT, slot.as_ref().unwrap(), NOW).map(|line| (line.unknown, line.settle_from)), Some((true, from)));
    assert_eq!(not_sent(&mut slot, NOW), Settled::NotBefore(from));
    assert_eq!(claim(&mut slot, &to(2, &[1; 32]), NOW), Claimed::Unknown);
    let mut alive = slot.clone();
    assert!(prolong(&mut alive, OpId(1), LEASE, NOW), "unless its owner lives");
    assert_eq!(claim(&mut alive, &to(2, &[1; 32]), NOW), Claimed::Held { left: LEASE });
    let almost = Timestamp(from.0 - 1);
    assert_eq!(not_sent(&mut slot, almost), Settled::NotBefore(from), "it does not move on");
    assert_eq!(not_sent(&mut slot, from), Settled::Yes(About::default()));
}

#[test]
fn what_its_owner_did_not_know_in_the_future_is_settled_at_once() {
    let mut slot = sent(AHEAD);
    assert!(finish(&mut slot, OpId(1), End::Unknown, AHEAD));
    assert_eq!(unresolved(WHAT, slot.as_ref().unwrap(), NOW).map(|line| line.settle_from), Some(NOW));
    assert_eq!(not_sent(&mut slot, NOW), Settled::Yes(About::default()));
}
