//! The three tables.

use crate::added::{Case, Pair};
use crate::common::round::Round;
use crate::common::spread::Spread;
use crate::evalsha::{Seen, Trips};
use crate::hits::{Beside, Shared};
use crate::latency::Latency;

/// A percentile, by its name.
type Percentile = (&'static str, fn(&Latency) -> f64);
const PERCENTILES: [Percentile; 2] = [("median", |latency| latency.median), ("p99", |latency| latency.p99)];

/// 1. A round trip.
pub fn trips(all: &[&Trips]) {
    println!("\n1. one EVALSHA round trip, two buckets, µs; medians of the rounds, least and most beside");
    println!("{:>8}{:>10}{:>22}{:>10}{:>22}{:>12}{:>6}", "callers", "median", "", "p99", "", "trips/s", "out");
    for trips in all {
        print!("{:>8}", trips.callers);
        for (_, percentile) in PERCENTILES {
            let spread = Spread::of(trips.rounds.iter().map(|seen: &Seen| percentile(&seen.latency)));
            print!("{:>10.1}{:>22}", spread.median, format!("{spread:.1}"));
        }
        let median = |value: fn(&Seen) -> f64| Spread::of(trips.rounds.iter().map(value)).median;
        println!("{:>12.0}{:>5.0}%", median(|seen| seen.per_second), median(|seen| seen.left_out));
    }
}

/// 2. What the store adds, and how many round trips of the same round that is.
pub fn added(cases: &[Case], alone: &Trips) {
    for (name, percentile) in PERCENTILES {
        println!(
            "\n2. added by the shared store, {name} of one caller's requests, µs; medians of the rounds, least and most beside"
        );
        println!(
            "{:<29}{:>6}{:>9}{:>9}{:>9}{:>20}{:>9}{:>17}{:>10}{:>9}{:>6}",
            "request", "trips", "memory:", "redis:", "added", "", "× trip", "", "quietest", "× trip", "out"
        );
        for case in cases {
            println!("{}", row(case, alone, percentile));
        }
    }
}

fn row(case: &Case, alone: &Trips, percentile: fn(&Latency) -> f64) -> String {
    let spread = |value: &dyn Fn(&Pair) -> f64| Spread::of(case.rounds.iter().map(value));
    let more = |pair: &Pair| percentile(&pair.shared) - percentile(&pair.own);
    let (own, shared, added) = (spread(&|pair| percentile(&pair.own)), spread(&|pair| percentile(&pair.shared)), spread(&more));
    let rounds = case.rounds.iter().zip(&alone.rounds);
    let times = Spread::of(rounds.map(|(pair, trip)| more(pair) / percentile(&trip.latency)));
    let trip = Spread::of(alone.rounds.iter().map(|trip| percentile(&trip.latency)));
    let quietest = shared.least - own.least;
    format!(
        "{:<29}{:>6.2}{:>9.1}{:>9.1}{:>9.1}{:>20}{:>9.2}{:>17}{:>10.1}{:>9.2}{:>5.0}%",
        case.name,
        spread(&|pair| pair.trips).median,
        own.median,
        shared.median,
        added.median,
        format!("{added:.1}"),
        times.median,
        times.to_string(),
        quietest,
        quietest / trip.least,
        spread(&|pair| pair.left_out).median,
    )
}

/// 3. Hits a second.
pub fn hits(peers: &[Shared]) {
    println!("\n3. hits with limits in Redis, 64 connections; CPU µs/req; medians of the rounds, least and most beside");
    println!(
        "{:<20}{:>9}{:>7}{:>9}{:>18}{:>9}{:>7}{:>18}{:>7}",
        "peer", "req/s", "core", "server", "", "Redis", "core", "", "trips"
    );
    let mut full = true;
    for Shared { peer, redis } in peers {
        let server = |value: &dyn Fn(&Round) -> f64| Spread::of(peer.rounds.iter().map(value));
        let beside = |value: &dyn Fn(&Beside) -> f64| Spread::of(redis.iter().map(value));
        let (cpu, redis_cpu) = (server(&|round| round.micros(round.cpu.total())), beside(&|redis| redis.micros));
        let core = server(&|round| round.core(round.cpu.total())).median;
        println!(
            "{:<20}{:>9.0}{:>6.0}%{:>9.2}{:>18}{:>9.2}{:>6.0}%{:>18}{:>7.2}",
            peer.name,
            server(&Round::per_second).median,
            core,
            cpu.median,
            cpu.to_string(),
            redis_cpu.median,
            beside(&|redis| redis.core).median,
            redis_cpu.to_string(),
            beside(&|redis| redis.trips).median,
        );
        full &= core > 90.0;
    }
    if !full {
        println!("a server waited for Redis, or shared its core with another program: trust the CPU time, not the requests/s");
    }
}
