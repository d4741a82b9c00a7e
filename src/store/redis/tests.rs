use std::sync::Arc;

use self::server::Server;
use super::super::conformance::shared::Shared;
use super::super::conformance::{START, World, conformance, shared_conformance};
use super::*;

mod copies;
mod counting;
mod epochs;
mod follow;
mod histories;
mod intentions;
mod model;
mod money;
mod mortal;
mod orphans;
mod outage;
mod proxy;
mod records;
mod server;
mod tidy;
mod tls;
mod writes;

/// Ample for a machine that compiles beside the tests.
const TIMEOUT: Duration = Duration::from_secs(10);

type Events = mpsc::UnboundedReceiver<Event>;

fn options(server: &Server) -> Options {
    Options { url: server.url(), prefix: "t".to_owned(), timeout: TIMEOUT, ca: None, writes: false }
}

/// A store on this clock, which is connected.
async fn on_clock(server: &Server, clock: &Clock) -> (Arc<RedisStore>, Events) {
    let (store, events) = RedisStore::open_on(Time::Caller, options(server), clock.clone()).unwrap();
    assert!(store.connected(TIMEOUT).await, "{:?}", store.health());
    (store, events)
}

fn world() -> World {
    let (server, clock) = (Server::start(), Clock::manual(Timestamp(START)));
    let runtime = tokio::runtime::Handle::current();
    let (store, _) = tokio::task::block_in_place(|| runtime.block_on(on_clock(&server, &clock)));
    World { store, clock, home: Box::new(server) }
}

fn shared() -> Shared {
    let (server, clock) = (Server::start(), Clock::manual(Timestamp(START)));
    let runtime = tokio::runtime::Handle::current();
    let open = || tokio::task::block_in_place(|| runtime.block_on(on_clock(&server, &clock)));
    let ((one, _), (other, events)) = (open(), open());
    Shared { one, other, events, clock, home: Box::new(server) }
}

conformance!(world);
shared_conformance!(shared);
