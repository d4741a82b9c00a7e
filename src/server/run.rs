//! Binds the listeners, runs them, and ends everything in order.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::edge::{self, Drain, Limits};
use super::gateway::{Gateway, StartError};
use super::listener;
use crate::admin;
use crate::clock::Clock;
use crate::config::Config;
use crate::hooks::Hooks;

/// A gateway with its listeners.
pub struct Running {
    /// Where the gateway listens.
    pub gateway: Vec<SocketAddr>,
    /// Where the admin API listens.
    pub admin: SocketAddr,
    /// Where the hooks listen, if there are any.
    pub hooks: Option<SocketAddr>,
    gate: Gateway,
    edge: Drain,
    admin_edge: Drain,
    servers: TaskTracker,
    admin_servers: TaskTracker,
    limit: Duration,
}

/// Where a reload reads from.
#[derive(Clone, Debug)]
pub struct Source(Option<Arc<PathBuf>>);

impl Source {
    /// A file, read anew each time.
    #[must_use]
    pub fn file(path: &Path) -> Self {
        Self(Some(Arc::new(path.to_owned())))
    }

    /// A config that is built in: there is nothing to reload.
    #[must_use]
    pub fn built_in() -> Self {
        Self(None)
    }

    fn load(&self) -> Option<Result<Config, crate::config::fault::Faults>> {
        Some(Config::load(self.0.as_deref()?))
    }
}

/// Opens the store, binds every listener, and serves.
pub async fn start(config: Config, clock: Clock, source: Source) -> anyhow::Result<Running> {
    let server = config.server.clone();
    let hooks_address = hooks_at(&config);
    let admin_address = config.admin.listen;
    let gate = Gateway::start(config, clock).await?;
    let limits = Limits {
        head_timeout: server.head_timeout,
        idle_timeout: server.idle_timeout,
        max_head: server.max_head,
        max_connections: server.max_connections,
    };
    let (edge, admin_edge) = (Drain::new(), Drain::new());
    let (servers, admin_servers) = (TaskTracker::new(), TaskTracker::new());
    let mut listeners = Vec::new();
    for address in &server.listen {
        listeners.push(bind(*address)?);
    }
    let admin_listener = bind(admin_address)?;
    let hooks_listener = hooks_address.map(bind).transpose()?;
    let gateway = listeners.iter().map(TcpListener::local_addr).collect::<Result<Vec<_>, _>>()?;
    let admin = admin_listener.local_addr()?;
    let hooks = hooks_listener.as_ref().map(TcpListener::local_addr).transpose()?;
    for listener in listeners {
        servers.spawn(edge::serve(listener, limits, gate.clone(), edge.clone()));
    }
    let few = Limits { max_connections: limits.max_connections.min(256), ..limits };
    if let Some(listener) = hooks_listener {
        // They end as the gateway's do: what they begin, the store is still there for.
        servers.spawn(edge::serve(listener, few, Hooks::new(gate.clone()), edge.clone()));
    }
    let api = admin::Api::new(gate.clone(), source);
    admin_servers.spawn(edge::serve(admin_listener, few, api, admin_edge.clone()));
    servers.close();
    admin_servers.close();
    Ok(Running { gateway, admin, hooks, gate, edge, admin_edge, servers, admin_servers, limit: server.drain })
}

fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    listener::bind(address).with_context(|| format!("cannot listen on {address}"))
}

impl Running {
    /// Reads the config anew and puts it in force: all of it or, with a fault, nothing.
    pub async fn reload(&self, source: &Source) {
        let _ = reload(&self.gate, source).await;
    }

    /// Ends in order: readiness says no, no connection is kept, work in flight ends, the store is closed; all of it together
    /// within the drain limit.
    pub async fn stop(self) {
        let began = Instant::now();
        let left = || self.limit.saturating_sub(began.elapsed());
        self.gate.drain();
        self.edge.start();
        self.admin_edge.start();
        let tasks = &self.gate.shared().tasks;
        tasks.close();
        // While something is in flight, newcomers are still told that we are going.
        let _ = tokio::time::timeout(left(), tasks.wait()).await;
        self.edge.stop(left());
        self.servers.wait().await;
        self.gate.finish(left()).await;
        self.admin_edge.stop(Duration::from_millis(100));
        self.admin_servers.wait().await;
    }

    /// A handle that ends the store at once, whatever is in flight: for the second signal.
    #[must_use]
    pub fn emergency(&self) -> Emergency {
        Emergency(self.gate.clone())
    }
}

/// Ends the store without waiting for anybody.
pub struct Emergency(Gateway);

impl Emergency {
    /// What the store has accepted is kept.
    pub async fn stop(&self) {
        self.0.finish(Duration::ZERO).await;
    }
}

/// Why a reload was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReloadError {
    #[error("this config is built in")]
    BuiltIn,
    #[error("{0}")]
    Refused(#[from] StartError),
}

/// Puts the file's config in force, or leaves everything as it is and says why.
pub(crate) async fn reload(gate: &Gateway, source: &Source) -> Result<u64, ReloadError> {
    let _turn = gate.turn_to_reload().await;
    let config = source.load().ok_or(ReloadError::BuiltIn)?;
    let result = match config {
        Ok(config) => {
            warn_of_fixed(&gate.snapshot().config, &config);
            gate.reload(config).await
        }
        Err(faults) => Err(faults.into()),
    };
    gate.shared().metrics.reloaded(result.is_ok());
    match result {
        Ok(generation) => {
            tracing::info!(generation, "the config was reloaded");
            gate.forget_refused();
            Ok(generation)
        }
        Err(error) => {
            tracing::error!("the new config was refused, the old one stays in force:\n{error}");
            gate.remember_refused(error.to_string());
            Err(error.into())
        }
    }
}

fn hooks_at(config: &Config) -> Option<SocketAddr> {
    config.hooks.as_ref().map(|hooks| hooks.listen)
}

/// What a reload cannot change is said, not silently ignored.
fn warn_of_fixed(old: &Config, new: &Config) {
    let fixed = [
        ("server.listen", old.server.listen != new.server.listen),
        ("admin.listen", old.admin.listen != new.admin.listen),
        ("hooks.listen", hooks_at(old) != hooks_at(new)),
        ("server.head_timeout", old.server.head_timeout != new.server.head_timeout),
        ("server.idle_timeout", old.server.idle_timeout != new.server.idle_timeout),
        ("server.max_head", old.server.max_head != new.server.max_head),
        ("server.max_connections", old.server.max_connections != new.server.max_connections),
        ("server.drain", old.server.drain != new.server.drain),
        ("store", old.store != new.store),
    ];
    for (key, _) in fixed.iter().filter(|(_, changed)| *changed) {
        tracing::warn!(key, "this key takes effect at the next start");
    }
}
