//! `tollgate serve`.

use std::path::Path;
use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::clock::Clock;
use crate::config::Config;
use crate::server::{self, Emergency, Running, Source};

/// The signals that end or reload. Installed before anything is bound, so that none is missed.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    pub(super) fn install() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// SIGTERM or SIGINT.
    pub(super) async fn end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

pub(super) async fn run(path: &Path) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::install()?;
    let config = Config::load(path)?;
    let _log = crate::telemetry::log::start();
    let source = Source::file(path);
    let running = server::start(config, Clock::system(), source.clone()).await?;
    print_listeners(&running);
    loop {
        tokio::select! {
            () = async { signals.hangup.recv().await; } => running.reload(&source).await,
            () = async {
                tokio::select! {
                    _ = signals.terminate.recv() => {}
                    _ = signals.interrupt.recv() => {}
                }
            } => break,
        }
    }
    let emergency = running.emergency();
    Ok(end(running, &emergency, &mut signals).await)
}

/// One line a listener, with its real address.
pub(super) fn print_listeners(running: &Running) {
    for addr in &running.gateway {
        println!("listening role=gateway addr={addr}");
    }
    println!("listening role=admin addr={}", running.admin);
    if let Some(addr) = running.hooks {
        println!("listening role=hooks addr={addr}");
    }
}

/// Ends in order, or at a second signal at once.
pub(super) async fn end(running: Running, emergency: &Emergency, signals: &mut Signals) -> ExitCode {
    tokio::select! {
        () = running.stop() => ExitCode::SUCCESS,
        () = signals.end() => {
            emergency.stop().await;
            ExitCode::FAILURE
        }
    }
}
