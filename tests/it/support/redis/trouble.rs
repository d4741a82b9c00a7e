//! The ways in which Redis fails its clients, each begun and ended by the test.

use super::RedisServer;

/// O-03 and beyond: what a client meets while it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// `READONLY`: it has become a replica, its master is dead. Reads are answered.
    ReadOnly,
    /// `NOREPLICAS`: a master that lost its replicas. Reads are answered.
    NoReplicas,
    /// `OOM`: its memory is full, and nothing may be evicted. Reads are answered.
    Full,
    /// `LOADING`: it was restarted, with its data, and has not yet read all of it. Nothing is answered.
    Loading,
    /// Killed: connections are cut, connects refused. It comes back with its data if it is durable, empty otherwise.
    Down,
    /// Stopped: connections stay and nobody answers. What was sent meanwhile is carried out in the end.
    Hangs,
}

impl Trouble {
    pub const ALL: [Self; 6] = [Self::ReadOnly, Self::NoReplicas, Self::Full, Self::Loading, Self::Down, Self::Hangs];

    /// The code of the error it answers writes with, if it answers.
    pub fn code(self) -> Option<&'static str> {
        match self {
            Self::ReadOnly => Some("READONLY"),
            Self::NoReplicas => Some("NOREPLICAS"),
            Self::Full => Some("OOM"),
            Self::Loading => Some("LOADING"),
            Self::Down | Self::Hangs => None,
        }
    }
}

/// Slow loading: each key takes a while, and clients are told after each.
const SLOWLY: [&str; 2] = ["--key-load-delay 5000", "--loading-process-events-interval-bytes 1024"];

/// Twenty seconds of loading, longer than any test wants it.
const BALLAST: &str = "for i = 1, 4000 do redis.call('SET', 'ballast:' .. i, string.rep('x', 1100)) end";
const NO_BALLAST: &str = "for i = 1, 4000 do redis.call('DEL', 'ballast:' .. i) end";

impl RedisServer {
    /// The trouble has begun when this returns.
    pub async fn begin(&mut self, trouble: Trouble) {
        match trouble {
            // Nobody listens on port 1.
            Trouble::ReadOnly => self.expect_ok(&["REPLICAOF", "127.0.0.1", "1"]).await,
            Trouble::NoReplicas => self.config_set("min-replicas-to-write", "1").await,
            Trouble::Full => self.config_set("maxmemory", "1").await,
            Trouble::Loading => self.load_slowly().await,
            Trouble::Down => self.kill(),
            Trouble::Hangs => self.stop(),
        }
    }

    /// The trouble is over when this returns.
    pub async fn end(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::ReadOnly => self.expect_ok(&["REPLICAOF", "NO", "ONE"]).await,
            Trouble::NoReplicas => self.config_set("min-replicas-to-write", "0").await,
            Trouble::Full => self.config_set("maxmemory", "0").await,
            Trouble::Loading => self.load_the_rest().await,
            Trouble::Down => self.restart().await,
            Trouble::Hangs => self.go_on(),
        }
    }

    async fn load_slowly(&mut self) {
        self.command(&["EVAL", BALLAST, "0"]).await;
        self.save().await;
        self.kill();
        self.launch_on_what_is_there(&SLOWLY);
        self.until_ping(|reply| reply.code() == Some("LOADING")).await;
    }

    async fn load_the_rest(&mut self) {
        self.config_set("key-load-delay", "0").await;
        self.until_ready().await;
        self.command(&["EVAL", NO_BALLAST, "0"]).await;
    }

    /// All data into one file that is read key by key: while commands are read back clients are told far less often.
    async fn save(&mut self) {
        if !self.durable {
            return self.expect_ok(&["SAVE"]).await;
        }
        let started = self.command(&["BGREWRITEAOF"]).await;
        assert!(started.code().is_none(), "{started:?}");
        crate::support::soon("the rewrite", async {
            while self.info("aof_rewrite_scheduled").await + self.info("aof_rewrite_in_progress").await > 0 {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        })
        .await;
    }
}
