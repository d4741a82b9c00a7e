//! The latency of many requests.

use std::time::Duration;

/// In microseconds; not a number, if nothing was measured.
#[derive(Clone, Copy)]
pub struct Latency {
    pub median: f64,
    pub p99: f64,
}

impl Latency {
    pub fn of(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        let at =
            |percent: usize| samples.get(samples.len() * percent / 100).map_or(f64::NAN, |sample| sample.as_secs_f64() * 1e6);
        Self { median: at(50), p99: at(99) }
    }
}
