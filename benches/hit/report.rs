//! The tables.

use std::time::Duration;

use crate::cpu::Cpu;
use crate::peer::Peer;
use crate::syscalls;

/// What authentication, limits, the canonical question and the cache may cost together, beside a server that does nothing.
const GOAL: f64 = 1.5;

/// One peer under load for some seconds.
pub struct Round {
    pub requests: u64,
    pub wall: Duration,
    pub cpu: Cpu,
}

impl Round {
    fn per_second(&self) -> f64 {
        self.requests as f64 / self.wall.as_secs_f64()
    }

    fn micros(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e6 / self.requests as f64
    }
}

/// Medians over the rounds; the ratio is of CPU time.
pub fn costs(peers: &[Peer]) {
    println!("\n{:<20}{:>10}{:>8}{:>12}{:>8}{:>9}{:>9}", "peer", "req/s", "core", "CPU µs/req", "user", "system", "× hyper");
    let floor = peers.iter().find(|peer| peer.name == "hyper").map(cpu_per_request);
    let mut full = true;
    for peer in peers {
        let core = median(peer, |round| 100.0 * round.cpu.total().as_secs_f64() / round.wall.as_secs_f64());
        let ratio = floor.map_or("-".to_owned(), |floor| format!("{:.2}", cpu_per_request(peer) / floor));
        println!(
            "{:<20}{:>10.0}{:>7.0}%{:>12.2}{:>8.2}{:>9.2}{:>9}",
            peer.name,
            median(peer, Round::per_second),
            core,
            cpu_per_request(peer),
            median(peer, |round| round.micros(round.cpu.user)),
            median(peer, |round| round.micros(round.cpu.system)),
            ratio,
        );
        full &= core > 90.0;
    }
    if !full {
        println!("a core was idle or shared with another program at times: trust the CPU time, not the requests/s");
    }
    if let (Some(floor), Some(ours)) = (floor, peers.iter().find(|peer| peer.name == "tollgate")) {
        let met = if cpu_per_request(ours) <= GOAL * floor { "met" } else { "not met" };
        println!("goal, at most {GOAL} × hyper: {met}");
    }
    println!("medians of the rounds; least and most CPU µs/req:");
    for peer in peers {
        let spread = sorted(peer, |round| round.micros(round.cpu.total()));
        if let (Some(least), Some(most)) = (spread.first(), spread.last()) {
            println!("  {:<20}{least:.2} to {most:.2}", peer.name);
        }
    }
}

/// Where the kernel's part goes: calls into it per request. A run of its own, because tracing slows a server many times.
pub fn system_calls(peers: &[Peer]) {
    println!("\nsystem calls per request:");
    for peer in peers {
        match syscalls::per_request(peer) {
            Ok(calls) => println!("  {:<20}{calls}", peer.name),
            Err(reason) => println!("  {:<20}not traced: {reason:#}", peer.name),
        }
    }
}

fn cpu_per_request(peer: &Peer) -> f64 {
    median(peer, |round| round.micros(round.cpu.total()))
}

fn sorted(peer: &Peer, value: impl Fn(&Round) -> f64) -> Vec<f64> {
    let mut values: Vec<f64> = peer.rounds.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn median(peer: &Peer, value: impl Fn(&Round) -> f64) -> f64 {
    let values = sorted(peer, value);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
