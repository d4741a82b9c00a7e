//! Single flight: one question in the air is asked once, for however many want it.
//!
//! A flight is a task of its own with its own deadline ([`crate::flight`]); nobody's hang-up cancels it. Joiners wait as long as
//! each of them wants to, and share its answer or its failure: nobody flies again for a failure that has ended. An answer the
//! provider marked for one asker goes to that asker alone; the others, and those who come while the mark lasts, fly side by
//! side. A caller whose patience ends gets `upstream_timeout` with the rest of the flight's time as `Retry-After`.

use std::sync::Arc;
use std::time::Duration;

use super::{Next, Stage, Verdict};
use crate::answer::{Answer, Source};
use crate::call::Call;
use crate::clock::Clock;
use crate::flight::{Flights, Seat};
use crate::refusal::{Code, Refusal};
use crate::route::Route;

/// The stage.
#[derive(Clone)]
pub(crate) struct SingleFlight {
    route: Arc<Route>,
    flights: Flights,
    clock: Clock,
    /// A flight, with the time it may wait for another instance's before.
    longest: Duration,
}

impl SingleFlight {
    pub(crate) fn new(route: &Arc<Route>, flights: Flights, clock: Clock) -> Self {
        let longest = route.provider.flight.saturating_add(route.lease.wait);
        Self { route: Arc::clone(route), flights, clock, longest }
    }

    /// Waits for a flight as long as this caller wants to.
    async fn wait(&self, call: &Call, seat: Seat) -> Verdict {
        let remaining = call.remaining(self.clock.ticks());
        let began = seat.began;
        match tokio::time::timeout(remaining, seat.landed()).await {
            Ok(landed) => landed,
            Err(_) => {
                let rest = self.route.provider.flight.saturating_sub(self.clock.ticks().since(began));
                Err(stopped_waiting(rest))
            }
        }
    }

    /// A flight for this call alone.
    async fn alone(&self, call: Call, next: &impl Next<Call>) -> Verdict {
        let flight = fly(next.clone(), call.clone().alone());
        let seat = self.flights.alone(self.route.provider.flight, flight)?;
        self.wait(&call, seat).await
    }
}

impl Stage for SingleFlight {
    type In = Call;
    type Out = Call;

    async fn handle(&self, call: Call, next: &impl Next<Call>) -> Verdict {
        // Whoever is above, and whatever is kept there: a caller who wants only what is stored does not fly.
        if call.directives.only_if_cached {
            return Err(Refusal::new(Code::NotCached, "no stored answer to this question"));
        }
        if !self.route.coalesce || self.flights.is_unshareable(&call.key) {
            return self.alone(call, next).await;
        }
        loop {
            let flight = || fly(next.clone(), call.clone());
            let (first, seat) = self.flights.join(call.key, self.longest, flight)?;
            match self.wait(&call, seat).await {
                // What the starter may not pay for another caller may: the next to join becomes the one who is charged.
                Err(refusal) if !first && refusal.its_askers.is_some_and(|caller| caller != call.caller.id) => {}
                Ok(answer) if !first && !answer.kept.shareable => return self.alone(call, next).await,
                Ok(answer) if !first => return Ok(Answer { source: joined(answer.source), ..answer }),
                own => {
                    if !first {
                        call.journey.notes.shared_a_flight();
                    }
                    return own;
                }
            }
        }
    }
}

/// The rest of the path, taken along.
async fn fly(next: impl Next<Call>, call: Call) -> Verdict {
    next.run(call).await
}

/// The end of a caller's patience; the flight lands within `rest`.
pub(crate) fn stopped_waiting(rest: Duration) -> Refusal {
    Refusal::new(Code::UpstreamTimeout, "you stopped waiting; the call goes on").after(rest)
}

/// A joiner did not pay. What the flight found already stored is a hit for everyone.
fn joined(source: Source) -> Source {
    match source {
        Source::Upstream { stored } => Source::Joined { stored },
        other => other,
    }
}
