//! What sharing a store costs, measured in one run against a redis-server of the run's own: `make bench`.
//!
//! Three tables, over interleaved rounds. Each number is the median of the rounds; beside it stand the least and the most of them, so
//! that a noisy machine shows. Where these are far apart trust the least, and ratios within a round. A p99 is the first to go, so
//! latencies leave out turns of requests in which another program had the core (`quiet`) and say how many (*out*). What waits for
//! less than that rule sees remains, and the p99 of 64 callers has it all.
//!
//! 1. **A round trip**: the limiter's own script with two buckets by `EVALSHA`, through the client crate tollgate uses, over one
//!    multiplexed connection and in a process on the core on which tollgate runs otherwise. With one caller, back to back, this is
//!    what nobody on this machine can be quicker than: the unit of the second table. With 64 it shows how far one connection goes.
//! 2. **Added latency**: tollgate on `redis://` less tollgate on `memory:`, the same requests in short turns, one caller, back to back.
//!    A round's added p99 is a difference of two p99s, and may be below nothing where the store is not asked. *trips* counts the
//!    scripts Redis really ran for a request, and *× trip* divides what was added by a round trip of the same round, median by
//!    median and p99 by p99. *quietest* is the same for the least of all rounds: least less least, over least.
//!
//!    | case | is |
//!    |---|---|
//!    | a | a hit in process memory, a route without limits: the store is not asked |
//!    | b | a hit in process memory, a route with limits for caller and route: one script debits both |
//!    | c | a hit found only in Redis, where another instance has stored it; less a hit in process memory |
//!    | d | a miss: looked up, lease taken, provider's quota debited, paid, kept and landed; the upstream is local |
//!
//! 3. **Hits a second**: 64 kept-alive connections, 1,000 warm questions of 100 callers, bodies of 1 KiB, as in the bench `hit`.
//!
//!    | peer | does |
//!    |---|---|
//!    | nginx + Lua | knows the caller by SHA-256, normalises the question, runs the script (a pool of connections), `lua_shared_dict` |
//!    | tollgate | authenticates, runs the script (one connection), canonicalises the question, answers from memory |
//!    | tollgate, memory: | the same with limits in the process: what is left without the store |
//!
//!    CPU time is a server's own, all its processes, user and kernel, from `/proc`; Redis' stands beside.
//!
//! Servers have core 0 to themselves in their turn and the generator has core 1. Redis has core 2; on a machine with two cores it
//! shares the generator's, and then hits a second are bounded by both together. With one caller each waits for the other, so nothing
//! is shared then; but a core that sleeps between requests wakes late, and all latencies here include that.
//!
//! `STORE_ROUNDS` and `STORE_SECONDS` make a shorter run: a round loads each peer for so many seconds. Latencies have a round for each
//! of these seconds.
#![allow(
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a bench measures real time, and its counts are far below 2^52"
)]

mod added;
#[path = "../common/mod.rs"]
mod common;
mod evalsha;
mod hits;
mod instance;
mod latency;
mod nginx_lua;
mod quiet;
mod redis_server;
mod report;
mod script;

use std::time::Duration;

use anyhow::Result;

use crate::added::Added;
use crate::common::{cores, settings, syscalls};
use crate::evalsha::Trips;
use crate::hits::Hits;
use crate::redis_server::RedisServer;

/// Requests of each case in a round: few, because a short round has a better chance to be left alone.
const ASKS: usize = 1_000;

fn main() -> Result<()> {
    if let Some(done) = evalsha::run_if_asked() {
        return done;
    }
    let rounds = settings::number("STORE_ROUNDS", 7)?;
    let seconds = settings::number("STORE_SECONDS", 3)?;
    let cores = cores::stay_on_the_generators()?;

    let directory = tempfile::tempdir()?;
    let redis = RedisServer::start(directory.path(), if cores > 2 { "2" } else { cores::GENERATOR })?;

    let (mut alone, mut together) = (Trips::new(1), Trips::new(64));
    let mut added = Added::start(directory.path(), &redis)?;
    for round in 1..=rounds * seconds {
        eprintln!("latency, round {round} of {}", rounds * seconds);
        alone.round(&redis, ASKS)?;
        together.round(&redis, 10 * ASKS)?;
        added.round(&redis, ASKS)?;
    }
    added.finish()?;
    report::trips(&[&alone, &together]);
    report::added(added.cases(), &alone);
    drop(added);

    let mut hits = Hits::start(directory.path(), &redis)?;
    for round in 1..=rounds {
        eprintln!("hits, round {round} of {rounds}");
        hits.round(&redis, Duration::from_secs(seconds))?;
    }
    report::hits(hits.peers());
    syscalls::print(hits.peers().iter().map(|shared| &shared.peer));
    hits.finish()
}
