//! A server under load: how it is started, and ended when dropped.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::load::{self, QUESTIONS};
use super::round::Round;

/// A running server and what was measured of it.
pub struct Peer {
    pub name: &'static str,
    pub address: SocketAddr,
    pub requests: Vec<Vec<u8>>,
    pub rounds: Vec<Round>,
    /// Calls its upstream has seen; none for a peer without one.
    calls: Option<Arc<AtomicU64>>,
    process: Child,
}

impl Peer {
    /// Of the first process; nginx has more below it.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Every question twice: once to be kept, once from what was kept.
    pub fn warm(&self) -> Result<()> {
        for _ in 0..2 {
            load::each_once(self.address, &self.requests).with_context(|| format!("while warming {}", self.name))?;
        }
        self.paid(QUESTIONS)
    }

    /// What all this is for: however often it was asked, each question was paid for once.
    pub fn paid(&self, questions: usize) -> Result<()> {
        let Some(calls) = &self.calls else { return Ok(()) };
        let calls = calls.load(Ordering::Relaxed);
        ensure!(calls == questions as u64, "{}: {calls} upstream calls for {questions} questions", self.name);
        Ok(())
    }

    /// Waits until it listens; `log` tells why it does not.
    pub fn start(
        name: &'static str,
        mut command: Command,
        address: SocketAddr,
        log: &Path,
        calls: Option<Arc<AtomicU64>>,
    ) -> Result<Self> {
        let process = command.stdin(Stdio::null()).spawn().with_context(|| format!("cannot start {name}"))?;
        let mut peer = Self { name, address, requests: load::requests(), rounds: Vec::new(), calls, process };
        for _ in 0..100 {
            if TcpStream::connect(address).is_ok() {
                return Ok(peer);
            }
            if let Some(status) = peer.process.try_wait()? {
                bail!("{name} ended with {status}: {}", fs::read_to_string(log).unwrap_or_default());
            }
            sleep(Duration::from_millis(50));
        }
        bail!("{name} does not listen on {address} after 5 s: {}", fs::read_to_string(log).unwrap_or_default())
    }
}

impl Drop for Peer {
    /// Asked first: nginx takes its workers along only then.
    fn drop(&mut self) {
        let asked = Command::new("kill").arg(self.pid().to_string()).status();
        for _ in 0..40 {
            if asked.is_err() || matches!(self.process.try_wait(), Ok(Some(_))) {
                break;
            }
            sleep(Duration::from_millis(50));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Free a moment ago. A server whose output goes nowhere could not tell us the port it was given.
pub fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
