//! What has truly become of an intention, whatever a store says of it: known to the test alone.

use crate::clock::Timestamp;
use crate::store::write::Claimed;
use crate::store::{OpId, StoredAnswer};

/// Of one intention.
#[derive(Debug, Default)]
pub(super) struct Truth {
    /// What has left for the provider, and may have had an effect.
    pub out: Option<Out>,
    /// The turn it was claimed for last.
    turn: u32,
    /// The turn after that, and until when it is to be remembered.
    next: (u32, Timestamp),
    /// What may be under way to the provider, whose it is and until when.
    under_way: Vec<(OpId, Timestamp)>,
}

/// Bytes that have left.
#[derive(Debug)]
pub(super) struct Out {
    /// With another question than the usual one.
    pub other: bool,
    turn: u32,
    /// What is known of it, for as long as that is.
    pub answered: Option<StoredAnswer>,
}

impl Truth {
    /// What was answered long ago is over: its key may be used again.
    pub(super) fn pass(&mut self, now: Timestamp) {
        self.out.take_if(|out| out.answered.as_ref().is_some_and(|answer| answer.expires() <= now));
    }

    /// Whether it may be granted like this.
    pub(super) fn granted(&mut self, claimed: &Claimed, other: bool, now: Timestamp) {
        match (claimed, &self.out) {
            (Claimed::Owned { turn }, None) => {
                assert_eq!(*turn, if self.next.1 > now { self.next.0 } else { 0 });
                self.turn = *turn;
            }
            (Claimed::Again { turn, .. }, Some(out)) => assert_eq!((*turn, other, &out.answered), (out.turn, out.other, &None)),
            (Claimed::Done(answer), Some(out)) => assert_eq!(Some(answer), out.answered.as_ref()),
            (Claimed::Owned { .. }, Some(_)) => panic!("it may be sent, and may have been"),
            (Claimed::Done(_), None) => panic!("it is done, and never was"),
            _ => {}
        }
    }

    /// Bytes are under way.
    pub(super) fn is_under_way(&mut self, owner: OpId, until: Timestamp) {
        self.under_way.push((owner, until));
    }

    /// Their owner has heard of them, or has waited for as long as that takes.
    pub(super) fn has_arrived(&mut self, owner: OpId) {
        self.under_way.retain(|(whose, _)| *whose != owner);
    }

    /// Nothing may arrive any more.
    pub(super) fn is_quiet(&self, now: Timestamp) {
        assert!(self.under_way.iter().all(|(_, until)| *until <= now), "it may still arrive: {:?}", self.under_way);
    }

    /// Bytes leave.
    pub(super) fn leaves(&mut self, turn: u32, other: bool, again: bool) {
        if let Some(out) = &self.out {
            assert!(again && out.answered.is_none(), "it is sent twice: {out:?}");
            assert_eq!((turn, other), (out.turn, out.other), "the provider takes it for another");
        }
        self.out = Some(Out { other, turn, answered: None });
    }

    /// It is known what came of it.
    pub(super) fn answered(&mut self, answer: StoredAnswer) {
        if let Some(out) = &mut self.out {
            out.answered = Some(answer);
        }
    }

    /// It was not sent. The next is another one to the provider, as long as that is remembered.
    pub(super) fn not_sent(&mut self, remember: Timestamp) {
        self.next = (self.turn + 1, remember);
    }
}
