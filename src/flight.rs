//! The detached attempt to get an answer: a tracked task with its own deadline, which owns attempts, settlement and the cache
//! write. Whoever asked first may leave; the flight lands all the same.
//!
//! The seat map is a plain map under a lock that is never held across an await. A flight gives up its seat before it tells the
//! result, so whoever comes later starts anew and looks into the cache first. A panic in a flight wakes everyone with an error.

use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::clock::{Clock, Timestamp};
use crate::refusal::{Code, Refusal};
use crate::stage::Verdict;
use crate::store::Digest;
use crate::telemetry::Metrics;

/// At most this many flights are in the air; the next one is refused (`busy`), not queued.
const MOST: i64 = 10_000;

/// Attempts end within a flight's deadline by themselves: `retry` begins none that could not. What they brought home is paid
/// for and still has to be stored, within the store's own deadline; only this much later is a flight given up as a whole.
const SETTLING: Duration = Duration::from_secs(10);

/// How long an answer marked for one asker keeps its question out of the seat map.
pub(crate) const UNSHAREABLE: Duration = Duration::from_secs(60);

/// What a flight brought home, once it has landed.
type Landing = Option<Verdict>;

/// A place on a flight.
pub(crate) struct Seat {
    result: watch::Receiver<Landing>,
    pub(crate) began: Timestamp,
}

impl Seat {
    /// Waits until the flight has landed.
    pub(crate) async fn landed(mut self) -> Verdict {
        match self.result.wait_for(Option::is_some).await {
            Ok(result) => result.clone().unwrap_or_else(|| Err(vanished())),
            Err(_) => Err(vanished()),
        }
    }
}

fn vanished() -> Refusal {
    Refusal::new(Code::Internal, "the call to the provider broke off")
}

/// All flights of one gateway. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Flights(Arc<Shared>);

struct Shared {
    seats: Mutex<HashMap<Digest, (watch::Receiver<Landing>, Timestamp)>>,
    unshareable: moka::sync::Cache<Digest, Timestamp>,
    tasks: TaskTracker,
    clock: Clock,
    metrics: Arc<Metrics>,
}

impl Flights {
    pub(crate) fn new(tasks: TaskTracker, clock: Clock, metrics: Arc<Metrics>) -> Self {
        let unshareable = moka::sync::Cache::new(10_000);
        Self(Arc::new(Shared { seats: Mutex::default(), unshareable, tasks, clock, metrics }))
    }

    /// Joins the flight for a key, or starts it; says whether it was started.
    pub(crate) fn join<F>(&self, key: Digest, deadline: Duration, fly: impl FnOnce() -> F) -> Result<(bool, Seat), Refusal>
    where
        F: Future<Output = Verdict> + Send + 'static,
    {
        let shared = &self.0;
        let mut seats = shared.seats.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((result, began)) = seats.get(&key) {
            return Ok((false, Seat { result: result.clone(), began: *began }));
        }
        let (landing, seat) = self.depart()?;
        seats.insert(key, (seat.result.clone(), seat.began));
        drop(seats);
        let strip = Strip { flights: self.clone(), key: Some(key), landing };
        shared.tasks.spawn(strip.fly(deadline, fly()));
        Ok((true, seat))
    }

    /// A flight nobody else may join.
    pub(crate) fn alone(&self, deadline: Duration, fly: impl Future<Output = Verdict> + Send + 'static) -> Result<Seat, Refusal> {
        let (landing, seat) = self.depart()?;
        let strip = Strip { flights: self.clone(), key: None, landing };
        self.0.tasks.spawn(strip.fly(deadline, fly));
        Ok(seat)
    }

    /// Whether a question is being asked.
    pub(crate) fn is_flying(&self, key: &Digest) -> bool {
        self.0.seats.lock().unwrap_or_else(PoisonError::into_inner).contains_key(key)
    }

    /// Whoever asks from now on does not join the flight for this key: its answer was purged.
    pub(crate) fn recall(&self, key: &Digest) {
        self.0.seats.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    fn depart(&self) -> Result<(watch::Sender<Landing>, Seat), Refusal> {
        if self.0.metrics.flights.get() >= MOST {
            return Err(Refusal::new(Code::Busy, "too many calls are in flight").after(Duration::from_secs(1)));
        }
        self.0.metrics.flights.inc();
        let (landing, result) = watch::channel(None);
        Ok((landing, Seat { result, began: self.0.clock.ticks() }))
    }

    /// Whether a question's last answer was for its asker alone.
    pub(crate) fn is_unshareable(&self, key: &Digest) -> bool {
        let shared = &self.0;
        // Almost always empty: do not pay for a look.
        shared.unshareable.entry_count() > 0 && shared.unshareable.get(key).is_some_and(|until| shared.clock.ticks() < until)
    }

    fn mark_unshareable(&self, key: Digest) {
        self.0.unshareable.insert(key, self.0.clock.ticks().after(UNSHAREABLE));
        self.0.unshareable.run_pending_tasks();
    }
}

/// The guard of a flight: gives the seat back and tells the result, however the flight ends.
struct Strip {
    flights: Flights,
    key: Option<Digest>,
    landing: watch::Sender<Landing>,
}

impl Strip {
    async fn fly(self, deadline: Duration, flight: impl Future<Output = Verdict> + Send) {
        let result = match tokio::time::timeout(deadline.saturating_add(SETTLING), AssertUnwindSafe(flight).catch_unwind()).await
        {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_)) => Err(Refusal::new(Code::Internal, "the call to the provider broke").because("a flight panicked")),
            Err(_) => Err(Refusal::new(Code::UpstreamTimeout, "the provider did not answer in time")),
        };
        self.land(result);
    }

    fn land(mut self, result: Verdict) {
        // Before the seat is free, so that nobody begins to wait for what is not to be shared.
        if let (Some(key), Ok(answer)) = (self.key, &result)
            && !answer.kept.shareable
        {
            self.flights.mark_unshareable(key);
        }
        self.give_back();
        self.landing.send_replace(Some(result));
    }

    fn give_back(&mut self) {
        let Some(key) = self.key.take() else { return };
        let mut seats = self.flights.0.seats.lock().unwrap_or_else(PoisonError::into_inner);
        // A flight that was recalled has no seat any more: what stands there is its successor's.
        if seats.get(&key).is_some_and(|(result, _)| result.same_channel(&self.landing.subscribe())) {
            seats.remove(&key);
        }
    }
}

impl Drop for Strip {
    fn drop(&mut self) {
        self.give_back();
        self.flights.0.metrics.flights.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{Answer, Kept, Outcome, Source};

    fn flights() -> Flights {
        Flights::new(TaskTracker::new(), Clock::manual(Timestamp(0)), Metrics::new())
    }

    fn answer() -> Answer {
        let kept = Kept::passing(http::StatusCode::OK, Outcome::Answered, "x".into(), Timestamp(0));
        Answer { kept: Arc::new(kept), source: Source::Upstream { stored: false } }
    }

    #[tokio::test]
    async fn one_flies_and_all_land() {
        let flights = flights();
        let (first, seat) = flights.join([1; 32], Duration::from_secs(5), || async { Ok(answer()) }).unwrap();
        let (second, other) = flights.join([1; 32], Duration::from_secs(5), || async { panic!("nobody flies twice") }).unwrap();
        assert!(first && !second);
        assert!(seat.landed().await.is_ok() && other.landed().await.is_ok());
        let (again, _) = flights.join([1; 32], Duration::from_secs(5), || async { Ok(answer()) }).unwrap();
        assert!(again, "a landed flight leaves no seat behind");
    }

    #[tokio::test]
    async fn f_02_a_panic_wakes_everyone_and_frees_the_seat() {
        let flights = flights();
        let (_, seat) = flights.join([2; 32], Duration::from_secs(5), || async { panic!("on the way") }).unwrap();
        let (_, other) = flights.join([2; 32], Duration::from_secs(5), || async { Ok(answer()) }).unwrap();
        assert_eq!(seat.landed().await.unwrap_err().code, Code::Internal);
        assert!(other.landed().await.is_err());
        let (first, seat) = flights.join([2; 32], Duration::from_secs(5), || async { Ok(answer()) }).unwrap();
        assert!(first && seat.landed().await.is_ok());
        assert_eq!(flights.0.metrics.flights.get(), 0);
    }
}
