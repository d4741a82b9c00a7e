//! The servers under load: how each is configured and started, and ended when dropped.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use crate::load::{self, CALLERS, QUESTIONS};
use crate::report::Round;
use crate::{SERVER_CORE, responder};

/// A running server and what was measured of it.
pub struct Peer {
    pub name: &'static str,
    pub address: SocketAddr,
    pub requests: Vec<Vec<u8>>,
    pub rounds: Vec<Round>,
    /// Calls its upstream has seen; none for a peer without one.
    calls: Option<Arc<AtomicU64>>,
    process: Child,
}

/// Those named in `only`, or all.
pub fn start_all(directory: &Path, only: &str) -> Result<Vec<Peer>> {
    let wanted = |name: &str| only.is_empty() || only.split(',').any(|one| one == name);
    let mut peers = Vec::new();
    if wanted("hyper") {
        peers.push(hyper(directory)?);
    }
    if wanted("nginx") {
        match nginx_program() {
            Some(program) => peers.push(nginx(directory, &program)?),
            None => eprintln!("no nginx to compare with, left out: apt-get install nginx-light"),
        }
    }
    if wanted("tollgate") {
        peers.push(tollgate(directory, "tollgate", "warn")?);
        peers.push(tollgate(directory, "tollgate, logging", "info")?);
    }
    ensure!(!peers.is_empty(), "HIT_PEERS={only}: there are hyper, nginx and tollgate");
    Ok(peers)
}

impl Peer {
    /// Of the first process; nginx has more below it.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Every question twice: once to be kept, once from what was kept.
    pub fn warm(&self) -> Result<()> {
        for _ in 0..2 {
            load::each_once(self.address, &self.requests).with_context(|| format!("while warming {}", self.name))?;
        }
        self.paid_once_a_question()
    }

    /// What all this is for: however often it was asked, each question was paid for once.
    pub fn paid_once_a_question(&self) -> Result<()> {
        let Some(calls) = &self.calls else { return Ok(()) };
        let calls = calls.load(Ordering::Relaxed);
        ensure!(calls == QUESTIONS as u64, "{}: {calls} upstream calls for {QUESTIONS} questions", self.name);
        Ok(())
    }

    fn start(name: &'static str, mut command: Command, address: SocketAddr, log: &Path) -> Result<Self> {
        let process = command.stdin(Stdio::null()).spawn().with_context(|| format!("cannot start {name}"))?;
        let requests = load::requests(address);
        let mut peer = Self { name, address, requests, rounds: Vec::new(), calls: None, process };
        for _ in 0..100 {
            if TcpStream::connect(address).is_ok() {
                return Ok(peer);
            }
            if let Some(status) = peer.process.try_wait()? {
                bail!("{name} ended with {status}: {}", fs::read_to_string(log).unwrap_or_default());
            }
            sleep(Duration::from_millis(50));
        }
        bail!("{name} does not listen on {address} after 5 s: {}", fs::read_to_string(log).unwrap_or_default())
    }
}

impl Drop for Peer {
    /// Asked first: nginx takes its workers along only then.
    fn drop(&mut self) {
        let asked = Command::new("kill").arg(self.pid().to_string()).status();
        for _ in 0..40 {
            if asked.is_err() || matches!(self.process.try_wait(), Ok(Some(_))) {
                break;
            }
            sleep(Duration::from_millis(50));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn hyper(directory: &Path) -> Result<Peer> {
    let address = free_address()?;
    let log = directory.join("hyper.log");
    let mut command = on_the_servers_core(&env::current_exe()?);
    command.arg(responder::ARGUMENT).arg(address.port().to_string()).stderr(File::create(&log)?);
    Peer::start("hyper", command, address, &log)
}

/// Where Debian and others put it: `sbin` is in few people's `PATH`.
fn nginx_program() -> Option<PathBuf> {
    let places = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"];
    places.into_iter().map(PathBuf::from).find(|path| path.exists())
}

fn nginx(directory: &Path, program: &Path) -> Result<Peer> {
    let (address, (upstream, calls)) = (free_address()?, responder::counting_upstream()?);
    let (file, log) = (directory.join("nginx.conf"), directory.join("nginx.log"));
    fs::write(&file, nginx_config(directory, address, upstream)?)?;
    let mut command = on_the_servers_core(program);
    command.arg("-e").arg(&log).arg("-p").arg(directory).arg("-c").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
    let mut peer = Peer::start("nginx", command, address, &log)?;
    peer.calls = Some(calls);
    Ok(peer)
}

/// What an operator of nginx would write for the same work. The limits are set so that nothing is refused.
fn nginx_config(directory: &Path, address: SocketAddr, upstream: SocketAddr) -> Result<String> {
    let directory = directory.display();
    let mut callers = String::new();
    for index in 0..CALLERS {
        writeln!(callers, "    {} c{index};", load::caller_key(index))?;
    }
    Ok(format!(
        r#"daemon off;
user root;
worker_processes 1;
pid {directory}/nginx.pid;
error_log {directory}/nginx.log warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  tcp_nodelay on;
  sendfile on;
  keepalive_requests 1000000000;
  open_file_cache max=10000 inactive=10m;
  open_file_cache_valid 10m;
  map $http_x_api_key $caller {{
    default "";
{callers}  }}
  limit_req_zone $caller zone=callers:1m rate=1000000r/s;
  limit_req_zone $server_name zone=route:1m rate=1000000r/s;
  proxy_cache_path {directory}/cache levels=1:2 keys_zone=answers:10m max_size=100m inactive=30d use_temp_path=off;
  server {{
    listen {address};
    location /geocode/v1/json {{
      if ($caller = "") {{ return 401; }}
      limit_req zone=callers burst=1000000 nodelay;
      limit_req zone=route burst=1000000 nodelay;
      proxy_cache answers;
      proxy_cache_key $uri$is_args$args;
      proxy_cache_valid 200 30d;
      proxy_cache_lock on;
      proxy_pass http://{upstream};
    }}
  }}
}}
"#
    ))
}

fn tollgate(directory: &Path, name: &'static str, level: &str) -> Result<Peer> {
    let (address, (upstream, calls)) = (free_address()?, responder::counting_upstream()?);
    let (file, log) = (directory.join(format!("{level}.toml")), directory.join(format!("{level}.log")));
    fs::write(&file, tollgate_config(address, upstream)?)?;
    let mut command = on_the_servers_core(Path::new(env!("CARGO_BIN_EXE_tollgate")));
    command.args(["serve", "-c"]).arg(&file);
    command.env("TOLLGATE_LOG", level).env("OPENCAGE_KEY", "0123456789abcdef0123456789abcdef");
    if level == "warn" {
        let output = File::create(&log)?;
        command.stdout(output.try_clone()?).stderr(output);
    } else {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    let mut peer = Peer::start(name, command, address, &log)?;
    peer.calls = Some(calls);
    Ok(peer)
}

fn tollgate_config(address: SocketAddr, upstream: SocketAddr) -> Result<String> {
    let mut config = format!(
        r#"
[server]
listen = "{address}"

[admin]
listen = "127.0.0.1:0"

[store]
url = "memory:"

[providers.opencage]
preset = "opencage"
key = "env:OPENCAGE_KEY"
base_url = "http://{upstream}"
price = "0.005 USD"
quota = {{ burst = 1000, rate = "1000/s" }}

[routes.geocode]
provider = "opencage"
operation = "geocode"
limits = {{ caller = {{ burst = 1000000, rate = "1000000/s" }}, route = {{ burst = 1000000, rate = "1000000/s" }} }}
cache = {{ found = "30d" }}
budget = "none"
"#
    );
    for index in 0..CALLERS {
        let key = load::caller_key(index);
        let hash = Sha256::digest(key).iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        write!(config, "\n[callers.keys.c{index}]\nsha256 = \"{hash}\"\n")?;
    }
    Ok(config)
}

fn on_the_servers_core(program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", SERVER_CORE]).arg(program);
    command
}

/// Free a moment ago. A server whose output goes nowhere could not tell us the port it was given.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
