//! What is unknown: sent again by one at a time where the provider tells the difference, or settled by an admin, or neither.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;

use super::super::OpId;
use super::super::write::{Again, Claim, Claimed, End, Found, Intention, MOST_SENDS, Sending, Settled, Settling, Unresolved};
use super::World;
use super::answers::answer;
use super::writes::{FIRST, LEASE, MICRO, OTHER, OWNED, TIMEOUT, WHAT, YEARS, about, again, claim, done, just_before, look, to};
use crate::clock::Timestamp;

impl World {
    pub async fn resolve(&self, owner: u128, found: Found) -> Settled {
        self.store.resolve(Settling { intention: WHAT, owner: OpId(owner), by: OpId::random(), found }).await.unwrap()
    }

    /// Settled as not sent, which is remembered for an hour.
    async fn not_sent(&self, owner: u128) -> Settled {
        self.resolve(owner, Found::NotSent(self.clock.now().after(Duration::from_hours(1)))).await
    }

    /// From its settlement on a write is not its owner's. (That it is free may still be said, where it is free.)
    async fn refuses_all_of_the_former(&self, owner: u128) {
        assert!(!self.send(WHAT, owner).await && !self.prolong(owner).await);
        assert!(!self.finish(WHAT, owner, done()).await && !self.finish(WHAT, owner, End::Unknown).await);
    }
}

// === Sent again ===

pub async fn what_is_unknown_is_sent_again_by_one_at_a_time(world: World) {
    world.sends(WHAT, 1).await;
    world.clock.advance(YEARS);
    assert_eq!(world.claim(claim(2)).await, Claimed::Unknown, "not by who may not");
    let taken = Claimed::Again { turn: 0, about: about("first") };
    let world = Arc::new(world);
    let claims = (10..30).map(|owner| {
        let world = Arc::clone(&world);
        tokio::spawn(async move { (owner, world.claim(again(owner)).await) })
    });
    let (owners, others): (Vec<_>, Vec<_>) = try_join_all(claims).await.unwrap().into_iter().partition(|(_, it)| *it == taken);
    assert_eq!(owners.len(), 1);
    assert!(others.iter().all(|(_, claimed)| *claimed == Claimed::Held { left: LEASE }), "{others:?}");
    let owner = owners[0].0;
    assert_eq!(world.claim(again(owner)).await, taken, "twice is once");
    world.refuses_all_of(1).await;
    world.clock.advance(LEASE);
    assert_eq!(world.claim(claim(2)).await, Claimed::Unknown, "its owner has died before it has sent: unknown again, not free");
    assert_eq!(world.claim(again(2)).await, taken);
    world.refuses_all_of(owner).await;
    assert!(world.send(WHAT, 2).await);
    let kept = answer(u64::from(u32::MAX), b"the same");
    assert!(world.finish(WHAT, 2, End::Done(kept.clone())).await);
    assert_eq!(world.claim(again(3)).await, Claimed::Done(kept));
}

/// Its provider forgets keys: later it would be done once more.
pub async fn what_was_sent_too_long_ago_is_not_sent_again(world: World) {
    let (before, other) = (Timestamp(FIRST.0 - 1), 0x71);
    let sent = |owner, after, to| Claim { again: Some(Again { after, to }), ..claim(owner) };
    world.sends(WHAT, 1).await;
    world.clock.advance(LEASE);
    let shown = world.store.unresolved(1).await.unwrap();
    for owner in 2..5 {
        assert_eq!(world.claim(sent(owner, FIRST, 0x70)).await, Claimed::Unknown);
        assert_eq!(world.claim(sent(owner, before, other)).await, Claimed::Unknown, "sent elsewhere, where nobody knows its key");
    }
    assert_eq!(world.store.unresolved(1).await.unwrap(), shown, "it is who it was: an admin finds it");
    assert_eq!(world.claim(sent(5, before, 0x70)).await, Claimed::Again { turn: 0, about: about("first") });
}

pub async fn what_was_sent_too_often_is_not_sent_again(world: World) {
    world.sends(WHAT, 1).await;
    for (sends, taken) in [(MOST_SENDS, false), (MOST_SENDS - 1, true)] {
        let about = about("often").with_reservations((0..sends as u128).map(OpId).collect());
        let sending = Sending { intention: WHAT, owner: OpId(1), lease: LEASE, timeout: TIMEOUT, about: &about };
        assert!(world.prolong(1).await && world.store.sending(sending).await.unwrap());
        world.clock.advance(LEASE);
        assert_eq!(world.claim(again(2)).await != Claimed::Unknown, taken, "{sends}");
    }
}

/// A store that did not say so may have settled all the same.
pub async fn a_settling_that_is_repeated_settles_once(world: World) {
    let hour = world.clock.now().after(Duration::from_hours(1));
    for (n, found) in [Found::NotSent(hour), Found::Sent(answer(0, b"sent"))].into_iter().enumerate() {
        let what = Intention(100 + n as u128);
        world.sends(what, 1).await;
        assert!(world.finish(what, 1, End::Unknown).await);
        let settling = |by| Settling { intention: what, owner: OpId(1), by: OpId(by), found: found.clone() };
        for _ in 0..3 {
            assert_eq!(world.store.resolve(settling(8)).await, Ok(Settled::Yes(about("first"))));
        }
        assert_eq!(world.store.resolve(settling(9)).await, Ok(Settled::None), "it was another who settled it");
    }
    assert_eq!(world.claim(to(Intention(100), 2)).await, Claimed::Owned { turn: 1 }, "once");
}

pub async fn who_takes_over_does_not_speak_for_the_one_before(world: World) {
    world.sends(WHAT, 1).await;
    let from = world.clock.now().after(LEASE).after(TIMEOUT);
    world.clock.advance(LEASE);
    for (owner, end) in [(2, End::Free), (3, End::Unknown), (4, End::Free)] {
        assert!(matches!(world.claim(again(owner)).await, Claimed::Again { .. }));
        assert_eq!(world.claim(again(owner)).await, Claimed::Again { turn: 0, about: about("first") }, "twice is once");
        assert!(owner < 4 || world.send(WHAT, owner).await);
        assert!(world.finish(WHAT, owner, end.clone()).await);
        assert!(world.finish(WHAT, owner, end.clone()).await, "twice is once");
        assert_eq!(world.claim(claim(5)).await, Claimed::Unknown, "{end:?}");
        assert_eq!(world.not_sent(owner).await, Settled::NotBefore(from), "bytes of the first may be under way: {end:?}");
        assert_eq!(world.store.unresolved(1).await.unwrap()[0].settle_from, from);
    }
    world.clock.advance(TIMEOUT);
    assert_eq!(world.not_sent(4).await, Settled::Yes(about("first")));
    assert_eq!(world.claim(again(5)).await, Claimed::Owned { turn: 1 });
    assert!(world.send(WHAT, 5).await && world.finish(WHAT, 5, End::Free).await, "what was settled is over");
    assert_eq!(world.claim(look()).await, Claimed::Free);
}

pub async fn who_sends_again_says_what_an_admin_is_told(world: World) {
    world.sends(WHAT, 1).await;
    assert!(world.finish(WHAT, 1, End::Unknown).await);
    assert_eq!(world.claim(again(2)).await, Claimed::Again { turn: 0, about: about("first") });
    assert_eq!(world.not_sent(1).await, Settled::None, "it is another's");
    world.clock.advance(LEASE / 2);
    assert!(!world.send(WHAT, 2).await, "too late");
    assert!(world.prolong(2).await);
    let second = about("second").with_reservations((0..5).map(OpId).collect());
    let sending = Sending { intention: WHAT, owner: OpId(2), lease: LEASE, timeout: TIMEOUT, about: &second };
    assert_eq!(world.store.sending(sending).await, Ok(true));
    world.clock.advance(LEASE + TIMEOUT);
    assert_eq!(world.claim(again(3)).await, Claimed::Again { turn: 0, about: second.clone() });
    assert!(world.finish(WHAT, 3, End::Unknown).await);
    assert_eq!(world.not_sent(3).await, Settled::Yes(second));
    assert_eq!(world.claim(again(4)).await, Claimed::Owned { turn: 1 });
    assert!(world.send(WHAT, 4).await);
    world.clock.advance(LEASE);
    assert_eq!(world.claim(again(5)).await, Claimed::Again { turn: 1, about: about("first") });
}

// === Settled ===

pub async fn nothing_is_settled_while_its_owner_may_be_at_it(world: World) {
    world.sends(WHAT, 1).await;
    world.clock.advance(LEASE / 2);
    assert!(world.prolong(1).await);
    let from = world.clock.now().after(LEASE).after(TIMEOUT);
    for wait in [LEASE / 2, LEASE / 2, just_before(TIMEOUT)] {
        assert_eq!(world.not_sent(1).await, Settled::NotBefore(from));
        assert_eq!(world.resolve(1, Found::Sent(answer(0, b""))).await, Settled::NotBefore(from));
        world.clock.advance(wait);
    }
    assert_eq!(world.not_sent(1).await, Settled::NotBefore(from));
    world.clock.advance(MICRO);
    assert_eq!(world.not_sent(2).await, Settled::None, "of another's sending nothing was found out");
    assert_eq!(world.not_sent(1).await, Settled::Yes(about("first")));
    assert_eq!(world.not_sent(1).await, Settled::None, "once");
}

pub async fn only_what_is_unknown_is_settled(world: World) {
    let settled_not = async |when: &str| {
        for found in [Found::Sent(answer(60, b"")), Found::NotSent(Timestamp(u64::MAX / 2))] {
            assert_eq!(world.resolve(1, found).await, Settled::None, "{when}");
        }
    };
    settled_not("never claimed").await;
    assert_eq!(world.claim(claim(1)).await, OWNED);
    settled_not("claimed").await;
    world.clock.advance(LEASE + TIMEOUT);
    settled_not("lapsed").await;
    world.sends(WHAT, 1).await;
    assert!(world.finish(WHAT, 1, End::Free).await);
    settled_not("free").await;
    world.sends(WHAT, 1).await;
    assert!(world.finish(WHAT, 1, End::Done(answer(60, b"sent"))).await);
    settled_not("done").await;
    assert_eq!(world.claim(claim(2)).await, Claimed::Done(answer(60, b"sent")));
}

pub async fn settled_as_not_sent_it_is_free_for_another_turn(world: World) {
    for turn in 0..3 {
        assert_eq!(world.claim(claim(1)).await, Claimed::Owned { turn });
        assert!(world.send(WHAT, 1).await && world.finish(WHAT, 1, End::Unknown).await);
        assert_eq!(world.not_sent(1).await, Settled::Yes(about("first")), "at once, by its owner's own word");
        world.refuses_all_of_the_former(1).await;
        assert_eq!(world.claim(look()).await, Claimed::Free);
        assert_eq!(world.claim(Claim { fingerprint: &OTHER, ..claim(2) }).await, Claimed::Owned { turn: turn + 1 });
        assert!(world.finish(WHAT, 2, End::Free).await);
        assert_eq!(world.claim(claim(3)).await, Claimed::Owned { turn: turn + 1 }, "freed, it is the same turn");
        world.clock.advance(LEASE);
    }
    world.clock.advance(just_before(Duration::from_hours(1).saturating_sub(LEASE)));
    assert_eq!(world.claim(claim(4)).await, Claimed::Owned { turn: 3 }, "and lapsed");
    world.clock.advance(LEASE);
    assert_eq!(world.claim(claim(5)).await, OWNED, "it was to be remembered until then");
}

pub async fn settled_as_sent_it_is_replayed(world: World) {
    world.sends(WHAT, 1).await;
    world.clock.advance(LEASE + TIMEOUT);
    let kept = answer(60, b"the admin's word");
    assert_eq!(world.resolve(1, Found::Sent(kept.clone())).await, Settled::Yes(about("first")));
    world.refuses_all_of_the_former(1).await;
    world.clock.advance(just_before(kept.expires().since(world.clock.now())));
    for who in [claim(1), again(2), look()] {
        assert_eq!(world.claim(who).await, Claimed::Done(kept.clone()));
    }
    world.clock.advance(MICRO);
    world.is_free_for(2).await;
}

pub async fn what_is_unresolved_is_listed_oldest_first(world: World) {
    let second = Duration::from_secs(1);
    let [first, next, declared, claimed, freed, replayed] = [6, 2, 4, 1, 3, 5].map(Intention);
    let mut since = Vec::new();
    for what in [first, next, declared] {
        since.push(world.clock.now());
        world.sends(what, what.0).await;
        world.clock.advance(second);
    }
    assert!(world.finish(declared, declared.0, End::Unknown).await);
    assert_eq!(world.claim(to(claimed, 1)).await, OWNED);
    for (what, end) in [(freed, End::Free), (replayed, done())] {
        world.sends(what, 1).await;
        assert!(world.finish(what, 1, end).await);
    }
    let line = |what: Intention, since: Timestamp, unknown, settle_from| {
        let (intention, owner) = (what, OpId(what.0));
        Unresolved { intention, owner, since, unknown, settle_from, about: about("first") }
    };
    let lapsing = |since: Timestamp| since.after(LEASE).after(TIMEOUT);
    world.clock.advance(LEASE.saturating_sub(second * 3));
    let lines = vec![
        line(first, since[0], true, lapsing(since[0])),
        line(next, since[1], false, lapsing(since[1])),
        line(declared, since[2], true, since[2]),
    ];
    assert_eq!(world.store.unresolved(100).await, Ok(lines.clone()));
    assert_eq!(world.store.unresolved(2).await, Ok(lines[..2].to_vec()));
    assert_eq!(world.store.unresolved(0).await, Ok(Vec::new()));
    world.clock.advance(YEARS);
    let known = world.store.unresolved(100).await.unwrap();
    assert_eq!(
        known.iter().map(|line| (line.intention, line.unknown)).collect::<Vec<_>>(),
        [(first, true), (next, true), (declared, true)]
    );
}
