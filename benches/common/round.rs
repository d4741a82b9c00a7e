//! One peer under load for some seconds.

use std::time::Duration;

use anyhow::{Context, Result};

use super::cpu::{self, Cpu};
use super::load::Herd;
use super::peer::Peer;

/// What was seen of it.
pub struct Round {
    pub requests: u64,
    pub wall: Duration,
    pub cpu: Cpu,
}

/// The connections are open and every one has been answered once before anything counts.
pub fn measure(peer: &Peer, time: Duration) -> Result<Round> {
    let context = || format!("while loading {}", peer.name);
    let mut herd = Herd::connect(peer.address, &peer.requests).with_context(context)?;
    herd.sweep().with_context(context)?;
    let before = cpu::of_tree(peer.pid())?;
    let (requests, wall) = herd.run_for(time).with_context(context)?;
    let after = cpu::of_tree(peer.pid())?;
    Ok(Round { requests, wall, cpu: after.since(&before) })
}

impl Round {
    pub fn per_second(&self) -> f64 {
        self.requests as f64 / self.wall.as_secs_f64()
    }

    /// Of some time, how many microseconds a request.
    pub fn micros(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e6 / self.requests as f64
    }

    /// Of a core, how many percent.
    pub fn core(&self, time: Duration) -> f64 {
        100.0 * time.as_secs_f64() / self.wall.as_secs_f64()
    }
}
