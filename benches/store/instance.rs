//! An instance of tollgate, and one caller of it.

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

pub struct Instance {
    pub peer: Peer,
    connection: Connection,
}

impl Instance {
    /// Asks `question` until it is answered.
    pub fn start(directory: &Path, setup: Setup<'_>, question: &[u8]) -> Result<Self> {
        let peer = tollgate::start(directory, setup)?;
        until_answered(&peer, question)?;
        let connection = Connection::open(peer.address)?;
        Ok(Self { peer, connection })
    }

    pub fn ask_all(&mut self, requests: &[Vec<u8>]) -> Result<()> {
        self.time_all(requests, &mut Vec::new())
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
