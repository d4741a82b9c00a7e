//! Those who want something done, the provider, and the admin: each as honest as it can be.

use std::collections::VecDeque;
use std::time::Duration;

use super::super::World;
use super::super::answers::answer;
use super::super::writes::{ANY_TIME, LEASE, TIMEOUT, about};
use super::truth::Truth;
use super::{Fate, INTENTIONS, KEPT, OWNERS, Step, Word};
use crate::clock::Timestamp;
use crate::store::write::{Claim, Claimed, End, Found, Intention, Sending, Settled, Settling};
use crate::store::{Digest, OpId, StoredAnswer};

pub(super) struct Player {
    world: World,
    again: bool,
    /// What each owner has in hand.
    hands: [Option<Hand>; OWNERS],
    truths: [Truth; INTENTIONS],
    /// What is on its way to the store, and whose.
    late: VecDeque<(Late, Hand)>,
    ids: u128,
}

#[derive(Clone, Copy)]
enum Late {
    Claim,
    Sending,
}

/// What an owner knows.
#[derive(Clone, Debug)]
struct Hand {
    id: OpId,
    what: usize,
    other: bool,
    /// None: it has not heard whether it was granted.
    turn: Option<u32>,
    /// Its bytes may begin to leave until then.
    until: Timestamp,
    sent: bool,
    /// Something that was sent before may have had an effect.
    unclear: bool,
}

impl Player {
    pub(super) fn new(world: World, again: bool) -> Self {
        Self { world, again, hands: Default::default(), truths: Default::default(), late: VecDeque::new(), ids: 0 }
    }

    pub(super) async fn step(mut self, step: &Step, crash: impl Fn(World) -> Result<World, World>) -> Self {
        match *step {
            Step::Claim { by, what, other, fate } => self.claim(by, what, other, fate).await,
            Step::Sending { by, there, back, fate } => self.sending(by, [there, back], fate).await,
            Step::Leave(by) => self.leave(by),
            Step::Answer(by, word) => self.answer(by, word).await,
            Step::Renew(by) => {
                if let Some(hand) = &self.hands[by] {
                    self.world.store.prolong(intention(hand.what), hand.id, LEASE).await.unwrap();
                }
            }
            Step::Crash(by) => self.hands[by] = None,
            Step::CrashAll => {
                self.hands = Default::default();
                self.world = match crash(self.world) {
                    Ok(world) => {
                        self.late.clear();
                        world
                    }
                    Err(world) => world,
                };
            }
            Step::Settle(what) => drop(self.settle(what).await),
            Step::Arrive => self.arrive().await,
            Step::Pass(time) => self.pass(time),
        }
        self
    }

    fn pass(&mut self, time: Duration) {
        self.world.clock.advance(time);
        let now = self.world.clock.now();
        self.truths.iter_mut().for_each(|truth| truth.pass(now));
    }

    async fn claim(&mut self, by: usize, what: usize, other: bool, fate: Fate) {
        if self.hands[by].is_some() {
            return;
        }
        self.ids += 1;
        let id = OpId(self.ids);
        let mut hand = Hand { id, what, other, turn: None, until: Timestamp(0), sent: false, unclear: false };
        if fate == Fate::Late {
            self.late.push_back((Late::Claim, hand.clone()));
        } else {
            let claimed = self.claimed(&hand).await;
            match claimed {
                _ if fate == Fate::Lost => {}
                Claimed::Owned { turn } => hand.turn = Some(turn),
                Claimed::Again { turn, .. } => (hand.turn, hand.unclear) = (Some(turn), true),
                _ => return,
            }
        }
        self.hands[by] = Some(hand);
    }

    async fn claimed(&mut self, hand: &Hand) -> Claimed {
        let claim = Claim { owner: hand.id, again: ANY_TIME.filter(|_| self.again), look: false, ..look(hand.what, hand.other) };
        let claimed = self.world.store.claim(claim).await.unwrap();
        self.truths[hand.what].granted(&claimed, hand.other, self.world.clock.now());
        if matches!(claimed, Claimed::Owned { .. } | Claimed::Again { .. }) {
            self.nobody_sends(hand.what);
        }
        claimed
    }

    /// Nobody's bytes may leave for it any more.
    fn nobody_sends(&self, what: usize) {
        let now = self.world.clock.now();
        let sends = |hand: &&Hand| hand.what == what && now < hand.until;
        assert!(!self.hands.iter().flatten().any(|hand| sends(&hand)), "its owner may still send");
    }

    async fn sending(&mut self, by: usize, [there, back]: [Duration; 2], fate: Fate) {
        // Once its bytes have left, it is for the provider to tell whether they may leave again.
        let Some(hand) = self.hands[by].clone().filter(|hand| hand.turn.is_some() && (self.again || !hand.sent)) else { return };
        if fate == Fate::Late {
            return self.late.push_back((Late::Sending, hand));
        }
        let asked = self.world.clock.now();
        self.pass(there);
        let may = self.may_send(&hand).await;
        self.pass(back);
        if let Some(hand) = self.hands[by].as_mut().filter(|_| may && fate == Fate::Heard) {
            hand.until = asked.after(LEASE);
        }
    }

    async fn may_send(&self, hand: &Hand) -> bool {
        let (intention, about) = (intention(hand.what), about("a"));
        let sending = Sending { intention, owner: hand.id, lease: LEASE, timeout: TIMEOUT, about: &about };
        self.world.store.sending(sending).await.unwrap()
    }

    fn leave(&mut self, by: usize) {
        let now = self.world.clock.now();
        let Some(hand) = self.hands[by].as_mut().filter(|hand| now < hand.until) else { return };
        self.truths[hand.what].leaves(hand.turn.unwrap(), hand.other, self.again);
        self.truths[hand.what].is_under_way(hand.id, now.after(TIMEOUT));
        (hand.unclear, hand.sent, hand.until) = (hand.unclear || hand.sent, true, Timestamp(0));
    }

    /// Ends what an owner has in hand. Who has not heard that it was granted says that it has not sent.
    async fn answer(&mut self, by: usize, word: Word) {
        let Some(hand) = self.hands[by].take() else { return };
        let kept = kept(self.world.clock.now());
        let end = match word {
            Word::Done if hand.sent => End::Done(kept.clone()),
            Word::Nothing if hand.sent => End::Unknown,
            _ if hand.unclear => End::Unknown,
            _ => End::Free,
        };
        let heard = self.world.store.finish(intention(hand.what), hand.id, end.clone()).await.unwrap();
        let truth = &mut self.truths[hand.what];
        truth.has_arrived(hand.id);
        match end {
            End::Done(_) if heard => truth.answered(kept),
            End::Free if heard && hand.sent => truth.out = None,
            _ => {}
        }
    }

    async fn settle(&mut self, what: usize) -> Option<Settled> {
        let (now, listed) = (self.world.clock.now(), self.world.store.unresolved(INTENTIONS).await.unwrap());
        let line = listed.into_iter().find(|line| line.intention == intention(what))?;
        let (sent, remember) = (self.truths[what].out.is_some(), now.after(KEPT));
        let found = if sent { Found::Sent(kept(now)) } else { Found::NotSent(remember) };
        let settling = Settling { intention: line.intention, owner: line.owner, by: OpId::random(), found };
        let settled = self.world.store.resolve(settling).await.unwrap();
        match settled {
            Settled::Yes(_) if sent => self.truths[what].answered(kept(now)),
            Settled::Yes(_) => self.truths[what].not_sent(remember),
            Settled::NotBefore(from) => assert!(from == line.settle_from && from > now),
            Settled::None => panic!("it was listed"),
        }
        if matches!(settled, Settled::Yes(_)) {
            self.nobody_sends(what);
            self.truths[what].is_quiet(now);
        }
        Some(settled)
    }

    async fn arrive(&mut self) {
        match self.late.pop_front() {
            Some((Late::Claim, hand)) => drop(self.claimed(&hand).await),
            Some((Late::Sending, hand)) => drop(self.may_send(&hand).await),
            None => {}
        }
    }

    /// What has left stays known, and for as long as it was to be.
    pub(super) async fn compare(&self) {
        for (what, truth) in self.truths.iter().enumerate() {
            let other = truth.out.as_ref().is_some_and(|out| out.other);
            let claimed = self.world.store.claim(look(what, other)).await.unwrap();
            match (truth.out.as_ref().map(|out| &out.answered), claimed) {
                (None, Claimed::Done(_)) => panic!("it is done, and never was"),
                (Some(Some(answer)), claimed) => assert_eq!(claimed, Claimed::Done(answer.clone())),
                (None, _) | (Some(None), Claimed::Held { .. } | Claimed::Unknown) => {}
                (Some(None), claimed) => panic!("it was sent: {claimed:?}"),
            }
        }
    }

    /// Nothing stays as it is for ever.
    pub(super) async fn end(mut self) {
        self.hands = Default::default();
        self.pass(LEASE + TIMEOUT);
        for what in 0..INTENTIONS {
            let settled = self.settle(what).await;
            assert!(matches!(settled, None | Some(Settled::Yes(_))), "{settled:?}");
            let claimed = self.world.store.claim(Claim { look: false, ..look(what, false) }).await.unwrap();
            assert!(matches!(claimed, Claimed::Owned { .. } | Claimed::Done(_) | Claimed::Reused), "{claimed:?}");
        }
    }
}

fn intention(what: usize) -> Intention {
    Intention(what as u128)
}

fn look(what: usize, other: bool) -> Claim<'static> {
    const FINGERPRINTS: [Digest; 2] = [[7; 32], [8; 32]];
    let fingerprint = &FINGERPRINTS[usize::from(other)];
    Claim { intention: intention(what), owner: OpId(u128::MAX), fingerprint, lease: LEASE, again: None, look: true }
}

/// Answered just now.
fn kept(now: Timestamp) -> StoredAnswer {
    let until = now.after(KEPT);
    StoredAnswer { stored: now, fresh_until: until, revalidate_until: until, error_until: until, ..answer(0, b"sent") }
}
