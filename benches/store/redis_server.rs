//! The Redis of a run: on loopback, in memory only.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::common::cores;
use crate::common::peer::free_address;
use crate::script;

/// A running redis-server that knows the limiter's script. Dropping it ends it.
pub struct RedisServer {
    pub address: SocketAddr,
    /// What the script is called by.
    pub hash: String,
    process: Child,
}

impl RedisServer {
    pub fn start(directory: &Path, core: &str) -> Result<Self> {
        let (address, log) = (free_address()?, directory.join("redis.log"));
        let mut command = cores::on(core, Path::new("redis-server"));
        command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
        command.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]).current_dir(directory);
        let process = command.stdin(Stdio::null()).stdout(File::create(&log)?).stderr(Stdio::null()).spawn()?;
        let mut server = Self { address, hash: String::new(), process };
        for _ in 0..100 {
            if let Ok(mut connection) = server.connect() {
                let load = redis::cmd("SCRIPT").arg("LOAD").arg(script::text()).query(&mut connection);
                server.hash = load.context("the script does not load; Redis 7 or Valkey is needed")?;
                return Ok(server);
            }
            if let Some(status) = server.process.try_wait()? {
                let said = fs::read_to_string(&log).unwrap_or_default();
                bail!("redis-server ended with {status} (if it is missing: apt-get install redis-server): {said}");
            }
            sleep(Duration::from_millis(50));
        }
        bail!("redis-server does not answer after 5 s")
    }

    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// How many scripts it has run.
    pub fn script_runs(&self) -> Result<u64> {
        let info: String = redis::cmd("INFO").arg("commandstats").query(&mut self.connect()?)?;
        let calls = info.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")?.split(',').next());
        calls.map_or(Ok(0), |calls| calls.parse().context("INFO commandstats"))
    }

    fn connect(&self) -> redis::RedisResult<redis::Connection> {
        redis::Client::open(self.url())?.get_connection()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
