//! Hits a second of servers that run the limiter in the shared store.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::common::cpu;
use crate::common::load::QUESTIONS;
use crate::common::peer::Peer;
use crate::common::round::measure;
use crate::common::tollgate::{self, Route, Setup};
use crate::common::upstream;
use crate::instance::{self, OWN, until_answered};
use crate::nginx_lua;
use crate::redis_server::RedisServer;

/// A server, and what Redis did for it.
pub struct Shared {
    pub peer: Peer,
    pub redis: Vec<Beside>,
}

/// Redis in one round.
pub struct Beside {
    /// CPU time a request, in microseconds.
    pub micros: f64,
    /// Of a core, in percent.
    pub core: f64,
    /// Scripts it ran for a request.
    pub trips: f64,
}

pub struct Hits(Vec<Shared>);

impl Hits {
    /// Starts and warms them.
    pub fn start(directory: &Path, redis: &RedisServer) -> Result<Self> {
        let mut peers = Vec::new();
        match nginx_lua::program() {
            Some(program) => peers.push(nginx_lua::start(directory, &program, redis)?),
            None => eprintln!("no nginx with Lua to compare with, left out: apt-get install nginx-light libnginx-mod-http-lua"),
        }
        let routes = &[Route { name: "geocode", limits: true }];
        for (name, store) in [("tollgate", &*instance::shared(redis, "hits")), ("tollgate, memory:", OWN)] {
            peers.push(tollgate::start(directory, Setup { name, level: "warn", store, routes, upstream: upstream::start()? })?);
        }
        for peer in &peers {
            until_answered(peer, peer.requests.first().context("no requests")?)?;
            peer.warm()?;
            measure(peer, Duration::from_secs(1))?;
        }
        Ok(Self(peers.into_iter().map(|peer| Shared { peer, redis: Vec::new() }).collect()))
    }

    pub fn round(&mut self, redis: &RedisServer, time: Duration) -> Result<()> {
        for Shared { peer, redis: beside } in &mut self.0 {
            let (cpu, runs) = (cpu::of_tree(redis.pid())?, redis.script_runs()?);
            let round = measure(peer, time)?;
            let cpu = cpu::of_tree(redis.pid())?.since(&cpu).total();
            let trips = (redis.script_runs()? - runs) as f64 / round.requests as f64;
            beside.push(Beside { micros: round.micros(cpu), core: round.core(cpu), trips });
            peer.rounds.push(round);
        }
        Ok(())
    }

    pub fn peers(&self) -> &[Shared] {
        &self.0
    }

    /// However often it was asked, each question was paid for once.
    pub fn finish(&self) -> Result<()> {
        self.0.iter().try_for_each(|shared| shared.peer.paid(QUESTIONS))
    }
}
