//! A Redis of the test's own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The server, on a port and in a directory of its own. It ends with the test.
pub struct Server {
    process: Option<Child>,
    pub port: u16,
    directory: tempfile::TempDir,
    settings: Vec<String>,
}

impl Server {
    pub fn start() -> Self {
        Self::with(&["--save", "", "--appendonly", "no"])
    }

    /// One that has written all to its log before it answers: it outlives a kill. (`everysec` would wait with it while the disk is
    /// busy.)
    pub fn durable() -> Self {
        Self::with(&["--save", "", "--appendonly", "yes", "--appendfsync", "no"])
    }

    pub fn with(settings: &[&str]) -> Self {
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        // Another may take the port between asking for one and using it.
        for _ in 0..20 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let directory = tempfile::tempdir().unwrap();
            let mut server = Self { process: None, port, directory, settings: settings.clone() };
            if server.run() {
                return server;
            }
        }
        panic!("no redis-server came up");
    }

    /// Starts the process, as empty as its settings make it. False if it ended at once.
    pub fn run(&mut self) -> bool {
        let process = Command::new("redis-server")
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--loglevel", "warning"])
            .args(&self.settings)
            .current_dir(self.directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is needed: apt-get install redis-server");
        let process = self.process.insert(process);
        while process.try_wait().unwrap().is_none() {
            if ask(self.port, "PING").is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        false
    }

    /// Kills it and starts it again, on what it has left and on the same port: for a moment another may hold that.
    pub fn restart(&mut self) {
        self.kill();
        for _ in 0..100 {
            if self.run() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not come up again");
    }

    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Sends the process a signal: `STOP` freezes it, `CONT` lets it go on.
    pub fn signal(&self, signal: &str) {
        let process = self.process.as_ref().expect("it runs").id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &process]).status().unwrap().success());
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Hangs up on every client, listeners included.
    pub fn kill_clients(&self) {
        self.say("CLIENT KILL TYPE normal");
        self.say("CLIENT KILL TYPE pubsub");
    }

    /// Says something to the server, as a person would. Returns what it answers, as it comes.
    pub fn say(&self, words: &str) -> String {
        ask(self.port, words).expect("the server answers")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One inline command. The connection is closed by its end, so that all of the answer is read.
fn ask(port: u16, words: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    stream.write_all(format!("{words}\r\nQUIT\r\n").as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    Some(answer.strip_suffix("+OK\r\n").unwrap_or(&answer).to_owned()).filter(|answer| !answer.is_empty())
}
