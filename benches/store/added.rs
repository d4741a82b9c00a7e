//! What the shared store adds to a request: the same requests to an instance that shares its store and to one that does not.

use std::path::Path;

use anyhow::Result;

use crate::common::load;
use crate::common::peer::Peer;
use crate::common::tollgate::{Route, Setup};
use crate::common::upstream::{self, Upstream};
use crate::instance::{self, Caller, OWN};
use crate::latency::Latency;
use crate::quiet::{Quiet, TURN};
use crate::redis_server::RedisServer;

const PLAIN: &str = "plain";
const LIMITED: &str = "limited";
const ROUTES: &[Route] = &[Route { name: PLAIN, limits: false }, Route { name: LIMITED, limits: true }];

/// Questions of the route with limits; they are warm.
const KNOWN: usize = 1_000;

/// One kind of request.
pub struct Case {
    pub name: &'static str,
    pub rounds: Vec<Pair>,
}

/// One round of it.
pub struct Pair {
    pub shared: Latency,
    pub own: Latency,
    /// Scripts that Redis ran for a request.
    pub trips: f64,
    /// Turns that were left out, in percent.
    pub left_out: f64,
}

/// Two instances that share a store, and one with its own.
pub struct Added {
    first: Peer,
    second: Peer,
    own: Peer,
    cases: [Case; 4],
    /// Questions of the plain route so far.
    asked: usize,
}

impl Added {
    pub fn start(directory: &Path, redis: &RedisServer) -> Result<Self> {
        let question = load::request(PLAIN, 0);
        let start = |name, store: &str, upstream: &Upstream| {
            let setup = Setup { name, level: "warn", store, routes: ROUTES, upstream: upstream.clone() };
            instance::start(directory, setup, &question)
        };
        let (store, theirs) = (instance::shared(redis, "latency"), upstream::start()?);
        let added = Self {
            first: start("first", &store, &theirs)?,
            second: start("second", &store, &theirs)?,
            own: start("own", OWN, &upstream::start()?)?,
            cases: ["a: hit in memory, no limits", "b: hit in memory, limits", "c: hit in Redis only", "d: miss"]
                .map(|name| Case { name, rounds: Vec::new() }),
            asked: 1,
        };
        let known = known(KNOWN);
        load::each_once(added.second.address, &known)?;
        load::each_once(added.own.address, &known)?;
        Ok(added)
    }

    /// New questions are a miss to the first instance, in Redis only to the second, and then in its memory.
    pub fn round(&mut self, redis: &RedisServer, asks: usize) -> Result<()> {
        let fresh: Vec<_> = (self.asked..self.asked + asks).map(|question| load::request(PLAIN, question)).collect();
        self.asked += asks;
        let known = known(asks);
        let Self { first, second, own, cases: [memory, limits, in_redis, miss], .. } = self;
        miss.rounds.push(compare(redis, first, own, &fresh)?);
        in_redis.rounds.push(compare(redis, second, own, &fresh)?);
        memory.rounds.push(compare(redis, second, own, &fresh)?);
        limits.rounds.push(compare(redis, second, own, &known)?);
        Ok(())
    }

    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// Was every case what it is said to be? The two that share have paid together for what the third has.
    pub fn finish(&self) -> Result<()> {
        let questions = self.asked + KNOWN;
        self.first.paid(questions)?;
        self.own.paid(questions)
    }
}

/// So many requests with warm questions.
fn known(requests: usize) -> Vec<Vec<u8>> {
    (0..requests).map(|index| load::request(LIMITED, index % KNOWN)).collect()
}

/// Both in turns: what makes the machine slower for a while makes both slower.
fn compare(redis: &RedisServer, shared: &Peer, own: &Peer, requests: &[Vec<u8>]) -> Result<Pair> {
    let mut quiet = Quiet::watch(&[shared.pid(), own.pid(), redis.pid()]);
    let (mut with, mut without) = (Vec::with_capacity(requests.len()), Vec::with_capacity(requests.len()));
    let (mut shared, mut own) = (Caller::of(shared)?, Caller::of(own)?);
    let before = redis.script_runs()?;
    for turn in requests.chunks(TURN) {
        for (caller, samples) in [(&mut shared, &mut with), (&mut own, &mut without)] {
            let (waited, kept) = (quiet.waited()?, samples.len());
            caller.time_all(turn, samples)?;
            if !quiet.left_alone(waited)? {
                samples.truncate(kept);
            }
        }
    }
    let trips = (redis.script_runs()? - before) as f64 / requests.len() as f64;
    Ok(Pair { shared: Latency::of(with), own: Latency::of(without), trips, left_out: quiet.left_out() })
}
