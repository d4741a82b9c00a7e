//! What is kept of what a flight brings home. A part of the stage [`super::lease`], which looks and keeps.
//!
//! A store failure after a paid answer never turns it into an error. A flight that began before a purge, of its answer or of all,
//! keeps nothing.

use std::sync::Arc;

use crate::answer::{Answer, Source};
use crate::call::Call;
use crate::clock::{Timestamp, micros};
use crate::route::Route;
use crate::shared::Generation;
use crate::stage::cache::Answers;
use crate::store::lease::{Landing, Leave};
use crate::store::{OpId, SKEW, StoreError, StoredAnswer};

/// What of a route's answers is kept, and how.
#[derive(Clone)]
pub(crate) struct Keeper {
    pub(crate) route: Arc<Route>,
    pub(crate) answers: Answers,
    pub(crate) generation: Generation,
}

impl Keeper {
    /// The answer as it is to be kept, if it is.
    pub(crate) fn worth_keeping(&self, call: &Call, answer: &Answer) -> Option<StoredAnswer> {
        let lifetime = self.route.cache.and_then(|cache| cache.lifetime(answer.kept.outcome));
        // A shared store knows by itself which single answers were purged while they were asked for; it is told since when.
        let (then, now) = (call.era, self.generation.era());
        let purged = if self.answers.store.is_shared() { then.generation != now.generation } else { then != now };
        let keeps = lifetime.is_some() && !call.volatile && answer.kept.shareable && !purged;
        (keeps && answer.kept.fresh_until > answer.kept.stored).then(|| answer.kept.to_stored())
    }

    /// Writes an answer that was flown for without a lease from `began` on, if it is worth keeping.
    pub(crate) async fn keep(&self, call: &Call, answer: Answer, began: Timestamp) -> Answer {
        let Some(stored) = self.worth_keeping(call, &answer) else { return answer };
        let (store, route) = (&self.answers.store, &self.route.name);
        let written = if store.is_shared() {
            // It lands like a flight that has lost its lease: what was purged meanwhile is not kept, and nobody is told.
            let (flight, key) = (OpId::random(), &call.key);
            let landing = Landing { flight, route, key, began, keep: Some(stored), leave: Leave::Nothing };
            store.land(Some(&call.journey), landing).await
        } else {
            store.keep(&call.journey, route, &call.key, stored).await.map(|()| true)
        };
        self.kept(call, answer, written).await
    }

    /// When a flight begins that is not told by a shared store. Rather too early: the store marks purges by a clock of its own.
    pub(crate) fn begins(&self) -> Timestamp {
        let Timestamp(now) = self.answers.clock.now();
        Timestamp(now.saturating_sub(micros(SKEW)))
    }

    /// What follows from having written an answer: memory has it, too, unless it was purged meanwhile.
    pub(crate) async fn kept(&self, call: &Call, answer: Answer, written: Result<bool, StoreError>) -> Answer {
        match written {
            Ok(true) => {}
            Ok(false) => return answer,
            Err(error) => {
                tracing::warn!(route = self.route.name, %error, "a paid answer could not be stored; it is kept in memory");
            }
        }
        if !self.answers.remember(call, &self.generation, &answer.kept) {
            // Purged while it was being written: it may have come after what the purge took out. A shared store has seen to that.
            if !self.answers.store.is_shared() {
                let _ = self.answers.store.forget(&self.route.name, &call.key).await;
            }
            return answer;
        }
        Answer { source: Source::Upstream { stored: true }, ..answer }
    }
}
