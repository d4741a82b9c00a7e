//! One send for each intention: what a record allows, to whom, and for how long.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{join_all, try_join_all};

use super::super::write::{About, Again, Claim, Claimed, End, Found, Intention, Sending, Settled};
use super::super::{Digest, OpId, StoredAnswer};
use super::World;
use super::answers::answer;
use crate::clock::Timestamp;

pub const WHAT: Intention = Intention(0xfeed_0000_0000_0000_0000_0000_0000_0007);
pub const ELSE: Intention = Intention(0xfeed_0000_0000_0000_0000_0000_0000_0008);
pub const LEASE: Duration = Duration::from_secs(6);
/// How long bytes may be under way after a lease.
pub const TIMEOUT: Duration = Duration::from_secs(10);
pub const MICRO: Duration = Duration::from_micros(1);
pub const YEARS: Duration = Duration::from_hours(10 * 365 * 24);
const FINGERPRINT: Digest = [7; 32];
pub const OTHER: Digest = [8; 32];
pub const OWNED: Claimed = Claimed::Owned { turn: 0 };

/// A microsecond less.
pub fn just_before(end: Duration) -> Duration {
    end.saturating_sub(MICRO)
}

/// The usual claim.
pub fn to(what: Intention, owner: u128) -> Claim<'static> {
    Claim { intention: what, owner: OpId(owner), fingerprint: &FINGERPRINT, lease: LEASE, again: None, look: false }
}

pub fn claim(owner: u128) -> Claim<'static> {
    to(WHAT, owner)
}

/// Of a provider that tells the same intention from another.
/// When what is sent here was sent first: before any clock of these tests begins.
pub const FIRST: Timestamp = Timestamp(1_700_000_000_000_000);

/// However long ago it was sent.
pub const ANY_TIME: Option<Again> = Some(Again { after: Timestamp(0), to: 0x70 });

pub fn again(owner: u128) -> Claim<'static> {
    Claim { again: ANY_TIME, ..claim(owner) }
}

pub fn look() -> Claim<'static> {
    Claim { look: true, ..claim(99) }
}

pub fn about(request: &str) -> About {
    let about = About {
        route: "sms".to_owned(),
        provider: "twilio".to_owned(),
        caller: "till".to_owned(),
        request: request.to_owned(),
        first: Some(FIRST),
        to: Some(format!("{:032x}", 0x70)),
        provider_key: Some("key \"1\"".to_owned()),
        micros: 9_007_199_254_740_991,
        currency: "EUR".to_owned(),
        ..About::default()
    };
    about.with_reservations(vec![OpId(u128::MAX), OpId(3)])
}

pub fn done() -> End {
    End::Done(answer(0, b"sent"))
}

impl World {
    pub async fn claim(&self, claim: Claim<'_>) -> Claimed {
        self.store.claim(claim).await.unwrap()
    }

    pub async fn send(&self, what: Intention, owner: u128) -> bool {
        let about = about("first");
        let sending = Sending { intention: what, owner: OpId(owner), lease: LEASE, timeout: TIMEOUT, about: &about };
        self.store.sending(sending).await.unwrap()
    }

    pub async fn prolong(&self, owner: u128) -> bool {
        self.store.prolong(WHAT, OpId(owner), LEASE).await.unwrap()
    }

    pub async fn finish(&self, what: Intention, owner: u128, end: End) -> bool {
        self.store.finish(what, OpId(owner), end).await.unwrap()
    }

    /// It belongs to nobody, and then to this one.
    pub async fn is_free_for(&self, owner: u128) {
        assert_eq!(self.claim(look()).await, Claimed::Free);
        assert_eq!(self.claim(claim(owner)).await, OWNED);
    }

    /// Claims and sends.
    pub async fn sends(&self, what: Intention, owner: u128) {
        assert_eq!(self.claim(to(what, owner)).await, OWNED);
        assert!(self.send(what, owner).await);
    }

    pub async fn refuses_all_of(&self, owner: u128) {
        assert!(!self.send(WHAT, owner).await && !self.prolong(owner).await);
        for end in [done(), End::Free, End::Unknown] {
            assert!(!self.finish(WHAT, owner, end.clone()).await, "{end:?}");
        }
    }
}

// === Claims ===

pub async fn claiming_twice_claims_once_and_another_is_told_how_long(world: World) {
    assert_eq!(world.claim(claim(1)).await, OWNED);
    assert_eq!(world.claim(claim(1)).await, OWNED);
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(world.claim(claim(2)).await, Claimed::Held { left: Duration::from_secs(5) });
    assert!(world.send(WHAT, 1).await, "whoever was refused has taken nothing");
    assert_eq!(world.claim(again(2)).await, Claimed::Held { left: LEASE }, "sending begins the lease anew");
    world.refuses_all_of(2).await;
}

pub async fn another_question_is_refused_wherever_the_first_stands(world: World) {
    let refused = async |when: &str| {
        let other = Claim { fingerprint: &OTHER, ..claim(2) };
        for other in [other, Claim { again: ANY_TIME, ..other }, Claim { look: true, ..other }] {
            assert_eq!(world.claim(other).await, Claimed::Reused, "{when}");
        }
    };
    world.claim(claim(1)).await;
    refused("claimed").await;
    assert!(world.send(WHAT, 1).await);
    refused("sending").await;
    world.clock.advance(LEASE);
    refused("unknown by time").await;
    assert!(world.finish(WHAT, 1, End::Unknown).await);
    refused("unknown by its owner's word").await;
    let kept = answer(60, b"sent");
    assert!(world.finish(WHAT, 1, End::Done(kept)).await);
    refused("done").await;
}

pub async fn a_claim_lapses_when_its_lease_ends(world: World) {
    assert_eq!(world.claim(claim(1)).await, OWNED);
    world.clock.advance(just_before(LEASE));
    assert_eq!(world.claim(claim(2)).await, Claimed::Held { left: MICRO });
    world.clock.advance(MICRO);
    assert!(!world.send(WHAT, 1).await, "nobody else has it, and yet it is too late");
    assert_eq!(world.claim(look()).await, Claimed::Free);
    assert_eq!(world.claim(Claim { fingerprint: &OTHER, ..claim(2) }).await, OWNED);
    world.refuses_all_of(1).await;
    assert!(world.send(WHAT, 2).await);
    world.refuses_all_of(1).await;
}

pub async fn a_lease_is_renewed_by_its_owner(world: World) {
    assert!(!world.prolong(1).await, "there is none");
    assert_eq!(world.claim(claim(1)).await, OWNED);
    for _ in 0..10 {
        world.clock.advance(just_before(LEASE));
        assert!(world.prolong(1).await && !world.prolong(2).await);
    }
    assert_eq!(world.claim(claim(2)).await, Claimed::Held { left: LEASE });
    assert!(world.send(WHAT, 1).await);
    world.clock.advance(LEASE + TIMEOUT * 10);
    assert_eq!(world.claim(claim(2)).await, Claimed::Unknown);
    assert!(world.prolong(1).await, "it was thought gone");
    assert_eq!(world.claim(claim(2)).await, Claimed::Held { left: LEASE });
}

pub async fn looking_changes_nothing(world: World) {
    assert_eq!(world.claim(look()).await, Claimed::Free);
    assert_eq!(world.claim(claim(1)).await, OWNED);
    world.clock.advance(LEASE / 3);
    for look in [look(), Claim { look: true, ..claim(1) }] {
        assert_eq!(world.claim(look).await, Claimed::Held { left: LEASE / 3 * 2 });
    }
    assert!(world.send(WHAT, 1).await);
    world.clock.advance(LEASE);
    assert_eq!(world.claim(Claim { again: ANY_TIME, ..look() }).await, Claimed::Unknown);
    let kept = answer(0, b"sent");
    assert!(world.finish(WHAT, 1, End::Done(kept.clone())).await, "it is still its own");
    assert_eq!(world.claim(look()).await, Claimed::Done(kept));
}

pub async fn intentions_do_not_touch_each_other(world: World) {
    world.sends(WHAT, 1).await;
    assert_eq!(world.claim(to(ELSE, 1)).await, OWNED);
    assert!(world.finish(WHAT, 1, done()).await);
    assert!(world.send(ELSE, 1).await && world.finish(ELSE, 1, End::Free).await);
    assert_eq!(world.claim(claim(2)).await, Claimed::Done(answer(0, b"sent")));
    world.sends(ELSE, 2).await;
    assert!(world.finish(ELSE, 2, End::Unknown).await);
    assert_eq!(world.claim(claim(3)).await, Claimed::Done(answer(0, b"sent")));
    assert_eq!(world.resolve(2, Found::Sent(answer(0, b""))).await, Settled::None);
    assert_eq!(world.claim(to(ELSE, 3)).await, Claimed::Unknown);
}

pub async fn many_at_once_are_one_owner(world: World) {
    let world = Arc::new(world);
    let claims = (1..=20).map(|owner| {
        let world = Arc::clone(&world);
        tokio::spawn(async move { (owner, world.claim(claim(owner)).await) })
    });
    let (owners, others): (Vec<_>, Vec<_>) = try_join_all(claims).await.unwrap().into_iter().partition(|(_, it)| *it == OWNED);
    assert_eq!(owners.len(), 1);
    assert!(others.iter().all(|(_, claimed)| *claimed == Claimed::Held { left: LEASE }), "{others:?}");
    let sent = join_all((1..=20).map(|owner| world.send(WHAT, owner))).await;
    assert_eq!(sent.iter().position(|sent| *sent), Some(usize::try_from(owners[0].0 - 1).unwrap()));
    assert_eq!(sent.iter().filter(|sent| **sent).count(), 1);
}

// === Sending ===

pub async fn nothing_is_sent_when_half_of_the_lease_is_spent(world: World) {
    assert!(!world.send(WHAT, 1).await, "it was never claimed");
    assert_eq!(world.claim(claim(1)).await, OWNED);
    world.clock.advance(LEASE / 2);
    assert!(!world.send(WHAT, 1).await);
    assert!(world.prolong(1).await);
    world.clock.advance(just_before(LEASE / 2));
    assert!(world.send(WHAT, 1).await);
    assert!(world.send(WHAT, 1).await, "once more, by the same");
    world.clock.advance(LEASE / 2);
    assert!(!world.send(WHAT, 1).await, "nor once more");
    assert_eq!(world.claim(claim(2)).await, Claimed::Held { left: LEASE / 2 }, "whoever was refused has begun no lease");
}

pub async fn what_was_being_sent_is_unknown_and_never_free(world: World) {
    world.sends(WHAT, 1).await;
    world.clock.advance(just_before(LEASE));
    assert_eq!(world.claim(claim(2)).await, Claimed::Held { left: MICRO });
    world.clock.advance(MICRO);
    for _ in 0..3 {
        for who in [claim(2), look(), claim(1)] {
            assert_eq!(world.claim(who).await, Claimed::Unknown);
        }
        assert!(!world.send(WHAT, 1).await);
        world.clock.advance(YEARS);
    }
}

pub async fn what_was_done_is_replayed_byte_for_byte_until_it_expires(world: World) {
    for body in [Bytes::from_static(b"\x00\xff\xfe\r\n\x1f\x8b"), Bytes::new(), Bytes::from(vec![0xa5; 1_000_000])] {
        let stored = world.clock.now();
        let until = stored.after(Duration::from_hours(24));
        let kept = StoredAnswer { status: 409, body, stored, error_until: until, ..answer(0, b"") };
        world.sends(WHAT, 1).await;
        assert!(world.finish(WHAT, 1, End::Done(kept.clone())).await);
        assert!(world.finish(WHAT, 1, End::Done(kept.clone())).await, "twice is once");
        assert!(!world.finish(WHAT, 1, End::Free).await && !world.finish(WHAT, 1, End::Unknown).await);
        assert!(!world.send(WHAT, 1).await && !world.prolong(1).await);
        world.clock.advance(just_before(Duration::from_hours(24)));
        for who in [claim(1), claim(2), again(2), look()] {
            assert_eq!(world.claim(who).await, Claimed::Done(kept.clone()));
        }
        world.clock.advance(MICRO);
        world.is_free_for(3).await;
        world.refuses_all_of(1).await;
        assert!(world.finish(WHAT, 3, End::Free).await);
    }
}

pub async fn what_had_no_effect_is_free_again(world: World) {
    for sent in [false, true] {
        assert_eq!(world.claim(claim(1)).await, OWNED);
        assert!(!sent || world.send(WHAT, 1).await);
        assert!(!world.finish(WHAT, 2, End::Free).await, "not its own");
        assert!(world.finish(WHAT, 1, End::Free).await);
        assert!(world.finish(WHAT, 1, End::Free).await, "twice is once");
        assert!(!world.send(WHAT, 1).await && !world.prolong(1).await && !world.finish(WHAT, 1, done()).await);
        assert_eq!(world.claim(look()).await, Claimed::Free);
        assert_eq!(world.claim(Claim { fingerprint: &OTHER, ..claim(2) }).await, OWNED);
        world.refuses_all_of(1).await;
        assert!(world.send(WHAT, 2).await && world.finish(WHAT, 2, End::Free).await);
    }
}

pub async fn an_owner_may_say_that_nobody_knows(world: World) {
    world.sends(WHAT, 1).await;
    assert!(!world.finish(WHAT, 2, End::Unknown).await, "not its own");
    assert!(world.finish(WHAT, 1, End::Unknown).await);
    assert!(world.finish(WHAT, 1, End::Unknown).await, "twice is once");
    assert_eq!(world.claim(claim(2)).await, Claimed::Unknown, "at once");
    assert!(!world.send(WHAT, 1).await && !world.prolong(1).await);
    assert!(!world.finish(WHAT, 1, End::Free).await, "it has said that it may have had an effect");
    world.clock.advance(YEARS);
    assert_eq!(world.claim(claim(2)).await, Claimed::Unknown);
    let kept = answer(u64::from(u32::MAX), b"found after all");
    assert!(world.finish(WHAT, 1, End::Done(kept.clone())).await);
    assert_eq!(world.claim(claim(2)).await, Claimed::Done(kept));
}

pub async fn a_late_owner_still_says_what_came_of_it(world: World) {
    let kept = answer(u64::from(u32::MAX), b"late");
    let ends = [(End::Free, OWNED), (End::Unknown, Claimed::Unknown), (End::Done(kept.clone()), Claimed::Done(kept))];
    for (what, (end, then)) in (1..).map(Intention).zip(ends) {
        world.sends(what, 1).await;
        world.clock.advance(YEARS);
        assert!(!world.finish(what, 2, end.clone()).await, "not its own");
        assert_eq!(world.claim(to(what, 2)).await, Claimed::Unknown);
        assert!(world.finish(what, 1, end).await);
        assert_eq!(world.claim(to(what, 3)).await, then);
    }
}
