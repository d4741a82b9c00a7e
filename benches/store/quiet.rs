//! Was a measurement left alone? Another program that takes the core for some milliseconds is no property of a store.
//!
//! Requests are asked in short turns. The kernel counts how long each thread could have run and had no core
//! (`/proc/PID/task/TID/schedstat`); a turn during which those who take part waited longer than they make each other wait is left
//! out, whatever it has measured. How many are left out is told.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// Requests in a turn.
pub const TURN: usize = 10;
/// What the processes of a turn make each other wait is less; the least a scheduler gives another program is more.
const DISTURBED: Duration = Duration::from_micros(400);

/// Watches over those who take part.
pub struct Quiet {
    processes: Vec<u32>,
    turns: usize,
    disturbed: usize,
}

impl Quiet {
    /// These processes, and our own.
    pub fn watch(others: &[u32]) -> Self {
        Self { processes: others.iter().copied().chain([std::process::id()]).collect(), turns: 0, disturbed: 0 }
    }

    /// The time they have waited for a core until now.
    pub fn waited(&self) -> Result<Duration> {
        self.processes.iter().map(|process| waited(*process)).sum()
    }

    /// Was a turn left alone that began when they had waited so long?
    pub fn left_alone(&mut self, before: Duration) -> Result<bool> {
        let alone = self.waited()?.saturating_sub(before) < DISTURBED;
        self.turns += 1;
        self.disturbed += usize::from(!alone);
        Ok(alone)
    }

    /// Of all turns, how many percent were not.
    pub fn left_out(&self) -> f64 {
        100.0 * self.disturbed as f64 / self.turns.max(1) as f64
    }
}

/// The second of three numbers, in nanoseconds, of every thread.
fn waited(process: u32) -> Result<Duration> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).with_context(|| format!("process {process} is gone"))?;
    let of_thread = |thread: fs::DirEntry| {
        let numbers = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        numbers.split(' ').nth(1)?.parse().ok().map(Duration::from_nanos)
    };
    Ok(threads.filter_map(|thread| of_thread(thread.ok()?)).sum())
}
