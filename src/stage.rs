//! One layer of the request path, and the adapter that makes it a `tower::Layer`.
//!
//! A stage is one file: what it protects and when it refuses, its config, its state, one `async fn` with early returns, its
//! unit tests. The input type says what is already known (`Request` → `Ask` → `Call` → `Attempt`), so a stage in the wrong
//! place does not compile.
//!
//! No stage uses back-pressure: readiness is always immediate, and a refusal is an answer.

use std::future::Future;
use std::sync::Arc;

use tower::Layer;

use crate::answer::Answer;
use crate::refusal::Refusal;

pub(crate) mod authenticate;
pub(crate) mod breaker;
pub(crate) mod budget;
pub(crate) mod cache;
pub(crate) mod curated;
pub(crate) mod idempotency;
pub(crate) mod keep;
pub(crate) mod kill_switch;
pub(crate) mod lease;
pub(crate) mod limits;
pub(crate) mod lockout;
pub(crate) mod retry;
pub(crate) mod single_flight;
pub(crate) mod validate;

/// What every layer ends in.
pub(crate) type Verdict = Result<Answer, Refusal>;

/// One layer: takes what is known so far, refuses, answers, or hands on what it has learnt.
pub(crate) trait Stage: Send + Sync + 'static {
    type In: Send + 'static;
    type Out: Send + 'static;

    fn handle(&self, input: Self::In, next: &impl Next<Self::Out>) -> impl Future<Output = Verdict> + Send;
}

/// The rest of the path. It is lent, so that a hit counts no references; a flight, which outlives whoever began it, takes a clone.
pub(crate) trait Next<R>: Clone + Send + Sync + 'static {
    fn run(&self, input: R) -> impl Future<Output = Verdict> + Send;
}

/// Makes a stage a layer.
pub(crate) fn stage<T: Stage>(stage: T) -> StageLayer<T> {
    StageLayer(stage)
}

pub(crate) struct StageLayer<T>(T);

impl<T: Clone, N> Layer<N> for StageLayer<T> {
    type Service = Staged<T, N>;

    fn layer(&self, next: N) -> Self::Service {
        Staged(Arc::new((self.0.clone(), next)))
    }
}

/// A stage with everything below it.
pub(crate) struct Staged<T, N>(Arc<(T, N)>);

impl<T, N> Clone for Staged<T, N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Stage, N: Next<T::Out>> Next<T::In> for Staged<T, N> {
    fn run(&self, input: T::In) -> impl Future<Output = Verdict> + Send {
        let (stage, next) = &*self.0;
        stage.handle(input, next)
    }
}

/// A stage that may be absent hands everything on.
impl<T: Stage<In = R, Out = R>, R: Send + 'static> Stage for Option<T> {
    type In = R;
    type Out = R;

    async fn handle(&self, input: R, next: &impl Next<R>) -> Verdict {
        match self {
            Some(stage) => stage.handle(input, next).await,
            None => next.run(input).await,
        }
    }
}
