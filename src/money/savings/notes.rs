//! What the stages note about a request, so that at its end it can be said what it saved.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::refusal::Code;
use crate::store::Digest;

/// Notes of one request.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    flags: AtomicU8,
    stood_in_for: OnceLock<Code>,
    asked: OnceLock<Asked>,
}

/// The question, as far as credits are concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) key: Digest,
    /// Its answer would be kept: a second one would be a hit.
    pub(crate) keeps: bool,
}

/// It wished for no more than what is stored.
const MODEST: u8 = 1;
/// It met a stale answer and began the refresh, which is paid.
const REFRESHES: u8 = 2;
/// It shared somebody else's flight.
const REPEAT: u8 = 4;

impl Notes {
    /// HEAD, or `only-if-cached`.
    pub(crate) fn is_modest(&self) {
        self.flags.fetch_or(MODEST, Ordering::Relaxed);
    }

    pub(crate) fn refreshes(&self) {
        self.flags.fetch_or(REFRESHES, Ordering::Relaxed);
    }

    pub(crate) fn shared_a_flight(&self) {
        self.flags.fetch_or(REPEAT, Ordering::Relaxed);
    }

    /// A stale answer stands in for this refusal.
    pub(crate) fn stands_in(&self, code: Code) {
        let _ = self.stood_in_for.set(code);
    }

    pub(crate) fn asks(&self, key: Digest, keeps: bool) {
        let _ = self.asked.set(Asked { key, keeps });
    }

    pub(super) fn saves_nothing(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & (MODEST | REFRESHES) != 0
    }

    pub(super) fn is_repeat(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & REPEAT != 0
    }

    pub(super) fn stood_in_for(&self) -> Option<Code> {
        self.stood_in_for.get().copied()
    }

    pub(super) fn asked(&self) -> Option<&Asked> {
        self.asked.get()
    }
}
