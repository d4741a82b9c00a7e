//! The inner half of the cache, inside the flight: looks once more on entering (whoever flew before may have stored the
//! answer), and stores what comes back, before the flight ends and anyone else may start one.
//!
//! A store failure after a paid answer never turns it into an error. A flight that began before a purge, of its
//! answer or of all, stores nothing.

use std::sync::Arc;

use super::{Next, Stage, Verdict};
use crate::answer::{Answer, Kept, Source};
use crate::call::Call;
use crate::route::Route;
use crate::shared::Generation;
use crate::stage::cache::Answers;

/// The stage.
#[derive(Clone)]
pub(crate) struct Keep {
    route: Arc<Route>,
    answers: Answers,
    generation: Generation,
}

impl Keep {
    pub(crate) fn new(route: &Arc<Route>, answers: Answers, generation: Generation) -> Option<Self> {
        route.cache?;
        Some(Self { route: Arc::clone(route), answers, generation })
    }

    async fn keep(&self, call: &Call, answer: Answer) -> Answer {
        let lifetime = self.route.cache.and_then(|cache| cache.lifetime(answer.kept.outcome));
        let purged = call.era != self.generation.era();
        if lifetime.is_none() || !answer.kept.shareable || answer.kept.fresh_until <= answer.kept.stored || purged {
            return answer;
        }
        let kept = Arc::clone(&answer.kept);
        let stored = self.answers.store.keep(&call.journey, &self.route.name, &call.key, kept.to_stored()).await;
        if let Err(error) = stored {
            tracing::warn!(route = self.route.name, %error, "a paid answer could not be stored; it is kept in memory");
        }
        if !self.answers.remember(call, &self.generation, &kept) {
            // Purged while it was being written: it may have come after what the purge took out.
            let _ = self.answers.store.forget(&self.route.name, &call.key).await;
            return answer;
        }
        Answer { source: Source::Upstream { stored: true }, ..answer }
    }
}

impl Stage for Keep {
    type In = Call;
    type Out = Call;

    async fn handle(&self, call: Call, next: impl Next<Call>) -> Verdict {
        if call.volatile {
            return next.run(call).await;
        }
        if !call.directives.refresh {
            let now = self.answers.clock.now();
            let kept: Option<Arc<Kept>> = self.answers.find(&call, &self.generation, now).await.ok().flatten();
            if let Some(kept) = kept.filter(|kept| kept.is_fresh(now)) {
                return Ok(Answer { kept, source: Source::Cache { stale: false } });
            }
        }
        let answer = next.run(call.clone()).await?;
        Ok(self.keep(&call, answer).await)
    }
}
