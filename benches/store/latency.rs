//! The latency of many requests.

use std::time::Duration;

use anyhow::{Context, Result};

/// In microseconds.
#[derive(Clone, Copy)]
pub struct Latency {
    pub median: f64,
    pub p99: f64,
}

impl Latency {
    pub fn of(mut samples: Vec<Duration>) -> Result<Self> {
        samples.sort_unstable();
        let at = |percent: usize| samples.get(samples.len() * percent / 100).map(|sample| sample.as_secs_f64() * 1e6);
        Ok(Self { median: at(50).context("nothing was measured")?, p99: at(99).context("nothing was measured")? })
    }
}
