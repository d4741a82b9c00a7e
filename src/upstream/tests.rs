use std::future::Future as _;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use super::*;
use crate::call::{Call, Caller, Directives, Facts, Question, RequestId};
use crate::config::Config;
use crate::shared::Generation;
use crate::store::OpId;
use crate::store::handle::{Backend, Patience, StoreHandle, Whose};
use crate::store::memory::{Bounds, MemoryStore};

/// A provider that takes connections and says nothing.
async fn silent() -> (TcpListener, Upstream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = format!(
        "[callers.keys.web]\nsha256 = \"{}\"\n\
         [providers.p]\nbase_url = \"http://{}\"\nprice = \"0.005 USD\"\nbilled = [\"answered\"]\n\
         [routes.r]\nprovider = \"p\"\nexpose = \"GET /r\"\nbudget = \"none\"\n",
        "0".repeat(64),
        listener.local_addr().unwrap()
    );
    let config = Config::parse("a test", &text).unwrap_or_else(|faults| panic!("{faults}"));
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let clock = Clock::manual(Timestamp(1));
    let client = Client::new(&config.routes[0].provider, clock.clone()).unwrap();
    let alerts = Alerts::silent(&clock);
    let upstream = Upstream::new(&config.routes[0], client, clock, Metrics::new(), alerts);
    (listener, upstream)
}

fn attempt() -> (Attempt, Arc<Journey>) {
    let journey = Journey::new(RequestId::Ours(uuid::Uuid::nil()), Timestamp(1));
    let call = Call::new(Facts {
        question: Question::default(),
        key: [1; 32],
        caller: Caller::new("key", "web"),
        directives: Directives::default(),
        wait: Duration::from_secs(1),
        journey: Arc::clone(&journey),
        volatile: false,
        alone: false,
        idempotency_key: None,
        write: None,
        era: Generation::default().era(),
    });
    (Attempt { call, toll: Some(toll()) }, journey)
}

/// Half a cent, set aside in a store of its own.
fn toll() -> Toll {
    let clock = Clock::manual(Timestamp(1));
    let memory = Arc::new(MemoryStore::new(clock.clone(), Bounds::default()));
    let backend = Backend::new(memory.clone(), &memory, Whose::Own(memory.clone()));
    let patience = Patience { one_call: Duration::from_secs(1), one_request: Duration::from_secs(1) };
    let store = StoreHandle::new(backend, patience, 1, clock, Metrics::new());
    let amount = Money { micros: 5_000, currency: Money::parse("1 USD").unwrap().currency };
    Toll::new(OpId::random(), amount, None, store, TaskTracker::new())
}

fn counted(upstream: &Upstream) -> [bool; 2] {
    let text = upstream.0.metrics.render();
    [
        "upstream_calls_total{provider=\"p\",outcome=\"unknown\",billed=\"yes\"} 1",
        "spend_micros_total{route=\"r\",currency=\"USD\"} 5000",
    ]
    .map(|line| text.contains(line))
}

#[tokio::test]
async fn an_attempt_that_is_cut_off_is_unknown_and_paid_for() {
    let (listener, upstream) = silent().await;
    let (attempt, journey) = attempt();
    assert_eq!((counted(&upstream), journey.attempts()), ([false, false], 0));
    tokio::select! {
        _ = upstream.run(attempt) => panic!("nobody answers"),
        // It is on the wire; now its flight ends.
        _ = listener.accept() => {}
    }
    assert_eq!((counted(&upstream), journey.attempts()), ([true, true], 1));
}

#[tokio::test]
async fn an_attempt_lost_to_a_panic_is_unknown_and_paid_for() {
    let (_listener, upstream) = silent().await;
    let (attempt, journey) = attempt();
    let lost = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let mut run = pin!(upstream.run(attempt));
        assert!(matches!(run.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
        panic!("above it");
    }));
    assert!(lost.is_err());
    assert_eq!((counted(&upstream), journey.attempts()), ([true, true], 1));
}
