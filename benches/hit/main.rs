//! What a hit costs, measured beside two peers in one run: `make bench`.
//!
//! Every server has core 0 to itself in its turn, the generator has core 1. 64 kept-alive connections ask 1,000 warm questions as 100
//! callers and get bodies of 1 KiB. Rounds are interleaved, so that a noisy minute hits every peer, and medians are reported.
//!
//! | peer | does |
//! |---|---|
//! | hyper | answers anything with the body, on the runtime tollgate runs on: the floor of this HTTP stack |
//! | nginx | looks the key up in a `map`, `limit_req`, `proxy_cache` keyed on the URL as it was spelled |
//! | tollgate | authenticates the key, limits caller and route, canonicalises the question, answers from memory |
//! | tollgate, logging | the same with its line per request, written to nowhere |
//!
//! CPU time is the server's own, all its processes, user and kernel, from `/proc`. `HIT_ROUNDS`, `HIT_SECONDS` and `HIT_PEERS` (names,
//! comma between) make a shorter run.
#![allow(
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a bench measures real time, and its counts are far below 2^52"
)]

mod cpu;
mod load;
mod peer;
mod report;
mod responder;
mod syscalls;

use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use anyhow::{Context, Result, ensure};

use crate::load::Herd;
use crate::peer::Peer;
use crate::report::Round;

const SERVER_CORE: &str = "0";
const GENERATOR_CORE: &str = "1";

fn main() -> Result<()> {
    if let Some(port) = responder::asked_for() {
        return responder::run(port);
    }
    let rounds = number("HIT_ROUNDS", 7)?;
    let seconds = Duration::from_secs(number("HIT_SECONDS", 3)?);
    stay_on_the_generators_core()?;

    let directory = tempfile::tempdir()?;
    let mut peers = peer::start_all(directory.path(), &env::var("HIT_PEERS").unwrap_or_default())?;
    for peer in &peers {
        peer.warm()?;
        measure(peer, Duration::from_secs(1))?;
    }
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for peer in &mut peers {
            let result = measure(peer, seconds)?;
            peer.rounds.push(result);
        }
    }

    report::costs(&peers);
    report::system_calls(&peers);
    for peer in &peers {
        peer.paid_once_a_question()?;
    }
    println!("\nupstream calls of each peer that has an upstream: {}, one a question", load::QUESTIONS);
    Ok(())
}

fn measure(peer: &Peer, time: Duration) -> Result<Round> {
    let context = || format!("while loading {}", peer.name);
    let mut herd = Herd::connect(peer.address, &peer.requests).with_context(context)?;
    herd.sweep().with_context(context)?;
    let before = cpu::of_tree(peer.pid())?;
    let (requests, wall) = herd.run_for(time).with_context(context)?;
    let after = cpu::of_tree(peer.pid())?;
    Ok(Round { requests, wall, cpu: after.since(&before) })
}

/// Threads and children started later inherit it.
fn stay_on_the_generators_core() -> Result<()> {
    let cores = thread::available_parallelism()?.get();
    ensure!(cores >= 2, "this bench needs two cores, one for the server and one for the generator; there is {cores}");
    let own = std::process::id().to_string();
    let done = Command::new("taskset").args(["-cp", GENERATOR_CORE, &own]).stdout(Stdio::null()).status();
    ensure!(done.is_ok_and(|status| status.success()), "taskset failed: apt-get install util-linux");
    Ok(())
}

fn number(name: &str, default: u64) -> Result<u64> {
    env::var(name).map_or(Ok(default), |value| value.parse().with_context(|| format!("{name}={value} is no number")))
}
