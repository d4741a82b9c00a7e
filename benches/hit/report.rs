//! The table.

use crate::common::peer::Peer;
use crate::common::round::Round;
use crate::common::spread::Spread;

/// What authentication, limits, the canonical question and the cache may cost together, beside a server that does nothing.
const GOAL: f64 = 1.5;

/// Medians over the rounds; the ratio is of CPU time.
pub fn costs(peers: &[Peer]) {
    println!("\n{:<20}{:>10}{:>8}{:>12}{:>8}{:>9}{:>9}", "peer", "req/s", "core", "CPU µs/req", "user", "system", "× hyper");
    let floor = peers.iter().find(|peer| peer.name == "hyper").map(|peer| cpu_per_request(peer).median);
    let mut full = true;
    for peer in peers {
        let core = spread(peer, |round| round.core(round.cpu.total())).median;
        let cpu = cpu_per_request(peer).median;
        let ratio = floor.map_or("-".to_owned(), |floor| format!("{:.2}", cpu / floor));
        println!(
            "{:<20}{:>10.0}{:>7.0}%{:>12.2}{:>8.2}{:>9.2}{:>9}",
            peer.name,
            spread(peer, Round::per_second).median,
            core,
            cpu,
            spread(peer, |round| round.micros(round.cpu.user)).median,
            spread(peer, |round| round.micros(round.cpu.system)).median,
            ratio,
        );
        full &= core > 90.0;
    }
    if !full {
        println!("a core was idle or shared with another program at times: trust the CPU time, not the requests/s");
    }
    if let (Some(floor), Some(ours)) = (floor, peers.iter().find(|peer| peer.name == "tollgate")) {
        let met = if cpu_per_request(ours).median <= GOAL * floor { "met" } else { "not met" };
        println!("goal, at most {GOAL} × hyper: {met}");
    }
    println!("medians of the rounds; least and most CPU µs/req:");
    for peer in peers {
        println!("  {:<20}{}", peer.name, cpu_per_request(peer));
    }
}

fn cpu_per_request(peer: &Peer) -> Spread {
    spread(peer, |round| round.micros(round.cpu.total()))
}

fn spread(peer: &Peer, value: impl Fn(&Round) -> f64) -> Spread {
    Spread::of(peer.rounds.iter().map(value))
}
