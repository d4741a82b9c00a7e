//! Instances of tollgate, and a caller of one.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::common::load::Connection;
use crate::common::peer::Peer;
use crate::common::tollgate::{self, Setup};
use crate::redis_server::RedisServer;

/// The lines of `[store]` for a shared store. A machine that is busy is no reason to give a store up.
pub fn shared(redis: &RedisServer, prefix: &str) -> String {
    format!("url = \"{}\"\nprefix = \"{prefix}\"\ntimeout = \"2s\"\npatience = \"4s\"", redis.url())
}

/// The line of `[store]` for a store in the process.
pub const OWN: &str = "url = \"memory:\"";

/// Starts an instance, and asks it `question` until that is answered.
pub fn start(directory: &Path, setup: Setup<'_>, question: &[u8]) -> Result<Peer> {
    let peer = tollgate::start(directory, setup)?;
    until_answered(&peer, question)?;
    Ok(peer)
}

/// A gateway begins before it has found its store, and refuses until then.
pub fn until_answered(peer: &Peer, question: &[u8]) -> Result<()> {
    let ask = || Connection::open(peer.address)?.ask(question);
    for _ in 0..100 {
        if ask().is_ok() {
            return Ok(());
        }
        sleep(Duration::from_millis(50));
    }
    ask().with_context(|| format!("{} does not answer after 5 s", peer.name))
}

/// One caller of an instance, on one connection. It is for now: an idle connection is closed.
pub struct Caller<'a> {
    peer: &'a Peer,
    connection: Connection,
}

impl<'a> Caller<'a> {
    pub fn of(peer: &'a Peer) -> Result<Self> {
        Ok(Self { peer, connection: Connection::open(peer.address)? })
    }

    /// Asks one after the other, and notes how long each took.
    pub fn time_all(&mut self, requests: &[Vec<u8>], samples: &mut Vec<Duration>) -> Result<()> {
        for request in requests {
            let start = Instant::now();
            self.connection.ask(request).with_context(|| format!("while asking {}", self.peer.name))?;
            samples.push(start.elapsed());
        }
        Ok(())
    }
}
