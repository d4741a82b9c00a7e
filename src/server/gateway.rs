//! One gateway: the config in force, what outlives it, and the way of a request through both.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use http::{Response, header};
use hyper::body::Incoming;
use tokio_util::task::AbortOnDropHandle;

use super::edge::{Body as ResponseBody, Handler};
use super::respond;
use super::router::{Entry, Match, Router};
use crate::alerts::Webhook;
use crate::call::{Body, Journey, Request};
use crate::clock::Clock;
use crate::config::fault::Faults;
use crate::config::{Config, Redis, StoreUrl};
use crate::hooks;
use crate::money::savings::Book;
use crate::refusal::{Code, Refusal};
use crate::shared::Shared;
use crate::stack::{self, Parts};
use crate::stage::Verdict;
use crate::stage::authenticate::Callers;
use crate::stage::authenticate::jwt::Jwt;
use crate::store::StoreError;
use crate::store::event::Event;
use crate::store::handle::{Backend, Patience, StoreHandle, Whose};
use crate::store::memory::{Bounds, MemoryStore};
use crate::store::redis::{Options, RedisStore};
use crate::store::sqlite::SqliteStore;
use crate::telemetry::{Metrics, log};
use crate::upstream::client::Client;

/// A running gateway. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Gateway(Arc<Inner>);

struct Inner {
    snapshot: ArcSwap<Snapshot>,
    shared: Arc<Shared>,
    draining: AtomicBool,
    generation: AtomicU64,
    /// Held from reading a config to putting it in force: of two reloads at a time the later read wins.
    reloading: tokio::sync::Mutex<()>,
    /// What the last refused reload said, until one is accepted.
    refused: ArcSwapOption<String>,
    /// Hears what other instances do, as long as there is a gateway.
    _following: Option<AbortOnDropHandle<()>>,
    /// Writes what was saved, likewise.
    _crediting: AbortOnDropHandle<()>,
}

/// One config with everything made of it. A request sees one from beginning to end.
pub(crate) struct Snapshot {
    pub(crate) config: Config,
    pub(crate) router: Router,
    pub(crate) generation: u64,
    pub(crate) google_budget: Option<Arc<hooks::Hook>>,
    jwt: Option<Arc<Jwt>>,
    webhook: Option<Arc<Webhook>>,
}

/// Why a gateway could not begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a client for HTTP could not be made: {0}")]
    Client(#[from] reqwest::Error),
    #[error("the token keys could not be read: {0}")]
    Keys(String),
    #[error(transparent)]
    Config(#[from] Faults),
}

impl Gateway {
    /// Opens the store, reads the switches, builds every route.
    pub(crate) async fn start(config: Config, clock: Clock) -> Result<Self, StartError> {
        // Whoever chose another provider of cryptography for this process keeps it.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let metrics = Metrics::new();
        warn_of_forgotten_writes(&config);
        let (backend, events) = open(&config, &clock)?;
        let patience = Patience { one_call: config.store.timeout, one_request: config.store.patience };
        let store = StoreHandle::new(backend, patience, config.store.instances, clock.clone(), Arc::clone(&metrics));
        let memory = crate::stage::cache::memory(config.store.memory);
        let shared = Shared::new(clock, metrics, store, memory);
        shared.read_switches().await?;
        let following = events.map(|events| AbortOnDropHandle::new(tokio::spawn(Arc::clone(&shared).follow(events))));
        if following.is_some() {
            wait_for_store(&shared).await;
        }
        let crediting = AbortOnDropHandle::new(tokio::spawn(credit(Arc::clone(&shared))));
        let snapshot = build(config, &shared, 1, None).await?;
        shared.alerts.aim(snapshot.webhook.clone());
        let snapshot = ArcSwap::from_pointee(snapshot);
        Ok(Self(Arc::new(Inner {
            snapshot,
            shared,
            draining: AtomicBool::new(false),
            generation: AtomicU64::new(1),
            reloading: tokio::sync::Mutex::default(),
            refused: ArcSwapOption::empty(),
            _following: following,
            _crediting: crediting,
        })))
    }

    /// Waits until no other reload is under way.
    pub(crate) async fn turn_to_reload(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.reloading.lock().await
    }

    /// Puts another config in force: all of it, or nothing. Buckets, breakers, switches and answers stay.
    pub(crate) async fn reload(&self, config: Config) -> Result<u64, StartError> {
        let generation = self.0.generation.load(Ordering::Acquire) + 1;
        let snapshot = build(config, &self.0.shared, generation, Some(&*self.snapshot())).await?;
        self.0.shared.alerts.aim(snapshot.webhook.clone());
        self.0.snapshot.store(Arc::new(snapshot));
        self.0.generation.store(generation, Ordering::Release);
        Ok(generation)
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.0.snapshot.load_full()
    }

    pub(crate) fn remember_refused(&self, why: String) {
        self.0.refused.store(Some(Arc::new(why)));
    }

    pub(crate) fn forget_refused(&self) {
        self.0.refused.store(None);
    }

    pub(crate) fn last_refused(&self) -> Option<Arc<String>> {
        self.0.refused.load_full()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// From now on readiness says no.
    pub(crate) fn drain(&self) {
        self.0.draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::Acquire)
    }

    /// Waits for flights and settlements, at most `within`, then ends the store in order.
    pub(crate) async fn finish(&self, within: Duration) {
        let tasks = &self.0.shared.tasks;
        tasks.close();
        if tokio::time::timeout(within, tasks.wait()).await.is_err() {
            tracing::warn!(flights = tasks.len(), "the drain ended with calls in flight");
        }
        let shared = &self.0.shared;
        if let Err(error) = shared.tally.flush(&shared.store, &shared.clock).await {
            tracing::warn!(%error, "the last credits could not be written");
        }
        shared.store.close().await;
    }
}

impl Handler for Gateway {
    async fn handle(&self, request: http::Request<Incoming>, peer: SocketAddr) -> Response<ResponseBody> {
        let shared = &*self.0.shared;
        let (head, body) = request.into_parts();
        let journey = Journey::new(respond::request_id(&head.headers), shared.clock.ticks());
        let snapshot = self.0.snapshot.load();
        let Match { entry, path } = match snapshot.router.find(&head.method, &head.uri) {
            Ok(found) => found,
            Err(none) => return nowhere(&none.refusal, none.allow, &journey, &head.method, shared),
        };
        let (entry, method) = (Arc::clone(entry), head.method.clone());
        drop(snapshot);
        let peer = peer.ip().to_canonical();
        let request = Request { head, body: Body::Incoming(body), peer, path, journey: Arc::clone(&journey) };
        let verdict = if self.is_draining() { Err(shutting_down()) } else { entry.path.enter(Box::new(request)).await };
        conclude(&entry, verdict, &journey, &method, shared)
    }
}

fn shutting_down() -> Refusal {
    Refusal::new(Code::ShuttingDown, "the gateway is shutting down").after(respond::TRY_SUCCESSOR).closing()
}

/// The last step: shape, response, counters, one log line.
fn conclude(
    entry: &Entry,
    verdict: Verdict,
    journey: &Journey,
    method: &http::Method,
    shared: &Shared,
) -> Response<ResponseBody> {
    let route = &*entry.route;
    if let Some((cause, amount)) = entry.book.enter(&verdict, journey, shared) {
        entry.metrics.credit(cause, amount);
    }
    let verdict = verdict.and_then(|answer| respond::judge(route, answer));
    let took = shared.clock.ticks().since(journey.started);
    let line = |status| log::Line { route: &route.name, method, status, took, journey };
    match verdict {
        Ok(answer) => {
            entry.metrics.answered(answer.kept.outcome, answer.source, took);
            let response = respond::answer(route, &answer, journey);
            if log::wanted() {
                line(response.status().as_u16()).answered(&answer);
            }
            response
        }
        Err(refusal) => {
            entry.metrics.refused(refusal.code, took);
            let response = respond::refusal(Some(route), &refusal, journey);
            if log::wanted() {
                line(response.status().as_u16()).refused(&refusal);
            }
            response
        }
    }
}

/// A request that belongs to no route.
fn nowhere(
    refusal: &Refusal,
    allow: Option<String>,
    journey: &Journey,
    method: &http::Method,
    shared: &Shared,
) -> Response<ResponseBody> {
    shared.metrics.nowhere(refusal.code);
    let mut response = respond::refusal(None, refusal, journey);
    if let Some(allow) = allow.and_then(|allow| allow.parse().ok()) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    if log::wanted() {
        let took = shared.clock.ticks().since(journey.started);
        log::Line { route: "-", method, status: response.status().as_u16(), took, journey }.refused(refusal);
    }
    response
}

/// Writes what was saved once a second. What fails is tried again.
async fn credit(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let _ = shared.tally.flush(&shared.store, &shared.clock).await;
    }
}

type Events = tokio::sync::mpsc::UnboundedReceiver<Event>;

/// Opens the store; a shared one tells what other instances do.
fn open(config: &Config, clock: &Clock) -> Result<(Backend, Option<Events>), StoreError> {
    let store = &config.store;
    let memory = || Arc::new(MemoryStore::new(clock.clone(), Bounds::default()));
    Ok(match &store.url {
        StoreUrl::Memory => {
            let own = memory();
            (Backend::new(own.clone(), &own, Whose::Own(own.clone())), None)
        }
        StoreUrl::Sqlite(path) => {
            let file = SqliteStore::open(std::path::Path::new(path), clock.clone(), store.timeout)?;
            let own = memory();
            (Backend::new(own.clone(), &file, Whose::Own(own)), None)
        }
        StoreUrl::Redis(Redis { url, ca }) => {
            let (url, prefix, ca) = (url.clone(), store.prefix.clone(), ca.clone());
            let writes = has_writes(config);
            let options = Options { url, prefix, timeout: store.timeout, ca, writes };
            let (redis, events) = RedisStore::open(options, clock.clone())?;
            (Backend::new(redis.clone(), &redis, Whose::Shared(redis.clone())), Some(events))
        }
    })
}

fn has_writes(config: &Config) -> bool {
    config.routes.iter().any(|route| route.writes.is_some())
}

/// What a shared store may lose is said when it is connected to.
fn warn_of_forgotten_writes(config: &Config) {
    if matches!(config.store.url, StoreUrl::Memory) && has_writes(config) {
        tracing::warn!(
            "no persistence with write routes (store.url is memory:): after a restart nobody knows what was sent, and a paid write \
             may be sent twice. Use sqlite: or redis:"
        );
    }
}

/// A shared store that is there answers at once. One that is not is no reason not to begin: until it is, requests are refused, since
/// nobody knows what is switched off.
async fn wait_for_store(shared: &Shared) {
    let known = async {
        while !shared.switches.is_known() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(Duration::from_secs(1), known).await.is_err() {
        tracing::warn!("the store has not answered yet; until it does, requests are refused");
    }
}

async fn build(config: Config, shared: &Arc<Shared>, generation: u64, before: Option<&Snapshot>) -> Result<Snapshot, StartError> {
    let known = before.and_then(|before| before.google_budget.as_deref());
    let google_budget = hooks::build(config.hooks.as_ref(), shared, known).map_err(StartError::Keys)?;
    let jwt = match &config.callers.jwt {
        Some(jwt) => {
            let before = before.and_then(|before| before.jwt.as_deref());
            let started = Jwt::start(jwt.clone(), shared.clock.clone(), shared.tasks.clone(), before).await;
            Some(started.map_err(StartError::Keys)?)
        }
        None => None,
    };
    let callers = Arc::new(Callers::new(&config.callers, jwt.clone(), config.server.trusted_proxies.clone()));
    let mut entries = Vec::new();
    let mut clients: std::collections::HashMap<String, Client> = std::collections::HashMap::new();
    for route in &config.routes {
        let client = match clients.get(&route.provider.name) {
            Some(client) => client.clone(),
            None => Client::new(&route.provider, shared.clock.clone())?,
        };
        clients.insert(route.provider.name.clone(), client.clone());
        let generation = shared.read_generation(&route.name).await?;
        let parts = Parts {
            shared,
            callers: &callers,
            client,
            generation,
            body_timeout: config.server.body_timeout,
            routes: &config.routes,
        };
        let metrics = shared.metrics.route(&route.name);
        let stages = stack::Stages { route, parts: &parts };
        let (validate, authenticate) = (stages.validate(), stages.authenticate());
        entries.push(Entry {
            path: stack::route(route, &parts),
            route: Arc::clone(route),
            metrics,
            book: Book::new(route),
            validate,
            authenticate,
        });
    }
    let webhook = config.alerts.as_ref().map(Webhook::new).transpose()?.map(Arc::new);
    Ok(Snapshot { config, router: Router::new(entries), generation, google_budget, jwt, webhook })
}
