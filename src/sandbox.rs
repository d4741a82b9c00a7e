//! The metered stand-in for the providers: for demos, tests and load runs.
//!
//! One listener speaks the wire formats of all [providers](provider) on their own paths, over a small real
//! [`gazetteer`]. It checks that a key was sent, counts every call and what it would have cost ([`meter`]), and goes
//! wrong in the ways it is told to ([`fault`]). Any key that is not blank is good.
//!
//! `GET /meter`, `DELETE /meter` and `GET`, `POST`, `DELETE /faults` are its own paths; they count nowhere and never fail.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::clock::Clock;

mod answer;
mod asked;
mod control;
mod deliver;
pub mod fault;
mod front;
pub mod gazetteer;
mod listener;
pub mod meter;
pub mod provider;

pub use fault::Fault;
pub use fault::board::Board;
pub use fault::script::{Script, ScriptError};
pub use meter::{Bill, Meter};

use front::Front;

/// How to start a sandbox.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Faults from the start.
    pub script: Option<Script>,
}

/// A sandbox that runs. Dropping it stops it.
#[derive(Debug)]
pub struct Sandbox {
    addr: SocketAddr,
    front: Arc<Front>,
    task: JoinHandle<()>,
    stop: DropGuard,
}

impl Sandbox {
    /// Starts to listen; when this returns, calls are answered.
    pub fn start(options: Options) -> io::Result<Self> {
        let listener = crate::server::listener::bind(options.listen)?;
        let (addr, stop) = (listener.local_addr()?, CancellationToken::new());
        let board = Board::default();
        board.set(options.script.unwrap_or_default().faults);
        let front = Arc::new(Front::new(board, Clock::system()));
        let task = tokio::spawn(listener::accept(listener, Arc::clone(&front), stop.clone()));
        Ok(Self { addr, front, task, stop: stop.drop_guard() })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its meter.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.front.meter)
    }

    /// Its faults.
    pub fn faults(&self) -> Arc<Board> {
        Arc::clone(&self.front.board)
    }

    /// Stops listening and drops every connection, answered or not.
    pub async fn stop(self) {
        drop(self.stop);
        let _ = self.task.await;
    }
}

/// `tollgate sandbox`: runs until SIGINT or SIGTERM.
///
/// A script that cannot be used is a [`ScriptError`].
pub async fn run(listen: SocketAddr, script: Option<&Path>) -> anyhow::Result<()> {
    let script = script.map(Script::load).transpose()?;
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let sandbox = Sandbox::start(Options { listen, script }).with_context(|| format!("cannot listen on {listen}"))?;
    println!("listening role=sandbox addr={}", sandbox.addr());
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    sandbox.stop().await;
    Ok(())
}

#[cfg(test)]
mod tests;
