//! What is kept of what a flight brings home. A part of the stage [`super::lease`], which looks and keeps.
//!
//! A store failure after a paid answer never turns it into an error. A flight that began before a purge, of its answer or of all,
//! keeps nothing.

use std::sync::Arc;

use crate::answer::{Answer, Source};
use crate::call::Call;
use crate::route::Route;
use crate::shared::Generation;
use crate::stage::cache::Answers;
use crate::store::{StoreError, StoredAnswer};

/// What of a route's answers is kept, and how.
#[derive(Clone)]
pub(crate) struct Keeper {
    pub(crate) route: Arc<Route>,
    pub(crate) answers: Answers,
    pub(crate) generation: Generation,
}

impl Keeper {
    /// The answer as it is to be kept, if it is. `leased`: by landing with a lease of a shared store.
    pub(crate) fn worth_keeping(&self, call: &Call, answer: &Answer, leased: bool) -> Option<StoredAnswer> {
        let lifetime = self.route.cache.and_then(|cache| cache.lifetime(answer.kept.outcome));
        // A shared store knows by itself which single answers were purged while they were asked for; a lease says since when.
        let (then, now) = (call.era, self.generation.era());
        let purged = if leased { then.generation != now.generation } else { then != now };
        let keeps = lifetime.is_some() && !call.volatile && answer.kept.shareable && !purged;
        (keeps && answer.kept.fresh_until > answer.kept.stored).then(|| answer.kept.to_stored())
    }

    /// Writes an answer, if it is worth keeping.
    pub(crate) async fn keep(&self, call: &Call, answer: Answer) -> Answer {
        let Some(stored) = self.worth_keeping(call, &answer, false) else { return answer };
        let written = self.answers.store.keep(&call.journey, &self.route.name, &call.key, stored).await;
        self.kept(call, answer, written.map(|()| true)).await
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
