//! The real binary as a process of its own: for signals, crashes, and what it writes where.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::client::Client;
use super::gate::{ADMIN_TOKEN, KEY, Setup};
use super::signal::signal;
use super::soon;
use super::upstream::FakeUpstream;

/// A running `tollgate serve`. Dropping it kills it.
pub struct Served {
    child: Child,
    pub addr: SocketAddr,
    pub admin_addr: SocketAddr,
    pub client: Client,
    pub admin: Client,
    log: std::thread::JoinHandle<String>,
}

impl Setup {
    /// Writes the config into `dir` and starts the binary on it.
    pub async fn serve(&self, dir: &Path, upstream: &FakeUpstream) -> Served {
        self.serve_as(dir, &upstream.url(), command).await
    }

    /// Starts it by a command of the test's own making.
    pub async fn serve_as(&self, dir: &Path, upstream: &str, make: impl FnOnce(&Path) -> Command) -> Served {
        std::fs::write(dir.join("tollgate.toml"), self.render(dir, upstream)).unwrap();
        let command = make(dir);
        soon("the binary to listen", tokio::task::spawn_blocking(move || Served::start(command))).await.unwrap()
    }
}

/// The command, not yet started.
pub fn command(dir: &Path) -> Command {
    under("", dir)
}

/// The command, behind a few words of shell.
pub fn under(shell: &str, dir: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{shell}\nexec \"$0\" serve -c \"$1\""));
    command.arg(env!("CARGO_BIN_EXE_tollgate")).arg(dir.join("tollgate.toml"));
    command.env("TOLLGATE_LOG", "warn").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Served {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut errors = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = errors.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut listening = |role: &str| -> SocketAddr {
            let line = lines.next().unwrap_or_else(|| panic!("it ended before it listened as {role}")).unwrap();
            let addr = line.strip_prefix(&format!("listening role={role} addr=")).unwrap_or_else(|| panic!("{line}"));
            addr.parse().unwrap()
        };
        let (addr, admin_addr) = (listening("gateway"), listening("admin"));
        let client = Client::new(format!("http://{addr}")).with("x-api-key", KEY);
        let admin = Client::new(format!("http://{admin_addr}")).with("authorization", &format!("Bearer {ADMIN_TOKEN}"));
        Self { child, addr, admin_addr, client, admin, log }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// Waits for its end; gives how it ended and everything it logged.
    pub async fn ended(mut self) -> (ExitStatus, String) {
        let status = soon("the binary to end", async {
            loop {
                if let Some(status) = self.child.try_wait().unwrap() {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        let log = std::mem::replace(&mut self.log, std::thread::spawn(String::new));
        (status, log.join().unwrap())
    }

    /// The most memory it ever had, in KiB.
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// The sum over every line of a metric whose labels hold `label`.
    pub async fn metric(&self, name: &str, label: &str) -> u64 {
        let text = self.admin.get("/metrics").await.text();
        let lines = text.lines().filter(|line| line.starts_with(&format!("{name}{{")) && line.contains(label));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    pub async fn spent(&self) -> u64 {
        self.metric("tollgate_spend_micros_total", "").await
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
