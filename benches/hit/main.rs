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

#[path = "../common/mod.rs"]
mod common;
mod peers;
mod report;
mod responder;

use std::env;
use std::time::Duration;

use anyhow::Result;

use crate::common::load::QUESTIONS;
use crate::common::round::measure;
use crate::common::{cores, settings, syscalls};

fn main() -> Result<()> {
    if let Some(done) = responder::run_if_asked() {
        return done;
    }
    let rounds = settings::number("HIT_ROUNDS", 7)?;
    let seconds = Duration::from_secs(settings::number("HIT_SECONDS", 3)?);
    cores::stay_on_the_generators()?;

    let directory = tempfile::tempdir()?;
    let mut peers = peers::start_all(directory.path(), &env::var("HIT_PEERS").unwrap_or_default())?;
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
    syscalls::print(&peers);
    for peer in &peers {
        peer.paid(QUESTIONS)?;
    }
    println!("\nupstream calls of each peer that has an upstream: {QUESTIONS}, one a question");
    Ok(())
}
