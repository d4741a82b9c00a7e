//! A real redis-server of the test's own: it can be killed, stopped, restarted, and brought to say no.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::port::HeldPort;
use super::resp::Reply;
use super::signal::{self, Leash};
use super::soon;

pub mod connection;
pub mod trouble;

use connection::Connection;

/// What every server is started with; nothing of the machine's configuration is read.
const SETTINGS: &[&str] = &[
    "--bind 127.0.0.1",
    "--daemonize no",
    "--appendfsync no",
    "--maxmemory-policy noeviction",
    "--rdbcompression no",
    "--repl-backlog-size 16kb",
    "--loglevel notice",
];

/// A running redis-server. Dropping it kills it.
#[derive(Debug)]
pub struct RedisServer {
    port: HeldPort,
    dir: TempDir,
    durable: bool,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    leash: Option<Leash>,
    child: Child,
}

impl RedisServer {
    /// One that forgets all when it ends.
    pub async fn start() -> Self {
        Self::new(false).await
    }

    /// One that writes all to its append-only file: it outlives SIGKILL.
    pub async fn durable() -> Self {
        Self::new(true).await
    }

    async fn new(durable: bool) -> Self {
        let mut server = Self { port: HeldPort::free(), dir: tempfile::tempdir().unwrap(), durable, running: None };
        server.launch(&[]);
        server.until_ready().await;
        server
    }

    /// `redis://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("redis://{}", self.addr())
    }

    pub fn addr(&self) -> SocketAddr {
        self.port.addr()
    }

    pub fn port(&self) -> u16 {
        self.addr().port()
    }

    /// Ends it without a word, as a power cut would; its port refuses. Twice is no mistake.
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// Kills it, if it runs, and starts it again on the same port: with its data if it is [durable](Self::durable), empty otherwise.
    pub async fn restart(&mut self) {
        self.kill();
        self.launch(&[]);
        self.until_ready().await;
    }

    /// SIGSTOP: connections stay, connects are accepted by the kernel, nothing is answered.
    pub fn stop(&self) {
        signal::stop(self.id());
    }

    /// SIGCONT: what was sent meanwhile is carried out now.
    pub fn go_on(&self) {
        signal::signal(self.id(), "CONT");
    }

    fn id(&self) -> u32 {
        self.running.as_ref().expect("a running server").child.id()
    }

    fn launch(&mut self, more: &[&str]) {
        if !self.durable {
            let _ = std::fs::remove_file(self.dir.path().join("dump.rdb"));
        }
        self.launch_on_what_is_there(more);
    }

    fn launch_on_what_is_there(&mut self, more: &[&str]) {
        let durable = if self.durable { "--appendonly yes" } else { "--appendonly no" };
        let mut command = Command::new("redis-server");
        command.args(["--port", &self.port().to_string(), "--save", ""]);
        command.args(SETTINGS.iter().chain([&durable]).chain(more).flat_map(|setting| setting.split(' ')));
        let log = std::fs::File::options().append(true).create(true).open(log(&self.dir)).unwrap();
        command.current_dir(self.dir.path()).stdin(Stdio::null()).stdout(log).stderr(Stdio::null()).env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        let child = command.spawn().unwrap_or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => panic!("no redis-server on this machine: apt-get install redis-server"),
            _ => panic!("redis-server: {error}"),
        });
        let leash = Some(Leash::of(child.id()));
        self.running = Some(Running { leash, child });
    }

    /// Waits until it answers a PING; that it is loading is no answer.
    async fn until_ready(&mut self) {
        self.until_ping(|reply| *reply == Reply::from("PONG")).await;
    }

    async fn until_ping(&mut self, wanted: impl Fn(&Reply) -> bool) {
        let addr = self.addr();
        let ping = async || Connection::to(addr).await?.command(&["PING"]).await;
        soon("redis-server's answer", async {
            while !ping().await.is_ok_and(|reply| wanted(&reply)) {
                let ended = self.running.as_mut().and_then(|running| running.child.try_wait().unwrap());
                assert!(ended.is_none(), "redis-server ended: {}", std::fs::read_to_string(log(&self.dir)).unwrap());
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }

    /// A connection of one's own: for MULTI, SUBSCRIBE, and replies that come late.
    pub async fn connect(&self) -> Connection {
        Connection::to(self.addr()).await.unwrap()
    }

    /// One command on a connection of its own, past every proxy.
    pub async fn command(&self, words: &[&str]) -> Reply {
        self.connect().await.command(words).await.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Likewise; what is not OK fails the test.
    async fn expect_ok(&self, words: &[&str]) {
        assert_eq!(self.command(words).await, Reply::ok(), "{words:?}");
    }

    /// Becomes a copy of another, and is one when this returns: it is told all that is written from now on.
    pub async fn follow(&self, master: &Self) {
        self.expect_ok(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]).await;
        soon("a copy", async {
            let mut connection = master.connect().await;
            loop {
                connection.command(&["SET", "followed", "1"]).await.unwrap();
                if connection.command(&["WAIT", "1", "100"]).await.unwrap().int() == 1 {
                    break;
                }
            }
        })
        .await;
    }

    /// O-01: EVALSHA finds nothing any more.
    pub async fn flush_scripts(&self) {
        self.expect_ok(&["SCRIPT", "FLUSH", "SYNC"]).await;
    }

    pub async fn flush_all(&self) {
        self.expect_ok(&["FLUSHALL", "SYNC"]).await;
    }

    /// All keys, sorted.
    pub async fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.command(&["KEYS", "*"]).await.list().iter().map(Reply::text).collect();
        keys.sort();
        keys
    }

    /// What a key has left to live; none if it stays for ever. A key that is not there fails the test.
    pub async fn ttl(&self, key: &str) -> Option<Duration> {
        match self.command(&["PTTL", key]).await.int() {
            -2 => panic!("no key {key} among {:?}", self.keys().await),
            left => u64::try_from(left).ok().map(Duration::from_millis),
        }
    }

    pub async fn config_set(&self, name: &str, value: &str) {
        self.expect_ok(&["CONFIG", "SET", name, value]).await;
    }

    /// A number of `INFO`: `used_memory`, `total_commands_processed`, `connected_clients`.
    pub async fn info(&self, name: &str) -> u64 {
        let info = self.command(&["INFO", "everything"]).await.text();
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no number {name} in {info}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The leash first: once the server is reaped its id may be another's.
        self.leash = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn log(dir: &TempDir) -> std::path::PathBuf {
    Path::join(dir.path(), "redis.log")
}
